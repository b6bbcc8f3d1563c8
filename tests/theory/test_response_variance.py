"""Variances of debiased responses and of effects: enumeration, properties, simulation."""

from __future__ import annotations

import itertools
import math
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.privacy.noise import Simulated
from shoal.theory import response_variance, trial_variance
from shoal.trials import response
from shoal.trials.parameters import ONE, Parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

pytestmark = pytest.mark.oracle

FULL = bool(os.environ.get("SHOAL_FULL"))
CLOSE = 1e-9
# Variances of so many nearly normal numbers are within 2% but for one in 10^9: 6.1 sqrt(2/draws).
DRAWS = 2_000_000 if FULL else 200_000
LEVELS = {2: np.array([0.0, 1.0]), 3: np.array([-1.0, 0.5, 4.0])}
shares = st.floats(0.001, 1)


def normal(parts: list[float]) -> NDArray[np.float64]:
    """Shares that sum to 1."""
    return np.array(parts) / sum(parts)


def omega_of(
    levels: NDArray[np.float64], prior: NDArray[np.float64], lam: float
) -> NDArray[np.float64]:
    """Debiased outcome of each response."""
    return np.asarray((levels - lam * prior @ levels) / (1 - lam))


def responses(
    codes: tuple[int, ...], priors: list[NDArray[np.float64]], lam: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All vectors of responses and their probabilities; each unit has a prior."""
    levels = len(priors[0])
    given = np.array(list(itertools.product(range(levels), repeat=len(codes))))
    chance = np.ones(len(given))
    for at, (code, prior) in enumerate(zip(codes, priors, strict=True)):
        own = lam * prior
        own[code] += 1 - lam
        chance *= own[given[:, at]]
    return given, chance


@pytest.mark.parametrize(("levels", "n"), [(2, 1), (2, 3), (2, 6), (3, 1), (3, 4), (3, 6)])
def test_all_responses_of_a_group(levels: int, n: int) -> None:
    """Mean, variance and expected sample variance of omega given the prior, by enumeration."""
    rng, y = np.random.default_rng(n), LEVELS[levels]
    for lam in (0.2, 0.8):
        codes = tuple(rng.integers(levels, size=n).tolist())
        prior = rng.dirichlet(np.ones(levels))
        given, chance = responses(codes, [prior] * n, lam)
        omega = omega_of(y, prior, lam)[given]
        counts = np.bincount(codes, minlength=levels).astype(np.int64)
        stated = float(response_variance.given_prior(counts, prior, y, lam))
        mean = omega.mean(axis=1)
        assert math.isclose(chance.sum(), 1, abs_tol=1e-12)
        assert math.isclose(chance @ mean, y[list(codes)].mean(), abs_tol=CLOSE)
        spread = chance @ mean**2 - (chance @ mean) ** 2
        assert math.isclose(spread, stated / n, rel_tol=CLOSE)
        if n > 1:
            inside = chance @ omega.var(axis=1, ddof=1)
            own = float(y[list(codes)].var(ddof=1))
            assert math.isclose(inside, own + stated, rel_tol=CLOSE)


CLUSTER = np.array([0, 0, 1, 1, 1, 1])
SIZES = np.array([[1, 1], [3, 1]])
WEIGHTS = np.array([1, 2]) / 3


def assignments() -> Iterator[NDArray[np.int64]]:
    """All assignments of two clusters of two and four units, one treated in each."""
    for treated in itertools.product((0, 1), (2, 3, 4, 5)):
        arm = np.zeros(6, dtype=np.int64)
        arm[list(treated)] = 1
        yield arm


def prior_by_noise(counts: NDArray[np.int64], noise: int) -> NDArray[np.float64]:
    """A prior that depends on the group's histogram and on one fair bit of noise."""
    parts = counts + (0.3, 2.0)[noise]
    parts = parts[::-1] if noise else parts
    return np.asarray(parts / parts.sum())


@pytest.mark.parametrize("levels", [2, 3])
def test_all_assignments_noises_and_responses(levels: int) -> None:
    """Var(tau_Q) = Var(tau_0) + E[variance given the prior], priors made of noisy histograms."""
    rng, y, lam = np.random.default_rng(levels), LEVELS[levels], 0.4
    potential = rng.integers(levels, size=(2, 6))
    moments, inside = np.zeros(2), []
    cases = list(itertools.product(assignments(), itertools.product((0, 1), repeat=4)))
    for arm, noise in cases:
        codes = potential[arm, np.arange(6)]
        group = 2 * CLUSTER + arm
        counts = np.zeros((4, levels), dtype=np.int64)
        np.add.at(counts, (group, codes), 1)
        priors = [prior_by_noise(c, z) for c, z in zip(counts, noise, strict=True)]
        given, chance = responses(tuple(codes.tolist()), [priors[g] for g in group], lam)
        omega = np.array([omega_of(y, prior, lam) for prior in priors])[group, given]
        sign = np.where(arm == 1, 1.0, -1.0) * WEIGHTS[CLUSTER] / SIZES.ravel()[group]
        tau = omega @ sign
        moments += [chance @ tau, chance @ tau**2]
        inside.append(response_variance.given_prior(counts, np.array(priors), y, lam))
    mean, square = moments / len(cases)
    outcome = y[potential]
    effect = outcome[1] - outcome[0]
    halves = [slice(0, 2), slice(2, 6)]
    spread = np.array([outcome[:, half].var(axis=1, ddof=1) for half in halves])
    effects = np.array([[effect[half].var(ddof=1)] for half in halves])
    unit = np.mean(inside, axis=0).reshape(2, 2)
    stated = trial_variance.of_assignment(spread, effects, SIZES)
    stated += trial_variance.of_effects(unit, SIZES)
    assert math.isclose(mean, effect.mean(), abs_tol=CLOSE)
    assert math.isclose(square - mean**2, float(stated[0]), rel_tol=CLOSE)


@pytest.mark.parametrize("levels", [2, 3])
def test_the_uniform_prior_of_all_assignments(levels: int) -> None:
    """The printed variance of the uniform prior, with the cluster's potential outcomes."""
    rng, y, lam = np.random.default_rng(levels), LEVELS[levels], 0.6
    uniform = np.full(levels, 1 / levels)
    potential = rng.integers(levels, size=(2, 6))
    found = []
    for arm in assignments():
        counts = np.zeros((4, levels), dtype=np.int64)
        np.add.at(counts, (2 * CLUSTER + arm, potential[arm, np.arange(6)]), 1)
        found.append(response_variance.given_prior(counts, np.tile(uniform, (4, 1)), y, lam))
    halves = [y[potential][:, c == CLUSTER] for c in (0, 1)]
    mean = np.array([half.mean(axis=1) for half in halves])
    square = np.array([(half**2).mean(axis=1) for half in halves])
    stated = response_variance.with_uniform_prior(mean, square, y, lam)
    assert np.allclose(np.mean(found, axis=0).reshape(2, 2), stated, rtol=CLOSE)
    first, second = y.mean(), (y**2).mean()
    printed = sum(
        WEIGHTS[c] ** 2
        * (
            (1 / SIZES[c]).sum() * (lam * second - lam**2 * first**2) / (1 - lam) ** 2
            + sum(
                (lam / (1 - lam) * square[c, a] - 2 * lam * first / (1 - lam) * mean[c, a])
                / SIZES[c, a]
                for a in (0, 1)
            )
        )
        for c in (0, 1)
    )
    assert math.isclose(float(trial_variance.of_effects(stated, SIZES)[0]), printed, rel_tol=CLOSE)


@given(
    st.floats(0.01, 0.99), st.floats(0, 1), st.floats(0, 1), st.integers(1, 99), st.integers(1, 9)
)
def test_binary_outcomes_in_one_cluster(
    lam: float, rate: float, other: float, treated: int, control: int
) -> None:
    """(n/(n0 n1)) (lambda/2)(1 - lambda/2)/(1 - lambda)^2, whatever the outcomes are."""
    share = np.array([[rate, other]])
    sizes = np.array([[control, treated]])
    unit = response_variance.with_uniform_prior(share, share, np.array([0.0, 1.0]), lam)
    printed = (treated + control) / (treated * control) * (lam / 2) * (1 - lam / 2) / (1 - lam) ** 2
    assert math.isclose(float(trial_variance.of_effects(unit, sizes)[0]), printed, rel_tol=1e-12)


def test_the_assignment_of_three_arms() -> None:
    """Neyman's variance of two of three arms, over all assignments of six units."""
    rng, sizes = np.random.default_rng(3), np.array([[1, 2, 3]])
    outcome = rng.normal(size=(3, 6))
    arms = set(itertools.permutations([0, 1, 1, 2, 2, 2]))
    seen = np.array([[outcome[a, np.array(p) == a].mean() for a in range(3)] for p in arms])
    stated = trial_variance.of_assignment(
        outcome.var(axis=1, ddof=1)[None],
        (outcome[1:] - outcome[0]).var(axis=1, ddof=1)[None],
        sizes,
    )
    for a in (1, 2):
        assert math.isclose((seen[:, a] - seen[:, 0]).var(), float(stated[a - 1]), rel_tol=CLOSE)


@given(
    st.lists(shares, min_size=3, max_size=3),
    st.integers(0, 2),
    st.floats(0.01, 0.99),
    st.floats(0.001, 1 / 3),
)
def test_no_prior_errs_more_than_the_worst(
    parts: list[float], code: int, lam: float, floor: float
) -> None:
    """Any prior with the floor, any outcome: the variance is at most that of `with_any_prior`."""
    prior = floor + (1 - 3 * floor) * normal(parts)
    found = response_variance.given_prior(np.eye(3)[code], prior, LEVELS[3], lam)
    assert float(found) <= response_variance.with_any_prior(LEVELS[3], lam, floor) * (1 + 1e-12)


@pytest.mark.parametrize("lam", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("floor", [0.0, 0.05, 1 / 3])
def test_the_worst_prior_is_attained(lam: float, floor: float) -> None:
    """A grid of all priors on three uneven levels comes as close as its points are."""
    grid = [(i, j, 400 - i - j) for i in range(401) for j in range(401 - i)]
    priors = floor + (1 - 3 * floor) * np.array(grid) / 400
    found = [
        response_variance.given_prior(np.eye(3)[[code]], priors, LEVELS[3], lam).max()
        for code in range(3)
    ]
    stated = response_variance.with_any_prior(LEVELS[3], lam, floor)
    assert stated * (1 - 1e-4) <= max(found) <= stated * (1 + 1e-12)


@given(
    st.lists(shares, min_size=3, max_size=3),
    st.lists(shares, min_size=3, max_size=3),
    st.floats(0.01, 0.99),
)
def test_a_prior_near_the_histogram_errs_little_more(
    one: list[float], other: list[float], lam: float
) -> None:
    """Erratum 16: at most (1/(1 - lambda)^2 - 1) s + lambda/(1 - lambda)^2 U^2 times the distance.

    The equality of both for a prior that is the histogram.
    """
    y, histogram, prior = LEVELS[3], normal(one), normal(other)
    spread = float(histogram @ y**2 - (histogram @ y) ** 2)
    base, steep = 1 / (1 - lam) ** 2 - 1, lam / (1 - lam) ** 2 * (y[-1] - y[0]) ** 2
    apart = float(np.abs(histogram - prior).sum()) / 2
    found = float(response_variance.given_prior(histogram, prior, y, lam))
    assert found <= (base * spread + steep * apart) * (1 + 1e-9)
    same = float(response_variance.given_prior(histogram, histogram, y, lam))
    assert math.isclose(same, base * spread, rel_tol=1e-9)


def test_a_simulation_of_the_mechanism() -> None:
    """Real priors and responses: the variance of tau within 2%, false alarm 1e-9, others rejected.

    Each run has fixed outcomes: what is left is noise of histograms and of responses.
    """
    y, lam = np.array([-1.0, 0.0, 1.0, 3.0]), 0.6
    parameters = Parameters((0, 1, 2, 3), ONE // 20, round(lam * ONE), 2**9, 10)
    counts = np.array([[3, 1, 2, 0], [1, 0, 2, 5]])
    sizes = counts.sum(axis=1)
    source, tau, inside = Simulated(11), np.zeros(DRAWS), np.zeros(DRAWS)
    for arm, sign in ((0, -1), (1, 1)):
        steps = np.tile(counts[arm] * parameters.weight, DRAWS).tolist()
        noisy = np.array(source.add_laplace(steps, 10, draw=arm + 1)).reshape(DRAWS, 4)
        prior = response.prior_of(noisy, np.full(DRAWS, sizes[arm]), parameters)
        codes = np.tile(np.repeat(np.arange(4), counts[arm]), DRAWS)
        group = np.repeat(np.arange(DRAWS), sizes[arm])
        words = source.bits(len(codes), draw=arm + 3)
        given = response.respond(codes, group, prior, parameters, words)
        omega = response.debiased(y, prior, parameters)[group, given]
        tau += sign * omega.reshape(DRAWS, -1).mean(axis=1)
        unit = response_variance.given_prior(counts[[arm]], prior / ONE, y, parameters.lam)
        inside += unit / sizes[arm]
    effect = counts[1] @ y / sizes[1] - counts[0] @ y / sizes[0]
    stated = float(inside.mean())
    assert abs(tau.mean() - effect) <= 6.1 * (stated / DRAWS) ** 0.5
    assert abs(tau.var() / stated - 1) <= 0.02
    uniform = np.full((2, 4), 0.25)
    wrong = response_variance.given_prior(counts, uniform, y, lam) / sizes
    assert abs(tau.var() / wrong.sum() - 1) > 0.02


def test_noise_on_aggregates() -> None:
    """Errata 14 and 15: simulated noise at the right scales; the printed ones are told apart.

    Centred levels estimate the same effect with less noise. False alarm 1e-9.
    """
    rng, y, epsilon = np.random.default_rng(4), np.array([-1.0, 0.0, 4.0]), 0.7
    sizes, draws = np.array([[3, 5], [4, 2]]), DRAWS * 3
    weights = sizes.sum(axis=1) / sizes.sum()
    scale = 5.0 / sizes.min(axis=1) / epsilon
    tau = rng.laplace(scale=scale, size=(draws, 2)) @ weights
    found = trial_variance.of_noisy_differences(sizes, 5.0, epsilon)
    assert abs(tau.var() / found - 1) <= 0.02
    printed = trial_variance.of_noisy_differences(sizes, 4.0, epsilon)
    assert abs(tau.var() / printed - 1) > 0.02
    plain, centred = (
        trial_variance.of_noisy_histograms(sizes, levels, epsilon) for levels in (y, y - y.mean())
    )
    noise = rng.laplace(scale=2 / (sizes * epsilon)[:, :, None], size=(draws, 2, 2, 3))
    for levels, stated in ((y, plain), (y - y.mean(), centred)):
        tau = (noise[:, :, 1] - noise[:, :, 0]) @ levels @ weights
        assert abs(tau.var() / stated - 1) <= 0.02
        assert abs(tau.var() / (stated / 4) - 1) > 0.02
    assert centred < plain
