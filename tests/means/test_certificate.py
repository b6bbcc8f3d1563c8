"""Certificates: union bounds from exact distributions, worst laws, and measured errors."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from shoal import unbiased
from shoal.means import certificate
from shoal.means.certificate import GuessError, binomial_tail, failure_bounds, middle_errors
from shoal.means.guess import Coarse, SumAboutGuess
from shoal.privacy.noise import Simulated
from shoal.theory import clipping
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.oracle

SIGMAS = 6.11
NARROW = (Moment(2, 1), Moment(8, 105**0.125))


@pytest.mark.parametrize(("n", "p"), [(50, 0.1), (1000, 0.3), (400, 0.0)])
def test_binomial_tails_are_above_the_truth(n: int, p: float) -> None:
    """Against SciPy, and no far users are more often than thought."""
    least = np.arange(1.0, n + 2)
    assert (stats.binom.sf(least - 1, n, p) <= binomial_tail(n, least, p) * (1 + 1e-9)).all()
    rare = np.exp(-np.array([10.0, 20.0]))
    assert (stats.binom.sf(certificate._most_far(n, p, rare), n, p) <= rare).all()


@pytest.mark.parametrize(
    ("users", "per_user", "threshold"), [(9, 5, 40), (30, 3, 60), (200, 1, 70)]
)
@pytest.mark.parametrize("size", [0.05, 0.4, 0.7])
def test_failures_are_no_rarer_than_the_sums_of_their_chances(
    monkeypatch: pytest.MonkeyPatch, users: int, per_user: int, threshold: int, size: float
) -> None:
    """The least, over all numbers of far users, of two union bounds with exact tails.

    A window of far users alone wins: one of n users' two windows beats the one of near users, or
    more users are far; and no window is above the threshold, or more are far.
    """
    coarse = Coarse(users=users, exponent=1, per_user=per_user, bits=3, threshold=threshold)
    moments, z = (Moment(2, 1), Moment(8, size)), np.arange(-2000, 2001)
    chance, q = clipping.tail(moments, coarse.near), math.exp(-1 / 8)
    law = (1 - q) / (1 + q) * q ** np.abs(z)
    difference, values, far_squares, fail = (
        np.convolve(law, law),
        np.arange(-4000, 4001),
        users,
        1.0,
    )
    for far in range(1, users // 3 + 1):
        many, lead = float(stats.binom.sf(far - 1, users - 1, chance)), users - 2 * far
        wins = float(difference[values >= per_user * lead].sum()) if lead > 0 else 1.0
        far_squares = min(far_squares, users * (2 * wins + many))
        fail = min(fail, float(law[z < threshold - per_user * (users - far)].sum()) + many)

    def exact_tail(n: int, least: Any, p: float) -> Any:
        # Chernoff's bound may hide a factor of two: with the exact tail nothing does.
        return stats.binom.sf(least - 1, n, p)

    monkeypatch.setattr(certificate, "binomial_tail", exact_tail)
    found = failure_bounds.__wrapped__(coarse, moments)
    for bound, truth in ((found.far_squares, far_squares), (found.fail, fail)):
        assert truth * (1 - 1e-9) <= bound <= truth * 1.5


@pytest.mark.parametrize("chance", [0.01, 0.1])
def test_means_of_clipped_values_are_rarely_further(chance: float) -> None:
    """Against the exact law of values +-t or 0; a bound of a third would be broken."""
    n, t, log = 400, 3.0, 8.0
    bound = certificate._bernstein(n, t * math.sqrt(chance), t, log + math.log(2))
    one = np.zeros(1024)
    one[[0, 1, -1]] = 1 - chance, chance / 2, chance / 2
    law = np.fft.irfft(np.fft.rfft(one) ** n, 1024)
    off = np.abs(np.fft.fftfreq(1024, 1 / 1024)) * t / n
    assert law[off > bound].sum() <= math.exp(-log) < law[off > bound / 3].sum()


def test_rare_cases_cost_what_they_cost() -> None:
    """Two rare cases of values and one of noise, each with its whole square, by quadrature."""
    for start, c in ((0.0, 0.0), (5.0, 2.5)):
        off = GuessError(most=1.0, chance=1e-4, start=start, noise=2.5, scale=0.7)

        def squares(beyond: float, most: float = start + c) -> float:
            def each(z: float) -> float:
                return (most + beyond + z) ** 2 * math.exp(-z / 0.7) / 0.7

            return float(integrate.quad(each, 0, 60)[0])

        truth = 1e-4 * (2 * squares(0.0) + squares(2.5))
        assert truth * (1 - 1e-9) <= off.rare(c) <= truth * 1.2


def test_middle_errors_are_sums_of_their_parts() -> None:
    """Both sides of Bernstein, noise and a tick, where nobody is far."""
    coarse = Coarse.fit(2000, 2, Fraction(1, 2), Fraction(1, 10**6))
    middle, moments = SumAboutGuess.fit(2, 12.0, Fraction(1, 4), 2000), (Moment(40, 1.0),)
    t = middle.half * middle.tick(coarse) - coarse.off
    for off in middle_errors(coarse, middle, moments):
        mean = off.most - off.noise - middle.tick(coarse)
        both = 2 * math.exp(-2000 * mean**2 / (2 * (1 + t * mean / 3)))
        assert both == pytest.approx(off.chance, rel=1e-6)
        assert 2 * math.exp(-off.noise / off.scale) <= off.chance * (1 + 1e-9)
        assert off.start == coarse.off + middle.half * middle.tick(coarse) + middle.tick(coarse)


def test_errors_are_those_given_that_there_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of all releases without one: what the others err is four thirds of the sum."""
    coarse = Coarse.fit(2000, 2, Fraction(1, 2), Fraction(1, 10**6))
    made = certificate.Certificate(coarse, None, NARROW, 1 / 2000)
    bounds = failure_bounds(coarse, NARROW)._replace(fail=0.25)
    all_of_them = made.variance(9.0, 1e-4, 1e-6)
    monkeypatch.setattr(certificate, "failure_bounds", lambda *_: bounds)
    assert made.variance(9.0, 1e-4, 1e-6) == pytest.approx(all_of_them * 4 / 3, rel=1e-12)


