"""Defines the linear program of least loss at given errors, and certifies its solutions.

Errors and noise are parts of the range. Cell g may have an error of E_g (`target`); user l has the
share v_gl of it, the weight w_gl and the cost c_gl; the noise has the scale b_g:

    minimise max_l sum_g c_gl w_gl/b_g  subject to  (1 - sum_l w_gl)/2 + b_g <= E_g,
    0 <= w_gl <= v_gl.

No solver is trusted: `certify` makes a plan of any weights and a bound of any dual variables, and
rounds every number in the direction that weakens the claim (docs/theory/cells.md#optimal-plan).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR

# Twice the largest relative error of one rounding.
_ULP = 2.0**-52
# A program of more cells takes more than minutes.
_CELLS = 2_000
# A program of more pairs of cells that share a user takes more than minutes.
_PAIRS = 100_000_000
# The least price of a user, as a part of the largest. With a price of 0, rounding would decide
# whether the users without a price have enough shares for the error of their cell.
_PRICE = 2.0**-36
# Nothing is divided by a smaller difference between a sum of shares and the sum that is needed.
_ROOM = 2.0**-40


def is_small(user: Ints, n_cells: int) -> bool:
    """Returns whether programs of these memberships, shape (memberships,), are solved in time."""
    cells = np.bincount(user, minlength=1).astype(np.float64)
    return n_cells <= _CELLS and float(cells @ cells) <= _PAIRS


@dataclass(frozen=True, eq=False)
class Program:
    """Memberships, with shares and costs above 0, and the error of every cell.

    `target` has shape (cells,) and is above 0; every other array has shape (memberships,).
    """

    user: Ints
    cell: Ints
    share: Floats
    cost: Floats
    target: Floats
    n_users: int

    @cached_property
    def size(self) -> Ints:
        """Memberships of each cell, at least one."""
        return np.bincount(self.cell, minlength=len(self.target))

    def by_cell(self, entry: Floats) -> Floats:
        """Returns sums over the memberships of each cell."""
        total = np.bincount(self.cell, entry, minlength=len(self.target))
        return total.astype(np.float64, copy=False)

    def by_user(self, entry: Floats) -> Floats:
        """Returns sums over the memberships of each user."""
        total = np.bincount(self.user, entry, minlength=self.n_users)
        return total.astype(np.float64, copy=False)

    def scaled(self, factor: float) -> Program:
        """Returns the program with all errors times a factor."""
        return replace(self, target=self.target * factor)

    def needing(self) -> Program:
        """Returns the program of the cells whose target is smaller than guessing's error."""
        needed = self.target < MIDPOINT_ERROR
        keep = needed[self.cell]
        # These cells are numbered anew, without gaps; users keep their numbers.
        new_number = np.cumsum(needed) - 1
        return Program(
            user=self.user[keep],
            cell=new_number[self.cell[keep]],
            share=self.share[keep],
            cost=self.cost[keep],
            target=self.target[needed],
            n_users=self.n_users,
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights and noise scales with their loss, and a lower bound that dual variables prove."""

    weight: Floats
    noise: Floats
    loss: float
    lower_bound: float
    duals: Floats

    @property
    def gap(self) -> float:
        """The loss divided by the lower bound, minus 1."""
        if self.loss == 0:
            return 0.0
        if self.lower_bound > 0:
            return self.loss / self.lower_bound - 1
        return math.inf


def certify(program: Program, weight: Floats, duals: Floats) -> Solution:
    """Returns the plan of any weights, (memberships,), and the bound of any duals, (users,)."""
    weight, noise = feasible(program, weight)
    duals = np.maximum(duals, 0.0)
    return Solution(
        weight,
        noise,
        loss_of(program, weight, noise),
        dual_bound(program, duals),
        duals,
    )


def feasible(program: Program, weight: Floats) -> tuple[Floats, Floats]:
    """Returns weights from 0 to the shares, and the most noise that the cells' targets allow.

    In a cell where the weights leave no room for noise, the shares become the weights.
    """
    # Guessing keeps these cells' targets: nobody counts, and a constant needs no noise.
    free = program.target >= MIDPOINT_ERROR
    # A NaN becomes 0.
    weight = np.fmin(np.fmax(weight, 0.0), program.share)
    noise = _most_noise(program, weight)
    short = (noise <= 0) & ~free
    if short.any():
        weight = np.where(short[program.cell], program.share, weight)
        noise = _most_noise(program, weight)
    weight = np.where(free[program.cell], 0.0, weight)
    return weight, np.where(free, 0.0, noise)


def _most_noise(program: Program, weight: Floats) -> Floats:
    """Returns target - (1 - sum of weights)/2 of each cell, rounded downwards."""
    # A sum of k numbers is off by at most k roundings of the sum.
    total = program.by_cell(weight) * (1 - (program.size + 2) * _ULP)
    return program.target - (1 - total) / 2 - 4 * _ULP


def loss_of(program: Program, weight: Floats, noise: Floats) -> float:
    """Returns the largest loss of a user, rounded upwards; infinite for weights without noise."""
    scale = noise[program.cell]
    lost = np.where(weight > 0, math.inf, 0.0)
    finite = (weight > 0) & (scale > 0)
    np.divide(program.cost * weight, scale, out=lost, where=finite)
    # A sum over a user's cells is off by at most one rounding for each, and a few for its terms.
    cells_of_user = np.bincount(program.user, minlength=program.n_users)
    loss = program.by_user(lost) * (1 + (cells_of_user + 4) * _ULP)
    return float(loss.max())


def dual_bound(program: Program, duals: Floats) -> float:
    """Returns a loss that no plan beats, (1/P) sum_g 2 tau_g (docs/theory/cells.md#the-dual-bound).

    P is the sum of the dual variables, and a price p is a dual variable times a cost. tau_g is the
    least of sum p v/(2E - 1 + sum v) over the first users of the cell by rising price, for any
    number of them; the inequality that proves it is then checked.
    """
    duals = np.maximum(duals, 0.0)
    largest = float(duals.max(initial=0.0))
    if not 0 < largest < math.inf:
        return 0.0
    duals = duals / largest + _PRICE
    cell = program.cell
    share = program.share
    price = duals[program.user] * program.cost
    need = 1 - 2 * program.target
    # `excess` below adds `size` terms share * (tau - price), whose shares sum to 1: it is off by at
    # most size + 6 roundings of tau. Two more are for the comparison with tau * need.
    slack = (program.size + 8) * _ULP
    needed = need - 2 * slack
    tau = _least_ratios(program, price, needed)
    # Running sums have the rounding of all cells; the sums below only that of the cell's own users.
    kept = np.where(price <= tau[cell], share, 0.0)
    room = program.by_cell(kept) - needed
    np.divide(program.by_cell(price * kept), room, out=tau, where=room > _ROOM)
    usable = (need > 0) & np.isfinite(tau)
    tau = np.where(usable, tau, 0.0)
    # Cells whose tau does not keep the inequality add nothing to the bound.
    above = np.maximum(tau[cell] - price, 0.0)
    excess = program.by_cell(share * above)
    proved = excess + slack * tau <= tau * need
    total = float(duals.sum()) * (1 + (len(duals) + 2) * _ULP)
    bound = 2 * float(tau[proved].sum()) / total
    return bound * (1 - (len(tau) + 8) * _ULP)


def _least_ratios(program: Program, price: Floats, needed: Floats) -> Floats:
    """Returns each cell's least sum of price * share divided by its sum of shares beyond `needed`.

    The sums are over the first users of the cell by rising price, for any number of them.
    """
    size = program.size
    # Members are ordered by cell, then by price with a precision of some forty bits.
    order = np.argsort(program.cell + price / (2 * float(price.max())))
    start = np.cumsum(size) - size

    def running(entry: Floats) -> Floats:
        """Returns the sums over each member and those before it in its cell."""
        ordered = entry[order]
        total = np.cumsum(ordered)
        before: Floats = np.repeat(total[start] - ordered[start], size)
        return total - before

    room = running(program.share) - np.repeat(needed, size)
    ratio = np.full(len(room), math.inf)
    np.divide(running(price * program.share), room, out=ratio, where=room > _ROOM)
    return np.asarray(np.minimum.reduceat(ratio, start))
