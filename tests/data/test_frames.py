"""Private columns of Python objects are refused by their dtype, whatever is in them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError, InputError
from tests.support.loop import loop_over

if TYPE_CHECKING:
    from collections.abc import Callable

# Ibis asks pandas about frames with columns of objects in a way that pandas warns of.
pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")]

OBJECTS: dict[str, list[Any]] = {
    "floats": [0.1, 0.3, 0.7],
    "one whole number": [0.1, 0.3, 1],
    "decimals": [Decimal("0.1"), Decimal("0.3"), Decimal("0.7")],
    "one long decimal": [Decimal("0.1"), Decimal("0.3"), Decimal("0.2") + Decimal(10) ** -27],
    "one text": [0.1, 0.3, "0.7"],
    "nothing": [None, None, None],
}


def frame(values: object) -> pd.DataFrame:
    """Three records of three users; users are Python objects, too: they are public."""
    users = pd.Series([1, 2, 3], dtype=object)
    return pd.DataFrame({"user": users, "cell": ["x", "x", "y"], "value": values})


def records(table: object) -> shoal.Records:
    """Records of a table."""
    return shoal.Records(table, user="user", value="value", bounds=(0, 1), cell="cell")


def objects(values: list[Any]) -> pd.DataFrame:
    """A frame of pandas whose values are objects."""
    return frame(pd.Series(values, dtype=object))


FORMS: dict[str, Callable[[list[Any]], object]] = {
    "pandas": objects,
    "categories": lambda values: frame(pd.Categorical(pd.Series(values, dtype=object))),
    "a table of Ibis": lambda values: ibis.memtable(objects(values)),
}


@loop_over(
    "what",
    OBJECTS,
)
@loop_over(
    "form",
    FORMS,
)
def test_private_columns_of_objects_are_refused_by_their_dtype(form: str, what: str) -> None:
    """The same words whatever the cells hold, so that no cell decides."""
    table = FORMS[form](OBJECTS[what])
    for read in (
        lambda: records(table).occupancy(),
        lambda: records(table).aggregate(),
        lambda: read_columns(table, private={"value": "value"}, public={"user": "user"}),
    ):
        with pytest.raises(DataError) as caught:
            read()
        assert str(caught.value) == (
            "the value column 'value' holds Python objects; allowed: a column of one type for all "
            "its cells, such as float64; convert it first, for example with astype(float)."
        )


def test_expressions_over_guessed_numbers_are_refused() -> None:
    """A column of objects is not a private one by another name either."""
    table = ibis.memtable(objects([0.1, 0.3, 0.7]).rename(columns={"value": "speed"}))
    renamed = table.mutate(value=table.speed * 1)
    with pytest.raises(DataError, match="holds Python objects"):
        records(renamed).occupancy()


def test_objects_of_polars_are_refused() -> None:
    """In frames that Ibis does not take."""
    values = pl.Series([0.1, 0.3, 1], dtype=pl.Object)
    table = pl.DataFrame({"user": [1, 2, 3], "cell": ["x", "x", "y"], "value": values})
    with pytest.raises(DataError, match="the value column 'value' holds Python objects"):
        records(table).occupancy()


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.1, 0.3, 0.7]),
        pd.array([0.1, 0.3, 0.7], dtype="Float64"),
        pd.Categorical([0.1, 0.3, 0.7]),
        pd.Series(OBJECTS["decimals"], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    ],
    ids=["numpy", "nullable", "categories of numbers", "decimals by schema"],
)
def test_columns_with_a_type_are_read(values: object) -> None:
    """Also decimals whose digits the schema says, and users that are objects."""
    assert records(frame(values)).aggregate().centred.tolist() == [-419430, -209715, 209715]


def test_decimals_of_arrow_and_polars_are_read() -> None:
    """Their digits are those of the schema, so that no cell decides on another's."""
    kinds: dict[str, Any] = {"user": [1, 2, 3], "cell": ["x", "x", "y"]}
    decimals = OBJECTS["decimals"]
    for table in (
        pa.table({**kinds, "value": pa.array(decimals, pa.decimal128(9, 2))}),
        pl.DataFrame({**kinds, "value": pl.Series(decimals, dtype=pl.Decimal(9, 2))}),
    ):
        assert records(table).aggregate().centred.tolist() == [-419430, -209715, 209715]


LARGE = 2**53
PERSONS = [LARGE + 1, LARGE, None, LARGE + 1]
WHOLE: dict[str, Callable[[], object]] = {
    "nullable": lambda: pd.array(PERSONS, dtype="Int64"),
    "objects": lambda: pd.Series(PERSONS, dtype=object),
    "objects with NaN": lambda: pd.Series([*PERSONS[:2], float("nan"), PERSONS[3]], dtype=object),
    "categories": lambda: pd.Categorical(pd.array(PERSONS, dtype="Int64")),
    "categories of objects": lambda: pd.Categorical(pd.Series(PERSONS, dtype=object)),
    "arrow": lambda: pd.array(PERSONS, dtype="int64[pyarrow]"),
    "dictionary": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(PERSONS).dictionary_encode()]))
    ),
}


