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
from scipy import stats

import shoal
from shoal.cells.estimates import intervals
from shoal.cells.estimates.draw import exact_numbers
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.user_vectors import FAR, ball_of, excess_of, excess_unit
from shoal.cells.mechanisms.weights import FINE
from shoal.cells.shown.plan_warnings import assumption, release_warnings
from shoal.privacy.law import GAUSSIAN, LAPLACE
from tests.support.draws import drawn, sums_of
from tests.support.tape import Tape

BOUNDS = (0, 100)


def counts(users: int, cells: int, seed: int = 0, most: int = 4) -> shoal.Counts:
    """Users in one to four cells each, or up to fewer."""
    rng = np.random.default_rng(seed)
    degree = rng.integers(1, most + 1, users)
    who = np.repeat(np.arange(users), degree)
    where = np.concatenate([rng.choice(cells, each, replace=False) for each in degree.tolist()])
    return shoal.Counts.from_counts(who, where, rng.geometric(0.3, len(who)))


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@given(seed=st.integers(0, 2**32), far=st.floats(0, 1), share=st.floats(0, 0.5))
@settings(max_examples=15, deadline=None)
def test_no_average_bias_is_above_what_is_cut_off(
    delta: str, seed: int, far: float, share: float
) -> None:
    """In steps: all cells lose, below and above, at most what users are cut there.

    Of each user one radius of it counts, or it is far and counts apart.
    """
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
        unit = excess_unit(radius_in_steps, 200, len(vector), plan.law)
        is_far = norm > (FAR + 1) * radius_in_steps
        counts = np.where(is_far, 0, parts / np.maximum(size * part, unit))
        assert counted[2] == pytest.approx(parts * is_far.sum(), abs=2 * parts)
        whole = np.bincount(weights.cell, vector) + chosen.low / radius / step
        for way, found in zip((-1, 1), counted[:2], strict=True):
            cut = np.bincount(weights.user, np.maximum(way * vector, 0)) * part
            rounding = (1 + 1e-6 * parts) * plan.counts.n_users
            # Where rounding decides who is far, a user counts here or there.
            unsure = parts * np.count_nonzero(np.abs(norm / radius_in_steps - FAR - 1) < 1e-3)
            assert found == pytest.approx((cut * counts).sum(), abs=rounding + unsure)
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
        rises = np.maximum(moved, 0).sum(axis=2)
        falls = np.maximum(-moved, 0).sum(axis=2)
        assert min(map(min, found)) >= 0
        reached = max(reached, rises.max(), falls.max())
    assert 0.6 * parts < reached <= parts
    steps = plan.cost.steps(plan.decision.scale)
    assert any(int(np.max(each.moves)) == parts and each.bits == bits for each in steps)


def test_the_excess_is_measured_from_three_cells_on() -> None:
    """With 6% to 10% of epsilon; in fewer cells every clipped user counts for some radii."""
    for cells, part in ((2, 0), (3, 0.06), (12, 0.1), (100, 0.08)):
        plan = shoal.plan(
            counts(900, cells, most=min(cells, 4)), bounds=BOUNDS, epsilon=1, method="user_clipped"
        )
        parts, bits = excess_of(plan.parameters)
        assert parts / 2.0**bits == pytest.approx(part, rel=1e-3)
        numbers = drawn(plan, sums_of(plan, np.full(len(plan.counts.user), 0.3)), 1)
        assert (numbers.excess is None) == (cells < 3)
        assert plan.exact_epsilon <= 1
    few = shoal.plan(counts(900, 2, most=2), bounds=BOUNDS, epsilon=1, method="user_clipped")
    numbers = drawn(few, sums_of(few, np.full(len(few.counts.user), 0.3)), 1)
    assert numbers.chosen is not None
    ratio = numbers.top / int(numbers.chosen.width[0])
    radii = max(1, 1 + math.log2(ratio / 16) / 2) * int(few.parameters["clipped"][0])
    expected = radii * ball_of(few.parameters) / 2.0**few.decision.bits / 2
    assert intervals.biases(numbers) == pytest.approx((expected, expected))


