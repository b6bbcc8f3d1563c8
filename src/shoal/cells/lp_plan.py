"""Optimal plans: weights of all users in all cells by linear programming, with a proof.

Errors of the cells are s e_g with given targets e_g. The weights are the solvers'; noise, loss and
factor s follow from them by the true formulas, and the proof from the dual variables
(docs/theory/optimal.md#targets-and-the-factor-s).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells import noise_allocation as sharing
from shoal.cells.allocation.base import LinearProgram
from shoal.cells.contributions.design import FINE, members
from shoal.cells.contributions.parts_of_weights import PART, capped_parts
from shoal.cells.gaps import family_of
from shoal.cells.lp.problem import TargetProblem
from shoal.cells.lp.solve import solve as least_loss
from shoal.cells.lp.target_scaling import least_factor
from shoal.cells.plan_facts import weights_of
from shoal.cells.queries import Queries
from shoal.cells.ranges.one_interval import USER
from shoal.cells.weighed_users import Weighed
from shoal.privacy.noise_lattice import round_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.lp.error_model import Family
    from shoal.cells.mechanism import Mechanism
    from shoal.cells.plan_facts import PlanFacts, Status
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice

    Floats = NDArray[np.float64]

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


def solve(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """The plan with the least factor s at a loss, or the least loss at an error of every cell."""
    targets = _targets(occupancy, lattice, request, cells, status)
    search = _search(occupancy, lattice, request, cells, targets)
    epsilon = float(request.epsilon or 0)
    best, duals = search.run(epsilon * (1 - search.selecting(epsilon)))
    _check_met(best, request, lattice)
    return _finish(search, best, status, targets, _kept(duals))


def again(plan: PlanFacts) -> PlanFacts:
    """What the planner makes of a plan's weights and duals: targets, noise and rewards.

    Args:
        plan: One by linear programming.

    Raises:
        InputError: The weights cannot meet the errors that were asked for.
    """
    occupancy, lattice, request, cells = plan.occupancy, plan.lattice, plan.request, plan.released
    targets = _targets(occupancy, lattice, request, cells, plan.status)
    search = _search(occupancy, lattice, request, cells, targets)
    weighed = Weighed(plan.queries, plan.parameters, targets)
    if request.epsilon is not None:
        epsilon = float(request.epsilon)
        least = weighed.least(epsilon * (1 - search.selecting(epsilon)))
        weighed = replace(weighed, targets=targets * least)
    _check_met(weighed, request, lattice)
    return _finish(search, weighed, plan.status, targets, plan.duals)


def _check_met(weighed: Weighed, request: Request, lattice: Lattice) -> None:
    """Refuse an error that these weights cannot meet at any loss."""
    if request.error is not None and not np.isfinite(weighed.loss(1.0)):
        raise sharing.bad_error(request.error, request.statistics[0], lattice)


def _search(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    targets: Floats,
) -> _Search:
    member, number = members(occupancy, cells)
    share = occupancy.count[member] / occupancy.totals[cells][number]
    problem = TargetProblem(
        occupancy.user[member], number, share, occupancy.n_users, len(cells), targets
    )
    return _Search(occupancy, lattice, request, cells, family_of(problem, request.statistics))


def _finish(
    search: _Search,
    best: Weighed,
    status: tuple[Status, ...],
    targets: Floats,
    duals: Floats | None,
) -> PlanFacts:
    request = search.request
    limit = request.epsilon or Fraction(best.loss(1.0) * _CAPACITY)
    return _select(search, best, sharing.finish(
        best.queries, search.lattice, request, status, limit, best.scale.ravel(),
        selection_scale=search.selection_scale(float(request.epsilon or 0)),
        parameters=best.parameters, targets=targets, duals=duals,
    ))  # fmt: skip


def _select(search: _Search, best: Weighed, plan: PlanFacts) -> PlanFacts:
    """The plan with the parameters of its selection, now that the noise is known."""
    mechanism = search.mechanism
    if mechanism.range.selects == "nothing":
        return plan
    selecting = search.selecting(float(search.request.epsilon or 0))
    own = (best.queries.design, best.parameters, plan.epsilon, plan.relative_scale, selecting)
    return replace(plan, parameters=mechanism.range.tune(*own))


@dataclass(frozen=True, eq=False)
class _Search:
    """Rounds of linear programs; the best plan by the true formulas is kept."""

    occupancy: Counts
    lattice: Lattice
    request: Request
    cells: NDArray[np.int64]
    family: Family

    @cached_property
    def mechanism(self) -> Mechanism:
        """What the weights are parameters of."""
        return self.request.parts.mechanism(self.lattice)

    def selecting(self, epsilon: float) -> float:
        """Part of the loss for a private range, as if weights were capped in every cell."""
        if self.mechanism.range.selects == "nothing":
            return 0.0
        capped = {"part": capped_parts(self.occupancy, self.cells, self.each(epsilon))}
        design = self.mechanism.design(self.occupancy, self.cells, capped)
        return self.mechanism.range.selecting(design, epsilon)

    def each(self, epsilon: float) -> Floats:
        """A loss for each cell: that of the whole by the cells of who is in most of them."""
        user = self.occupancy.user[members(self.occupancy, self.cells)[0]]
        return np.full(len(self.cells), epsilon / int(np.bincount(user).max()))

    def selection_scale(self, epsilon: float) -> Floats | None:
        """Scale of the selection that costs this part; None without one."""
        if self.mechanism.range.selects == "nothing":
            return None
        return round_scale(np.array([2 * USER / (self.selecting(epsilon) * epsilon)]))

    def run(self, epsilon: float) -> tuple[Weighed, Floats]:
        """The best plan, its targets scaled so that it is at factor 1, and dual variables.

        Args:
            epsilon: Loss of the noise; 0 for the least one at the targets.
        """
        best, duals = self._chords(epsilon)
        if self.family.variance:
            best = self._tangents(epsilon, best, duals)
            best = self._thresholds(epsilon, best)
        if epsilon:
            best = replace(best, targets=best.targets * best.least(epsilon))
        return best, duals

    def _chords(self, epsilon: float) -> tuple[Weighed, Floats]:
        """Programs that are right about the mass that the one before missed."""
        missing, duals = np.zeros(len(self.cells)), None
        found: list[tuple[float, Weighed, Floats]] = []
        for _ in range(_CHORDS if self.family.variance else 1):
            problem = self.family.at(missing)
            if epsilon:
                answer = least_factor(
                    problem, epsilon, _TOLERANCE, seconds=_SECONDS, start_duals=duals
                )
                solution, duals = answer.solution, answer.duals
            else:
                solution = least_loss(problem, _TOLERANCE, seconds=_SECONDS)
                duals = solution.duals
            value, tried = self._best(self._weigh(solution.weight), epsilon)
            found.append((value, tried, duals))
            missing = tried.queries.design.missing
        _, best, proof = min(found, key=lambda each: each[0])
        return best, proof

    def _tangents(self, epsilon: float, best: Weighed, duals: Floats) -> Weighed:
        """Programs above the true errors that touch them at the best plan so far."""
        value = self._judge(best, epsilon)
        for _ in range(_TANGENTS):
            problem = self.family.tangent(best.queries.design.missing, value if epsilon else 1.0)
            solution = least_loss(problem, _TOLERANCE, seconds=_SECONDS, start_duals=duals)
            found, tried = self._best(self._weigh(solution.weight), epsilon)
            if found > value * (1 - _WORTH):
                break
            best, value = tried, found
        return best

    def _thresholds(self, epsilon: float, best: Weighed) -> Weighed:
        """In a single cell: weights of at most a threshold, of a grid, if they do better."""
        share = self.family.problem.share
        if len(self.cells) > 1:
            return best
        grid = np.geomspace(share.min() / _BELOW, share.max(), _GRID)
        tried = [self._best(self._weigh(np.minimum(share, each)), epsilon) for each in grid]
        return self._best([best, *(plan for _, plan in tried)], epsilon)[1]

    def _best(self, plans: list[Weighed], epsilon: float) -> tuple[float, Weighed]:
        judged = [(self._judge(each, epsilon), each) for each in plans]
        return min(judged, key=lambda each: each[0])

    def _judge(self, plan: Weighed, epsilon: float) -> float:
        return plan.least(epsilon) if epsilon else plan.loss(1.0)

    def _weigh(self, weight: Floats) -> list[Weighed]:
        # A rounding of w/v above a whole number of parts must not cost one.
        part = np.floor(weight / self.family.problem.share * 2**PART + 2.0**-10).astype(np.int64)
        part = np.minimum(part, 1 << PART)
        found = self._with_parts(part)
        if self.request.error is None:
            return found
        small = np.any([(each.noise(1.0) < _SMALL) & each.counts for each in found], axis=0)
        whole = small[self.family.problem.cell]
        return found + (self._with_parts(np.where(whole, 1 << PART, part)) if whole.any() else [])

    def _with_parts(self, part: NDArray[np.int64]) -> list[Weighed]:
        """Every way to release the statistics of users who count in these parts."""
        parameters = self.mechanism.parameters(self.occupancy, self.cells, self.each(1.0))
        parameters |= {"part": part}
        design = self.mechanism.design(self.occupancy, self.cells, parameters)
        return [
            Weighed(
                Queries(design, self.request.statistics, joint=way),
                parameters,
                self.family.problem.target,
            )
            for way in sharing.ways(self.request)
        ]


def _targets(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> Floats:
    """Relative errors e_g: of an error asked for in every cell, else up to a factor."""
    weight = weights_of(occupancy, cells, request.weights)
    if request.error is not None:
        statistic = request.statistics[0]
        wanted = request.error / float(statistic.statistic_range(lattice.bounds)[1])
        rounded = statistic.rounding(float(lattice.rounding), 2.0 ** -(lattice.bits + FINE))
        if not rounded < wanted < sharing.GUESS:
            raise sharing.bad_error(request.error, statistic, lattice)
        # The least important cells may have this error, more important ones a smaller one.
        return np.asarray((wanted - rounded) * weight.min() / (weight * _CAPACITY))
    if request.parts.allocation == LinearProgram("equal"):
        return np.asarray(1 / weight)
    likely = replace(request, method="balanced", settings={})
    plan = sharing.solve(occupancy, lattice, likely, cells, status)
    noise = plan.queries.per_statistic(plan.mean_noise).sum(axis=0)
    return np.asarray(noise / noise.min())


def _kept(duals: Floats) -> Floats:
    """Single precision is enough for a proof."""
    scaled = duals / max(float(duals.max(initial=0.0)), 1e-300)
    return np.asarray(scaled.astype(np.float32).astype(np.float64))
