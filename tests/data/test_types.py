"""What columns hold: what is not in the table is refused by column and type, in every source."""

import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.keys import as_array
from shoal.errors import DataError, ShoalWarning

VALUES = [1.0, 2.0, 3.0]
IDS = [uuid.UUID(int=at) for at in range(3)]


def counted(source: object, by: object = "cell", **wanted: Any) -> shoal.Counts:
    """Counts of three records of three users."""
    given: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 4), **wanted}
    return shoal.Records(source, by=by, **given, counts="public").counts()


def table(cells: Any, *, role: str = "cell") -> pa.Table:
    """Three records, with a column of some type in one of their roles."""
    columns: dict[str, Any] = {"who": ["a", "b", "c"], "cell": ["x", "x", "y"], "v": VALUES}
    return pa.table({**columns, role: cells})


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        (pd.period_range("2024-01", periods=3, freq="M"), "pandas.period"),
        (pd.cut([1, 5, 9], [0, 4, 10]), "pandas.interval"),
        (pd.to_timedelta([1, 2, 3], unit="h"), r"duration\[us\]"),
        ([timedelta(hours=1)] * 3, r"duration\[us\]"),
        ([time(10)] * 3, r"time64\[us\]"),
        ([b"x"] * 3, "binary"),
        ([{"a": 1}] * 3, "struct"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 1], pa.int8())), "arrow.bool8"),
    ],
)
def test_a_type_is_never_read_as_what_stores_it(tmp_path: Path, cells: Any, held: str) -> None:
    """In memory, and in a file, whose footer alone says what its whole numbers stand for."""
    column = pa.array(pd.Series(cells)) if not isinstance(cells, pa.Array) else cells
    for role in ("cell", "who", "v"):
        made = table(column, role=role)
        sources: list[object] = [made]
        if not pa.types.is_dictionary(column.type):
            pq.write_table(made, tmp_path / "r.parquet")
            sources.append(tmp_path / "r.parquet")
        for source in sources:
            with pytest.raises(DataError, match=f"the column '{role}' holds .*{held}"):
                counted(source)
    with pytest.raises(DataError, match=f"the column cell holds .*{held}"):
        as_array(column, "cell")


