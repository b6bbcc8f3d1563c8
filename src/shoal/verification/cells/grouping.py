"""Arrays of records for the second opinion: one user after another, as the theory says it.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass

# Shares of arrays are whole numbers of 1/2^24, rounded downwards.
SHARE = 24


@dataclass(frozen=True)
class Arrays:
    """The arrays of one cell.

    Attributes:
        number: K, how many.
        share: Of each user, the sum of its shares of arrays, in 1/2^24.
        touched: Arrays that each user is in.
    """

    number: int
    share: list[int]
    touched: list[int]


def group(counts: list[int], cap: int, grouping: str) -> Arrays:
    """The arrays of a cell by `best_fit` or `wrap_around` (docs/theory/grouping.md#arrays).

    Args:
        counts: Records of each user in the order of the memberships.
        cap: Length of an array, from 1 to the largest count.
        grouping: Which of the two.
    """
    order = sorted(range(len(counts)), key=lambda at: -counts[at])
    kept = [min(counts[at], cap) for at in order]
    if grouping == "best_fit":
        pieces = _best_fit(kept, cap)
        number = 1 + max(array for _, array, _ in pieces)
    else:
        number = sum(kept) // cap
        pieces = [piece for piece in _wrap_around(kept, cap) if piece[1] < number]
    filled = [0] * number
    for _, array, records in pieces:
        filled[array] += records
    share, touched = [0] * len(counts), [0] * len(counts)
    for place, array, records in pieces:
        share[order[place]] += records * 2**SHARE // filled[array]
        touched[order[place]] += 1
    return Arrays(number, share, touched)


def _best_fit(kept: list[int], cap: int) -> list[tuple[int, int, int]]:
    """Place, array and records: each user in the fullest array that holds it, or in a new one."""
    free: list[int] = []
    lowest: dict[int, list[int]] = {}
    pieces, number = [], 0
    for place, records in enumerate(kept):
        at = bisect_left(free, records)
        if at < len(free):
            capacity = free[at]
            array = heapq.heappop(lowest[capacity])
            if not lowest[capacity]:
                del free[at], lowest[capacity]
        else:
            capacity, array, number = cap, number, number + 1
        pieces.append((place, array, records))
        left = capacity - records
        if left and left not in lowest:
            insort(free, left)
        if left:
            heapq.heappush(lowest.setdefault(left, []), array)
    return pieces


def _wrap_around(kept: list[int], cap: int) -> list[tuple[int, int, int]]:
    """Place, array and records: all records in one row, cut after every `cap`."""
    pieces, done = [], 0
    for place, records in enumerate(kept):
        end = done + records
        while done < end:
            array = done // cap
            stop = min(end, (array + 1) * cap)
            pieces.append((place, array, stop - done))
            done = stop
    return pieces
