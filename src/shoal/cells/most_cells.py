"""As many cells as keep a largest error: the first few of a public order, by bisection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.cell_order import keeping_order
from shoal.cells.largest_error import errors_compared, within
from shoal.errors import InputError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts

# What a cell is called that is left out for its error.
TOO_LARGE = "error too large"


def most_cells(
    occupancy: Counts,
    request: Request,
    status: NDArray[np.object_],
    solve: Callable[[NDArray[np.object_]], PlanFacts],
) -> PlanFacts:
    """The plan of the first k cells of the order, k as large as bisection finds one that keeps it.

    Every plan that is tried is that of the request's method. If one that keeps the error at a
    budget keeps it at every larger one, k does not fall as the budget grows, whatever else is true
    of errors: bisection goes on to the right wherever it did before.

    Args:
        occupancy: The counts.
        request: With a largest error.
        status: By the public rules.
        solve: Makes the plan of what is released.

    Raises:
        InputError: Not even one cell keeps the error.
    """
    facts = solve(status)
    if within(facts):
        return facts
    allowed = status == "released"
    order = keeping_order(occupancy, request)
    order = order[allowed[order]]
    found, tried = None, facts
    few, many = 0, len(order)
    while many - few > 1:
        middle = (few + many) // 2
        tried = solve(_first(order, middle, status))
        few, many, found = (middle, many, tried) if within(tried) else (few, middle, found)
    if found is None:
        raise _none_keeps(tried, request)
    return found


def first_ones_released(facts: PlanFacts, status: NDArray[np.object_]) -> bool:
    """Whether the released cells are the first of the order among those that the rules allow.

    Args:
        facts: A plan with a largest error.
        status: By the public rules.
    """
    order = keeping_order(facts.occupancy, facts.request)
    order = order[status[order] == "released"]
    kept = np.sort(order[: len(facts.released)])
    return bool(np.array_equal(kept, facts.released))


def _first(order: NDArray[np.int64], size: int, status: NDArray[np.object_]) -> NDArray[np.object_]:
    found = status.copy()
    found[order[size:]] = TOO_LARGE
    return found


def _none_keeps(tried: PlanFacts, request: Request) -> InputError:
    error = errors_compared(tried)
    best = int(error.argmin())
    label = printable(tried.occupancy.labels[int(tried.released[best])])
    most, least = (_in_its_unit(tried, part) for part in (request.max_error or 0.0, error[best]))
    return InputError(
        f"no cell with an error of at most {most}",
        f"at least one; that of {label} is {least}",
        "raise epsilon or max_error, or use larger cells",
    )


def _in_its_unit(tried: PlanFacts, part: float) -> str:
    """An error in the unit of the statistic, if there is one alone, and over its range."""
    if len(tried.statistics) > 1:
        return f"{part:.3g} of the range"
    return f"{part * float(tried.statistic_range[0]):.3g} ({part:.3g} of the range)"
