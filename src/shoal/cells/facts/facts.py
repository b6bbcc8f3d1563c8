"""Derives all public facts of a plan: its cells, its loss and how far it is from the best plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from shoal.arrays import Floats, Ints, largest
from shoal.cells.facts.accounting import MEAN_AND_VARIANCE, Cost
from shoal.cells.facts.decision import STATUS, check_counts, importance
from shoal.cells.facts.error_bounds import ErrorBounds
from shoal.cells.facts.request import Request
from shoal.cells.facts.shown_cells import ShownCells
from shoal.cells.facts.variance_programs import gap as optimal_gap
from shoal.cells.mechanisms.cell_statistics import Variance
from shoal.cells.mechanisms.user_vectors import ball_of
from shoal.cells.mechanisms.weights import FINE
from shoal.errors import InputError
from shoal.privacy.accounting import Step
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS
from shoal.release.plan import Steps
from shoal.theory import allocation, limits

# The largest noise scale, as a part of the range: 2^63 steps of it stay finite, as do their squares
# for means, on a range of 1e100.
_MOST_SCALE = 2.0**100
# The largest dual variable.
_MOST_DUAL = 2.0**400
# A factor that covers the rounding of floating-point sums of weights.
_FULL = 1 + 2.0**-20
# The largest multiple of the average bias that a cell with one heavy user may have.
_MOST_LEAD = 2.0


@dataclass(frozen=True, eq=False)
class Facts(Steps, ErrorBounds, ShownCells):
    """Everything public about a release before it happens; a pure function of public facts.

    There is a number for each statistic of each planned cell: statistic by statistic, each in the
    order of the cells. Errors, biases and scales are in the statistic's unit (the value's, its
    square for a variance, 1 for a share) unless a name says `relative`: then they are divided by
    the statistic's range (U, U^2/4 or 1 for the width U of the bounds), half of which is the error
    of guessing its middle.
    """

    def __post_init__(self) -> None:
        check_counts(self.counts, self.request, self.decision.method)
        _check_decision(self)

    def like(self, facts: Facts) -> Self:
        """Returns these facts as a plan of this class, with all that was computed about them."""
        found = replace(self, counts=facts.counts, request=facts.request, decision=facts.decision)
        vars(found).update(vars(facts))
        return found

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.decision.method.name

    @cached_property
    def shown_request(self) -> Request:
        """The request without names of cells that readers do not see."""
        weights = self.request.weights
        if not weights:
            return self.request
        shown = {label: weights[label] for label in self.shown_labels if label in weights}
        return self.request.model_copy(update={"weights": shown})

    @cached_property
    def shown_left_out(self) -> Ints:
        """Positions of the cells that readers see and that are left out for their errors."""
        return self.shown[[status != "planned" for status in self.shown_status]]

    @cached_property
    def moved(self) -> Floats:
        """The part of each cell's weight that caps took from its heaviest users."""
        weights = self.weights
        cell = weights.cell
        difference = np.abs(weights.weight / weights.total[cell] - weights.share)
        return np.asarray(np.bincount(cell, difference, minlength=weights.n_cells) / 2)

    @cached_property
    def lead(self) -> Floats:
        """How many noise scales each cell's heaviest user moves it, divided by the mean of cells.

        It is at least 1 and at most 2, and widens the cell's interval.
        """
        if not self.of_vectors:
            return np.ones(len(self.planned))
        load = 1 / self.decision.scale * self.weights.largest
        return np.asarray(np.clip(load / load.mean(), 1.0, _MOST_LEAD))

    @cached_property
    def squares(self) -> Floats:
        """For each cell left out for its error, the sum of its users' squared shares of records."""
        counts = self.counts
        cell = counts.cell
        share = counts.count / counts.totals[cell]
        of_cell = np.bincount(cell, share**2, minlength=counts.n_cells)
        return np.asarray(of_cell[self.shown_left_out])

    @property
    def rounds(self) -> int:
        """The number of releases of users' vectors: 2 if a first round finds their centres."""
        return 2 if ball_of(self.parameters, "first_ball") else 1

    @cached_property
    def cost(self) -> Cost:
        """The cost of the release for every user, as a function of noise scales."""
        chosen = self.decision
        return Cost(
            self.numbers,
            chosen.method.range,
            chosen.parameters,
            chosen.selection_scale,
            chosen.bits,
            self.step_delta,
        )

    @property
    def steps(self) -> list[Step]:
        """The steps of the release: selections, excess, rounds and numbers."""
        return self.cost.steps(self.decision.scale)

    @property
    def exact_epsilon(self) -> Fraction:
        """The total privacy loss: exact with Laplace noise, an upper bound with Gaussian noise."""
        return self.losses.epsilon

    @property
    def step_delta(self) -> Fraction:
        """The exact delta of (epsilon, delta)-DP; 0 with Laplace noise."""
        return self.law.delta(self.request.delta)

    @property
    def rho(self) -> float | None:
        """Zero-concentrated loss with Gaussian noise, rounded upwards; None with Laplace noise."""
        return self.losses.rho

    @property
    def user_losses(self) -> Floats:
        """Privacy loss of each user (rho if Gaussian), shape (users,), without users' names."""
        return self.losses.of_users

    @cached_property
    def paper_epsilon(self) -> float:
        """The privacy loss by the paper's accounting of the same noise.

        Every user who is kept in a cell is charged the loss of its heaviest user, statistic by
        statistic (paper 000, Corollary II.1). With Gaussian noise it is the rho charged in that
        way.
        """
        lost = self.numbers.member_losses(self.decision.scale)
        weights = self.weights
        of_heaviest = largest(weights.cell, lost, weights.n_cells)
        charged = np.where(weights.weight > 0, of_heaviest[weights.cell], 0.0)
        largest_charge = float(np.bincount(weights.user, charged).max())
        return largest_charge / self.law.power

    @cached_property
    def lower_bound(self) -> Floats:
        """Error that no plan of this loss beats: shape (numbers,), in the statistic's unit.

        It holds for Laplace noise, however users are weighed, and is NaN for a plan with Gaussian
        noise (docs/theory/cells.md#limits-of-means). Each bound is for one number alone: one plan
        cannot reach all of them.
        """
        if not self.law.has_limits:
            return np.full_like(self.statistic_range, np.nan)
        counts = self.counts
        memberships = (counts.cell, counts.count, counts.n_cells)
        errors = self.per_statistic(self.worst_case_error / self.statistic_range)
        bounds = []
        for statistic, error in zip(self.statistics, errors, strict=True):
            if isinstance(statistic, Variance):
                # The bound is closer as it need only hold for plans with smaller errors than this.
                at_most = np.full(counts.n_cells, 0.5)
                at_most[self.planned] = error
                bound = limits.least_variance_error(*memberships, self.epsilon, at_most)
            else:
                bound = limits.least_mean_error(*memberships, self.epsilon)
            bounds.append(bound[self.planned])
        return np.concatenate(bounds) * self.statistic_range

    @cached_property
    def gap(self) -> float | None:
        """A bound on the distance from the best plan of the family, or None without a proof.

        For a balanced plan, the mean logarithm of the noise could fall by at most this. For an
        optimal plan, no plan has all its errors below this plan's errors divided by 1 + gap.
        """
        duals = self.decision.duals
        targets = self.decision.targets
        scale = self.decision.scale
        if duals is None:
            return None
        numbers = self.numbers
        if targets is not None:
            loss_of_noise = self.epsilon - float(self.cost.selecting)
            return optimal_gap(numbers, targets, duals, scale, loss_of_noise)
        total = numbers.per_statistic(scale).sum(axis=0)
        spent = 2 * self.losses.noise_rho if self.gaussian else self.epsilon
        power = numbers.power
        problem = numbers.problem(self.importance, scale)
        gap = allocation.balanced_gap(problem, total**power, duals, float(spent))
        # With Gaussian noise the problem is in squares of scales, with twice their logarithms.
        return gap / power

    @property
    def importance(self) -> Floats:
        """Public weight of each planned cell, 1 where none was asked for."""
        return importance(self.counts, self.planned, self.request.weights)


