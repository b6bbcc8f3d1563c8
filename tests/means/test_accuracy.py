"""How accurate the symmetric mean is on many Gaussian users: almost as if nothing were private."""

import math
import os
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment
from shoal.unbiased import plan

pytestmark = pytest.mark.statistics

FULL = bool(os.environ.get("SHOAL_FULL"))
RUNS = 4000 if FULL else 60
AT_ONCE = 20
USERS, CENTRE = 100_000, 7.0 / 3
FALSE_ALARM = 1e-9
# Two-sided normal quantile of that rate.
SIGMAS = 6.11
# A wrong scale that so many runs tell apart.
WRONG = 1.25 if FULL else 4.0
MOST = 1.06


@dataclass(frozen=True)
class Runs:
    """Many releases on data of their own.

    Attributes:
        plain: Mean of the values less the centre.
        added: Estimate less the mean of the values: what privacy adds.
        scale: Of the noise, as planned.
        certificate: Of the root mean squared error.
    """

    plain: np.ndarray
    added: np.ndarray
    scale: float
    certificate: float


@pytest.fixture(scope="module")
def runs() -> Runs:
    """Gaussian values, epsilon 1, delta 1e-6; the planner knows two moments."""
    moments = (Moment(2, 1), Moment(8, 105**0.125))
    made = plan("symmetric_mean", USERS, moment=moments, epsilon=1, delta="1e-6")
    plain, added = [], []
    for at in range(RUNS // AT_ONCE):
        values = np.random.default_rng([41, at]).standard_normal((AT_ONCE, USERS)) + CENTRE
        for mean, drawn in zip(
            values.mean(axis=1), made.estimator.runs(values, Simulated(41_000 + at)), strict=True
        ):
            assert drawn.failed is False
            plain.append(mean - CENTRE)
            added.append(float(drawn.value) - mean)
    return Runs(np.array(plain), np.array(added), made.noise_scale, made.rmse_bound)


def scale_between(added: np.ndarray) -> tuple[float, float]:
    """Bounds on a Laplace scale: the absolute values are exponential, their sum is Gamma(runs)."""
    total, distribution = float(np.abs(added).sum()), stats.gamma(len(added))
    return total / float(distribution.isf(FALSE_ALARM / 2)), total / float(
        distribution.ppf(FALSE_ALARM / 2)
    )


def test_what_privacy_adds_is_the_planned_noise(runs: Runs) -> None:
    """Its scale fits (false alarms 1e-9), a wrong one is rejected, and it has no bias."""
    low, high = scale_between(runs.added)
    assert low <= runs.scale <= high
    for wrong in (WRONG, 1 / WRONG):
        low, high = scale_between(runs.added * wrong)
        assert not low <= runs.scale <= high
    # The mean of Laplace noise has lighter tails than six deviations of a normal one at 60 runs.
    slack = 2 * SIGMAS * math.sqrt(2) * runs.scale / math.sqrt(RUNS)
    assert abs(float(runs.added.mean())) <= slack
    assert abs(float(runs.added.mean()) + 2 * slack) > slack


def test_gaussian_means_err_by_at_most_six_percent_more_than_without_privacy(runs: Runs) -> None:
    """RMSE <= 1.06/sqrt(n) at n = 1e5, epsilon = 1, delta = 1e-6; so is the certificate.

    The estimate moves with the values, so what privacy adds depends on their differences alone,
    and of Gaussian values these are independent of the mean (Basu): the squared error is
    1/n + E added^2 = 1/n + 2 scale^2. The scale's upper bound fails with a chance of 1e-9.
    """
    _, scale = scale_between(runs.added)
    assert (1 / USERS + 2 * scale**2) * USERS <= MOST**2
    assert runs.certificate * math.sqrt(USERS) <= MOST
    # Noise of eight times the scale would not do.
    assert (1 / USERS + 2 * (8 * scale) ** 2) * USERS > MOST**2


def test_errors_agree_with_the_certificate(runs: Runs) -> None:
    """Squared errors, the mean's replaced by 1/n, are as planned within 6 deviations."""
    error = runs.plain + runs.added
    found = error**2 - runs.plain**2
    slack = SIGMAS * float(found.std()) / math.sqrt(RUNS)
    planned = 2 * runs.scale**2
    assert abs(float(found.mean()) - planned) <= slack
    assert 1 / USERS + float(found.mean()) - slack <= runs.certificate**2
    if FULL:
        assert (1 / USERS + float(found.mean()) + slack) * USERS <= MOST**2
        assert math.sqrt(float((error**2).mean()) * USERS) <= MOST
    # Noise of eight times the scale.
    assert abs(float(found.mean()) - 64 * planned) > slack
