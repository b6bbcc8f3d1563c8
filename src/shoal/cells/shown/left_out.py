"""Why cells are left out, in words: counts below a public rule, or the budget that they need."""

from collections.abc import Iterator

import numpy as np

from shoal.arrays import Floats, Ints, by_cell, largest
from shoal.cells.estimates.typical_error import errors_compared
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.weights import Weights, every_record
from shoal.files.text_table import counted

# For their errors; all others are left out by a public rule.
_FOR_ERRORS = ("uninformative", "error too large")
_SLIGHTLY = 1.15
_MOST = 1e4


def reasons(plan: Facts) -> list[str]:
    """Returns why each cell is left out, in a few words; empty for the planned ones."""
    request = plan.request
    times = dict(zip(*_left_out_for_error(plan), strict=True))
    known = {
        "planned": "",
        "too few users": f"fewer than {request.min_users:,}",
        "too few records": f"fewer than {request.min_records:,}",
    }
    return [_times(times[at]) if at in times else known[s] for at, s in enumerate(plan.status)]


def counted_out(plan: Facts) -> Iterator[str]:
    """How many cells each public rule leaves out, in a sentence: all that readers see of them."""
    rules = {"users": plan.request.min_users, "records": plan.request.min_records}
    for what, least in rules.items():
        if many := plan.status.count(f"too few {what}"):
            are = "is" if many == 1 else "are"
            yield f"{counted(many, 'cell')} with fewer than {least:,} {what} {are} left out"


def _left_out_for_error(plan: Facts) -> tuple[list[int], list[float]]:
    """Cells left out for their errors, and the budgets they need, in budgets of the plan."""
    cells = np.flatnonzero(np.isin(np.array(plan.status, dtype=object), _FOR_ERRORS))
    if not len(cells):
        return [], []
    return cells.tolist(), budgets_needed(plan, cells).tolist()


def budgets_needed(plan: Facts, cells: Ints) -> Floats:
    """The budget with which cells would be planned, over the plan's: the largest loss of a user.

    The planned cells keep their noise; the cell, and those that need less by themselves, get the
    noise whose error is the largest allowed.
    """
    weights = every_record(plan.counts, cells)
    joint = plan.decision.joint
    numbers = ReleasedStatistics(weights, plan.statistics, joint=joint, gaussian=plan.gaussian)
    shape = numbers.shape(least_sum=False)
    cost = numbers.member_losses(shape)
    noise = _allowed(plan, numbers.per_statistic(shape).max(axis=0))
    if plan.gaussian:
        added = cost / (2 * noise[weights.cell] ** 2)
    else:
        # A vector of users is charged for both ends of a ball.
        added = cost / noise[weights.cell] * (2 if plan.decision.method.range.of_vectors else 1)
    found = _largest_with(plan.user_losses, weights, added) / float(plan.user_losses.max())
    return np.sqrt(found) if plan.gaussian else found


def _largest_with(loss: Floats, weights: Weights, added: Floats) -> Floats:
    """The largest loss of a user with each cell and all that need less by themselves."""
    alone = largest(weights.cell, loss[weights.user] + added, weights.n_cells)
    total = loss.copy()
    most = 0.0
    found = np.zeros(weights.n_cells)
    rows = by_cell(weights.cell, weights.n_cells)
    for cell in np.argsort(alone, kind="stable").tolist():
        own = rows[cell]
        total[weights.user[own]] += added[own]
        found[cell] = most = max(most, float(total[weights.user[own]].max()))
    return found


def _allowed(plan: Facts, largest: Floats) -> Floats:
    """How often the noise of cells may be that of a shape whose largest scale is given."""
    most = plan.request.largest_error or MIDPOINT_ERROR
    if plan.certified:
        unit = float(plan.mean_noise.max() / plan.decision.scale.max())
        return most / (unit * largest)
    error = plan.cell_error if plan.request.max_error is None else errors_compared(plan)
    noisiest = int(plan.decision.scale.argmax())
    allowed = plan.decision.scale[noisiest] * most / max(float(error[noisiest]), 1e-300)
    return np.asarray(allowed / largest)


def _times(factor: float) -> str:
    if factor < _SLIGHTLY:
        return "needs slightly more than the budget"
    if factor > _MOST:
        return f"needs more than {_MOST:,.0f} times the budget"
    return f"needs about {float(f'{factor:.2g}'):,.10g} times the budget"
