"""Bins of public numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.cell_rules.parse import parse
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from shoal.data.cell_rules.rule import CellRule

pytestmark = pytest.mark.property

MOST = math.nextafter(2.0**52, 0)


def lower_ends(
    numbers: list[float | None], rule: str | CellRule, missing: str = "refuse"
) -> list[object]:
    """The key of each number, from counts of one user a number."""
    # As many records as tell a user: an occupancy does not say who it is.
    times = np.arange(1, len(numbers) + 1)
    rows = np.repeat(np.arange(len(numbers)), times)
    columns: dict[str, Any] = {
        "who": np.repeat(np.arange(len(numbers)), times),
        "far": pa.array(numbers, pa.float64()).take(rows),
        "v": np.zeros(len(rows)),
    }
    of = shoal.Records(
        pa.table(columns), user="who", value="v", bounds=(0, 1), cell=rule, missing=missing
    )
    made = of.occupancy()
    own = made.cells.column(0).to_pylist()
    return [own[cell] for cell in made.cell[np.argsort(made.count)].tolist()]


@given(
    numbers=st.lists(
        st.floats(-1e6, 1e6) | st.floats(-1e-300, 1e-300) | st.floats(-MOST, MOST),
        min_size=1,
        max_size=20,
    ),
    width=st.integers(1, 1000) | st.integers(1, int(MOST)),
    start=st.integers(-50, 50) | st.integers(-int(MOST), int(MOST)),
)
def test_a_number_lies_in_its_bin(numbers: list[float], width: int, start: int) -> None:
    """Its lower end is whole widths from the start, and less than a width below it."""
    rule = shoal.bins("far", width, start)
    for number, low in zip(numbers, lower_ends(list(numbers), rule), strict=True):
        assert low == math.floor((Fraction(number) - start) / width) * width + start
    assert parse(str(rule)) == rule


@pytest.mark.parametrize("far", [math.inf, -math.inf, 1e300, 2.0**52, -(2.0**52)])
def test_numbers_without_a_bin_are_refused(far: float) -> None:
    """They would all be in one."""
    with pytest.raises(DataError, match="infinite or huge"):
        lower_ends([1.0, far], shoal.bins("far", 10))


def test_missing_numbers_are_missing_cells() -> None:
    """NaN and null are left out if that is public, and refused else."""
    numbers = [5.0, None, math.nan, 15.0]
    assert lower_ends(numbers, "bins(far,10)", missing="public") == [0, 10]
    with pytest.raises(DataError):
        lower_ends(numbers, "bins(far,10)")


@pytest.mark.parametrize(
    "text",
    ["bins(far)", "bins(far,0)", "bins(far,1.5)", "bins(far,1,2,3)", f"bins(far,{2**52})"],
)
def test_other_bins_are_refused(text: str) -> None:
    """A width is a whole number above 0."""
    with pytest.raises(InputError):
        parse(text)
