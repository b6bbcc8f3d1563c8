"""Clip-User against the algorithm line by line, and its published behaviour."""

import math
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.cell_statistics import MEAN, VARIANCE, InCounts, cell_errors
from shoal.cells.planners.clip_user import clip_user
from shoal.data.counts import Counts as PublicCounts

Counts = dict[tuple[int, int], int]
BOTH = (MEAN, VARIANCE)
# Over U = 65 and U^2/4.
RANGES = {(MEAN,): (65.0,), (VARIANCE,): (65.0**2 / 4,), BOTH: (65.0, 65.0**2 / 4)}


class Naive:
    """Algorithm 1 of paper 000, one line at a time, over a dictionary (user, cell) -> count."""

    def __init__(self, counts: Counts, statistics: tuple[InCounts, ...], epsilon: float) -> None:
        self.left = dict(counts)
        self.cost = cell_errors(statistics, epsilon, RANGES[statistics])
        self.cells = sorted({cell for _, cell in counts})
        self.totals = {g: sum(m for (_, h), m in counts.items() if h == g) for g in self.cells}

    def error(self, cell: int, without: int = -1) -> float:
        """Worst-case error of the cell, without one more user; infinite if nobody is left."""
        inside = [m for (u, g), m in self.left.items() if g == cell and u != without]
        if not inside:
            return math.inf
        state = (np.array([number]) for number in (max(inside), sum(inside), self.totals[cell]))
        return float(self.cost(*state)[0])

    def errors(self) -> list[float]:
        """Of all cells."""
        return [self.error(cell) for cell in self.cells]

    def cells_of(self, user: int) -> list[int]:
        """Where the user still is."""
        return sorted(g for u, g in self.left if u == user)

    def run(self, *, limit: float | None, spare: bool) -> None:
        """Until a user's smallest error exceeds the limit."""
        first = self.errors()
        limit = max(first) if limit is None else limit
        spared = self.cells[first.index(min(first))] if spare else -1
        users = sorted({user for user, _ in self.left})
        while True:
            most = max(len(self.cells_of(user)) for user in users)
            for user in [user for user in users if len(self.cells_of(user)) == most]:
                duals = [(self.error(g, user), g) for g in self.cells_of(user) if g != spared]
                least, cell = min(duals, default=(math.inf, -1))
                if least > limit:
                    return
                del self.left[user, cell]


def columns(counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """User, cell and count of each membership."""
    user, cell = np.array(list(counts), dtype=np.int64).T
    return user, cell, np.array(list(counts.values()), dtype=np.int64)


def run(
    counts: Counts, statistics: tuple[InCounts, ...] = (MEAN,), epsilon: float = 1.0, **options: Any
) -> NDArray[np.bool_]:
    """Clip-User on a dictionary."""
    return clip_user(
        *columns(counts), cell_errors(statistics, epsilon, RANGES[statistics]), **options
    )


def on(counts: PublicCounts, statistics: tuple[InCounts, ...], epsilon: float = 1.0) -> int:
    """Most cells in which Clip-User leaves a user, U = 65."""
    cost = cell_errors(statistics, epsilon, RANGES.get(statistics, RANGES[BOTH]))
    kept = clip_user(counts.user, counts.cell, counts.count, cost)
    return int(np.bincount(counts.user[kept]).max())


def _dense(several: list[list[int]]) -> Counts:
    # A first user everywhere: no cell is empty.
    return {(u, g): m for u, row in enumerate(several) for g, m in enumerate(row) if m or u == 0}


def _matrices(cells: int) -> st.SearchStrategy[Counts]:
    few, many = st.sampled_from([0, 1, 1, 2]), st.integers(0, 40)
    row = st.lists(st.one_of(few, many), min_size=cells, max_size=cells)
    start = st.lists(st.integers(1, 9), min_size=cells, max_size=cells)
    return st.tuples(start, st.lists(row, max_size=9)).map(lambda two: _dense([two[0], *two[1]]))


small = st.integers(1, 5).flatmap(_matrices)
choices = st.sampled_from([(MEAN,), (VARIANCE,), BOTH])


@given(
    counts=small,
    statistics=choices,
    epsilon=st.sampled_from([0.1, 1.0, 4.0]),
    limit=st.sampled_from([None, None, 0.25, 0.5, 2.0]),
    spare=st.booleans(),
    seed=st.integers(0, 9),
)
def test_line_by_line(
    counts: Counts,
    statistics: tuple[InCounts, ...],
    epsilon: float,
    limit: float | None,
    spare: bool,
    seed: int,
) -> None:
    """The same memberships are kept, in whatever order they come."""
    naive = Naive(counts, statistics, epsilon)
    allowed = None if limit is None else limit * sum(RANGES[statistics])
    naive.run(limit=allowed, spare=spare)
    places = np.random.default_rng(seed).permutation(len(counts))
    mixed = {list(counts)[at]: list(counts.values())[at] for at in places.tolist()}
    found = run(mixed, statistics, epsilon, error=allowed, spare_best=spare)
    kept = {pair for pair, stays in zip(mixed, found, strict=True) if stays}
    assert kept == set(naive.left)


def test_an_error_of_exactly_the_limit_is_allowed() -> None:
    """Three users in two cells; the error after one has left a cell is asked for."""
    user, cell = np.divmod(np.arange(6), 2)
    cost, ones = cell_errors([MEAN], 0.5), np.ones(6, dtype=np.int64)
    limit = float(cost(np.array([1]), np.array([2]), np.array([3]))[0])
    assert clip_user(user, cell, ones, cost, error=limit).sum() < 6
    assert clip_user(user, cell, ones, cost, error=math.nextafter(limit, 0)).all()


member = st.tuples(st.one_of(st.integers(1, 6), st.integers(1, 120)), st.booleans())
members = st.lists(member, min_size=1, max_size=8).filter(lambda all_: any(k for _, k in all_))


@given(
    cells=st.lists(members, min_size=1, max_size=3),
    statistics=choices,
    epsilon=st.one_of(st.floats(0.05, 20), st.sampled_from([0.5, 1.0, 2.0])),
)
@example(cells=[[(1, True), (4, True)]], statistics=(VARIANCE,), epsilon=0.05)
@example(cells=[[(3, True), (2, True), (40, True)]], statistics=(VARIANCE,), epsilon=9)
def test_no_whole_cap_after_suppression_is_better(
    cells: list[list[tuple[int, bool]]], statistics: tuple[InCounts, ...], epsilon: float
) -> None:
    """The few caps that are tried hold a best one of all between the least and the largest kept."""
    cell = np.repeat(np.arange(len(cells)), [len(inside) for inside in cells])
    together = [one for inside in cells for one in inside]
    count, kept = (np.array(column) for column in zip(*together, strict=True))
    cost = cell_errors(statistics, epsilon, RANGES[statistics])
    found = caps.after_suppression(cell, count, kept, len(cells), cost)
    for number, inside in enumerate(cells):
        total, left = sum(m for m, _ in inside), [m for m, stays in inside if stays]
        errors = {
            cap: float(
                cost(*(np.array([x]) for x in (cap, sum(min(m, cap) for m in left), total)))[0]
            )
            for cap in range(min(left), max(left) + 1)
        }
        assert errors[int(found[number])] <= min(errors.values()) * (1 + 1e-12)
