"""Exact unbiasedness and certificates, measured on many runs at once."""

import math
import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.base import Estimator
from shoal.means.estimators.clipped import Clipped
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.residual import Residual
from shoal.means.estimators.sampled import Chance, Sampled
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.estimators.weights import Weights
from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment, one_sided

pytestmark = pytest.mark.statistics

FULL = bool(os.environ.get("SHOAL_FULL"))
RUNS = 1_000_000 if FULL else 20_000
AT_ONCE = 20_000
# Two-sided normal quantile of a false alarm rate of 1e-9.
SIGMAS = 6.11
# The proof is repeatable, seed by seed: there the mean is held to four standard errors.
BIAS_SIGMAS = 4.0 if FULL else SIGMAS
USERS = 12
CENTRE = 0.3217
WEIGHTS = {"equal": Weights.equal(USERS), "counts": Weights(np.array([1] * 6 + [2] * 4 + [5] * 2))}
MOMENTS = (Moment(2, 1.0), Moment(4, 1.6))


def symmetric_law(
    rng: np.random.Generator, distribution: str, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Five distributions of variance at most 1 and fourth moment at most 1.6^4, off any lattice."""
    signs = rng.choice([-1.0, 1.0], size=shape)
    if distribution == "normal":
        drawn = rng.normal(size=shape)
    elif distribution == "uniform":
        drawn = rng.uniform(-math.sqrt(3), math.sqrt(3), size=shape)
    elif distribution == "laplace":
        drawn = rng.laplace(scale=math.sqrt(0.5), size=shape)
    elif distribution == "two points":
        drawn = signs
    else:
        drawn = 0.9 * signs + rng.normal(0, 0.4, size=shape)
    return np.asarray(drawn + CENTRE)


KNOWN_DISTRIBUTIONS = ["normal", "uniform", "laplace", "two points", "two hills"]


def symmetric(weights: Weights, *, reuse: bool, more: bool = False) -> Symmetric:
    """A narrow final step and a coarse one that fails sometimes: where a bias would show.

    With `more`, sliding windows and a narrow middle step too.
    """
    users = USERS if reuse else USERS // 2
    coarse = Coarse.fit(users, 1, Fraction(3, 2), Fraction(1, 20), 2 if more else 1)
    final = weights if reuse else weights.after(users)
    half = 3 * 2**18
    return Symmetric(
        weights,
        MOMENTS,
        coarse=coarse,
        reuse=reuse,
        shift=20,
        half=half,
        noise=NoisySum.fit(2 * half * final.largest, half * final.total, Fraction(4)),
        chance=Chance(2**62),
        coarse_delta=Fraction(1, 20),
        farthest=1.0,
        middle=Middle.fit(users, 1, 1.5, Fraction(3)) if more else None,
    )


def measured(
    part: Estimator, distribution: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Estimates of many data sets, and where the coarse step failed."""
    found, failed = [], []
    for at in range(0, RUNS, AT_ONCE):
        rng = np.random.default_rng([seed, at])
        data = symmetric_law(rng, distribution, (AT_ONCE, USERS))
        for drawn in part.runs(data, Simulated(seed * 1000 + at // AT_ONCE)):
            found.append(float(drawn.value))
            failed.append(bool(drawn.failed))
    return np.array(found), np.array(failed)


def unbiased(estimates: NDArray[np.float64], centre: float) -> bool:
    """Whether the mean fits: at a false alarm rate of 1e-9, or within four standard errors."""
    slack = BIAS_SIGMAS * float(estimates.std()) / math.sqrt(len(estimates))
    return abs(float(estimates.mean()) - centre) <= slack


@pytest.mark.parametrize("distribution", KNOWN_DISTRIBUTIONS)
@pytest.mark.parametrize("reuse", [True, False])
def test_symmetric_means_have_no_bias(distribution: str, *, reuse: bool) -> None:
    """On data clipped within half a deviation, overall and given success or failure."""
    part = symmetric(WEIGHTS["counts" if distribution == "normal" else "equal"], reuse=reuse)
    found, failed = measured(part, distribution, 11)
    assert unbiased(found, CENTRE)
    assert unbiased(found[~failed], CENTRE)
    assert not unbiased(found[~failed] + 0.05, CENTRE)
    assert 0 < failed.mean() < 1


@pytest.mark.full
@pytest.mark.parametrize("distribution", KNOWN_DISTRIBUTIONS)
def test_symmetric_means_of_more_attempts_have_no_bias(distribution: str) -> None:
    """With sliding windows and a middle step, overall and given success or failure."""
    reuse = distribution in {"normal", "uniform", "two hills"}
    part = symmetric(WEIGHTS["counts"], reuse=reuse, more=True)
    found, failed = measured(part, distribution, 17)
    assert unbiased(found, CENTRE)
    assert unbiased(found[~failed], CENTRE)
    assert not unbiased(found[~failed] + 0.05, CENTRE)
    assert 0 < failed.mean() < 1


@pytest.mark.parametrize("distribution", KNOWN_DISTRIBUTIONS)
@pytest.mark.parametrize("kind", ["sampled", "residual"])
def test_sampled_and_residual_means_have_no_bias(distribution: str, kind: str) -> None:
    """With values far beyond the margin and weights that differ."""
    weights = WEIGHTS["counts"]
    if kind == "sampled":
        part: Estimator = Sampled(weights, MOMENTS, (-1, 2), Chance(2**62))
    else:
        narrow = Clipped.plan(weights, (Moment(2, 0.4),), (0.25, 0.35), Fraction(2), bias=0.1)
        part = Residual(weights, MOMENTS, narrow.interval, narrow.grid, narrow.noise, Chance(2**62))
    found, _ = measured(part, distribution, 23)
    assert unbiased(found, CENTRE)
    assert not unbiased(found + 0.05, CENTRE)
    assert (found**2).mean() > 0
    assert math.sqrt(((found - CENTRE) ** 2).mean()) <= part.rmse_bound


def test_residual_means_of_skewed_values_have_no_bias() -> None:
    """Not only for symmetric distributions; the clipped mean alone is rejected."""
    weights = WEIGHTS["equal"]
    part = Clipped.plan(weights, (Moment(2, 1),), (0.9, 1.1), Fraction(2), bias=0.2)
    whole = Residual(weights, (Moment(2, 1),), part.interval, part.grid, part.noise, Chance(2**63))
    data = np.random.default_rng(2).exponential(size=(RUNS, USERS))
    assert unbiased(np.array([float(d.value) for d in whole.runs(data, Simulated(3))]), 1.0)
    assert not unbiased(np.array([float(d.value) for d in part.runs(data, Simulated(3))]), 1.0)


@pytest.mark.parametrize("bias", [0.02, 0.1])
@pytest.mark.parametrize("order", [2.0, 4.0])
def test_clipped_means_keep_and_nearly_attain_their_bias(bias: float, order: float) -> None:
    """The worst two points are within the bound, and reach 95% of it; exactly, no noise."""
    size = (Moment(order, 1.0),)
    part = Clipped.plan(Weights.equal(100), size, (0, 0), Fraction(1), bias=bias)
    assert part.bias_bound <= bias
    t, worst = part.margin, 0.0
    for far in np.geomspace(t, 20 * t + 20, 4000):
        # The likeliest far point that the moment allows, by bisection.
        low, high = 0.0, 0.5
        for _ in range(60):
            p = (low + high) / 2
            other = p * far / (1 - p)
            fits = p * far**order + (1 - p) * other**order <= 1
            low, high = (p, high) if fits else (low, p)
        other = low * far / (1 - low)
        clipped = low * min(far, t) - (1 - low) * min(other, t)
        worst = max(worst, abs(clipped))
    assert 0.95 * bias <= worst <= part.bias_bound


@pytest.mark.parametrize("weights", WEIGHTS)
def test_certificates_hold_and_are_not_idle(weights: str) -> None:
    """Measured errors are within the certificate; half of it would be rejected."""
    part = Clipped.plan(WEIGHTS[weights], MOMENTS, (0.3, 0.4), Fraction(1), bias=0.05)
    found, _ = measured(part, "normal", 5)
    error = math.sqrt(((found - CENTRE) ** 2).mean())
    assert part.rmse_bound / 1.05 <= error <= part.rmse_bound * (1 + SIGMAS / math.sqrt(RUNS))
    sampled = Sampled(WEIGHTS[weights], (Moment(2, 1),), (-CENTRE, CENTRE), Chance(2**62))
    found, _ = measured(sampled, "normal", 6)
    error = math.sqrt(((found - CENTRE) ** 2).mean())
    assert sampled.rmse_bound / 1.05 <= error
    assert error <= sampled.rmse_bound * (1 + 2 * SIGMAS / math.sqrt(RUNS))


@pytest.mark.parametrize("reuse", [True, False])
def test_certificate_of_a_planned_symmetric_mean_holds(*, reuse: bool) -> None:
    """Measured errors of a plan are within its certificate, and within 40% of it."""
    from shoal.means.estimators.calibrate import SearchRequest, best

    moments = (Moment(2, 1), Moment(8, 105**0.125))
    n, runs = 2000, 600
    wanted = SearchRequest(Weights.equal(n), moments, Fraction(1), Fraction(1, 10**6), reuse, 100.0)
    part = best(wanted)
    data = np.random.default_rng(8).normal(CENTRE, 1, size=(runs, n))
    found = np.array([float(d.value) for d in part.runs(data, Simulated(9))])
    error = math.sqrt(((found - CENTRE) ** 2).mean())
    slack = 1 + SIGMAS / math.sqrt(runs)
    assert part.rmse_bound / 1.4 / slack <= error <= part.rmse_bound * slack
    assert part.failure_bound < 1e-9


def test_huge_values_overflow_nowhere() -> None:
    """The largest doubles give finite numbers and no exception in any mechanism."""
    data = np.array([1.7e308, -1.7e308] * (USERS // 2))
    weights = WEIGHTS["counts"]
    clipped = Clipped.plan(weights, MOMENTS, (0, 1), Fraction(1), bias=0.1)
    parts: list[Estimator] = [
        clipped,
        Sampled(weights, MOMENTS, (0, 1), Chance(2**62)),
        Residual(weights, MOMENTS, (0, 1), clipped.grid, clipped.noise, Chance(2**62)),
        symmetric(weights, reuse=True),
        symmetric(weights, reuse=False),
        symmetric(weights, reuse=True, more=True),
    ]
    for part in parts:
        for values in (data, -data, np.abs(data)):
            assert math.isfinite(float(part.release(values, Simulated(1)).value))


def test_margin_of_a_clipped_mean_is_the_theorys() -> None:
    """The grid is wider than the margin by less than two ticks."""
    part = Clipped.plan(Weights.equal(9), MOMENTS, (0, 1), Fraction(1), bias=0.01)
    tick = 2.0**part.grid.exponent
    assert one_sided(MOMENTS, part.margin - 2 * tick) >= 0.01 * (1 - 1e-3)


@pytest.mark.parametrize("more", [False, True], ids=["coarse", "middle"])
def test_losses_of_a_symmetric_mean_add_up_user_by_user(*, more: bool) -> None:
    """Users in all steps pay for all; else each part pays for its own steps.

    Whichever step has the larger delta, or the larger epsilon.
    """
    for words in (1, 2**40, 2**62):
        for reuse in (False, True):
            made = symmetric(WEIGHTS["equal"], reuse=reuse, more=more)
            part = replace(made, chance=Chance(words))
            first = part.coarse.loss + (0 if part.middle is None else part.middle.loss)
            last, delta = part.noise.loss, Fraction(words, 2**64)
            both = sum if reuse else max
            assert part.loss.epsilon == both((first, last))
            assert part.loss.delta == both((part.coarse_delta, delta))


def test_a_slip_below_the_coarse_steps_own_is_refused() -> None:
    """What is charged for the coarse step is at least what it costs."""
    made = symmetric(WEIGHTS["equal"], reuse=True)
    own = Fraction(made.coarse.delta)
    assert replace(made, coarse_delta=own).loss.delta == own + made.chance.exact
    for wrong in (own * Fraction(999, 1000), Fraction(0), Fraction(1)):
        with pytest.raises(InputError, match="do not fit"):
            replace(made, coarse_delta=wrong)
