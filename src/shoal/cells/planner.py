"""Making a plan: the method, the uninformative cells, the lattice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells import clip_user_plan as suppressed
from shoal.cells import contribution_plan as bounded
from shoal.cells import noise_allocation as sharing
from shoal.cells import user_clipped_plan as clipped
from shoal.cells.allocation import equalised
from shoal.cells.allocation.base import LinearProgram
from shoal.cells.allocation.equalised import Equalised
from shoal.cells.count_limits import check_counts, check_weights
from shoal.cells.most_cells import most_cells
from shoal.cells.noise_allocation import GUESS
from shoal.cells.optimal import plan as optimal
from shoal.cells.request_rules import check_labels, public_status
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.plan_parts import PlanParts
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice


def decide(occupancy: Counts, lattice: Lattice, request: Request) -> PlanFacts:
    """Which cells are released and with how much noise.

    Raises:
        InputError: No cell is left, a cell is uninformative and the request was to refuse, or a
        weight
            names no cell.
    """
    check_labels(occupancy, request)
    check_counts(occupancy, lattice)
    check_weights(request, occupancy, lattice)
    status = public_status(occupancy, request)
    if request.max_error is not None:
        return most_cells(
            occupancy, request, status, lambda each: _solve(occupancy, lattice, request, each)
        )
    if request.parts.allocation == LinearProgram("equal") and request.uninformative == "drop":
        return _fewest_left_out(occupancy, lattice, request, status)
    while True:
        cells = np.flatnonzero(status == "released")
        facts = _solve(occupancy, lattice, request, status)
        error = facts.cell_error
        if request.uninformative == "keep" or not (error >= GUESS).any():
            return facts
        if request.uninformative == "refuse":
            raise _uninformative(occupancy, cells, error)
        status[cells[_to_leave_out(facts)]] = "uninformative"


def _solve(
    occupancy: Counts, lattice: Lattice, request: Request, status: NDArray[np.object_]
) -> PlanFacts:
    cells = np.flatnonzero(status == "released")
    if len(cells) == 0:
        raise _nothing_left(request)
    return _solver(request.parts)(occupancy, lattice, request, cells, tuple(status))


def _solver(parts: PlanParts) -> Callable[..., PlanFacts]:
    """Who plans these parts: by their allocation, and for shared noise by their contributions."""
    if isinstance(parts.allocation, LinearProgram):
        return optimal.make_plan
    if parts.range.of_vectors:
        return clipped.solve
    if parts.allocation.by_cell:
        return bounded.solve
    return sharing.solve if parts.shares else suppressed.solve


def _fewest_left_out(
    occupancy: Counts, lattice: Lattice, request: Request, status: NDArray[np.object_]
) -> PlanFacts:
    """An optimal plan of equal errors, without the first few of the cells that cost most.

    All are uninformative or none is. The order is that in which an equalised plan would give cells
    up; how many, by bisection.
    """
    facts = _solve(occupancy, lattice, request, status)
    if not _uninformative_cells(facts):
        return facts
    cells = np.flatnonzero(status == "released")
    order = order_of_leaving(occupancy, lattice, request, status)
    few, enough = 0, len(cells)
    while enough - few > 1:
        middle = (few + enough) // 2
        fewer = status.copy()
        fewer[cells[order[:middle]]] = "uninformative"
        tried = _solve(occupancy, lattice, request, fewer)
        if _uninformative_cells(tried):
            few = middle
        else:
            enough, facts = middle, tried
    if enough == len(cells):
        raise _nothing_left(request)
    return facts


def order_of_leaving(
    occupancy: Counts, lattice: Lattice, request: Request, status: NDArray[np.object_]
) -> NDArray[np.int64]:
    """In which order an equalised plan would give up the released cells, by their positions."""
    quick = replace(request, method="equalised", settings={}, weights={})
    return equalised.to_leave_out(_solve(occupancy, lattice, quick, status).problem, 0.0)


def _uninformative_cells(facts: PlanFacts) -> bool:
    return bool((facts.cell_error >= GUESS).any())


def _to_leave_out(facts: PlanFacts) -> NDArray[np.int64]:
    error = facts.cell_error
    if isinstance(facts.parts.allocation, Equalised):
        problem, power = facts.problem, 2 if facts.gaussian else 1
        total = float(problem.loss(np.ones(problem.n_numbers)).max())
        return equalised.to_leave_out(problem, total * (GUESS / float(error.max())) ** power)
    # The worse half at a time: what the first ones free may save the others.
    uninformative = int((error >= GUESS).sum())
    return np.argsort(-error, kind="stable")[: (uninformative + 1) // 2]


def _nothing_left(request: Request) -> InputError:
    return InputError(
        "a plan without a single cell",
        "at least one cell that is better than guessing and meets the public rules",
        f"raise epsilon, use larger cells, or lower min_users={request.min_users} and "
        f'min_records={request.min_records}; uninformative="keep" plans all the same',
    )


def _uninformative(
    occupancy: Counts, cells: NDArray[np.int64], error: NDArray[np.float64]
) -> InputError:
    bad = np.flatnonzero(error >= GUESS)
    return InputError(
        f"{len(bad)} uninformative cells, such as {occupancy.labels[cells[bad[0]]]!r}",
        "cells whose worst-case error is below half the width",
        'raise epsilon, use larger cells, or let uninformative="drop" leave them out',
    )
