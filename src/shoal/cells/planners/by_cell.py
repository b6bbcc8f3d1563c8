"""Plans of a mean mechanism in many cells, whose losses are balanced like noise scales.

What a mechanism costs a user in a cell is linear in the loss epsilon_g that it may use there.
Parameters such as caps depend on epsilon_g, and epsilon_g on them: a few rounds settle that.
"""

import numpy as np

from shoal.arrays import Bools, Floats
from shoal.cells.facts.accounting import Cost, ReleasedStatistics
from shoal.cells.facts.decision import Task
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.ranges import Range
from shoal.cells.mechanisms.weights import Parameters, Weights, every_record
from shoal.privacy.noise_lattice import lattice_bits, round_scale
from shoal.theory.allocation import Problem, balanced

_ROUNDS = 3
# Over the width: a tick of the lattice of values, unless another one was asked for.
_LEAST_NOISE = 2.0**-20


def by_cell(task: Task) -> Facts:
    """Returns the plan of the method for the given cells."""
    method = task.method
    limit = task.request.epsilon
    assert limit is not None
    epsilon = float(limit)
    bits_of_ticks = task.request.tick_bits
    plain = every_record(task.counts, task.cells)
    of_cell = _balanced(task, plain, np.full(len(task.cells), fill_value=True), 0.0, epsilon)
    parameters: Parameters = {}
    for turn in range(_ROUNDS):
        before = parameters
        parameters = method.parameters(task.counts, task.cells, of_cell, bits_of_ticks)
        if turn and all(np.array_equal(before[name], parameters[name]) for name in before):
            break
        weights = method.weigh(task.counts, task.cells, parameters)
        selecting = method.range.selecting(weights, epsilon)
        each = selecting if method.range.selects == "per cell" else 0.0
        noise_only = 1.0 - selecting if method.range.selects == "for all" else 1.0
        # Where nobody counts nobody pays for noise: the others share the loss.
        costly = (weights.largest > 0) | (each > 0)
        of_cell[costly] = _balanced(task, weights, costly, each, noise_only * epsilon)
    noise = weights.largest / ((1 - each) * of_cell)
    scale = np.where(weights.largest > 0, noise, _LEAST_NOISE)
    counted = weights.user[weights.reach > 0]
    # If nobody counts, as for one cell and a loss of 1.
    most, loss = (int(np.bincount(counted).max()), epsilon) if len(counted) else (1, 1.0)
    bits = lattice_bits(most, loss)
    selection_scale = _selection_scale(method.range, weights, selecting, of_cell, epsilon, bits)
    numbers = ReleasedStatistics(weights, task.request.kinds)
    scale = Cost(numbers, method.range, parameters, selection_scale, bits).fitted(scale, limit)
    chosen = task.decide(
        scale,
        bits,
        parameters=method.range.tune(weights, parameters, epsilon, scale, selecting),
        selection_scale=selection_scale,
    )
    return Facts(task.counts, task.request, chosen)


def _balanced(
    task: Task, weights: Weights, costly: Bools, selecting: float, epsilon: float
) -> Floats:
    """Loss of each costly cell: each user pays for selections and for its part of the noise."""
    if not costly.any():
        return np.zeros(0)
    inside = costly[weights.cell]
    place = np.cumsum(costly) - 1
    cell = weights.cell[inside]
    part = weights.part[inside] / np.where(weights.largest > 0, weights.largest, 1.0)[cell]
    problem = Problem(
        user=weights.user[inside],
        cell=place[cell],
        sensitivity=selecting + (1 - selecting) * part,
        n_users=task.counts.n_users,
        weight=task.importance[costly],
    )
    return np.asarray(epsilon / balanced(problem).noise_scale)


def _selection_scale(
    where: Range, weights: Weights, selecting: float, of_cell: Floats, epsilon: float, bits: int
) -> Floats:
    if where.selects == "nothing":
        return np.zeros(0)
    spent = selecting * (of_cell if where.selects == "per cell" else np.array([epsilon]))
    # Each selection's loss is rounded up to a step: a user may pay for selections alone.
    spent = np.maximum(spent - 2.0**-bits, spent / 2)
    return round_scale(where.rounds * 2 * where.score_sensitivity(weights) / spent)
