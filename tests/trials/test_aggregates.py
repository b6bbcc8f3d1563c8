"""Noisy Horvitz-Thompson and noisy histogram: sensitivity, loss, bias, variance, coverage."""

import itertools
import math
import os
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal import documents
from shoal.errors import DataError, DocumentError, InputError
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.trials.aggregate_lattice import fit_lattice, popoviciu, step_variance, ticks
from shoal.trials.aggregates import Contrast
from shoal.trials.histogram import NoisyHistogram
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson, shared
from tests.support.loop import loop_over

pytestmark = pytest.mark.oracle

Mechanism = NoisyHorvitzThompson | NoisyHistogram
FULL = bool(os.environ.get("SHOAL_FULL"))
# Two-sided normal quantile of a false alarm rate of 1e-9.
SIGMAS = 6.11
BOTH_SIGNS = (-1.0, 0.25, 2.0)
DESIGNS = [
    [[1, 1]],
    [[1, 4]],
    [[3, 2]],
    [[4, 4]],
    [[2, 3], [4, 2]],
    [[1, 1], [3, 2]],
    [[2, 2, 2]],
    [[4, 2, 2]],
    [[4, 1, 3]],
    [[3, 2, 2]],
    [[2, 1, 1, 1]],
]


class Silent(Simulated):
    """No noise: shows the whole numbers that noise is added to."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The numbers themselves."""
        assert lattice_bits
        assert not draw
        return list(steps)


def exact(plan: Mechanism, counts: NDArray[np.int64]) -> list[int]:
    """What the noise is added to."""
    return plan.draw(counts, Silent(0))


def plans(sizes: list[list[int]], levels: tuple[float, ...]) -> Iterator[Mechanism]:
    """Both mechanisms, the first with and without a spread."""
    design = np.array(sizes)
    for share in (None, Fraction(0), Fraction(2, 5)):
        yield NoisyHorvitzThompson.plan(design, levels, Fraction(4, 5), share)
    yield NoisyHistogram.plan(design, levels, Fraction(4, 5))


def tables(n: int, levels: int) -> list[tuple[int, ...]]:
    """All counts of n outcomes: every label vector up to the order of units."""
    return [c for c in itertools.product(range(n + 1), repeat=levels) if sum(c) == n]


def furthest(plan: Mechanism, levels: int) -> int:
    """Most steps that one label moves all numbers by, over all data sets and neighbours.

    One label moves the numbers of its own cluster and the sums of groups' rounded terms, so
    clusters are walked through one by one, the others at rest.
    """
    most, shape = 0, plan.sizes.shape
    rest = np.zeros((*shape, levels), dtype=np.int64)
    rest[:, :, 0] = plan.sizes
    for cluster in range(shape[0]):
        groups = [tables(int(n), levels) for n in plan.sizes[cluster]]
        found = {}
        for counts in itertools.product(*groups):
            table = rest.copy()
            table[cluster] = counts
            found[counts] = np.array(exact(plan, table), dtype=object)
        for counts, numbers in found.items():
            for arm, low, high in itertools.product(range(shape[1]), *[range(levels)] * 2):
                if low == high or not counts[arm][low]:
                    continue
                moved = list(counts[arm])
                moved[low] -= 1
                moved[high] += 1
                other = (*counts[:arm], tuple(moved), *counts[arm + 1 :])
                most = max(most, int(np.abs(found[other] - numbers).sum()))
    return most


@loop_over("sizes", DESIGNS)
@loop_over("levels", [(0.0, 1.0), (-3.0, 2.0), BOTH_SIGNS])
def test_no_label_moves_more_than_the_loss(sizes: list[list[int]], levels: tuple[float]) -> None:
    """Every neighbour, all numbers together; the loss is sharp.

    Rounding to steps may leave one step for each number.
    """
    if len(levels) > 2 and math.prod(map(max, sizes)) > 24:
        sizes = [[min(n, 2) for n in row] for row in sizes]
    for plan in plans(sizes, levels):
        claimed = plan.exact_epsilon * 2**plan.lattice_bits
        found = furthest(plan, len(levels))
        assert claimed.denominator == 1
        assert found <= claimed <= Fraction(4, 5) * 2**plan.lattice_bits
        assert found >= claimed - 2 * plan.sizes.shape[1]


