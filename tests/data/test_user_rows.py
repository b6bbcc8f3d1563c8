"""A log becomes one row a user, by the user's own rows alone, exactly and in any order."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from shoal.data.user_rows import PerUser, read_users
from shoal.errors import DataError, InputError

LOW = -2.0
HIGH = 11.5
WAYS = ("mean", "sum", "any", "rows", "last:at")
RANGES = {"any": (0.0, 1.0), "rows": (0.0, 4.0)}
OUTCOMES = [PerUser("value", way, *RANGES.get(way, (LOW, HIGH))) for way in WAYS]
ODD = (None, float("nan"), float("inf"), -float("inf"), 1e300, -7.25, 3.0, 0.1)


def log(seed: int = 1, users: int = 60, rows: int = 400) -> pa.Table:
    """Rows of users in a private order; some have no outcome, or no time."""
    rng = np.random.default_rng(seed)
    who = np.r_[np.arange(users), rng.integers(0, users, rows)]
    value = rng.normal(2, 4, len(who)).astype(object)
    odd = rng.random(len(who)) < 0.4
    value[odd] = [ODD[each] for each in rng.integers(0, len(ODD), odd.sum())]
    seconds = rng.integers(0, 50, len(who))
    at = [None if each > 40 else np.datetime64("2026-03-01T00:00:00", "us") + each * 10**6 + 1
          for each in seconds]  # fmt: skip
    return pa.table(
        {
            "who": [f"name {each:03}" for each in who],
            "arm": ["new" if each % 2 else "old" for each in who],
            "age": who % 7 + 0.5,
            "value": pa.array(value.tolist(), pa.float64()),
            "at": pa.array(at, pa.timestamp("us")),
        }
    )


def read(data: Any, **more: Any) -> tuple[np.ndarray, ...]:
    """The outcomes of users in the order of their names."""
    found = read_users(data, "who", {"arm": "arm", "age": "age"}, OUTCOMES, **more)
    assert found.public["arm"].to_pylist() == ["old", "new"] * 30
    assert found.public["age"].to_pylist() == [each % 7 + 0.5 for each in range(60)]
    return found.outcomes


def expected(way: str, rows: list[tuple[Any, Any]]) -> Any:
    """The outcome of one user by fractions, in no way rounded."""
    low, high = RANGES.get(way, (LOW, HIGH))
    known = [(at, value) for at, value in rows if value is not None and value == value]
    if way.startswith("last"):
        known = [each for each in known if each[0] is not None]
    # A row counts for at most this much, from the low end in means and from 0 in sums.
    far = 2**23
    start = LOW if way in ("mean", "last:at") else 0
    values = [Fraction(min(max(value, start - far), start + far)) for _, value in known]
    if way in ("mean", "last:at") and not values:
        return np.nan
    found = {
        "mean": lambda: sum(values) / len(values),
        "sum": lambda: sum(values),
        "any": lambda: int(any(values)),
        "rows": lambda: len(values),
        "last:at": lambda: Fraction(min(max(max(known)[1], -far), far)),
    }[way]()
    return float(min(max(found, low), high))


def test_outcomes_are_those_of_fractions() -> None:
    """Rows that are missing, infinite, or far outside; users without a row with an outcome."""
    table = log()
    by_user: dict[str, list[Any]] = {}
    for row in table.to_pylist():
        by_user.setdefault(row["who"], []).append((row["at"], row["value"]))
    for outcome, found in zip(OUTCOMES, read(table), strict=True):
        wanted = [expected(outcome.way, by_user[name]) for name in sorted(by_user)]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-8, err_msg=outcome.way)


def test_whole_numbers_stay_whole() -> None:
    """No number of rows, order or range rounds them: their levels are hit exactly."""
    who = np.repeat(np.arange(50), np.arange(50) % 9 + 1)
    value = (np.arange(len(who)) * 7 % 5).astype(float)
    table = pa.table({"who": who, "arm": who % 2, "value": value})
    outcomes = [PerUser("value", "sum", 0.0, 10.0), PerUser("value", "mean", 0.0, 7.0)]
    total, mean = read_users(table, "who", {"arm": "arm"}, outcomes).outcomes
    plain = np.bincount(who, value)
    assert (total == np.minimum(plain, 10)).all()
    np.testing.assert_allclose(mean, plain / np.bincount(who), rtol=0, atol=1e-8)


def sources(folder: Path) -> Iterator[Any]:
    """The same log from files and frames, in several orders."""
    table = log()
    order = np.random.default_rng(2).permutation(len(table))
    for number, rows in enumerate((table, table.take(order), table.sort_by("value"))):
        pq.write_table(rows, folder / f"{number}.parquet", row_group_size=90)
        yield folder / f"{number}.parquet"
        yield rows.to_pandas()
        pcsv.write_csv(rows, folder / f"{number}.csv")
        yield folder / f"{number}.csv"


def test_the_same_numbers_from_any_order_and_file(tmp_path: Path) -> None:
    """Bit for bit."""
    wanted = read(log())
    for source in sources(tmp_path):
        for found, own in zip(read(source), wanted, strict=True):
            np.testing.assert_array_equal(found, own)


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_numbers(spark: Any, tmp_path: Path) -> None:
    """Spark takes 10 s to start."""
    pq.write_table(log(), tmp_path / "log.parquet")
    frame = spark.read.parquet(str(tmp_path / "log.parquet"))
    for source in (frame, frame.repartition(5)):
        for found, own in zip(read(source), read(log()), strict=True):
            np.testing.assert_array_equal(found, own)


def changed(name: str, row: int, value: Any) -> pa.Table:
    """The log with another value in one row."""
    frame: pd.DataFrame = log().to_pandas()
    frame.loc[row, name] = value
    return frame


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (changed("arm", 70, "none"), "'arm' is not one value for each 'who': it changes, or is"),
        (changed("age", 70, None), "'age' is not one value for each 'who': it changes, or is"),
        (changed("who", 70, None), "some rows have no 'who'; fill them in"),
        (log().slice(0, 0), "has no rows"),
    ],
)
def test_what_is_not_one_value_for_each_user(data: Any, told: str) -> None:
    """No user is named, and none counted: which rows there are is private."""
    with pytest.raises(DataError, match=told) as caught:
        read(data)
    assert "name 0" not in str(caught.value)


def test_what_is_missing_in_public_is_left_out() -> None:
    """Rows without a user, users without a covariate in any row, users without an outcome."""
    frame = changed("who", 70, None)
    frame.loc[frame["who"] == "name 004", "age"] = None
    frame.loc[frame["who"] == "name 005", "value"] = None
    outcomes = [PerUser("value", "mean", LOW, HIGH)]
    public = {"arm": "arm", "age": "age"}
    found = read_users(frame, "who", public, outcomes, missing="public")
    whole = read_users(frame, "who", {"arm": "arm"}, [PerUser("value", "sum", LOW, HIGH)],
                       missing="public")  # fmt: skip
    assert len(whole.outcomes[0]) == 60
    known = read_users(log(), "who", public, outcomes).outcomes[0]
    assert len(found.outcomes[0]) == np.isfinite(np.delete(known, [4, 5])).sum()


def test_outcomes_that_cannot_be() -> None:
    """Unknown ways, a time that is the outcome, and sums in a range far from 0."""
    for way, low, told in (
        ("median", 0.0, "there is no outcome per user 'median'; give mean, sum, any"),
        ("last:value", 0.0, "'value' is the outcome; name a column of times"),
        ("sum", -1e6, "narrow and far from 0"),
    ):
        with pytest.raises(InputError, match=told):
            read_users(log(), "who", {}, [PerUser("value", way, low, low + 1)])
