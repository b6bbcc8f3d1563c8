"""Counts what the numbers of a plan cost every user (docs/theory/privacy.md#accounting).

Numbers are ordered statistic by statistic, each in the order of the planned cells. The noise scales
of a cell's statistics keep a fixed ratio, so that a planner sees one column for each cell.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.arrays import Bools, Floats, Ints, add, largest
from shoal.cells.mechanisms.cell_statistics import Mean, Statistic, Variance
from shoal.cells.mechanisms.ranges import Range
from shoal.cells.mechanisms.user_vectors import ball_of, excess_of
from shoal.cells.mechanisms.weights import Parameters, Weights
from shoal.errors import InputError
from shoal.privacy import permute_and_flip
from shoal.privacy.accounting import Losses, NoisyVector, Selections, Step, account
from shoal.privacy.law import LAPLACE, Law, too_large
from shoal.privacy.noise import LARGEST_STEPS
from shoal.privacy.noise_lattice import fit
from shoal.theory import gaussian, sensitivity
from shoal.theory.allocation import Problem

MEAN_AND_VARIANCE = (Mean(), Variance())


@dataclass(frozen=True, eq=False)
class Term:
    """Numbers of each cell that are drawn together: of one statistic, or both moments.

    `reach` is the most that each member moves them, as a part of the range; `scale` is the noise of
    each cell. Where each of two numbers is rounded to its own lattice, a member moves them by
    `rounding` more steps.
    """

    reach: Floats
    scale: Floats
    rounding: int = 0


@dataclass(frozen=True, eq=False)
class ReleasedStatistics:
    """The statistics of every cell; `joint` if mean and variance come from two noisy moments."""

    weights: Weights
    statistics: tuple[Statistic, ...]
    joint: bool = False
    law: Law = LAPLACE

    @property
    def power(self) -> int:
        """The power with which losses grow as a user moves numbers by more noise scales."""
        return self.law.power

    def per_statistic(self, numbers: Floats) -> Floats:
        """Returns the numbers with one row for each statistic."""
        return numbers.reshape(-1, self.weights.n_cells)

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """Positions of the statistics that are released on their own."""
        pair = MEAN_AND_VARIANCE if self.joint else ()
        return tuple(at for at, each in enumerate(self.statistics) if each not in pair)

    @cached_property
    def pair(self) -> tuple[int, int]:
        """Positions of mean and variance, if they are released jointly."""
        first, second = (self.statistics.index(each) for each in MEAN_AND_VARIANCE)
        return first, second

    @cached_property
    def sensitivity(self) -> Floats:
        """The most that each member moves a statistic, as a part of its range; a row for each."""
        return np.stack([each.sensitivity(self.weights) for each in self.statistics])

    @cached_property
    def largest(self) -> Floats:
        """The largest sensitivity of each number, one row for each statistic."""
        cell = self.weights.cell
        size = self.weights.n_cells
        return np.stack([largest(cell, each, size) for each in self.sensitivity])

    @cached_property
    def bias(self) -> Floats:
        """The largest bias of each number from bounding users, as a part of its range."""
        return np.concatenate([each.bias(self.weights) for each in self.statistics])

    def terms(self, scale: Floats) -> list[Term]:
        """Returns what is drawn together in each cell, at noise scales as parts of the range."""
        rows = self.per_statistic(scale)
        terms = [Term(self.sensitivity[at], rows[at]) for at in self.alone]
        if self.joint:
            terms.append(Term(self.weights.part, 1 / self._pair_rate(rows), self.law.rounding))
        return terms

    def member_losses(self, scale: Floats) -> Floats:
        """Returns members' losses, squared if Gaussian, at noise scales as parts of the range."""
        cell = self.weights.cell
        lost = np.zeros(len(cell))
        for term in self.terms(scale):
            lost += (term.reach / term.scale[cell]) ** self.power
        return lost

    def member_steps(self, scale: Floats, bits: int) -> list[Ints]:
        """Returns the most lattice steps by which each member moves terms, in an array for each."""
        cell = self.weights.cell
        steps_of_terms = []
        for term in self.terms(scale):
            steps = sensitivity.whole_steps(term.reach, term.scale[cell], bits)
            steps_of_terms.append(np.where(steps > 0, steps + term.rounding, 0))
        return steps_of_terms

    def problem(self, weight: Floats, scale: Floats) -> Problem:
        """Returns the problem of sharing noise among cells whose scales keep these ratios.

        It has one column for each cell: the loss of each member at a unit of noise.
        """
        total = self.per_statistic(scale).sum(axis=0)[self.weights.cell]
        return Problem(
            user=self.weights.user,
            cell=self.weights.cell,
            sensitivity=self.member_losses(scale) * total**self.power,
            n_users=self.weights.counts.n_users,
            weight=weight,
        )

    def shape(self, *, least_sum: bool) -> Floats:
        """Returns the best ratios of the noise scales within each cell; those of a cell sum to 1.

        They minimise the sum of the errors, or else their product, at a given loss of the heaviest
        user. For the sum they are proportional to roots of the sensitivities, for the product to
        the sensitivities. A joint mean and variance are one term.
        """
        # No ratio is 0, also of a statistic that nobody moves.
        cost = np.maximum(self.largest, 1e-300)
        # How often a term's noise scale enters the sum of the errors, and their product.
        in_sum = np.ones((len(cost), 1))
        in_product = np.ones((len(cost), 1))
        second_to_first = 0.0
        if self.joint:
            second_to_first, rate = _ratio(self.law, least_sum=least_sum)
            first, second = self.pair
            cost[first] *= rate
            # The noise of both moments enters the variance's error, that of the first the mean's.
            in_sum[first] = 5 + 4 * second_to_first
            in_product[first] = 2
        if least_sum:
            ratio = (cost**self.power / in_sum) ** (1 / (self.power + 1))
        else:
            ratio = cost / in_product ** (1 / self.power)
        if self.joint:
            # The range of a variance is a quarter of that of the second moment.
            ratio[second] = 4 * second_to_first * ratio[first]
        ratio /= ratio.sum(axis=0)
        return ratio.ravel()

    def _pair_rate(self, rows: Floats) -> Floats:
        """Returns the loss of a user with all records of each cell, or its root if Gaussian.

        It is `Law.joint_rate` times ROUNDED_MEANS, as rounding lets means move further.
        """
        first, second = self.pair
        rate = self.law.joint_rate(rows[first], rows[second] / 4)
        return rate * sensitivity.ROUNDED_MEANS


