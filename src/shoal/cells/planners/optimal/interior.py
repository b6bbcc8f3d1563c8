"""Solves the linear program by interior points, with Mehrotra's predictor and corrector.

Primal variables are x = 1/b of each cell, y = w/b and z = v x - y of each membership, the slack r
of each user and the loss t; dual ones alpha of each cell, lam of each user, mu and sigma of each
membership (of z >= 0 and y >= 0); see docs/theory/cells.md#the-linear-program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from shoal.arrays import Floats
from shoal.cells.facts.program import Program, Solution, certify
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR

Products = tuple[Floats, Floats, Floats]
# The most steps of one program.
_STEPS = 100
# A step ends at this part of the way to the nearest bound.
_BACK = 0.995
# A shorter step than this ends the program.
_SHORTEST = 1e-8
# The most steps of a search, times memberships times cells.
_WORK = 8e10
# The steps that even the search of the largest program may take.
_FEWEST = 40
# Columns that LAPACK factorises together.
_BLOCK = 64
# The part of nonzero entries up to which a sparse product is faster than a dense one.
_FILLED = 0.05
# Products that differ from their aim by more than this factor are out of balance.
_BALANCE = 10.0
# A correction looks this far beyond the lengths of the step.
_BEYOND = 0.08
# A correction is kept if it makes the lengths of the step larger by this factor.
_LONGER = 1.01
# The most corrections of one step.
_CORRECTIONS = 2
# The primal variables of a `Point`; the others are dual.
_PRIMAL = ("x", "y", "z", "r", "t")


@dataclass(frozen=True, eq=False)
class Point:
    """A point inside all inequalities, or a step between two points."""

    x: Floats
    y: Floats
    z: Floats
    r: Floats
    t: float
    alpha: Floats
    lam: Floats
    mu: Floats
    sigma: Floats

    def moved(self, step: Point, primal: float, dual: float) -> Point:
        """Returns the point after a step of these lengths."""
        moved = []
        for each in fields(self):
            length = primal if each.name in _PRIMAL else dual
            moved.append(getattr(self, each.name) + length * getattr(step, each.name))
        return Point(*moved)

    def products(self) -> Products:
        """Returns z mu, y sigma and r lam."""
        return self.z * self.mu, self.y * self.sigma, self.r * self.lam

    def lengths(self, step: Point) -> tuple[float, float]:
        """Returns the longest primal and dual steps that stay inside, at most 1."""

        def longest(*names: str) -> float:
            falls = [float((-getattr(step, each) / getattr(self, each)).max()) for each in names]
            return min(1.0, _BACK / max(1e-3, *falls))

        return longest("y", "z", "r"), longest("mu", "sigma", "lam")


class Newton:
    """Newton's equations at a point, factorised once for several right-hand sides.

    The unknowns are steps of x, alpha, t, y, z, r, mu, sigma and lam. They change the products
    z mu, y sigma and r lam by given numbers and make the five `miss_` numbers 0. Steps of mu, sigma
    and lam are eliminated by the products, with mu/z = `pull_z` and sigma/y = `pull_y`; then those
    of z, y and r by `miss_z`, `miss_y` and `miss_t`. What is left is a symmetric system in x, alpha
    and t. In it a membership has the weight 1/`stiff`, and a user the weight `root` squared.
    """

    def __init__(self, program: Program, at: Point) -> None:
        """Factorises the dense system in x, alpha and t. Every user must have a membership."""
        self.program = program
        self.at = at
        share = program.share
        cost = program.cost
        cell = program.cell
        user = program.user
        self.short = MIDPOINT_ERROR - program.target
        self.pull_z = at.mu / at.z
        self.pull_y = at.sigma / at.y
        self.stiff = self.pull_z + self.pull_y
        self.root = 1 / np.sqrt(program.by_user(cost * cost / self.stiff) + at.r / at.lam)
        self.rows = self._rows_of_users()
        # The matrix is symmetric: half the work, with room for blocks of columns.
        matrix = self._matrix()
        self.factors, self.pivots, self.singular = lapack.dsytrf(
            matrix.T, lwork=_BLOCK * len(matrix), overwrite_a=True
        )
        # By how much the point misses each equation.
        self.miss_y = at.sigma - at.mu - cost * at.lam[user] + at.alpha[cell] / 2
        self.miss_x = program.by_cell(share * at.mu) - self.short * at.alpha
        self.miss_e = 1 - program.by_cell(at.y) / 2 + self.short * at.x
        self.miss_z = share * at.x[cell] - at.y - at.z
        self.miss_t = at.t - program.by_user(cost * at.y) - at.r

    def _rows_of_users(self) -> sp.csr_array:
        """Returns how x, alpha and t move each user's lam, (users, 2 cells + 1), times `root`."""
        program = self.program
        n_cells = len(self.at.x)
        n_users = len(self.at.lam)
        of_y = program.cost / self.stiff * self.root[program.user]
        of_x = of_y * self.pull_z * program.share
        data = np.concatenate([of_x, of_y / 2, -self.root])
        row = np.concatenate([program.user, program.user, np.arange(n_users)])
        column_of_t = np.full(n_users, 2 * n_cells)
        column = np.concatenate([program.cell, program.cell + n_cells, column_of_t])
        return sp.csr_array((data, (row, column)), (n_users, 2 * n_cells + 1))

    def _matrix(self) -> Floats:
        """Returns the dense symmetric matrix of the system in x, alpha and t."""
        program = self.program
        share = program.share
        n_cells = len(self.at.x)
        # Users link the cells that they are in; all other terms link a cell's x and alpha.
        matrix = -_squared(self.rows)
        x = np.arange(n_cells)
        alpha = np.arange(n_cells, 2 * n_cells)
        mixed = program.by_cell(share * self.pull_z / self.stiff) / 2 - self.short
        pulls = self.pull_z * self.pull_y / self.stiff
        matrix[x, x] -= program.by_cell(share * share * pulls)
        matrix[alpha, alpha] += program.by_cell(1 / self.stiff) / 4
        matrix[x, alpha] += mixed
        matrix[alpha, x] += mixed
        return matrix

    def step(self, of_z: Floats, of_y: Floats, of_r: Floats) -> Point:
        """Returns the step that changes the products by these numbers and meets all equations.

        Both hold to first order.
        """
        program = self.program
        at = self.at
        cell = program.cell
        user = program.user
        # The step of mu if x and y stayed, that of y if x, alpha and lam did, and how far lam is
        # pulled then.
        mu_alone = of_z / at.z - self.pull_z * self.miss_z
        y_alone = (self.miss_y - mu_alone + of_y / at.y) / self.stiff
        pull_lam = program.by_user(program.cost * y_alone) - self.miss_t + of_r / at.lam
        # The right-hand side of the system in x, alpha and t.
        right = np.concatenate(
            [
                -self.miss_x - program.by_cell(program.share * (mu_alone + self.pull_z * y_alone)),
                self.miss_e - program.by_cell(y_alone) / 2,
                [float(at.lam.sum()) - 1],
            ]
        )
        right += self.rows.T @ (self.root * pull_lam)
        solved, _ = lapack.dsytrs(self.factors, self.pivots, right)
        x, alpha, t = np.split(solved, [len(at.x), 2 * len(at.x)])
        # The steps that were eliminated follow from these.
        lam = self.root * (self.rows @ solved) + self.root**2 * pull_lam
        share_x = program.share * x[cell]
        pulled = self.pull_z * share_x - program.cost * lam[user] + alpha[cell] / 2
        y = y_alone + pulled / self.stiff
        z = share_x - y + self.miss_z
        r = (of_r - at.r * lam) / at.lam
        mu = of_z / at.z - self.pull_z * z
        sigma = of_y / at.y - self.pull_y * y
        return Point(x, y, z, r, float(t[0]), alpha, lam, mu, sigma)


