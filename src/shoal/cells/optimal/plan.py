"""Optimal plans: weights of all users in all cells, the noise, and dual variables that prove them.

Errors of the cells are s e_g with given targets e_g. Weights come from linear programs; noise, loss
and the factor s follow from them by the true formulas, and the proof from the dual variables
(docs/theory/optimal.md#targets-and-the-factor-s).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells import noise_allocation
from shoal.cells.allocation.base import LinearProgram
from shoal.cells.contributions.design import FINE, members
from shoal.cells.contributions.parts_of_weights import PART, capped_parts
from shoal.cells.optimal.interior import solve
from shoal.cells.optimal.program import Program, is_small
from shoal.cells.optimal.search import least_factor
from shoal.cells.optimal.variance import StatisticPrograms
from shoal.cells.plan_facts import weights_of
from shoal.cells.queries import Queries
from shoal.cells.ranges.one_interval import USER
from shoal.cells.weighed_users import Weighed
from shoal.errors import InputError
from shoal.privacy.noise_lattice import round_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.mechanism import Mechanism
    from shoal.cells.optimal.program import Floats
    from shoal.cells.plan_facts import PlanFacts, Status
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice

_TOLERANCE, _SECONDS = 0.004, 60.0
# A variance's bias and sensitivity depend on the weights they are planned with: rounds with
# chords of the bias to start with, and with tangents as long as errors fall.
_CHORDS, _TANGENTS, _WORTH = 2, 5, 1e-3
# Slopes see one valley of a variance's error, and it may have several: where that is cheap, in a
# single cell, a grid of thresholds looks at all, from the lightest share over 8 on.
_GRID, _BELOW = 64, 8
# Room for lattice steps, and for scales rounded upwards.
_CAPACITY = 1 + 2.0**-18
# Weights are rounded down to parts, and what that leaves out may be as much as a part: where only
# some dozens of parts are left for noise, whole weights may do better.
_SMALL = 2.0 ** (6 - PART)


def make_plan(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """Returns the plan with the least factor s at a loss, or the least loss at an error."""
    if not is_small(occupancy.user[members(occupancy, cells)[0]], len(cells)):
        raise InputError(
            f'method="optimal" for {len(cells):,} cells',
            "at most 2,000 cells, and 100 million pairs of cells that share a user",
            'use method="balanced", or larger cells',
        )
    search = _search(occupancy, lattice, request, cells, status)
    best, duals = search.best()
    return search.finish(best, status, _single_precision(duals))


def remake_plan(plan: PlanFacts) -> PlanFacts:
    """Returns what the planner makes of a plan's weights and duals: targets, noise and rewards."""
    search = _search(plan.occupancy, plan.lattice, plan.request, plan.released, plan.status)
    weighed = Weighed(plan.queries, plan.parameters, search.targets)
    return search.finish(search.rescaled(weighed), plan.status, plan.duals)


