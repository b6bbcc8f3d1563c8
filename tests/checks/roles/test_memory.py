"""The same memory is recognised in every form that columns come in; different columns are not."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.checks.shared_memory import shared
from tests.checks.roles.forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.audit

NUMBERS = np.arange(40.0)
WORDS = [f"a text that no view holds in place, number {at}" for at in range(40)]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_one_column_is_recognised(form: Callable[[Any], tuple[Any, Any]]) -> None:
    """Both ways round."""
    one, other = form(np.arange(40))
    assert shared(one, other)
    assert shared(other, one)


def test_numbers_that_serve_as_categories_are_recognised() -> None:
    """The dictionary of a column may be the whole other column."""
    outcome = pa.array(NUMBERS)
    coded = pa.DictionaryArray.from_arrays(np.arange(40), outcome)
    assert shared(coded, outcome)
    assert shared(outcome, pa.chunked_array([coded]))
    assert not shared(coded, pa.array(NUMBERS.copy()))


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"a": WORDS, "b": WORDS}),
        pa.table({"a": [True, False] * 20, "b": [True, False] * 20}),
        pa.table({"a": pa.array(WORDS).dictionary_encode(), "b": WORDS}),
        pa.table({"a": pa.array(WORDS, pa.string_view()), "b": pa.array(WORDS, pa.string_view())}),
        pd.DataFrame({"a": WORDS, "b": WORDS}),
        pd.DataFrame({"a": WORDS, "b": WORDS}, dtype=object),
        pd.DataFrame({"a": NUMBERS, "b": NUMBERS}),
        pd.DataFrame(np.zeros((40, 2)), columns=["a", "b"]),
        pd.DataFrame({"a": pd.Categorical(WORDS), "b": pd.Categorical(WORDS)}),
        pd.DataFrame({"a": NUMBERS, "b": NUMBERS}).astype("Int64"),
        pd.DataFrame({"a": NUMBERS, "b": NUMBERS}).astype("float64[pyarrow]"),
        pl.DataFrame({"a": WORDS, "b": WORDS}),
        pl.DataFrame({"a": NUMBERS, "b": NUMBERS.copy()}),
        pl.DataFrame({"a": [True, False], "b": [True, False]}),
        np.zeros(40, dtype=[("a", "i8"), ("b", "f8")]),
    ],
    ids=lambda frame: type(frame).__module__.split(".")[0],
)
def test_columns_of_one_frame_are_told_apart(frame: Any) -> None:
    """A column is itself, however often it is taken out, and no other."""
    assert shared(frame["a"], frame["a"])
    assert shared(frame["b"], frame["b"])
    assert not shared(frame["a"], frame["b"])


def test_interleaved_and_adjacent_columns_are_told_apart() -> None:
    """Strides are compared exactly: columns and rows of a matrix, halves of a column."""
    matrix = np.zeros((1000, 6))
    for one in range(6):
        for other in range(6):
            assert shared(matrix[:, one], matrix[::-1, other]) == (one == other)
    assert not shared(matrix[:, 1:], matrix[:, 0])
    assert shared(matrix[:, 1:], matrix[:, 5])
    assert not shared(matrix[:500, 0], matrix[500:, 0])
    assert not shared(NUMBERS[::2], NUMBERS[1::2])
    chunked = pa.chunked_array([pa.array(NUMBERS[:20]), pa.array(NUMBERS[20:])])
    assert shared(chunked, chunked.slice(25))
    assert not shared(chunked.slice(0, 10), chunked.slice(10))


@pytest.mark.parametrize(
    "kind", [pl.Decimal(20, 0), pl.Int128, pl.Object, pl.Null, pl.List(pl.Int8)], ids=str
)
def test_columns_that_arrow_has_no_numbers_for_raise_nothing(kind: Any) -> None:
    """Decimals are recognised, whole numbers of 128 bits and objects copied or refused."""
    values: list[Any] = [[1]] * 9 if isinstance(kind, pl.List) else [None] * 9
    if kind in {pl.Int128, pl.Object} or isinstance(kind, pl.Decimal):
        values = list(range(9))
    column = pl.Series("a", values, dtype=kind)
    assert shared(column, column)
    lent = isinstance(kind, pl.Decimal | pl.List)
    assert shared(column, column.slice(2)) == lent
    assert not shared(column, pl.Series("a", values, dtype=kind))


def test_what_has_no_memory_of_its_own_is_compared_by_identity() -> None:
    """Lists, tuples and ranges, equal or not; contents play no part."""
    for column in ([1, 2], (1, 2), range(3), iter([1])):
        assert shared(column, column)
    assert not shared([1, 2], [1, 2])
    assert not shared(NUMBERS, NUMBERS.copy())
    assert not shared(np.zeros(0), np.zeros(0))
    assert not shared(pa.array([], pa.int64()), pa.array([], pa.string()))
    assert not shared(pa.nulls(3), pa.nulls(3))
    assert not shared(array.array("d", [1.0]), array.array("d", [1.0]))


def test_thousands_of_chunks_take_a_moment() -> None:
    """Work is bounded, also where a file was read in small pieces."""
    pieces = [pa.array(np.arange(4.0)) for _ in range(6000)]
    one, other = pa.chunked_array(pieces[:3000]), pa.chunked_array(pieces[3000:])
    assert not shared(one, other)
    assert shared(one, pa.chunked_array(pieces[2999:]))


def test_a_pair_that_takes_too_long_counts_as_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be decided is refused."""

    def endless(*_: object, **__: object) -> bool:
        raise np.exceptions.TooHardError

    monkeypatch.setattr(np, "shares_memory", endless)
    matrix = np.zeros((9, 2))
    assert shared(matrix[:, 0], matrix[:, 1])


def test_a_class_may_call_anything_its_module() -> None:
    """No text, or no module at all."""
    for module in (5, None, b"pandas"):
        column = type("Column", (), {"__module__": module})()
        assert not shared(column, NUMBERS)
        assert not shared(NUMBERS, column)
