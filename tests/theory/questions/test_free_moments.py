"""Linear numbers and second moments together, over every unit, outcome and move."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import free_moments as free
from shoal.theory.questions.gaussian_strategy import least_covariance
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.weights import arm_means, effect, scaled, stack

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.property

Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]
EPSILON, WIDTH = 0.7, 3.0
ARM, CLUSTER = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
SUMS = np.array([[1.0, 0, 2, 0, 0, 1], [0, 0.5, 0, 0.25, 1, 0]])


def moves(levels: int) -> Iterator[tuple[float, float]]:
    """Every pair of outcomes, counted from the middle of the range."""
    outcomes = np.linspace(-WIDTH / 2, WIDTH / 2, levels).tolist()
    return itertools.product(outcomes, outcomes)


def questions() -> Floats:
    """Sensitivity vectors of an effect and of the means of two arms."""
    return scaled(stack([effect(ARM, CLUSTER), arm_means(ARM)]), WIDTH)


def most_loss(levels: int, scales: Floats, sums: Floats = SUMS) -> float:
    """The most that any unit loses by the Laplace numbers, over all of its outcomes."""
    vectors = questions()
    released = laplace_strategy(vectors).released @ vectors / WIDTH
    most = 0.0
    for unit, (old, new) in itertools.product(range(6), moves(levels)):
        linear = EPSILON * float(np.abs(released[:, unit] * (new - old)).sum())
        moments = float((sums[:, unit] * abs(new**2 - old**2) / scales).sum())
        most = max(most, linear + moments)
    return most


@pytest.mark.parametrize("levels", [2, 3, 4, 5])
def test_second_moments_beside_linear_questions_cost_nothing(levels: int) -> None:
    """Every unit and pair of outcomes; the loss is epsilon to 1e-9, never above."""
    scales = free.laplace_scales(SUMS, WIDTH, EPSILON)
    found = most_loss(levels, scales)
    assert EPSILON * (1 - 1e-9) <= found <= EPSILON


def test_a_fifth_less_noise_on_the_moments_costs_something() -> None:
    """The move by 9/10 of the range would lose more than epsilon."""
    scales = free.laplace_scales(SUMS, WIDTH, EPSILON) * 0.8
    assert most_loss(11, scales) > EPSILON * 1.01
    assert most_loss(5, scales * 0.8) > EPSILON * 1.01


def test_overlapping_sums_share_the_loss() -> None:
    """Three sums over the same units together are free, and just so."""
    sums = np.array([[1.0] * 6, [1, 1, 1, 0, 0, 0], [0, 3, 2, 1, 0, 0]])
    scales = free.laplace_scales(sums, WIDTH, EPSILON)
    share = (sums / scales[:, None]).sum(axis=0).max() * WIDTH**2 / EPSILON
    assert 1 - 1e-12 <= share <= 1
    assert most_loss(11, scales, sums) <= EPSILON
    assert most_loss(41, scales * 0.8, sums) > EPSILON * 1.001
    disjoint = free.laplace_scales(SUMS, WIDTH, EPSILON)
    np.testing.assert_allclose(disjoint, WIDTH**2 * np.array([2, 1]) / EPSILON)


def test_gaussian_moments_cost_nothing_either() -> None:
    """Rho of every move, attained near 1/phi of the range; a fifth less noise fails."""
    rho, vectors = 0.3, questions()
    inverse = np.linalg.pinv(least_covariance(vectors).covariance) * 2 * rho
    per_unit = np.einsum("ki,kl,li->i", vectors, inverse, vectors) / WIDTH**2
    moved = np.linspace(0, WIDTH, 100_001)
    golden = (math.sqrt(5) - 1) / 2
    for sums in (SUMS, np.array([[1.0] * 6, [1, 1, 1, 0, 0, 0]])):
        deviations = free.gaussian_deviations(sums, WIDTH, rho)
        for less, holds in ((1.0, True), (0.8, False)):
            rate = (sums**2 / (less * deviations[:, None]) ** 2).sum(axis=0)
            # An outcome at an end of the range moves its square by d (U - d).
            loss = per_unit * moved[:, None] ** 2 + rate * (moved * (WIDTH - moved))[:, None] ** 2
            assert bool(loss.max() / 2 <= rho) is holds
    alone = free.loss_of_move(np.array([golden]), 1.0, 1.0)
    assert alone[0] == pytest.approx(1 - (1 - golden) ** 2)
    bound = free.gaussian_deviations(np.array([[1.0]]), 1.0, 0.5)[0]
    assert golden**2 + (golden * (1 - golden) / bound) ** 2 == pytest.approx(1, abs=1e-12)


def test_the_middle_is_needed() -> None:
    """About the lower end of the range the second moment would double the loss."""
    scale = free.laplace_scales(np.ones((1, 6)), WIDTH, EPSILON)[0]
    assert EPSILON + WIDTH**2 / scale == pytest.approx(2 * EPSILON)


def test_the_loss_of_a_move() -> None:
    """Never above that of the questions, unless there is too little noise."""
    part = np.linspace(0, 1, 1001)
    assert float(free.loss_of_move(part, 0.5, 0.5).max()) <= 0.5
    assert float(free.loss_of_move(part, 0.5, 0.6).max()) > 0.5


@pytest.mark.parametrize(
    "weights",
    [
        np.array([[-1.0, 1.0]]),
        np.zeros((1, 2)),
        np.zeros((0, 2)),
        np.ones(2),
        np.full((1, 2), np.nan),
    ],
)
def test_no_moments_without_weights(weights: Floats) -> None:
    """Weights below 0, empty sums, no numbers."""
    for call in (free.laplace_scales, free.gaussian_deviations):
        with pytest.raises(InputError):
            call(weights, 1.0, 1.0)
