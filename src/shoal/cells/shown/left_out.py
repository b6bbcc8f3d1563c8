"""Says why cells are left out: counts below a public rule, or the budget that they need."""

from collections.abc import Iterator, Mapping

import numpy as np

from shoal.arrays import Floats, Ints, by_cell, largest
from shoal.cells.estimates.typical_error import errors_compared
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.decision import PublicRules
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.weights import Weights, every_record
from shoal.files.text_table import counted

# The statuses of cells that are left out for their errors; others are left out by a public rule.
_FOR_ERRORS = ("uninformative", "error too large")
# Budgets up to this multiple of the plan's are said to be slightly more.
_SLIGHTLY = 1.15
# The largest multiple of the budget that is said as a number.
_MOST = 1e4


def reasons(plan: Facts) -> list[str]:
    """Returns why each cell is left out, in a few words; empty for the planned ones."""
    request = plan.request
    times = dict(zip(*_left_out_for_error(plan), strict=True))
    by_status = {
        "planned": "",
        "too few users": f"fewer than {request.min_users:,}",
        "too few records": f"fewer than {request.min_records:,}",
    }
    return [
        _times(times[cell]) if cell in times else by_status[status]
        for cell, status in enumerate(plan.status)
    ]


def counted_out(request: PublicRules, left_out: Mapping[str, int]) -> Iterator[str]:
    """Yields a sentence on how many cells each public rule leaves out; readers see no more."""
    rules = {"users": request.min_users, "records": request.min_records}
    for what, least in rules.items():
        many = left_out.get(f"too few {what}")
        if many:
            are = "is" if many == 1 else "are"
            yield f"{counted(many, 'cell')} with fewer than {least:,} {what} {are} left out"


def _left_out_for_error(plan: Facts) -> tuple[list[int], list[float]]:
    """Returns the cells left out for their errors, and the multiples of the budget they need."""
    cells = np.flatnonzero(np.isin(np.array(plan.status, dtype=object), _FOR_ERRORS))
    if not len(cells):
        return [], []
    return cells.tolist(), budgets_needed(plan, cells).tolist()


def budgets_needed(plan: Facts, cells: Ints) -> Floats:
    """Returns the budget with which each cell would be planned, divided by the plan's budget.

    Planned cells keep their noise. The cell, and all that need less by themselves, get the noise
    with the largest allowed error; the budget is then the largest loss of a user.
    """
    weights = every_record(plan.counts, cells)
    joint = plan.decision.joint
    numbers = ReleasedStatistics(weights, plan.statistics, joint=joint, law=plan.law)
    shape = numbers.shape(least_sum=False)
    cost = numbers.member_losses(shape)
    noise = _allowed(plan, numbers.per_statistic(shape).max(axis=0))
    # A user's vector in a ball is charged for the diameter.
    radii = 2 if plan.of_vectors else 1
    # What each cell adds to the loss of its users, which is rho with Gaussian noise.
    power = plan.law.power
    added = cost / noise[weights.cell] ** power * (radii**power / power)
    ratio = _largest_with(plan.user_losses, weights, added) / float(plan.user_losses.max())
    # Rho grows about with the square of epsilon.
    return plan.law.root(ratio)


def _largest_with(loss: Floats, weights: Weights, added: Floats) -> Floats:
    """Returns the largest loss of a user if each cell and all that need less are planned too.

    `loss` has the loss of each user without them, and `added` what each member's cell adds.
    """
    alone = largest(weights.cell, loss[weights.user] + added, weights.n_cells)
    total = loss.copy()
    largest_so_far = 0.0
    largest_with = np.zeros(weights.n_cells)
    members_of = by_cell(weights.cell, weights.n_cells)
    for cell in np.argsort(alone, kind="stable").tolist():
        inside = members_of[cell]
        users = weights.user[inside]
        total[users] += added[inside]
        largest_so_far = max(largest_so_far, float(total[users].max()))
        largest_with[cell] = largest_so_far
    return largest_with


def _allowed(plan: Facts, largest: Floats) -> Floats:
    """Returns the factor by which each cell's noise scales, the largest being `largest`, may grow.

    A cell then has the largest allowed error.
    """
    largest_error = plan.request.largest_error or MIDPOINT_ERROR
    if plan.certified:
        # The error of noise with a scale of 1.
        unit = float(plan.mean_noise.max() / plan.decision.scale.max())
        return largest_error / (unit * largest)
    error = plan.cell_error if plan.request.max_error is None else errors_compared(plan)
    # Errors are taken to be in proportion to noise scales, as in the noisiest planned cell.
    noisiest = int(plan.decision.scale.argmax())
    allowed = plan.decision.scale[noisiest] * largest_error / max(float(error[noisiest]), 1e-300)
    return np.asarray(allowed / largest)


def _times(factor: float) -> str:
    """Returns in words that a cell needs a multiple of the budget."""
    if factor < _SLIGHTLY:
        return "needs slightly more than the budget"
    if factor > _MOST:
        return f"needs more than {_MOST:,.0f} times the budget"
    return f"needs about {float(f'{factor:.2g}'):,.10g} times the budget"
