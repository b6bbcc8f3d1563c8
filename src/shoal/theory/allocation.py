"""How noise is shared among cells, for weights that are given: uniform, equalised and balanced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from shoal.arrays import Floats, Ints, largest

# What scaling a balanced allocation to a loss of 1 may cost per unit of weight where it ends.
_GAP = 1e-3
PUBLISHED_GAP = 1e-4
_STEPS = 50_000
# Measured: 80 to 400 steps of own paces where equal ones take 400 to 3,000.
_FAST_STEPS = 3_000
_FASTER = 1.2
_SLOWER = 0.5
_FASTEST = 50.0
_LEAST = 1e-100
# Of more members only users who may have the largest losses get dual variables above 0: so many a
# cell join them at a time. Those who join start at this share of the average.
_MANY = 100_000
_JOIN = 4
_START = 1e-3
# Dual variables below this share of the total prove nothing and are not kept.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """Sparse sensitivities over the cells' units, users by cells, and weights of cells above 0."""

    user: Ints
    cell: Ints
    sensitivity: Floats
    n_users: int
    weight: Floats

    @property
    def n_cells(self) -> int:
        """Columns."""
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
        """The sensitivity of each cell: that of its heaviest user."""
        return largest(self.cell, self.sensitivity, self.n_cells)

    @property
    def heaviest(self) -> Ints:
        """A user with the largest sensitivity of each cell."""
        most = np.flatnonzero(self.sensitivity == self.largest[self.cell])
        first = np.unique(self.cell[most], return_index=True)[1]
        return self.user[most[first]]

    @cached_property
    def most_cells(self) -> int:
        """G_1: most cells that one user is in."""
        return int(np.bincount(self.user, minlength=self.n_users).max())

    def of_users(self, users: Ints) -> Problem:
        """The same cells with some users alone."""
        rows = self.by_user[users].tocoo()
        user = rows.row.astype(np.int64)
        cell = rows.col.astype(np.int64)
        return Problem(user, cell, rows.data, len(users), self.weight)

    def loss(self, noise_scale: Floats) -> Floats:
        """Privacy loss of each user: sum of sensitivity over noise scale."""
        return np.asarray(self.by_user @ (1 / noise_scale))


@dataclass(frozen=True, eq=False)
class Allocation:
    """Noise of each cell over the width at a loss of 1; `duals`, one a user, prove it good."""

    noise_scale: Floats
    duals: Floats | None = None


def uniform(problem: Problem) -> Allocation:
    """Loss 1/G_1 in every cell: b_g = G_1 max_l Delta_gl (paper 000, Corollary II.1)."""
    return Allocation(problem.most_cells * problem.largest)


def equalised(problem: Problem) -> Allocation:
    """One error for all: max_l sum_g Delta_gl, exactly (docs/theory/cells.md#equalised-plans)."""
    common = float(problem.loss(np.ones(problem.n_cells)).max())
    return Allocation(np.full(problem.n_cells, common))


def given_up(problem: Problem, most: float) -> Ints:
    """Cells to give up, in order, until nobody loses `most` or more at unit noise.

    All cells share the error of the user with the largest loss: each time its heaviest cell goes.
    """
    loss = problem.loss(np.ones(problem.n_cells))
    rows = problem.by_user
    columns = problem.by_cell
    out: list[int] = []
    while len(out) < problem.n_cells and loss.max() >= most:
        user = int(loss.argmax())
        own = slice(rows.indptr[user], rows.indptr[user + 1])
        weight = np.where(np.isin(rows.indices[own], out), 0, rows.data[own])
        cell = int(rows.indices[own][weight.argmax()])
        out.append(cell)
        inside = slice(columns.indptr[cell], columns.indptr[cell + 1])
        loss[columns.indices[inside]] -= columns.data[inside]
    return np.array(out, dtype=np.int64)