@pytest.mark.parametrize("order", [2.0, 4.0])
def test_clipped_means_keep_and_nearly_attain_their_bias(order: float) -> None:
    """The worst two points are within the bound, and reach 95% of it; exactly, no noise."""
    plan: Any = unbiased.plan(
        "clipped_mean", 100, moment=Moment(order, 1), epsilon=1, interval=(0, 0), bias=0.05
    )
    t, worst = plan.choice.margin(plan.request), 0.0
    for far in np.geomspace(t, 20 * t + 20, 2000):
        # The likeliest far point that the moment allows, by bisection.
        low, high = 0.0, 0.5
        for _ in range(50):
            p = (low + high) / 2
            fits = p * far**order + (1 - p) * (p * far / (1 - p)) ** order <= 1
            low, high = (p, high) if fits else (low, p)
        other = low * far / (1 - low)
        worst = max(worst, abs(low * min(far, t) - (1 - low) * min(other, t)))
    assert 0.95 * 0.05 <= worst <= plan.bias_bound <= 0.05


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["clipped_mean", "symmetric_mean"])
def test_measured_errors_are_within_the_certificate(method: str) -> None:
    """And not far below: half of the certificate would be rejected."""
    more: dict[str, Any] = {"delta": "1e-6"}
    if method == "clipped_mean":
        more = {"interval": (0.3, 0.4), "bias": 0.005}
    plan = unbiased.plan(method, 2000, moment=NARROW, epsilon=1, interval_by="certified", **more)
    data = np.random.default_rng(8).normal(0.32, 1, size=(400, plan.n))
    off = np.array([float(plan.value(d)) - 0.32 for d in plan.runs(data, Simulated(9))])
    error, slack = math.sqrt(float((off**2).mean())), 1 + SIGMAS / math.sqrt(len(off))
    assert plan.rmse_bound / 1.4 / slack <= error <= plan.rmse_bound * slack
    assert plan.failure_bound < 1e-6


@pytest.mark.parametrize(
    ("n", "epsilon", "most"), [(1000, "1", 1.55), (10**4, "0.1", 2.68), (10**5, "1", 1.008)]
)
def test_plans_err_little(n: int, epsilon: str, most: float) -> None:
    """Certified errors times sqrt(n); without a middle step and windows they are a sixth larger."""
    plan = unbiased.plan(
        "symmetric_mean", n, moment=(Moment(2, 1), Moment(8, 1.8)), epsilon=epsilon, delta="1e-6"
    )
    assert plan.rmse_bound * math.sqrt(n) <= most
    assert plan.exact_loss.within(plan.loss)
    assert plan.loss.epsilon <= Fraction(epsilon)