def test_a_type_that_no_library_knows_is_refused_by_its_name(tmp_path: Path) -> None:
    """As months of pandas are where pandas is not imported: metadata alone says what they are."""
    field = pa.field("cell", pa.int64(), metadata={"ARROW:extension:name": "acme.month"})
    made = table(pa.array([648, 648, 649]))
    made = made.cast(made.schema.set(1, field))
    pq.write_table(made, tmp_path / "r.parquet")
    for source in (made, tmp_path / "r.parquet"):
        with pytest.raises(DataError, match=r"'cell' holds the extension type acme\.month"):
            counted(source)


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        (pa.array([Decimal(at // 2) for at in range(3)], pa.decimal128(38, 0)), [0, 0, 1]),
        (pa.array([Decimal("1.00"), Decimal("1.00"), Decimal("2.00")]), [1, 1, 2]),
        (pa.array([7.0, 7.0, 8.0], pa.float32()), [7, 7, 8]),
        (pa.array([7.0, 7.0, 8.0]).dictionary_encode(), [7, 7, 8]),
        (pa.array(["x", "x", "y"]).dictionary_encode(), ["x", "x", "y"]),
        (pa.array(["x", "x", "y"], pa.string_view()), ["x", "x", "y"]),
        (pa.array([0, 0, 86_400_000], pa.date64()), [date(1970, 1, 1)] * 2 + [date(1970, 1, 2)]),
        (pd.array([1, 1, 2], dtype="Int64"), [1, 1, 2]),
    ],
)
def test_one_thing_has_one_key(tmp_path: Path, cells: Any, same: list[Any]) -> None:
    """Whatever stores it, in memory, in a file and by itself."""
    made = table(pa.array(cells))
    pq.write_table(made, tmp_path / "r.parquet")
    expected = counted(table(same)).fingerprint
    assert counted(made).fingerprint == expected
    assert counted(tmp_path / "r.parquet").fingerprint == expected
    if not pa.types.is_date(made.column("cell").type):
        assert as_array(pa.array(cells), "cell").to_pylist() == same


def test_identifiers_of_databases_name_users_and_cells(tmp_path: Path) -> None:
    """By their usual text, from every source that has such a type."""
    made = table(IDS, role="who")
    pq.write_table(made, tmp_path / "r.parquet")
    relation = duckdb.connect().from_arrow(made)
    frame = pd.DataFrame({"who": IDS, "cell": ["x", "x", "y"], "v": VALUES})
    for source in (made, tmp_path / "r.parquet", relation, frame):
        assert counted(source, by="who", user="cell").labels == tuple(map(str, IDS))
        assert counted(source).n_users == 3


def test_a_relation_of_duckdb_is_a_source() -> None:
    """With sums of its own, which have more digits than a whole number of 64 bits."""
    made = duckdb.connect().sql(
        "select i as who, ['x', 'x', 'y'][i]::enum('x', 'y') as cell, sum(i) as v "
        "from range(1, 4) r(i) group by all"
    )
    assert counted(made).labels == ("x", "y")
    assert counted(made, by="v", user="cell", value="who").labels == ("1", "2", "3")


DAYS = ["2024-03-01", "2024-03-01", "2024-03-11"]


@pytest.mark.parametrize(
    "days",
    [
        DAYS,
        [f"{day} 00:00:00" for day in DAYS],
        [f"{day}T00:00" for day in DAYS],
        pa.array(map(date.fromisoformat, DAYS)),
        pa.array(map(datetime.fromisoformat, DAYS), pa.timestamp("ns")),
        pd.to_datetime(DAYS),
        pl.Series(map(date.fromisoformat, DAYS)).to_arrow(),
    ],
)
def test_a_date_is_a_day(tmp_path: Path, days: Any) -> None:
    """No zone moves it, and it has no hours; a time without a zone at midnight is one."""
    source: object = table(days)
    if isinstance(days, list):
        lines = "".join(f"{who},{day},1\n" for who, day in zip("abc", days, strict=True))
        source = tmp_path / "r.csv"
        source.write_text("who,cell,v\n" + lines)
    zone = "America/New_York"
    for rule, labels in (
        ("month", ("2024-03",)),
        ("date", ("2024-03-01", "2024-03-11")),
        ("weekday", ("1", "5")),
        ("timeslot", ("2024-02-26", "2024-03-11")),
    ):
        width = "1w," if rule == "timeslot" else ""
        assert counted(source, by=f"{rule}(cell,{width}{zone})").labels == labels
    if not isinstance(days, list) or days is DAYS:
        assert counted(source).labels == ("2024-03-01", "2024-03-11")
    for rule in ("hour_of_day(cell)", f"timeslot(cell,90min,{zone})"):
        with pytest.raises(DataError, match="the column 'cell' holds dates, which have no hours"):
            counted(source, by=rule)


def test_dates_among_times_are_refused(tmp_path: Path) -> None:
    """A zone would move them to the day before; midnights among times are times."""
    path = tmp_path / "r.csv"
    path.write_text("who,cell,v\na,2024-03-01,1\nb,2024-03-01 10:00Z,1\n")
    with pytest.raises(DataError, match="'cell' holds dates in some rows and times in others"):
        counted(path, by="month(cell,America/New_York)")
    path.write_text("who,cell,v\na,2024-03-01 00:00,1\nb,2024-03-01 10:00,1\n")
    assert counted(path, by="month(cell,America/New_York)").labels == ("2024-02", "2024-03")
    midnight = pa.array([datetime(2024, 3, 1)] * 3, pa.timestamp("s", "UTC"))
    assert counted(table(midnight), by="hour_of_day(cell,America/New_York)").labels == ("19",)


def test_weeks_begin_on_mondays() -> None:
    """Also two by two, and before 1970; slots of seven days begin on Thursdays, with a word."""
    days = pa.array([date(1969, 12, 28), date(2024, 7, 7), date(2024, 7, 8)])
    assert counted(table(days), by="timeslot(cell,1w)").labels == (
        *("1969-12-22", "2024-07-01", "2024-07-08"),
    )
    assert counted(table(days), by="timeslot(cell,2w)").labels == ("1969-12-15", "2024-07-01")
    with pytest.warns(ShoalWarning, match="slots of 14d begin on Thursdays"):
        shoal.timeslot("cell", "14d")


def test_words_for_nothing_are_names_with_a_word(tmp_path: Path) -> None:
    """As R, databases and Python write them; one warning for each column and word."""
    path = tmp_path / "r.csv"
    path.write_text("who,cell,v\nNA,x,1\nNA,\\N,2\nb,nan,3\n")
    with pytest.warns(ShoalWarning) as caught:
        assert counted(path, missing="public").labels == ("\\N", "nan", "x")
    said = sorted(str(each.message).partition(" in some rows")[0] for each in caught)
    assert said == [
        "the column 'cell' holds the text \\N",
        "the column 'cell' holds the text nan",
        "the column 'who' holds the text NA",
    ]
    path.write_text("who,cell,v\na,x,1\nb,x,NA\n")
    with pytest.raises(DataError, match=r"'v' holds text; give .* an empty field if it is missing"):
        counted(path)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"who": ["a", 1], "v": [1.0, 2.0]}), "the column 'who' mixes int and str"),
        (
            pd.DataFrame({"who": [date(2024, 1, 1), datetime(2024, 1, 1, 5)], "v": [1.0, 2.0]}),
            "the column 'who' mixes date and datetime",
        ),
        (pd.DataFrame({"who": ["a"], "v": [1.0]}).set_index("who"), "is the index; call reset_in"),
        (
            pd.DataFrame({"who": pd.Series([pd.Timestamp(0), None], dtype=object), "v": [1.0, 2]}),
            "the column 'who' holds times as Python objects",
        ),
        (pd.DataFrame([["a", 1.0]]), "columns of the pandas table are named by numbers"),
        (pd.DataFrame({("who", ""): ["a"], ("v", ""): [1.0]}), "are named by numbers, or not by"),
        (
            pd.DataFrame({"who": pd.arrays.SparseArray([1, 1]), "v": [1.0, 2.0]}),
            r"the column 'who' holds a type that Arrow does not know \(Sparse",
        ),
        (
            pl.DataFrame({"who": pl.Series([object(), object()], dtype=pl.Object), "v": [1.0, 2]}),
            "the column 'who' holds Python objects",
        ),
        (pd.DataFrame({"who": ["a"], "v": [np.complex128(1)]}), "the column 'v' holds "),
    ],
)
def test_a_frame_is_refused_by_its_column(frame: Any, message: str) -> None:
    """What a library of frames has and Arrow has not."""
    with pytest.raises(DataError, match=message) as caught:
        counted(frame, by=None)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("names", [["00001", "1"], ["38", "38.0 "], ["ann", "ann "], ["-7", "-07"]])
def test_one_user_is_spelled_in_one_way(tmp_path: Path, names: list[str]) -> None:
    """Each half of a person would be protected by itself; in files of two years, too."""
    made = table(pa.array([*names, "z"]), role="who")
    said = "1 names of the user column are equal to others but for blanks"
    with pytest.raises(DataError, match=said):
        counted(made)
    for year, name in enumerate(names):
        (tmp_path / f"{year}.csv").write_text(f"who,cell,v\n{name},x,1\nb{year},x,1\n")
    with pytest.raises(DataError, match=said):
        counted(tmp_path)
    with pytest.raises(DataError, match=said):
        shoal.mean.auto([1.0, 2.0], names, bounds=(0, 4), epsilon=1, noise=shoal.Simulated(1))
    with pytest.raises(DataError, match="1 names of the unit column are equal"):
        shoal.trials.Experiment([0, 1], unit=names)
    assert counted(table(pa.array(["00001", "00002", "A1"]), role="who")).n_users == 3
    mixed = pd.Series([1, 2.0, 1.0], dtype=object)
    assert counted(pd.DataFrame({"who": mixed, "cell": "x", "v": 1.0})).n_users == 2
