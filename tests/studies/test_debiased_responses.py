"""Debiased responses: variances by enumeration, and bounds of them."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from shoal_studies.paper_003_mechanisms import (
    Randomised,
    at_most,
    given_prior,
    printed,
    prior_distance,
    replacing,
    with_any_prior,
)

from shoal.trials.cluster_prior import PriorChoice
from shoal.trials.randomiser import PART
from tests.trials import exact_priors as exact

NEARLY = 1e-9
LEVELS = {2: np.array([0.0, 1.0]), 3: np.array([-1.0, 0.5, 4.0])}


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
        stated = float(given_prior(counts, prior, y, lam))
        mean = omega.mean(axis=1)
        assert math.isclose(chance.sum(), 1, abs_tol=1e-12)
        assert math.isclose(chance @ mean, y[list(codes)].mean(), abs_tol=NEARLY)
        spread = chance @ mean**2 - (chance @ mean) ** 2
        assert math.isclose(spread, stated / n, rel_tol=NEARLY)
        if n > 1:
            inside = chance @ omega.var(axis=1, ddof=1)
            own = float(y[list(codes)].var(ddof=1))
            assert math.isclose(inside, own + stated, rel_tol=NEARLY)


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
        inside.append(given_prior(counts, np.array(priors), y, lam))
    mean, square = moments / len(cases)
    outcome = y[potential]
    effect = outcome[1] - outcome[0]
    halves = [slice(0, 2), slice(2, 6)]
    spread = np.array([outcome[:, half].var(axis=1, ddof=1) for half in halves])
    effects = np.array([[effect[half].var(ddof=1)] for half in halves])
    unit = np.mean(inside, axis=0).reshape(2, 2)
    own = ((spread + unit) / SIZES).sum(axis=1) - effects[:, 0] / SIZES.sum(axis=1)
    assert math.isclose(mean, effect.mean(), abs_tol=NEARLY)
    assert math.isclose(square - mean**2, float(WEIGHTS**2 @ own), rel_tol=NEARLY)


@pytest.mark.parametrize("lam", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("floor", [0.0, 0.05, 1 / 3])
def test_the_worst_prior_is_attained(lam: float, floor: float) -> None:
    """A grid of all priors on three uneven levels comes as close as its points are."""
    grid = [(i, j, 400 - i - j) for i in range(401) for j in range(401 - i)]
    priors = floor + (1 - 3 * floor) * np.array(grid) / 400
    found = [given_prior(np.eye(3)[[code]], priors, LEVELS[3], lam).max() for code in range(3)]
    stated = with_any_prior(LEVELS[3], lam, floor)
    assert stated * (1 - 1e-4) <= max(found) <= stated * (1 + 1e-12)


def chosen_with(levels: int, part: float, weight: int, bits: int) -> PriorChoice:
    """A choice with a floor that is a part of 1/K."""
    return exact.choice(levels, math.floor(part * (PART // levels)), PART // 2, weight, bits)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("part", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("weight", [1, 3])
def test_the_distance_of_priors_on_the_lattice(levels: int, part: float, weight: int) -> None:
    """All histograms of up to four units, all noise: expected distance and variance stay below."""
    y, lam = LEVELS[levels], 0.5
    for n, bits in itertools.product(range(1, 5), (0, 2)):
        chosen = chosen_with(levels, part, weight, bits)
        distribution = exact.Distribution(chosen, n)
        priors, share = distribution.priors / PART, distribution.histograms / n
        apart = np.abs(priors[None] - share[:, None]).sum(axis=2) / 2
        sizes, gamma, sigma = np.array([n]), chosen.floor / PART, 2**bits / weight
        stated = prior_distance(sizes, levels, gamma, sigma)
        assert (distribution.prior_chances * apart).sum(axis=1).max() <= stated[0] * (1 + 1e-12)
        spread = share @ y**2 - (share @ y) ** 2
        bound = at_most(np.full(len(share), n), y, lam=lam, floor=gamma, sigma=sigma, spread=spread)
        units = given_prior(distribution.histograms[:, None], priors[None], y, lam)
        assert ((distribution.prior_chances * units).sum(axis=1) <= bound * (1 + 1e-12)).all()


def test_erratum_16_the_printed_forms_differ() -> None:
    """Three forms of A(x) for the paper's setting: three numbers, all above six times ours."""

    chosen, sizes = Randomised(replacing(12, 0.8, floor=0.02, sigma=10.0)), np.array([[250]])
    once, twice = (
        np.ravel(printed(sizes, scale * np.arange(-5.0, 7.0), chosen)) for scale in (1, 2)
    )
    degrees = np.log2(twice / once)
    assert degrees[0] < 1.999
    assert math.isclose(degrees[1], 2, rel_tol=1e-12)
    assert degrees[2] > 3.9
    assert np.rint(once).tolist() == [6517, 48384, 1638771]
    distance = prior_distance(np.array([250]), 12, 0.02, 10.0)
    ours = 0.8 / 0.2**2 * 11**2 * float(distance[0])
    assert ours * 6 < once.min()
