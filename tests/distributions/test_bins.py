"""Bins in whole units: their moves and losses by enumeration, their edges, values and intervals."""

import itertools
import math
from bisect import bisect
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.counts import Counts
from shoal.distributions.bin_estimates import Bins
from shoal.distributions.bins import (
    FINE,
    AllCells,
    Place,
    common,
    draw_bins,
    edges_of,
    edges_of_round,
    in_units,
    on_simplex,
    smooth,
)
from shoal.distributions.plan import Plan
from shoal.distributions.units import BITS, Units, plan_units
from shoal.errors import InputError
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.theory import sum_zero
from shoal.verification.rederive import replanned
from tests.support import made_counts
from tests.support.tape import Tape

BITS_OF_TICKS = 20


def _histograms(records: int, bins: int) -> np.ndarray:
    """The records up to each edge, of all histograms of so many records."""
    cuts = itertools.combinations_with_replacement(range(records + 1), bins - 1)
    return np.array(list(cuts), dtype=np.int64)


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_nobody_moves_bins_by_more_than_its_units(bins: int) -> None:
    """All histograms of up to five records: whole bins that add up to the units; attained."""
    for records, units in itertools.product((1, 2, 3, 5), (1, 2, 3, 7, 10)):
        below = _histograms(records, bins)
        rows = in_units(np.full(len(below), units), below, np.full(len(below), records))
        assert (rows.sum(axis=1) == units).all()
        assert (rows >= 0).all()
        apart = np.abs(rows[:, None] - rows[None]).sum(axis=2) // 2
        assert apart.max() == units


def _law(bins: int, bits: int, most: int) -> dict[tuple[int, ...], float]:
    """The exact chances of noise of sum zero, but for the tail beyond `most`."""
    chances = {}
    for inner in itertools.product(range(-most, most + 1), repeat=bins - 1):
        noise = (*inner, -sum(inner))
        chances[noise] = math.exp(-sum(map(abs, noise)) / 2 / 2**bits)
    whole = sum(chances.values())
    return {noise: chance / whole for noise, chance in chances.items()}


def test_noise_of_many_rows_has_its_law() -> None:
    """Each of 6,000 rows gets noise of its own, as often as chances say: 3 s, as it is exact."""
    chances = _law(4, 0, 12)
    size = 6_000
    rows = [[at, 7 * at, -at, 0] for at in range(size)]
    drawn = np.array(OperatingSystem().add_sum_zero(rows, 0, 0)) - np.array(rows)
    assert (drawn.sum(axis=1) == 0).all()
    seen, often = np.unique(drawn, axis=0, return_counts=True)
    found = {tuple(row): many for row, many in zip(seen.tolist(), often.tolist(), strict=True)}
    common_noise = [noise for noise, chance in chances.items() if chance * size > 20]
    expected = np.array([chances[noise] * size for noise in common_noise])
    counted = np.array([found.get(noise, 0) for noise in common_noise])
    square = ((counted - expected) ** 2 / expected).sum()
    assert abs(square - len(expected)) < 5 * math.sqrt(2 * len(expected))


def test_no_outcome_tells_more_than_units_pay_for() -> None:
    """All neighbours of two records in two and three bins: ratios of exact chances."""
    for bins, most in ((2, 30), (3, 14)):
        chances = _law(bins, 1, most)
        for first, second in itertools.product(_histograms(2, bins), repeat=2):
            rows = in_units(np.array([2, 2]), np.array([first, second]), np.array([2, 2]))
            shift = rows[0] - rows[1]
            ratios = [
                abs(math.log(chance / chances[tuple(np.add(noise, shift))]))
                for noise, chance in chances.items()
                if tuple(np.add(noise, shift)) in chances
            ]
            assert max(ratios) <= 2 / 2**1 + 1e-9


