"""Lower bounds of variances: the curve on a fine grid, and tables that must not beat them."""

import math

import numpy as np
import pytest

from shoal.trials.best_table.dual_bound import Certificate

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(7)


def _any(levels: int) -> Certificate:
    weight = RNG.dirichlet(np.ones(levels))
    return Certificate(weight, RNG.normal(size=levels), RNG.normal(scale=0.3, size=levels))


def _curve(dual: Certificate, output: np.ndarray, ratio: float) -> np.ndarray:
    o = output[:, None]
    h = dual.weight * o**2 - dual.slope * o - dual.total
    return np.asarray((h + (ratio - 1) * np.minimum(h, 0)).sum(axis=1))


@pytest.mark.parametrize("levels", [2, 3, 7, 20])
def test_the_least_value_is_that_of_a_fine_grid(levels: int) -> None:
    """No point of a grid lies below the exact minimum, and the minimum is attained."""
    for ratio in (1.1, math.e, 50.0):
        dual = _any(levels)
        least, at, inside = dual.pieces(ratio)
        far = 2 + float(np.abs(at).max())
        grid = _curve(dual, np.linspace(-far, far, 200_001), ratio)
        assert float(least.min()) <= grid.min() + 1e-9
        assert np.allclose(_curve(dual, at, ratio), least, rtol=1e-9, atol=1e-9)
        assert inside.shape == (len(at), levels)


def test_a_curve_that_dips_is_mended() -> None:
    """After the totals are lowered the curve is nowhere below 0."""
    for levels in (2, 5, 12):
        dual = _any(levels)
        mended = dual.repaired(math.e)
        assert float(mended.pieces(math.e)[0].min()) >= 0
        assert (mended.total <= dual.total).all()


def test_no_unbiased_table_beats_a_bound() -> None:
    """Weak duality for random dual variables and randomised response."""
    for size in (2, 3, 6):
        y = np.sort(RNG.uniform(-0.5, 0.5, size))
        for epsilon in (0.3, 1.0, 3.0):
            more = math.exp(epsilon) - 1
            chance = (1 + more * np.eye(size)) / (more + size)
            says = (y * (more + size) - y.sum()) / more
            variance = chance @ says**2 - y**2
            for _ in range(50):
                dual = _any(size).repaired(math.exp(epsilon))
                assert dual.bound(y) <= dual.weight @ variance + 1e-9
