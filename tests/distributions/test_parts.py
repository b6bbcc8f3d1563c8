"""Squares about released means, and what the parts of a plan cost together."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.estimates.draw import public_ticks
from shoal.distributions.parts import squares_about
from shoal.distributions.plan import Plan
from shoal.errors import InputError
from tests.support import made_counts

BOUNDS = (-10.0, 30.0)


def _table(users: int = 60, cells: int = 3, seed: int = 2) -> pa.Table:
    """Users with one to nine records in every cell, some values at the bounds and beyond."""
    rng = np.random.default_rng(seed)
    many = rng.integers(1, 10, users * cells)
    who = np.repeat(np.arange(users).repeat(cells), many)
    at = np.repeat(np.tile(np.arange(cells), users), many)
    value = rng.choice([-10.0, 30.0, 45.0, 7.125], len(who))
    value = np.where(rng.random(len(who)) < 0.8, rng.normal(5 + 3 * at, 4), value)
    return pa.table({"who": who, "at": at, "value": value})


def _records(table: pa.Table, **more: Any) -> shoal.Records:
    """Records of public counts."""
    return shoal.Records(
        table, user="who", value="value", by="at", bounds=BOUNDS, counts="public", **more
    )


@pytest.mark.parametrize("tick_bits", [10, 20, 24])
def test_squares_are_those_of_values_about_the_released_mean(tick_bits: int) -> None:
    """In whole ticks: each sum is that of squares by hand, to half a tick of squares."""
    table = _table()
    records = _records(table, tick_bits=tick_bits)
    plan = shoal.plan(records, epsilon=2, statistics=["std"])
    assert isinstance(plan, Plan)
    counts, aggregate = records.aggregate(squares=True)
    drawn = plan.draw(records, shoal.Simulated(1))
    of_mean = plan.published(drawn).parts["mean"].numbers
    found = squares_about(of_mean, aggregate, np.arange(3), plan.planned["squares"].lattice)
    top = 1 << tick_bits
    middle = public_ticks(of_mean, top)
    low, high = BOUNDS
    value = np.clip(table["value"].to_numpy(), low, high)
    ticks = np.rint((value - low) / (high - low) * top)
    who, at = table["who"].to_numpy(), table["at"].to_numpy()
    assert drawn.squares is not None
    farthest = np.abs(ticks - middle[at]).max() / top * (high - low)
    assert farthest**2 <= drawn.squares.basis.highest < (high - low) ** 2
    for cell in range(3):
        expected = sorted(
            sum(
                Fraction(int(each - middle[cell])) ** 2
                for each in ticks[(who == user) & (at == cell)]
            )
            / top
            for user in range(60)
        )
        # Users have another order there.
        sums = sorted(map(Fraction, found.sums[counts.cell == cell].tolist()))
        for one, other in zip(sums, expected, strict=True):
            assert abs(one - other) <= Fraction(1, 2)


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("statistics", [["sum"], ["std", "sum"], ["variance"]])
def test_the_parts_share_epsilon(statistics: list[str], delta: Any) -> None:
    """Each costs at most its share, and what is charged is their sum; sums cost nothing more."""
    counts = made_counts.crowded()
    wanted = {"bounds": BOUNDS, "epsilon": 3, "delta": delta, "statistics": statistics}
    plan = shoal.plan(counts, min_users=1, **wanted)
    many = 1 if statistics == ["sum"] else 2
    assert len(plan.planned) == many
    for facts in plan.planned.values():
        assert (0.99 if not delta else 0.7) * 3 / many <= facts.exact_epsilon <= Fraction(3, many)
    total = sum(facts.exact_epsilon for facts in plan.planned.values())
    assert plan.exact_loss.epsilon == total <= plan.loss.epsilon <= 3


def test_a_sum_is_the_mean_times_the_records_that_count() -> None:
    """With limited users a sum is of what their records count for."""
    table = _table()
    records = _records(table)
    plan = shoal.plan(records, epsilon=2, statistics=["mean", "sum"], records_per_user=5)
    found = plan.release(records, noise=shoal.Simulated(3)).to_pandas()
    mean, total = (found[found["statistic"] == name] for name in ("mean", "sum"))
    who = table["who"].to_numpy()
    weight = np.minimum(1.0, 5 / np.bincount(who))[who]
    counting = np.bincount(table["at"].to_numpy(), weight)
    for column in ("value", "low", "high", "noise_scale"):
        expected = mean[column].to_numpy() * counting
        assert total[column].to_numpy() == pytest.approx(expected, rel=0.01)


def test_deviations_are_near_and_covered() -> None:
    """With much epsilon they are nearly those of the data, within bounds; the root of variances."""
    table = _table(users=3000)
    records = _records(table)
    plan: Any = shoal.plan(records, epsilon=40, statistics=["std", "variance"])
    value = np.clip(table["value"].to_numpy(), *BOUNDS)
    at = table["at"].to_numpy()
    true = np.array([value[at == cell].std() for cell in range(3)])
    covered = []
    for turn in range(20):
        found = plan.release(records, noise=shoal.Simulated(turn)).to_pandas()
        std, variance = (found[found["statistic"] == name] for name in ("std", "variance"))
        assert std["value"].to_numpy() == pytest.approx(true, rel=0.02)
        assert variance["value"].to_numpy() == pytest.approx(std["value"].to_numpy() ** 2)
        covered.append((std["low"] <= true) & (true <= std["high"]))
    # At least 95% are covered; 51 of 60 are with a probability above 99%.
    assert np.sum(covered) >= 51


def test_few_large_squares_of_a_single_cell_are_not_cut() -> None:
    """A few incomes at the upper bound are most of a deviation, and no other cell shows them."""
    rng = np.random.default_rng(54)
    pay = np.minimum(np.exp(rng.normal(10.5, 0.6, 12_000)), 400_000)
    pay[:24] = 400_000 * rng.random(24) ** 0.2
    table = pa.table({"who": np.arange(12_000), "pay": pay})
    columns: dict[str, Any] = {"user": "who", "value": "pay", "counts": "public"}
    records = shoal.Records(table, bounds=(0, 400_000), **columns)
    plan: Any = shoal.plan(records, epsilon=1, statistics=["std"])
    covered = 0
    for turn in range(10):
        found = plan.release(records, noise=shoal.Simulated(turn)).to_pandas()
        covered += int(found["low"][0] <= pay.std() <= found["high"][0])
    assert covered >= 9


def test_too_many_records_for_squares_are_refused() -> None:
    """Sums of squares stay below 2^62 ticks."""
    counts = shoal.Counts.from_counts([0, 1, 2], [0, 0, 0], [2**22, 1, 1])
    wanted = {"bounds": BOUNDS, "epsilon": 1}
    with pytest.raises(InputError, match="too many for squares"):
        shoal.plan(counts, statistics=["std"], **wanted)
    assert shoal.plan(counts, statistics=["sum"], **wanted).epsilon <= 1
