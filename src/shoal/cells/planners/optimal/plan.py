"""Makes optimal plans: all users' weights, the noise, and dual variables that prove them optimal.

The errors of the cells are a common factor times given targets
(docs/theory/cells.md#the-dual-bound).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.decision import Task
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.program import Program, is_small
from shoal.cells.facts.variance_programs import StatisticPrograms
from shoal.cells.facts.weighted import WeightedPlan
from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.ranges import USER
from shoal.cells.mechanisms.weights import FINE, PART, members, parts
from shoal.cells.planners.optimal.interior import solve
from shoal.cells.planners.optimal.search import least_factor
from shoal.cells.planners.shared_noise import bad_error, finish, shared_noise, ways
from shoal.errors import InputError
from shoal.privacy.noise_lattice import round_scale

# The relative gap at which a linear program is solved.
_TOLERANCE = 0.004
# How often programs are solved with chords of a variance's bias: as bias and sensitivity depend on
# the weights they are planned with, one solution is not enough.
_CHORDS = 2
# How often, at most, programs are solved with tangents of the bias after that.
_TANGENTS = 5
# The part by which errors have to fall for another program with tangents.
_WORTH = 1e-3
# How many thresholds of shares are tried as well in a single cell: a variance's error may have
# several local minima, of which slopes find only one.
_GRID = 64
# The lowest threshold is the lightest share divided by this.
_BELOW = 8
# A factor that makes room for lattice steps and for scales rounded upwards.
_CAPACITY = 1 + 2.0**-18
# A weight loses up to 2^-PART of its share when it is rounded down. Where the noise is less than
# this, some dozens of such parts, whole shares may do better.
_SMALL = 2.0 ** (6 - PART)


def optimal(task: Task) -> Facts:
    """Returns the plan with the least errors at a loss, or the least loss at an error."""
    member, cell = members(task.counts, task.cells)
    user = task.counts.user[member]
    if not is_small(user, len(task.cells)):
        raise InputError(
            f'method="optimal" cannot plan {len(task.cells):,} cells that share so many users',
            'use method="balanced" or larger cells: optimal takes up to 2,000 cells and 100 '
            "million pairs of cells that share a user",
        )
    share = task.counts.count[member] / task.counts.totals[task.cells][cell]
    program = Program(user, cell, share, np.ones(len(share)), _targets(task), task.counts.n_users)
    return _Search(task, StatisticPrograms.of(program, task.request.kinds)).plan()


@dataclass(frozen=True, eq=False)
class _Search:
    """Solves linear programs in rounds, and keeps the best plan by the true formulas."""

    task: Task
    programs: StatisticPrograms

    @cached_property
    def selecting(self) -> float:
        """Part of the loss for a private range, as if weights were capped in every cell."""
        task = self.task
        if not task.method.selects:
            return 0.0
        epsilon = float(task.request.epsilon or 0)
        member, cell = members(task.counts, task.cells)
        count = task.counts.count[member]
        cells_of_user = int(np.bincount(self.programs.program.user).max())
        of_cell = np.full(len(task.cells), epsilon / cells_of_user)
        cap = caps.exchangeable(cell, count, len(task.cells), of_cell)[cell]
        part = (np.minimum(cap, count) << PART) // count
        return task.method.range.selecting(parts(task.counts, task.cells, part), epsilon)

    @cached_property
    def epsilon(self) -> float:
        """Loss of the noise; 0 if the request gives an error instead of a loss."""
        return float(self.task.request.epsilon or 0) * (1 - self.selecting)

    def plan(self) -> Facts:
        """Returns the best plan, its noise on the lattice, and its selection."""
        task = self.task
        request = task.request
        selected_range = task.method.range
        best, duals = self._chords()
        if self.programs.varies:
            best = self._thresholds(self._tangents(best))
        if self.epsilon:
            # With a given epsilon, targets are scaled to be as small as it allows.
            best = replace(best, targets=best.targets * best.least(self.epsilon))
        elif not np.isfinite(best.loss(1.0)):
            raise bad_error(request, request.kinds[0])
        weights = best.numbers.weights
        # Each selection has the same loss.
        loss_of_selection = self.selecting * float(request.epsilon or 0)
        n_selections = selected_range.selections({}, len(task.cells))
        losses = np.full(n_selections, loss_of_selection)
        assert weights.window is not None
        part, _ = weights.window
        parameters = {"part": part} | selected_range.parameters(weights, {}, losses, 0)
        # Single precision is enough for a proof, in which only ratios of the duals matter.
        duals = duals / max(float(duals.max()), 1e-300)
        plan = finish(
            task,
            best.numbers,
            request.epsilon or Fraction(best.loss(1.0) * _CAPACITY),
            best.scale.ravel(),
            selection_scale=round_scale(2 * USER / losses),
            parameters=parameters,
            targets=best.targets,
            duals=duals.astype(np.float32).astype(np.float64),
        )
        if not task.method.selects:
            return plan
        scale = plan.decision.scale
        parameters = selected_range.tune(weights, parameters, plan.epsilon, scale, self.selecting)
        return replace(plan, decision=replace(plan.decision, parameters=parameters))

    def _chords(self) -> tuple[WeightedPlan, Floats]:
        """Returns the best plan and the best proof, by programs exact at the last missing mass."""
        missing = np.zeros(len(self.task.cells))
        plans: list[tuple[WeightedPlan, Floats]] = []
        for _ in range(_CHORDS if self.programs.varies else 1):
            program = self.programs.at(missing)
            if self.epsilon:
                solution = least_factor(program, self.epsilon, _TOLERANCE).solution
            else:
                solution = solve(program, _TOLERANCE)
            _, plan = self._best(self._weigh(solution.weight))
            plans.append((plan, solution.duals))
            missing = plan.numbers.weights.missing
        judged, best = self._best([plan for plan, _ in plans])
        # The best plan is judged by its loss at the targets, or by its factor of them at epsilon.
        loss = judged
        factor = 1.0
        if self.epsilon:
            loss = self.epsilon
            factor = judged
        proofs = (duals for _, duals in plans)
        return best, max(proofs, key=lambda duals: self.programs.least_factor(duals, loss, factor))

    def _tangents(self, best: WeightedPlan) -> WeightedPlan:
        """Returns the best plan by programs whose errors touch the true ones at the last plan."""
        judged = self._judge(best)
        for _ in range(_TANGENTS):
            missing = best.numbers.weights.missing
            program = self.programs.tangent(missing, judged if self.epsilon else 1.0)
            judged_now, plan = self._best(self._weigh(solve(program, _TOLERANCE).weight))
            if judged_now > judged * (1 - _WORTH):
                break
            best = plan
            judged = judged_now
        return best

    def _thresholds(self, best: WeightedPlan) -> WeightedPlan:
        """Returns the best plan; in a single cell, weights cut at thresholds are tried as well."""
        share = self.programs.program.share
        if len(self.task.cells) > 1:
            return best
        plans = [best]
        for threshold in np.geomspace(share.min() / _BELOW, share.max(), _GRID):
            _, plan = self._best(self._weigh(np.minimum(share, threshold)))
            plans.append(plan)
        _, best = self._best(plans)
        return best

    def _best(self, plans: list[WeightedPlan]) -> tuple[float, WeightedPlan]:
        """Returns the smallest number that `_judge` gives, and the first plan that has it."""
        judged = [self._judge(each) for each in plans]
        at = judged.index(min(judged))
        return judged[at], plans[at]

    def _judge(self, plan: WeightedPlan) -> float:
        """Returns the factor of a plan's errors at the loss, or its loss at the errors."""
        return plan.least(self.epsilon) if self.epsilon else plan.loss(1.0)

    def _weigh(self, weight: Floats) -> list[WeightedPlan]:
        """Returns plans in which users count with these weights, in parts of 2^-PART of a share."""
        program = self.programs.program
        # A quotient just below a whole number of parts, by rounding, must not lose one.
        part = np.floor(weight / program.share * 2**PART + 2.0**-10).astype(np.int64)
        part = np.minimum(part, 1 << PART)
        plans = self._with_parts(part)
        if self.task.request.error is None:
            return plans
        # Plans with whole shares in all cells of little noise are tried as well.
        small = np.any([(each.noise(1.0) < _SMALL) & each.costly for each in plans], axis=0)
        in_small = small[program.cell]
        if in_small.any():
            plans += self._with_parts(np.where(in_small, 1 << PART, part))
        return plans

    def _with_parts(self, part: Ints) -> list[WeightedPlan]:
        """Returns a plan for every way to release statistics of users who count in these parts."""
        request = self.task.request
        target = self.programs.program.target
        weights = parts(self.task.counts, self.task.cells, part)
        return [
            WeightedPlan(ReleasedStatistics(weights, request.kinds, joint=joint), target)
            for joint in ways(request)
        ]


def _targets(task: Task) -> Floats:
    """Returns each cell's error as a part of the range; without `error=` up to a common factor."""
    weight = task.importance
    request = task.request
    if request.error is not None:
        statistic = request.kinds[0]
        lattice = request.lattice
        _, length = statistic.statistic_range(lattice.bounds)
        error = request.error / float(length)
        rounding = statistic.rounding(float(lattice.rounding), 2.0 ** -(lattice.bits + FINE))
        if not rounding < error < MIDPOINT_ERROR:
            raise bad_error(request, statistic)
        # The least important cells may have this error, more important ones a smaller one.
        return np.asarray((error - rounding) * weight.min() / (weight * _CAPACITY))
    if task.method.settings.get("targets", "equal") == "equal":
        return np.asarray(1 / weight)
    # Otherwise errors are in proportion to the noise of a balanced plan.
    without_delta = request.model_copy(update={"delta": Fraction(0)})
    plan = shared_noise(replace(task, request=without_delta, method=method_of("balanced")))
    noise = plan.numbers.per_statistic(plan.mean_noise).sum(axis=0)
    return np.asarray(noise / noise.min())