def _squared(rows: sp.csr_array) -> Floats:
    """Returns the dense product of the transposed rows and the rows, by the faster of two ways."""
    if rows.nnz <= _FILLED * math.prod(rows.shape):
        return np.asarray((rows.T @ rows).toarray())
    filled = rows.toarray()
    return np.asarray(filled.T @ filled)


def steps_of(program: Program) -> Iterator[int]:
    """Returns an iterator over the steps that a search with programs of this size may take in all.

    Their number is the same on every machine.
    """
    return iter(range(max(_FEWEST, int(_WORK / (len(program.share) * len(program.target))))))


def solve(
    program: Program, tolerance: float = 1e-3, steps: Iterator[int] | None = None
) -> Solution:
    """Returns a solution within a relative gap, or the best one when steps ran out."""
    needing = program.needing()
    weight = np.zeros(len(program.share))
    duals = np.zeros(program.n_users)
    if not len(needing.target):
        # Guessing is good enough in every cell.
        return certify(program, weight, duals)
    # The memberships that `needing` keeps.
    needs = (program.target < MIDPOINT_ERROR)[program.cell]
    # Only users with a cell left take part, and are numbered anew.
    users, user = np.unique(needing.user, return_inverse=True)
    needing = replace(needing, user=user, n_users=len(users))
    at = _start(needing)
    # At first whole shares are the best weights, and nothing is proved.
    best = certify(needing, needing.share, duals[users])
    steps = steps_of(program) if steps is None else steps
    for _ in islice(steps, _STEPS):
        newton = Newton(needing, at)
        if newton.singular:
            break
        step, lengths = _step(newton)
        if not (math.isfinite(step.t) and max(lengths) > _SHORTEST):
            break
        at = at.moved(step, *lengths)
        now = certify(needing, at.y / at.x[needing.cell], at.lam)
        # Weights and duals are improved apart: each proves its own side of the gap.
        if now.loss < best.loss:
            best = replace(best, weight=now.weight, noise=now.noise, loss=now.loss)
        if now.lower_bound > best.lower_bound:
            best = replace(best, lower_bound=now.lower_bound, duals=now.duals)
        if best.gap <= tolerance:
            break
    weight[needs] = best.weight
    duals[users] = best.duals
    return certify(program, weight, duals)


