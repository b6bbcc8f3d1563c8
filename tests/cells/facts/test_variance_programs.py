"""Optimal plans of a single cell's variance against all thresholds of a fine grid."""

import numpy as np

import shoal
from tests.support.loop import loop_over

_RNG = np.random.default_rng(0)
CELLS = {
    "geometric": _RNG.geometric(0.1, 60).tolist(),
    "heavy tail": np.minimum(_RNG.zipf(1.5, 100), 1000).tolist(),
    "three heavy users": [100] * 3 + [1] * 100,
    "twenty users": _RNG.geometric(0.05, 20).tolist(),
}


def by_threshold(counts: list[int], epsilon: float) -> float:
    """The least error of weights min(v, t): docs/theory/cells.md#programs-with-a-variance."""
    share = np.array(counts) / sum(counts)
    w = np.minimum(share, np.geomspace(share.min() / 8, share.max(), 2000)[:, None])
    mass = w.sum(axis=1, keepdims=True)
    missing = 1 - mass[:, 0]
    bias = np.where(missing < 0.5, 2 * missing * (1 - missing), 0.5)
    wide, narrow = (1 - 2 * w + mass) ** 2 / (1 - w), 1 + (mass - w) ** 2 / (w * (1 - w))
    moved = w * np.where(mass >= 2 * w, wide, narrow)
    return min(0.5, float((bias + moved.max(axis=1) / epsilon).min()))


def plan(counts: list[int], epsilon: float, *statistics: str) -> shoal.Plan:
    """Of one cell."""
    public = shoal.Counts.from_counts(range(len(counts)), [0] * len(counts), counts)
    return shoal.plan(
        public,
        bounds=(0, 1),
        epsilon=epsilon,
        method="optimal",
        statistics=list(statistics),
        uninformative="keep",
    )


@loop_over("counts", CELLS.values())
def test_no_threshold_of_a_grid_is_much_better(counts: list[int]) -> None:
    """Rounds of slopes alone err up to half as much again in these cells."""
    found, least = plan(counts, 0.5, "variance"), by_threshold(counts, 0.5)
    assert found.gap is not None
    assert found.relative_error[0] <= least * 1.01 + 1e-3
    assert least >= found.relative_error[0] / (1 + found.gap) - 1e-3


def test_a_constant_is_judged_by_its_error() -> None:
    """Parts that are rounded to nothing cost nothing: they are no better than half the ranges."""
    found = plan(CELLS["heavy tail"], 1.0, "mean", "variance")
    assert found.relative_error.sum() < 0.95
    assert found.epsilon > 0.99
