"""Why cells are left out, in words: counts below a public rule, or the budget that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.largest_error import HALF, errors_compared
from shoal.cells.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design
    from shoal.cells.plan_facts import PlanFacts

# For their errors; all others are left out by a public rule.
_FOR_ERRORS = ("uninformative", "error too large")
_SLIGHTLY, _MOST = 1.15, 1e4


def reasons(plan: PlanFacts) -> list[str]:
    """Why each cell is left out, in a few words; empty for the released ones.

    Args:
        plan: Of any kind.

    Returns:
        One text a cell of the occupancy.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts([1, 2, 3], ["a", "a", "b"], [1, 1, 1])
        >>> reasons(shoal.plan(counts, bounds=(0, 10), epsilon=8, method="balanced", min_users=2))
        ['', '1 user, at least 2 asked for']
    """
    request, occupancy = plan.request, plan.occupancy
    times = dict(zip(*_dear(plan), strict=True))
    say: dict[str, Callable[[int], str]] = {
        "too few users": lambda at: _few(
            int(occupancy.users_per_cell[at]), "user", request.min_users
        ),
        "too few records": lambda at: _few(
            int(occupancy.totals[at]), "record", request.min_records
        ),
        **dict.fromkeys(_FOR_ERRORS, lambda at: _times(times[at])),
        "released": lambda _: "",
    }
    return [say[each](at) for at, each in enumerate(plan.status)]


def _dear(plan: PlanFacts) -> tuple[list[int], list[float]]:
    """Cells left out for their errors, and the budgets they need, in budgets of the plan."""
    cells = np.flatnonzero(np.isin(np.array(plan.status, dtype=object), _FOR_ERRORS))
    if not len(cells):
        return [], []
    return cells.tolist(), budgets_needed(plan, cells).tolist()


def budgets_needed(plan: PlanFacts, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """The budget with which cells would be released, over the plan's: the largest loss of a user.

    The released cells keep their noise, the cell and those that need less by themselves get the
    noise whose error is the largest allowed: max_l (loss_l + sum_h D_hl/b_h)/epsilon, every record
    counted. Where errors are certified b follows from the error; else it is the largest noise of a
    released cell, times what its error leaves of the largest. Losses of Gaussian noise add up as
    squares.

    Args:
        plan: Of any kind.
        cells: Positions of cells that are left out.

    Returns:
        Shape (cells,), without a unit; about what a plan of the same method needs, which shares
        noise anew.
    """
    design = EveryRecord().design(plan.occupancy, cells, {})
    queries = Queries(design, plan.statistics, joint=plan.joint, gaussian=plan.gaussian)
    shape = queries.shape(least_sum=False)
    cost = queries.member_losses(shape)
    noise = _allowed(plan, queries.per_statistic(shape).max(axis=0))
    if plan.gaussian:
        added = cost / (2 * noise[design.number] ** 2)
    else:
        # A vector of users is charged for both ends of a ball.
        added = cost / noise[design.number] * (2 if plan.mechanism.range.of_vectors else 1)
    found = _largest_with(plan.user_losses, design, added) / float(plan.user_losses.max())
    return np.sqrt(found) if plan.gaussian else found


def _largest_with(
    loss: NDArray[np.float64], design: Design, added: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest loss of a user with each cell and all that need less by themselves."""
    alone = np.zeros(design.n_numbers)
    np.maximum.at(alone, design.number, loss[design.user] + added)
    rows = np.argsort(design.number, kind="stable")
    ends = np.searchsorted(design.number[rows], np.arange(design.n_numbers + 1))
    total, largest, found = loss.copy(), 0.0, np.zeros(design.n_numbers)
    for cell in np.argsort(alone, kind="stable").tolist():
        own = rows[ends[cell] : ends[cell + 1]]
        total[design.user[own]] += added[own]
        found[cell] = largest = max(largest, float(total[design.user[own]].max()))
    return found


def _allowed(plan: PlanFacts, largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often the noise of cells may be that of a shape whose largest scale is given."""
    most = HALF if plan.request.max_error is None else plan.request.max_error
    if plan.certified:
        unit = float(plan.mean_noise.max() / plan.relative_scale.max())
        return most / (unit * largest)
    error = plan.cell_error if plan.request.max_error is None else errors_compared(plan)
    noisiest = int(plan.relative_scale.argmax())
    allowed = plan.relative_scale[noisiest] * most / max(float(error[noisiest]), 1e-300)
    return np.asarray(allowed / largest)


def _few(got: int, what: str, asked: int) -> str:
    return f"{got:,} {what}{'s' if got != 1 else ''}, at least {asked:,} asked for"


def _times(factor: float) -> str:
    if factor < _SLIGHTLY:
        return "needs slightly more than the budget"
    if factor > _MOST:
        return f"needs more than {_MOST:,.0f} times the budget"
    return f"needs about {_rounded(factor)} times the budget"


def _rounded(factor: float) -> str:
    """Two digits, without an exponent."""
    return f"{float(f'{factor:.2g}'):,.10g}"
