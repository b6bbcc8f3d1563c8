"""Noise of many questions: no unit beyond 1, bounds that hold, never more than simpler noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.trials.questions import noise

Floats = NDArray[np.float64]

pytestmark = pytest.mark.property


def vectors(questions: int, units: int = 300, seed: int = 1) -> Floats:
    """Effects, means and a regression's coefficients are of such shapes: few rows, many units."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(questions, units)) * 10.0 ** rng.uniform(-1, 1, (questions, 1))
    found[0] = np.where(np.arange(units) % 2, 1.0, -1.0)
    return found


def names(rows: Floats) -> list[str]:
    """One for each."""
    return [f"question {at}" for at in range(len(rows))]


def total(sums: Floats, rows: Floats) -> float:
    """Total noise variance over that of scale 1 a number, for a unit that loses 1 at most."""
    most = float(np.abs(sums @ rows).sum(axis=0).max())
    recover = rows @ np.linalg.pinv(sums @ rows)
    assert np.allclose(recover @ sums @ rows, rows, atol=1e-7 * np.abs(rows).max())
    return float((recover**2).sum() * most**2)


@pytest.mark.parametrize("questions", [2, 5, 9])
def test_gaussian_noise_is_certified(questions: int) -> None:
    """v' Sigma^-1 v is at most 1 for every unit, and no covariance is below the bound."""
    rows, rng = vectors(questions), np.random.default_rng(2)
    found = noise.gaussian_noise(rows)
    covariance = found.root @ found.root.T
    losses = np.einsum("ij,ij->j", rows, np.linalg.solve(covariance, rows))
    assert 1 - 1e-3 < losses.max() <= 1 + 1e-4
    assert found.lower_bound <= np.trace(covariance) <= found.lower_bound * (1 + 2e-4)
    for spread in (1e-3, 0.1, 1.0):
        for _ in range(100):
            root = found.root @ (np.eye(questions) + spread * rng.normal(size=(questions,) * 2))
            other = root @ root.T
            worst = np.einsum("ij,ij->j", rows, np.linalg.solve(other, rows)).max()
            assert np.trace(other) * worst >= found.lower_bound


@pytest.mark.parametrize("questions", [2, 5, 9])
def test_sums_are_no_worse_than_simpler_noise(questions: int) -> None:
    """Than the best scales, an even split, and never below the Gaussian bound; always the same."""
    rows, rng = vectors(questions), np.random.default_rng(3)
    sums = noise.released_sums(rows, names(rows))
    found = total(sums, rows)
    scales = noise.best_diagonal(rows)
    assert 1 - 1e-3 < (scales @ np.abs(rows)).max() <= 1
    diagonal = float((scales**-2).sum())
    for spread in (1e-3, 0.1, 2.0):
        others = scales * rng.lognormal(0, spread, (200, questions))
        others /= (others @ np.abs(rows)).max(axis=1, keepdims=True)
        assert float((others**-2).sum(axis=1).min()) >= diagonal * (1 - 2e-4)
    even = float(((questions * np.abs(rows).max(axis=1)) ** 2).sum())
    assert found <= min(diagonal, even) * (1 + 1e-6)
    assert found >= noise.gaussian_noise(rows).lower_bound
    np.testing.assert_array_equal(sums, noise.released_sums(rows, names(rows)))


def test_dependent_questions_are_free() -> None:
    """One that is the mean of two others adds no noise to them."""
    rows = np.array([[0.5, -0.5, 0.0, 0.0], [0.0, 0.0, 2.0, -1.0]])
    both = np.concatenate([rows, rows.mean(axis=0, keepdims=True)])
    alone = total(noise.released_sums(rows, names(rows)), rows)
    assert alone == pytest.approx(0.25 + 4, rel=1e-3)
    sums = noise.released_sums(both, names(both))
    assert noise.independent(both, names(both))[0].shape == (3, 2)
    assert total(sums, both) <= 1.3 * alone
    # Rounding errors of a million units are no question of their own.
    both[2] += 1e-13 * np.array([1.0, 1.0, -1.0, 1.0])
    assert noise.independent(both, names(both))[0].shape == (3, 2)


@pytest.mark.parametrize("apart", [1e-10, 1e-12])
def test_what_nearly_depends_is_refused(apart: float) -> None:
    """Neither dropped in silence nor answered in rounding errors."""
    rows = np.random.default_rng(1).normal(size=(3, 30))
    rows[2] = rows[0] + rows[1] + apart * rows[2]
    with pytest.raises(InputError, match=r"nearly depend on others.*leave"):
        noise.released_sums(rows, names(rows))


def test_few_kinds_decide_the_noise_of_many() -> None:
    """Of 20,000; the noise is that of all of them, to 1%."""
    random, n = np.random.default_rng(4), 20_000
    rows = random.normal(0, 1, (3, n)) * np.array([[1.0], [0.1], [5.0]])
    chosen = noise.extremes(rows)
    assert len(chosen) < 4200
    assert {int(np.abs(row).argmax()) for row in rows} <= set(chosen.tolist())
    sums = noise.released_sums(rows, names(rows))
    few = noise.released_sums(rows[:, chosen], names(rows))
    assert total(sums, rows) <= 1.01 * total(few, rows)
    few = rows[:, :9] * (np.arange(9) > 0)
    assert len(noise.extremes(np.tile(np.hstack([few, few[:, :1] * -1.0]), 5000))) == 9


def test_parts_are_disjoint_or_none() -> None:
    """Each unit moves one of them, and all questions follow from them."""
    random = np.random.default_rng(6)
    for _ in range(30):
        group, own = random.permutation(np.arange(12) % 4), random.uniform(1, 2, 12)
        pairs = [random.permutation(4)[:2] for _ in range(3)]
        sizes = random.uniform(0.1, 9, (3, 2))
        rows = np.array(
            [
                own * (a * (group == x) - b * (group == y))
                for (x, y), (a, b) in zip(pairs, sizes, strict=True)
            ]
        )
        parts = noise.disjoint_parts(rows)
        assert parts is not None
        assert ((parts > 0).sum(axis=0) <= 1).all()
        assert np.allclose(rows @ np.linalg.pinv(parts) @ parts, rows)
        assert parts.max(axis=1) == pytest.approx(np.ones(len(parts)))


def test_the_gradient_is_that_of_the_objective() -> None:
    """Central differences, at a point without ties."""
    rng = np.random.default_rng(4)
    inside, point = rng.normal(size=(3, 40)), rng.normal(size=12)
    _, slope = noise._objective(point, inside, 20, (4, 3))
    for at in range(12):
        step = np.eye(12)[at] * 1e-6
        up, down = (noise._objective(point + s, inside, 20, (4, 3))[0] for s in (step, -step))
        assert (up - down) / 2e-6 == pytest.approx(slope[at], abs=1e-6)
