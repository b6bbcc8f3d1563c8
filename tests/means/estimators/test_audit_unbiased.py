"""Audits of whole unbiased means: no attack on neighbours proves more than epsilon."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal import unbiased
from shoal.privacy.noise import Simulated
from shoal.unbiased import UnbiasedPlan
from tests.cells.test_audit import lower_bound

pytestmark = pytest.mark.audit

RUNS = 400_000 if os.environ.get("SHOAL_FULL") else 20_000
MOMENT = (unbiased.Moment(2, 1.0), unbiased.Moment(8, 1.8))
FEW, MANY = 3, 60
# What delta may add to a chance that an audit looks at is far below its width.
DELTA = "1e-9"


def plans() -> dict[str, UnbiasedPlan]:
    """One of each method with Laplace noise, and two forms of the symmetric mean."""
    interval = (0.0, 1.0)
    return {
        "clipped": unbiased.plan(
            "clipped_mean", FEW, moment=MOMENT, epsilon=1, interval=interval, bias=0.05
        ),
        "combined": unbiased.plan(
            "clipped_plus_residual", FEW, moment=MOMENT, epsilon=1, delta=DELTA,
            interval=interval, publish_values=True,
        ),
        "reused": unbiased.plan(
            "symmetric_mean", MANY, moment=MOMENT, epsilon=4, delta=DELTA, reuse=True
        ),
        "split": unbiased.plan(
            "symmetric_mean", MANY, moment=MOMENT, epsilon=4, delta=DELTA, reuse=False
        ),
    }  # fmt: skip


def drawn(plan: UnbiasedPlan, values: list[float], seed: int, runs: int) -> NDArray[np.float64]:
    """Estimates of many releases of the same values."""
    found = plan.estimator.runs(np.tile(values, (runs, 1)), Simulated(seed))
    return np.array([each.value for each in found])


@pytest.mark.parametrize("method", ["clipped", "combined", "reused", "split"])
def test_no_attack_proves_more_than_epsilon(method: str) -> None:
    """One user goes from the lowest to the highest value that counts, others stay.

    A false alarm has a chance of at most 1e-9. Of the clipped mean at least 0.8 epsilon is proven,
    so that a stated loss of half would be refuted.
    """
    plan = plans()[method]
    others = [0.3 * at / plan.n for at in range(plan.n - 1)]
    # The others only have to stay below, and are slower.
    far, runs = (1e6, RUNS) if method == "clipped" else (5.0, RUNS * 2 // 5)
    one, other = (drawn(plan, [*others, each], at, runs) for each, at in ((-far, 1), (far, 2)))
    proven = lower_bound(one, other)
    assert proven <= plan.epsilon
    assert method != "clipped" or proven >= 0.8 * plan.epsilon
