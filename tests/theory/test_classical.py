"""Bounds of plain statistics against exact Bayes risks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from shoal.theory import classical
from shoal.theory.problem import Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.oracle


def bayes_risk(
    prior: NDArray[np.float64], truth: NDArray[np.float64], distributions: NDArray[np.float64]
) -> float:
    """Mean squared error of the posterior mean; distributions are outcomes by parameters."""
    joint = distributions * prior / prior.sum()
    total = joint.sum(axis=1)
    seen = total > 0
    centre = (joint @ truth)[seen] / total[seen]
    return float((joint[seen] * (truth - centre[:, None]) ** 2).sum())


@pytest.mark.parametrize("n", [1, 5, 50])
@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
def test_statistics_against_exact_bayes_risks(n: int, width: float) -> None:
    """Van Trees and Hodges-Lehmann are below the Bayes risk of some prior, by quadrature."""
    setting = Setting.of(n, 1, 0, 0, (2, 1.0), width)
    half = width / 2
    truth = np.linspace(-half, half, 801)
    prior = np.cos(math.pi * truth / width) ** 2
    seen = np.linspace(-half - 9 / math.sqrt(n), half + 9 / math.sqrt(n), 4001)
    distributions = stats.norm.pdf(seen[:, None], truth, 1 / math.sqrt(n)) * (seen[1] - seen[0])
    assert classical.normal_bound(setting) ** 2 <= bayes_risk(prior, truth, distributions) * (
        1 + 1e-4
    )
    # The largest allowed step of two points at every h.
    risks = []
    for near in np.geomspace(1e-2, 0.499, 40):
        chance = np.linspace(0.5 - near, 0.5 + near, 801)
        step = min(2.0, width / (2 * near))
        prior = np.cos(math.pi * (chance - 0.5) / (2 * near)) ** 2
        distributions = np.asarray(stats.binom.pmf(np.arange(n + 1)[:, None], n, chance))
        risks.append(bayes_risk(prior, step * chance, distributions))
    assert classical.coin_bound(setting) ** 2 <= max(risks) * (1 + 1e-3)
    chance = np.linspace(0, 1, 4001)
    prior = stats.beta.pdf(chance, math.sqrt(n) / 2 + 1e-9, math.sqrt(n) / 2 + 1e-9)
    prior[[0, -1]] = 0
    distributions = np.asarray(stats.binom.pmf(np.arange(n + 1)[:, None], n, chance))
    risk = bayes_risk(prior, min(width, 2.0) * chance, distributions)
    assert classical.bit_bound(setting) ** 2 == pytest.approx(risk, rel=0.05)