def balanced(problem: Problem, gap: float = _GAP) -> Allocation:
    """Maximises sum_g w_g ln(1/b_g) at a loss of at most 1 (docs/theory/cells.md#balanced-plans).

    The step price_l <- price_l loss_l converges; dual variables whose loss stays on one side of 1
    take longer steps at first. `balanced_gap` certifies the result.
    """
    if problem.most_cells == 1:
        return _disjoint(problem)
    dual = np.zeros(problem.n_users)
    users = np.arange(problem.n_users)
    if len(problem.user) > _MANY:
        equal = problem.weight / problem.by_cell.sum(axis=1)
        users = np.union1d(problem.heaviest, _most_loss(problem, equal))
    while True:
        dual[users] = _dual_variables(problem.of_users(users), gap, dual[users])
        inverse = problem.weight / (problem.by_cell @ dual)
        # Those whom these dual variables leave with the largest losses join.
        joined = np.union1d(users, _most_loss(problem, inverse))
        largest_loss = float((problem.by_user @ inverse).max())
        if len(joined) == len(users) or math.log(largest_loss) <= gap:
            break
        users = joined
    kept = np.where(dual > _NEGLIGIBLE * dual.sum(), dual, 0.0).astype(np.float32)
    return Allocation(largest_loss / inverse, _cover(problem, kept.astype(np.float64), dual))


def _most_loss(problem: Problem, inverse: Floats) -> Ints:
    """Users with the largest losses at these inverse noise scales, four times as many as cells."""
    loss = problem.by_user @ inverse
    few = min(_JOIN * problem.n_cells, problem.n_users)
    return np.argpartition(-loss, few - 1)[:few]


def _dual_variables(problem: Problem, gap: float, known: Floats) -> Floats:
    """Dual variables that leave nobody a loss above e^gap, from those that are known, if any."""
    weight = problem.weight
    rows = problem.by_user
    columns = problem.by_cell
    total = float(weight.sum())
    dual = np.full(problem.n_users, total / problem.n_users)
    if known.any():
        dual = np.maximum(known, _START * dual)
        dual = dual * (total / dual.sum())
    pace = np.ones(problem.n_users)
    lead = np.zeros(problem.n_users)
    for step in range(_STEPS):
        loss = rows @ (weight / (columns @ dual))
        if math.log(float(loss.max())) <= gap:
            break
        if step >= _FAST_STEPS:
            dual = dual * loss
            continue
        ahead = np.log(np.maximum(loss, _LEAST))
        longer = np.minimum(pace * _FASTER, _FASTEST)
        shorter = np.maximum(pace * _SLOWER, 1.0)
        pace = np.where(ahead * lead > 0, longer, shorter)
        lead = ahead
        # A dual variable that underflows could never come back.
        dual = np.maximum(dual * np.exp(np.clip(pace * lead, -1.0, 1.0)), _LEAST * total)
        dual = dual * (total / dual.sum())
    return dual


def _disjoint(problem: Problem) -> Allocation:
    """Nobody is in two cells: the user with the largest loss of each decides, and proves it."""
    order = np.lexsort((-problem.sensitivity, problem.cell))
    first = np.searchsorted(problem.cell[order], np.arange(problem.n_cells))
    duals = np.zeros(problem.n_users)
    duals[problem.user[order[first]]] = problem.weight
    return Allocation(problem.largest, duals)


def _cover(problem: Problem, kept: Floats, dual: Floats) -> Floats:
    """Gives back what thinning took away: a bound needs a dual variable above 0 in every cell."""
    bare = problem.by_cell @ kept <= 0
    if bare.any():
        users = np.unique(problem.user[np.isin(problem.cell, np.flatnonzero(bare))])
        kept[users] = dual[users]
    return kept


def balanced_gap(problem: Problem, noise_scale: Floats, duals: Floats, epsilon: float) -> float:
    """Most that the mean of ln b could fall at this loss (docs/theory/cells.md#balanced-plans).

    By weak duality, for any dual variables >= 0; infinite if a cell has none above 0.
    """
    weight = problem.weight
    total = float(problem.weight.sum())
    priced = problem.by_cell @ duals
    if (priced <= 0).any():
        return math.inf
    best = weight @ np.log(weight / priced)
    slack = total * math.log(epsilon * float(duals.sum()) / total)
    return max(0.0, float(best + weight @ np.log(noise_scale) + slack) / total)
