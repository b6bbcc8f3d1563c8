"""Acceptance of trials: no bias, intervals that cover, variances as stated, end to end."""

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.theory import randomised_response, trial_variance
from shoal.trials import response
from shoal.trials.aggregate_release import draw_aggregate
from shoal.trials.expected import Expected
from shoal.trials.histogram import NoisyHistogram
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson
from shoal.trials.parameters import ONE, Parameters, calibrate
from shoal.trials.predicted import Scene, group_weights, represent
from shoal.trials.request import Units
from shoal.trials.unit_release import _ROUNDING, UnitRelease, draw_units
from tests.support.loop import loop_over
from tests.trials import acceptance
from tests.trials.acceptance import MECHANISMS, SETTINGS, Figures

Floats = NDArray[np.float64]

pytestmark = pytest.mark.statistics

FULL = bool(os.environ.get("SHOAL_FULL"))
RUNS = 10_000 if FULL else 100
ALARM = 1e-9
# In standard errors of the mean: what is asked of 10,000 runs.
ASKED = 4.0
LOW, HIGH = 0.94, 0.965
CASES = [(name, mechanism) for name in SETTINGS for mechanism in MECHANISMS]
# Where effects differ within clusters no interval can be exact: it covers more often.
EVEN = [name for name in SETTINGS if SETTINGS[name]().populations[0].constant]


@cache
def figures(name: str, mechanism: str) -> Figures:
    """Of seeded runs, made once."""
    return acceptance.measure(name, mechanism, RUNS)


def most(runs: int) -> float:
    """Most standard errors that a mean of so many runs without bias is off, at 1e-9."""
    return float(stats.t.isf(ALARM / 2, runs - 1))


def plausible(covered: int, runs: int, low: float = LOW, high: float = HIGH) -> bool:
    """Whether a coverage from low to high explains what was seen, at 1e-9."""
    few, many = stats.binom.cdf(covered, runs, low), stats.binom.sf(covered - 1, runs, high)
    return bool(min(few, many) > ALARM / 2)


def test_three_settings_have_constant_effects() -> None:
    """And one has not; effects are not 0."""
    assert EVEN == ["mixture", "binary", "continuous"]
    for make in SETTINGS.values():
        for each in make().populations:
            assert np.allclose(each.effects, make().populations[0].effects)
            assert (np.abs(each.effects) > 0.1).all()


@loop_over(("name", "mechanism"), CASES)
def test_effects_are_unbiased_and_covered(name: str, mechanism: str) -> None:
    """Fresh assignments, the real mechanism.

    At full size the mean error is within four standard errors and coverage in 94% to 96.5% as
    measured; by default at a false-alarm rate of 1e-9. Errors that are off by a deviation are seen.
    """
    found = figures(name, mechanism)
    high = HIGH if name in EVEN else 1.0
    limit = ASKED if FULL else most(RUNS)
    assert (np.abs(found.bias) <= limit).all()
    assert (np.abs(found.bias + np.sqrt(RUNS)) > limit).all()
    for covered in found.covered.tolist():
        assert plausible(covered, RUNS, high=high)
        assert not FULL or LOW <= covered / RUNS <= high


def test_wrong_standard_errors_are_seen() -> None:
    """Settings with constant effects together; a third less or half more."""
    all_of = [figures(*case) for case in CASES if case[0] in EVEN]
    runs = RUNS * len(all_of)

    def covered(scale: float) -> int:
        """Of the first arm."""
        return sum(
            int((np.abs(each.error[:, 0]) <= scale * each.half[:, 0]).sum()) for each in all_of
        )

    assert plausible(covered(1.0), runs)
    assert not plausible(covered(0.67), runs)
    assert not plausible(covered(1.5), runs)


def test_another_estimand_is_told_apart() -> None:
    """The mean over clusters, not over units, is not what is estimated."""
    population = SETTINGS["binary"]().populations[0]
    by_cluster = float((np.unique(population.home) % 5 == 0).mean())
    found = figures("binary", "uniform_prior")
    off = (by_cluster - population.effects) / found.deviation * np.sqrt(RUNS)
    assert (np.abs(found.bias - off) > most(RUNS)).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_so_it_is_with_noise_of_the_operating_system(mechanism: str) -> None:
    """Binary outcomes, exact noise; false alarms below 1e-9."""
    runs = 2000 if FULL else 200
    found = acceptance.measure("binary", mechanism, runs, lambda _: OperatingSystem())
    assert (np.abs(found.bias) <= most(runs)).all()
    assert (np.abs(found.bias + np.sqrt(runs)) > most(runs)).all()
    assert plausible(int(found.covered[0]), runs)