def _ratio(law: Law, *, least_sum: bool) -> tuple[float, float]:
    """Returns the best ratio b2/b1 of the scales of a joint release, and its loss at b1 = 1.

    Source: docs/theory/cells.md#two-moments.
    """
    # The best ratio of a grid: what is minimised is flat around its least value.
    ratio = np.geomspace(0.02, 2.0, 400)
    b1 = np.ones_like(ratio)
    rate = law.joint_rate(b1, ratio)
    error_of_mean = b1
    error_of_variance = 4 * (1 + ratio)
    if least_sum:
        error = error_of_mean + error_of_variance
    else:
        error = np.sqrt(error_of_mean * error_of_variance)
    best = int((rate * error).argmin())
    return float(ratio[best]), float(rate[best])


@dataclass(frozen=True, eq=False)
class Cost:
    """The loss of every user by selections and numbers (docs/theory/privacy.md#accounting).

    `selection_scale` has the scales of the selections, as `Range.selections` counts them; `delta`
    is 0 with Laplace noise.
    """

    released: ReleasedStatistics
    range: Range
    parameters: Parameters
    selection_scale: Floats
    bits: int
    delta: Fraction = Fraction(0)

    def steps(self, scale: Floats) -> list[Step]:
        """Returns the steps of a release at noise scales as parts of the range."""
        user = self.released.weights.user
        users = self.released.weights.counts.n_users
        bits = self.bits
        steps: list[Step] = [Selections(bits, self._user_selections())]
        parts, excess_bits = excess_of(self.parameters)
        if parts:
            steps.append(NoisyVector("counted", excess_bits, self._present * parts))
        balls = [ball_of(self.parameters, name) for name in ("first_ball", "ball")]
        law = self.released.law
        if any(balls):
            # A user moves a vector in a ball by its diameter at most.
            of_balls = sum((2 * ball) ** law.power for ball in balls)
            moves = self._present.astype(law.whole) * of_balls
        else:
            moves = law.moves(self.released.member_steps(scale, bits), user, users)
        return [*steps, NoisyVector(law.kind, bits, moves, self.most_numbers)]

    @property
    def _present(self) -> Bools:
        """Whether each user is in a planned cell."""
        weights = self.released.weights
        return np.bincount(weights.user, minlength=weights.counts.n_users) > 0

    def _user_selections(self) -> Ints:
        """Returns each user's loss by selections, in units of 2^-bits."""
        of_selection = self.selection_steps
        if float(of_selection.sum(dtype=np.float64)) >= LARGEST_STEPS:
            raise too_large()
        if self.range.selects == "per cell":
            weights = self.released.weights
            users = weights.counts.n_users
            return add(weights.user, of_selection[weights.cell], users)
        return self._present * int(of_selection.sum())

    def losses(self, scale: Floats) -> Losses:
        """Returns each user's loss at noise scales as parts of the range."""
        return account(self.steps(scale), self.delta)

    def fitted(self, scale: Floats, epsilon: Fraction) -> Floats:
        """Returns the scales, rounded, and widened only as far as the loss has to for epsilon."""
        if self.released.law is LAPLACE:
            return fit(scale, self.bits, epsilon, lambda tried: self.losses(tried).epsilon)
        user = self.released.weights.user
        allowed = self.allowed(epsilon)
        # A user's rho is half of the squares of what it moves in noise scales.
        squares = np.bincount(user, self.released.member_losses(scale))
        scale = scale * float(squares.max() / (2 * float(allowed))) ** 0.5
        return fit(scale, self.bits, allowed, lambda tried: self.losses(tried).noise_rho, power=2)

    def allowed(self, epsilon: Fraction) -> Fraction:
        """Returns the loss of noise that epsilon allows beside selections: rho if Gaussian."""
        left = epsilon - self.selecting
        if left <= 0:
            raise InputError("finding a private range uses up epsilon", "ask for a larger epsilon")
        if self.released.law is LAPLACE:
            return left
        # Rounded downwards.
        rounded = float(left)
        if rounded > left:
            rounded = math.nextafter(rounded, 0.0)
        rho = gaussian.rho_of_lattice(rounded, float(self.delta), self.most_numbers, self.bits)
        return Fraction(rho)

    @property
    def selecting(self) -> Fraction:
        """Everybody's loss by selections for all cells together and by the excess, or 0."""
        if self.range.selects != "for all":
            return Fraction(0)
        parts, bits = excess_of(self.parameters)
        return Fraction(int(self.selection_steps.sum()), 2**self.bits) + Fraction(parts, 2**bits)

    @property
    def most_numbers(self) -> int:
        """The most numbers that one user is in, counting both rounds if there are two."""
        cells = int(np.bincount(self.released.weights.user).max())
        rounds = 2 if ball_of(self.parameters, "first_ball") else 1
        return cells * len(self.released.statistics) * rounds

    @cached_property
    def selection_steps(self) -> Ints:
        """Loss of each selection in units of 2^-bits, rounded upwards."""
        if len(self.selection_scale) == 0:
            return np.zeros(0, dtype=np.int64)
        moved = self.range.score_sensitivity(self.released.weights)
        # Many selections have the same scale, and so the same loss.
        distinct, place = np.unique(self.selection_scale, return_inverse=True)
        steps = [
            math.ceil(self.range.rounds * permute_and_flip.loss(moved, scale) * 2**self.bits)
            for scale in distinct.tolist()
        ]
        if max(steps) >= LARGEST_STEPS:
            raise too_large()
        return np.array(steps, dtype=np.int64)[place]
