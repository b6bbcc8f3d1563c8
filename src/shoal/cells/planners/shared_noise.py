"""Plans in which every record counts: noise of the better kind is shared among cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.arrays import Floats
from shoal.cells.facts.accounting import MEAN_AND_VARIANCE, Cost, ReleasedStatistics
from shoal.cells.facts.decision import Task
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Statistic
from shoal.cells.mechanisms.weights import Parameters, every_record
from shoal.cells.planners.largest_error import within
from shoal.errors import InputError
from shoal.privacy.noise_lattice import lattice_bits
from shoal.theory import allocation
from shoal.theory.allocation import Allocation, Problem

_ALLOCATIONS: dict[str, Callable[[Problem], Allocation]] = {
    "uniform": allocation.uniform,
    "equalised": allocation.equalised,
    "balanced": lambda problem: allocation.balanced(problem, allocation.PUBLISHED_GAP),
}


def shared_noise(task: Task) -> Facts:
    """Returns the plan whose error the method judges best: direct or joint, Laplace or Gaussian."""
    weights = every_record(task.counts, task.cells)
    found = [
        _plan(task, ReleasedStatistics(weights, task.request.kinds, joint=joint, gaussian=gaussian))
        for joint in ways(task.request)
        for gaussian in task.noises
    ]
    # Cells stay in with whichever noise keeps their errors: a larger delta then takes none away.
    return min(found, key=lambda each: (not within(each), judge(each)))


def ways(request: Request) -> tuple[bool, ...]:
    """Returns whether statistics may be released jointly: not, or both ways."""
    return (False, True) if set(MEAN_AND_VARIANCE) <= set(request.kinds) else (False,)


def judge(plan: Facts) -> float:
    """Returns what a method wants small: the largest error, or the mean of its logarithm."""
    rows = plan.numbers.per_statistic(plan.relative_error)
    if plan.decision.method.levels:
        return float(rows.sum(axis=0).max())
    weight = plan.importance
    return float(np.log(rows).mean(axis=0) @ weight / weight.sum())


def _plan(task: Task, numbers: ReleasedStatistics) -> Facts:
    shape = numbers.shape(least_sum=task.method.levels)
    problem = numbers.problem(task.importance, shape)
    found = _ALLOCATIONS[task.method.name](problem)
    if task.delta and task.method.overcounts and not numbers.gaussian:
        # Gaussian noise is charged by the true loss, and kinds of noise are compared at one loss.
        spent = float(problem.loss(found.noise_scale).max())
        found = replace(found, noise_scale=found.noise_scale * spent)
    epsilon = task.request.epsilon or _least_epsilon(found, numbers, task.request)
    unit = np.sqrt(found.noise_scale) if numbers.gaussian else found.noise_scale
    scale = (numbers.per_statistic(shape) * unit).ravel() / float(epsilon)
    return finish(task, numbers, epsilon, scale, duals=found.duals)


def finish(
    task: Task,
    numbers: ReleasedStatistics,
    epsilon: Fraction,
    scale: Floats,
    *,
    parameters: Parameters | None = None,
    selection_scale: Floats | None = None,
    **others: Any,
) -> Facts:
    """Returns the plan with these noise scales over the range, made to fit lattice and loss."""
    delta = task.delta if numbers.gaussian else Fraction(0)
    most = len(numbers.statistics) * int(np.bincount(numbers.weights.user).max())
    bits = lattice_bits(most, float(epsilon), float(delta))
    own: Parameters = {} if parameters is None else parameters
    selecting = np.zeros(0) if selection_scale is None else selection_scale
    cost = Cost(numbers, task.method.range, own, selecting, bits, delta)
    chosen = task.decide(
        cost.fitted(scale, epsilon),
        bits,
        parameters=own,
        selection_scale=selecting,
        joint=numbers.joint,
        gaussian=numbers.gaussian,
        **others,
    )
    return Facts(task.counts, task.request, chosen)


def _least_epsilon(found: Allocation, numbers: ReleasedStatistics, request: Request) -> Fraction:
    """The epsilon at which the largest worst-case error is the one asked for."""
    statistic = numbers.statistics[0]
    lattice = request.lattice
    wanted = (request.error or 0.0) / float(statistic.statistic_range(lattice.bounds)[1])
    # Rounding to ticks, then a margin for lattice steps and for scales rounded upwards.
    noise = (wanted - statistic.rounding(float(lattice.rounding), 0.0)) / (1 + 2.0**-19)
    if noise <= 0 or wanted >= MIDPOINT_ERROR:
        raise bad_error(request, statistic)
    return Fraction(float(found.noise_scale.max()) / noise)


def bad_error(request: Request, statistic: Statistic) -> InputError:
    """Returns the error for an error that no plan can have, or that needs none."""
    half = float(statistic.statistic_range(request.lattice.bounds)[1]) / 2
    return InputError(
        f"no plan has a worst-case error of {request.error:g}",
        f"ask for more than a tick and less than {half:g}, the error of guessing the middle",
    )