@given(data=st.data())
def test_the_loss_is_the_largest_sum_of_units(data: st.DataObject) -> None:
    """Never above epsilon, and nearly all of it; with certified errors no weight moves."""
    users = data.draw(st.integers(3, 60))
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, users - 1), st.integers(0, 4), st.integers(1, 30)),
            min_size=5,
            max_size=60,
            unique_by=lambda each: each[:2],
        )
    )
    user, cell, count = (list(column) for column in zip(*pairs, strict=True))
    counts = shoal.Counts.from_counts(user, cell, count)
    epsilon = data.draw(st.floats(0.05, 8))
    certified = data.draw(st.booleans())
    cells = np.arange(counts.n_cells)
    units = plan_units(counts, cells, epsilon, finds=True, certified=certified)
    of_users = np.zeros(counts.n_users, dtype=object)
    np.add.at(of_users, units.user, units.units.astype(object))
    look = -(-int(max(of_users)) // 2**units.fullest) if units.fullest else 0
    spent = Fraction(int(max(of_users)) + look + units.vote * units.rounds, 2**BITS)
    total = sum(Fraction(int(each.moves.max()), 2**each.bits) for each in units.steps)
    assert total == spent <= Fraction(epsilon)
    assert spent >= Fraction(epsilon) * Fraction(99, 100)
    if certified:
        assert units.moved.max() < 1e-3


def test_nobody_moves_fullest_bins_by_more_than_its_units() -> None:
    """All places of a user's three records among those of five others: by no more, and by as much.

    The bins come before any noise, which is nothing; halves of units are rounded upwards.
    """
    rng = np.random.default_rng(6)
    who = np.repeat(np.arange(6), 3)
    at = np.tile([0, 0, 1], 6)
    counts = Counts.from_counts(np.repeat(np.arange(6), 2), np.tile([0, 1], 6), [2, 1] * 6)
    of_members = np.array([4, 3] + [2, 1] * 5)
    units = Units(counts, np.arange(2), of_members, 1, 1, 1, 6)
    moved = set()
    for _ in range(6):
        value = rng.choice([10.0, 50.0, 90.0], len(who), p=rng.dirichlet(np.ones(3)))
        found = []
        for places in itertools.product([10.0, 50.0, 90.0], repeat=3):
            value[:3] = places
            table = pa.table({"who": who, "at": at, "value": value})
            given: Any = {"bounds": (0, 96), "counts": "public"}
            records = shoal.Records(table, user="who", value="value", by="at", **given)
            tape = Tape(answers=[[1] * 32])

            def read(measure: Any, records: Any = records) -> Any:
                return records.tally(measure)[1]

            draw_bins(units, Place([], []), BITS_OF_TICKS, read, tape)
            [asked] = [each for each in tape.asked if each.kind == "laplace"]
            found.extend(asked.numbers)
        moved.add(max(found) - min(found))
    most = units.steps[-1].moves.tolist()
    assert most == [4, 2, 2, 2, 2, 2]
    assert max(moved) <= most[0]
    assert 3 in moved


@pytest.mark.parametrize(("width", "many"), [(40, 24), (600, 6)])
def test_cells_far_apart_have_more_bins(width: float, many: int) -> None:
    """Altitudes of 30 stations anywhere in 2,500, in four releases; what was drawn says so."""
    rng = np.random.default_rng(8)
    who = np.arange(2000)
    at = rng.integers(0, 30, len(who))
    value = 300 + rng.uniform(0, 2400, 30)[at] + rng.normal(0, width, len(who))
    table = pa.table({"who": who, "at": at, "value": np.clip(value, 0, 3000)})
    records = shoal.Records(
        table, user="who", value="value", by="at", bounds=(0, 3000), counts="public"
    )
    plan: Any = shoal.plan(records, epsilon=1, statistics=["median"])
    assert plan.units.bins == 6
    assert plan.units.fullest >= 5
    assert Fraction(999, 1000) < plan.exact_loss.epsilon <= 1
    for seed in range(4):
        release = plan.release(records, noise=Simulated(seed))
        assert release.numbers.bins.bins == many
        verdict = shoal.verify(release.record, replan=True)
        wrong = [each.claim for each in verdict.checks if not each.holds]
        assert wrong == ["noise of the operating system"]
        assert release.published.bins.far == (many > 6)
        assert any("far apart" in each for each in release.meaning()) == (many > 6)


def test_fullest_bins_of_few_users_are_full_by_chance() -> None:
    """Of 900 cells with four alike users each half is in one bin, and no cell is far apart."""
    rng = np.random.default_rng(2)
    who = np.arange(3600)
    table = pa.table({"who": who, "at": who // 4, "value": rng.uniform(0, 90, len(who))})
    given: Any = {"bounds": (0, 90), "counts": "public"}
    records = shoal.Records(table, user="who", value="value", by="at", **given)
    plan: Any = shoal.plan(records, epsilon=2, statistics=["median"], min_users=1)
    bins = plan.release(records, noise=Simulated(1)).drawn.bins
    [fullest] = bins.fullest
    part = fullest * 2**plan.units.fullest / plan.units.total.sum()
    assert 0.45 < part < 0.6
    assert len(bins.edges) == 5


def test_cells_far_apart_hold_nothing_that_noise_explains() -> None:
    """But in their fullest bins, and where noise is so large that any bin may be the fullest."""
    plain = np.array([[0.05, 0.9, 0.15, -0.1], [0.3, 0.4, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4]])
    noise = np.array([0.02, 0.08, 0.2])
    bins = Bins(plain, noise, np.zeros(3), np.arange(5.0), 1e-6, None, far=True)
    expected = [[0, 6 / 7, 1 / 7, 0], [0, 1, 0, 0], replace(bins, far=False).value[2]]
    assert bins.value == pytest.approx(np.array(expected))


def test_records_up_to_every_edge() -> None:
    """In one pass: a value at an edge is below it, at both bounds and beyond them, too.

    Users who count for some of their records have all of them looked at.
    """
    rng = np.random.default_rng(4)
    bits = 11
    thresholds = [77, 300, 301]
    ticks = np.concatenate([rng.integers(0, 2**bits + 1, 400), rng.choice([76, 77, 78, 300], 100)])
    value = np.concatenate([ticks, [0, 1, 2, 3, 2**bits, -9, 9999]]).astype(float)
    who = rng.integers(0, 12, len(value))
    at = rng.integers(0, 3, len(value))
    table = pa.table({"who": who, "at": at, "value": value})
    given: Any = {"bounds": (0, 2**bits), "tick_bits": bits, "counts": "public"}
    records = shoal.Records(table, user="who", value="value", by="at", **given)
    place = Place(list(map(float, thresholds)), thresholds)
    edges = [2, 76, *thresholds, 1024, 2046]
    ends = place.ends(edges, bits)
    counts, tally = records.tally(place)
    found = tally.up_to(ends)
    expected = []
    for user in range(12):
        for cell in range(3):
            mine = value[(who == user) & (at == cell)]
            expected.append([len(mine), *((mine <= edge).sum() for edge in edges)])
    # The order of users is that of their counts.
    assert sorted(np.column_stack([counts.count, found]).tolist()) == sorted(expected)
    _, some = records.at_most(2).tally(place)
    assert np.array_equal(some.up_to(ends), found)


def test_edges_lie_at_ranks_and_thresholds() -> None:
    """Records in one narrow place are found by the second round; thresholds are edges as well."""
    first = [0] * 32
    first[10] = 1000
    bits = BITS_OF_TICKS
    found = common([first], bits)
    assert found[10 * 32] == 0
    assert found[11 * 32] == 1
    second = [0] * 32
    second[8:24] = [60] * 16
    edges = edges_of([first, second], [123], 8, bits)
    assert 123 in edges
    width = 1 << bits
    inside = [each for each in edges if 10 * width // 32 <= each <= 11 * width // 32]
    assert len(inside) >= 5
    assert edges_of([], [5, 9], 1, bits) == [5, 9]
    assert len(edges_of([], [], 6, bits)) == 5


def test_a_common_value_stays_at_its_place() -> None:
    """Half of the records are at a value that ends a first bin; a second bin reaches beyond it."""
    first = [0] * 32
    first[3] = first[15] = 500
    middle = 1 << BITS_OF_TICKS >> 1
    edges = edges_of_round([first], BITS_OF_TICKS)
    at = bisect(edges, middle - 1)
    begin, end = edges[at - 1], edges[at]
    assert begin < middle < end - (middle - begin)
    second = [0] * 32
    second[2] = second[at] = 500
    found = common([first, second], BITS_OF_TICKS)
    assert found[2 ** (FINE - 1)] > 0.8


@pytest.mark.parametrize(("votes", "kept"), [(30, False), (100_000, True)])
def test_noise_of_rounds_is_not_taken_for_a_shape(votes: int, kept: bool) -> None:
    """Every other bin of a round is empty: by chance if votes are few, but not if they are many."""
    rounds = [[votes << BITS >> 5] * 32, [votes << BITS >> 4, 0] * 16]
    edges = edges_of(rounds, [], 6, BITS_OF_TICKS)
    found = common(rounds, BITS_OF_TICKS)
    nothing = AllCells(np.zeros(5), np.full(5, np.inf))
    less_noisy = smooth(rounds, edges, nothing, BITS_OF_TICKS)
    first, *_, last = at = [each >> (BITS_OF_TICKS - FINE) for each in edges[1:-1]]
    assert less_noisy[at] == pytest.approx(found[at])
    steps = np.diff(less_noisy[first : last + 1])
    assert (steps.min() < 1e-6) == kept
    assert less_noisy[:first] == pytest.approx(found[:first], rel=1e-7)
    assert less_noisy[last + 1 :] == pytest.approx(found[last + 1 :], rel=1e-7)


def _errors_of_medians(
    at: np.ndarray, value: np.ndarray, bounds: tuple[float, float], epsilon: float
) -> np.ndarray:
    """The mean errors in four releases, and those with the common distribution as it was found."""
    table = pa.table({"who": np.arange(len(at)), "at": at, "value": value})
    records = shoal.Records(
        table, user="who", value="value", by="at", bounds=bounds, counts="public"
    )
    plan: Any = shoal.plan(records, epsilon=epsilon, statistics=["median"])
    order = [int(each) for each in records.counts().labels]
    true = np.array([np.quantile(value[at == cell], 0.5, method="lower") for cell in order])
    errors = []
    for seed in range(4):
        release = plan.release(records, noise=Simulated(seed))
        bins = release.numbers.bins
        noisy = replace(bins, found=common(release.drawn.bins.rounds, records.lattice.bits))
        medians = np.array([each.quantile(0.5, 0.95)[0] for each in (bins, noisy)])
        errors.append(np.abs(medians - true).mean(axis=1))
    return np.mean(errors, axis=0)


def test_medians_of_whole_scores_err_less_where_bins_are_smooth() -> None:
    """Beside the common distribution as it was found, in 15 cells of 100 users, four releases."""
    rng = np.random.default_rng(8)
    at = np.arange(1500) % 15
    middle = rng.normal(24, 2.4, 15)
    value = np.clip(np.rint(middle[at] + rng.normal(0, 6, 1500)), 0, 40)
    smooth_error, noisy_error = _errors_of_medians(at, value, (0, 40), 1)
    assert smooth_error < 0.95 * noisy_error


@pytest.mark.parametrize(("part", "way", "expected"), [
    (8, -1.0, 0.0), (8, 2.0, 1.0), (8, 0.3, 0.3), (2, -1.0, 0.5),
])  # fmt: skip
def test_cells_say_on_which_side_of_an_edge_a_value_of_many_records_lies(
    part: int, way: float, expected: float
) -> None:
    """As far as a bin of two places, with so many of 32 parts of the records, leaves it open."""
    first = [20_000 if at == 16 else 400 for at in range(32)]
    inner = edges_of_round([first], BITS_OF_TICKS)
    ends = [0, *(each >> (BITS_OF_TICKS - FINE) for each in inner), 2**FINE]
    held = next(at for at in range(10, 32) if ends[at + 1] == ends[at] + 2)
    second = [31 * part if at == held else 32 - part for at in range(32)]
    rounds = [[each << BITS for each in row] for row in (first, second)]
    found = common(rounds, BITS_OF_TICKS)
    start, edge, end = range(ends[held], ends[held] + 3)
    below = found[start] + way * (found[end] - found[start])
    cells = AllCells(np.array([below]), np.array([np.inf]))
    moved = smooth(rounds, [edge << (BITS_OF_TICKS - FINE)], cells, BITS_OF_TICKS)
    share = (moved[edge] - found[start]) / (found[end] - found[start])
    assert share == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("times", [0.5, 3.0, np.inf])
@pytest.mark.parametrize(("votes", "part"), [(200, 8.0), (200, 16.0), (10**8, 16.5), (10**8, 16.1)])
def test_rounds_and_cells_count_by_their_variances(votes: int, part: float, times: float) -> None:
    """Below so many of 32 even bins rounds have noise, or their records may be at one place."""
    rounds = [[votes * 2**BITS // 32] * 32]
    place = round(part * 32)
    bins, inside = divmod(place / 32, 1)
    noise = sum_zero.variance(32, int(bins)) / votes**2
    variance = noise + inside * (1 - inside) / 32**2
    cells = AllCells(np.array([part / 32 + 0.1]), np.array([times * variance]))
    found = smooth(rounds, [place << (BITS_OF_TICKS - FINE)], cells, BITS_OF_TICKS)
    moved = found - np.arange(2**FINE + 1) / 2**FINE
    expected = (cells.below[0] - place / 2**FINE) / (1 + times)
    assert moved[place] == pytest.approx(expected, rel=5e-3, abs=1e-6)
    assert moved[[0, -1]] == pytest.approx([0, 0])


def test_the_common_function_rises_where_that_of_cells_falls() -> None:
    """Also where noise takes it beyond 0 and 1, and in a bin that rounds found empty."""
    rounds = [[0] * 16 + [2**BITS * 50] * 16]
    edges = [each << (BITS_OF_TICKS - FINE) for each in (100, 200, 800, 900)]
    cells = AllCells(np.array([-0.1, 0.3, 0.2, 1.1]), np.full(4, 1e-9))
    found = smooth(rounds, edges, cells, BITS_OF_TICKS)
    assert found[[0, 100, 150, 200, 800, 900, 1024]] == pytest.approx(
        [0, 0, 0.15, 0.3, 0.3, 1, 1], abs=1e-3
    )
    assert np.diff(found).min() >= 0


def test_cells_together_have_the_noise_of_all_of_them() -> None:
    """Ten thousand draws of three cells of unlike sizes, below both edges."""
    totals = [2**BITS * each for each in (10, 20, 70)]
    rows = [[each, 0, 0] for each in totals] * 10_000
    drawn = np.array(Simulated(3).add_sum_zero(rows, BITS, 0), dtype=float).reshape(-1, 3, 3)
    found = [AllCells.of_rows(each) for each in drawn]
    below = np.array([each.below for each in found])
    assert below.mean(axis=0) == pytest.approx([1, 1], abs=2e-3)
    assert below.var(axis=0) == pytest.approx(found[0].variance, rel=0.05)


def test_medians_of_ratings_err_less_where_cells_say_where_ratings_lie() -> None:
    """Beside the common distribution as it was found, in 20 cells of 50 users, four releases."""
    rng = np.random.default_rng(1)
    at = np.arange(1000) % 20
    middle = rng.normal(3.6, 0.6, 20)
    value = np.clip(np.rint(middle[at] + rng.normal(0, 1.4, 1000)), 1, 5)
    own_error, noisy_error = _errors_of_medians(at, value, (0, 7), 2)
    assert own_error < 0.7 * noisy_error


@pytest.mark.parametrize(("noise", "cells"), [(1e-5, 30), (0.05, 3000)])
def test_a_density_bends_in_a_bin_as_in_its_neighbours_unless_by_noise(
    noise: float, cells: int
) -> None:
    """Densities 1 + a (2x - 1) with little noise; even ones of many cells with much noise."""
    rng = np.random.default_rng(2)
    slope = np.linspace(-0.8, 0.8, cells)
    slope *= noise < 0.01
    edges = np.linspace(0, 1, 9)
    exact = edges + slope[:, None] * (edges**2 - edges)
    drawn = rng.laplace(0, 2 * noise, (cells, 8))
    plain = np.diff(exact, axis=1) + drawn - drawn.mean(axis=1, keepdims=True)
    even = np.linspace(0, 1, 2**FINE + 1)
    bins = Bins(plain, np.full(cells, noise), np.zeros(cells), edges, 1e-6, even)
    found, _, _ = bins.quantile(0.45, 0.95)
    share = found + slope * (found**2 - found)
    so_far = np.append(np.zeros((cells, 1)), np.cumsum(bins.value, axis=1), axis=1)
    straight = np.array([np.interp(0.45, row, edges) for row in so_far])
    if noise < 0.01:
        assert share == pytest.approx(np.full(cells, 0.45), abs=5e-4)
        assert np.abs(straight - found).max() > 15e-4
    else:
        assert found == pytest.approx(straight, abs=1e-5)


@pytest.mark.parametrize(("noise", "part"), [(3e-4, 0.5), (1e-3, 0.8)])
def test_a_density_bends_beside_a_bin_that_holds_next_to_nothing(noise: float, part: float) -> None:
    """The slope to a first bin of 0.2% is mostly noise, so that of the other side is taken."""
    rng = np.random.default_rng(5)
    slope = np.linspace(-0.8, 0.8, 1000)
    edges = np.array([0, 0.002, 0.2, 0.4, 0.6, 0.8, 1.0])
    exact = edges + slope[:, None] * (edges**2 - edges)
    drawn = rng.laplace(0, 2 * noise, (1000, 6))
    plain = np.diff(exact, axis=1) + drawn - drawn.mean(axis=1, keepdims=True)
    even = np.linspace(0, 1, 2**FINE + 1)
    bins = Bins(plain, np.full(1000, noise), np.zeros(1000), edges, 1e-6, even)
    found, _, _ = bins.quantile(0.11, 0.95)
    so_far = np.append(np.zeros((1000, 1)), np.cumsum(bins.value, axis=1), axis=1)
    straight = np.array([np.interp(0.11, row, edges) for row in so_far])
    errors = [np.abs(each + slope * (each**2 - each) - 0.11).mean() for each in (found, straight)]
    assert errors[0] < part * errors[1]


def test_densities_do_not_fall_below_half_of_their_mean_in_a_bin() -> None:
    """So a quantile is at most an eighth of a bin from where it is with even densities."""
    rng = np.random.default_rng(4)
    edges = np.linspace(0, 1, 9)
    plain = rng.dirichlet(np.full(8, 0.5), 30)
    even = np.linspace(0, 1, 2**FINE + 1)
    bins = Bins(plain, np.full(30, 1e-6), np.zeros(30), edges, 1e-6, even)
    so_far = np.append(np.zeros((30, 1)), np.cumsum(bins.value, axis=1), axis=1)
    for level in np.linspace(0.05, 0.95, 19):
        found, _, _ = bins.quantile(level, 0.95)
        straight = np.array([np.interp(level, row, edges) for row in so_far])
        assert np.abs(found - straight).max() < 0.126 / 8


def test_cells_that_are_all_noise_show_the_common_number() -> None:
    """Noise of several times a cell says nothing of it, so that values are those of all cells."""
    rng = np.random.default_rng(6)
    noise = np.full(40, 3.0)
    drawn = rng.laplace(0, 6, (40, 6))
    plain = drawn - drawn.mean(axis=1, keepdims=True) + 1 / 6
    bins = Bins(plain, noise, np.zeros(40), np.arange(7.0), 1e-6, np.linspace(0, 1, 2**FINE + 1))
    assert np.abs(bins.value - 1 / 6).max() < 0.1


def test_more_is_spent_on_what_cells_have_in_common_where_they_are_noisy() -> None:
    """A hundred users with a few records each in all of 60 cells, beside the same in two."""
    parts = []
    for cells in (60, 2):
        user = np.repeat(np.arange(100), cells)
        cell = np.tile(np.arange(cells), 100)
        counts = Counts.from_counts(user, cell, np.full(len(user), 3))
        units = plan_units(counts, np.arange(cells), 2.0, finds=True, certified=False)
        parts.append(units.vote * units.rounds / 2**BITS / 2)
    assert parts == pytest.approx([0.3, 0.2], rel=1e-3)


def test_nearest_distributions() -> None:
    """They are on the simplex, and no other tried one is nearer."""
    rng = np.random.default_rng(1)
    rows = rng.normal(0.2, 0.5, (20, 5))
    found = on_simplex(rows)
    assert found.min() >= 0
    assert found.sum(axis=1) == pytest.approx(np.ones(20))
    for other in rng.dirichlet(np.ones(5), 200):
        nearer = ((rows - other) ** 2).sum(axis=1) < ((rows - found) ** 2).sum(axis=1) - 1e-12
        assert not nearer.any()


@pytest.mark.parametrize("kind", ["one value", "two values", "one bin"])
@pytest.mark.parametrize("certified", [True, False])
def test_intervals_cover_whatever_lies_inside_a_bin(kind: str, certified: bool) -> None:
    """Medians and shares of 300 cells of alike users, at 95% less three standard errors."""
    rng = np.random.default_rng(3)
    cells, users = 300, 40
    who = np.arange(cells * users)
    at = who % cells
    value = {
        "one value": np.full(len(who), 37.0),
        "two values": rng.choice([20.0, 80.0], len(who), p=[0.45, 0.55]),
        "one bin": rng.uniform(49, 51, len(who)),
    }[kind]
    table = pa.table({"who": who, "at": at, "value": value})
    records = shoal.Records(
        table, user="who", value="value", by="at", bounds=(0, 100), counts="public"
    )
    counts = records.counts()
    units = plan_units(counts, np.arange(cells), 1.0, finds=True, certified=certified)

    def read(measure: Any) -> Any:
        return records.tally(measure)[1]

    drawn = draw_bins(units, Place([], []), BITS_OF_TICKS, read, Simulated(5))
    edges = np.array([0, *drawn.edges, 1 << BITS_OF_TICKS]) * 100 / (1 << BITS_OF_TICKS)
    plain = np.array(drawn.rows) / units.total[:, None]
    found = common(drawn.rounds, BITS_OF_TICKS)
    bins = Bins(plain, units.noise, units.moved, edges, 0.5**BITS_OF_TICKS * 50, found)
    order = np.argsort([int(each) for each in counts.labels])
    true = np.array([np.quantile(value[at == cell], 0.5, method="lower") for cell in range(cells)])
    _, low, high = bins.quantile(0.5, 0.95)
    covered = (low[order] <= true) & (true <= high[order])
    assert covered.mean() > 0.95 - 3 * math.sqrt(0.05 * 0.95 / cells)
    for cut in range(1, bins.bins):
        share = np.array([(value[at == cell] <= edges[cut]).mean() for cell in range(cells)])
        _, low, high = bins.share(0, cut, 0.95)
        covered = (low[order] <= share + 1e-9) & (share - 1e-9 <= high[order])
        assert covered.mean() > 0.95 - 3 * math.sqrt(0.05 * 0.95 / cells)


def test_a_quantile_at_a_threshold_is_inside_its_interval() -> None:
    """Also where the threshold is between two ticks, and rounded downwards."""
    table = pa.table({"who": np.arange(3000), "at": np.arange(3000) % 3, "value": [13.0] * 3000})
    records = shoal.Records(
        table, user="who", value="value", by="at", bounds=(0, 65), counts="public"
    )
    plan = shoal.plan(records, epsilon=20, statistics=["median", "share_below(13)"])
    found = plan.release(records, noise=Simulated(1)).to_pandas()
    median = found[found["statistic"] == "median"]
    assert (median["low"] <= 13).all()
    assert ((median["high"] >= 13) & (median["high"] < 14)).all()


def test_intervals_of_quantiles_allow_for_all_weight_that_caps_moved() -> None:
    """A tenth of each cell lies in the first bins in place of the last ones, without noise."""
    true = np.full((3, 20), 0.05)
    plain = true.copy()
    plain[:, :2] += 0.05
    plain[:, -2:] -= 0.05
    edges = np.arange(21.0)
    moved = np.full(3, 0.1)
    bins = Bins(plain, np.full(3, 1e-9), moved, edges, 1e-6, np.linspace(0, 1, 2**10 + 1))
    for level in (0.05, 0.33, 0.5, 0.88, 0.9):
        _, low, high = bins.quantile(level, 0.95)
        assert (low <= 20 * level).all()
        assert (20 * level <= high).all()


def test_a_single_cell_is_reliable() -> None:
    """There are no others that it could be like."""
    table = pa.table({"who": np.arange(900), "pay": np.arange(900) % 100})
    records = shoal.Records(table, user="who", value="pay", bounds=(0, 100), counts="public")
    plan: Any = shoal.plan(records, epsilon=1, statistics=["median"])
    release = plan.release(records, noise=Simulated(1))
    assert release.to_pandas()["status"].tolist() == ["reliable"]


def test_all_of_a_histogram_is_read_from_one_vector() -> None:
    """Shares of a histogram add up to 1, quantiles rise, and more of both are free."""
    rng = np.random.default_rng(8)
    table = pa.table(
        {
            "who": np.arange(6000),
            "at": np.arange(6000) % 3,
            "pay": rng.gamma(2 + np.arange(6000) % 3, 10),
        }
    )
    records = shoal.Records(
        table, user="who", value="pay", by="at", bounds=(0, 200), counts="public"
    )
    asked = ["histogram(2e1, 40.0)", "cdf", "quantile(0.25)", "median", "quantile(0.9)"]
    plan = shoal.plan(records, epsilon=2, statistics=asked)
    assert isinstance(plan, Plan)
    assert plan.request.statistics[0] == "histogram(20, 40)"
    release = plan.release(records, noise=Simulated(2))
    found = release.to_pandas()
    parts = ["share_below(20)", "share_between(20, 40)", "share_above(40)"]
    for cell in range(3):
        of_cell = found[found["at"] == cell].set_index("statistic")["value"]
        assert sum(of_cell[part] for part in parts) == pytest.approx(1)
        assert of_cell["quantile(0.25)"] < of_cell["median"] < of_cell["quantile(0.9)"]
        true = np.quantile(table["pay"].to_numpy()[cell::3], 0.5)
        assert of_cell["median"] == pytest.approx(true, rel=0.1)
    again = release.quantiles([0.5]).to_pandas()["value"].to_numpy()
    assert again.tolist() == found[found["statistic"] == "median"]["value"].tolist()
    verdict = shoal.verify(release.record, replan=True)
    wrong = [each.claim for each in verdict.checks if not each.holds]
    assert wrong == ["noise of the operating system"]
    assert plan.units is not None
    others = replace(plan.units, units=plan.units.units // 2, bins=plan.units.bins + 1)
    assert len([*replanned(replace(plan, units=others))]) == 2
    histogram = release.histogram().to_pandas()
    assert histogram.groupby("at")["share"].sum().to_numpy() == pytest.approx(np.ones(3))
    assert len(histogram) == 3 * len(release.bins())


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (["histogram(8)"], "8 of histogram.* is not inside the bounds"),
        (["histogram(60, 40)"], "give rising numbers"),
        (["quantile(90)"], "between 0 and 1"),
        (["max"], r"ask for quantile\(0.99\)"),
        (["median", "median"], "given twice"),
        (["share_above(50)", "share_above(50.00001)"], "nearer to each other than a tick"),
    ],
)
def test_impossible_statistics_are_refused(statistics: list[str], message: str) -> None:
    """With what to ask for instead."""
    counts = made_counts.crowded()
    with pytest.raises(InputError, match=message):
        shoal.plan(counts, bounds=(20, 80), epsilon=1, statistics=statistics)
