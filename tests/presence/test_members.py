"""P-REPLAY of the pass alone: how a user is read depends on no other user, row order or engine."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import InputError
from shoal.presence.keys import cells_of, positions
from shoal.presence.members import Members, members

BY = ["branch", shoal.weekday("at")]
KEYS = {"branch": ["1", "2", "north"]}


def visits(users: int = 30, seed: int = 0) -> pd.DataFrame:
    """Visits of users whose names sort by number."""
    rng = np.random.default_rng(seed)
    rows = 12 * users
    at = np.datetime64("2026-05-01T10:00:00") + rng.integers(0, 60 * 86_400, rows)
    frame = pd.DataFrame(
        {
            "card": [f"card-{each:04}" for each in rng.integers(0, users, rows)],
            "branch": rng.choice(["1", "2", "3", "north"], rows),
            "at": at,
            "minutes": rng.integers(0, 3000, rows) / 10,
        }
    )
    return frame.sort_values("card", kind="stable").reset_index(drop=True)


def read(source: Any) -> Members:
    """The pass over such a table."""
    records = shoal.Records(source, user="card", value="minutes", bounds=(0, 240), by=BY)
    return members(records, cells_of(KEYS, records.rules))


def by_user(found: Members) -> list[tuple[Any, ...]]:
    """What each user has, as a sorted list: numbers of users are nobody's business."""
    of = found.memberships
    rows = zip(
        of.user.tolist(), of.cell.tolist(), of.count.tolist(), found.ticks.tolist(), strict=True
    )
    users: dict[int, list[Any]] = {}
    for user, *row in rows:
        users.setdefault(user, []).append(tuple(row))
    return sorted(map(tuple, users.values()))


def _csv(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "v.csv", index=False)
    return str(folder / "v.csv")


