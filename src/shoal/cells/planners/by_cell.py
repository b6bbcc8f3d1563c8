"""Plans a mean mechanism in many cells, whose losses are balanced like noise scales.

A user's loss in a cell is linear in the loss that the mechanism may use there. Parameters such as
caps depend on the losses of the cells, and these on the parameters: a few rounds settle both.
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

# Rounds in which parameters and losses of cells are fitted to each other.
_ROUNDS = 3
# The noise scale of a cell in which nobody counts, as a part of the width: about a tick.
_LEAST_NOISE = 2.0**-20


def by_cell(task: Task) -> Facts:
    """Returns the plan of the method for the given cells."""
    method = task.method
    limit = task.request.epsilon
    assert limit is not None
    epsilon = float(limit)
    tick_bits = task.request.tick_bits
    all_weights = every_record(task.counts, task.cells)
    all_cells = np.full(len(task.cells), fill_value=True)
    # The loss that the mechanism may use in each cell; the first round takes selections as free.
    cell_loss = _balanced(task, all_weights, all_cells, 0.0, epsilon)
    parameters: Parameters = {}
    for turn in range(_ROUNDS):
        before = parameters
        parameters = method.parameters(task.counts, task.cells, cell_loss, tick_bits)
        # Nothing changes any more once the parameters are those of the round before.
        if turn and all(np.array_equal(before[name], parameters[name]) for name in before):
            break
        weights = method.weigh(task.counts, task.cells, parameters)
        selecting = method.range.selecting(weights, epsilon)
        # The part of a cell's loss that selections use, and the part of epsilon that cells share.
        selecting_in_cell = selecting if method.range.selects == "per cell" else 0.0
        shared = 1.0 - selecting if method.range.selects == "for all" else 1.0
        # A cell in which nobody counts costs no loss: the other cells share it.
        costly = (weights.largest > 0) | (selecting_in_cell > 0)
        cell_loss[costly] = _balanced(task, weights, costly, selecting_in_cell, shared * epsilon)
    noise = weights.largest / ((1 - selecting_in_cell) * cell_loss)
    scale = np.where(weights.largest > 0, noise, _LEAST_NOISE)
    bits = _bits(weights, epsilon)
    selection_scale = _selection_scale(method.range, weights, selecting, cell_loss, epsilon, bits)
    numbers = ReleasedStatistics(weights, task.request.kinds)
    scale = Cost(numbers, method.range, parameters, selection_scale, bits).fitted(scale, limit)
    chosen = task.decide(
        scale,
        bits,
        parameters=method.range.tune(weights, parameters, epsilon, scale, selecting),
        selection_scale=selection_scale,
    )
    return Facts(task.counts, task.request, chosen)


def _bits(weights: Weights, epsilon: float) -> int:
    """Returns lattice bits for the most cells in which a user counts."""
    counted = weights.user[weights.reach > 0]
    if len(counted):
        return lattice_bits(int(np.bincount(counted).max()), epsilon)
    # Nobody counts: the lattice is as for one cell and a loss of 1.
    return lattice_bits(1, 1.0)


def _balanced(
    task: Task, weights: Weights, costly: Bools, selecting: float, epsilon: float
) -> Floats:
    """Returns the loss of each costly cell; users pay for its selections and for its noise.

    `selecting` is the part of a cell's loss that its selections use.
    """
    if not costly.any():
        return np.zeros(0)
    inside = costly[weights.cell]
    # Costly cells are numbered anew, without gaps.
    new_number = np.cumsum(costly) - 1
    cell = weights.cell[inside]
    # The heaviest user of a cell pays all of its noise's loss, others in proportion to their part.
    of_heaviest = weights.part[inside] / np.where(weights.largest > 0, weights.largest, 1.0)[cell]
    problem = Problem(
        user=weights.user[inside],
        cell=new_number[cell],
        sensitivity=selecting + (1 - selecting) * of_heaviest,
        n_users=task.counts.n_users,
        weight=task.importance[costly],
    )
    return np.asarray(epsilon / balanced(problem).noise_scale)


def _selection_scale(
    where: Range, weights: Weights, selecting: float, cell_loss: Floats, epsilon: float, bits: int
) -> Floats:
    """Returns the noise scales of the private selections, none if nothing is selected."""
    if where.selects == "nothing":
        return np.zeros(0)
    spent = selecting * (cell_loss if where.selects == "per cell" else np.array([epsilon]))
    # Accounting rounds each selection's loss up to a step, for which this makes room: a user who
    # counts nowhere pays for selections alone.
    spent = np.maximum(spent - 2.0**-bits, spent / 2)
    return round_scale(where.rounds * 2 * where.score_sensitivity(weights) / spent)
