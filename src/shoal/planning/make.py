"""Making a plan: public rules, the method, the worthless cells, the lattice."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.mechanisms.mean.baseline import BaselineMean
from shoal.planning.facts import Status, make_problem, steps_lost
from shoal.planning.fit import fit, lattice_bits
from shoal.planning.methods import balanced, equalised, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.planning.problem import Allocation, Problem
    from shoal.planning.request import Request
    from shoal.records.lattice import Lattice
    from shoal.records.occupancy import Occupancy

GUESS = 0.5
_SOLVE = {"uniform": uniform.solve, "equalised": equalised.solve, "balanced": balanced.solve}


@dataclass(frozen=True, eq=False)
class Decision:
    """What the planner decided; the variable part of a plan."""

    status: tuple[Status, ...]
    relative_scale: NDArray[np.float64]
    lattice_bits: int
    prices: NDArray[np.float64] | None


def decide(occupancy: Occupancy, lattice: Lattice, request: Request) -> Decision:
    """Which cells are released and with how much noise.

    Raises:
        InputError: No cell is left, a cell is worthless and the wish was to refuse, or a weight
            names no cell.
    """
    unknown = set(request.weights) - set(occupancy.labels) if request.weights else set()
    if unknown:
        raise InputError(
            f"a weight for the unknown cell {min(unknown)!r}",
            f"labels of the {occupancy.n_cells} cells, such as {occupancy.labels[0]!r}",
            "check the spelling",
        )
    status = _public_rules(occupancy, request)
    mechanism = BaselineMean(lattice)
    while True:
        cells = np.flatnonzero(status == "released")
        if len(cells) == 0:
            raise _nothing_left(request)
        problem = make_problem(mechanism, occupancy, cells, request.weights)
        decision = _solve(problem, mechanism, occupancy, request, cells, status)
        error = _relative_error(mechanism, decision)
        if request.worthless == "keep" or not (error >= GUESS).any():
            return decision
        if request.worthless == "refuse":
            raise _worthless(occupancy, cells, error)
        status[cells[_to_leave_out(problem, request, error)]] = "worthless"


def _public_rules(occupancy: Occupancy, request: Request) -> NDArray[np.object_]:
    status = np.full(occupancy.n_cells, "released", dtype=object)
    status[occupancy.totals < request.min_records] = "too few records"
    status[occupancy.users_per_cell < request.min_users] = "too few users"
    return status


def _solve(
    problem: Problem,
    mechanism: BaselineMean,
    occupancy: Occupancy,
    request: Request,
    cells: NDArray[np.int64],
    status: NDArray[np.object_],
) -> Decision:
    allocation = _SOLVE[request.method](problem)
    epsilon = request.epsilon or _least_epsilon(allocation, mechanism, request)
    bits = lattice_bits(problem.most_numbers, float(epsilon))

    def loss(scale: NDArray[np.float64]) -> int:
        return int(steps_lost(mechanism, occupancy, cells, scale, bits).max())

    scale = fit(allocation.noise_scale / float(epsilon), bits, epsilon, loss)
    return Decision(tuple(status), scale, bits, allocation.prices)


def _least_epsilon(allocation: Allocation, mechanism: BaselineMean, request: Request) -> Fraction:
    width = mechanism.lattice.bounds.width
    wanted = (request.error or 0.0) / float(width)
    # Rounding to ticks, then a margin for lattice steps and for scales rounded upwards.
    noise = (wanted - float(mechanism.lattice.rounding)) / (1 + 2.0**-19)
    if noise <= 0 or wanted >= GUESS:
        raise InputError(
            f"a worst-case error of {request.error:g}",
            f"above a tick and below half the width ({float(width) / 2:g})",
            "ask for another error; half the width needs no data at all",
        )
    return Fraction(float(allocation.noise_scale.max()) / noise)


def _relative_error(mechanism: BaselineMean, decision: Decision) -> NDArray[np.float64]:
    bias = mechanism.bias_bound(decision.relative_scale, decision.lattice_bits)
    return bias + decision.relative_scale


def _to_leave_out(
    problem: Problem, request: Request, error: NDArray[np.float64]
) -> NDArray[np.int64]:
    if request.method == "equalised":
        total = float(problem.loss(np.ones(problem.n_numbers)).max())
        return equalised.to_leave_out(problem, GUESS * total / float(error.max()))
    # The worse half at a time: what the first ones free may save the others.
    worthless = int((error >= GUESS).sum())
    return np.argsort(-error, kind="stable")[: (worthless + 1) // 2]


def _nothing_left(request: Request) -> InputError:
    return InputError(
        "a plan without a single cell",
        "at least one cell that is better than guessing and meets the public rules",
        f"raise epsilon, use larger cells, or lower min_users={request.min_users} and "
        f'min_records={request.min_records}; worthless="keep" plans all the same',
    )


def _worthless(
    occupancy: Occupancy, cells: NDArray[np.int64], error: NDArray[np.float64]
) -> InputError:
    bad = np.flatnonzero(error >= GUESS)
    return InputError(
        f"{len(bad)} worthless cells, such as {occupancy.labels[cells[bad[0]]]!r}",
        "cells whose worst-case error is below half the width",
        'raise epsilon, use larger cells, or let worthless="drop" leave them out',
    )