def _check_decision(plan: Facts) -> None:
    """Refuses a decision, which may be from a file, if its loss or its sums would not be exact."""
    chosen = plan.decision
    method = chosen.method
    cells = len(plan.planned)
    numbers = len(plan.statistics) * cells
    sound = (
        cells > 0
        and len(plan.status) == plan.counts.n_cells
        and set(plan.status) <= set(STATUS)
        and 1 <= chosen.bits < MOST_BITS
        and (not chosen.joint or set(MEAN_AND_VARIANCE) <= set(plan.statistics))
        and (not chosen.law.delta(Fraction(1)) or (method.takes_delta and plan.request.delta > 0))
        and (not method.means_alone or plan.request.statistics == ("mean",))
        and method.check(chosen.parameters, plan.counts, plan.planned, plan.lattice.bits)
        and _positive(chosen.scale, numbers)
        and _positive(chosen.selection_scale, method.range.selections(chosen.parameters, cells))
        and (chosen.targets is None or _positive(chosen.targets, cells))
        and (method.planner == "optimal") == (chosen.targets is not None)
        and (chosen.duals is None or _priced(chosen.duals, plan.counts.n_users))
        and (not method.range.of_vectors or _in_the_ball(plan))
    )
    if not sound:
        raise InputError("the plan has impossible decisions", "make the plan again with shoal.plan")
    top = 1 << (plan.lattice.bits + FINE)
    # The smallest noise scale in the narrowest range that may be selected.
    finest = float(chosen.scale.min()) / method.range.largest_zoom(chosen.parameters, top)
    # On a lattice without room, noise would have to depend on the number that it hides.
    if 2.0**chosen.bits > LARGEST_STEPS * finest:
        raise InputError(
            f"the noise, which needs a lattice of {chosen.bits} bits, does not fit 61 bits",
            "ask for a smaller epsilon: numbers and noise have to stay below 2^61 steps",
        )


def _positive(values: Floats, size: int) -> bool:
    """Returns whether there are `size` values, all above 0 and none too large."""
    return values.shape == (size,) and bool(((values > 0) & (values <= _MOST_SCALE)).all())


def _priced(duals: Floats, users: int) -> bool:
    """Returns whether each user has a dual variable, none negative or too large, one above 0."""
    return duals.shape == (users,) and bool(
        (duals >= 0).all() and 0 < float(duals.max()) <= _MOST_DUAL
    )


def _in_the_ball(plan: Facts) -> bool:
    """Returns whether every user's weights in lattice steps have a norm within the ball.

    Then no sum of a user's vector overflows.
    """
    weights = plan.weights
    # The l1 norm with Laplace noise, the l2 norm with Gaussian noise.
    power = plan.numbers.power
    step = plan.decision.scale[weights.cell] * 2.0**-plan.decision.bits
    weight_in_steps = weights.weight / weights.total[weights.cell] / step
    norm = np.bincount(weights.user, weight_in_steps**power) ** (1 / power)
    return float(norm.max()) <= ball_of(plan.parameters) * _FULL


def part_of_range(plan: Facts, part: float) -> str:
    """Returns a part of the range in words, and in its unit if there is a single statistic."""
    of_range = f"{part:.3g} of the range"
    if len(plan.statistics) == 1:
        return f"{part * plan.statistic_range[0]:.3g} ({of_range})"
    return of_range