def _step(newton: Newton) -> tuple[Point, tuple[float, float]]:
    """Returns the step towards equal, smaller products, and its lengths (Mehrotra, Gondzio)."""
    at = newton.at
    products = at.products()
    count = sum(map(len, products))
    mean = sum(float(each.sum()) for each in products) / count
    # The predictor aims at products of 0. The part of them that it would leave sets the aim of the
    # step: its cube, as Mehrotra proposes.
    predictor = newton.step(*(-each for each in products))
    predicted = at.moved(predictor, *at.lengths(predictor)).products()
    part_left = sum(float(each.sum()) for each in predicted) / count / mean
    aim = mean * min(0.5, part_left**3)
    # The predictor's own products are the terms of second order that Newton's equations leave out.
    limit = _BALANCE * mean
    second_order = (np.clip(each, -limit, limit) for each in predictor.products())
    change = [aim - one - two for one, two in zip(products, second_order, strict=True)]
    step = newton.step(*change)
    lengths = at.lengths(step)
    # Corrections bring products that are out of balance nearer to the aim, if the step gets longer.
    for _ in range(_CORRECTIONS):
        further = (min(1.0, (1 + _BEYOND) * each + _BEYOND) for each in lengths)
        reached = at.moved(step, *further).products()
        missing = (np.clip(each, aim / _BALANCE, aim * _BALANCE) - each for each in reached)
        pairs = zip(change, missing, strict=True)
        change = [one + np.maximum(two, -_BALANCE * aim) for one, two in pairs]
        corrected = newton.step(*change)
        if not sum(at.lengths(corrected)) > _LONGER * sum(lengths):
            break
        step = corrected
        lengths = at.lengths(corrected)
    return step, lengths


def _start(program: Program) -> Point:
    """Returns a point well inside: a cell keeps 1 - target of its weight, prices nearly equal."""
    x = 2 / program.target
    share_x = program.share * x[program.cell]
    y = (1 - program.target)[program.cell] * share_x
    z = share_x - y
    spent = program.by_user(program.cost * y)
    t = 1.1 * float(spent.max())
    r = t - spent
    lam = spent + 10 * spent.max()
    lam = lam / lam.sum()
    price = lam[program.user] * program.cost
    # Half of alpha: in every cell more than the mean price of its shares.
    tau = 1.5 * program.by_cell(program.share * price)
    tau_of_cell = tau[program.cell]
    # mu - sigma has to be tau less the price; neither of them may be too near to 0.
    difference = tau_of_cell - price
    least_product = 0.1 * float((r * lam).mean())
    mu = (difference + np.sqrt(difference**2 + tau_of_cell**2)) / 2
    mu = np.maximum(mu, np.maximum(least_product / z, difference + least_product / y))
    return Point(x, y, z, r, t, 2 * tau, lam, mu, mu - difference)