@pytest.mark.parametrize("apart", [True, False])
def test_intervals_by_hand(apart: bool) -> None:
    """Room for the bias of a side, users at the bound, and more on the side of far cells."""
    many = counts(900, 20)
    if apart:
        many = shoal.Counts.from_counts(np.arange(900), np.arange(900) % 20, 1 + np.arange(900) % 7)
    plan = shoal.plan(many, bounds=BOUNDS, epsilon=1, method="user_clipped")
    place = np.random.default_rng(4).normal(0.5, 0.02, 900)[plan.counts.user]
    numbers = drawn(plan, sums_of(plan, np.clip(place, 0, 1)), 3)
    assert numbers.chosen is not None
    centre, scale = float(intervals.centres(numbers)[0]), numbers.noise_scale
    radius = 100 * int(numbers.chosen.width[0]) / numbers.top
    start = numbers.chosen.low / numbers.chosen.width / plan.decision.scale
    away = start + np.append([9, -6, 1, -1], np.linspace(-1.5, 1.5, 16))
    steps = np.rint(away * 2**plan.decision.bits).astype(int).tolist()
    parts, bits = excess_of(plan.parameters)
    # Three users beyond one noise scale are counted, and two more are allowed for.
    numbers = replace(numbers, steps=steps, excess=(-5, 2 * parts, 2**bits + 3 * parts))
    number = numbers.unclamped
    # The noise scales of the average cell that a radius of one user is.
    one = ball_of(plan.parameters) / 2.0**plan.decision.bits / 20
    biases = np.array([0, 2 * one])
    assert intervals.biases(numbers) == pytest.approx(biases)
    low, high = intervals.intervals(numbers, 0.95)
    far = np.maximum(np.abs(number - centre) / scale - 2, 0)
    assert far[0] > 3
    reach = np.zeros((900, 20))
    own = plan.weights
    reach[own.user, own.cell] = own.weight / own.total[own.cell]
    lead = reach.max(axis=0)
    load = 1 / plan.decision.scale
    lead = np.minimum(lead * load / (lead * load).mean(), 2)
    load = np.maximum(np.maximum(load / load.mean(), lead), 1) * (3 if apart else 1)
    unseen = 5 * one * np.array([centre, 100 - centre]) / radius
    for at in range(20):
        hidden = 6.5 * biases * load[at]
        beyond = 10 * biases * far[at] / far.mean()
        above = int(number[at] > centre)
        most = 1.5 * abs(number[at] - centre) / scale[at]
        hidden[above] = math.hypot(hidden[above], min(most, beyond[above]))
        room = hidden + unseen * load[at]
        # A bias on one side alone misses as often as the plain quantile on both.
        quantile = math.log((1 + math.exp(-room.sum())) / 0.1)
        ends = (quantile + room) * scale[at] + 2 * radius * plan.moved[at]
        assert low[at] == pytest.approx(max(number[at] - ends[0], 0), abs=0.01)
        assert high[at] == pytest.approx(min(number[at] + ends[1], 100), abs=0.01)


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_quantile_misses_no_bias_more_often(gaussian: bool) -> None:
    """Of every bias inside the room the chance of a miss is at most that asked for, at ends it."""
    law = stats.norm if gaussian else stats.laplace
    for miss, below, above in itertools.product((0.05, 0.3), (0, 0.3, 2), (0, 1.0)):
        room = np.array(below + above)
        half = law.ppf(1 - miss / 2) - float(
            (GAUSSIAN if gaussian else LAPLACE).one_sided(room, miss)
        )
        biases = np.linspace(-below, above, 41)
        # Noise plus a bias is missed above the room, or below it.
        missed = law.sf(half + above - biases) + law.cdf(-half - below - biases)
        assert missed.max() <= miss + 1e-9
        if not gaussian:
            assert missed[[0, -1]] == pytest.approx([miss, miss])


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
    people = rng.normal(0.5, 0.1, 2500)[plan.counts.user]
    alike, apart = (drawn(plan, sums_of(plan, each), 4) for each in (people, place))
    assert intervals.statuses(alike).count("too noisy") > 20
    assert intervals.statuses(apart).count("reliable") > 20
    for numbers in (alike, apart):
        found, own = values_of(numbers, 0.95), np.array(intervals.statuses(numbers)) == "reliable"
        assert ((found.low < found.value) & (found.value < found.high)).all()
        near = np.abs(found.value - numbers.unclamped) <= 2.001 * numbers.noise_scale
        assert near[own].all()
    keep = shoal.plan(plan.counts, bounds=BOUNDS, epsilon=1, uninformative="keep")
    assert set(intervals.statuses(drawn(keep, sums_of(keep, people), 4))) == {"reliable"}


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_values_are_nearer_than_any_end(delta: str) -> None:
    """Where clipping may hide much, an end of 95% is the quantile of a miss on one side alone."""
    plan = crowded(delta)
    numbers = drawn(plan, sums_of(plan, np.full(len(plan.counts.user), 0.5)), 1)
    assert numbers.quantile(0.1) > intervals.VALUE[plan.law]


