"""The numbers of a plan: every statistic of every released cell, noise scales of each.

Numbers are ordered statistic by statistic, each in the order of the released cells. The statistics
of a cell share one bundle: their noise scales keep a fixed ratio, so that a planning method sees
one column a cell, whatever is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation_problem import Problem
from shoal.cells.statistics.mean import Mean
from shoal.cells.statistics.variance import Variance
from shoal.theory import gaussian, sensitivity, variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.cells.statistics.base import Statistic

PAIR = (Mean(), Variance())


@dataclass(frozen=True, eq=False)
class Queries:
    """What is released of every cell of a design.

    Attributes:
        design: How users are bounded.
        statistics: What is released of every cell.
        joint: Whether mean and variance come from one release of first and second moments.
        gaussian: Whether noise is Gaussian; then losses are squares, and rho half their sum.
    """

    design: Design
    statistics: tuple[Statistic, ...]
    joint: bool = False
    gaussian: bool = False

    @property
    def n_numbers(self) -> int:
        """Statistics times cells."""
        return len(self.statistics) * self.design.n_numbers

    def per_statistic(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same, one row a statistic."""
        return numbers.reshape(len(self.statistics), self.design.n_numbers)

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """Positions of the statistics that are released on their own."""
        pair = PAIR if self.joint else ()
        return tuple(at for at, each in enumerate(self.statistics) if each not in pair)

    @cached_property
    def pair(self) -> tuple[int, int]:
        """Positions of mean and variance, if they are released jointly."""
        first, second = (self.statistics.index(each) for each in PAIR)
        return first, second

    @cached_property
    def sensitivity(self) -> NDArray[np.float64]:
        """Most that each member moves each statistic, over its range; one row a statistic."""
        return np.stack([each.sensitivity(self.design) for each in self.statistics])

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest sensitivity of each number, one row a statistic."""
        top = np.zeros((len(self.statistics), self.design.n_numbers))
        for row, each in zip(top, self.sensitivity, strict=True):
            np.maximum.at(row, self.design.number, each)
        return top

    @cached_property
    def bias(self) -> NDArray[np.float64]:
        """Most that bounding moves each number in any data set, over its range."""
        return np.concatenate([each.bias(self.design) for each in self.statistics])

    def member_losses(self, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Loss of each member at these noise scales over the range; squared if Gaussian."""
        rows, number = self.per_statistic(scale), self.design.number
        lost = np.zeros(len(number))
        for at in self.alone:
            lost += (self.sensitivity[at] / rows[at][number]) ** self._power
        if self.joint:
            lost += (self.design.part * self._pair_rate(rows)[number]) ** self._power
        return lost

    def member_steps(self, scale: NDArray[np.float64], bits: int) -> list[NDArray[np.int64]]:
        """Most lattice steps that each member moves the noise's vector by, one array a term.

        Numbers released alone move by ceil(D 2^j / b) steps; first and second moment together by
        at most ceil(w J 2^j) + 1 in sum (Laplace), or by ceil(w sqrt(R) 2^j) + 2 (Gaussian).
        """
        rows, number = self.per_statistic(scale), self.design.number
        found = [
            sensitivity.whole_steps(self.sensitivity[at], rows[at][number], bits)
            for at in self.alone
        ]
        if self.joint:
            rate = self._pair_rate(rows)[number]
            steps = sensitivity.whole_steps(self.design.part, 1 / rate, bits)
            # Each of the two numbers is rounded to its own lattice.
            found.append(np.where(steps > 0, steps + (2 if self.gaussian else 1), 0))
        return found

    def problem(self, weight: NDArray[np.float64], scale: NDArray[np.float64]) -> Problem:
        """One column a cell: what a unit of noise costs with the ratios of these scales.

        Args:
            weight: Importance of each cell.
            scale: Noise scales of the numbers; only their ratios within a cell matter.
        """
        total = self.per_statistic(scale).sum(axis=0)[self.design.number]
        return Problem(
            user=self.design.user,
            number=self.design.number,
            sensitivity=self.member_losses(scale) * total**self._power,
            n_users=self.design.occupancy.n_users,
            weight=weight,
        )

    def shape(self, *, least_sum: bool) -> NDArray[np.float64]:
        """Ratios of the noise scales within each cell, one number each; they add up to 1.

        For the heaviest user, either the least sum of errors at a given loss (with Laplace noise,
        scales in proportion to the square roots of the sensitivities: Cauchy-Schwarz), or the
        least product (in proportion to the sensitivities). Mean and variance together are one
        term, with the errors, or the logarithms, of both.
        """
        cost = np.maximum(self.largest, 1e-300)
        errors, logarithms = np.ones((len(cost), 1)), np.ones((len(cost), 1))
        between = 0.0
        if self.joint:
            between, rate = _ratio(gaussian_noise=self.gaussian, least_sum=least_sum)
            first, _ = self.pair
            cost[first] *= rate
            errors[first], logarithms[first] = 5 + 4 * between, 2
        power = self._power
        if least_sum:
            ratio = (cost**power / errors) ** (1 / (power + 1))
        else:
            ratio = cost / logarithms ** (1 / power)
        if self.joint:
            ratio[self.pair[1]] = 4 * between * ratio[self.pair[0]]
        return np.asarray((ratio / ratio.sum(axis=0)).ravel())

    def _pair_rate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """J of each cell: loss of a user with all of its records (root of R if Gaussian)."""
        first, second = self.pair
        rate = _rate(rows[first], rows[second] / 4, gaussian_noise=self.gaussian)
        return rate * sensitivity.ROUNDED_MEANS

    @property
    def _power(self) -> int:
        return 2 if self.gaussian else 1


def _rate(
    mean_scale: NDArray[np.float64], square_scale: NDArray[np.float64], *, gaussian_noise: bool
) -> NDArray[np.float64]:
    if gaussian_noise:
        return np.sqrt(gaussian.joint_rate(mean_scale, square_scale)) * sensitivity.OUTWARD
    return variance.joint_loss(mean_scale, square_scale)


def _ratio(*, gaussian_noise: bool, least_sum: bool) -> tuple[float, float]:
    """b2/b1 of a joint release, over U^2 and U, with the least sum or product; loss at b1 = 1.

    Errors over the ranges: b1 of the mean, 4 (b1 + b2) of the variance
    (docs/theory/variance.md#mean-and-second-moment-together).
    """
    ratio = np.geomspace(0.02, 2.0, 400)
    one = np.ones_like(ratio)
    rate = _rate(one, ratio, gaussian_noise=gaussian_noise)
    mean, variance = one, 4 * (1 + ratio)
    error = mean + variance if least_sum else np.sqrt(mean * variance)
    best = int((rate * error).argmin())
    return float(ratio[best]), float(rate[best])
