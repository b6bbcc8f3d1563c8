"""Clip-User against the algorithm line by line, and its published behaviour."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_studies.occupancies import itms_many, synthetic

from shoal.cells.bounding.statistics import MEAN, VARIANCE, Statistic, cell_errors
from shoal.cells.bounding.suppression import Suppression, clip_user
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

pytestmark = pytest.mark.property

Counts = dict[tuple[int, int], int]
WIDTH = 65.0
BOTH = (MEAN, VARIANCE)


class Naive:
    """Algorithm 1 of paper 000, one line at a time, over a dictionary (user, cell) -> count."""

    def __init__(
        self, counts: Counts, statistics: Sequence[Statistic], epsilon: float, width: float
    ) -> None:
        self.left = dict(counts)
        self.statistics, self.epsilon, self.width = statistics, epsilon, width
        self.cells = sorted({cell for _, cell in counts})
        self.totals = {g: sum(m for (_, h), m in counts.items() if h == g) for g in self.cells}

    def error(self, cell: int, without: int = -1) -> float:
        """Worst-case error of the cell, without one more user; infinite if nobody is left."""
        inside = [m for (u, g), m in self.left.items() if g == cell and u != without]
        if not inside:
            return math.inf
        state = (np.array([number]) for number in (max(inside), sum(inside), self.totals[cell]))
        return float(cell_errors(self.statistics, self.epsilon, *state, width=self.width)[0])

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
    counts: Counts,
    statistics: Sequence[Statistic] = (MEAN,),
    epsilon: float = 1.0,
    **options: Any,
) -> Suppression:
    """Clip-User on a dictionary."""
    user, cell, count = columns(counts)
    sizes = int(user.max()) + 1, int(cell.max()) + 1
    return clip_user(user, cell, count, *sizes, statistics, epsilon, **options)


def on(occupancy: Counts, statistics: Sequence[Statistic], epsilon: float = 1.0) -> Suppression:
    """Clip-User on an occupancy, U = 65."""
    columns = occupancy.user, occupancy.cell, occupancy.count
    sizes = occupancy.n_users, occupancy.n_cells
    return clip_user(*columns, *sizes, statistics, epsilon, width=WIDTH)


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
    width=st.sampled_from([1.0, WIDTH]),
    seed=st.integers(0, 9),
)
def test_line_by_line(
    counts: Counts,
    statistics: Sequence[Statistic],
    epsilon: float,
    limit: float | None,
    spare: bool,
    width: float,
    seed: int,
) -> None:
    """The same memberships are kept, at the same errors, in whatever order they come."""
    naive = Naive(counts, statistics, epsilon, width)
    largest = max(naive.errors())
    naive.run(limit=limit, spare=spare)
    places = np.random.default_rng(seed).permutation(len(counts))
    mixed = {list(counts)[at]: list(counts.values())[at] for at in places.tolist()}
    found = run(mixed, statistics, epsilon, error=limit, spare_best=spare, width=width)
    kept = {pair for pair, stays in zip(mixed, found.kept, strict=True) if stays}
    assert kept == set(naive.left)
    assert found.cell_error.tolist() == naive.errors()
    assert found.limit == (largest if limit is None else limit)
    number = [len(naive.cells_of(user)) for user in range(len(found.cells_per_user))]
    assert found.cells_per_user.tolist() == number
    assert found.most_cells == max(number)
    assert found.loss == max(number) * found.epsilon_per_cell
    assert limit is not None or found.error <= found.limit


@pytest.mark.parametrize("seed", range(3))
def test_line_by_line_with_many_users(seed: int) -> None:
    """Batches of users whose decisions depend on each other in long chains."""
    rng = np.random.default_rng(seed)
    present = rng.random((150, 6)) < 0.6
    present[0] = True
    counts = {
        (int(user), int(cell)): int(rng.geometric(0.2)) for user, cell in np.argwhere(present)
    }
    naive = Naive(counts, BOTH, 0.5, WIDTH)
    naive.run(limit=4000.0, spare=False)
    found = run(counts, BOTH, 0.5, error=4000.0, width=WIDTH)
    kept = {pair for pair, stays in zip(counts, found.kept, strict=True) if stays}
    assert kept == set(naive.left)
    assert len(kept) < len(counts) / 2


@given(counts=small)
def test_no_cell_is_emptied(counts: Counts) -> None:
    """However large an error is allowed; then nobody is left in two cells that need not be."""
    found = run(counts, error=1e9)
    _, cell, _ = columns(counts)
    assert set(cell[found.kept].tolist()) == set(cell.tolist())
    assert np.isfinite(found.cell_error).all()


def test_an_only_user_stays_everywhere() -> None:
    """Each of its cells would be emptied: nothing happens, and K is G_1."""
    found = run({(0, cell): 5 for cell in range(4)}, error=1e9)
    assert found.kept.all()
    assert found.most_cells == 4


def test_the_spared_cell_is_the_best() -> None:
    """Cell 1 has the smallest error at first: everyone would leave it, and may not."""
    counts = _dense([[2, 2], *[[1, 3]] * 5, [4, 1]])
    _, cell, _ = columns(counts)
    assert Naive(counts, [MEAN], 1.0, 1.0).errors()[1] < Naive(counts, [MEAN], 1.0, 1.0).errors()[0]
    assert not run(counts, error=2.0).kept[cell == 1].all()
    assert run(counts, error=2.0, spare_best=True).kept[cell == 1].all()


@pytest.mark.parametrize(
    ("gamma", "statistics", "cells"), [(3, (MEAN,), 6), (9, (MEAN,), 5), (3, BOTH, 5)]
)
def test_paper_setting(gamma: float, statistics: Sequence[Statistic], cells: int) -> None:
    """docs/theory/optimal.md: 12 cells at first; one draw at epsilon = 1 per cell."""
    occupancy = synthetic(gamma, seed=0)
    assert occupancy.summary().cells_per_user == 12
    found = on(occupancy, statistics)
    assert found.most_cells == found.loss == cells
    assert found.error <= found.limit


@pytest.mark.parametrize(("gamma", "average"), [(3, 5.8), (9, 4.8)])
def test_paper_setting_on_average(gamma: float, average: float) -> None:
    """Ten draws, means only: frozen, as it is to be reported."""
    found = [on(synthetic(gamma, seed), [MEAN]).most_cells for seed in range(10)]
    assert np.mean(found) == pytest.approx(average)


def _printed(dropped: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    # Theorem IV.2 as printed, K records kept: the product if n > 2K, else 1/4.
    product = (totals - dropped) * dropped / totals**2
    return np.where(dropped == 0, 0.0, np.where(totals > 2 * (totals - dropped), product, 0.25))


def test_erratum_1_stops_too_early() -> None:
    """Erratum 1: with the bias as printed, one record left out costs U^2/4, and nobody leaves."""
    as_printed = Statistic("variance, as printed", 2, VARIANCE.sensitivity, _printed)
    occupancy = synthetic(3, seed=0)
    printed, corrected = on(occupancy, (MEAN, as_printed)), on(occupancy, BOTH)
    assert printed.limit == corrected.limit
    assert printed.most_cells == 12
    assert corrected.most_cells == 5


def test_the_built_occupancy_has_the_published_figures() -> None:
    """50 cells, 223 users, 11 cells of one user; Clip-User gains, and is an upper bound."""
    occupancy = itms_many()
    facts = occupancy.summary()
    assert (facts.cells, facts.users, facts.cells_per_user) == (50, 223, 11)
    found = on(occupancy, BOTH, 0.5)
    assert found.most_cells < 11
    assert found.error <= found.limit


@pytest.mark.parametrize(
    "bad",
    [
        ([0, 0], [0, 0], [1, 1]),
        ([0, 1], [0, 0], [1, 1]),
        ([0, 2], [0, 1], [1, 1]),
        ([0, 1], [0, 2], [1, 1]),
        ([0, -1], [0, 1], [1, 1]),
        ([0, 1], [0, 1], [1, 0]),
        ([0, 1], [0, 1], [1]),
        ([], [], []),
    ],
)
def test_columns_that_are_no_memberships(bad: tuple[list[int], ...]) -> None:
    """A pair twice, an empty cell, out of range, a count of 0, unequal or no columns."""
    user, cell, count = (np.array(column, dtype=np.int64) for column in bad)
    with pytest.raises(InputError, match="memberships"):
        clip_user(user, cell, count, 2, 2, [MEAN], 1.0)


@pytest.mark.parametrize("limit", [-1.0, math.inf, math.nan])
def test_errors_that_are_none(limit: float) -> None:
    """A finite number from 0."""
    with pytest.raises(InputError, match="error"):
        run({(0, 0): 1, (1, 0): 1}, error=limit)


def test_an_error_of_exactly_the_limit_is_allowed() -> None:
    """Three users in two cells; the error after one has left a cell is asked for."""
    user, cell = np.divmod(np.arange(6), 2)
    one, two, three = np.array([1]), np.array([2]), np.array([3])
    limit = float(cell_errors([MEAN], 0.5, one, two, three)[0])
    found = clip_user(user, cell, np.ones(6, dtype=np.int64), 3, 2, [MEAN], 0.5, error=limit)
    assert found.error == limit
    assert found.kept.sum() < 6
    assert clip_user(
        user, cell, np.ones(6, dtype=np.int64), 3, 2, [MEAN], 0.5, error=math.nextafter(limit, 0)
    ).kept.all()
