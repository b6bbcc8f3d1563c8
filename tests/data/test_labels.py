"""Outcomes that are labels: one of them that is unknown shows nowhere."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.errors import DataError
from shoal.trials import Domain
from tests.support.loop import loop_over

DOMAIN = Domain.ordinal(["low", "mid", "high"])


@loop_over("odd", ["Low", "", " mid", "9"])
@loop_over("form", [list, pa.array, pd.Series, pd.Categorical, lambda x: np.array(x, dtype=object)])
def test_a_text_that_is_no_label_is_not_told_of(odd: str, form: Any) -> None:
    """No error depends on one outcome; an unknown text counts as the first level."""
    assert DOMAIN.numbers(form(["mid", odd, "high"])).tolist() == [1, 0, 2]
    assert DOMAIN.numbers(form(["mid", "low", "high"])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_missing(absent: object) -> None:
    """Missing outcomes are told from texts that are no labels."""
    assert np.isnan(DOMAIN.numbers(["low", absent])).tolist() == [False, True]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_every_kind_of_text_of_arrow_is_read(kind: pa.DataType) -> None:
    """As columns, as scalars, and as scalars of dictionaries."""
    column = pa.array(["high", None, "low"], kind)
    forms = [column, list(column), pd.Series(list(column), dtype=object)]
    if kind != pa.string_view():
        forms.append(list(column.dictionary_encode()))
    for form in forms:
        np.testing.assert_array_equal(DOMAIN.numbers(form), [2, np.nan, 0])


def test_a_text_of_arrow_that_is_none_is_not_told_of() -> None:
    """Bytes that are no text count as the first level wherever the column is."""
    data = pa.array([b"high", b"\xff", b"mid"]).view(pa.string())
    for form in (data, list(data), pd.Series(data, dtype=pd.ArrowDtype(pa.string()))):
        assert DOMAIN.numbers(form).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "column", [np.array(["1", "0"]), pa.array(["1", "0"]), pa.array([b"1", b"0"])], ids=str
)
def test_texts_are_no_numbers(column: Any) -> None:
    """One that spells no number would decide whether all are read."""
    with pytest.raises(DataError, match="the outcomes do not fit the domain"):
        Domain.binary().numbers(column)


@loop_over(
    "column",
    [
        np.array([["high"], ["mid"]], dtype=object),
        np.array([["high", "mid"]]),
        pd.DataFrame({"said": ["high", "mid"]}),
        pd.DataFrame({"said": ["high", "mid"]}).astype("string").to_numpy(),
        {"high", "mid"},
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
    with pytest.raises(DataError, match="the outcomes do not fit the domain"):
        DOMAIN.numbers(column)


@pytest.mark.parametrize("column", [{1, 0}, frozenset({1.0}), {1: 0}], ids=str)
def test_numbers_without_an_order_are_refused(column: Any) -> None:
    """Nobody knows which cell of a set is whose."""
    with pytest.raises(DataError, match="the outcomes do not fit the domain"):
        Domain.binary().numbers(column)


def test_the_type_of_a_column_decides() -> None:
    """Numbers are labels where all labels are numbers; no other type is read as texts."""
    whole = Domain.ordinal(["1", "2", "3"])
    assert whole.numbers(np.array([3, 1, 9])).tolist() == [2, 0, 0]
    for domain, column in ((DOMAIN, np.array([1, 2])), (whole, np.array([True, False]))):
        with pytest.raises(DataError, match="the outcomes do not fit the domain"):
            domain.numbers(column)
