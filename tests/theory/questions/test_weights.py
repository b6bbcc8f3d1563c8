"""Rows of weights against arm means, subgroup by subgroup, and numpy.linalg.lstsq."""

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import weights
from tests.support.loop import loop_over

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(5)
ARM = np.tile([0, 1, 1], 40)
CLUSTER = np.repeat(np.arange(4), [12, 24, 36, 48])
GROUP = np.repeat(np.arange(20), 6) % 2
Y = RNG.normal(size=120)


def by_hand(inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """The stratified effect of some units, from means."""
    total = 0.0
    for cluster in range(4):
        here = inside & np.equal(CLUSTER, cluster)
        part = Y[here & (ARM == 1)].mean() - Y[here & (ARM == 0)].mean()
        total += here.sum() / inside.sum() * part
    return float(total)


def test_effects_and_means_are_those_of_the_arms() -> None:
    """Of all units, of subgroups, of clusters; other arms count in shares only."""
    whole = weights.effect(ARM, CLUSTER)
    assert whole @ Y == pytest.approx(by_hand(np.ones(120, bool)), abs=1e-12)
    found = weights.effects_by(ARM, CLUSTER, GROUP) @ Y
    assert found == pytest.approx([by_hand(np.equal(GROUP, each)) for each in (0, 1)], abs=1e-12)
    each = weights.effects_by(ARM, CLUSTER, CLUSTER) @ Y
    assert np.bincount(CLUSTER) / 120 @ each == pytest.approx(whole @ Y, abs=1e-12)
    assert weights.arm_means(ARM) @ Y == pytest.approx([Y[ARM == 0].mean(), Y[ARM == 1].mean()])
    three = weights.effect(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]))
    assert three.tolist() == [-0.6, 0.6, 0.0, -0.4, 0.4]
    shares = np.array([1.0, 0, 0, 0])
    first = weights.effect(ARM, CLUSTER, shares=shares) @ Y
    assert first == pytest.approx(each[0], abs=1e-12)


def test_regressions_are_those_of_lstsq() -> None:
    """Coefficients with a column of ones and unlike scales, weighted too."""
    for columns in (1, 3, 8):
        design = RNG.normal(size=(120, columns)) * 10.0 ** RNG.integers(-6, 7, columns)
        design[:, 0] = 1
        for precision in (None, RNG.uniform(0.1, 9, 120)):
            root = np.ones(120) if precision is None else np.sqrt(precision)
            scale = np.linalg.norm(design, axis=0)
            wanted = np.linalg.lstsq(design * root[:, None] / scale, Y * root, rcond=None)[0]
            found = weights.regression(design, precision=precision) @ Y
            np.testing.assert_allclose(found * scale, wanted, rtol=0, atol=1e-10)


def test_spikiness_is_that_of_the_definition() -> None:
    """Also of weights whose squares are no floating-point numbers; targets default to norms."""
    rows = RNG.normal(size=(3, 50))
    wanted = np.abs(rows).max(axis=1) / np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(weights.spikiness(rows), wanted, rtol=1e-14)
    np.testing.assert_allclose(weights.spikiness(rows * 1e-200), wanted, rtol=1e-14)
    vectors = weights.scaled(rows, 3.0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 3.0)
    np.testing.assert_allclose(
        weights.scaled(rows, 3.0, np.array([1.0, 2.0, 3.0])), rows * [[3.0], [1.5], [1.0]]
    )
    assert weights.widening(0.1, 3.0, 0.5) == pytest.approx((1 + 2 * 0.01 * 9 / 0.25) ** 0.5)


ones = np.ones((3, 1))


@loop_over(
    "call",
    [
        lambda: weights.regression(np.column_stack([np.ones(9), np.arange(9.0), np.arange(9.0)])),
        lambda: weights.regression(np.column_stack([np.ones(9), np.zeros(9)])),
        lambda: weights.regression(np.column_stack([np.ones(9), np.full(9, 1e-9)])),
        lambda: weights.regression(np.ones((2, 3))),
        lambda: weights.regression(np.full((3, 1), np.nan)),
        lambda: weights.regression(ones, precision=np.zeros(3)),
        lambda: weights.effect(np.array([0, 0, 1]), np.array([0, 1, 1])),
        lambda: weights.effect(np.array([0, 1, -1]), np.array([0, 0, 0])),
        lambda: weights.effect(np.array([0, 1]), np.array([0, 0]), shares=np.array([-1.0])),
        lambda: weights.effects_by(np.array([0, 1, 1]), np.array([0, 0, 0]), np.array([0, 0, 1])),
        lambda: weights.effects_by(np.array([0, 1]), np.array([0, 0]), np.array([1, 1])),
        lambda: weights.arm_means(np.array([0, 2])),
        lambda: weights.stack([]),
        lambda: weights.stack([np.ones(3), np.ones(4)]),
        lambda: weights.stack([np.eye(3), np.ones(3)]),
        lambda: weights.stack([np.zeros(3)]),
        lambda: weights.stack([np.array([1.0, np.inf])]),
        lambda: weights.scaled(ones.T, 1.0, np.array([0.0])),
    ],
)
def test_what_cannot_be_asked_is_refused(call: object) -> None:
    """Collinear columns, empty cells, more questions than units, no numbers."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
