"""Private columns of Python objects are refused by their dtype, whatever is in them."""

from __future__ import annotations

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
from shoal.errors import DataError

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


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("form", FORMS)
def test_private_columns_of_objects_are_refused_by_their_dtype(form: str, what: str) -> None:
    """G-CELLWISE: the same words whatever the cells hold, so that no cell decides."""
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
    """G-CELLWISE: a column of objects is not a private one by another name either."""
    table = ibis.memtable(objects([0.1, 0.3, 0.7]).rename(columns={"value": "speed"}))
    renamed = table.mutate(value=table.speed * 1)
    with pytest.raises(DataError, match="holds Python objects"):
        records(renamed).occupancy()


def test_objects_of_polars_are_refused() -> None:
    """G-CELLWISE: in frames that Ibis does not take."""
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
