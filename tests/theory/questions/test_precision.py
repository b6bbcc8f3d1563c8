"""Precision weights against a solver and against nearby shares."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, minimize

from shoal.errors import InputError
from shoal.theory.questions.precision import distance, precision_shares
from tests.support.loop import loop_over

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(8)


@loop_over("ratio", [0.01, 1.0, 10.0, 1000.0])
@loop_over("clusters", [1, 2, 5, 12])
def test_no_shares_have_less_variance(ratio: float, clusters: int) -> None:
    """Against SLSQP with the largest weight as a variable of its own."""
    sizes = RNG.integers(1, 40, (clusters, 2))
    harmonic, least = 1 / (1 / sizes).sum(axis=1), sizes.min(axis=1)

    def variance(shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float((shares**2 / harmonic).sum() + 2 * ratio**2 * (shares / least).max() ** 2)

    found = precision_shares(sizes, ratio, 1.0)
    assert found.sum() == pytest.approx(1)
    start = np.append(np.full(clusters, 1 / clusters), (1 / clusters / least).max())
    unit, column = np.eye(clusters), least[:, None].astype(float)

    def objective(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        total = (x[:-1] ** 2 / harmonic).sum() + 2 * ratio**2 * x[-1] ** 2
        return float(total / variance(start[:-1]))

    solved = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=Bounds(np.zeros(clusters + 1)),
        constraints=[
            LinearConstraint(np.append(np.ones(clusters), 0.0)[None], 1.0, 1.0),
            LinearConstraint(np.hstack([-unit, column]), 0.0),
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    shares = np.maximum(solved.x[:-1], 0)
    assert variance(found) <= variance(shares / shares.sum()) * (1 + 1e-9)
    for _ in range(200):
        other = np.maximum(found + RNG.normal(size=clusters) * 1e-3, 0)
        assert variance(found) <= variance(other / other.sum()) * (1 + 1e-12)


def test_the_two_ends() -> None:
    """Without noise the harmonic sizes, with much of it the smaller arms."""
    sizes = np.array([[10, 10], [1, 19], [5, 3]])
    none, much = precision_shares(sizes, 1e-6, 1.0), precision_shares(sizes, 1e6, 1.0)
    np.testing.assert_allclose(none, np.array([5, 0.95, 15 / 8]) / 7.825, rtol=1e-6)
    np.testing.assert_allclose(much, np.array([10, 1, 3]) / 14, rtol=1e-6)
    assert distance(np.array([0.2, 0.8]), np.array([1, 1])) == pytest.approx(0.3)


def test_weights_miss_the_average_by_at_most_their_distance() -> None:
    """1/2 sum|omega - n_c/n| times the width of the clusters' effects, and this is attained."""
    units, shares = np.array([10, 30, 60]), np.array([0.5, 0.25, 0.25])
    most = distance(shares, units)
    effects = RNG.random((1000, 3))
    assert np.abs(effects @ (shares - units / 100)).max() <= most
    assert np.array([1.0, 0.0, 0.0]) @ (shares - units / 100) == pytest.approx(most)


def test_empty_arms_are_refused() -> None:
    """No precision of a cluster without a treated unit."""
    for sizes in (np.array([[1, 0]]), np.zeros((0, 2), np.int64)):
        with pytest.raises(InputError):
            precision_shares(sizes, 1.0, 1.0)
    with pytest.raises(InputError):
        distance(np.array([1.0]), np.array([0]))