def test_no_cell_is_reliable_where_users_are_far_from_the_others() -> None:
    """Claims near 40 with some at 900 of 1000, or as many as nothing would show: before any noise.

    Whichever it is, intervals are the bounds.
    """
    plan = shoal.plan(counts(2000, 40), bounds=(0, 1000), epsilon="0.5")
    rng = np.random.default_rng(1)
    reasons = []
    for percent in (0, 5):
        place = rng.normal(0.04, 0.004, 2000)
        place = np.where(np.arange(2000) % 100 < percent, 0.9, place)[plan.counts.user]
        for seed in range(6):
            numbers = drawn(plan, sums_of(plan, place), seed)
            own = {*intervals.statuses(numbers)}
            known = intervals.far_users(numbers)
            assert known is not None
            expected = "outlying users" if known.number > known.seen else "wide bounds"
            if known.harm > 40 or known.number > known.seen:
                assert own == {expected}
                found = values_of(numbers, 0.95)
                assert {*found.low, *found.high} == {0.0, 1000.0}
                assert {*intervals.intervals(numbers, 0.95).high} == {1000.0}
                reasons.append(expected)
    assert {*reasons} == {"outlying users", "wide bounds"}


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
    """Above a quarter of a noise scale no cell is reliable; of users in several cells they are."""
    for degree in (1, 4):
        who = np.repeat(np.arange(3000), degree)
        where = (who + 5 * np.arange(len(who)) % (5 * degree)) % 20
        cells = shoal.Counts.from_counts(who, where, np.full(len(who), 2))
        plan = shoal.plan(cells, bounds=BOUNDS, epsilon=4, method="user_clipped")
        place = np.random.default_rng(1).normal(0.5, 0.2, 20)[plan.counts.cell]
        numbers, parts = drawn(plan, sums_of(plan, place), 2), excess_of(plan.parameters)[0]
        one = intervals.biases(replace(numbers, excess=(0, parts, 0)))[1]
        for bias in (0.2, 0.3):
            excess = 0, round(parts * bias / one), 0
            own = intervals.statuses(replace(numbers, excess=excess))
            assert ("outlying users" in own) == (degree == 1 and bias > 0.25)
            assert len({*own} - {"outlying users", "reliable"}) <= (degree == 4)


@pytest.mark.parametrize("cells", [4, 20])
def test_users_whom_no_count_sees_are_allowed_for_and_said(cells: int) -> None:
    """Wider bounds on one side make that side longer; far wider ones make no cell reliable."""
    rng = np.random.default_rng(1)
    public = counts(600, cells)
    means = rng.normal(30, 4, cells)[public.cell] + rng.normal(0, 5, 600)[public.user]
    rooms = {}
    for most in (60, 90, 4000):
        plan = shoal.plan(public, bounds=(0, most), epsilon=1, method="user_clipped", tick_bits=24)
        numbers = drawn(plan, sums_of(plan, np.clip(means, 0, most) / most), 2)
        known = intervals.far_users(numbers)
        assert known is not None
        assert numbers.radius is not None
        parts, bits = excess_of(plan.parameters)
        assert known.seen == pytest.approx(3.39 * 2**bits / parts)
        rooms[most] = intervals._unseen(numbers)
        # Nobody can be far if the bounds are within five radii.
        assert known.possible == (known.reach > 5 * numbers.radius)
        harm = max(rooms[most]) / known.allowed * known.seen
        assert known.harm == pytest.approx(harm if known.possible else 0)
        centre = float(intervals.centres(numbers)[0])
        assert rooms[most][1] / rooms[most][0] == pytest.approx((most - centre) / centre)
        warned = [each for each in release_warnings(plan, numbers) if "not be seen" in each]
        own = {*intervals.statuses(numbers)}
        assert (own == {"wide bounds"}) == (known.harm > 40 and cells >= 10)
        if "reliable" in own:
            said = " ".join(assumption(numbers))
            counts_them = f"With more than {known.seen:,.0f} no cell would be reliable" in said
            assert counts_them == known.possible
            assert bool(warned) == (known.harm > 10)
        if most == 4000:
            assert known.harm > 40
