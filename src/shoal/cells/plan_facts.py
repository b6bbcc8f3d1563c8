"""A plan: which numbers are released, with how much noise, and what that costs and promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.cells.allocation import balanced
from shoal.cells.contributions.design import FINE
from shoal.cells.count_limits import check_counts, check_weights
from shoal.cells.optimal.variance import gap as optimal_gap
from shoal.cells.plan_form import check_capacity, in_form
from shoal.cells.privacy_loss import Losses
from shoal.cells.queries import Queries
from shoal.cells.statistics.variance import Variance
from shoal.privacy.budget import Budget, round_up
from shoal.theory import gaussian, laplace, limits, variance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.allocation_problem import Problem
    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.mechanism import Mechanism
    from shoal.cells.plan_parts import PlanParts
    from shoal.cells.request import Request
    from shoal.cells.statistics.base import Statistic
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Bounds, Lattice

Status = Literal["released", "uninformative", "error too large", "too few users", "too few records"]
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """Everything public about a release before it happens; a pure function of public facts.

    There is a number for each statistic of each released cell: statistic by statistic, each in
    the order of the cells. Errors, biases and scales are in the statistic's unit (the value's, its
    square for a variance, 1 for a share) unless a name says `relative`: then they are over the
    statistic's range (U, U^2/4, 1), half of which is the error of guessing its middle.

    Attributes:
        occupancy: The counts the plan is made for.
        lattice: Bounds and ticks of the values.
        request: What was asked for.
        status: Of each cell: released, or why it is left out.
        relative_scale: b (sigma if Gaussian) as a part of the range of each number, shape
            (numbers,); where a range of the values is selected, as a part of the range of that.
        lattice_bits: j; the noise of a number has the scale of 2^j steps.
        duals: Proof of near-optimality, a loss each, shape (users,), or None.
        source: Public description of the records (columns and cell rules), if known.
        parameters: Whole numbers of the mean mechanism, such as the cap of each cell.
        selection_scale: Scale of the private selections, no unit: one a released cell, one in all,
            or none; shape (selections,).
        targets: Of an optimal plan: relative error of each released cell up to a common factor,
            shape (released cells,).
        joint: Whether mean and variance come from one release of first and second moments.
        gaussian: Whether the noise is Gaussian, accounted by the request's delta.
        built: The numbers, if the planner has built them; else they are built when needed.
    """

    occupancy: Counts
    lattice: Lattice
    request: Request
    status: tuple[Status, ...]
    relative_scale: NDArray[np.float64]
    lattice_bits: int
    duals: NDArray[np.float64] | None = None
    source: Mapping[str, Any] | None = None
    parameters: Parameters = field(default_factory=dict)
    selection_scale: NDArray[np.float64] = field(default_factory=lambda: _NONE)
    targets: NDArray[np.float64] | None = None
    joint: bool = False
    gaussian: bool = False
    built: Queries | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in in_form(self).items():
            object.__setattr__(self, name, value)
        check_counts(self.occupancy, self.lattice)
        check_weights(self.request, self.occupancy, self.lattice)
        check_capacity(self)

    @property
    def bounds(self) -> Bounds:
        """The public range of the values."""
        return self.lattice.bounds

    @cached_property
    def width(self) -> float:
        """The width U of the bounds, in the value's unit."""
        return float(self.bounds.width)

    @property
    def method(self) -> str:
        """Name of the method, which stands for all parts of the plan."""
        return self.request.method

    @cached_property
    def released(self) -> NDArray[np.int64]:
        """Positions of the released cells, shape (released cells,)."""
        return np.flatnonzero([status == "released" for status in self.status])

    @property
    def parts(self) -> PlanParts:
        """Contributions, range, allocation, noise and shrinkage that were asked for."""
        return self.request.parts

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism that bounds users and releases the numbers."""
        return self.parts.mechanism(self.lattice)

    @cached_property
    def design(self) -> Design:
        """The contribution of every user to every released cell."""
        if self.built is not None:
            return self.built.design
        return self.mechanism.design(self.occupancy, self.released, self.parameters)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics that are released of every cell."""
        return self.request.statistics

    @cached_property
    def queries(self) -> Queries:
        """The numbers to release: every statistic of every released cell."""
        if self.built is not None:
            return self.built
        return Queries(self.design, self.statistics, joint=self.joint, gaussian=self.gaussian)

    @property
    def rounds(self) -> int:
        """How often users' vectors are hidden by noise: 2 if a first round finds their centres."""
        return 2 if self.mechanism.range.first_ball(self.parameters) else 1

    @cached_property
    def losses(self) -> Losses:
        """The privacy losses of every user, by selection and by number."""
        return Losses(
            self.mechanism, self.queries, self.selection_scale, self.lattice_bits,
            self.exact_delta, self.mechanism.range.ball(self.parameters),
            self.mechanism.range.first_ball(self.parameters),
        )  # fmt: skip

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The total privacy loss: the largest over users (docs/theory/accounting.md).

        Exact with Laplace noise; with Gaussian noise the epsilon of the largest rho at delta,
        rounded upwards.
        """
        return self.losses.epsilon(self.relative_scale)

    @property
    def exact_delta(self) -> Fraction:
        """The exact delta of (epsilon, delta)-DP: 0 with Laplace noise."""
        return self.request.delta if self.gaussian else Fraction(0)

    @cached_property
    def loss(self) -> Budget:
        """What is stated and charged: the exact loss, rounded up to twelve digits."""
        exact = Budget(self.exact_epsilon, self.exact_delta)
        return Budget.stated(exact, self.request.epsilon, self.request.delta)

    @property
    def epsilon(self) -> float:
        """The total privacy loss, rounded upwards."""
        return round_up(self.loss.epsilon)

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-DP: 0 with Laplace noise, that asked for if Gaussian."""
        return round_up(self.loss.delta)

    @cached_property
    def rho(self) -> float | None:
        """Zero-concentrated loss with Gaussian noise, rounded upwards; None with Laplace noise."""
        return self.losses.rho(self.relative_scale) if self.gaussian else None

    @cached_property
    def user_losses(self) -> NDArray[np.float64]:
        """Privacy loss of each user (rho if Gaussian), shape (users,), by anonymous rows."""
        return self.losses.of_users(self.relative_scale)

    @cached_property
    def paper_epsilon(self) -> float:
        """The privacy loss by the paper's accounting of the same noise: max_l of the sum of eps_g.

        Every user kept in a cell pays for the heaviest user of it, statistic by statistic (paper
        000, Corollary II.1). With Gaussian noise it is the rho so charged.
        """
        lost = self.queries.member_losses(self.relative_scale)
        largest_loss = np.zeros(self.design.n_numbers)
        np.maximum.at(largest_loss, self.design.number, lost)
        inside = self.design.weight > 0
        charged = np.where(inside, largest_loss[self.design.number], 0.0)
        whole = float(np.bincount(self.design.user, charged).max())
        return whole / 2 if self.gaussian else whole

    @property
    def certified(self) -> bool:
        """Whether errors are bounded in every data set: nothing is clipped to a selected range."""
        return self.mechanism.range.selects == "nothing"

    @cached_property
    def statistic_ranges(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Lower end and length of the range of each statistic, as the bounds allow."""
        bounds = self.bounds
        return tuple(each.statistic_range(bounds) for each in self.statistics)

    @cached_property
    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both ends of the range of each number's statistic, shape (numbers,), in its unit."""
        ends = [(float(low), float(low + length)) for low, length in self.statistic_ranges]
        low, high = np.repeat(ends, len(self.released), axis=0).T
        return low, high

    @cached_property
    def statistic_range(self) -> NDArray[np.float64]:
        """Range of each number's statistic, shape (numbers,), in its unit: U, U^2/4 or 1."""
        return np.repeat([float(length) for _, length in self.statistic_ranges], len(self.released))

    @property
    def noise_scale(self) -> NDArray[np.float64]:
        """Scale of the noise of each number, shape (numbers,), in the statistic's unit.

        Where a range is selected: at most this, in proportion to the range. Of a variance that is
        released jointly: that of the second moment.
        """
        return (
            self.relative_scale
            * self.mechanism.range.widest_range(self.parameters)
            * self.statistic_range
        )

    @cached_property
    def bias_bound(self) -> NDArray[np.float64]:
        """Most that an estimate without noise is off; shape (numbers,), in the statistic's unit.

        Rounding, what the bounding of users leaves out, and the whole width where a range is
        selected: no data set is then excluded in which the range misses every value.
        """
        if not self.certified:
            return np.full(len(self.released), self.width)
        return (self.rounding + self.queries.bias) * self.statistic_range

    @property
    def rounding(self) -> NDArray[np.float64]:
        """Most that rounding moves an estimate, shape (numbers,), as a part of its range.

        Of ticks, means of users and lattice steps.
        """
        means = 0.0 if self.parts.shares else 2.0 ** -(self.lattice.bits + FINE)
        ticks = [each.rounding(float(self.lattice.rounding), means) for each in self.statistics]
        longest = self.mechanism.range.widest_range(self.parameters)
        steps = self.relative_scale * longest * 2.0 ** -(self.lattice_bits + 1)
        if self.joint:
            rows, (first, second) = self.queries.per_statistic(steps), self.queries.pair
            # The square of the first moment moves by less than its lattice step.
            rows[second] += 4 * rows[first] * (1 + rows[first])
        return np.repeat(ticks, len(self.released)) + steps

    @cached_property
    def worst_case_error(self) -> NDArray[np.float64]:
        """Bias bound plus mean absolute noise; shape (numbers,), in the statistic's unit.

        It holds for every data set. Where a range is selected it is the width: estimates and means
        stay within the bounds.
        """
        if not self.certified:
            return self.bias_bound
        return self.bias_bound + self.mean_noise * self.statistic_range

    @cached_property
    def mean_noise(self) -> NDArray[np.float64]:
        """Mean absolute noise, shape (numbers,), a part of the range; a bound if joint."""
        noise = self.relative_scale * self._mean_noise
        if self.joint:
            rows, (first, second) = self.queries.per_statistic(noise), self.queries.pair
            b1 = self.queries.per_statistic(self.relative_scale)[first]
            square = gaussian.SQUARE_NOISE if self.gaussian else variance.SQUARE_NOISE
            # |2 s1 z1| <= |z1|, and the square of the noise about its expectation.
            rows[second] += 4 * rows[first] + 4 * square * b1**2
        return noise

    @property
    def _mean_noise(self) -> float:
        kind = gaussian if self.gaussian else laplace
        return float(kind.mean_absolute(2.0**self.lattice_bits)) / 2.0**self.lattice_bits

    @property
    def relative_error(self) -> NDArray[np.float64]:
        """Worst-case error, shape (numbers,), as a part of the range; 1/2 is that of guessing.

        Where a range is selected: mean absolute noise, and what own intervals leave out, over that
        range's range.
        """
        if not self.certified:
            longest = self.mechanism.range.widest_range(self.parameters)
            left_out = np.asarray(self.design.missing / 2)
            return self.relative_scale * longest * self._mean_noise + left_out
        return self.worst_case_error / self.statistic_range

    @property
    def cell_error(self) -> NDArray[np.float64]:
        """The largest relative error of a cell: shape (released cells,), a part of the range.

        0 where the range is a radius of users' vectors: noise over the width tells nothing of it.
        """
        if self.mechanism.range.of_vectors:
            return np.zeros(len(self.released))
        return np.asarray(self.queries.per_statistic(self.relative_error).max(axis=0))

    @cached_property
    def lower_bound(self) -> NDArray[np.float64]:
        """Error that no plan of this loss beats: shape (numbers,), in the statistic's unit.

        However it weighs users, with Laplace noise (docs/theory/limits.md). Each bound holds for
        its number alone: no plan reaches all at once.
        Not a number where none is known: with Gaussian noise.
        """
        if self.gaussian:
            return np.full(self.queries.n_numbers, np.nan)
        counts = self.occupancy.cell, self.occupancy.count, self.occupancy.n_cells
        own = self.queries.per_statistic(self.worst_case_error / self.statistic_range)
        least = []
        for each, error in zip(self.statistics, own, strict=True):
            if isinstance(each, Variance):
                # Only what a plan better than this one could do is bounded closely.
                known = np.full(self.occupancy.n_cells, 0.5)
                known[self.released] = error
                found = limits.least_variance_error(*counts, self.epsilon, known)
            else:
                found = limits.least_mean_error(*counts, self.epsilon)
            least.append(found[self.released])
        return np.concatenate(least) * self.statistic_range

    @cached_property
    def gap(self) -> float | None:
        """How far a plan can be from the best one of its family, as a part, or None.

        Balanced: the mean logarithm of the noise could fall by at most this. Optimal: no plan has
        all errors below this one's over 1 + gap (`optimal.variance.gap`).
        """
        if self.duals is None:
            return None
        if self.targets is not None:
            left = self.epsilon - float(self.losses.selecting)
            return optimal_gap(
                self.queries, self.parameters, self.targets, self.duals, self.relative_scale, left
            )
        total = self.queries.per_statistic(self.relative_scale).sum(axis=0)
        spent = 2 * self.losses.largest(self.relative_scale) if self.gaussian else self.epsilon
        power = 2 if self.gaussian else 1
        found = balanced.gap(self.problem, total**power, self.duals, float(spent))
        return found / power

    @cached_property
    def problem(self) -> Problem:
        """Sensitivities of the released cells, one column each."""
        weight = weights_of(self.occupancy, self.released, self.request.weights)
        return self.queries.problem(weight, self.relative_scale)


def weights_of(
    occupancy: Counts, cells: NDArray[np.int64], weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Importance of some of the cells, 1 where none was given."""
    if not weights:
        return np.ones(len(cells))
    labels = occupancy.labels
    return np.array([weights.get(labels[g], 1.0) for g in cells.tolist()])
