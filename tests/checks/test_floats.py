"""Numbers of Arrow in floating point: every cell by itself, whatever the others hold."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.checks.floats import floats, floats_of, read_floats
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

_SCALES = range(38)
_WIDE = 76


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=5), st.data())
def test_a_decimal_is_read_alike_with_any_number_of_digits(
    whole: list[int], data: st.DataObject
) -> None:
    """The digits of the longest cell of a column change no other cell."""
    numbers = [Decimal(each).scaleb(-data.draw(st.integers(0, 15))) for each in whole]
    expected = np.array([float(each) for each in numbers])
    for scale in range(15, 60, 7):
        found = floats(pa.array(numbers, pa.decimal256(_WIDE, scale)))
        np.testing.assert_array_equal(found, expected)


@loop_over(
    "scale",
    _SCALES,
)
def test_a_half_is_a_half_at_every_scale(scale: int) -> None:
    """Arrow's own cast gives less at 11 digits, among others."""
    kind = pa.decimal128(38, max(scale, 1))
    array = pa.array([Decimal("0.5")], kind)
    for column in (array, pa.chunked_array([array])):
        assert floats(column).tolist() == [0.5]


def test_numbers_booleans_and_nothing() -> None:
    """Shape (rows,), NaN for nothing, in every type that has numbers."""
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.bool_(), pa.decimal128(5, 2)):
        found = floats(pa.array([1, None], pa.int8()).cast(kind))
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, [1.0, np.nan])
    with pytest.raises(pa.ArrowException):
        floats(pa.array(["a"]))


def test_a_list_is_read_cell_by_cell() -> None:
    """A type that suits all cells would be an object's for None or a long number."""
    for cells, expected in (
        ([1, None], [1.0, np.nan]),
        ([1, 2**70], [1.0, 2.0**70]),
        ([[1, None], [2.5, True]], [[1.0, np.nan], [2.5, 1.0]]),
    ):
        np.testing.assert_array_equal(read_floats(cells), expected)


def test_a_range_longer_than_any_memory_is_refused_at_once() -> None:
    """Its length is said, but nobody holds it."""
    for many in (2**24, 10**12, 10**30):
        assert read_floats(range(many)) is None
        with pytest.raises(TypeError):
            floats_of(range(many))
    found = read_floats(range(3))
    assert found is not None
    assert found.tolist() == [0.0, 1.0, 2.0]