@loop_over(
    "kind",
    WHOLE,
)
@loop_over(
    "role",
    ["user", "cell"],
)
def test_whole_keys_beside_a_missing_one_stay_whole(kind: str, role: str) -> None:
    """Two persons whose numbers floating point does not tell apart are two."""
    keys: dict[str, Any] = {"user": ["a"] * 4, "cell": [1] * 4, "value": [0.5, 0.5, 0.5, 0.5]}
    table = pd.DataFrame({**keys, role: WHOLE[kind]()})
    arrow = pa.table({**keys, role: pa.array(PERSONS).dictionary_encode()})
    whole = pl.DataFrame({**keys, role: pl.Series(PERSONS, dtype=pl.Int64)})
    sources: list[object] = [table, arrow, whole]
    if kind != "categories of objects":  # which Ibis takes for nothing
        sources.append(ibis.memtable(table))
    for source in sources:
        found = shoal.Records(
            source, user="user", value="value", bounds=(0, 1), cell="cell", missing="public"
        ).occupancy()
        assert found.count.tolist() in ([2, 1], [1, 2])
        assert found.n_users == (2 if role == "user" else 1)
        if role == "cell":
            assert found.cells.column(0).to_pylist() == [LARGE, LARGE + 1]


def test_categories_of_numbers_in_an_expression_are_refused() -> None:
    """Ibis would take them through floating point; texts are read."""
    numbers = pd.DataFrame(
        {
            "user": pd.Categorical(pd.array(PERSONS, dtype="Int64")),
            "cell": pd.Categorical(["x", "x", "y", "y"]),
            "value": 0.5,
        }
    )
    with pytest.raises(DataError, match="'user' holds Python objects"):
        records(ibis.memtable(numbers).mutate(more=1)).occupancy()
    texts = numbers.assign(user=pd.Categorical(["a", "b", "c", "a"]))
    assert records(ibis.memtable(texts).mutate(more=1)).occupancy().n_users == 3


OBJECT_KEYS: dict[str, list[Any]] = {
    "days and times": [date(2020, 1, 1), datetime(2020, 1, 1, 5), None],
    "texts and numbers": ["a", 1, "a"],
    "truths and numbers": [True, 1, 0],
    "days and NaT and numbers": [date(2020, 1, 1), pd.NaT, 1.5],
}


@pytest.mark.parametrize("what", OBJECT_KEYS)
@pytest.mark.parametrize("form", [lambda values: pd.Series(values, dtype=object), pd.Categorical])
def test_objects_of_several_kinds_are_no_key(form: Callable[[list[Any]], Any], what: str) -> None:
    """Of a day and a time beside each other Arrow would drop the time."""
    table = pd.DataFrame({"user": [1, 2, 3], "value": [0.1, 0.3, 0.7]})
    table["cell"] = form(OBJECT_KEYS[what])
    with pytest.raises(DataError, match="'cell' holds objects of several kinds"):
        records(table).occupancy()
    spans = table.assign(cell=pd.period_range("2020", periods=3))
    with pytest.raises(DataError, match="'cell' holds objects of several kinds"):
        records(spans).occupancy()


def test_objects_of_one_kind_and_missing_ones_are_keys() -> None:
    """Every kind of what is missing in pandas is missing, and no more."""
    for absent in (None, float("nan"), pd.NA, pd.NaT):
        for key in ("a", 7, True, date(2020, 1, 1)):
            table = pd.DataFrame({"user": [1, 2, 3], "value": [0.1, 0.3, 0.7]})
            table["cell"] = pd.Series([key, absent, key], dtype=object)
            found = shoal.Records(
                table, user="user", value="value", bounds=(0, 1), cell="cell", missing="public"
            ).occupancy()
            assert found.cells.column(0).to_pylist() == [key]
            assert found.n_users == 2


def test_types_that_ibis_was_told_are_refused() -> None:
    """A frame is read as it is, not as Ibis was told that it is."""
    numbers = frame(np.array([0.1, 0.3, 0.7])).astype({"user": "int64"})
    told = ibis.memtable(numbers, schema={"user": "string", "cell": "string", "value": "float64"})
    with pytest.raises(DataError, match="'user' of a frame that Ibis was told another type of"):
        records(told).occupancy()
    assert records(ibis.memtable(numbers)).occupancy().n_users == 3
    for times in (
        pd.to_datetime(["2020-01-01 05:00"] * 3),
        pd.to_datetime(["2020-01-01 05:00"] * 3).tz_localize("Europe/Berlin").as_unit("ns"),
        pd.Series([datetime(2020, 1, 1, 5)] * 3, dtype=object),
    ):
        slots = shoal.Records(
            ibis.memtable(numbers.assign(at=times)),
            user="user",
            value="value",
            bounds=(0, 1),
            cell="timeslot(at,1d)",
        )
        assert slots.occupancy().totals.tolist() == [3]


def test_other_objects_are_no_frames() -> None:
    """A column, or what is not in memory as a whole, is no table of records."""
    for source in (pd.Series([1]), pl.Series([1]), pa.array([1])):
        with pytest.raises(InputError, match="records of type"):
            records(source).occupancy()
