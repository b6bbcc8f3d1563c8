"""A user in one period takes the place of a user, and a public list of periods is charged."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from tests.support.visits import BRANCHES, records, visits

MONTHS = ["2026-03", "2026-04"]
ASKED: dict[str, Any] = {
    "keys": {"branch": BRANCHES},
    "users": 4000,
    "statistics": ["users", "records", "mean", "median"],
    "epsilon": 2,
}


def dated() -> pa.Table:
    """Visits on days from February to May."""
    table = visits(2000)
    days = np.random.default_rng(2).integers(0, 110, len(table))
    return table.append_column("at", pa.array(np.datetime64("2026-02-01") + days))


def test_a_user_in_a_period_is_a_user() -> None:
    """The same numbers as of a table whose users are named by person and month."""
    table = dated()
    month = table.column("at").to_numpy().astype("M8[M]").astype(str)
    inside = np.isin(month, MONTHS)
    named = [f"{who} {each}" for who, each in zip(table["card"].to_pylist(), month, strict=True)]
    plain = table.set_column(0, "card", pa.array(named)).filter(inside)
    divided = records(table, period=shoal.month("at"))
    asked = {**ASKED, "periods": "2026-03..2026-04"}
    found = shoal.plan(divided, **asked).release(divided, noise=shoal.Simulated(1))
    other = shoal.plan(records(plain), **ASKED).release(records(plain), noise=shoal.Simulated(1))
    assert found.table(all=True) == other.table(all=True)


def test_each_listed_period_is_charged_and_no_other(tmp_path: Path) -> None:
    """Periods without a record, too: what occurs is private."""
    pq.write_table(dated(), tmp_path / "visits.parquet")
    divided = records(tmp_path / "visits.parquet", period="month(at)")
    book = shoal.Ledger.create(
        tmp_path / "m.ledger", epsilon=3, privacy_unit="card", period="month"
    )
    listed = ["2026-03", "2026-12"]
    made = shoal.plan(divided, **ASKED, periods=listed)
    assert "one card in one month" in str(made)
    done = made.release(divided, ledger=book)
    assert done.entry is not None
    assert done.entry.periods is not None
    assert [*done.entry.periods.names] == listed
    assert done.manifest["guarantee"]["periods"] == listed
    assert "one user in one month" in done.manifest["guarantee"]["neighbours"]
    with pytest.raises(shoal.errors.BudgetError):
        shoal.plan(divided, **ASKED, periods=["2026-12"]).release(divided, ledger=book)
    shoal.plan(divided, **ASKED, periods=["2026-04"]).release(divided, ledger=book)
    whole = shoal.plan(records(dated()), **ASKED)
    with pytest.raises(shoal.errors.InputError):
        whole.release(records(dated()), ledger=book)


def test_a_file_of_texts_says_how_its_times_are_written(tmp_path: Path) -> None:
    """Only rows could tell, and one record must not lie in two months: others are missing."""
    asked = {**ASKED, "statistics": ["users"], "epsilon": 8, "periods": ["2026-03"]}
    zoned = [f"c{at},North,2026-04-01T00:30+02:00" for at in range(500)]
    plain = [f"d{at},North,2026-03-31 22:30" for at in range(300)]
    place = tmp_path / "v.csv"
    place.write_text("\n".join(["card,branch,at", *zoned, *plain]))
    book = shoal.Ledger.create(
        tmp_path / "m.ledger", epsilon=90, privacy_unit="card", period="month"
    )
    known: dict[str, Any] = {"value": None, "bounds": None, "period": "month(at)"}
    unsaid = records(place, **known)
    with pytest.raises(shoal.errors.InputError, match="whether its times have a zone"):
        shoal.plan(unsaid, **asked).release(unsaid, ledger=book)
    said = records(place, **known, times="with a zone")
    first = shoal.plan(said, **asked).release(said, ledger=book)
    assert first.table()["value"].to_pylist()[1] == pytest.approx(500, abs=5)
    other = records(place, **known, times="without a zone")
    with pytest.raises(shoal.errors.InputError, match="one record could lie"):
        shoal.plan(other, **asked).release(other, ledger=book)


@pytest.mark.parametrize(
    ("period", "periods"),
    [("month(at)", None), (None, ["2026-03"]), ("month(at)", ["2026-3"]), ("day", ["1", "01"])],
)
def test_periods_and_the_rule_belong_together(period: str | None, periods: Any) -> None:
    """And each is spelled once, as its rule spells it."""
    divided = records("absent.parquet", period=period)
    with pytest.raises(shoal.errors.InputError):
        shoal.plan(divided, **ASKED, periods=periods)


@pytest.mark.parametrize("given", ["no row", "texts", "nothing", "no times"])
def test_tables_without_any_period_look_like_others(given: str, tmp_path: Path) -> None:
    """A file in which no time can be read, whatever its columns hold, is an empty table."""
    lines = {
        "no row": "",
        "texts": "a,Harbour,5,broken\n",
        "nothing": "a,Harbour,5,\n",
        "no times": "a,Harbour,5,\n",
    }
    place: Any = tmp_path / "visits.csv"
    place.write_text("card,branch,minutes,at\n" + lines[given])
    more = {"times": "dates"}
    if given == "no times":
        times = pa.array([None], pa.timestamp("us"))
        place = pa.table({"card": ["a"], "branch": ["North"], "minutes": [5.0], "at": times})
        more = {}
    divided = records(place, period=shoal.month("at"), **more)
    plan = shoal.plan(divided, **ASKED, periods=MONTHS)
    found = plan.release(divided, noise=shoal.Simulated(1))
    assert found.table().num_rows == 4 * len(BRANCHES)
