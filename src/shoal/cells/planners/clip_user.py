"""Users leave cells until nobody is in many (paper 000, V; docs/theory/cells.md#clip-user)."""

from collections.abc import Callable

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


def clip_user_plan(task: Task) -> Facts:
    """Returns the plan of Clip-User at a loss of epsilon/K of each cell, K as small as is found."""
    limit = task.request.epsilon
    settings = task.method.settings
    assert limit is not None
    epsilon = float(limit)
    cap, kept, most = _least_cells(task, epsilon)
    parameters = {"cap": cap, "kept": kept.astype(np.int64)}
    weights = task.method.weigh(task.counts, task.cells, parameters)
    numbers = ReleasedStatistics(weights, task.request.kinds)
    duals = None
    scale = numbers.largest * len(task.request.kinds) * most / epsilon
    if settings.get("noise") == "balanced":
        shape = numbers.shape(least_sum=False)
        found = balanced(numbers.problem(task.importance, shape))
        scale = numbers.per_statistic(shape) * found.noise_scale / epsilon
        duals = found.duals
    return finish(task, numbers, limit, scale.ravel(), parameters=parameters, duals=duals)


def _least_cells(task: Task, epsilon: float) -> tuple[Ints, Bools, int]:
    """Caps, who is kept, and K: most cells in which a user is left.

    From epsilon over the most cells of any user, K falls as long as nobody is left in more.
    """
    member, cell = members(task.counts, task.cells)
    user = task.counts.user[member]
    count = task.counts.count[member]
    forms = [each.in_counts for each in task.request.kinds]
    spare_best = task.method.settings.get("spare") == "best"

    def clip(cells_of_user: int) -> tuple[Bools, int]:
        cost = cell_errors(forms, epsilon / cells_of_user)
        one = mean_error(epsilon / cells_of_user) if forms == [MEAN] else None
        kept = clip_user(user, cell, count, cost, one=one, spare_best=spare_best)
        return kept, int(np.bincount(user[kept]).max())

    most = int(np.bincount(user).max())
    least = 1
    kept, left = clip(most)
    while least < most:
        # Fewer cells a user allow more loss a cell, which may suppress less: then try between.
        tried = max(least, min(left, most - 1))
        answer, cells_left = clip(tried)
        if cells_left <= tried:
            kept = answer
            left = cells_left
            most = tried
        else:
            least = tried + 1
    # Nobody may be left in as many cells as were allowed: then each cell may cost more.
    error = cell_errors(forms, epsilon / left)
    return caps.after_suppression(cell, count, kept, len(task.cells), error), kept, left


def clip_user(
    user: Ints,
    cell: Ints,
    count: Ints,
    cost: Cost,
    *,
    one: Callable[[int, int, int], float] | None = None,
    error: float | None = None,
    spare_best: bool = False,
) -> Bools:
    """Which memberships are kept while no cell that somebody leaves has an error above E.

    `one` is the cost of a single cell in plain numbers, faster than arrays for a user's few cells.
    Users in the most cells, by index, leave the cell whose error `cost(heaviest, kept, all)` is
    then smallest; by default E is the largest error at the start (paper 000, Algorithm 1).
    """
    n_users = int(user.max()) + 1
    n_cells = int(cell.max()) + 1
    totals = add(cell, count, n_cells)
    start = cost(largest(cell, count, n_cells), totals, totals)
    limit = float(start.max()) if error is None else error
    barred = int(start.argmin()) if spare_best else -1
    kept = totals.tolist()
    amount = count.tolist()
    of_cell = cell.tolist()
    alive = [True] * len(amount)
    # By rising counts; of ties the first comes last.
    rising = np.lexsort((-np.arange(len(cell)), count, cell))
    line = [each.tolist() for each in np.split(rising, _starts(cell[rising], n_cells))]

    heaviest = [_two_last(row, alive) for row in line]

    size = totals.tolist()
    cost_of = one or (lambda *cell: float(cost(*(np.array([each]) for each in cell))[0]))

    def least_without(own: list[int]) -> tuple[float, int]:
        """The least error of a user's cells without its records, and which of them has it."""
        best = np.inf
        at = 0
        for number, place in enumerate(own):
            g = of_cell[place]
            left = kept[g] - amount[place]
            if left <= 0 or g == barred:
                continue
            first, second = heaviest[g]
            found = cost_of(amount[second if first == place else first], left, size[g])
            if found < best:
                best = found
                at = number
        return best, at

    by_user = np.lexsort((cell, user))
    of_user = [each.tolist() for each in np.split(by_user, _starts(user[by_user], n_users))]
    for number in range(max(map(len, of_user)), 0, -1):
        for own in [each for each in of_user if len(each) == number]:
            least, at = least_without(own)
            if least > limit:
                return np.array(alive)
            gone = own.pop(at)
            g = of_cell[gone]
            alive[gone] = False
            kept[g] -= amount[gone]
            if gone in heaviest[g]:
                heaviest[g] = _two_last(line[g], alive)
    return np.array(alive)


def _two_last(row: list[int], alive: list[bool]) -> tuple[int, int]:
    """The last two places that are kept; those that left are dropped on the way."""
    while row and not alive[row[-1]]:
        row.pop()
    while len(row) > 1 and not alive[row[-2]]:
        del row[-2]
    return row[-1] if row else -1, row[-2] if len(row) > 1 else -1


def _starts(sorted_groups: Ints, size: int) -> Ints:
    """Where each group but the first begins."""
    return np.searchsorted(sorted_groups, np.arange(1, size))