def _search(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> _Search:
    member, number = members(occupancy, cells)
    share = occupancy.count[member] / occupancy.totals[cells][number]
    targets = _targets(occupancy, lattice, request, cells, status)
    arrays = occupancy.user[member], number, share, np.ones(len(share)), targets
    programs = StatisticPrograms.of(Program(*arrays, occupancy.n_users), request.statistics)
    return _Search(occupancy, lattice, request, cells, programs)


@dataclass(frozen=True, eq=False)
class _Search:
    """Rounds of linear programs; the best plan by the true formulas is kept."""

    occupancy: Counts
    lattice: Lattice
    request: Request
    cells: NDArray[np.int64]
    programs: StatisticPrograms

    @property
    def targets(self) -> Floats:
        """Relative error e_g of each cell."""
        return self.programs.program.target

    @cached_property
    def mechanism(self) -> Mechanism:
        """What the weights are parameters of."""
        return self.request.parts.mechanism(self.lattice)

    @cached_property
    def selecting(self) -> float:
        """Part of the loss for a private range, as if weights were capped in every cell."""
        if self.mechanism.range.selects == "nothing":
            return 0.0
        epsilon = float(self.request.epsilon or 0)
        capped = {"part": capped_parts(self.occupancy, self.cells, self._each(epsilon))}
        design = self.mechanism.design(self.occupancy, self.cells, capped)
        return self.mechanism.range.selecting(design, epsilon)

    @cached_property
    def epsilon(self) -> float:
        """Loss of the noise; 0 for the least one at the targets."""
        return float(self.request.epsilon or 0) * (1 - self.selecting)

    def _each(self, epsilon: float) -> Floats:
        """Returns a loss for each cell: the whole by the cells of who is in most of them."""
        return np.full(
            len(self.cells), epsilon / int(np.bincount(self.programs.program.user).max())
        )

    def finish(self, best: Weighed, status: tuple[Status, ...], duals: Floats | None) -> PlanFacts:
        """Returns the plan with these weights, its noise on the lattice, and its selection."""
        request, range_rule = self.request, self.mechanism.range
        if request.error is not None and not np.isfinite(best.loss(1.0)):
            raise noise_allocation.bad_error(request.error, request.statistics[0], self.lattice)
        sharp = None
        if range_rule.selects != "nothing":
            sharp = round_scale(
                np.array([2 * USER / (self.selecting * float(request.epsilon or 0))])
            )
        plan = noise_allocation.finish(
            best.queries, self.lattice, request, status,
            request.epsilon or Fraction(best.loss(1.0) * _CAPACITY), best.scale.ravel(),
            selection_scale=sharp, parameters=best.parameters, targets=self.targets, duals=duals,
        )  # fmt: skip
        if range_rule.selects == "nothing":
            return plan
        known = best.queries.design, best.parameters, plan.epsilon, plan.relative_scale
        return replace(plan, parameters=range_rule.tune(*known, self.selecting))

    def rescaled(self, plan: Weighed) -> Weighed:
        """Returns a plan at factor 1: with an epsilon its targets are as small as that allows."""
        if not self.epsilon:
            return plan
        return replace(plan, targets=plan.targets * plan.least(self.epsilon))

    def best(self) -> tuple[Weighed, Floats]:
        """Returns the best plan, at factor 1, and dual variables."""
        best, duals = self._chords()
        if self.programs.varies:
            best = self._thresholds(self._tangents(best))
        return self.rescaled(best), duals

    def _chords(self) -> tuple[Weighed, Floats]:
        """Returns the best plan and proof of programs that are right where the last missed mass."""
        missing = np.zeros(len(self.cells))
        plans: list[tuple[float, Weighed, Floats]] = []
        for _ in range(_CHORDS if self.programs.varies else 1):
            program = self.programs.at(missing)
            if self.epsilon:
                solution = least_factor(program, self.epsilon, _TOLERANCE, _SECONDS).solution
            else:
                solution = solve(program, _TOLERANCE, _SECONDS)
            factor, plan = self._best(self._weigh(solution.weight))
            plans.append((factor, plan, solution.duals))
            missing = plan.queries.design.missing
        least, best, _ = min(plans, key=lambda each: each[0])
        known = (self.epsilon, least) if self.epsilon else (least, 1.0)
        proofs = (each[2] for each in plans)
        return best, max(proofs, key=lambda each: self.programs.least_factor(each, *known))

    def _tangents(self, best: Weighed) -> Weighed:
        """Returns the best of programs above the true errors that touch them at the best so far."""
        least = self._judge(best)
        for _ in range(_TANGENTS):
            missing = best.queries.design.missing
            program = self.programs.tangent(missing, least if self.epsilon else 1.0)
            now, plan = self._best(self._weigh(solve(program, _TOLERANCE, _SECONDS).weight))
            if now > least * (1 - _WORTH):
                break
            best, least = plan, now
        return best

    def _thresholds(self, best: Weighed) -> Weighed:
        """Returns, in a single cell, the best of weights of at most a threshold of a grid."""
        share = self.programs.program.share
        if len(self.cells) > 1:
            return best
        grid = np.geomspace(share.min() / _BELOW, share.max(), _GRID)
        plans = [self._best(self._weigh(np.minimum(share, each)))[1] for each in grid]
        return self._best([best, *plans])[1]

    def _best(self, plans: list[Weighed]) -> tuple[float, Weighed]:
        return min(((self._judge(each), each) for each in plans), key=lambda each: each[0])

    def _judge(self, plan: Weighed) -> float:
        return plan.least(self.epsilon) if self.epsilon else plan.loss(1.0)

    def _weigh(self, weight: Floats) -> list[Weighed]:
        """Returns plans with these weights in whole parts."""
        program = self.programs.program
        # A rounding of w/v above a whole number of parts must not cost one.
        part = np.floor(weight / program.share * 2**PART + 2.0**-10).astype(np.int64)
        part = np.minimum(part, 1 << PART)
        plans = self._with_parts(part)
        if self.request.error is None:
            return plans
        small = np.any([(each.noise(1.0) < _SMALL) & each.counts for each in plans], axis=0)
        whole = small[program.cell]
        return plans + (self._with_parts(np.where(whole, 1 << PART, part)) if whole.any() else [])

    def _with_parts(self, part: NDArray[np.int64]) -> list[Weighed]:
        """Returns every way to release the statistics of users who count in these parts."""
        parameters = self.mechanism.parameters(self.occupancy, self.cells, self._each(1.0))
        parameters |= {"part": part}
        design = self.mechanism.design(self.occupancy, self.cells, parameters)
        statistics, ways = self.request.statistics, noise_allocation.ways(self.request)
        queries = [Queries(design, statistics, joint=joint) for joint in ways]
        return [Weighed(each, parameters, self.targets) for each in queries]


def _targets(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> Floats:
    """Returns relative errors e_g: of an error asked for in every cell, else up to a factor."""
    weight = weights_of(occupancy, cells, request.weights)
    if request.error is not None:
        statistic = request.statistics[0]
        error = request.error / float(statistic.statistic_range(lattice.bounds)[1])
        rounded = statistic.rounding(float(lattice.rounding), 2.0 ** -(lattice.bits + FINE))
        if not rounded < error < noise_allocation.GUESS:
            raise noise_allocation.bad_error(request.error, statistic, lattice)
        # The least important cells may have this error, more important ones a smaller one.
        return np.asarray((error - rounded) * weight.min() / (weight * _CAPACITY))
    if request.parts.allocation == LinearProgram("equal"):
        return np.asarray(1 / weight)
    likely = replace(request, method="balanced", settings={})
    plan = noise_allocation.solve(occupancy, lattice, likely, cells, status)
    noise = plan.queries.per_statistic(plan.mean_noise).sum(axis=0)
    return np.asarray(noise / noise.min())


def _single_precision(duals: Floats) -> Floats:
    """Returns duals over the largest in single precision, which is enough for a proof."""
    scaled = duals / max(float(duals.max(initial=0.0)), 1e-300)
    return np.asarray(scaled.astype(np.float32).astype(np.float64))
