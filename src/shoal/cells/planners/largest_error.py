"""Plans as many cells, in a public order, as keep the largest error that was asked for.

The error is the worst-case error where it is certified, else the typical one (docs/plans.md).
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

# The part by which another machine's logarithms and simulated sums may differ.
_CLOSE = 1e-6
# An eighth of the remaining cells is given up at a time.
_PART = 8


def within(plan: Facts) -> bool:
    """Returns whether every planned cell keeps the largest error, if any, and beats guessing."""
    most = plan.request.largest_error
    if most is None:
        return True
    if (plan.cell_error >= MIDPOINT_ERROR).any():
        return False
    return bool((errors_compared(plan) <= most * (1 + _CLOSE)).all())


def most_cells(task: Task, make: Callable[[Task], Facts]) -> Facts:
    """Returns the plan of the first k cells of the order, with the largest k that bisection finds.

    If a plan that keeps the error at a budget keeps it at every larger one, a larger budget never
    plans fewer cells.
    """
    plan = make(task)
    if within(plan):
        return plan
    status = np.array(task.status, dtype=object)
    order = keeping_order(task)
    order = order[(status == "planned")[order]]
    best = None
    tried = plan
    # `few` cells keep the error, or are none; `many` cells do not keep it.
    few = 0
    many = len(order)
    while many - few > 1:
        middle = (few + many) // 2
        fewer = status.copy()
        fewer[order[middle:]] = "error too large"
        tried = make(task.with_status(fewer))
        if within(tried):
            few = middle
            best = tried
        else:
            many = middle
    if best is None:
        raise _none_keeps(tried)
    return best


def keeping_order(task: Task) -> Ints:
    """Returns all cells in the order in which to keep them; counts and importance alone decide.

    Noise is balanced among the remaining cells, and the eighth of them with the most noise is given
    up; this is repeated, and the cells that are given up first come last. Cells that public rules
    leave out take part, so that a larger budget releases the same cells and more.
    """
    left = np.arange(task.counts.n_cells)
    given_up = []
    while len(left) > 1:
        rising = left[np.argsort(_noise(task, left), kind="stable")]
        n_stay = len(left) - max(1, len(left) // _PART)
        given_up.append(rising[n_stay:])
        left = np.sort(rising[:n_stay])
    return np.concatenate([left, *reversed(given_up)])


def _noise(task: Task, cells: Ints) -> Floats:
    """Returns the logarithms of the cells' noise scales, balanced as for means."""
    member, _ = members(task.counts, cells)
    weight = task.counts.count[member]
    if task.method.selects:
        # With a private range users are taken to count alike.
        weight = np.ones_like(weight)
    numbers = ReleasedStatistics(linear(task.counts, cells, weight), (Mean(),))
    important = importance(task.counts, cells, task.request.weights)
    problem = numbers.problem(important, np.ones(len(cells)))
    # The last places of logarithms differ between machines, and must not decide the order.
    return np.asarray(np.round(np.log2(balanced(problem).noise_scale), 6))


def _none_keeps(tried: Facts) -> InputError:
    """Returns the error of a request whose largest error no cell can keep."""
    error = errors_compared(tried)
    allowed = tried.request.largest_error or 0.0
    best = int(error.argmin())
    label = printable(tried.counts.labels[int(tried.planned[best])])
    return InputError(
        f"no cell has an error of at most {part_of_range(tried, allowed)}",
        "raise epsilon or max_error, or use larger cells: the smallest error, in the cell "
        f"{label}, is {part_of_range(tried, float(error[best]))}",
    )
