"""Outcomes and values of Python objects: refused by their dtype, or read one by one."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal import mean, unbiased
from shoal.cells.one_cell import numbers_of
from shoal.data.outcome_space import Space
from shoal.errors import DataError
from shoal.means.users import UserValues
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

CONTENTS: list[list[Any]] = [
    [0.0, 1.0, 1.0],
    [0, 1, 0.5],
    [0, 1, None],
    [True, False, 1],
    [Decimal(0), Decimal(1), Decimal("1e-30")],
    [0, 1, "secret"],
]
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "numpy": lambda values: np.array(values, dtype=object),
    "pandas": lambda values: pd.Series(values, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_outcomes_that_are_objects_are_refused_by_their_dtype(form: str) -> None:
    """One message whatever the cells hold, so that no cell decides."""
    told = set()
    for values in CONTENTS:
        with pytest.raises(DataError) as caught:
            Space.binary().numbers(FORMS[form](values))
        told.add(str(caught.value))
    (line,) = told
    assert "outcomes that are Python objects" in line
    assert "astype(float)" in line


@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_objects_are_refused_by_their_dtype(form: str) -> None:
    """Means of one cell and unbiased means take no objects either."""
    users, told = np.arange(3), set()
    for values in CONTENTS:
        column = FORMS[form](values)
        for call in (
            lambda column=column: mean.auto(column, users, bounds=(0, 1), epsilon=1),
            lambda column=column: unbiased.clipped_mean(
                column, interval=(0, 1), bias=0.1, moment=unbiased.Moment(2, 1), epsilon=1
            ),
        ):
            with pytest.raises(DataError) as caught:
                call()
            told.add(str(caught.value))
    assert len(told) == 2
    assert all("astype(float)" in line for line in told)


def test_labels_that_are_objects_have_one_type() -> None:
    """Texts are labels in any frame; objects of several types are refused by these."""
    space = Space.ordinal(["1", "2"])
    for form in (*FORMS.values(), list):
        assert space.numbers(form(["1", "2", None]))[:2].tolist() == [0.0, 1.0]
        with pytest.raises(DataError, match="outcomes of another kind"):
            space.numbers(form([2, "2"]))


def test_whole_numbers_are_their_labels_in_every_container() -> None:
    """An outcome has one level, in an array, a list, a frame or a column of Arrow."""
    space = Space.ordinal(["-1", "0", "10"])
    plain = np.array([10, 0, -1, 10])
    for column in (
        plain, plain.tolist(), list(plain), tuple(plain.tolist()), plain.astype(object),
        pd.Series(plain), pd.Series(plain, dtype=object), pd.Series(plain).astype("category"),
        pd.Series(plain, dtype="Int64"), pa.array(plain), plain.astype(str), plain.astype("int8"),
    ):  # fmt: skip
        assert space.numbers(column).tolist() == [2.0, 1.0, 0.0, 2.0]


def test_labels_that_no_number_is_written_as_take_no_numbers() -> None:
    """The labels 01 and 02 are texts; a column of numbers is refused by its type."""
    with pytest.raises(DataError):
        Space.ordinal(["01", "02"]).numbers(np.array([1, 2]))


def test_lists_of_decimals_are_no_outcomes() -> None:
    """In one column all would have the digits of the longest."""
    with pytest.raises(DataError, match="one number in every row"):
        Space.bins(0, 1, 3).numbers([Decimal("0.25"), Decimal("0.5")])


@loop_over("odd", [np.float16(0.5), np.longdouble(0.5), np.float32(0.5), True])
@loop_over("other", [0, 1, 300, 2**53 + 1, np.int8(1), np.uint64(2**63 + 7), None])
def test_lists_are_read_cell_by_cell(odd: object, other: Any) -> None:
    """No cell of a list decides the type of another, in outcomes, means and vectors."""
    space = Space.bins(0, 1, 3)
    for cells in ([odd, 0.25, other], [other, 0.25, odd]):
        at = cells.index(odd) if cells[0] is odd else 2
        found = space.numbers(cells)
        assert (found[at], found[1]) == (float(odd), 0.25)
        if other is not None:
            assert found[2 - at] == float(other)
            assert UserValues.of(cells).value.tolist() == found.tolist()
            assert numbers_of([cells, cells]).tolist() == [found.tolist()] * 2


@loop_over(
    "odd", [Decimal(1), "0.5", b"1", 1j, np.timedelta64(1, "s"), np.ma.masked, [0.5], 10**400]
)
@loop_over("other", [0, 0.5, np.float16(1), None])
def test_lists_of_other_things_are_refused_in_one_way(odd: object, other: object) -> None:
    """What is refused is refused next to any cell."""
    for cells in ([odd, other], [other, odd]):
        with pytest.raises(DataError, match="outcomes of another kind"):
            Space.bins(0, 1, 3).numbers(cells)
        with pytest.raises(DataError, match="no column of real numbers"):
            UserValues.of(cells)
