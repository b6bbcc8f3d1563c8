"""Plans Clip-User, in which users leave cells until nobody is in many (paper 000, section V).

Source: docs/theory/cells.md#clip-user.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shoal.arrays import Bools, Floats, Ints, add, largest
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.decision import Task
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.cell_statistics import MEAN, cell_errors, mean_error
from shoal.cells.mechanisms.weights import members
from shoal.cells.planners.shared_noise import finish
from shoal.theory.allocation import balanced

Cost = Callable[[Ints, Ints, Ints], Floats]


class Clipped(NamedTuple):
    """Caps of cells, which memberships are kept, and the most cells in which a user is left."""

    cap: Ints
    kept: Bools
    cells_of_user: int


def clip_user_plan(task: Task) -> Facts:
    """Returns the plan of Clip-User, with the fewest cells of a user that the search finds."""
    limit = task.request.epsilon
    settings = task.method.settings
    assert limit is not None
    epsilon = float(limit)
    clipped = _fewest_cells(task, epsilon)
    parameters = {"cap": clipped.cap, "kept": clipped.kept.astype(np.int64)}
    weights = task.method.weigh(task.counts, task.cells, parameters)
    numbers = ReleasedStatistics(weights, task.request.kinds)
    duals = None
    # Each cell has the loss epsilon divided by the most cells in which a user is left, and each
    # statistic an equal part of that.
    scale = numbers.largest * len(task.request.kinds) * clipped.cells_of_user / epsilon
    if settings.get("noise") == "balanced":
        shape = numbers.shape(least_sum=False)
        allocation = balanced(numbers.problem(task.importance, shape))
        scale = numbers.per_statistic(shape) * allocation.noise_scale / epsilon
        duals = allocation.duals
    return finish(task, numbers, limit, scale.ravel(), parameters=parameters, duals=duals)


def _fewest_cells(task: Task, epsilon: float) -> Clipped:
    """Returns the result of Clip-User with the fewest cells of a user that the search finds.

    Cells may first cost epsilon divided by the most cells of any user. The divisor then falls as
    long as users are left in no more cells than it says.
    """
    member, cell = members(task.counts, task.cells)
    user = task.counts.user[member]
    count = task.counts.count[member]
    forms = [each.in_counts for each in task.request.kinds]
    spare_best = task.method.settings.get("spare") == "best"

    def clip(cells_of_user: int) -> tuple[Bools, int]:
        cost = cell_errors(forms, epsilon / cells_of_user)
        cost_of_one = mean_error(epsilon / cells_of_user) if forms == [MEAN] else None
        kept = clip_user(user, cell, count, cost, cost_of_one=cost_of_one, spare_best=spare_best)
        return kept, int(np.bincount(user[kept]).max())

    # At the number `enough` users are left in no more cells than it says; below `fewest` they are
    # taken to be left in more.
    enough = int(np.bincount(user).max())
    fewest = 1
    kept, left = clip(enough)
    while fewest < enough:
        # The number of cells in which users are left now is tried next, as the most for each user.
        # A cell may cost more loss then, so that fewer users leave it than the new number demands:
        # if users are left in more cells than were tried, the search goes on with one cell more.
        tried = max(fewest, min(left, enough - 1))
        kept_now, left_now = clip(tried)
        if left_now <= tried:
            kept = kept_now
            left = left_now
            enough = tried
        else:
            fewest = tried + 1
    # If users are left in fewer cells than were allowed, each cell may cost more.
    error = cell_errors(forms, epsilon / left)
    cap = caps.after_suppression(cell, count, kept, len(task.cells), error)
    return Clipped(cap, kept, left)


def clip_user(
    user: Ints,
    cell: Ints,
    count: Ints,
    cost: Cost,
    *,
    cost_of_one: Callable[[int, int, int], float] | None = None,
    error: float | None = None,
    spare_best: bool = False,
) -> Bools:
    """Returns which memberships are kept, as users leave cells whose error stays within a limit.

    Users in the most cells, by index, leave the cell whose error `cost(heaviest, kept, all)` is
    then smallest. The limit is `error`, by default the largest error at the start (paper 000,
    Algorithm 1). `cost_of_one` is the cost of a single cell in plain numbers, which is faster than
    arrays for a user's few cells. With `spare_best` nobody leaves the cell of least error.
    """
    n_users = int(user.max()) + 1
    n_cells = int(cell.max()) + 1
    totals = add(cell, count, n_cells)
    start = cost(largest(cell, count, n_cells), totals, totals)
    limit = float(start.max()) if error is None else error
    spared = int(start.argmin()) if spare_best else -1
    # Lists are faster than arrays where single numbers are read and written.
    cell_of = cell.tolist()
    records = count.tolist()
    all_records = totals.tolist()
    kept_records = totals.tolist()
    kept = [True] * len(records)
    # Memberships of each cell by rising counts; of equal counts the first comes last.
    rising = _by_group(np.lexsort((-np.arange(len(cell)), count, cell)), cell, n_cells)
    # The two heaviest kept memberships of each cell, the heaviest first.
    heaviest = [_two_last(row, kept) for row in rising]
    cost_of = cost_of_one or (
        lambda *numbers: float(cost(*(np.array([each]) for each in numbers))[0])
    )

    def least_without(memberships: list[int]) -> tuple[float, int]:
        """Returns the least error of a user's cells without its records, and that cell's place."""
        least_error = np.inf
        least_place = 0
        for place, membership in enumerate(memberships):
            g = cell_of[membership]
            left = kept_records[g] - records[membership]
            # A cell keeps at least one user.
            if left <= 0 or g == spared:
                continue
            first, second = heaviest[g]
            heaviest_left = second if first == membership else first
            error_without = cost_of(records[heaviest_left], left, all_records[g])
            if error_without < least_error:
                least_error = error_without
                least_place = place
        return least_error, least_place

    of_user = _by_group(np.lexsort((cell, user)), user, n_users)
    # Each turn takes one cell from every user who is in the most cells.
    for most in range(max(map(len, of_user)), 0, -1):
        for memberships in [each for each in of_user if len(each) == most]:
            least_error, place = least_without(memberships)
            if least_error > limit:
                return np.array(kept)
            lost = memberships.pop(place)
            g = cell_of[lost]
            kept[lost] = False
            kept_records[g] -= records[lost]
            if lost in heaviest[g]:
                heaviest[g] = _two_last(rising[g], kept)
    return np.array(kept)


def _two_last(row: list[int], kept: list[bool]) -> tuple[int, int]:
    """Returns the last two kept memberships of a row, or -1, and drops lost ones from its end."""
    while row and not kept[row[-1]]:
        row.pop()
    while len(row) > 1 and not kept[row[-2]]:
        del row[-2]
    last = row[-1] if row else -1
    second_last = row[-2] if len(row) > 1 else -1
    return last, second_last


def _by_group(order: Ints, group: Ints, n_groups: int) -> list[list[int]]:
    """Returns the memberships of each group, from an order of all that is sorted by group."""
    starts = np.searchsorted(group[order], np.arange(1, n_groups))
    return [each.tolist() for each in np.split(order, starts)]
