"""Spark runs the same query: the same integers, whatever its session's time zone."""

import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import DataError
from shoal.privacy.noise import Simulated
from tests.data import kinds
from tests.data.kinds import RULES
from tests.support import methods, visits

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore"),
]


def test_a_frame_gives_the_same_integers(spark: Any, tmp_path: Path) -> None:
    """By all kinds of rules, without rows that lack something; Spark takes 10 s to start."""
    gaps = kinds.with_gaps(kinds.table())
    frame = kinds.spark_frame(spark, gaps, tmp_path)
    for tick_bits in (24, 3):
        options: dict[str, Any] = {"missing": "public", "tick_bits": tick_bits}
        assert kinds.facts(frame, **options) == kinds.facts(gaps, **options)


def test_every_rule_and_order_gives_the_same_integers(spark: Any, tmp_path: Path) -> None:
    """One partition or seven, by user or by value."""
    whole = kinds.table()
    frame = kinds.spark_frame(spark, whole, tmp_path)
    for rule in RULES:
        assert kinds.found(frame.repartition(3), rule) == kinds.expected(whole, rule), rule
    tied = methods.tied()
    for order, rows in methods.orders(tied).items():
        pq.write_table(rows, tmp_path / f"{order}.parquet")
        frame = spark.read.parquet(str(tmp_path / f"{order}.parquet"))
        options: dict[str, Any] = {"by": "place", "bounds": (0, 100)}
        for parts in (frame.coalesce(1), frame.repartition(7, "value")):
            assert kinds.facts(parts, **options) == kinds.facts(tied, **options), order


def test_sessions_in_other_zones(spark: Any) -> None:
    """Times with a zone are moments; those without one are universal; no zone moves a date."""
    rows = spark.sql(
        "select who, 1.5D as value, timestamp '2013-07-01 04:15:00 UTC' as zoned, "
        "timestamp_ntz '2013-07-01 04:15:00' as naive, date '2013-07-01' as day, "
        "timestamp_ntz '2013-07-01 00:00:00' as midnight "
        "from values (1.0D), (2.0D), (double('nan')) as t(who)"
    )
    for column, hours in (("zoned", (4, 0)), ("naive", (4, 0))):
        for zone, hour in zip(("", ",America/New_York"), hours, strict=True):
            records = shoal.Records(
                rows, user="who", value="value", bounds=(0, 9), missing="public",
                by=f"hour_of_day({column}{zone})", counts="public",
            )  # fmt: skip
            found = records.counts()
            assert found.cells.column(0).to_pylist() == [hour], (column, zone)
            assert found.n_users == 2
    for column in ("day", "midnight"):
        records = shoal.Records(
            rows, user="who", value="value", bounds=(0, 9), missing="public",
            by=f"timeslot({column},1d,America/New_York)", counts="public",
        )  # fmt: skip
        assert records.counts().labels == ("2013-07-01 00:00",)


def test_types_that_stand_for_others_are_refused(spark: Any) -> None:
    """By column and type, as in other sources."""
    rows = spark.sql("select 'a' as who, 1.5D as v, interval '1' day as gap, binary('a') as raw")
    for name, held in (("gap", "interval day"), ("raw", "binary")):
        for given in ({"by": name}, {"value": name}):
            options: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 9), **given}
            with pytest.raises(DataError, match=f"the column '{name}' holds {held}"):
                shoal.Records(rows, **options, counts="public").counts()


def test_collations_do_not_merge_users(spark: Any) -> None:
    """Names that a collation calls equal are different users."""
    rows = spark.sql(
        "select who collate unicode_ci as who, 1 as place, 2.0D as value "
        "from values ('b'), ('B'), ('a') as t(who)"
    )
    records = shoal.Records(
        rows, user="who", value="value", bounds=(0, 9), by="place", counts="public"
    )
    assert records.counts().n_users == 3


def test_no_log_quotes_a_value(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """PySpark's own log of a failed query would; afterwards it writes as before."""
    frame = spark.createDataFrame([("a", "987654.321x", 1)], "who string, text string, place int")
    rows = frame.selectExpr("who", "cast(text as double) as value", "place")
    with pytest.raises(DataError, match="could not read") as caught:
        shoal.Records(
            rows, user="who", value="value", bounds=(0, 9), by="place", counts="public"
        ).counts()
    shown = capfd.readouterr()
    assert "987654" not in shown.err + shown.out + str(caught.value)
    assert not logging.getLogger("SQLQueryContextLogger").disabled


def test_private_counts_draw_the_same_integers(spark: Any, tmp_path: Path) -> None:
    """Whatever the engine and its order of rows: all of the looks, the range and the answers."""
    rows = visits.visits(800)
    pq.write_table(rows, tmp_path / "visits.parquet")
    frame = spark.read.parquet(str(tmp_path / "visits.parquet")).repartition(5, "minutes")
    by = ["branch", "day"]
    keys = {"branch": visits.BRANCHES, "day": range(1, 8)}
    asked = ["users", "records", "sum", "mean", "median"]
    drawn = []
    for source in (rows, frame):
        records = visits.records(source, by=by)
        plan = shoal.plan(records, keys=keys, users=800, statistics=asked, epsilon=1)
        drawn.append(plan.draw(records, Simulated(1)))
    assert drawn[0] == drawn[1]
