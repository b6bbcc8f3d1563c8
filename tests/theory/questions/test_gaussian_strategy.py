"""The Gaussian strategy: feasible, certified, and no worse than any other covariance."""

from __future__ import annotations

import time

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions.gaussian_strategy import dual_bound, independent, least_covariance
from shoal.theory.questions.weights import effects_by, regression, scaled, stack

pytestmark = pytest.mark.property

Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def twelve(units: int, seed: int = 3) -> Floats:
    """Twelve coefficients of a regression with dummies, normal and skewed covariates."""
    rng = np.random.default_rng(seed)
    design = [np.ones(units), rng.integers(0, 2, units), *rng.normal(size=(4, units))]
    design += [*rng.integers(0, 2, (4, units)), *rng.lognormal(size=(2, units))]
    return scaled(regression(np.column_stack(design)), 1.0)


def losses(covariance: Floats, vectors: Floats) -> float:
    """The most v' Sigma^-1 v over units."""
    return float(np.einsum("ki,kl,li->i", vectors, np.linalg.pinv(covariance), vectors).max())


@pytest.mark.parametrize("seed", range(5))
def test_no_unit_loses_more_and_the_certificate_holds(seed: int) -> None:
    """G-STRATEGY: v' Sigma^-1 v is at most 1, attained, and the gap at most 1e-4."""
    vectors = twelve(400, seed)[: 2 + 2 * seed]
    found = least_covariance(vectors)
    assert 1 - 1e-4 < losses(found.covariance, vectors) <= 1 + 1e-12
    assert 0 <= found.gap <= 1e-4
    assert dual_bound(vectors, found.unit_weights) == found.lower_bound
    weighed = (vectors * found.unit_weights) @ vectors.T
    roots = np.sqrt(np.linalg.eigvalsh(weighed))
    assert found.lower_bound == pytest.approx(roots.sum() ** 2, rel=1e-8)


def test_no_feasible_covariance_is_below_the_bound() -> None:
    """G-STRATEGY: thousands of random covariances, and any dual variables."""
    rng = np.random.default_rng(2)
    vectors = twelve(60)[:3]
    bounds = [dual_bound(vectors, rng.exponential(size=60) ** 3) for _ in range(200)]
    best = least_covariance(vectors)
    assert max(bounds) <= best.total
    near = np.linalg.cholesky(best.covariance)
    for spread in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(500):
            root = near @ (np.eye(3) + spread * rng.normal(size=(3, 3)))
            other = root @ root.T
            total = np.trace(other) * losses(other, vectors)
            assert total >= best.lower_bound


def test_twelve_questions_of_five_thousand_units() -> None:
    """A gap of 1e-4; about 0.3 s on a quiet core."""
    vectors = twelve(5000)
    start = time.process_time()
    found = least_covariance(vectors)
    assert found.gap <= 1e-4
    assert time.process_time() - start < 20


def test_disjoint_and_dependent_questions() -> None:
    """Disjoint questions cost no more together than alone; one that depends on others is free."""
    disjoint = least_covariance(np.array([[0.5, -0.5, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]]))
    assert disjoint.total == pytest.approx(0.25 + 4.0, rel=1e-4)
    arm, group = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    parts = effects_by(arm, np.zeros(40, np.int64), group)
    rows = stack([parts, parts.sum(axis=0) / 2])
    vectors = scaled(rows, 1.0, np.ones(3))
    found = least_covariance(vectors)
    assert independent(vectors)[0].shape == (3, 2)
    assert losses(found.covariance, vectors) <= 1 + 1e-9
    assert found.gap <= 1e-4
    null = np.array([0.5, 0.5, -1.0])
    assert abs(null @ found.covariance @ null) < 1e-12


def test_what_is_no_strategy_is_refused() -> None:
    """Weights below 0, no numbers, a tolerance that is never reached."""
    for weights in (np.array([-1.0, 2.0]), np.zeros(2), np.array([np.nan, 1.0]), np.ones(3)):
        with pytest.raises(InputError):
            dual_bound(np.eye(2), weights)
    with pytest.raises(InputError):
        least_covariance(np.full((1, 2), np.nan))
    with pytest.raises(InputError):
        least_covariance(np.eye(2), tolerance=0.0)
