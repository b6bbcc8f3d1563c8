"""What a release costs every user, in whole lattice steps: selections, then noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.design import add_by
from shoal.errors import InputError
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.budget import round_up
from shoal.privacy.noise import LARGEST_STEPS
from shoal.theory import gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.mechanism import Mechanism
    from shoal.cells.queries import Queries

# Squares of steps are added in floating point; this covers the roundings of 2^20 terms.
_SQUARES_OUTWARD = 1 + 2.0**-30


@dataclass(frozen=True, eq=False)
class Losses:
    """Exact accounting of one plan's selections and numbers.

    A selection costs 2 x score sensitivity / scale for every user whose values it reads. A number
    with Laplace noise costs a user the steps that it moves it by, over 2^j, whatever the values
    (docs/theory/accounting.md). With Gaussian noise the squares of the steps add up, and the user's
    zero-concentrated loss rho is half their sum over 4^j.

    Attributes:
        mechanism: Whose selections.
        queries: What is released of every cell.
        selection_scale: Of the private selections: one a number, one in all, or none.
        bits: j, the lattice bits.
        delta: The delta of (epsilon, delta)-DP with Gaussian noise; 0 with Laplace noise.
        ball: Radius of the ball that users' vectors are moved into, in steps, 0 if they are not: in
            l1 with Laplace noise, in l2 with Gaussian noise.
        first_ball: The same of a first round; 0 if there is none.
    """

    mechanism: Mechanism
    queries: Queries
    selection_scale: NDArray[np.float64]
    bits: int
    delta: Fraction = Fraction(0)
    ball: int = 0
    first_ball: int = 0

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian, so that losses are zero-concentrated."""
        return self.queries.gaussian

    def of_users(self, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Loss of each user at these noise scales over the range: epsilon, or rho if Gaussian.

        Raises:
            InputError: The losses do not fit exact sums.
        """
        if self.queries.gaussian and self.ball:
            users = np.zeros(self.queries.design.occupancy.n_users)
            users[self.queries.design.user] = self.rho(scale)
            return users
        if self.queries.gaussian:
            return self._squares(scale) / (2.0 * 4.0**self.bits)
        return np.asarray(self._steps(scale) / 2.0**self.bits)

    def largest(self, scale: NDArray[np.float64]) -> Fraction:
        """The loss of the user with the largest loss, exactly or rounded upwards.

        With Gaussian noise that of the numbers; `selecting` is not part of it.
        """
        if self.queries.gaussian and self.ball:
            # Two vectors of the ball are at most its diameter apart, whatever their cells.
            squares = (2 * self.ball) ** 2 + (2 * self.first_ball) ** 2
            return Fraction(squares, 2 * 4**self.bits)
        if self.queries.gaussian:
            return Fraction(float(self.of_users(scale).max()))
        return Fraction(int(self._steps(scale).max()), 2**self.bits)

    def epsilon(self, scale: NDArray[np.float64]) -> Fraction:
        """The total privacy loss epsilon, at `delta`."""
        largest = self.largest(scale)
        if not self.queries.gaussian:
            return largest
        # Selections are pure, so that the losses of both add up.
        return self.selecting + Fraction(
            gaussian.epsilon_of_lattice(round_up(largest), float(self.delta), self.most, self.bits)
        )

    def rho(self, scale: NDArray[np.float64]) -> float:
        """Zero-concentrated loss with Gaussian noise, rounded upwards.

        A pure loss of epsilon is a zero-concentrated one of epsilon^2/2 (Bun and Steinke 2016,
        Proposition 1.4).
        """
        return round_up(self.largest(scale) + self.selecting**2 / 2)

    def limit(self, epsilon: Fraction) -> Fraction:
        """The largest `largest` that an epsilon allows."""
        if not self.queries.gaussian:
            return epsilon
        left = epsilon - self.selecting
        near = float(left)
        below = near if near <= left else math.nextafter(near, 0.0)
        return Fraction(gaussian.rho_of_lattice(below, float(self.delta), self.most, self.bits))

    @property
    def selecting(self) -> Fraction:
        """Loss of everybody by a selection for all cells together; 0 if there is none."""
        if self.mechanism.range.selects != "for all":
            return Fraction(0)
        return Fraction(int(self._selections().sum()), 2**self.bits)

    @property
    def most(self) -> int:
        """Most numbers that one user is in, of both rounds if there are two."""
        cells = int(np.bincount(self.queries.design.user).max())
        rounds = 2 if self.first_ball else 1
        return cells * len(self.queries.statistics) * rounds

    def _squares(self, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        design = self.queries.design
        squares = np.zeros(len(design.number))
        for term in self.queries.member_steps(scale, self.bits):
            squares += term.astype(np.float64) ** 2
        users = design.occupancy.n_users
        found = np.bincount(design.user, squares, minlength=users)
        return np.asarray(found * _SQUARES_OUTWARD, dtype=np.float64)

    def _steps(self, scale: NDArray[np.float64]) -> NDArray[np.int64]:
        design = self.queries.design
        steps = np.zeros(len(design.number), dtype=np.int64)
        terms = [] if self.ball else self.queries.member_steps(scale, self.bits)
        for term in terms:
            steps = steps + term
        if self.mechanism.range.selects == "per cell":
            steps = steps + self._selections()[design.number]
        if float(steps.sum(dtype=np.float64)) >= LARGEST_STEPS:
            raise InputError(
                "a privacy loss too large for exact accounting",
                "sums below 2^61 lattice steps",
                "ask for a smaller epsilon",
            )
        lost = add_by(design.user, steps, design.occupancy.n_users)
        if self.mechanism.range.selects == "for all":
            present = np.zeros(design.occupancy.n_users, dtype=np.int64)
            # Two vectors of the ball are at most its diameter apart, whatever their cells.
            present[design.user] = int(self._selections().sum()) + 2 * (self.ball + self.first_ball)
            lost = lost + present
        return lost

    def _selections(self) -> NDArray[np.int64]:
        mechanism = self.mechanism
        if len(self.selection_scale) == 0:
            return np.zeros(0, dtype=np.int64)
        moved = mechanism.range.score_sensitivity(self.queries.design)
        kinds, kind = np.unique(self.selection_scale, return_inverse=True)
        steps = [
            math.ceil(mechanism.range.rounds * selection.loss(moved, scale) * 2**self.bits)
            for scale in kinds.tolist()
        ]
        if max(steps) >= LARGEST_STEPS:
            raise InputError(
                "a selection too sharp for exact accounting",
                "losses below 2^61 steps",
                "lower epsilon",
            )
        return np.array(steps, dtype=np.int64)[kind]
