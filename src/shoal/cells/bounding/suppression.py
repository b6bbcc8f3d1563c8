"""Clip-User: suppress users in cells, from the public counts, until no user is in many cells.

The algorithm is one long chain of decisions, each of which changes one cell. Here users in the
same number of cells decide together, on a guess of what those before them do, and again until
nobody changes his mind: the outcome is that of the chain, the work is done by arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.bounding.statistics import cell_errors, split
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from shoal.cells.bounding.statistics import Statistic

# Users and memberships that decide together, and how often before the settled ones are let go.
_FEWEST_USERS, _MOST_PAIRS, _ROUNDS = 32, 2**14, 6
_NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Suppression:
    """Who is left where, at which privacy loss by the paper's accounting, and at which error.

    Attributes:
        kept: Whether each membership is kept, in the order given.
        cells_per_user: Cells of each user afterwards, shape (users,).
        cell_error: Worst-case error of each cell afterwards, shape (cells,).
        limit: E, the error that no suppression was allowed to exceed.
        epsilon_per_cell: Privacy loss of one cell.
    """

    kept: NDArray[np.bool_]
    cells_per_user: NDArray[np.int64]
    cell_error: NDArray[np.float64]
    limit: float
    epsilon_per_cell: float

    @property
    def most_cells(self) -> int:
        """K: most cells of one user afterwards."""
        return int(self.cells_per_user.max())

    @property
    def error(self) -> float:
        """The release's worst-case error: that of its worst cell."""
        return float(self.cell_error.max())

    @property
    def loss(self) -> float:
        """K epsilon, the paper's loss: valid but loose (docs/theory/accounting.md; erratum 17)."""
        return self.most_cells * self.epsilon_per_cell


def clip_user(
    user: NDArray[np.int64],
    cell: NDArray[np.int64],
    count: NDArray[np.int64],
    n_users: int,
    n_cells: int,
    statistics: Sequence[Statistic],
    epsilon_per_cell: float | Sequence[float],
    *,
    error: float | None = None,
    spare_best: bool = False,
    width: float = 1.0,
) -> Suppression:
    """Suppress users in cells while no cell it is done in gets an error above E.

    The users in the largest number of cells, by increasing index, each in turn: of the cells the
    user is in, the one whose error would be smallest were all the user's records suppressed there
    (ties: the lowest cell). If that error exceeds E, everything stops; else the user leaves the
    cell. A cell is never emptied. Then the same again (paper 000, Algorithm 1;
    docs/theory/clip-user.md#the-algorithm; errata 1 to 3). Errors are those of
    `statistics.cell_errors`, in double precision.

    Args:
        user: User of each membership, 0..n_users-1, shape (memberships,).
        cell: Cell of each membership, 0..n_cells-1, same shape.
        count: Records of each membership, at least 1, same shape.
        n_users: L.
        n_cells: G; each has a membership.
        statistics: What is released of every cell.
        epsilon_per_cell: Privacy loss of a cell, split evenly, or of each of its statistics.
        error: E, in the unit of `cell_errors`; the largest error before any suppression if None.
        spare_best: Suppress nobody in the cell with the smallest error at first, as the paper's
            runs do (ties: the lowest cell).
        width: U; 1 gives errors relative to it, if the statistics are of one unit.

    Returns:
        The kept memberships and what they cost. If E is the default, no error exceeds it.

    Raises:
        InputError: Columns that are no memberships, an empty cell, E below 0 or infinite, or a
            share that is not above 0.

    Example:
        >>> from shoal.cells.bounding.statistics import MEAN
        >>> user, cell = np.array([0, 0, 1, 1, 2, 3, 4, 5]), np.array([0, 1, 0, 1, 0, 0, 0, 2])
        >>> found = clip_user(user, cell, np.ones(8, dtype=int), 6, 3, [MEAN], 1.0)
        >>> np.flatnonzero(~found.kept).tolist(), found.most_cells, found.error
        ([0, 2], 1, 1.0)
    """
    order = _by_user(user, cell, count, n_users, n_cells)
    shares = split(statistics, epsilon_per_cell)
    crowd = _Crowd(user[order], cell[order], count[order], (n_users, n_cells))
    cost = _Cost(statistics, shares, width, crowd.kept.copy())
    errors = cost(np.arange(n_cells), crowd.heaviest(), crowd.kept)
    limit = float(errors.max()) if error is None else float(error)
    if not 0 <= limit < math.inf:
        raise InputError(f"error is {error!r}", "a number from 0", "leave it out for the default")
    crowd.barred = int(errors.argmin()) if spare_best else -1
    _suppress(crowd, cost, limit)
    kept = np.empty(len(user), dtype=np.bool_)
    kept[order] = crowd.alive()
    return Suppression(
        kept=kept,
        cells_per_user=np.bincount(user[kept], minlength=n_users).astype(np.int64),
        cell_error=cost(np.arange(n_cells), crowd.heaviest(), crowd.kept),
        limit=limit,
        epsilon_per_cell=math.fsum(shares),
    )


