"""Records of users put into arrays of one length, from the public counts of one cell."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Four roundings of a double stay below this relative margin.
_OUTWARD = 1 + 2.0**-50


@dataclass(frozen=True, eq=False)
class Grouping:
    """Pieces of users, each in one array; the estimate is the mean of the array means.

    Attributes:
        cap: m_UB, the length of an array.
        user: User of each piece (position in the counts), shape (pieces,).
        array: Array of each piece, 0..n_arrays-1, same shape.
        records: Records of each piece, same shape; one piece a user and array.
        n_arrays: K, the number of arrays.

    Example:
        >>> best_fit(np.array([1, 1, 10]), 4).filled.tolist()
        [4, 2]
    """

    cap: int
    user: NDArray[np.int64]
    array: NDArray[np.int64]
    records: NDArray[np.int64]
    n_arrays: int

    @cached_property
    def filled(self) -> NDArray[np.int64]:
        """Records in each array, shape (n_arrays,)."""
        inside = np.zeros(self.n_arrays, dtype=np.int64)
        np.add.at(inside, self.array, self.records)
        return inside

    def weights(self, n_users: int) -> NDArray[np.float64]:
        """Weight of each user's mean in the estimate: w_l = (1/K) sum_i share_(l,i).

        The share is the part of array i that is user l's (docs/theory/grouping.md#arrays).

        Args:
            n_users: L, the number of counts that were grouped.

        Returns:
            Shape (n_users,), adding up to 1.

        Example:
            >>> best_fit(np.array([1, 1, 10]), 4).weights(3).tolist()
            [0.25, 0.25, 0.5]
        """
        share = self.records / self.filled[self.array]
        return np.bincount(self.user, share, minlength=n_users) / self.n_arrays

    def sensitivity(self) -> float:
        """Most that one user moves the mean of the array means: max_l w_l of the width.

        At most 1/K with either grouping (docs/theory/grouping.md#arrays; erratum 7). Array means
        that are clipped or counted move once for each array that a user is in.

        Returns:
            max w, rounded upwards; multiply by U.

        Example:
            >>> round(wrap_around(np.array([1, 1, 10]), 4).sensitivity(), 6)
            1.0
        """
        heaviest = self.weights(int(self.user.max()) + 1).max()
        return float(min(1.0, heaviest * _OUTWARD))


def wrap_around(counts: NDArray[np.int64], cap: int) -> Grouping:
    """Fill arrays one after another, and keep the full ones: K = floor(sum min(m_l, cap)/cap).

    Users come by falling count, ties by position; one may straddle two arrays. Pieces in an array
    that is not full are left out (docs/theory/grouping.md#arrays).

    Args:
        counts: Records of each user, shape (users,), at least 1 each.
        cap: m_UB, the length of an array and the most records kept of a user.

    Raises:
        InputError: The cap is below 1, or no array would be full.

    Example:
        >>> made = wrap_around(np.array([2, 3, 3]), 3)
        >>> made.user.tolist(), made.array.tolist(), made.n_arrays
        ([1, 2], [0, 1], 2)
    """
    order, sizes = _by_falling_size(counts, cap)
    stop = np.cumsum(sizes)
    n_arrays = int(stop[-1]) // cap
    if n_arrays == 0:
        raise InputError(
            f"a cap of {cap} for {int(stop[-1])} records, which fill no array",
            f"caps up to the largest count, {int(counts.max())}",
            "choose a smaller cap",
        )
    start = stop - sizes
    first = np.minimum(sizes, cap - start % cap)
    pieces = 1 + (first < sizes)
    user, array = np.repeat(order, pieces), np.repeat(start // cap, pieces)
    records = np.repeat(first, pieces)
    rest = np.cumsum(pieces)[pieces > 1] - 1
    array[rest] += 1
    records[rest] = (sizes - first)[pieces > 1]
    full = array < n_arrays
    return Grouping(cap, user[full], array[full], records[full], n_arrays)


def best_fit(counts: NDArray[np.int64], cap: int) -> Grouping:
    """Put each user whole into the fullest array that still holds it; every array counts.

    Users come by falling count, ties by position; among equally full arrays the lowest comes
    first; a user whom no array holds opens one (docs/theory/grouping.md#arrays). Users of equal
    size are placed together: an array, once chosen, stays the fullest until it holds no more of
    them.

    Args:
        counts: Records of each user, shape (users,), at least 1 each.
        cap: m_UB, the length of an array and the most records kept of a user.

    Raises:
        InputError: The cap is below 1.

    Example:
        >>> made = best_fit(np.array([2, 3, 1]), 3)
        >>> made.user.tolist(), made.array.tolist(), made.n_arrays
        ([1, 0, 2], [0, 1, 1], 2)
    """
    order, sizes = _by_falling_size(counts, cap)
    array = np.empty(len(sizes), dtype=np.int64)
    shelf = _OpenArrays(cap)
    edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
    for start, stop in pairwise(edges):
        array[start:stop] = shelf.place(int(sizes[start]), stop - start)
    return Grouping(cap, order, array, sizes, shelf.n_arrays)


def _by_falling_size(
    counts: NDArray[np.int64], cap: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users by falling count, ties by position, and what each of them keeps."""
    if cap < 1:
        raise InputError(f"a cap of {cap}", "whole numbers from 1", "give for example cap=1")
    order = np.argsort(-counts, kind="stable")
    return order, np.minimum(counts[order], cap)


class _OpenArrays:
    """Arrays in classes of equal free space, each class in parts of rising array numbers."""

    def __init__(self, cap: int) -> None:
        self.n_arrays = 0
        self._cap = cap
        self._spaces: list[int] = []
        self._parts: dict[int, list[NDArray[np.int64]]] = {}

    def place(self, size: int, users: int) -> NDArray[np.int64]:
        """Arrays of so many users of one size, in their order."""
        first = at = bisect_left(self._spaces, size)
        placed: list[NDArray[np.int64]] = []
        changed: list[tuple[int, NDArray[np.int64]]] = []
        while users > 0:
            is_open = at < len(self._spaces)
            space = self._spaces[at] if is_open else self._cap
            each = min(space // size, users)
            wanted = -(-users // each)
            members = self._take(space, wanted) if is_open else self._create(wanted)
            here = min(users, each * len(members))
            placed.append(np.repeat(members, each)[:here])
            # Only the last array of the last class can be left with room for one more.
            last = here - each * (len(members) - 1)
            changed += [(space - each * size, members[:-1]), (space - last * size, members[-1:])]
            users -= here
            at += is_open and space not in self._parts
        del self._spaces[first:at]
        for space, members in changed:
            self._put(space, members)
        return placed[0] if len(placed) == 1 else np.concatenate(placed)

    def _take(self, space: int, wanted: int) -> NDArray[np.int64]:
        """The lowest arrays of a class, at most as many as wanted."""
        parts = self._parts.pop(space)
        members = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts), kind="stable")
        if wanted < len(members):
            self._parts[space] = [members[wanted:]]
        return members[:wanted]

    def _create(self, wanted: int) -> NDArray[np.int64]:
        """New arrays."""
        self.n_arrays += wanted
        return np.arange(self.n_arrays - wanted, self.n_arrays)

    def _put(self, space: int, members: NDArray[np.int64]) -> None:
        """Put arrays into the class of their free space; full ones are never looked at again."""
        if space == 0 or len(members) == 0:
            return
        if space not in self._parts:
            self._parts[space] = []
            insort(self._spaces, space)
        self._parts[space].append(members)
