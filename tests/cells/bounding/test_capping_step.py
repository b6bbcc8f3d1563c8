"""The caps after suppression against every whole number in their range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from shoal_studies.occupancies import synthetic

from shoal.cells.bounding.capping import cap_kept
from shoal.cells.bounding.statistics import MEAN, VARIANCE, Statistic, cell_errors
from shoal.cells.bounding.suppression import clip_user
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.property

WIDTH = 65.0
choices = st.sampled_from([(MEAN,), (VARIANCE,), (MEAN, VARIANCE)])
member = st.tuples(st.one_of(st.integers(1, 6), st.integers(1, 120)), st.booleans())
members = st.lists(member, min_size=1, max_size=8).filter(lambda all_: any(k for _, k in all_))


def by_enumeration(
    inside: list[tuple[int, bool]], statistics: Sequence[Statistic], epsilon: float, width: float
) -> dict[int, float]:
    """The error of every whole cap between the smallest and the largest kept count."""
    total, kept = sum(m for m, _ in inside), [m for m, stays in inside if stays]
    found = {}
    for cap in range(min(kept), max(kept) + 1):
        state = (np.array([x]) for x in (cap, sum(min(m, cap) for m in kept), total))
        found[cap] = float(cell_errors(statistics, epsilon, *state, width=width)[0])
    return found


@given(
    cells=st.lists(members, min_size=1, max_size=3),
    statistics=choices,
    epsilon=st.one_of(st.floats(0.05, 20), st.sampled_from([0.5, 1.0, 2.0])),
    width=st.sampled_from([1.0, WIDTH]),
)
@example(cells=[[(1, True), (4, True)]], statistics=(VARIANCE,), epsilon=1.0, width=1.0)
@example(cells=[[(3, True), (2, True), (40, True)]], statistics=(VARIANCE,), epsilon=9, width=1)
def test_no_whole_cap_is_better(
    cells: list[list[tuple[int, bool]]],
    statistics: Sequence[Statistic],
    epsilon: float,
    width: float,
) -> None:
    """The claim of the docstring: the few caps tried hold a best one."""
    cell = np.repeat(np.arange(len(cells)), [len(inside) for inside in cells])
    together = [one for inside in cells for one in inside]
    count, kept = (np.array(column) for column in zip(*together, strict=True))
    found = cap_kept(cell, count, kept, len(cells), statistics, epsilon, width=width)
    for number, inside in enumerate(cells):
        errors = by_enumeration(inside, statistics, epsilon, width)
        assert found.cell_error[number] == errors[int(found.cap[number])]
        assert found.cell_error[number] <= min(errors.values()) * (1 + 1e-12)
    assert found.error == found.cell_error.max()
    assert (found.count == np.where(kept, np.minimum(count, found.cap[cell]), 0)).all()


def test_a_cap_between_the_counts_can_be_best() -> None:
    """The variance with an odd number of records: no kept count is as good."""
    cell, count, kept = np.zeros(2, dtype=np.int64), np.array([1, 4]), np.ones(2, dtype=np.bool_)
    errors = by_enumeration([(1, True), (4, True)], [VARIANCE], 0.05, 1.0)
    assert min(errors, key=errors.__getitem__) == 2
    assert cap_kept(cell, count, kept, 1, [VARIANCE], 0.05).cap.tolist() == [2]


@pytest.mark.parametrize("gamma", [3, 9])
def test_after_suppression_the_error_falls(gamma: float) -> None:
    """The paper's setting: no cell gets worse, and the worst gets better."""
    occupancy, both = synthetic(gamma, seed=0), (MEAN, VARIANCE)
    user, cell, count = occupancy.user, occupancy.cell, occupancy.count
    sizes = occupancy.n_users, occupancy.n_cells
    before = clip_user(user, cell, count, *sizes, both, 1.0, width=WIDTH)
    after = cap_kept(cell, count, before.kept, sizes[1], both, 1.0, width=WIDTH)
    assert (after.cell_error <= before.cell_error).all()
    assert after.error < before.error


def test_a_cell_that_nobody_is_kept_in() -> None:
    """There is no range to search."""
    cell, count = np.array([0, 1]), np.array([1, 1])
    with pytest.raises(InputError, match="without a kept membership"):
        cap_kept(cell, count, np.array([True, False]), 2, [MEAN], 1.0)
