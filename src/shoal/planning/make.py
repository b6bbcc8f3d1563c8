"""Making a plan: public rules, the method, the worthless cells, the lattice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.planning import bounded, optimum, sharing, suppressed
from shoal.planning.facts import PlanFacts, check_counts, check_weights
from shoal.planning.methods import equalised
from shoal.planning.request import SHARINGS
from shoal.planning.sharing import GUESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.planning.request import Request
    from shoal.records.lattice import Lattice
    from shoal.records.occupancy import Occupancy

_SOLVE = {
    **dict.fromkeys(SHARINGS, sharing.solve),
    "clip_user": suppressed.solve,
    "optimal": optimum.solve,
}


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
    check_weights(request, occupancy, lattice)
    status = _public_rules(occupancy, request)
    alike = request.method == "optimal" and request.settings.get("targets") != "balanced"
    if alike and request.worthless == "drop":
        return _fewest_left_out(occupancy, lattice, request, status)
    while True:
        cells = np.flatnonzero(status == "released")
        facts = _solve(occupancy, lattice, request, status)
        error = facts.cell_error
        if request.worthless == "keep" or not (error >= GUESS).any():
            return facts
        if request.worthless == "refuse":
            raise _worthless(occupancy, cells, error)
        status[cells[_to_leave_out(facts)]] = "worthless"


def follows(facts: PlanFacts) -> bool:
    """Whether a plan's parameters are those that its request gives for its counts and cells.

    Loss and errors are computed from a plan's own numbers, but a cap, rank or radius that another
    request would give changes what is drawn. Weights by linear programming are proved by prices.

    Args:
        facts: A plan that was read.

    Raises:
        InputError: The request gives no plan at all.
    """
    if facts.method == "optimal":
        return True
    status = np.array(facts.status, dtype=object)
    own = _solve(facts.occupancy, facts.lattice, facts.request, status)
    return (
        own.parameters.keys() == facts.parameters.keys()
        and all(
            np.array_equal(own.parameters[name], facts.parameters[name]) for name in own.parameters
        )
        and own.lattice_bits == facts.lattice_bits
        and _close(own.selection_scale, facts.selection_scale)
        and _close(own.relative_scale, facts.relative_scale)
    )


def _close(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> bool:
    """Equal but for what the arithmetic of another machine may differ by."""
    return mine.shape == theirs.shape and bool(np.allclose(mine, theirs, rtol=1e-8, atol=0))


def _solve(
    occupancy: Occupancy, lattice: Lattice, request: Request, status: NDArray[np.object_]
) -> PlanFacts:
    cells = np.flatnonzero(status == "released")
    if len(cells) == 0:
        raise _nothing_left(request)
    solve = _SOLVE.get(request.method, bounded.solve)
    return solve(occupancy, lattice, request, cells, tuple(status))


def _fewest_left_out(
    occupancy: Occupancy, lattice: Lattice, request: Request, status: NDArray[np.object_]
) -> PlanFacts:
    """An optimal plan whose cells err alike: without the first few of those that cost most.

    All are worthless or none is. The order is that in which an equalised plan would give cells up;
    how many, by bisection.
    """
    facts = _solve(occupancy, lattice, request, status)
    if not _worthless_cells(facts):
        return facts
    cells = np.flatnonzero(status == "released")
    quick = replace(request, method="equalised", settings={}, weights={})
    order = equalised.to_leave_out(_solve(occupancy, lattice, quick, status).problem, 0.0)
    few, enough = 0, len(cells)
    while enough - few > 1:
        middle = (few + enough) // 2
        fewer = status.copy()
        fewer[cells[order[:middle]]] = "worthless"
        tried = _solve(occupancy, lattice, request, fewer)
        if _worthless_cells(tried):
            few = middle
        else:
            enough, facts = middle, tried
    if enough == len(cells):
        raise _nothing_left(request)
    return facts


def _worthless_cells(facts: PlanFacts) -> bool:
    return bool((facts.cell_error >= GUESS).any())


def _public_rules(occupancy: Occupancy, request: Request) -> NDArray[np.object_]:
    status = np.full(occupancy.n_cells, "released", dtype=object)
    status[occupancy.totals < request.min_records] = "too few records"
    status[occupancy.users_per_cell < request.min_users] = "too few users"
    return status


def _to_leave_out(facts: PlanFacts) -> NDArray[np.int64]:
    error = facts.cell_error
    if facts.method == "equalised":
        problem, power = facts.problem, 2 if facts.gaussian else 1
        total = float(problem.loss(np.ones(problem.n_numbers)).max())
        return equalised.to_leave_out(problem, total * (GUESS / float(error.max())) ** power)
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