@pytest.mark.parametrize("row", [[1, 1, 2], [1, 3, 3], [2, 1, 1], [1, 2]])
def test_an_arm_of_one_unit_costs_what_was_asked(row: list[int]) -> None:
    """Roundings of a shared control count where weight goes to a lone unit."""
    plan = NoisyHorvitzThompson.plan(np.array([row]), (0.0, 1.0), Fraction(1), Fraction(1, 4))
    assert 1 - Fraction(4, 2**plan.lattice_bits) <= plan.exact_epsilon <= 1


def test_the_printed_sensitivities_are_too_small() -> None:
    """Errata 14 and 15: with K' = 5 two labels lose 11/6, and in a histogram 2, times epsilon."""
    levels, sizes = tuple(float(y) for y in range(-5, 7)), np.array([[4, 6]])
    low, high = np.zeros((2, 1, 2, 12), dtype=np.int64)
    low[0, :, 0] = high[0, :, 0] = sizes[0]
    high[0, 0, [0, -1]] = 3, 1
    plan = NoisyHorvitzThompson.plan(sizes, levels, Fraction(1), Fraction(0))
    step = plan.width / (plan.weight * 4)
    moved = (exact(plan, low)[0] - exact(plan, high)[0]) * step
    assert moved == pytest.approx(11 / 4)
    assert moved / (max(map(abs, levels)) / 4) == pytest.approx(11 / 6)
    assert moved / (step * 2**plan.lattice_bits) == pytest.approx(1)
    bins = NoisyHistogram.plan(sizes, levels, Fraction(1))
    apart = np.abs(bins.shares(exact(bins, low)) - bins.shares(exact(bins, high))).sum()
    assert apart == pytest.approx(2 / 4)
    assert apart / (2**bins.lattice_bits / (bins.weight * 4)) == pytest.approx(1)


