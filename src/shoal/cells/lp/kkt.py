"""Newton's equations of the interior points.

Primal: x = 1/b of each cell, y = w/b and z = v x - y of each entry, slack r of each user, loss t.
Dual: alpha of each cell, dual variable of each user, mu and sigma of each entry (of z >= 0 and y >=
0).

    (1/2) sum_l y - (1/2 - E) x = 1       mu - sigma + cost dual variable = alpha/2     z mu = y
    sigma r + sum_g cost y = t                  (1/2 - E) alpha = sum_l v mu            = r dual
    variable = aim z + y = v x                           sum of dual variables = 1

They are diagonal in the entries, then diagonal in the users; what is left is one dense system in x,
alpha and t, twice as large as the number of cells: users and entries cost only sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from shoal.cells.lp.problem import FREE

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.cells.lp.problem import Floats, Ints, Packed


_SMALL = 600


@dataclass(frozen=True, eq=False)
class Products:
    """One number for each inequality: z mu, y sigma, r dual variable, or what is wanted of them."""

    z: Floats
    y: Floats
    r: Floats

    def mean(self) -> float:
        """Their average, which is the gap over the number of inequalities."""
        total = self.z.sum() + self.y.sum() + self.r.sum()
        return float(total) / (2 * len(self.y) + len(self.r))

    def scaled(self, by: float) -> Products:
        """All of them times a number."""
        return Products(by * self.z, by * self.y, by * self.r)

    def clipped(self, low: float, high: float) -> Products:
        """All of them within bounds."""
        return Products(*(np.clip(each, low, high) for each in (self.z, self.y, self.r)))

    def minus(self, now: Products, aim: float) -> Products:
        """What a step has to change: aim less the products of now, less these second-order ones."""
        return Products(aim - now.z - self.z, aim - now.y - self.y, aim - now.r - self.r)

    def rebalanced(self, wanted: Products, aim: float, balance: float) -> Products:
        """As wanted, and those that a step would leave far from the aim brought nearer."""

        def toward(here: Floats, so_far: Floats) -> Floats:
            moved = np.clip(here, aim / balance, aim * balance) - here
            return so_far + np.maximum(moved, -balance * aim)

        return Products(
            toward(self.z, wanted.z), toward(self.y, wanted.y), toward(self.r, wanted.r)
        )


@dataclass(frozen=True, eq=False)
class Point:
    """A point inside all inequalities, or a direction."""

    x: Floats
    t: float
    y: Floats
    z: Floats
    r: Floats
    alpha: Floats
    dual: Floats
    mu: Floats
    sigma: Floats

    def products(self) -> Products:
        """Of each inequality and its multiplier: 0 at the optimum."""
        return Products(self.z * self.mu, self.y * self.sigma, self.r * self.dual)

    def moved(self, along: Point, primal: float, dual: float) -> Point:
        """The point after a step."""
        return Point(
            self.x + primal * along.x,
            self.t + primal * along.t,
            self.y + primal * along.y,
            self.z + primal * along.z,
            self.r + primal * along.r,
            self.alpha + dual * along.alpha,
            self.dual + dual * along.dual,
            self.mu + dual * along.mu,
            self.sigma + dual * along.sigma,
        )

    def lengths(self, along: Point) -> tuple[float, float]:
        """Longest primal and dual step before something turns negative."""
        return (
            min(_length(self.y, along.y), _length(self.z, along.z), _length(self.r, along.r)),
            min(
                _length(self.mu, along.mu),
                _length(self.sigma, along.sigma),
                _length(self.dual, along.dual),
            ),
        )


def _length(here: Floats, along: Floats) -> float:
    # The steepest fall decides; a tiny floor keeps a direction of zeros from dividing.
    return 1.0 / max(float((-along / here).max()), 1e-3)


class System:
    """Newton's equations at a point, factorised once for several right-hand sides.

    Args:
        packed: Cells and entries.
        user: User of each entry, 0.., without gaps.
        point: Where.
    """

    def __init__(self, packed: Packed, user: Ints, point: Point) -> None:
        self.packed, self.user, self.point = packed, user, point
        self.pull_z, self.pull_y = point.mu / point.z, point.sigma / point.y
        self.stiff = self.pull_z + self.pull_y
        cost = packed.cost
        self.of_user = self._by_user(cost * cost / self.stiff) + point.r / point.dual
        self._residuals()

    def _by_user(self, entry: Floats) -> Floats:
        total = np.bincount(self.user, entry, minlength=len(self.point.r))
        return total.astype(np.float64, copy=False)

    def _residuals(self) -> None:
        """What is missing in each equation that is linear."""
        packed, point, cell = self.packed, self.point, self.packed.cell
        v, cost, gap = packed.share, packed.cost, FREE - packed.target
        self.miss_y = point.sigma - point.mu - cost * point.dual[self.user] + point.alpha[cell] / 2
        self.miss_x = packed.by_cell(v * point.mu) - gap * point.alpha
        self.miss_t = 1 - float(point.dual.sum())
        self.miss_error = 1 - packed.by_cell(point.y) / 2 + gap * point.x
        self.miss_z = v * point.x[cell] - point.y - point.z
        self.miss_loss = point.t - self._by_user(cost * point.y) - point.r

    @cached_property
    def rows(self) -> sp.csr_array:
        """One row a user over x, alpha, t; its square is what the users add to the system."""
        packed, cells = self.packed, self.packed.n_cells
        root = 1 / np.sqrt(self.of_user)
        each = packed.cost / self.stiff * root[self.user]
        data = (each * self.pull_z * packed.share, each / 2, -root)
        row = (self.user, self.user, np.arange(len(root)))
        column = (packed.cell, packed.cell + cells, np.full(len(root), 2 * cells))
        where = (np.concatenate(row), np.concatenate(column))
        shape = (len(root), 2 * cells + 1)
        return sp.csr_array((np.concatenate(data), where), shape=shape)

    @cached_property
    def solve(self) -> Callable[[Floats], Floats]:
        """The dense system, factorised.

        Small ones by one processor: threads of a busy machine wait for each other far longer.
        """
        if 2 * self.packed.n_cells < _SMALL:
            alone: Callable[[Floats], Floats] = splu(sp.csc_array(self.dense)).solve
            return alone
        factors = la.lu_factor(self.dense, overwrite_a=True, check_finite=False)
        return lambda right: np.asarray(la.lu_solve(factors, right, check_finite=False))

    @property
    def dense(self) -> Floats:
        """The matrix of the system: symmetric, of as many plus as minus signs."""
        packed, cells = self.packed, self.packed.n_cells
        v, stiff = packed.share, self.stiff
        dense = -(self.rows.T @ self.rows).toarray()
        x = np.arange(cells)
        both = packed.by_cell(v * self.pull_z / stiff) / 2 - (FREE - packed.target)
        dense[x, x] -= packed.by_cell(v * v * self.pull_z * self.pull_y / stiff)
        dense[x + cells, x + cells] += packed.by_cell(1 / stiff) / 4
        dense[x, x + cells] += both
        dense[x + cells, x] += both
        return np.asarray(dense)

    def direction(self, wanted: Products) -> Point:
        """The step after which all equations hold to first order, and products change as wanted."""
        packed, point, cell = self.packed, self.point, self.packed.cell
        v, cost, stiff, pull_z = packed.share, packed.cost, self.stiff, self.pull_z
        from_z = wanted.z / point.z - pull_z * self.miss_z
        entry = (self.miss_y - from_z + wanted.y / point.y) / stiff
        of_user = self._by_user(cost * entry) - self.miss_loss + wanted.r / point.dual
        right = np.concatenate(
            (
                -self.miss_x - packed.by_cell(v * (from_z + pull_z * entry)),
                self.miss_error - packed.by_cell(entry) / 2,
                [-self.miss_t],
            )
        )
        root = 1 / np.sqrt(self.of_user)
        right += self.rows.T @ (root * of_user)
        found = self.solve(right)
        x, alpha, t = np.split(found, [packed.n_cells, 2 * packed.n_cells])
        dual = root * (self.rows @ found) + of_user / self.of_user
        full = v * x[cell]
        y = entry + (pull_z * full - cost * dual[self.user] + alpha[cell] / 2) / stiff
        z = full - y + self.miss_z
        mu, sigma = wanted.z / point.z - pull_z * z, wanted.y / point.y - self.pull_y * y
        r = (wanted.r - point.r * dual) / point.dual
        return Point(x, float(t[0]), y, z, r, alpha, dual, mu, sigma)
