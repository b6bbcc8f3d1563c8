"""What clipping hides, how wide intervals are for it, and which cells are reliable."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.estimates import intervals
from shoal.cells.estimates.draw import exact_numbers
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.user_vectors import ball_of, excess_of, largest_excess
from shoal.cells.mechanisms.weights import FINE
from tests.support.draws import drawn, sums_of
from tests.support.tape import Tape

BOUNDS = (0, 100)


def counts(users: int, cells: int, seed: int = 0) -> shoal.Counts:
    """Users in one to four cells each."""
    rng = np.random.default_rng(seed)
    degree = rng.integers(1, 5, users)
    who = np.repeat(np.arange(users), degree)
    where = np.concatenate([rng.choice(cells, each, replace=False) for each in degree.tolist()])
    return shoal.Counts.from_counts(who, where, rng.geometric(0.3, len(who)))


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@given(seed=st.integers(0, 2**32), far=st.floats(0, 1), share=st.floats(0, 0.5))
@settings(max_examples=15, deadline=None)
def test_no_average_bias_is_above_the_excess(
    delta: str, seed: int, far: float, share: float
) -> None:
    """In steps: all cells lose, below and above, at most what users are cut there, which counts."""
    rng, plan = np.random.default_rng(seed), crowded(delta)
    parts, radius_in_steps = excess_of(plan.parameters)[0], ball_of(plan.parameters)
    weights, step = plan.weights, plan.decision.scale * 2.0**-plan.decision.bits
    mean = np.where(rng.random(plan.counts.n_users) < share, far, 0.3)[plan.counts.user]
    private = sums_of(plan, mean + rng.normal(0, 0.02, len(mean)))
    for place in (0, 0.1, 0.2, 0.3):
        exact, chosen, counted = exact_numbers(plan, private, Tape(part=place))
        assert chosen is not None
        radius = int(chosen.width[0])
        own = private.sums_of("")[weights.member] * 2.0**FINE / weights.count
        reach = weights.weight / weights.total[weights.cell] / step[weights.cell]
        vector = reach * (own - chosen.low[weights.cell]) / radius
        size = np.bincount(weights.user, np.abs(vector))
        norm = np.sqrt(np.bincount(weights.user, vector**2)) if plan.gaussian else size
        part = np.maximum(1 - radius_in_steps / np.maximum(norm, 1), 0)
        most = largest_excess(ball_of(plan.parameters), radius, 1 << (plan.lattice.bits + FINE), 30)
        counts = parts / np.maximum(size * part, most)
        whole = np.bincount(weights.cell, vector) + chosen.low / radius / step
        for way, found in zip((-1, 1), counted, strict=True):
            cut = np.bincount(weights.user, np.maximum(way * vector, 0)) * part
            rounding = (1 + 1e-6 * parts) * plan.counts.n_users
            assert found == pytest.approx((cut * counts).sum(), abs=rounding)
            # Every member and every number is rounded once.
            lost = np.maximum(way * (whole - np.array(exact)), 0).sum()
            assert lost <= cut.sum() * (1 + 1e-6) + 2 * len(vector) + len(exact)


@cache
def crowded(delta: str) -> Facts:
    """Users in most cells, so that noise is Gaussian where it may be."""
    who, cell = np.repeat(np.arange(200), 30), np.tile(np.arange(30), 200)
    plan = shoal.plan(
        shoal.Counts.from_counts(who, cell, 1 + who % 3), bounds=BOUNDS, epsilon=1, delta=delta,
        method="user_clipped",
    )  # fmt: skip
    assert plan.gaussian == (delta != "0")
    return plan


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_one_user_moves_the_excess_by_what_is_accounted(delta: str) -> None:
    """All values of one user on a grid: at most its parts, and most of them."""
    plan = shoal.plan(counts(80, 10), bounds=BOUNDS, epsilon=2, delta=delta, method="user_clipped")
    parts, bits = excess_of(plan.parameters)
    mine = np.flatnonzero(plan.counts.user == 0)
    rng, reached = np.random.default_rng(1), 0
    for place in (0.1, 0.5):
        mean, found = rng.random(len(plan.counts.user)), []
        for values in itertools.product((0, 0.4, 1), repeat=len(mine)):
            mean[mine] = values
            found.append(exact_numbers(plan, sums_of(plan, mean), Tape(part=place))[2])
        moved = np.array(found)[:, None] - found
        reached = max(reached, np.abs(moved).max(), np.abs(moved.sum(axis=2)).max())
    assert 0.6 * parts < reached <= parts
    steps = plan.cost.steps(plan.decision.scale)
    assert any(int(np.max(each.moves)) == parts and each.bits == bits for each in steps)


def test_the_excess_is_measured_from_ten_cells_on() -> None:
    """With 3% to 6% of epsilon; in fewer cells every clipped user counts for some radii."""
    for cells, part in ((9, 0), (10, 0.06), (40, 0.05), (100, 0.03)):
        plan = shoal.plan(counts(900, cells), bounds=BOUNDS, epsilon=1, method="user_clipped")
        parts, bits = excess_of(plan.parameters)
        assert parts / 2.0**bits == pytest.approx(part, rel=1e-3)
        numbers = drawn(plan, sums_of(plan, np.full(len(plan.counts.user), 0.3)), 1)
        assert (numbers.excess is None) == (cells < 10)
        assert plan.exact_epsilon <= 1
    few = shoal.plan(counts(900, 9), bounds=BOUNDS, epsilon=1, method="user_clipped")
    numbers = drawn(few, sums_of(few, np.full(len(few.counts.user), 0.3)), 1)
    assert numbers.chosen is not None
    ratio = numbers.top / int(numbers.chosen.width[0])
    radii = max(1, 1 + math.log2(ratio / 16) / 2) * int(few.parameters["clipped"][0])
    expected = radii * ball_of(few.parameters) / 2.0**few.decision.bits / 9
    assert intervals.biases(numbers) == pytest.approx((expected, expected))


@pytest.mark.parametrize("apart", [True, False])
def test_intervals_by_hand(apart: bool) -> None:
    """Times the bias of a side, more where users are apart, and on the outer side of far cells."""
    many = counts(900, 20)
    if apart:
        many = shoal.Counts.from_counts(np.arange(900), np.arange(900) % 20, 1 + np.arange(900) % 7)
    plan = shoal.plan(many, bounds=BOUNDS, epsilon=1, method="user_clipped")
    numbers = drawn(plan, sums_of(plan, np.full(len(plan.counts.user), 0.5)), 3)
    assert numbers.chosen is not None
    centre, scale = float(intervals.centres(numbers)[0]), numbers.noise_scale
    half, top = int(numbers.chosen.width[0]), numbers.top
    radius = 100 * half / top
    start = numbers.chosen.low / numbers.chosen.width / plan.decision.scale
    away = start + np.append([9, -6, 1, -1], np.linspace(-1.5, 1.5, 16))
    steps = np.rint(away * 2**plan.decision.bits).astype(int).tolist()
    parts, bits = excess_of(plan.parameters)
    numbers = replace(numbers, steps=steps, excess=(-5, 2 * parts))
    number, most = numbers.unclamped, largest_excess(ball_of(plan.parameters), half, top, 20)
    biases = np.array([0.45 * 2**bits, 2 * parts + 0.45 * 2**bits]) * most / parts
    biases /= 20 * 2.0**plan.decision.bits
    assert intervals.biases(numbers) == pytest.approx(biases)
    low, high = intervals.intervals(numbers, 0.95)
    far = np.maximum(np.abs(number - centre) / scale - 2, 0)
    assert far[0] > 3
    reach = np.zeros((900, 20))
    own = plan.weights
    reach[own.user, own.cell] = own.weight / own.total[own.cell]
    lead = reach.max(axis=0)
    times = 3.5 * (1.5 + 3 / (plan.parameters["clipped"][0] / 20) ** 2) if apart else 3.5
    assert 5.25 < times < 14 or not apart
    load = 1 / plan.decision.scale
    lead = np.minimum(lead * load / (lead * load).mean(), 2)
    load = np.maximum(np.maximum(load / load.mean(), lead), 1)
    for at in range(20):
        quantile = math.log((1 + math.exp(-times * biases.sum())) / 0.1)
        half = quantile * scale[at] + 2 * radius * plan.moved[at]
        ends = half + times * biases * load[at] * scale[at]
        beyond = 16 * biases * scale[at] * far[at] / far.mean()
        above = int(number[at] > centre)
        ends[above] += min(1.5 * abs(number[at] - centre), beyond[above])
        assert low[at] == pytest.approx(max(number[at] - ends[0], 0), abs=0.01)
        assert high[at] == pytest.approx(min(number[at] + ends[1], 100), abs=0.01)


@pytest.mark.parametrize(("delta", "seed"), [("0", 1), ("1e-6", 2)])
def test_the_spread_is_that_of_cells_and_not_of_noise(delta: str, seed: int) -> None:
    """Noise alone is none, also where some spread is a little likelier; cells apart show theirs."""
    plan = crowded(delta)
    place = np.random.default_rng(2).normal(0.5, 0.2, 30)[plan.counts.cell]
    alike, apart = (
        drawn(plan, sums_of(plan, each), seed) for each in (np.full(len(place), 0.5), place)
    )
    assert intervals.spread(alike) < 0.01
    assert 10 < intervals.spread(apart) < 40


def test_a_cell_is_reliable_by_all_numbers_and_not_by_its_own() -> None:
    """Alike ones are not, far ones are; a value is inside, two noise scales from its number."""
    plan = shoal.plan(counts(2500, 30), bounds=BOUNDS, epsilon=1, method="user_clipped")
    rng = np.random.default_rng(2)
    place = rng.normal(0.5, 0.1, 30)[plan.counts.cell]
    alike, apart = (
        drawn(plan, sums_of(plan, each), 4) for each in (np.full(len(place), 0.5), place)
    )
    assert set(intervals.statuses(alike)) == {"too noisy"}
    assert intervals.statuses(apart).count("reliable") > 20
    for numbers in (alike, apart):
        found, own = values_of(numbers, 0.95), np.array(intervals.statuses(numbers)) == "reliable"
        assert ((found.low < found.value) & (found.value < found.high)).all()
        near = np.abs(found.value - numbers.unclamped) <= 2.001 * numbers.noise_scale
        assert near[own].all()
    keep = shoal.plan(plan.counts, bounds=BOUNDS, epsilon=1, uninformative="keep")
    alike = sums_of(keep, np.full(len(place), 0.5))
    assert set(intervals.statuses(drawn(keep, alike, 4))) == {"reliable"}


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_values_are_nearer_than_any_end(delta: str) -> None:
    """Where clipping may hide much, an end of 95% is the quantile of a miss on one side alone."""
    plan = crowded(delta)
    numbers = drawn(plan, sums_of(plan, np.full(len(plan.counts.user), 0.5)), 1)
    assert numbers.quantile(0.1) > intervals.VALUE[plan.gaussian]


def test_no_cell_is_reliable_where_users_are_far_from_the_others() -> None:
    """Claims near 40 with 1% at 900 of 1000: no interval would hold."""
    plan = shoal.plan(counts(2000, 40), bounds=(0, 1000), epsilon=4)
    place = np.random.default_rng(1).normal(0.04, 0.002, 2000)
    place = np.where(np.arange(2000) % 100 == 7, 0.9, place)[plan.counts.user]
    private = sums_of(plan, place + 0.0005 * (plan.counts.cell - 20))
    for seed in range(5):
        numbers = drawn(plan, private, seed)
        assert {*intervals.statuses(numbers)} == {"outlying users"}
        found = values_of(numbers, 0.95)
        assert {*found.low, *found.high} == {0.0, 1000.0}


def test_outlying_users_are_named_before_noise() -> None:
    """With less epsilon most cells would be too noisy as well: that is not what misleads."""
    plan = shoal.plan(counts(2000, 40), bounds=(0, 1000), epsilon="0.5")
    place = np.random.default_rng(1).normal(0.04, 0.002, 2000)
    place = np.where(np.arange(2000) % 100 == 7, 0.9, place)[plan.counts.user]
    numbers = [drawn(plan, sums_of(plan, place), seed) for seed in range(5)]
    assert "outlying users" in {each for one in numbers for each in intervals.statuses(one)}
    assert all(
        len({*intervals.statuses(one)} & {"outlying users", "too noisy"}) <= 1 for one in numbers
    )


def test_cells_that_few_users_dominate_are_not_reliable() -> None:
    """Their number would be of other records: public, so the plan says it."""
    public = counts(900, 20)
    many = public.count.copy()
    many[np.flatnonzero(public.cell == 3)[0]] = 500
    heavy = shoal.Counts.from_counts(public.user, public.cell, many)
    plan = shoal.plan(heavy, bounds=BOUNDS, epsilon=1)
    table = plan.table()
    at = table["cell"].to_pylist().index(3)
    assert table["status"][at].as_py() == "few users dominate"
    assert "few users have most of its records" in table["reason"][at].as_py()
    assert table["status"].to_pylist().count("few users dominate") == 1


def test_tables_mark_what_is_not_reliable() -> None:
    """The common number, its source and the reason; the first lines count."""
    rng = np.random.default_rng(5)
    who, cell = np.repeat(np.arange(400), 3), rng.integers(0, 15, 1200)
    value = 50 + rng.normal(0, 5, 1200)
    columns = {"who": who, "cell": cell, "v": value}
    data = pa.table({name: pa.array(each) for name, each in columns.items()})
    records = shoal.Records(data, user="who", value="v", bounds=BOUNDS, by="cell", counts="public")
    plan = shoal.plan(records, epsilon="0.3")
    assert plan.forecast() == dict.fromkeys((0.3, 0.1, 0.03), 0)
    assert str(plan).startswith("About 0 of 15 cells will be reliable.")
    release = plan.release(records, noise=shoal.Simulated(1))
    rows = release.table().to_pylist()
    own = {row["status"] for row in rows}
    assert own & {"too noisy", "outlying users"}
    assert {row["source"] for row in rows if row["status"] != "reliable"} == {"common"}
    assert {row["reason"] for row in rows} == {intervals.WHY.get(each) for each in own}
    many = sum(row["status"] == "reliable" for row in rows)
    assert str(release).startswith(f"Reliable: {many} of 15 cells.")


def test_users_of_one_cell_each_share_no_bias() -> None:
    """Above half a noise scale no cell is reliable; of users in several cells they are."""
    for degree in (1, 4):
        who = np.repeat(np.arange(3000), degree)
        where = (who + 5 * np.arange(len(who)) % (5 * degree)) % 20
        cells = shoal.Counts.from_counts(who, where, np.full(len(who), 2))
        plan = shoal.plan(cells, bounds=BOUNDS, epsilon=4, method="user_clipped")
        place = np.random.default_rng(1).normal(0.5, 0.2, 20)[plan.counts.cell]
        numbers, parts = drawn(plan, sums_of(plan, place), 2), excess_of(plan.parameters)[0]
        none, one = (intervals.biases(replace(numbers, excess=(0, each)))[1] for each in (0, parts))
        for bias in (0.4, 0.6):
            excess = 0, round(parts * (bias - none) / (one - none))
            own = intervals.statuses(replace(numbers, excess=excess))
            assert ("outlying users" in own) == (degree == 1 and bias > 0.5)
            assert len({*own} - {"outlying users", "reliable"}) <= (degree == 4)
