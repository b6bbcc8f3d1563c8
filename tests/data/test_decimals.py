"""Decimals of more digits than DuckDB has are refused by their type."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Ibis asks pandas about frames in a way that pandas warns of.
pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")]


def parquet(table: pa.Table, folder: Path) -> object:
    """The table as a file."""
    pq.write_table(table, folder / "r.parquet")
    return folder / "r.parquet"


FORMS: dict[str, Callable[[pa.Table, Path], object]] = {
    "Parquet": parquet,
    "Arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
}


def trips(kind: pa.DataType) -> pa.Table:
    """Three users' speeds as decimals of a type."""
    speeds: Any = [Decimal("0.1"), Decimal("0.3"), Decimal("0.7")]
    return pa.table({"user": [1, 2, 3], "cell": [1, 1, 2], "value": pa.array(speeds, kind)})


@pytest.mark.parametrize("scale", [3, 22, 50])
@pytest.mark.parametrize("form", FORMS)
def test_decimals_of_more_than_38_digits_are_refused(tmp_path: Path, form: str, scale: int) -> None:
    """DuckDB would read all by the number of digits of the longest."""
    source: Any = FORMS[form](trips(pa.decimal256(60, scale)), tmp_path)
    records = shoal.Records(source, user="user", value="value", bounds=(0, 1), cell="cell")
    for read in (
        records.aggregate,
        records.occupancy,
        lambda: read_columns(source, private={"value": "value"}, public={"user": "user"}),
    ):
        with pytest.raises(DataError) as caught:
            read()
        assert str(caught.value) == (
            "the value column 'value' holds decimals of 60 digits; allowed: at most 38 digits, or "
            "floating point; convert it to DECIMAL(38, s) or double."
        )


@pytest.mark.parametrize("form", FORMS)
def test_decimals_of_38_digits_are_read(tmp_path: Path, form: str) -> None:
    """At any scale alike; other columns may have more digits."""
    found = []
    for scale in (3, 22, 37):
        table = trips(pa.decimal128(38, scale))
        if form == "Parquet":
            more = trips(pa.decimal256(60, 3)).column("value")
            table = table.append_column("other", more)
        source: Any = FORMS[form](table, tmp_path)
        records = shoal.Records(source, user="user", value="value", bounds=(0, 1), cell="cell")
        found.append(records.aggregate().centred.tolist())
    assert found == [[-419430, -209715, 209715]] * 3
