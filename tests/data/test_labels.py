"""Outcomes that are labels: one of them that is unknown shows nowhere."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.errors import DataError
from shoal.trials import Space
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

SPACE = Space.ordinal(["low", "mid", "high"])


@loop_over(
    "odd",
    ["Low", "", " mid", "9"],
)
@loop_over(
    "form",
    [list, pa.array, pd.Series, pd.Categorical, lambda x: np.array(x, dtype=object)],
)
def test_a_text_that_is_no_label_is_not_told_of(odd: str, form: Any) -> None:
    """No error depends on one outcome; an unknown text counts as the first level."""
    assert SPACE.numbers(form(["mid", odd, "high"])).tolist() == [1, 0, 2]
    assert SPACE.numbers(form(["mid", "low", "high"])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("odd", [3, 0.5, True, b"low", ("low",)])
def test_an_object_that_is_no_text_is_not_told_of(odd: object) -> None:
    """Next to any other cell it counts as the first level."""
    for cells in (["high", odd], np.array(["high", odd], dtype=object)):
        if isinstance(cells, np.ndarray) and cells.ndim != 1:
            continue
        assert SPACE.numbers(cells).tolist() == [2, 0]


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_missing(absent: object) -> None:
    """Missing outcomes are told from texts that are no labels."""
    assert np.isnan(SPACE.numbers(["low", absent])).tolist() == [False, True]


@pytest.mark.parametrize(
    "absent",
    [np.ma.masked, pa.scalar(None, pa.string()), Decimal("NaN"), np.datetime64("NaT")],
    ids=str,
)
def test_what_other_libraries_call_missing_is_missing(absent: object) -> None:
    """It is no first level."""
    assert np.isnan(SPACE.numbers(["high", absent, "mid"])).tolist() == [False, True, False]


def test_masked_cells_are_missing() -> None:
    """Whatever lies under the mask, of objects and of texts."""
    for kind in (object, "U"):
        masked = np.ma.array(np.array(["high", "high"], dtype=kind), mask=[False, True])
        assert SPACE.numbers(masked).tolist()[0] == 2
        assert np.isnan(SPACE.numbers(masked)).tolist() == [False, True]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_every_kind_of_text_of_arrow_is_read(kind: pa.DataType) -> None:
    """As columns, as scalars, and as scalars of dictionaries."""
    column = pa.array(["high", None, "low"], kind)
    forms = [column, list(column), pd.Series(list(column), dtype=object)]
    if kind != pa.string_view():
        forms.append(list(column.dictionary_encode()))
    for form in forms:
        np.testing.assert_array_equal(SPACE.numbers(form), [2, np.nan, 0])


def test_a_text_of_arrow_that_is_none_is_not_told_of() -> None:
    """Bytes that are no text count as the first level wherever the column is."""
    data = pa.array([b"high", b"\xff", b"mid"]).view(pa.string())
    for form in (data, list(data), pd.Series(data, dtype=pd.ArrowDtype(pa.string()))):
        assert SPACE.numbers(form).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "column", [np.array(["1", "0"]), pa.array(["1", "0"]), pa.array([b"1", b"0"])], ids=str
)
def test_texts_are_no_numbers(column: Any) -> None:
    """One that spells no number would decide whether all are read."""
    with pytest.raises(DataError, match="outcomes of another kind"):
        Space.binary().numbers(column)


def test_scalars_of_arrow_are_the_texts_that_they_hold() -> None:
    """As the column would be that they come from; other kinds are no labels."""
    column = pa.chunked_array([["high", None, "low", "mid"]])
    np.testing.assert_array_equal(SPACE.numbers(list(column)), SPACE.numbers(column))
    whole = Space.ordinal(["1", "2"])
    yes = pa.scalar(value=True)
    odd = [pa.scalar(2), yes, pa.scalar(b"2"), pa.scalar(2.0), pa.scalar("2")]
    assert whole.numbers(odd).tolist() == [1, 0, 0, 1, 1]


@loop_over(
    "column",
    [
        np.array([["high"], ["mid"]], dtype=object),
        np.array([["high", "mid"]]),
        pd.DataFrame({"said": ["high", "mid"]}),
        pd.DataFrame({"said": ["high", "mid"]}).astype("string").to_numpy(),
        {"high", "mid"},
        iter(["high"]),
        [("high",), ("mid",)],
        [["high"], ["mid"]],
        [np.array("high"), np.array("mid")],
        [pd.Series(["high"]), pd.Series(["mid"])],
        list(np.array([["high"], ["mid"]], dtype=object)),
        "high",
        {"high": "mid"},
    ],
)
def test_what_is_not_one_column_of_labels_is_refused(column: Any) -> None:
    """Units would all count as the first level, and nobody would be told."""
    with pytest.raises(DataError, match="outcomes of another kind"):
        SPACE.numbers(column)


@pytest.mark.parametrize(
    "odd", [np.float16("inf"), np.float32("inf"), np.timedelta64(1, "s"), 10**40, b"1", "\ud800"]
)
def test_no_object_decides_whether_labels_are_read(odd: object) -> None:
    """It counts as the first level, in lists and in arrays of objects."""
    space = Space.ordinal(["0", "1", "2"])
    for form in (list, lambda cells: np.array(cells, dtype=object)):
        assert space.numbers(form(["2", odd, "1"])).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "form", [np.array, lambda cells: pd.Series(cells, dtype=pd.StringDtype("python"))]
)
def test_a_broken_text_does_not_decide_whether_a_column_is_read(form: Any) -> None:
    """Columns of texts, too, which Arrow would refuse whole."""
    assert SPACE.numbers(form(["high", "\ud800", "mid"])).tolist() == [2, 0, 1]


@pytest.mark.parametrize("column", [{1, 0}, frozenset({1.0}), {1: 0}], ids=str)
def test_numbers_without_an_order_are_refused(column: Any) -> None:
    """Nobody knows which cell of a set is whose."""
    with pytest.raises(DataError, match="outcomes of another kind"):
        Space.binary().numbers(column)


def test_the_type_of_a_column_decides() -> None:
    """Whole numbers are labels where all labels are; no other type is read as texts."""
    whole = Space.ordinal(["1", "2", "3"])
    assert whole.numbers(np.array([3, 1, 9])).tolist() == [2, 0, 0]
    for space, column in ((SPACE, np.array([1, 2])), (whole, np.array([1.0, 2.0]))):
        with pytest.raises(DataError, match="outcomes of another kind"):
            space.numbers(column)