def _parquet(frame: pd.DataFrame, folder: Path) -> str:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "v.parquet")
    return str(folder / "v.parquet")


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "csv": _csv,
    "parquet": _parquet,
    "pandas": lambda frame, _: frame,
    "objects": lambda frame, _: frame.astype(object),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
}
# Rows of a stranger, each of which could decide how a column of all is read, or be refused.
STRANGERS: dict[str, dict[str, Any]] = {
    "a text among numbers": {"branch": "north"},
    "another cell": {"branch": "a cell that nobody listed"},
    "a word for nothing": {"branch": "NULL"},
    "nothing": {"branch": None, "minutes": np.nan},
    "no user": {"card": None},
    "a number": {"branch": "2.5"},
    "a day": {"at": np.datetime64("2026-05-02T00:00:00")},
    "long ago": {"at": np.datetime64("1700-01-01T00:00:00")},
    "infinite": {"minutes": np.inf},
    "huge": {"minutes": 1e300},
}
# And those that only texts can hold.
TEXTS: dict[str, dict[str, Any]] = {
    "words for a number": {"minutes": "12 min"},
    "words for a time": {"at": "yesterday"},
    "a date": {"at": "2026-05-02"},
    "a zone": {"at": "2026-05-02T10:00:00+05:30"},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_stranger_changes_no_row_of_others(kind: str, tmp_path: Path) -> None:
    """Rows of every odd kind, and a shuffled file: others are read as without them."""
    frame = visits()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base = by_user(read(SOURCES[kind](frame, tmp_path)))
        assert len(base) == 30
        texts = TEXTS if kind in ("csv", "objects") else {}
        for name, row in (STRANGERS | texts).items():
            odd = {**frame.iloc[0].to_dict(), "card": "stranger", **row}
            more = pd.concat([frame, pd.DataFrame([odd] * 3)], ignore_index=True)
            more = more.sample(frac=1, random_state=7).reset_index(drop=True)
            found = by_user(read(SOURCES[kind](more, tmp_path)))
            rest = [each for each in base if each not in found]
            assert not rest, name
            assert len(found) <= len(base) + 1, name


@pytest.mark.parametrize("kind", SOURCES)
def test_empty_tables_and_tables_without_a_match_say_nothing(kind: str, tmp_path: Path) -> None:
    """Neither a message nor another shape."""
    frame = visits()
    for rows in (frame.head(0), frame[frame["branch"] == "3"]):
        found = read(SOURCES[kind](rows, tmp_path))
        assert found.memberships.n_cells == 21
        assert len(found.ticks) == len(found.memberships.user) == found.memberships.n_users == 0
        assert found.measured.shape == (0, 0)


def test_sums_are_those_of_the_rows(tmp_path: Path) -> None:
    """By pandas: users by cells, counts, and sums of clipped ticks."""
    frame = visits()
    found = read(_parquet(frame, tmp_path))
    listed = frame[frame["branch"] != "3"].assign(
        day=frame["at"].dt.day_of_week, tick=np.rint(frame["minutes"].clip(0, 240) * 2**20 / 240)
    )
    groups = listed.groupby(["card", "branch", "day"])["tick"].agg(["count", "sum"])
    assert found.memberships.count.sum() == len(listed)
    assert sorted(found.ticks.tolist()) == sorted(groups["sum"].astype(int).tolist())
    assert sorted(found.memberships.count.tolist()) == sorted(groups["count"].tolist())
    order = found.memberships.user * 21 + found.memberships.cell
    assert (np.diff(order) > 0).all()


def test_cells_are_matched_by_their_text() -> None:
    """Whole numbers, texts and booleans of one text are the same cell; others are none."""
    cells = pa.table({"a": [1, 2], "b": ["true", "x"]})
    codes = [pa.array(["1", "2", "1"]), pa.array(["true", "x", "y"])]
    assert positions(codes, cells, 3).tolist() == [0, 1, -1]
    assert positions([pa.array([1, 2]), pa.array([True, False])], cells, 2).tolist() == [0, -1]


def test_keys_of_a_stranger_move_nobody_however_many_columns_make_a_cell() -> None:
    """Numbers of joined keys do not grow with keys that nobody listed: 40 columns of them."""
    names = [f"k{at}" for at in range(40)]
    cells = pa.table({name: ["north", "south"] for name in names})
    own = [pa.array(["north", "south", "north"])] * 40
    stranger = [pa.array([f"{at} {row}" for row in range(7)]) for at in range(40)]
    codes = [pa.concat_arrays(each) for each in zip(own, stranger, strict=True)]
    assert positions(codes, cells, 10).tolist() == [0, 1, 0] + [-1] * 7


def test_objects_of_python_have_the_texts_of_columns_of_one_type() -> None:
    """So that nobody's odd key decides how those of others are spelled."""
    frame = pd.DataFrame(
        {"who": [1, 2, 3, 4], "sure": [True, False, True, False], "size": [1.0, 2.5, 3.0, 4.0]}
    )
    frame["day"] = pd.to_datetime(["2026-03-01"] * 4).date
    rules = ["sure", "size", "date(day,America/New_York)"]
    found = []
    for odd in ([None], ["x"], [object()]):
        more = pd.DataFrame({"who": [9], "sure": odd, "size": odd, "day": [None]}, dtype=object)
        for each in (frame, pd.concat([frame.astype(object), more])):
            records = shoal.Records(each, user="who", by=rules)
            cells = pa.table(
                {"sure": ["true", "false"] * 2, "size": ["1", "2.5", "3", "4"]}
                | {"day_date": pa.array(["2026-03-01"] * 4)}
            )
            found.append(sorted(members(records, cells).memberships.cell.tolist()))
    assert found == [[0, 1, 2, 3]] * 6


BAD: dict[str, tuple[Any, str]] = {
    "missing": ({}, "the keys of 'branch' are not given"),
    "another": ({**KEYS, "shop": [1]}, "keys are given for 'shop', which is no cell rule"),
    "twice": ({"branch": ["1", "1"]}, "two listed cells have the same text"),
    "many": ({"branch": range(10_000)}, "too many cells"),
    "none": ({"branch": []}, "keys of branch"),
    "odd": (7, "keys have the type int"),
}


@pytest.mark.parametrize("name", BAD)
def test_lists_of_cells_that_cannot_be_answered(name: str) -> None:
    """Each says what to give."""
    given, message = BAD[name]
    rules = shoal.Records("v.csv", user="card", value="minutes", bounds=(0, 1), by=BY).rules
    with pytest.raises(InputError, match=message):
        cells_of(given, rules)


def test_lists_of_cells(tmp_path: Path) -> None:
    """All combinations, rows of a table or file, and one cell without rules."""
    rules = shoal.Records("v.csv", user="card", value="minutes", bounds=(0, 1), by=BY).rules
    cells = cells_of(KEYS, rules)
    assert cells.num_rows == 21
    assert cells.column_names == ["branch", "at_weekday"]
    listed = pa.table({"at_weekday": [1, 7], "branch": ["1", "north"]})
    _ = shoal.files.tables.write(listed, tmp_path / "keys.csv")
    for given in (listed, str(tmp_path / "keys.csv"), tmp_path / "keys.csv"):
        rows = cells_of(given, rules).to_pylist()
        assert [[str(each) for each in row.values()] for row in rows] == [
            ["1", "1"],
            ["north", "7"],
        ]
    assert cells_of(None, ()).num_rows == 1


@pytest.mark.parametrize("spelled", [" card-0003", "card-0003  "])
def test_a_user_in_two_spellings_is_one_user(spelled: str) -> None:
    """Whoever has two loses no more privacy than others; cells are told apart as users are."""
    frame = visits()
    base = by_user(read(frame))
    rows = frame.index[frame.card == "card-0003"]
    frame.loc[rows[::2], "card"] = spelled
    frame.loc[frame.branch == "1", "branch"] = "01 "
    assert by_user(read(frame)) == base
    numbers = frame.assign(card=frame.card.str.strip().str.removeprefix("card-"))
    numbers.loc[rows[::2], "card"] = "3"
    assert by_user(read(numbers)) == base