# Variances: many copies of one tiny experiment in one release, every copy with its own assignment.

COPIES, WITHIN = (350_000, 0.02) if FULL else (50_000, 0.05)
CHUNK = 50_000
# Two-sided normal tail of 6e-10.
SIGMAS = 6.2
SPACE = Space.bins(-1, 3, 5)
KEPT = (0, 2, 4)
SIZES = np.array([[3, 3], [5, 3]])
WEIGHT = SIZES.sum(axis=1) / SIZES.sum()
CLUSTERS = (slice(0, 6), slice(6, 14))


@dataclass(frozen=True, eq=False)
class Copies:
    """What copies gave.

    Attributes:
        tau: Estimated effect of each.
        stated: Its estimated variance, for each copy; NaN where there is none.
        inside: Exact variance of each copy given its rounded outcomes and its prior.
    """

    tau: Floats
    stated: Floats
    inside: Floats


class Tiny:
    """Two clusters of 6 and 8 with outcomes between levels; effects differ within them."""

    @cached_property
    def potential(self) -> Floats:
        """Units x 2."""
        random = np.random.default_rng(8)
        control = random.uniform(-1, 1.4, 14)
        return np.column_stack([control, control + random.choice([-0.2, 0.2, 1.5], 14)]).clip(-1, 3)

    @property
    def effect(self) -> float:
        """Over all units."""
        return float((self.potential[:, 1] - self.potential[:, 0]).mean())

    def spread(self) -> tuple[Floats, Floats]:
        """S^2 of outcomes, clusters x 2, and of effects, clusters x 1."""
        parts = [self.potential[each] for each in CLUSTERS]
        own = np.array([part.var(axis=0, ddof=1) for part in parts])
        return own, np.array([[(part[:, 1] - part[:, 0]).var(ddof=1)] for part in parts])

    def rounded(self, levels: Floats) -> Floats:
        """Mean variance of random rounding in each cluster and arm: (y - below)(above - y)."""
        place = np.clip(np.searchsorted(levels, self.potential, side="right"), 1, len(levels) - 1)
        moved = (self.potential - levels[place - 1]) * (levels[place] - self.potential)
        return np.array([moved[each].mean(axis=0) for each in CLUSTERS])

    def assigned(self, copies: int, random: np.random.Generator) -> list[Floats]:
        """Outcomes of each cluster, copies x units, control first; every row newly assigned."""
        found = []
        for cluster, (control, _) in zip(CLUSTERS, SIZES, strict=True):
            mine = self.potential[cluster]
            order = random.permuted(np.tile(np.arange(len(mine)), (copies, 1)), axis=1)
            found.append(mine[order, (np.arange(len(mine)) >= control).astype(np.int64)])
        return found


def design(sizes: NDArray[np.int64]) -> Assignment:
    """With numbers for names."""
    clusters, arms = sizes.shape
    return Assignment(pa.array(np.arange(clusters)), pa.array(np.arange(arms)), sizes)


