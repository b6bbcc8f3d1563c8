"""The Gaussian strategy: feasible, certified, and no worse than any other covariance."""

from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions.gaussian_strategy import dual_bound, independent, least_covariance
from shoal.theory.questions.weights import effects_by, regression, scaled, stack
from tests.support.loop import loop_over

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


def exact_loss(covariance: Floats, vectors: Floats) -> Fraction:
    """The most v' Sigma^-1 v over units without rounding; fails where Sigma is not regular."""
    left = [[Fraction(each) for each in row] for row in covariance.tolist()]
    moved = [[Fraction(each) for each in row] for row in vectors.tolist()]
    total = [Fraction(0)] * len(moved[0])
    for at, row in enumerate(left):
        pivot = row[at]
        assert pivot > 0
        total = [sum_ + v * v / pivot for sum_, v in zip(total, moved[at], strict=True)]
        for below in range(at + 1, len(left)):
            times = left[below][at] / pivot
            left[below] = [a - times * b for a, b in zip(left[below], row, strict=True)]
            moved[below] = [a - times * b for a, b in zip(moved[below], moved[at], strict=True)]
    return max(total)


def clock(units: int, start: float, width: float) -> Floats:
    """Rows of a regression on a constant, a treatment and a clock that started long ago."""
    rng = np.random.default_rng(0)
    times = start + np.floor(rng.random(units) * width)
    return regression(np.column_stack([np.ones(units), np.arange(units) % 2, times]))


def nearly(apart: float, seed: int = 1) -> Floats:
    """Three questions, of which the last is the sum of two others but for a part of it."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(3, 30))
    found[2] = found[0] + found[1] + apart * found[2]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_no_unit_loses_more_and_the_certificate_holds(seed: int) -> None:
    """V' Sigma^-1 v is at most 1, attained, and the gap at most 1e-4."""
    vectors = twelve(400, seed)[: 2 + 2 * seed]
    found = least_covariance(vectors)
    assert 1 - 1e-4 < losses(found.covariance, vectors) <= 1 + 1e-12
    assert 0 <= found.gap <= 1e-4
    assert dual_bound(vectors, found.unit_weights) == found.lower_bound
    weighed = (vectors * found.unit_weights) @ vectors.T
    roots = np.sqrt(np.linalg.eigvalsh(weighed))
    assert found.lower_bound == pytest.approx(roots.sum() ** 2, rel=1e-8)


UNLIKE = {
    "one is tiny": np.diag([1.0, 9e-11]),
    "one is tinier": np.array([[1.0, 0.0, 1.0], [1e-30, 2e-30, -1e-30]]),
    "a ladder": np.diag(10.0 ** -np.arange(0, 40, 4)) @ np.sin(np.arange(300)).reshape(10, 30),
    "Unix seconds": scaled(clock(60, 1.7e9, 2.6e6), 1.0, np.ones(3)),
    "Unix seconds, alike": scaled(clock(60, 1.7e9, 2.6e6), 1.0),
    "Unix milliseconds": scaled(clock(60, 1.7e12, 2.6e9), 1.0, np.ones(3)),
    "the ends of the range": np.diag([1e75, 1e-75]),
    **{f"apart by {each:g}": nearly(each) for each in (1e-5, 1e-8, 3e-10, 1e-12, 1e-15, 0)},
}


@loop_over("which", UNLIKE)
def test_questions_of_unlike_sizes_and_near_ones_have_noise(which: str) -> None:
    """Exactly v' Sigma^-1 v <= 1 for the covariance as written, and a true gap."""
    vectors = UNLIKE[which]
    found = least_covariance(vectors)
    assert 1 - Fraction(1, 1000) < exact_loss(found.covariance, vectors) <= 1
    assert 0 <= found.gap <= 1e-4
    assert dual_bound(vectors, found.unit_weights) == found.lower_bound
    # The noise of every question covers what its own unit moves.
    assert (np.diag(found.covariance) >= np.abs(vectors).max(axis=1) ** 2 * (1 - 1e-12)).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_rounding_of_a_covariance_is_covered(seed: int) -> None:
    """Least where noise is least in a direction in which units do move."""
    for vectors in (nearly(1e-6, seed), nearly(1e-5, seed), twelve(60, seed)[: 2 + seed]):
        assert exact_loss(least_covariance(vectors).covariance, vectors) <= 1


def test_sizes_beyond_floating_point_are_refused() -> None:
    """Squares of 1e-170 are 0: no noise would be left."""
    for vectors in (np.eye(2) * 1e-170, np.diag([1.0, 1e-80]), np.eye(1) * 1e160):
        with pytest.raises(InputError, match=r"targets.*choose targets"):
            least_covariance(vectors)


def test_no_feasible_covariance_is_below_the_bound() -> None:
    """Thousands of random covariances, and any dual variables."""
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
    # Of the first two, which tell the third: all three are regular by rounding alone.
    assert losses(found.covariance[:2, :2], vectors[:2]) <= 1 + 1e-9
    assert found.gap <= 1e-4
    null = np.array([0.5, 0.5, -1.0])
    # As much as rounding moves it, not 0.
    assert exact_loss(found.covariance, vectors) <= 1
    assert 0 < null @ found.covariance @ null < 1e-12


def test_what_is_no_strategy_is_refused() -> None:
    """Weights below 0, no numbers, a tolerance that is never reached."""
    for weights in (np.array([-1.0, 2.0]), np.zeros(2), np.array([np.nan, 1.0]), np.ones(3)):
        with pytest.raises(InputError):
            dual_bound(np.eye(2), weights)
    with pytest.raises(InputError):
        least_covariance(np.full((1, 2), np.nan))
    with pytest.raises(InputError):
        least_covariance(np.eye(2), tolerance=0.0)
