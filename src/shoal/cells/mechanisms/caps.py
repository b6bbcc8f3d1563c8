"""Every way to choose a cap on the records of a user, from public counts alone.

With a cap m users keep min(m_l, m) records, K(m) in all (docs/theory/cells.md#arrays-and-caps).
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
# The range that the adaptive mean finds is about this many standard deviations of user means, and
# these parts of a record's variance may lie between users: none, little, a third, most.
_SPAN = 6.0
_BETWEEN = (0.0, 0.1, 0.3, 0.6)
# Caps that `of_vectors` tries, and 2/pi: the square of a mean absolute normal deviation.
_STEPS = 14
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
    below = np.concatenate([[0], np.cumsum(ordered)])
    small = np.searchsorted(ordered, cap, side="right")
    return np.asarray(below[small] + (len(ordered) - small) * cap)


def median(counts: Ints) -> int:
    """Returns the ceil(L/2)-th largest count: at least half of what any cap can gain."""
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
    """Returns 1 - K(m)/n + m/(epsilon K(m)) for each cap: bias plus noise, over the width."""
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
    """The smallest whole cap with the least 1 - K/n + max(m, mean count)/m*, exactly (erratum 10).

    Over the reals it is the mean count if at most n/m* users are above it, else the smallest count
    with at most n/m* users above it.
    """
    users = len(counts)
    total = int(counts.sum())
    most = int(counts.max())
    few = total // most
    # The smallest count with at most n/m* users above it, or one not above the mean.
    smallest = int(np.partition(counts, users - few - 1)[users - few - 1]) if few < users else 0
    if smallest * users > total:
        return smallest
    near = [total // users, -(-total // users)]
    # The objective times n L m*, less a constant.
    costs = [
        max(cap * users, total) * total - left * users * most
        for cap, left in zip(near, kept(counts, np.array(near)).tolist(), strict=True)
    ]
    return near[costs.index(min(costs))]


def _smallest_minimiser(
    counts: Ints, cost: Callable[[Ints], Floats], exact: Callable[[int, int], Fraction]
) -> int:
    """The smallest count of least cost, given the cost in floating point and, of (m, K), exact."""
    sizes = np.unique(counts)
    costs = cost(sizes)
    least = float(costs.min())
    near = sizes[costs <= least + _CLOSE * max(1.0, abs(least))]
    pairs = zip(near.tolist(), kept(counts, near).tolist(), strict=True)
    best: int = min(pairs, key=lambda pair: exact(*pair))[0]
    return best


def exchangeable(cell: Ints, counts: Ints, n_cells: int, epsilon: Floats) -> Ints:
    """Each cell's cap of least regret where users are alike (docs/theory/cells.md#adaptive-mean).

    With w = min(m, c)/sum min(m, c) and s = between + (1 - between)/m the error is about max w SPAN
    sqrt(sum w s)/epsilon + sqrt(2/pi) sqrt(sum (w - v)^2 s).
    """
    most = int(counts.max()) + 1
    where, rising = np.divmod(np.sort(cell * most + counts), most)
    m = rising.astype(np.float64)
    size = np.bincount(where, minlength=n_cells)
    stop = np.cumsum(size)
    start = (stop - size)[where]
    rank = np.arange(1, len(m) + 1)

    def sums(amount: Floats) -> tuple[Floats, Floats]:
        """Sums over the users of the cell up to each rank, and beyond it."""
        total = np.append(0.0, np.cumsum(amount))
        return total[rank] - total[start], total[stop[where]] - total[rank]

    regret = np.zeros(len(m))
    (below, above), (_, others) = sums(m), sums(np.ones_like(m))
    weight = below + m * others
    records = below + above
    for between in _BETWEEN:
        spread = between + (1 - between) / m
        (once, twice), beyond = sums(m * spread), sums(spread)[1]
        low, high = sums(m**2 * spread)
        of_means = (once + m * beyond) / weight
        squares = low + m**2 * beyond
        mixed = low + m * twice
        whole = low + high
        apart = squares / weight**2 - 2 * mixed / (weight * records) + whole / records**2
        noise = m / weight * _SPAN * np.sqrt(of_means) / epsilon[where]
        error = noise + math.sqrt(2 / math.pi) * np.sqrt(np.maximum(apart, 0.0))
        least = np.full(n_cells, np.inf)
        np.minimum.at(least, where, error)
        # Users who all have one record and one cap can leave no error at all.
        regret = np.maximum(regret, error / np.maximum(least, 1e-300)[where])
    order = np.lexsort((m, regret, where))
    return rising[order[np.searchsorted(where[order], np.arange(n_cells))]]


def of_vectors(
    cell: Ints, count: Ints, n_cells: int, loss: Floats, *, penalty: float, width: float
) -> Ints:
    """Each cell's cap of least error for clipped vectors (docs/theory/cells.md#weights-and-budget).

    It minimises sqrt((width max w/loss)^2 + 0.64 sum (w - v)^2) + penalty sum |w - v|/2 over 14
    geometric steps of the counts: `width` is the noise at a loss of 1, `penalty` how heavy users
    differ.
    """
    # Users with equal counts are one term of their cell.
    base = int(count.max()) + 1
    key, times = np.unique(cell * base + count, return_counts=True)
    cell, count = np.divmod(key, base)
    start = np.searchsorted(cell, np.arange(n_cells))
    least = count[start]
    most = np.maximum.reduceat(count, start)
    share = count / np.bincount(cell, times * count, minlength=n_cells)[cell]
    found = most.copy()
    error = np.full(n_cells, np.inf)
    # From above, so that of equal errors the cap that changes least is taken.
    for step in range(_STEPS - 1, -1, -1):
        cap = np.rint(least * (most / least) ** (step / (_STEPS - 1))).astype(np.int64)
        own = np.minimum(count, cap[cell])
        total = np.bincount(cell, times * own, minlength=n_cells)
        apart = own / total[cell] - share
        noise = width * np.minimum(cap, most) / total / loss
        spread = _EXCHANGEABLE * np.bincount(cell, times * apart**2, minlength=n_cells)
        moved = np.bincount(cell, times * np.abs(apart), minlength=n_cells) / 2
        tried = np.sqrt(noise**2 + spread) + penalty * moved
        better = tried < error
        found = np.where(better, cap, found)
        error = np.where(better, tried, error)
    return found


def after_suppression(
    cell: Ints,
    count: Ints,
    kept: Bools,
    n_cells: int,
    error: Callable[[Ints, Ints, Ints], Floats],
) -> Ints:
    """Each cell's smallest cap of least error (docs/theory/cells.md#clip-user).

    `error` takes m, K and n. A kept count is best (paper 000, section V-B3), unless the heaviest
    user has half of the records: then five more caps between the two largest counts are tried.
    """
    order = np.lexsort((count[kept], cell[kept]))
    where = cell[kept][order]
    value = count[kept][order]
    ends = np.searchsorted(where, np.arange(n_cells), side="right")
    starts = np.append(0, ends[:-1])
    below = np.cumsum(value) - value
    below -= below[starts][where]
    last = ends - 1
    highest = value[last]
    others = below[last]
    lowest = np.where(last > starts, value[np.maximum(last - 1, 0)], highest)
    between = np.clip(
        np.stack([lowest + 1, others - 1, others, others + 1, highest - 1]), lowest, highest
    )
    at = np.concatenate((where, np.tile(np.arange(n_cells), len(between))))
    cap = np.concatenate((value, between.ravel()))
    left = np.concatenate(
        (below + value * (ends[where] - np.arange(len(value))), (others + between).ravel())
    )
    totals = np.bincount(cell, count, minlength=n_cells).astype(np.int64)
    best = np.lexsort((cap, error(cap, left, totals[at]), at))
    return cap[best[np.searchsorted(at[best], np.arange(n_cells))]]