def added_up(group: Floats) -> Floats:
    """Adds (n_c/n)^2/n_{c,a} times the groups' numbers, clusters x 2 copies, for each copy."""
    part = WEIGHT[:, None] ** 2 * group / np.tile(SIZES, group.shape[1] // 2)
    return np.asarray(part.sum(axis=0).reshape(-1, 2).sum(axis=1))


def respond(parameters: Parameters, seed: int, *, pooled: bool) -> Copies:
    """Copies are pairs of arms of one release: each has priors of its own, pooled or not."""
    outcomes = Tiny().assigned(CHUNK, np.random.default_rng([seed, 7]))
    facts, noise = design(np.tile(SIZES, CHUNK)), Simulated(seed)
    units = Units(facts, np.concatenate([part.ravel() for part in outcomes]), {})
    found = draw_units(units, SPACE, parameters, noise, pooled=pooled)
    mean, s2 = found.moments()
    tau = WEIGHT @ (mean[:, 1::2] - mean[:, ::2])
    return Copies(tau, added_up(s2), added_up(_given(units, found, noise)))


def _given(units: Units, found: UnitRelease, noise: Simulated) -> Floats:
    """Variance of omega given rounded outcomes and priors, clusters x 2 copies."""
    facts, parameters = units.assignment, found.parameters
    words = noise.bits(facts.n, _ROUNDING)
    codes = SPACE.encode(units.outcomes, words, parameters.kept)
    counts = response.tabulate(codes, facts.group, facts.sizes.size, parameters.levels)
    return randomised_response.given_prior(
        counts.reshape(found.counts.shape), found.prior / ONE, found.levels, parameters.lam
    )


def aggregate(kind: type[NoisyHorvitzThompson | NoisyHistogram], seed: int) -> Copies:
    """Copies are pairs of clusters of one release: each has noise of its own."""
    outcomes = Tiny().assigned(CHUNK, np.random.default_rng([seed, 7]))
    facts = design(np.tile(SIZES, (CHUNK, 1)))
    units = Units(facts, np.hstack(outcomes).ravel(), {})
    # All of epsilon for the differences.
    if kind is NoisyHistogram:
        made: NoisyHorvitzThompson | NoisyHistogram = kind.plan(facts.sizes, SPACE.levels, LOSS)
    else:
        made = NoisyHorvitzThompson.plan(facts.sizes, SPACE.levels, LOSS, Fraction(0))
    found = made.effects(draw_aggregate(units, SPACE, made, Simulated(seed)).released)[0]
    nothing = np.full(CHUNK, np.nan)
    return Copies(found.difference.reshape(CHUNK, 2) @ WEIGHT, nothing, nothing)


LOSS = Fraction(2)
UNIFORM = calibrate(KEPT, epsilon=Fraction(3), delta=Fraction(0))
HISTOGRAM = calibrate(KEPT, epsilon=Fraction(4), delta=Fraction(0), floor=0.15, sigma=2.0)


@cache
def copies(mechanism: str) -> Copies:
    """Of one tiny experiment, made once."""
    made = []
    for seed in range(1, COPIES // CHUNK + 1):
        if mechanism == "noisy_histogram":
            made.append(aggregate(NoisyHistogram, seed))
        elif mechanism == "noisy_horvitz_thompson":
            made.append(aggregate(NoisyHorvitzThompson, seed))
        else:
            parameters = UNIFORM if mechanism == "uniform_prior" else HISTOGRAM
            made.append(respond(parameters, seed, pooled=mechanism == "cluster_free"))
    return Copies(
        *(np.concatenate([getattr(each, part) for each in made]) for part in Copies.__annotations__)
    )


def agrees(sample: Floats, variance: float) -> bool:
    """Whether a sample has this variance within 2% (5% by default); it must be able to tell."""
    squares = (sample - sample.mean()) ** 2
    assert SIGMAS * squares.std() / len(squares) ** 0.5 < WITHIN * squares.mean()
    return bool(abs(squares.mean() / variance - 1) <= WITHIN)


def parts(levels: Floats) -> tuple[float, float]:
    """Variance by the assignment, Neyman's, and by rounding."""
    tiny = Tiny()
    rounding = trial_variance.of_effects(tiny.rounded(levels), SIZES)
    return float(trial_variance.of_assignment(*tiny.spread(), SIZES)[0]), float(rounding[0])


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_the_variance_of_responses_is_as_stated(mechanism: str) -> None:
    """Var = assignment + rounding + E[variance given the prior]; a missing part is seen.

    The estimated variance has that mean and the spread of effects within clusters more.
    """
    found, levels = copies(mechanism), SPACE.array[list(KEPT)]
    sampling, rounding = parts(levels)
    stated = sampling + rounding + float(found.inside.mean())
    assert agrees(found.tau, stated)
    assert not agrees(found.tau, stated - rounding)
    assert not agrees(found.tau, stated - sampling)
    error = found.tau.std() / len(found.tau) ** 0.5
    assert abs(found.tau.mean() - Tiny().effect) <= SIGMAS * error
    own, effects = Tiny().spread()
    more = trial_variance.of_effects(own, SIZES)[0] - sampling
    assert effects.min() > 0
    capacity = SIGMAS * found.stated.std() / len(found.tau) ** 0.5
    assert capacity < WITHIN * stated
    assert abs(found.stated.mean() - stated - more) <= capacity
    assert abs(found.stated.mean() - stated) > capacity


def test_the_uniform_prior_has_the_printed_variance() -> None:
    """Paper 003, Theorem A.5: from potential outcomes alone, with rounding in their squares."""
    levels, tiny = SPACE.array[list(KEPT)], Tiny()
    mean = np.array([tiny.potential[each].mean(axis=0) for each in CLUSTERS])
    square = np.array([(tiny.potential[each] ** 2).mean(axis=0) for each in CLUSTERS])
    unit = randomised_response.with_uniform_prior(
        mean, square + tiny.rounded(levels), levels, UNIFORM.lam
    )
    printed = float(trial_variance.of_effects(unit, SIZES)[0])
    assert agrees(copies("uniform_prior").tau, sum(parts(levels)) + printed)
    assert abs(copies("uniform_prior").inside.mean() / printed - 1) <= WITHIN / 4


def test_noisy_aggregates_have_the_stated_variance() -> None:
    """Errata 14 and 15: assignment, rounding and noise; the printed noise is seen."""
    levels, loss = SPACE.array, float(LOSS)
    plain = sum(parts(levels))
    tau = copies("noisy_horvitz_thompson").tau
    assert agrees(tau, plain + trial_variance.of_noisy_differences(SIZES, SPACE.width, loss))
    most_of_all = float(np.abs(levels).max())
    assert not agrees(tau, plain + trial_variance.of_noisy_differences(SIZES, most_of_all, loss))
    tau = copies("noisy_histogram").tau
    noise = trial_variance.of_noisy_histograms(SIZES, levels - levels.mean(), loss)
    assert agrees(tau, plain + noise)
    assert not agrees(tau, plain + noise / 4)
    assert not agrees(tau, noise)


@pytest.mark.parametrize(
    ("expected", "floor", "sigma", "levels"),
    [
        (Expected(0.5, 2.5, 0.9), 0.03, 8.0, 12),
        (Expected(3.0, 1.0, 0.0), 0.1, 3.0, 4),
        (Expected(-1.0, 2.0, 0.5), 0.02, 3.0, 12),
    ],
)
def test_predicted_variances_are_those_of_the_mechanism(
    expected: Expected, floor: float, sigma: float, levels: int
) -> None:
    """Of clusters drawn as expected: sampling, rounding and E[variance given the prior]."""
    runs, random, paper = 20_000 if FULL else 4_000, np.random.default_rng(9), Space.counts(-5, 6)
    sizes = np.array([[12, 20], [30, 25], [60, 40]])
    kept = paper.coarse(levels)
    parameters = calibrate(kept, epsilon=Fraction(3), delta=Fraction(0), floor=floor, sigma=sigma)
    kinds, used = expected.kinds(paper), paper.array[list(parameters.kept)]
    near = np.array([np.interp(paper.array, used, one) for one in np.eye(len(used))]).T
    kind = random.choice(len(kinds.share), runs, p=kinds.share)
    outcomes = (kinds.levels @ near)[kind]
    drawn = np.empty((3, 2))
    for at in np.ndindex(3, 2):
        counts = random.multinomial(sizes[at], outcomes / outcomes.sum(axis=1, keepdims=True))
        steps = (counts * parameters.weight).ravel().tolist()
        source = Simulated(2 * at[0] + at[1])
        noisy = np.array(source.add_laplace(steps, parameters.lattice_bits))
        prior = response.prior_of(noisy.reshape(counts.shape), np.full(runs, sizes[at]), parameters)
        unit = randomised_response.given_prior(counts, prior / ONE, used, parameters.lam)
        assert SIGMAS * unit.std() / runs**0.5 < WITHIN * unit.mean()
        drawn[at] = unit.mean()
    apart = kinds.levels @ paper.array
    own = float(kinds.share @ (kinds.levels @ paper.array**2 - apart**2))
    gap = float(kinds.share @ (kinds.levels @ (near @ used**2 - paper.array**2)))
    truth = float((group_weights(sizes) * (own + gap + drawn)).sum())
    [found] = Scene(represent(sizes, pooled=False), paper, kinds).variance(parameters)
    assert abs(found / truth - 1) <= WITHIN
