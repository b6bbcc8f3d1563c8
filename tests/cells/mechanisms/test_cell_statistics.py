"""What each statistic says of itself: names, ranges, rounding; and what engines add up for it."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cells.mechanisms.cell_statistics import (
    MEAN,
    VARIANCE,
    Mean,
    ShareAbove,
    Variance,
    cell_errors,
    statistic,
)
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from tests.support.loop import loop_over

BOUNDS = (-3.0, 61.7)


@given(threshold=st.floats(allow_nan=False, allow_infinity=False))
def test_names_say_the_whole_threshold(threshold: float) -> None:
    """A name becomes the same statistic again, to the last bit."""
    share = ShareAbove(threshold)
    assert statistic(share.name) == share
    assert statistic(share.name).name == share.name


@loop_over(
    "names",
    [
        ["median"],
        [],
        ["mean", "mean"],
        ["mean"] * 9,
        None,
        ["share_above()"],
        ["share_above(1e999)"],
        ["share_above(nan)"],
        ["x\ny"],
        ["share_above(60)", "share_above(60.0)"],
        ["share_above(0)", "share_above(-0)"],
        "share_above(6)",
    ],
)
def test_other_statistics_are_refused_in_one_line(names: Any) -> None:
    """What was got, what is allowed, what to do next."""
    counts = Counts.from_counts(["a", "b"], [0, 0], [1, 1])
    with pytest.raises(InputError) as caught:
        shoal.plan(counts, method="balanced", bounds=(0, 1), epsilon=1, statistics=names)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(data=st.data())
def test_rounding_to_ticks_moves_a_statistic_by_at_most_its_bound(data: st.DataObject) -> None:
    """Mean and variance of exact values against those of their ticks."""
    bits = data.draw(st.integers(1, 20))
    lattice = Lattice(Bounds(0, 1), bits)
    values = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    ticks = lattice.ticks(np.array(values))
    exact, rounded = [Fraction(x) for x in values], [Fraction(int(t), 2**bits) for t in ticks]
    mean = abs(_mean(exact) - _mean(rounded))
    variance = 4 * abs(_variance(exact) - _variance(rounded))
    assert mean <= Mean().rounding(float(lattice.rounding), 0.0)
    assert variance <= Variance().rounding(float(lattice.rounding), 0.0)


def test_a_variance_can_move_nearly_as_far_as_its_bound() -> None:
    """Half of the values half a tick up, half of them down: the bound is no larger than needed."""
    apart, moved = Fraction(1), Fraction(1, 2**10)
    before, after = (apart / 2) ** 2, (apart / 2 - moved) ** 2
    bound = Variance().rounding(float(moved), 0.0)
    assert bound * 0.99 <= 4 * (before - after) <= bound


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _variance(values: list[Fraction]) -> Fraction:
    return _mean([x * x for x in values]) - _mean(values) ** 2


def table(size: int = 4000) -> pa.Table:
    """Users, places, and values on, near and off the thresholds and bounds."""
    rng = np.random.default_rng(11)
    special = np.array([BOUNDS[0], BOUNDS[1], 20.0, 20.00003, 19.99997, -50.0, 400.0])
    value = np.where(rng.random(size) < 0.3, rng.choice(special, size), rng.normal(25, 25, size))
    return pa.table(
        {
            "who": [f"u{n:02}" for n in rng.integers(0, 25, size)],
            "place": np.array(["a", "b", "c"])[rng.integers(0, 3, size)].tolist(),
            "value": value.tolist(),
        }
    )


THRESHOLDS = (-1e308, -3.0, 20.0, 20.00002, 61.7, 61.69999, 500.0, 1e308)


def by_hand(whole: pa.Table, lattice: Lattice) -> list[tuple[int, ...]]:
    """For each user and place: records, sums, squares, and records above each threshold."""
    found: dict[Any, np.ndarray] = {}
    ticks = lattice.ticks(whole.column("value").to_numpy()).tolist()
    keys = zip(whole.column("who").to_pylist(), whole.column("place").to_pylist(), strict=True)
    low, high = BOUNDS
    values = np.clip(whole.column("value").to_numpy(), low, high).tolist()
    for key, tick, value in zip(keys, ticks, values, strict=True):
        above = [int(value > each) << lattice.bits for each in THRESHOLDS]
        centred = tick - 2 ** (lattice.bits - 1)
        row = np.array([1, tick, centred**2, *above], dtype=np.int64)
        found[key] = found.get(key, np.zeros_like(row)) + row
    return sorted(tuple(int(x) for x in row) for row in found.values())


def by_engine(source: object) -> list[tuple[int, ...]]:
    """The same by one pass over the records."""
    records = shoal.Records(
        source, user="who", value="value", bounds=BOUNDS, by="place", counts="public"
    )
    measures = [ShareAbove(threshold) for threshold in THRESHOLDS]
    counts, aggregate = records.aggregate(measures)
    columns = [counts.count, aggregate.sums, aggregate.squares]
    columns += [aggregate.sums_of(each.name) for each in measures]
    return sorted(tuple(row) for row in np.stack(columns, axis=1).tolist())


def test_shares_are_those_of_plain_python() -> None:
    """Whole numbers, for thresholds in and outside the bounds."""
    whole = table()
    lattice = shoal.Records(
        whole, user="who", value="value", bounds=BOUNDS, by="place", counts="public"
    ).lattice
    assert by_engine(whole) == by_hand(whole, lattice)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_value_equal_to_a_threshold_is_not_above_it(kind: Any) -> None:
    """In both precisions; in bounds so wide that both values are in one tick, too."""
    value = pa.array([0.1, 0.1, 0.3], pa.float64()).cast(kind)
    table = pa.table({"who": [1, 2, 3], "value": value})
    for high in (1.0, 1e7):
        records = shoal.Records(table, user="who", value="value", bounds=(0, high), counts="public")
        _, found = records.aggregate([ShareAbove(0.1)])
        assert found.sums_of("share_above(0.1)").sum() == 1 << 20


def test_error_is_bias_plus_noise_in_units() -> None:
    """K = 6 of n = 8 records, the heaviest user has 2: by hand, with U = 65."""
    arrays, wide = (np.array([2]), np.array([6]), np.array([8])), 65.0
    found = cell_errors([MEAN, VARIANCE], 1.0, [wide, wide**2 / 4])(*arrays)[0]
    mean = wide * (2 / 8 + 2 / 6 / 0.5)
    variance = wide**2 * (2 * 6 / 64 + 2 * 4 / 36 / 0.5)
    assert found == pytest.approx(mean + variance)
