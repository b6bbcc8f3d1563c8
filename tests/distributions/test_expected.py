"""What plans say of intervals of quantiles and of reliable cells, beside what releases say."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.comparisons.advice import check_worth
from shoal.cells.estimates import typical_error
from shoal.distributions.expected import (
    expected_reliable,
    forecast,
    interval_of_ranks,
    typical_interval,
)
from shoal.errors import InputError


@pytest.mark.parametrize(
    ("noise", "moved", "level", "ends"),
    [
        (1e-9, 0.0, 0.6, (0.5, 0.75)),
        (1e-9, 0.2, 0.6, (0.25, 0.9)),
        (1e-9, 0.2, 0.96, (0.75, 1.0)),
        (1.0, 0.0, 0.6, (0.0, 1.0)),
    ],
)
def test_intervals_are_the_bins_that_noise_and_moved_weight_allow(
    noise: float, moved: float, level: float, ends: tuple[float, float]
) -> None:
    """By hand: of eight bins, whose edges are at 2, 10, 25, 50, 75, 90 and 98%."""
    assert interval_of_ranks(8, noise, moved, level) == pytest.approx(ends, abs=0.01)


@pytest.mark.parametrize(("epsilon", "bins"), [(0.35, 10), (0.4, 11)])
def test_intervals_are_as_long_as_in_releases(epsilon: float, bins: int) -> None:
    """Of the middle bin of an odd number, and of two of an even one: none is half as long."""
    who = np.arange(24 * 500)
    rng = np.random.default_rng(1)
    value = rng.uniform(0, 100, len(who))
    table = pa.table({"who": who, "at": who % 24, "value": value})
    known: Any = {"user": "who", "value": "value", "by": "at", "counts": "public"}
    records = shoal.Records(table, bounds=(0, 100), **known)
    plan: Any = shoal.plan(records, epsilon=epsilon, statistics=["median", "quantile(0.9)"])
    assert plan.units.bins == bins
    tables = [plan.release(records, noise=shoal.Simulated(seed)).to_pandas() for seed in range(6)]
    for name, level in (("median", 0.5), ("quantile(0.9)", 0.9)):
        rows = [table[table["statistic"] == name] for table in tables]
        length = np.mean([(each["high"] - each["low"]).mean() for each in rows]) / 100
        low, high = typical_interval(plan.units, level)
        assert high - low == pytest.approx(length, rel=0.2)


def _records(between: float, seed: int, users: int = 3000) -> shoal.Records:
    """Normal values in 40 cells of unequal sizes, four of each user."""
    rng = np.random.default_rng(seed)
    cells = 40
    part = 1 / np.arange(1, cells + 1) ** 0.8
    who = np.repeat(np.arange(users), 4)
    at = rng.choice(cells, len(who), p=part / part.sum())
    rest = (1 - between) / 0.7
    value = rng.normal(0, between**0.5, cells)[at]
    value += rng.normal(0, (rest * 0.4) ** 0.5, users)[who]
    value += rng.normal(0, (rest * 0.3) ** 0.5, len(who))
    table = pa.table({"who": who, "at": at, "value": 40 + 100 / 6 * value})
    return shoal.Records(
        table, user="who", value="value", by="at", bounds=(0, 100), counts="public"
    )


@pytest.mark.parametrize(
    ("between", "users", "epsilon"), [(0.3, 3000, 0.5), (0.1, 3000, 0.5), (0.03, 600, 4)]
)
def test_a_forecast_is_as_in_releases(between: float, users: int, epsilon: float) -> None:
    """Of values that are as it supposes; small cells differ most by who is in them."""
    found = []
    for seed in range(6):
        records = _records(between, seed, users)
        plan: Any = shoal.plan(records, epsilon=epsilon, statistics=["median"])
        expected = forecast(plan.units)[between]
        table = plan.release(records, noise=shoal.Simulated(seed)).to_pandas()
        found.append(int((table["status"] == "reliable").sum()))
    assert expected == pytest.approx(np.mean(found), abs=4)
    assert 0 < expected < 40


def test_weight_that_caps_move_widens_intervals() -> None:
    """So few users have most records that no cell can be reliable."""
    rng = np.random.default_rng(1)
    heavy = np.exp(1.5 * rng.normal(size=400))
    user, cell = np.divmod(np.unique(rng.integers(0, 400 * 20, 1200)), 20)
    counts = shoal.Counts.from_counts(user, cell, np.ceil(3 * heavy[user]).astype(int))
    plan: Any = shoal.plan(counts, bounds=(0, 100), epsilon=4, statistics=["median"])
    low, high = interval_of_ranks(plan.units.bins, float(np.median(plan.units.noise)), 0.0, 0.5)
    found = typical_interval(plan.units, 0.5)
    assert found.low < low
    assert high < found.high
    assert forecast(plan.units)[0.3] == 0


def test_a_printed_plan_says_what_to_expect() -> None:
    """Also beside means; of given thresholds nobody knows the rank."""
    records = _records(0.3, 1)
    plan: Any = shoal.plan(records, epsilon=1, statistics=["median", "quantile(0.9)"])
    text = " ".join(str(plan).split())
    assert text.startswith("Quantiles and shares: between ")
    low, high = typical_interval(plan.units, 0.5)
    assert f"median will reach from the {low:.0%} to the {high:.0%} quantile" in text
    low, _ = typical_interval(plan.units, 0.9)
    assert f"from the {low:.0%} quantile of all records to the upper bound" in text
    both = str(shoal.plan(records, epsilon=2, statistics=["mean", "median"])).split("\n")
    assert [each.split(":")[0] for each in both[:2]] == ["Means", "Quantiles and shares"]
    given = str(shoal.plan(records, epsilon=1, statistics=["median", "share_above(50)"]))
    assert "whole bins" not in given
    assert "it depends on where the thresholds lie" in " ".join(given.split())
    assert given.startswith("Noise will be added")


@pytest.mark.parametrize(
    ("statistics", "epsilon", "named"),
    [
        (["median"], 0.03, ""),
        (["sum"], 0.03, ""),
        (["sum", "share_above(50)"], 0.03, " for sum"),
        (["share_above(50)"], 0.03, None),
        (["sum", "median"], 4, None),
    ],
)
def test_a_plan_that_makes_nothing_reliable_stops(
    statistics: list[str], epsilon: float, named: str | None
) -> None:
    """Whatever it is of, as plans of means do; what nobody can say beforehand stops nothing."""
    plan: Any = shoal.plan(_records(0.3, 1), epsilon=epsilon, statistics=statistics)
    if named is None:
        check_worth(plan)
        return
    with pytest.raises(InputError, match=f"none of 40 cells will be reliable{named};"):
        check_worth(plan)


def test_advice_is_what_changed_plans_forecast() -> None:
    """For bins alone, and for the fewer of both parts; of given thresholds nobody can say it."""
    records = _records(0.3, 1)
    for statistics in (["median"], ["mean", "median"]):
        plan: Any = shoal.plan(records, epsilon=0.5, statistics=statistics)
        twice: Any = shoal.plan(records, epsilon=1, statistics=statistics)
        found = {each.change: each.reliable for each in plan.advise().choices}
        of_mean = [twice.planned["mean"]] if "mean" in statistics else []
        expected = [expected_reliable(twice.units), *map(typical_error.expected_reliable, of_mean)]
        assert found["epsilon=1"] == min(expected) > plan.advise().now.reliable
        assert "without at" not in found
        assert "records_per_user=3" in found
    given: Any = shoal.plan(records, epsilon=1, statistics=["share_above(50)"])
    with pytest.raises(InputError, match="nobody can say"):
        given.advise()
