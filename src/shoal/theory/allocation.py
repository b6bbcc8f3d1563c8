"""Shares noise among cells with given weights in three ways: uniform, equalised and balanced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from shoal.arrays import Floats, Ints, largest

# A balanced allocation ends when no user's loss is above 1 by more than this, in logarithms: then
# the mean of ln b, by weight, could fall by this at most.
_GAP = 1e-3
# The same in plans by the method `balanced`.
PUBLISHED_GAP = 1e-4
# The most steps of an allocation.
_STEPS = 50_000
# In this many first steps each dual variable has its own pace. By measurement an allocation then
# takes 80 to 400 steps, where equal paces take 400 to 3,000.
_FAST_STEPS = 3_000
# A pace grows by this factor where the loss stays on one side of 1,
_FASTER = 1.2
# shrinks by this one where it does not,
_SLOWER = 0.5
# and is at most this one.
_FASTEST = 50.0
# The least dual variable, as a part of their total, and the least loss whose logarithm is taken.
_LEAST = 1e-100
# With more members than this, only users with nearly the largest losses get dual variables above 0.
_MANY = 100_000
# At a time, at most this many users for each cell join them,
_JOIN = 4
# and start at this part of the average dual variable.
_START = 1e-3
# Dual variables below this part of the total prove nothing and are not kept.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """Sensitivities of users (rows) in cells (columns), each in its cell's unit, and cell weights.

    The weights of cells are above 0.
    """

    user: Ints
    cell: Ints
    sensitivity: Floats
    n_users: int
    weight: Floats

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.weight)

    @cached_property
    def by_user(self) -> sp.csr_array:
        """The matrix with users as rows."""
        shape = self.n_users, self.n_cells
        return sp.csr_array((self.sensitivity, (self.user, self.cell)), shape=shape)

    @cached_property
    def by_cell(self) -> sp.csr_array:
        """The transpose, with cells as rows."""
        return sp.csr_array(self.by_user.T)

    @cached_property
    def largest(self) -> Floats:
        """The largest sensitivity of a user in each cell."""
        return largest(self.cell, self.sensitivity, self.n_cells)

    @property
    def heaviest(self) -> Ints:
        """A user with the largest sensitivity, for each cell."""
        is_largest = np.flatnonzero(self.sensitivity == self.largest[self.cell])
        _, first = np.unique(self.cell[is_largest], return_index=True)
        return self.user[is_largest[first]]

    @cached_property
    def most_cells(self) -> int:
        """The most cells that one user is in; the papers call it G_1."""
        return int(np.bincount(self.user, minlength=self.n_users).max())

    def of_users(self, users: Ints) -> Problem:
        """Returns the problem of the same cells with only some of the users."""
        rows = self.by_user[users].tocoo()
        user = rows.row.astype(np.int64)
        cell = rows.col.astype(np.int64)
        return Problem(user, cell, rows.data, len(users), self.weight)

    def loss(self, noise_scale: Floats) -> Floats:
        """Returns the loss of each user: the sum of its sensitivities divided by noise scales."""
        return np.asarray(self.by_user @ (1 / noise_scale))


@dataclass(frozen=True, eq=False)
class Allocation:
    """Noise scales of cells, each in its unit, at a loss of 1; `duals` of users bound the gap."""

    noise_scale: Floats
    duals: Floats | None = None


def uniform(problem: Problem) -> Allocation:
    """Returns noise with the same loss in every cell: 1, divided by the most cells of a user.

    Source: paper 000, Corollary II.1, where it is b_g = G_1 max_l Delta_gl.
    """
    return Allocation(problem.most_cells * problem.largest)


def equalised(problem: Problem) -> Allocation:
    """Returns the least noise scale that all cells can have, max_l sum_g Delta_gl.

    Source: docs/theory/cells.md#equalised-plans.
    """
    common = float(problem.loss(np.ones(problem.n_cells)).max())
    return Allocation(np.full(problem.n_cells, common))


def given_up(problem: Problem, most: float) -> Ints:
    """Returns cells to give up, in order, until every user's loss at unit noise is below `most`.

    The user with the largest loss determines the error of all cells: each time the cell in which
    it has its largest sensitivity is given up.
    """
    loss = problem.loss(np.ones(problem.n_cells))
    rows = problem.by_user
    columns = problem.by_cell
    out: list[int] = []
    while len(out) < problem.n_cells and loss.max() >= most:
        user = int(loss.argmax())
        # The user's cells, and its sensitivity in those that are left.
        of_user = slice(rows.indptr[user], rows.indptr[user + 1])
        cells = rows.indices[of_user]
        sensitivity = np.where(np.isin(cells, out), 0, rows.data[of_user])
        cell = int(cells[sensitivity.argmax()])
        out.append(cell)
        of_cell = slice(columns.indptr[cell], columns.indptr[cell + 1])
        loss[columns.indices[of_cell]] -= columns.data[of_cell]
    return np.array(out, dtype=np.int64)


def balanced(problem: Problem, gap: float = _GAP) -> Allocation:
    """Minimises the weighted sum of ln b at a loss of at most 1, for noise scales b.

    Multiplying each user's dual variable by its loss, again and again, converges. At first a dual
    variable takes longer steps while its user's loss stays on one side of 1. `balanced_gap`
    certifies the result (docs/theory/cells.md#balanced-plans).
    """
    if problem.most_cells == 1:
        return _disjoint(problem)
    dual = np.zeros(problem.n_users)
    # The users who may have a dual variable above 0.
    users = np.arange(problem.n_users)
    if len(problem.user) > _MANY:
        # With equal dual variables these are the inverse noise scales, but for a factor.
        equal = problem.weight / problem.by_cell.sum(axis=1)
        users = np.union1d(problem.heaviest, _most_loss(problem, equal))
    while True:
        dual[users] = _dual_variables(problem.of_users(users), gap, dual[users])
        inverse_scale = problem.weight / (problem.by_cell @ dual)
        # The users who have the largest losses with these dual variables join.
        joined = np.union1d(users, _most_loss(problem, inverse_scale))
        largest_loss = float((problem.by_user @ inverse_scale).max())
        if len(joined) == len(users) or math.log(largest_loss) <= gap:
            break
        users = joined
    # Single precision is enough for a proof.
    kept = np.where(dual > _NEGLIGIBLE * dual.sum(), dual, 0.0).astype(np.float32)
    duals = _cover(problem, kept.astype(np.float64), dual)
    # Scales that are larger by this factor have a loss of 1.
    return Allocation(largest_loss / inverse_scale, duals)


def _most_loss(problem: Problem, inverse_scale: Floats) -> Ints:
    """Returns the users with the largest losses at these inverse noise scales.

    They are four times as many as cells, or all users if these are fewer.
    """
    loss = problem.by_user @ inverse_scale
    few = min(_JOIN * problem.n_cells, problem.n_users)
    return np.argpartition(-loss, few - 1)[:few]


def _dual_variables(problem: Problem, gap: float, known: Floats) -> Floats:
    """Returns dual variables that leave nobody a loss above e^gap, starting at `known` if not 0."""
    weight = problem.weight
    rows = problem.by_user
    columns = problem.by_cell
    total = float(weight.sum())
    # Dual variables always add up to the weights of the cells.
    dual = np.full(problem.n_users, total / problem.n_users)
    if known.any():
        dual = np.maximum(known, _START * dual)
        dual = dual * (total / dual.sum())
    pace = np.ones(problem.n_users)
    last_log_loss = np.zeros(problem.n_users)
    for step in range(_STEPS):
        loss = rows @ (weight / (columns @ dual))
        if math.log(float(loss.max())) <= gap:
            break
        if step >= _FAST_STEPS:
            # These steps are sure to converge, and they keep the sum.
            dual = dual * loss
            continue
        log_loss = np.log(np.maximum(loss, _LEAST))
        longer = np.minimum(pace * _FASTER, _FASTEST)
        shorter = np.maximum(pace * _SLOWER, 1.0)
        same_side_of_1 = log_loss * last_log_loss > 0
        pace = np.where(same_side_of_1, longer, shorter)
        last_log_loss = log_loss
        # A dual variable that underflows to 0 would stay 0.
        dual = np.maximum(dual * np.exp(np.clip(pace * log_loss, -1.0, 1.0)), _LEAST * total)
        dual = dual * (total / dual.sum())
    return dual


def _disjoint(problem: Problem) -> Allocation:
    """Returns the best allocation where nobody is in two cells: the heaviest user decides each."""
    # By cell, the largest sensitivity first.
    order = np.lexsort((-problem.sensitivity, problem.cell))
    first = np.searchsorted(problem.cell[order], np.arange(problem.n_cells))
    heaviest = problem.user[order[first]]
    duals = np.zeros(problem.n_users)
    duals[heaviest] = problem.weight
    return Allocation(problem.largest, duals)


def _cover(problem: Problem, kept: Floats, dual: Floats) -> Floats:
    """Restores dual variables in cells where thinning left none: a bound needs one in each cell."""
    bare = problem.by_cell @ kept <= 0
    if bare.any():
        users = np.unique(problem.user[np.isin(problem.cell, np.flatnonzero(bare))])
        kept[users] = dual[users]
    return kept


def balanced_gap(problem: Problem, noise_scale: Floats, duals: Floats, epsilon: float) -> float:
    """Returns a bound on how much the weighted mean of ln b could fall at this loss.

    It follows by weak duality from any dual variables that are not negative, and is infinite if
    those of a cell are all 0 (docs/theory/cells.md#balanced-plans).
    """
    weight = problem.weight
    total = float(problem.weight.sum())
    # What the users of each cell pay for a unit of 1/b.
    price = problem.by_cell @ duals
    if (price <= 0).any():
        return math.inf
    # At these prices the best 1/b of a cell is its weight divided by its price, but for a factor
    # that spends the whole loss.
    log_inverse_scale = weight @ np.log(weight / price)
    log_factor = total * math.log(epsilon * float(duals.sum()) / total)
    fall = float(log_inverse_scale + weight @ np.log(noise_scale) + log_factor) / total
    # Rounding may bring a gap of 0 below it.
    return max(0.0, fall)
