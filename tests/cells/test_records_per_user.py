"""Users who count for at most so many of their records: weights, values and what is said of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal

MOST = 5


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    """Trips of 900 riders, of whom a few have hundreds, in 12 places; half of them near home."""
    rng = np.random.default_rng(0)
    rider = np.repeat(np.arange(900), np.minimum(rng.zipf(1.6, 900), 300))
    home = rng.integers(0, 12, 900)
    place = np.where(rng.random(len(rider)) < 0.5, home[rider], rng.integers(0, 12, len(rider)))
    minutes = np.clip(2.0 * place + rng.normal(20, 8, len(rider)), 0, 60)
    return pa.table({"rider": rider, "place": place, "minutes": minutes})


def records(source: object) -> shoal.Records:
    """Trips by place, whose counts are public."""
    known: dict[str, Any] = {"user": "rider", "value": "minutes", "by": "place"}
    return shoal.Records(source, **known, bounds=(0, 60), counts="public")


def weights(trips: pa.Table) -> np.ndarray:
    """The weight of each record by the definition, min(m, 5)/m."""
    rider = trips["rider"].to_numpy()
    many = np.bincount(rider)[rider]
    return np.asarray(np.minimum(many, MOST) / many)


def test_counts_are_the_weights_of_the_definition(trips: pa.Table) -> None:
    """In 64ths of a record; light users are exact, and nobody has more than five and rounding."""
    counts = records(trips).counts().at_most(MOST)
    cell = trips["place"].to_numpy()
    wanted = np.bincount(cell, weights(trips))
    assert counts.totals / counts.units == pytest.approx(wanted, rel=0.02)
    assert counts.records == pytest.approx(wanted, rel=0.02, abs=1)
    per_user = np.bincount(counts.user, counts.count) / counts.units
    assert per_user.max() <= MOST + 12 / 128
    with pytest.raises(shoal.errors.InputError):
        counts.at_most(3)


@pytest.mark.parametrize("method", ["balanced", "user_clipped", "array_averaging", "optimal"])
def test_a_release_is_of_the_weighted_mean(trips: pa.Table, method: str) -> None:
    """With next to no noise it is that mean; the plan is read back, and its loss is as asked."""
    source = records(trips)
    made = shoal.plan(source, epsilon=2000, method=method, records_per_user=MOST)
    weight = weights(trips)
    place = trips["place"].to_numpy()
    minutes = trips["minutes"].to_numpy()
    truth = np.bincount(place, weight * minutes) / np.bincount(place, weight)
    found = made.release(source, noise=shoal.Simulated(1)).numbers.unclamped
    assert found == pytest.approx(truth, abs=0.5)
    assert (
        abs(found - truth).mean()
        < abs(np.bincount(place, minutes) / np.bincount(place) - truth).mean()
    )


def test_it_is_part_of_the_plan_and_said_to_readers(trips: pa.Table, tmp_path: Path) -> None:
    """A saved plan limits the records that are given to it; the same again costs nothing."""
    pq.write_table(trips, tmp_path / "trips.parquet")
    source = records(tmp_path / "trips.parquet")
    shoal.plan(source, epsilon=1, records_per_user=MOST).save(tmp_path / "plan.json")
    made = shoal.Plan.load(tmp_path / "plan.json")
    book = shoal.Ledger.create(
        tmp_path / "t.ledger", epsilon=2, privacy_unit="rider", counts="public"
    )
    done = made.release(source, ledger=book)
    assert made.release(source, ledger=book).from_ledger
    assert "Each rider counts for at most 5 of its records." in str(done)
    assert "at most 5 of its records" in str(made)
    done.write_manifest(tmp_path / "m.json")
    assert shoal.verify(tmp_path / "m.json", ledger=book)
    other = shoal.plan(source, epsilon=1)
    assert not other.release(source, ledger=book, before=None).from_ledger


def test_advice_tries_fewer_records_of_each_user(trips: pa.Table) -> None:
    """Heavy riders dominate these places."""
    made = shoal.plan(records(trips), epsilon=0.5)
    found = {each.change: each.reliable for each in made.advise().choices}
    assert found["records_per_user=5"] > made.advise().now.reliable
