"""Laplace strategies: feasible, with their bounds, never wider than simpler ones."""

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import laplace_strategy as strategy
from shoal.theory.questions.laplace_strategy import diagonal_strategy
from shoal.theory.questions.laplace_strategy import laplace_strategy as full_strategy
from shoal.theory.questions.weights import effects_by, scaled, stack
from tests.theory.questions.test_gaussian_strategy import UNLIKE, clock, nearly, twelve

pytestmark = pytest.mark.property


@pytest.mark.parametrize("seed", range(5))
def test_the_best_parts_are_certified(seed: int) -> None:
    """No unit loses more than 1, and no parts have a smaller total than the bound."""
    vectors = twelve(300, seed)[: 2 + 2 * seed]
    found = diagonal_strategy(vectors)
    size, rng = np.abs(vectors), np.random.default_rng(seed)
    assert 1 - 1e-3 < float((found.scales @ size).max()) <= 1
    assert 0 <= found.gap <= 1.01e-4
    for spread in (1e-3, 0.1, 2.0):
        others = found.scales * rng.lognormal(0, spread, (500, len(vectors)))
        others /= (others @ size).max(axis=1, keepdims=True)
        assert float((others**-2).sum(axis=1).min()) >= found.lower_bound


@pytest.mark.parametrize("questions", [2, 5])
def test_sums_are_no_worse_than_parts_and_an_even_split(questions: int) -> None:
    """Feasible, unbiased, between its lower bound and every simpler strategy."""
    vectors = twelve(300)[:questions]
    found = full_strategy(vectors)
    losses = np.abs(found.released @ vectors).sum(axis=0)
    assert 1 - 1e-6 < float(losses.max()) <= 1
    np.testing.assert_allclose(found.recover @ found.released @ vectors, vectors, atol=1e-10)
    even = float(((questions * np.abs(vectors).max(axis=1)) ** 2).sum())
    assert found.total <= min(found.diagonal.total * (1 + 1e-6), even)
    assert found.lower_bound <= found.total
    assert found.ratio == pytest.approx(found.total / found.lower_bound)
    assert np.trace(found.covariance(0.5)) == pytest.approx(8 * found.total)
    again = full_strategy(vectors)
    np.testing.assert_array_equal(found.released, again.released)


def test_dependent_questions_are_answered_too() -> None:
    """An effect that is the mean of two others: its row is free, and the three agree."""
    arm, group = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    parts = effects_by(arm, np.zeros(40, np.int64), group)
    vectors = scaled(stack([parts, parts.sum(axis=0) / 2]), 1.0, np.ones(3))
    found = full_strategy(vectors)
    np.testing.assert_allclose(found.recover @ found.released @ vectors, vectors, atol=1e-12)
    null = np.array([0.5, 0.5, -1.0])
    assert float(np.abs(null @ found.recover).max()) < 1e-12
    assert float(np.abs(found.released @ vectors).sum(axis=0).max()) <= 1


@pytest.mark.parametrize("which", ["one is tiny", "Unix seconds", "Unix seconds, alike"])
def test_questions_of_unlike_sizes_are_answered(which: str) -> None:
    """No question is dropped because another moves further."""
    vectors = UNLIKE[which]
    found = full_strategy(vectors)
    answered = found.recover @ found.released @ vectors
    np.testing.assert_array_less(
        np.abs(answered - vectors).max(axis=1), 1e-9 * np.abs(vectors).max(axis=1)
    )
    assert found.lower_bound <= found.total <= found.diagonal.total * (1 + 1e-6)
    losses = np.abs(found.released @ vectors).sum(axis=0)
    assert 1 - 1e-6 < float(losses.max()) <= 1


def test_a_public_mean_of_coefficients_is_answered() -> None:
    """The fitted mean of a regression on a clock: without noise, the mean of the outcomes."""
    rows = clock(60, 1.7e9, 2.6e6)
    found = full_strategy(scaled(rows, 1.0, np.ones(3)))
    outcomes = np.random.default_rng(3).random(60)
    answers = found.recover @ (found.released @ (rows @ outcomes))
    rng = np.random.default_rng(0)
    times = 1.7e9 + np.floor(rng.random(60) * 2.6e6)
    fitted = np.array([1, 0.5, times.mean()]) @ answers
    assert fitted == pytest.approx(outcomes.mean(), rel=1e-6)


@pytest.mark.parametrize("apart", [1e-10, 1e-12])
def test_what_nearly_depends_is_refused(apart: float) -> None:
    """Neither dropped in silence nor answered in rounding errors."""
    with pytest.raises(InputError, match=r"nearly depend on others.*leave"):
        full_strategy(nearly(apart))


def test_disjoint_questions_cost_no_more_than_one() -> None:
    """Each has the noise that it would have alone."""
    vectors = np.array([[0.5, -0.5, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]])
    found = full_strategy(vectors)
    noise = np.diag(found.recover @ found.recover.T)
    np.testing.assert_allclose(noise, [0.25, 4.0], rtol=1e-3)


def test_the_gradient_is_that_of_the_objective() -> None:
    """Central differences, at a point without ties."""
    rng = np.random.default_rng(4)
    inside, point = rng.normal(size=(3, 40)), rng.normal(size=12)
    _, slope = strategy._objective(point, inside, 20, (4, 3))
    for at in range(12):
        step = np.eye(12)[at] * 1e-6
        up, down = (strategy._objective(point + s, inside, 20, (4, 3))[0] for s in (step, -step))
        assert (up - down) / 2e-6 == pytest.approx(slope[at], abs=1e-6)