@settings(max_examples=1000 if FULL else 120, deadline=None)
@given(st.data())
def test_the_loss_is_that_of_the_released_numbers(data: st.DataObject) -> None:
    """The ratio of the discrete Laplace probabilities of released integers.

    log P[x | s]/P[x | s'] is the sum of (|x - s'| - |x - s|)/2^j, exactly; it is largest at x = s.
    The worst labels: all on the lowest level, one moves to the highest.
    """
    arms = data.draw(st.integers(2, 4))
    row = st.lists(st.integers(1, 3000), min_size=arms, max_size=arms)
    sizes = np.array(data.draw(st.lists(row, min_size=1, max_size=4)))
    epsilon = data.draw(st.fractions(Fraction(1, 1000), 20, max_denominator=10**6))
    share = data.draw(st.none() | st.fractions(0, Fraction(9, 10), max_denominator=100))
    levels = data.draw(st.sampled_from([(0.0, 1.0), BOTH_SIGNS, (-7.0, -6.5, -1.0, 3.0)]))
    kinds: tuple[Mechanism, ...] = (
        NoisyHorvitzThompson.plan(sizes, levels, epsilon, share),
        NoisyHistogram.plan(sizes, levels, epsilon),
    )
    base = np.zeros((*sizes.shape, len(levels)), dtype=np.int64)
    base[:, :, 0] = sizes
    for plan in kinds:
        most = Fraction(0)
        here = exact(plan, base)
        for cluster, arm in np.ndindex(sizes.shape):
            other = base.copy()
            other[cluster, arm, [0, -1]] += -1, 1
            there = exact(plan, other)
            for x in (here, there, [7 + (s + t) // 2 for s, t in zip(here, there, strict=True)]):
                ratio = sum(abs(a - t) - abs(a - s) for a, s, t in zip(x, here, there, strict=True))
                most = max(most, Fraction(abs(ratio), 2**plan.lattice_bits))
        assert most <= plan.exact_epsilon <= epsilon
        # One step of rounding for each number of a cluster and for the spread.
        assert most >= plan.exact_epsilon - Fraction(2 * arms, 2**plan.lattice_bits)
        assert plan.exact_epsilon >= epsilon / 2
        assert min(here) >= 0


def test_a_smaller_noise_would_break_the_claim() -> None:
    """The check above rejects a lattice of half the noise: its loss is twice the epsilon."""
    plan = NoisyHistogram.plan(np.array([[5, 5]]), (0.0, 1.0), Fraction(1))
    wrong = NoisyHistogram(plan.sizes, plan.levels, 2 * plan.weight, plan.lattice_bits)
    assert furthest(wrong, 2) > 2**plan.lattice_bits
    good = NoisyHorvitzThompson.plan(np.array([[2, 3]]), (0.0, 1.0), Fraction(1))
    bad = NoisyHorvitzThompson(
        good.sizes, good.levels, 2 * good.weight, good.spread_weight, good.lattice_bits
    )
    assert furthest(bad, 2) > 2**good.lattice_bits


def repeated(counts: list[list[int]], times: int) -> NDArray[np.int64]:
    """One cluster many times: every copy gets noise of its own."""
    return np.tile(np.array(counts, dtype=np.int64), (times, 1, 1))


RUNS = 400_000 if FULL else 40_000
COUNTS = {
    "two arms": [[3, 4, 1], [1, 4, 7]],
    "three arms": [[3, 4, 1], [1, 4, 7], [2, 2, 2]],
    "large control": [[20, 30, 20], [1, 4, 7], [2, 2, 2]],
    "one unit": [[0, 1, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("kind", [NoisyHorvitzThompson, NoisyHistogram])
def test_differences_are_unbiased_with_the_stated_variance(
    kind: type[Mechanism], counts: list[list[int]]
) -> None:
    """Mean and variance over many draws; a variance of 10 % more or less is rejected.

    False alarms below 1e-9; a Laplace variable's squared deviation has 5 times its variance's
    square as variance.
    """
    table = repeated(counts, RUNS)
    sizes = table.sum(axis=2)
    if kind is NoisyHistogram:
        plan: Mechanism = NoisyHistogram.plan(sizes, BOTH_SIGNS, Fraction(1))
    else:
        plan = NoisyHorvitzThompson.plan(sizes, BOTH_SIGNS, Fraction(1), Fraction(0))
    means = np.array(counts) @ np.array(BOTH_SIGNS) / np.array(counts).sum(axis=1)
    for found in plan.effects(plan.draw(table, Simulated(11))):
        variance = plan.noise_variance[0, found.arm - 1]
        error = found.difference - (means[found.arm] - means[0])
        assert abs(error.mean()) <= SIGMAS * math.sqrt(variance / RUNS)
        # Half a tick a level is far below that.
        slack = SIGMAS * math.sqrt(5 / RUNS)
        assert abs((error**2).mean() / variance - 1) <= slack
        assert abs((error**2).mean() / (1.21 * variance) - 1) > min(slack, 0.1)
        assert abs((error**2).mean() / (0.81 * variance) - 1) > min(slack, 0.1)
        assert found.noise_variance[0] == variance


def test_noise_has_the_corrected_variances_of_the_paper() -> None:
    """Propositions A.2 and A.3 with errata 14 and 15, within 2 %; centred levels need less."""
    sizes, epsilon = np.array([[200, 300], [100, 50]]), 0.7
    levels = tuple(float(y) for y in range(-5, 7))
    weight = sizes.sum(axis=1) / sizes.sum()
    plan = NoisyHorvitzThompson.plan(sizes, levels, Fraction(7, 10), Fraction(0))
    found = plan.effects(exact(plan, counts_of(sizes, levels)))[0]
    paper = 2 * float(((weight * 11 / sizes.min(axis=1) / epsilon) ** 2).sum())
    assert found.noise == pytest.approx(paper, rel=0.02)
    bins = NoisyHistogram.plan(sizes, levels, Fraction(7, 10))
    noise = bins.effects(exact(bins, counts_of(sizes, levels)))[0].noise
    scale = 2 * (weight[:, None] * 2 / (sizes * epsilon)) ** 2
    paper = float(scale.sum() * (np.array(levels) ** 2).sum())
    least = float(scale.sum() * np.var(levels) * len(levels))
    assert noise == pytest.approx(least, rel=0.02)
    assert noise < 0.99 * paper
    positive = NoisyHistogram.plan(sizes, tuple(range(11)), Fraction(7, 10))
    assert positive.noise_variance.sum() == pytest.approx(
        2 * (2 / 0.7) ** 2 * 110 * (1 / sizes.astype(float) ** 2).sum(), rel=0.02
    )


def counts_of(sizes: NDArray[np.int64], levels: tuple[float, ...]) -> NDArray[np.int64]:
    """Some outcomes."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(len(levels)), sizes.shape)
    return np.asarray(rng.multinomial(sizes, shares), dtype=np.int64)


@pytest.mark.parametrize("sizes", [[[5, 9], [7, 3]], [[5, 9, 4], [30, 12, 6]]], ids=["2", "3"])
def test_the_spread_is_neymans_variance(sizes: list[list[int]]) -> None:
    """Without noise both mechanisms give sum (n_c/n)^2 s2/n of NumPy's sample variances."""
    design, levels = np.array(sizes), (-1.0, 0.0, 1.0, 3.0)
    counts = counts_of(design, levels)
    weight = design.sum(axis=1) / design.sum()
    s2 = np.array([[np.repeat(levels, group).var(ddof=1) for group in row] for row in counts])
    part = weight[:, None] ** 2 * s2 / design
    plan = NoisyHorvitzThompson.plan(design, levels, Fraction(1), Fraction(1, 4))
    for found in plan.effects(exact(plan, counts)):
        assert found.sampling == pytest.approx(part[:, [0, found.arm]].sum(), rel=1e-4)
    bins = NoisyHistogram.plan(design, levels, Fraction(10**6))
    for found in bins.effects(bins.draw(counts, Simulated(2))):
        assert found.sampling == pytest.approx(part[:, [0, found.arm]].sum(), rel=1e-3)
        assert found.value == pytest.approx(
            weight @ ((counts[:, found.arm] @ levels) / design[:, found.arm])
            - weight @ ((counts[:, 0] @ levels) / design[:, 0]),
            abs=1e-4,
        )


def test_the_spread_is_unbiased_before_it_is_clamped() -> None:
    """Both mechanisms over many draws, mean and stated variance; false alarms below 1e-9."""
    runs = 20_000 if FULL else 4_000
    design, levels = np.array([[40, 50], [30, 20]]), (0.0, 1.0, 2.0)
    counts = counts_of(design, levels)
    plan = NoisyHorvitzThompson.plan(design, levels, Fraction(1), Fraction(1, 2))
    true = plan.effects(exact(plan, counts))[0].sampling
    number = exact(plan, counts)[-1]
    drawn = Simulated(4).add_laplace([number] * runs, plan.lattice_bits)
    read = [plan.spread.read([z], 1, plan.width) for z in drawn]
    known = np.array([found.known for found in read], dtype=np.float64)
    noise = read[0].noise
    assert abs(known.mean() - true) <= SIGMAS * math.sqrt(noise / runs)
    assert abs(known.var() / noise - 1) <= SIGMAS * math.sqrt(5 / runs)
    assert abs(1.1**2 * known.var() / noise - 1) > 0.05


def test_noisy_sample_variances_are_unbiased() -> None:
    """Of a histogram, group by group: the noise of the squared mean is taken off; at 1e-9."""
    table = repeated([[9, 5, 6], [3, 2, 1]], RUNS)
    plan = NoisyHistogram.plan(table.sum(axis=2), BOTH_SIGNS, Fraction(2))
    mean, s2, loose = plan._moments(plan.draw(table, Simulated(6)))
    for arm in range(2):
        group = np.repeat(BOTH_SIGNS, table[0, arm])
        slack = SIGMAS / math.sqrt(RUNS)
        assert abs(s2[:, arm].mean() - group.var(ddof=1)) <= slack * s2[:, arm].std()
        # Left in, the noise of the squared mean would be seen.
        off = plan.mean_variance[0, arm] * len(group) / (len(group) - 1)
        assert abs(s2[:, arm].mean() - off - group.var(ddof=1)) > slack * s2[:, arm].std()
        true = group.mean() - np.mean(BOTH_SIGNS)
        assert mean[:, arm].mean() == pytest.approx(true, abs=slack * mean.std())
    # At the true mean the stated variance is that of the draws.
    true = plan._moments(exact(plan, table))[2][0]
    assert s2.var(axis=0) == pytest.approx(true, rel=SIGMAS * math.sqrt(30 / RUNS))
    assert (loose.mean(axis=0) >= 0.99 * true).all()


def mixture(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Outcomes without treatment (docs/explanation/studies-trials.md#the-gaussian-mixture)."""
    found = []
    for n in sizes:
        y = math.sqrt(4.5) * rng.normal() + math.sqrt(0.5) * rng.normal(size=n)
        level = np.clip(np.round(y / (2 * math.sqrt(5) / 5)), -5, 5).astype(np.int64)
        found.append(np.bincount(level + 5, minlength=12))
    return found


def assigned(
    rng: np.random.Generator, clusters: list[NDArray[np.int64]], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Counts after complete randomisation in every cluster; the effect is one level."""
    counts = np.zeros((*sizes.shape, 12), dtype=np.int64)
    for place, (all_units, (_, treated)) in enumerate(zip(clusters, sizes, strict=True)):
        chosen = rng.multivariate_hypergeometric(all_units, treated)
        counts[place, 0] = all_units - chosen
        counts[place, 1, 1:] = chosen[:-1]
    return counts


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1)], ids=["0.2", "1"])
@pytest.mark.parametrize("kind", [NoisyHorvitzThompson, NoisyHistogram])
def test_intervals_cover_in_the_papers_setting(kind: type[Mechanism], epsilon: Fraction) -> None:
    """95 % intervals cover in 94 to 96.5 % of runs; half as long ones do not.

    False alarms below 1e-9 by the binomial distribution's normal limit.
    """
    runs, parts = (4_000, 50) if FULL else (400, 20)
    sizes = (500, 1000, 2000)
    pair = np.array([[n - n // 2, n // 2] for n in sizes])
    rng = np.random.default_rng(12)
    plan = kind.plan(pair, tuple(range(-5, 7)), epsilon)
    inside = halved = 0
    clusters: list[NDArray[np.int64]] = []
    values = []
    for run in range(runs):
        if run % (runs // parts) == 0:
            clusters = mixture(rng, sizes)
        released = plan.draw(assigned(rng, clusters, pair), Simulated(run + 1))
        found = plan.effects(released)[0]
        low, high = found.interval(0.95)
        inside += low <= 1 <= high
        halved += abs(found.value - 1) <= (high - low) / 4
        values.append(found.value)
    slack = SIGMAS * math.sqrt(0.95 * 0.05 / runs)
    assert 0.94 - slack <= inside / runs <= 0.965 + slack
    assert halved / runs < 0.94 - slack
    error = np.std(values) / math.sqrt(runs)
    assert abs(np.mean(values) - 1) <= SIGMAS * error


def test_pairs_are_pooled() -> None:
    """With one unit in every group the spread between pairs stands in; coverage at 1e-9."""
    runs, clusters = (2_000, 60) if FULL else (200, 60)
    rng = np.random.default_rng(1)
    sizes = np.ones((clusters, 2), dtype=np.int64)
    plan = NoisyHorvitzThompson.plan(sizes, (0.0, 1.0, 2.0), Fraction(3))
    assert plan.spread_weight == 0
    first = rng.integers(0, 2, (clusters, 2))
    inside = 0
    for run in range(runs):
        treated = rng.integers(0, 2, clusters)
        rows = np.arange(clusters)
        outcome = np.stack([first[rows, 1 - treated], first[rows, treated] + 1], axis=1)
        counts = (outcome[:, :, None] == np.arange(3)).astype(np.int64)
        found = plan.effects(plan.draw(counts, Simulated(run + 1)))[0]
        low, high = found.interval()
        inside += low <= 1 <= high
        assert found.sampling == found.noise == 0
    assert abs(inside / runs - 0.95) <= SIGMAS * math.sqrt(0.95 * 0.05 / runs) + 0.01


def test_one_unit_in_one_cluster_has_the_public_bound() -> None:
    """Nothing tells how its outcomes would differ: Popoviciu's bound is in the variance."""
    for sizes in ([[1, 1]], [[1, 8]]):
        design = np.array(sizes)
        most = popoviciu(design, 1.0) / design
        for plan in plans(sizes, (0.0, 1.0)):
            found = plan.effects(plan.draw(counts_of(design, (0.0, 1.0)), Simulated(1)))[0]
            assert most[0, 0] <= found.sampling <= most.sum() * (1 + 1e-12)
            assert np.isfinite(found.interval()).all()


def test_popovicius_bound_holds_and_is_reached() -> None:
    """No cluster of up to 6 outcomes on the width has a larger sample variance."""
    for n in range(2, 7):
        most = max(np.var(y, ddof=1) for y in itertools.product((0.0, 1.0, 2.0), repeat=n))
        bound = popoviciu(np.array([[1, n - 1]]), 2.0)[0]
        assert (most <= bound + 1e-12).all()
        assert n % 2 or bound[0] == pytest.approx(most)


@settings(max_examples=1000 if FULL else 150, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=5))
def test_differences_share_the_control_in_the_best_way(row: list[int]) -> None:
    """Theta by trying all; what is released never has more variance than the other way."""
    control, treated = row[0], np.array(row[1:])
    fits = [t for t in range(1, 31) if np.minimum(treated, t).sum() <= control]
    direct, factor = shared(np.array([row]))
    apart = (1 / treated**2.0 + 1 / control**2).sum()
    together = (1 / np.minimum(treated, fits[-1]) ** 2.0).sum() if fits else math.inf
    assert bool(direct[0]) == (together < apart)
    wanted = np.minimum(treated, fits[-1]) if direct[0] else treated
    assert factor[0].tolist() == [control, *wanted.tolist()]
    # Differences that share a control may cost rounding, never more than epsilon.
    plan = NoisyHorvitzThompson.plan(np.array([row]), (0.0, 1.0), Fraction(1))
    assert plan.exact_epsilon <= 1


def test_levels_lie_on_ticks_within_half_a_tick() -> None:
    """The rounding error that is stated, for uneven levels too."""
    levels = np.sort(np.random.default_rng(2).normal(size=40))
    low, width = levels[0], levels[-1] - levels[0]
    assert (np.abs(low + width * ticks(levels.tolist()) / 2**20 - levels) <= width / 2**21).all()
    assert ticks((0.0, 1.0, 2.0)).tolist() == [0, 2**19, 2**20]


@pytest.mark.parametrize("bits", [1, 3, 20, 40])
def test_the_noise_variance_is_that_of_the_discrete_law(bits: int) -> None:
    """The sum of z^2 P[z]; for fine lattices 2 t^2."""
    scale = 2.0**bits
    if bits < 4:
        z = np.arange(-5000, 5001)
        chance = np.exp(-np.abs(z) / scale)
        assert step_variance(bits) == pytest.approx((z**2 @ chance) / chance.sum())
    else:
        assert step_variance(bits) == pytest.approx(2 * scale**2)


@pytest.mark.parametrize("kind", [NoisyHorvitzThompson, NoisyHistogram])
def test_descriptions_survive_documents(kind: type[Mechanism]) -> None:
    """The same bytes, loss and reading; a damaged one is refused."""
    sizes = np.array([[30, 40, 20], [5, 6, 7]])
    plan = kind.plan(sizes, BOTH_SIGNS, Fraction(1, 3))
    text = documents.canonical_bytes(plan.to_document())
    again = kind.from_document(plan.to_document())
    assert documents.canonical_bytes(again.to_document()) == text
    assert again.exact_epsilon == plan.exact_epsilon
    released = plan.draw(counts_of(sizes, BOTH_SIGNS), OperatingSystem())
    assert [e.value for e in again.effects(released)] == [e.value for e in plan.effects(released)]
    damages: list[dict[str, object]] = [
        {"weight": 0},
        {"weight": 1.5},
        {"lattice_bits": 99},
        {"lattice_bits": True},
        {"arms": 5},
        {"arms": "x"},
        {"levels": [1, 0]},
        {"sizes": None},
    ]
    for damage in damages:
        with pytest.raises(DocumentError):
            kind.from_document(plan.to_document() | damage)
    with pytest.raises(DocumentError):
        kind.from_document({"weight": 1})


@pytest.mark.parametrize("kind", [NoisyHorvitzThompson, NoisyHistogram])
def test_unusable_input_is_refused(kind: type[Mechanism]) -> None:
    """Public facts before anything is drawn; private counts of another shape without a value."""
    good, levels = np.array([[3, 4]]), (0.0, 1.0)
    for sizes in ([[0, 1]], [[3]], [3, 4], [[1.5, 2.0]]):
        with pytest.raises(InputError, match="sizes"):
            kind.plan(np.array(sizes), levels, Fraction(1))
    for bad in ((0.0,), (1.0, 0.0), (0.0, math.inf), (0.0, math.nan)):
        with pytest.raises(InputError, match="levels"):
            kind.plan(good, bad, Fraction(1))
    for epsilon in (Fraction(0), Fraction(-1), Fraction(1, 10**20), Fraction(10**15)):
        with pytest.raises(InputError, match="epsilon"):
            kind.plan(good, levels, epsilon)
    plan = kind.plan(good, levels, Fraction(1))
    for counts in ([[[3, 0], [3, 0]]], [[[4, -1], [4, 0]]], [[[3, 0, 0], [4, 0, 0]]]):
        with pytest.raises(DataError, match="counts of shape"):
            plan.draw(np.array(counts), Simulated(1))
    with pytest.raises(InputError, match="numbers"):
        plan.effects([1, 2, 3, 4, 5, 6, 7])
    found: Contrast = plan.effects(exact(plan, counts_of(good, levels)))[0]
    with pytest.raises(InputError, match="confidence"):
        found.interval(1.0)


def test_a_share_outside_its_range_is_refused() -> None:
    """All of epsilon, or less than nothing, for the spread."""
    for share in (Fraction(1), Fraction(-1, 10), Fraction(2)):
        with pytest.raises(InputError, match="spread_share"):
            NoisyHorvitzThompson.plan(np.array([[3, 4]]), (0.0, 1.0), Fraction(1), share)


def test_numbers_fit_the_lattice_or_the_plan_is_refused() -> None:
    """The largest number of a million units a group stays in range: noise is not clamped."""
    sizes = np.array([[10**6, 10**6], [10, 10**6]])
    counts = np.zeros((2, 2, 2), dtype=np.int64)
    counts[:, :, 0], counts[:, :, 1] = sizes // 2, sizes - sizes // 2
    for plan in plans(sizes.tolist(), (0.0, 1.0)):
        assert max(exact(plan, counts)) < 2**61
    bits, steps = fit_lattice(4, 100, Fraction(1))
    assert steps == 2**bits
    with pytest.raises(InputError, match="64-bit"):
        fit_lattice(4, 2**45, Fraction(1))
