"""Trials where the caller has told NumPy to raise on what it otherwise rounds to 0."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shoal import trials
from shoal.trials.mechanisms.base import Mechanism
from tests.support.loop import loop_over

pytestmark = [pytest.mark.unit, pytest.mark.full]

_N = 600
SPACES = {
    "two": trials.Space.binary(),
    "huge": trials.Space.bins(-1e50, 1e50, 9),
    "tiny": trials.Space.bins(0, 1e-49, 5),
    "many": trials.Space.counts(0, 255),
}
OUTCOMES = {
    "small": np.full(_N, 5e-324),
    "mixed": np.resize([1.7e308, -1.7e308, 5e-324, -0.0], _N),
    "plain": np.arange(_N) % 7 - 3.0,
}
FAMILIES = (
    trials.ClusterDP,
    trials.ClusterFree,
    trials.UniformPrior,
    trials.NoisyHorvitzThompson,
    trials.NoisyHistogram,
)


@pytest.fixture(autouse=True)
def _raising() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


@loop_over("outcomes", OUTCOMES)
@loop_over("space", SPACES)
@loop_over("family", FAMILIES)
def test_no_outcome_decides_whether_numpy_raises(family: Any, space: str, outcomes: str) -> None:
    """Nor do levels: a number below all others is 0, whatever the caller asks of NumPy."""
    mechanism: Mechanism = family(epsilon=1)
    made = mechanism.privatize(
        OUTCOMES[outcomes], np.arange(_N) % 2, np.arange(_N) // 60, space=SPACES[space]
    )
    assert len(made.effects()) == 1
    assert made.table().num_rows > 0
    if family in FAMILIES[:3]:
        assert made.priors().num_rows > 0


@pytest.mark.parametrize("space", SPACES)
def test_a_plan_says_the_same_whatever_numpy_is_told(space: str) -> None:
    """Of huge and of tiny levels."""
    found = trials.plan(_N, SPACES[space], epsilon=1, clusters=3)
    with np.errstate(under="ignore"):
        assert found.table() == trials.plan(_N, SPACES[space], epsilon=1, clusters=3).table()
    assert len(found.against(epsilon=["0.01", 9])) > len(found.table())
