"""Carrying out a plan: right numbers, one charge, same bytes, nothing spent on failure."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.errors import BudgetError, DataError, InputError, LedgerError
from shoal.theory.laplace import mean_absolute
from tests.support import flights


def true_means(table: pa.Table) -> dict[str, float]:
    """Mean of the clipped speeds of each place."""
    places = np.array(table.column("place").to_pylist())
    speeds = np.clip(table.column("speed").to_numpy(), *flights.BOUNDS)
    return {place: float(speeds[places == place].mean()) for place in np.unique(places).tolist()}


def test_estimates_are_the_means_plus_noise_of_the_stated_scale() -> None:
    """Over many simulated releases the mean absolute error is the worst-case noise.

    2,000 releases of 4 cells; the mean of |noise|/b has a standard error of 1/sqrt(8,000); a
    false alarm rate of 1e-9 is 6.11 of them, which rejects a scale 10% off.
    """
    table = flights.table()
    plan, records, truth = flights.plan(table), flights.records(table), true_means(table)
    exact = np.array([truth[label] for label in plan.counts.labels])
    _, aggregate = records.aggregate()
    errors = []
    for seed in range(2000):
        drawn = draw(plan, aggregate, shoal.Simulated(seed))
        found = Estimates.of(plan, *drawn).unclamped
        errors.append(np.abs(found - exact) / plan.noise_scale)
    average = float(np.mean(errors))
    unit = mean_absolute(2.0**plan.decision.bits) / 2.0**plan.decision.bits
    slack = 6.11 / math.sqrt(8000) + 1e-4
    assert abs(average - unit) <= slack
    assert abs(average * 1.1 - unit) > slack
    assert abs(average * 0.9 - unit) > slack


def test_an_exhausted_budget_is_refused_before_any_value_is_read(tmp_path: Path) -> None:
    """Nothing is written and the records are not opened."""
    book = flights.ledger(tmp_path, "0.5")
    plan = flights.plan()
    missing = flights.records(tmp_path / "never-written.parquet")
    before = (tmp_path / "flights.ledger").read_bytes()
    with pytest.raises(BudgetError):
        plan.release(missing, ledger=book)
    assert (tmp_path / "flights.ledger").read_bytes() == before


def test_records_that_do_not_fit_cost_nothing(tmp_path: Path) -> None:
    """Other counts, bounds or ticks are refused, and nothing is charged."""
    book, plan = flights.ledger(tmp_path), flights.plan()
    for records in (
        flights.records(flights.table(seed=1)),
        flights.records(bounds=(0, 650)),
        flights.records(tick_bits=16),
        flights.records(missing="public"),
    ):
        with pytest.raises(DataError):
            plan.release(records, ledger=book)
    assert book.spent.epsilon == 0
    assert book.entries() == []


def test_a_release_needs_a_ledger_and_a_simulation_must_not_have_one(tmp_path: Path) -> None:
    """Fail closed: neither noise without books nor a simulation in the books."""
    plan, records = flights.plan(), flights.records()
    with pytest.raises(InputError, match="release has no ledger"):
        plan.release(records)
    with pytest.raises(InputError, match="ledger takes no simulation"):
        plan.release(records, ledger=flights.ledger(tmp_path), noise=shoal.Simulated(1))
    with pytest.raises(LedgerError):
        plan.release(records, ledger=tmp_path / "other.ledger")


def test_a_privacy_unit_of_several_users_is_refused(tmp_path: Path) -> None:
    """If it is a column of the records, said or of the ledger; a part of a user is protected."""
    table = flights.table()
    who = np.unique(table.column("aircraft").to_pylist(), return_inverse=True)[1]
    table = table.append_column("owner", pa.array(who // 2))
    table = table.append_column("flight", pa.array(np.arange(len(who))))
    plan, records = flights.plan(table), flights.records(table)
    book = shoal.Ledger.create(
        tmp_path / "owners.ledger", epsilon=9, privacy_unit="owner", counts="public"
    )
    for unit in ("", "Owner", "place"):
        with pytest.raises(DataError, match="the privacy unit, belong to several users"):
            plan.release(records, ledger=book, privacy_unit=unit)
    with pytest.raises(InputError, match="'speed' is also given as privacy unit"):
        plan.release(records, ledger=book, privacy_unit="speed")
    assert book.spent.epsilon == 0
    plan.release(records, noise=shoal.Simulated(1), privacy_unit="flight")


def test_delta_of_gaussian_noise_is_charged(tmp_path: Path) -> None:
    """The ledger books both parts of the loss, and refuses a delta that does not fit."""
    user, cell = np.divmod(np.repeat(np.arange(50 * 80), 3), 80)
    value = pa.array(np.full(len(user), 0.25))
    table = pa.table({"who": pa.array(user), "where": pa.array(cell), "value": value})
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 1), by="where", counts="public"
    )
    plan = shoal.plan(
        records.counts(),
        method="balanced",
        bounds=(0, 1),
        epsilon=1,
        delta="1e-6",
        uninformative="keep",
    )
    assert plan.gaussian
    poor = shoal.Ledger.create(
        tmp_path / "poor.ledger", epsilon=9, delta="1e-7", privacy_unit="who", counts="public"
    )
    with pytest.raises(BudgetError):
        plan.release(records, ledger=poor)
    rich = shoal.Ledger.create(
        tmp_path / "rich.ledger", epsilon=9, delta="1e-5", privacy_unit="who", counts="public"
    )
    plan.release(records, ledger=rich)
    assert rich.spent == plan.loss
    assert rich.spent.delta == Fraction(1, 10**6)
    assert poor.spent.epsilon == poor.spent.delta == 0


@pytest.mark.parametrize("statistics", [["mean"], ["share_above(30)", "mean"]])
def test_printed_rows_are_the_first_of_the_table(statistics: list[str]) -> None:
    """Their values alone are computed: of reliable cells, of others that have any, and no more."""
    rng = np.random.default_rng(1)
    cell = np.repeat(np.arange(40), [2, 3, 300, 300] * 10)
    values = rng.uniform(10, 50, 40)[cell] + rng.normal(0, 3, len(cell))
    table = pa.table({"who": np.arange(len(cell)), "at": cell, "speed": values})
    records = shoal.Records(
        table, user="who", value="speed", bounds=(0, 65), by="at", counts="public"
    )
    objective = None if statistics == ["mean"] else "worst_case"
    plan = shoal.plan(records, epsilon=2, statistics=statistics, objective=objective)
    release = plan.release(records, noise=shoal.Simulated(1))
    lines = [line.split() for line in str(release).splitlines()]
    start = next(at for at, line in enumerate(lines) if line[:2] == ["at", "users"])
    rows = release.table().to_pylist()[:12]
    assert len({row["source"] for row in rows}) == 2 or len(statistics) == 2
    for row, line in zip(rows, lines[start + 1 :], strict=False):
        shown = [float(each.strip("()")) for each in line[-3:]]
        known = [row[each] for each in ("value", "low", "high")]
        assert line[0] == str(row["at"])
        assert shown == pytest.approx(known, rel=1e-3)
