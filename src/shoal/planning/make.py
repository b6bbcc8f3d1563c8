"""Making a plan: public rules, the method, the worthless cells, the lattice."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.planning import bounded
from shoal.planning.facts import PlanFacts, check_counts, mechanism_of, problem_of
from shoal.planning.fit import fit, lattice_bits
from shoal.planning.losses import Losses
from shoal.planning.methods import balanced, equalised, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.mechanisms.mean.design import Design
    from shoal.planning.problem import Allocation, Problem
    from shoal.planning.request import Request
    from shoal.records.lattice import Lattice
    from shoal.records.occupancy import Occupancy

GUESS = 0.5
_SOLVE = {"uniform": uniform.solve, "equalised": equalised.solve, "balanced": balanced.solve}


def decide(occupancy: Occupancy, lattice: Lattice, request: Request) -> PlanFacts:
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
    check_counts(occupancy, lattice)
    status = _public_rules(occupancy, request)
    while True:
        cells = np.flatnonzero(status == "released")
        if len(cells) == 0:
            raise _nothing_left(request)
        solve = _shared if request.shares else bounded.solve
        facts = solve(occupancy, lattice, request, cells, tuple(status))
        error = facts.relative_error
        if request.worthless == "keep" or not (error >= GUESS).any():
            return facts
        if request.worthless == "refuse":
            raise _worthless(occupancy, cells, error)
        status[cells[_to_leave_out(facts)]] = "worthless"


def _public_rules(occupancy: Occupancy, request: Request) -> NDArray[np.object_]:
    status = np.full(occupancy.n_cells, "released", dtype=object)
    status[occupancy.totals < request.min_records] = "too few records"
    status[occupancy.users_per_cell < request.min_users] = "too few users"
    return status


def _shared(
    occupancy: Occupancy,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[str, ...],
) -> PlanFacts:
    mechanism = mechanism_of(request, lattice)
    design = mechanism.design(occupancy, cells, {})
    problem = problem_of(design, request.weights)
    allocation = _SOLVE[request.method](problem)
    epsilon = request.epsilon or _least_epsilon(allocation, lattice, request)
    bits = lattice_bits(problem.most_numbers, float(epsilon))
    losses = Losses(mechanism, design, np.zeros(0), bits)
    scale = fit(allocation.noise_scale / float(epsilon), bits, epsilon, losses)
    return _facts(
        occupancy, lattice, request, design, problem, status,
        relative_scale=scale, lattice_bits=bits, prices=allocation.prices,
    )  # fmt: skip


def _facts(
    occupancy: Occupancy,
    lattice: Lattice,
    request: Request,
    design: Design,
    problem: Problem,
    status: tuple[str, ...],
    **numbers: object,
) -> PlanFacts:
    facts = PlanFacts(occupancy, lattice, request, status, **numbers)  # type: ignore[arg-type]
    # What the planner built is what the facts would build again.
    vars(facts).update(design=design, problem=problem)
    return facts


def _least_epsilon(allocation: Allocation, lattice: Lattice, request: Request) -> Fraction:
    width = lattice.bounds.width
    wanted = (request.error or 0.0) / float(width)
    # Rounding to ticks, then a margin for lattice steps and for scales rounded upwards.
    noise = (wanted - float(lattice.rounding)) / (1 + 2.0**-19)
    if noise <= 0 or wanted >= GUESS:
        raise InputError(
            f"a worst-case error of {request.error:g}",
            f"above a tick and below half the width ({float(width) / 2:g})",
            "ask for another error; half the width needs no data at all",
        )
    return Fraction(float(allocation.noise_scale.max()) / noise)


def _to_leave_out(facts: PlanFacts) -> NDArray[np.int64]:
    error = facts.relative_error
    if facts.method == "equalised":
        problem = facts.problem
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
