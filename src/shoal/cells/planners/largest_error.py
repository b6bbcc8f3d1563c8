"""The largest error that a planned cell may have: as many cells as keep it, in a public order.

The worst-case error where it is certified, else the typical one (docs/plans.md).
"""

from collections.abc import Callable

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.estimates.typical_error import errors_compared
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.decision import Task, importance
from shoal.cells.facts.facts import Facts, part_of_range
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Mean
from shoal.cells.mechanisms.weights import linear, members
from shoal.errors import InputError, printable
from shoal.theory.allocation import balanced

# Another machine's logarithms and simulated sums.
_CLOSE = 1e-6
# Of the cells that are left, how many go at a time.
_PART = 8


def within(plan: Facts) -> bool:
    """Returns whether no planned cell errs more than was asked for, if anything, or guessing."""
    most = plan.request.largest_error
    if most is None:
        return True
    if (plan.cell_error >= MIDPOINT_ERROR).any():
        return False
    return bool((errors_compared(plan) <= most * (1 + _CLOSE)).all())


def most_cells(task: Task, make: Callable[[Task], Facts]) -> Facts:
    """Returns the plan of the first k cells of the order, k as large as bisection finds.

    If a plan that keeps the error at a budget keeps it at every larger one, k does not fall.
    """
    plan = make(task)
    if within(plan):
        return plan
    status = np.array(task.status, dtype=object)
    order = keeping_order(task)
    order = order[(status == "planned")[order]]
    found = None
    tried = plan
    few = 0
    many = len(order)
    while many - few > 1:
        middle = (few + many) // 2
        fewer = status.copy()
        fewer[order[middle:]] = "error too large"
        tried = make(task.with_status(fewer))
        few, many, found = (middle, many, tried) if within(tried) else (few, middle, found)
    if found is None:
        raise _none_keeps(tried)
    return found


def keeping_order(task: Task) -> Ints:
    """All cells, those first that are given up last: by counts and importance alone.

    Again and again the eighth with the most noise where what is left is shared fairly is given up.
    Cells that public rules leave out are in it: a larger budget releases more of the same cells.
    """
    left = np.arange(task.counts.n_cells)
    given_up = []
    while len(left) > 1:
        rank = np.argsort(_noise(task, left), kind="stable")
        stay = len(left) - max(1, len(left) // _PART)
        given_up.append(left[rank[stay:]])
        left = np.sort(left[rank[:stay]])
    return np.concatenate([left, *reversed(given_up)])


def _noise(task: Task, cells: Ints) -> Floats:
    count = task.counts.count[members(task.counts, cells)[0]]
    weights = linear(task.counts, cells, np.ones_like(count) if task.method.selects else count)
    weight = importance(task.counts, cells, task.request.weights)
    problem = ReleasedStatistics(weights, (Mean(),)).problem(weight, np.ones(len(cells)))
    # The last places of logarithms differ between machines, and must not decide the order.
    return np.asarray(np.round(np.log2(balanced(problem).noise_scale), 6))


def _none_keeps(tried: Facts) -> InputError:
    error = errors_compared(tried)
    most = tried.request.largest_error or 0.0
    best = int(error.argmin())
    label = printable(tried.counts.labels[int(tried.planned[best])])
    return InputError(
        f"no cell has an error of at most {part_of_range(tried, most)}",
        "raise epsilon or max_error, or use larger cells: the smallest error, in the cell "
        f"{label}, is {part_of_range(tried, float(error[best]))}",
    )
