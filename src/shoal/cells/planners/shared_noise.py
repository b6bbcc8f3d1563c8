"""Makes plans in which every record counts, with the better kind of noise shared among cells."""

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
from shoal.privacy.law import LAPLACE
from shoal.privacy.noise_lattice import lattice_bits
from shoal.theory import allocation
from shoal.theory.allocation import Allocation, Problem

_ALLOCATIONS: dict[str, Callable[[Problem], Allocation]] = {
    "uniform": allocation.uniform,
    "equalised": allocation.equalised,
    "balanced": lambda problem: allocation.balanced(problem, allocation.PUBLISHED_GAP),
}


def shared_noise(task: Task) -> Facts:
    """Returns the best plan by the method's error: direct or joint, Laplace or Gaussian noise."""
    weights = every_record(task.counts, task.cells)
    plans = [
        _plan(task, ReleasedStatistics(weights, task.request.kinds, joint=joint, law=law))
        for joint in ways(task.request)
        for law in task.laws
    ]
    # A kind of noise that keeps the largest error comes first, so that a larger delta never makes a
    # cell be left out.
    return min(plans, key=lambda each: (not within(each), judge(each)))


def ways(request: Request) -> tuple[bool, ...]:
    """Returns whether to try a joint release: False alone, or both False and True."""
    return (False, True) if set(MEAN_AND_VARIANCE) <= set(request.kinds) else (False,)


def judge(plan: Facts) -> float:
    """Returns what the method minimises: the largest error, or the mean logarithm of errors."""
    # One row for each statistic, one column for each cell.
    rows = plan.numbers.per_statistic(plan.relative_error)
    if plan.decision.method.levels:
        return float(rows.sum(axis=0).max())
    weight = plan.importance
    return float(np.log(rows).mean(axis=0) @ weight / weight.sum())


def _plan(task: Task, numbers: ReleasedStatistics) -> Facts:
    """Returns the plan that releases these numbers, with one kind of noise."""
    shape = numbers.shape(least_sum=task.method.levels)
    problem = numbers.problem(task.importance, shape)
    allocated = _ALLOCATIONS[task.method.name](problem)
    if task.delta and task.method.overcounts and numbers.law is LAPLACE:
        # Gaussian noise is charged by the true loss: so Laplace noise is compared at its true loss.
        spent = float(problem.loss(allocated.noise_scale).max())
        allocated = replace(allocated, noise_scale=allocated.noise_scale * spent)
    epsilon = task.request.epsilon or _least_epsilon(allocated, numbers, task.request)
    # The problem of noise is in powers of scales.
    unit = numbers.law.root(allocated.noise_scale)
    scale = (numbers.per_statistic(shape) * unit).ravel() / float(epsilon)
    return finish(task, numbers, epsilon, scale, duals=allocated.duals)


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
    """Returns the plan; its noise scales, parts of the range, are fitted to lattice and loss."""
    if parameters is None:
        parameters = {}
    if selection_scale is None:
        selection_scale = np.zeros(0)
    delta = numbers.law.delta(task.delta)
    most_numbers = len(numbers.statistics) * int(np.bincount(numbers.weights.user).max())
    bits = lattice_bits(most_numbers, float(epsilon), float(delta))
    cost = Cost(numbers, task.method.range, parameters, selection_scale, bits, delta)
    chosen = task.decide(
        cost.fitted(scale, epsilon),
        bits,
        parameters=parameters,
        selection_scale=selection_scale,
        joint=numbers.joint,
        law=numbers.law,
        **others,
    )
    return Facts(task.counts, task.request, chosen)


def _least_epsilon(noise: Allocation, numbers: ReleasedStatistics, request: Request) -> Fraction:
    """Returns the epsilon at which the largest worst-case error is the one asked for.

    `noise` is that of a loss of 1.
    """
    statistic = numbers.statistics[0]
    lattice = request.lattice
    _, length = statistic.statistic_range(lattice.bounds)
    wanted = (request.error or 0.0) / float(length)
    # The rounding to ticks is taken off, then a margin for lattice steps and for rounded scales.
    largest_scale = (wanted - statistic.rounding(float(lattice.rounding), 0.0)) / (1 + 2.0**-19)
    if largest_scale <= 0 or wanted >= MIDPOINT_ERROR:
        raise bad_error(request, statistic)
    return Fraction(float(noise.noise_scale.max()) / largest_scale)


def bad_error(request: Request, statistic: Statistic) -> InputError:
    """Returns the InputError for an `error=` that no plan can keep, or that guessing keeps."""
    _, length = statistic.statistic_range(request.lattice.bounds)
    half = float(length) / 2
    return InputError(
        f"no plan has a worst-case error of {request.error:g}",
        f"ask for more than a tick and less than {half:g}, the error of guessing the middle",
    )