def _by_user(
    user: NDArray[np.int64],
    cell: NDArray[np.int64],
    count: NDArray[np.int64],
    n_users: int,
    n_cells: int,
) -> NDArray[np.int64] | slice:
    """The order by user and cell; the memberships are checked on the way."""
    sound = 0 < len(user) == len(cell) == len(count) and (
        min(user.min(), cell.min()) >= 0
        and user.max() < n_users
        and cell.max() < n_cells
        and count.min() >= 1
        and np.bincount(cell, minlength=n_cells).min() >= 1
    )
    key = user.astype(np.int64) * n_cells + cell
    order: NDArray[np.int64] | slice = slice(None)
    if sound and not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        key = key[order]
        sound = bool((key[1:] > key[:-1]).all())
    if not sound:
        raise InputError(
            "columns that are no memberships",
            "users and cells in range, once each, counts from 1, and a user in every cell",
            "take them from an occupancy",
        )
    return order


@dataclass(frozen=True, eq=False)
class _Cost:
    """Errors of cells, given what is kept of them."""

    statistics: Sequence[Statistic]
    shares: tuple[float, ...]
    width: float
    totals: NDArray[np.int64]

    def __call__(
        self, cell: NDArray[np.integer], heaviest: NDArray[np.int64], kept: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        left = np.maximum(kept, 1)
        error = cell_errors(
            self.statistics, self.shares, heaviest, left, self.totals[cell], width=self.width
        )
        # An emptied cell has no statistics.
        return np.where(kept > 0, error, np.inf)


class _Crowd:
    """Kept memberships. A membership goes by its place: by cell, then by falling count."""

    def __init__(
        self,
        user: NDArray[np.int64],
        cell: NDArray[np.int64],
        count: NDArray[np.int64],
        shape: tuple[int, int],
    ) -> None:
        n_users, n_cells = shape
        size = len(user)
        order = np.lexsort((-count, cell))
        # Where each membership, by user and cell, is; kept ones come first within a user.
        self.place = np.empty(size, dtype=np.int64)
        self.place[order] = np.arange(size)
        self.slots = self.place.copy()
        self.cell = cell[order].astype(np.int32)
        self.count = np.append(count[order], 0)
        self.kept = np.add.reduceat(self.count[:-1], np.searchsorted(self.cell, range(n_cells)))
        self.top = np.searchsorted(self.cell, np.arange(n_cells))
        # The place itself while it is kept, else a place further on: followed to its end, the
        # next kept one. The last place belongs to nobody.
        self.onward = np.arange(size + 1)
        self.n_cells_of = np.bincount(user, minlength=n_users)
        self.first = np.cumsum(self.n_cells_of) - self.n_cells_of
        self.barred = -1

    def next_kept(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first kept place from each place on, itself included."""
        found = self.onward[place]
        while True:
            beyond = self.onward[found]
            if (beyond == found).all():
                break
            found = beyond
        self.onward[place] = found
        return np.asarray(found)

    def heaviest(self) -> NDArray[np.int64]:
        """Largest kept count of each cell."""
        self.top = self.next_kept(self.top)
        return np.asarray(self.count[self.top])

    def alive(self) -> NDArray[np.bool_]:
        """Whether each membership is kept, by user and cell."""
        return np.asarray(self.onward[self.place] == self.place)

    def places(self, users: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Kept places of users that have `width` of them each, by cell, shape (users, width)."""
        return np.asarray(self.slots[self.first[users][:, None] + np.arange(width)])

    def leave(
        self, users: NDArray[np.int64], places: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> None:
        """Each user leaves the chosen one of its places."""
        rows, width = np.arange(len(users)), places.shape[1]
        gone = places[rows, chosen]
        np.subtract.at(self.kept, self.cell[gone], self.count[gone])
        self.onward[gone] = gone + 1
        self.next_kept(gone)
        stay = np.ones(places.shape, dtype=np.bool_)
        stay[rows, chosen] = False
        left = places[stay].reshape(len(users), width - 1)
        self.slots[self.first[users][:, None] + np.arange(width - 1)] = left
        self.n_cells_of[users] -= 1
        self.top = self.next_kept(self.top)


class _Batch:
    """Users of one stage who decide together, in turn."""

    def __init__(self, crowd: _Crowd, cost: _Cost, users: NDArray[np.int64], width: int) -> None:
        self.crowd, self.cost, self.users = crowd, cost, users
        self.places = crowd.places(users, width)
        self.flat = self.places.ravel()
        self.cell = crowd.cell[self.flat]
        self.turn = np.repeat(np.arange(len(users), dtype=np.int32), width)
        # Small integers are sorted by counting.
        narrow = self.cell.astype(np.min_scalar_type(len(crowd.kept)))
        self.by_cell = np.argsort(narrow, kind="stable")
        self.sorted_cell = self.cell[self.by_cell]
        self.error = np.empty(len(self.flat))
        # What is suppressed under the guess, by pair and by place.
        self.taken = np.zeros(len(self.flat), dtype=np.int64)

    def decide(self, when: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        """The choice of each user, its error, and how many of the users are certain.

        A user is certain if all before it were guessed right. The first one always is, and each
        round makes one more certain at least: usually all within a few rounds.
        """
        width = self.places.shape[1]
        rows = np.arange(len(self.users))
        by_user = self.error.reshape(-1, width)
        self._dual(self.by_cell, when, -1)
        choice = by_user.argmin(axis=1)
        guess, changed = np.full(len(rows), -1), rows
        for _ in range(_ROUNDS):
            touched = self._take(when, guess, choice, changed)
            guess = choice.copy()
            priced = self._dual(self.by_cell[touched[self.sorted_cell]], when, changed[0])
            again = np.flatnonzero(np.bincount(self.turn[priced], minlength=len(rows)))
            choice[again] = by_user[again].argmin(axis=1)
            changed = np.flatnonzero(choice != guess)
            if len(changed) == 0:
                break
        when[self.places[rows, guess]] = _NEVER
        certain = int(changed[0]) + 1 if len(changed) else len(rows)
        return choice, by_user[rows, choice], certain

    def _take(
        self,
        when: NDArray[np.int32],
        guess: NDArray[np.int64],
        choice: NDArray[np.int64],
        changed: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Put the new choices in the place of the old; the cells that this touches."""
        width = self.places.shape[1]
        touched = np.zeros(len(self.crowd.kept), dtype=np.bool_)
        old = (changed * width + guess[changed])[guess[changed] >= 0]
        new = changed * width + choice[changed]
        self.taken[old] = 0
        when[self.flat[old]] = _NEVER
        self.taken[new] = self.crowd.count[self.flat[new]]
        when[self.flat[new]] = changed
        touched[self.cell[old]] = touched[self.cell[new]] = True
        return touched

    def _dual(
        self, pick: NDArray[np.int64], when: NDArray[np.int32], settled: int
    ) -> NDArray[np.int64]:
        """The errors were users to leave: of all pairs of some cells, by cell and turn.

        Those of users up to the settled one stay as they are; the others are returned.
        """
        crowd, cell, taken = self.crowd, self.cell[pick], self.taken[pick]
        before = np.cumsum(taken) - taken
        start = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
        before -= np.repeat(before[start], np.diff(np.append(start, len(pick))))
        ahead = np.flatnonzero(self.turn[pick] > settled)
        pick, cell, before = pick[ahead], cell[ahead], before[ahead]
        place = self.flat[pick]
        heaviest = crowd.count[self._others(place, self.turn[pick], cell, when)]
        error = self.cost(cell, heaviest, crowd.kept[cell] - before - crowd.count[place])
        if crowd.barred >= 0:
            error[cell == crowd.barred] = np.inf
        self.error[pick] = error
        return pick

    def _others(
        self,
        place: NDArray[np.int64],
        turn: NDArray[np.int32],
        cell: NDArray[np.int32],
        when: NDArray[np.int32],
    ) -> NDArray[np.int64]:
        """Place of the heaviest who is left in the cell without the user when its turn comes."""
        found = self.crowd.top[cell]
        todo = np.arange(len(place))
        while len(todo):
            here = found[todo]
            todo = todo[(here == place[todo]) | (when[here] < turn[todo])]
            found[todo] = self.crowd.next_kept(found[todo] + 1)
        return np.asarray(found)


def _stages(crowd: _Crowd) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The largest number of cells, and who is in as many, by index."""
    original = crowd.n_cells_of.copy()
    by_number = np.argsort(-original, kind="stable")
    falling = -original[by_number]
    users = np.empty(0, dtype=np.int64)
    for number in range(int(original.max()), 0, -1):
        joining = by_number[
            np.searchsorted(falling, -number) : np.searchsorted(falling, 1 - number)
        ]
        # All before have left one cell: they are in as many as those who join.
        users = np.sort(np.concatenate((users, joining)), kind="stable") if len(joining) else users
        yield number, users


def _suppress(crowd: _Crowd, cost: _Cost, limit: float) -> None:
    when = np.full(len(crowd.onward), _NEVER, dtype=np.int32)
    together = _FEWEST_USERS
    for number, users in _stages(crowd):
        done = 0
        while done < len(users):
            together = max(1, min(together, _MOST_PAIRS // number))
            batch = _Batch(crowd, cost, users[done : done + together], number)
            choice, error, certain = batch.decide(when)
            above = np.flatnonzero(error[:certain] > limit)
            stop = int(above[0]) if len(above) else certain
            crowd.leave(batch.users[:stop], batch.places[:stop], choice[:stop])
            if stop < certain:
                return
            done += certain
            settled = certain == len(batch.users)
            together = 2 * together if settled else max(_FEWEST_USERS, certain)
