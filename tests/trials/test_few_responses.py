"""Effects whose intervals rest on few responses say so; the others cover."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from shoal.privacy.noise import Simulated
from shoal.trials import BestTable, Space, UniformPrior
from shoal.trials.few_responses import FEWEST, units_off
from tests.trials.few_responses import ENOUGH, THIN, figures

RUNS = 300
FALSE_ALARM = 1e-9


@pytest.mark.statistics
@pytest.mark.parametrize("case", THIN)
def test_intervals_of_few_responses_miss_and_warn(case: tuple[int, int, float, int]) -> None:
    """G-TRIAL-COVERAGE: every effect of an arm of few units, or of few that say yes, warns."""
    covered, warned = figures(*case, RUNS)
    assert warned >= 0.99 * RUNS
    assert covered < 0.97 * RUNS


@pytest.mark.statistics
@pytest.mark.parametrize("case", ENOUGH)
def test_intervals_without_a_warning_cover(case: tuple[int, int, float, int]) -> None:
    """G-TRIAL-COVERAGE: 93% at the least, at a false-alarm rate of 1e-9, and warnings are few."""
    covered, warned = figures(*case, RUNS)
    assert warned <= 0.2 * RUNS
    assert covered >= stats.binom.ppf(FALSE_ALARM, RUNS, 0.93)


@pytest.mark.property
def test_units_count_as_much_as_the_variance_of_a_mean_says() -> None:
    """The variance of an arm's mean is that of a unit over the units that count."""
    rng = np.random.default_rng(0)
    for clusters, arms, kinds in itertools.product((1, 3, 10), (2, 3), (2, 5)):
        counts = rng.integers(1, 40, (clusters, arms, kinds))
        sizes = counts.sum(axis=2)
        weight = sizes.sum(axis=1) / sizes.sum()
        for arm in range(arms):
            variance = sum(weight[c] ** 2 / sizes[c, arm] for c in range(clusters))
            share = counts[:, arm].sum(axis=0).max() / counts[:, arm].sum()
            assert units_off(counts)[arm] == pytest.approx((1 - share) / variance)
            assert units_off(counts)[arm] <= sizes[:, arm].sum() * (1 + 1e-12)


@pytest.mark.unit
@pytest.mark.parametrize("mechanism", [UniformPrior, BestTable])
def test_a_warning_is_printed_and_in_the_document(
    mechanism: type[UniformPrior | BestTable],
) -> None:
    """G-TRIAL-COVERAGE: it names the arm with the fewest, and the number that would be enough."""
    arm = np.array(["old"] * 400 + ["new"] * 4 + ["other"] * 400)
    told = mechanism(epsilon=2).privatize(
        np.arange(804) % 2, arm, space=Space.binary(), control="old", noise=Simulated(1)
    )
    new, other = told.estimate("new"), told.estimate("other")
    assert "arm new" in new.warning
    assert f"fewer than {FEWEST:g}" in str(new)
    assert new.to_document()["warning"] == new.warning
    assert not other.warning
    assert "warning" not in str(other)
