"""Chooses caps on the records of a user, from public counts alone, in every way that shoal has.

With a cap m, user l keeps min(m_l, m) of its m_l records. All users together keep K(m)
(docs/theory/cells.md#arrays-and-caps).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from shoal.arrays import Bools, Floats, Ints
from shoal.errors import InputError

NAMES = ("median", "levy", "minimax", "surrogate")
# Objectives this close are compared again in exact arithmetic, so that ties have a rule.
_CLOSE = 1e-12
# The range that the adaptive mean finds is about this many standard deviations of user means.
_SPAN = 6.0
# The parts of a record's variance that may lie between users: none, little, a third, most.
_BETWEEN = (0.0, 0.1, 0.3, 0.6)
# The number of caps that `of_vectors` tries.
_STEPS = 14
# The square of the mean absolute value of a standard normal variable: 2/pi.
_EXCHANGEABLE = 0.64


def choose(cap: str | int, counts: Ints, epsilon: float) -> int:
    """Returns a cap by its name or number, at most the largest of the counts, shape (users,)."""
    match cap:
        case "median":
            return median(counts)
        case "levy":
            return levy(counts)
        case "minimax":
            return minimax(counts, epsilon)
        case "surrogate":
            return surrogate(counts)
    return min(int(cap), int(counts.max()))


def kept(counts: Ints, cap: Ints | int) -> Ints:
    """Returns K(m) = sum_l min(m_l, m) for each cap."""
    ordered = np.sort(counts)
    # The sum of the k smallest counts, at place k.
    sum_of_smallest = np.concatenate([[0], np.cumsum(ordered)])
    n_within = np.searchsorted(ordered, cap, side="right")
    return np.asarray(sum_of_smallest[n_within] + (len(ordered) - n_within) * cap)


def median(counts: Ints) -> int:
    """Returns the ceil(L/2)-th largest of L counts: it gains at least half of what any cap does."""
    place = len(counts) // 2
    return int(np.partition(counts, place)[place])


def levy(counts: Ints) -> int:
    """Returns the smallest cap that makes K(m)/sqrt(m) largest: it is one of the counts."""
    return _smallest_minimiser(
        counts,
        lambda cap: -kept(counts, cap) / np.sqrt(cap),
        lambda cap, left: -Fraction(left**2, cap),
    )


def minimax_error(counts: Ints, cap: Ints | int, epsilon: float) -> Floats:
    """Returns bias plus noise of each cap, as parts of the width: 1 - K(m)/n + m/(epsilon K(m))."""
    left = kept(counts, cap)
    total = counts.sum()
    return np.asarray((total - left) / total + cap / (epsilon * left))


def minimax(counts: Ints, epsilon: float) -> int:
    """Returns the smallest cap of least `minimax_error`: a count that never falls with epsilon."""
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon!r}", "give a number above 0, for example epsilon=1")
    total = int(counts.sum())
    exact = Fraction(epsilon)
    return _smallest_minimiser(
        counts,
        lambda cap: minimax_error(counts, cap, epsilon),
        lambda cap, left: Fraction(-left, total) + Fraction(cap, left) / exact,
    )


def surrogate(counts: Ints) -> int:
    """Returns the smallest whole cap with the least 1 - K(m)/n + max(m, mean count)/m*, exactly.

    Here m* is the largest count. Without rounding, the best cap is the mean count if at most n/m*
    users are above it, else the smallest count with at most n/m* users above it (erratum 10).
    """
    users = len(counts)
    total = int(counts.sum())
    largest_count = int(counts.max())
    few = total // largest_count
    # The smallest count with at most n/m* users above it; 0 if all users are so few.
    smallest = 0
    if few < users:
        place = users - few - 1
        smallest = int(np.partition(counts, place)[place])
    mean_is_smaller = smallest * users > total
    if mean_is_smaller:
        return smallest
    # The best cap is the mean count, of which the whole numbers below and above are compared.
    near_mean = [total // users, -(-total // users)]
    # The objective times n L m* for L users, less a constant.
    costs = [
        max(cap * users, total) * total - left * users * largest_count
        for cap, left in zip(near_mean, kept(counts, np.array(near_mean)).tolist(), strict=True)
    ]
    return near_mean[costs.index(min(costs))]


def _smallest_minimiser(
    counts: Ints, cost: Callable[[Ints], Floats], exact: Callable[[int, int], Fraction]
) -> int:
    """Returns the smallest count of least cost.

    `cost` has the costs of caps in floating point, and `exact` the exact cost of a cap m and K(m).
    """
    sizes = np.unique(counts)
    costs = cost(sizes)
    least = float(costs.min())
    near = sizes[costs <= least + _CLOSE * max(1.0, abs(least))]
    pairs = zip(near.tolist(), kept(counts, near).tolist(), strict=True)
    # Counts rise: of equal costs the first, and so the smallest count, is taken.
    best: int
    best, _ = min(pairs, key=lambda pair: exact(*pair))
    return best


def exchangeable(cell: Ints, counts: Ints, n_cells: int, epsilon: Floats) -> Ints:
    """Returns each cell's cap of least regret if users are alike.

    The regret of a cap is the largest ratio of its error to the least error, over the parts
    `between` of the variance in `_BETWEEN`. With a cap c, counts m, shares v, weights
    w = min(m, c)/sum min(m, c) and s = between + (1 - between)/m the error is about
    max w SPAN sqrt(sum w s)/epsilon + sqrt(2/pi) sqrt(sum (w - v)^2 s)
    (docs/theory/cells.md#adaptive-mean).
    """
    # Cell and count in one integer: a plain sort is far faster than one by two keys. Each member's
    # count is a cap that is tried.
    base = int(counts.max()) + 1
    where, rising = np.divmod(np.sort(cell * base + counts), base)
    m = rising.astype(np.float64)
    size = np.bincount(where, minlength=n_cells)
    stop = np.cumsum(size)
    start = (stop - size)[where]
    rank = np.arange(1, len(m) + 1)

    def sums(amount: Floats) -> tuple[Floats, Floats]:
        """Returns sums over the users of the cell up to each rank, and beyond it."""
        total = np.append(0.0, np.cumsum(amount))
        up_to = total[rank] - total[start]
        beyond = total[stop[where]] - total[rank]
        return up_to, beyond

    regret = np.zeros(len(m))
    below, above = sums(m)
    _, users_above = sums(np.ones_like(m))
    weight = below + m * users_above
    records = below + above
    for between in _BETWEEN:
        # Sums of s, m s and m^2 s over users up to the cap and above it; with the cap's weights w
        # and the shares v, `ww`, `wv` and `vv` are the sums of w^2 s, w v s and v^2 s.
        s = between + (1 - between) / m
        _, s_above = sums(s)
        ms_below, ms_above = sums(m * s)
        mms_below, mms_above = sums(m**2 * s)
        of_means = (ms_below + m * s_above) / weight
        ww = (mms_below + m**2 * s_above) / weight**2
        wv = (mms_below + m * ms_above) / (weight * records)
        vv = (mms_below + mms_above) / records**2
        spread = ww - 2 * wv + vv
        noise = m / weight * _SPAN * np.sqrt(of_means) / epsilon[where]
        error = noise + math.sqrt(2 / math.pi) * np.sqrt(np.maximum(spread, 0.0))
        least = np.full(n_cells, np.inf)
        np.minimum.at(least, where, error)
        # The least error may be 0, if every user has one record.
        regret = np.maximum(regret, error / np.maximum(least, 1e-300)[where])
    return _first_of_cells(np.lexsort((m, regret, where)), where, rising, n_cells)


def _first_of_cells(order: Ints, cell: Ints, cap: Ints, n_cells: int) -> Ints:
    """Returns each cell's first cap in an order that is sorted by cell."""
    first = order[np.searchsorted(cell[order], np.arange(n_cells))]
    return cap[first]


def of_vectors(
    cell: Ints, count: Ints, n_cells: int, loss: Floats, *, penalty: float, width: float
) -> Ints:
    """Returns each cell's cap of least error for clipped vectors.

    It minimises sqrt((width max w/loss)^2 + 0.64 sum (w - v)^2) + penalty sum |w - v|/2 over 14
    caps in geometric steps, with weights w and shares v. Errors are in standard deviations of a
    user: `width` is the noise at a loss of 1, and `penalty` says by how much heavy users differ
    (docs/theory/cells.md#weights-and-budget).
    """
    # Users of a cell with equal counts are added up as one term.
    base = int(count.max()) + 1
    key, times = np.unique(cell * base + count, return_counts=True)
    cell, count = np.divmod(key, base)
    start = np.searchsorted(cell, np.arange(n_cells))
    lightest = count[start]
    heaviest = np.maximum.reduceat(count, start)
    share = count / np.bincount(cell, times * count, minlength=n_cells)[cell]
    best_cap = heaviest.copy()
    least_error = np.full(n_cells, np.inf)
    # Caps fall, so that of equal errors the largest cap, which changes least, is taken.
    for step in range(_STEPS - 1, -1, -1):
        ratio = (heaviest / lightest) ** (step / (_STEPS - 1))
        cap = np.rint(lightest * ratio).astype(np.int64)
        weight = np.minimum(count, cap[cell])
        total = np.bincount(cell, times * weight, minlength=n_cells)
        difference = weight / total[cell] - share
        noise = width * np.minimum(cap, heaviest) / total / loss
        spread = _EXCHANGEABLE * np.bincount(cell, times * difference**2, minlength=n_cells)
        moved = np.bincount(cell, times * np.abs(difference), minlength=n_cells) / 2
        error = np.sqrt(noise**2 + spread) + penalty * moved
        better = error < least_error
        best_cap = np.where(better, cap, best_cap)
        least_error = np.where(better, error, least_error)
    return best_cap


def after_suppression(
    cell: Ints,
    count: Ints,
    kept: Bools,
    n_cells: int,
    error: Callable[[Ints, Ints, Ints], Floats],
) -> Ints:
    """Returns each cell's smallest cap of least error (docs/theory/cells.md#clip-user).

    `error` takes caps, kept records and all records. The best cap is one of the kept counts (paper
    000, section V-B3), unless the heaviest user has half of the records. So five more caps between
    the two largest counts are tried.
    """
    # Kept members by cell, then by rising count.
    order = np.lexsort((count[kept], cell[kept]))
    where = cell[kept][order]
    rising = count[kept][order]
    ends = np.searchsorted(where, np.arange(n_cells), side="right")
    starts = np.append(0, ends[:-1])
    # The records of the users before each one in its cell.
    before = np.cumsum(rising) - rising
    before -= before[starts][where]
    records_at_counts = before + rising * (ends[where] - np.arange(len(rising)))
    last = ends - 1
    largest = rising[last]
    # The records of all users but the heaviest one.
    rest = before[last]
    # With a single user there is no second largest count.
    second = np.where(last > starts, rising[np.maximum(last - 1, 0)], largest)
    tried = np.stack([second + 1, rest - 1, rest, rest + 1, largest - 1])
    between = np.clip(tried, second, largest)
    # All caps that are tried, with the cell of each and the records that it leaves there.
    at = np.concatenate((where, np.tile(np.arange(n_cells), len(between))))
    cap = np.concatenate((rising, between.ravel()))
    left = np.concatenate((records_at_counts, (rest + between).ravel()))
    totals = np.bincount(cell, count, minlength=n_cells).astype(np.int64)
    return _first_of_cells(np.lexsort((cap, error(cap, left, totals[at]), at)), at, cap, n_cells)
