"""Plans of a mean mechanism in many cells: its parameters and its share of the loss, cell by cell.

What a mechanism costs a user in a cell is linear in the loss epsilon_g that it may use there: the
part for selections in full, the rest in proportion to the user's contribution. So the losses of the
cells are balanced like noise scales are (docs/theory/balanced.md). Parameters such as caps depend
on epsilon_g, and epsilon_g on them: a few rounds settle that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation import balanced
from shoal.cells.allocation_problem import Problem
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.plan_facts import PlanFacts, weights_of
from shoal.cells.privacy_loss import Losses
from shoal.cells.queries import Queries
from shoal.privacy.noise_lattice import fit, lattice_bits, round_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.plan_facts import Status
    from shoal.cells.ranges.base import RangeRule
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice

_ROUNDS = 3
# Over the width: a tick of the lattice of values, unless another one was asked for.
_LEAST_NOISE = 2.0**-20


def solve(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """The plan of the request's mechanism for the given cells."""
    mechanism, limit = request.parts.mechanism(lattice), request.epsilon
    assert limit is not None
    epsilon = float(limit)
    plain = EveryRecord().design(occupancy, cells, {})
    of_cell = _balance(plain, np.full(len(cells), fill_value=True), request, 0.0, epsilon)
    parameters: Parameters = {}
    for turn in range(_ROUNDS):
        before, parameters = parameters, mechanism.parameters(occupancy, cells, of_cell)
        if turn and _same(before, parameters):
            break
        design = mechanism.design(occupancy, cells, parameters)
        selecting = mechanism.range.selecting(design, epsilon)
        each = selecting if mechanism.range.selects == "per cell" else 0.0
        noise_only = 1.0 - selecting if mechanism.range.selects == "for all" else 1.0
        # Where nobody counts nobody pays for noise: the others share the loss.
        costly = (design.largest > 0) | (each > 0)
        of_cell[costly] = _balance(design, costly, request, each, noise_only * epsilon)
    noise = design.largest / ((1 - each) * of_cell)
    relative = np.where(design.largest > 0, noise, _LEAST_NOISE)
    bits = lattice_bits(*_most(design, epsilon))
    sharp = _selection_scale(mechanism.range, design, selecting, of_cell, epsilon, bits)
    queries = Queries(design, request.statistics)
    relative = fit(relative, bits, limit, Losses(mechanism, queries, sharp, bits))
    return PlanFacts(
        occupancy=occupancy,
        lattice=lattice,
        request=request,
        status=status,
        relative_scale=relative,
        lattice_bits=bits,
        parameters=mechanism.range.tune(design, parameters, epsilon, relative, selecting),
        selection_scale=sharp,
        built=queries,
    )


def _same(one: Parameters, other: Parameters) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def _balance(
    design: Design, costly: NDArray[np.bool_], request: Request, selecting: float, epsilon: float
) -> NDArray[np.float64]:
    """Loss of each costly cell: each user pays for selections and for its part of the noise."""
    if not costly.any():
        return np.zeros(0)
    weight = weights_of(design.occupancy, design.cells, request.weights)
    inside, place = costly[design.number], np.cumsum(costly) - 1
    number = design.number[inside]
    part = design.part[inside] / np.where(design.largest > 0, design.largest, 1.0)[number]
    problem = Problem(
        user=design.user[inside],
        number=place[number],
        sensitivity=selecting + (1 - selecting) * part,
        n_users=design.occupancy.n_users,
        weight=weight[costly],
    )
    return np.asarray(epsilon / balanced.solve(problem).noise_scale)


def _most(design: Design, epsilon: float) -> tuple[int, float]:
    """Most cells in which a user counts, and the loss; if nobody does, one cell and 1."""
    users = design.user[design.contribution > 0]
    return (int(np.bincount(users).max()), epsilon) if len(users) else (1, 1.0)


def _selection_scale(
    rule: RangeRule,
    design: Design,
    selecting: float,
    of_cell: NDArray[np.float64],
    epsilon: float,
    bits: int,
) -> NDArray[np.float64]:
    if rule.selects == "nothing":
        return np.zeros(0)
    spent = selecting * (of_cell if rule.selects == "per cell" else np.array([epsilon]))
    # Each selection's loss is rounded up to a step: a user may pay for selections alone.
    spent = np.maximum(spent - 2.0**-bits, spent / 2)
    return round_scale(rule.rounds * 2 * rule.score_sensitivity(design) / spent)
