"""Effects whose intervals rest on few responses say so; the others cover."""

import itertools

import numpy as np
import pytest
from scipy import stats

import shoal
from shoal.trials import BestTable, NoisyHistogram, NoisyHorvitzThompson, Space, UniformPrior
from shoal.trials.few_units import FEWEST, kurtosis, units_that_count
from tests.trials.few_units import ENOUGH, THIN, figures

RUNS = 300
FALSE_ALARM = 1e-9


@pytest.mark.statistics
@pytest.mark.parametrize("case", THIN)
def test_intervals_of_few_units_miss_and_warn(case: tuple[int, int, float, int]) -> None:
    """Every effect of an arm of few units, or of few that say yes, warns."""
    covered, warned = figures(*case, RUNS)
    assert warned >= 0.99 * RUNS
    assert covered < 0.97 * RUNS


@pytest.mark.statistics
@pytest.mark.parametrize("case", ENOUGH)
def test_intervals_without_a_warning_cover(case: tuple[int, int, float, int]) -> None:
    """93% at the least, at a false-alarm rate of 1e-9, and warnings are few."""
    covered, warned = figures(*case, RUNS)
    assert warned <= 0.2 * RUNS
    assert covered >= stats.binom.ppf(FALSE_ALARM, RUNS, 0.93)


@pytest.mark.property
def test_units_count_as_much_as_the_variance_of_a_variance_says() -> None:
    """sum_c v_c X_c/n_c with X_c of n_c degrees of freedom has the variance of one with so many."""
    rng = np.random.default_rng(0)
    for clusters, arms in itertools.product((1, 3, 10), (2, 3)):
        sizes = rng.integers(1, 400, (clusters, arms))
        weight = sizes.sum(axis=1) / sizes.sum()
        for arm in range(arms):
            parts = [weight[c] ** 2 / sizes[c, arm] for c in range(clusters)]
            variance = sum(2 * parts[c] ** 2 / sizes[c, arm] for c in range(clusters))
            assert units_that_count(sizes)[arm] == pytest.approx(2 * sum(parts) ** 2 / variance)
            assert units_that_count(sizes)[arm] <= sizes[:, arm].sum() * (1 + 1e-12)
    three = units_that_count(np.array([[3500, 3500], [2997, 3]]))
    assert three[1] < 4


@pytest.mark.oracle
def test_the_kurtosis_is_that_of_scipy() -> None:
    """Of either arm or of both, whichever is largest, with every unit written out."""
    rng = np.random.default_rng(0)
    for clusters, arms, kinds in itertools.product((1, 3), (2, 3), (2, 5)):
        counts = rng.integers(0, 9, (clusters, arms, kinds)) + (np.arange(kinds) < 2)
        values = rng.normal(size=(clusters, 1, kinds)) * np.ones((1, arms, 1))
        for arm in range(1, arms):
            told = [
                [np.repeat(values[c, at], counts[c, at]) for c in range(clusters)]
                for at in (0, arm)
            ]
            both = [np.concatenate(pair) for pair in zip(*told, strict=True)]
            expected = max(
                stats.kurtosis(np.concatenate(each), fisher=False)
                for groups in (*told, both)
                for each in (groups, [group - group.mean() for group in groups])
            )
            assert kurtosis(counts.astype(float), values, arm) == pytest.approx(expected)


@pytest.mark.statistics
def test_differences_of_clusters_hide_no_few_large_outcomes() -> None:
    """1% far from the others within each of two clusters that are far apart."""
    counts = np.array([[[990.0, 10, 0, 0], [50, 0, 0, 0]], [[0, 0, 990, 10], [0, 0, 50, 0]]])
    levels = np.broadcast_to([0.0, 30.0, 70.0, 100.0], counts.shape)
    assert kurtosis(counts, levels, 1) > 90
    assert 100 / kurtosis(counts, levels, 1) < FEWEST


@pytest.mark.unit
def test_equal_responses_count_as_units() -> None:
    """1 where nothing deviates."""
    assert kurtosis(np.array([[[5.0, 0.0], [7.0, 0.0]]]), np.array([[[0.1, 1.0]] * 2]), 1) == 1.0


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", [UniformPrior, BestTable, NoisyHistogram])
def test_a_few_large_outcomes_warn(
    mechanism: type[UniformPrior | BestTable | NoisyHistogram],
) -> None:
    """10 of 3,300 carry the variance; many small ones do not."""
    outcome, rng = np.repeat([0, 1, 100], [1650, 1640, 10]), np.random.default_rng(3)
    arm = rng.permutation(np.repeat([0, 1], [3000, 300]))
    for seed, (levels, warns) in enumerate([((0, 1, 100), True), ((0, 1, 2), False)]):
        told = mechanism(epsilon=8).privatize(
            np.minimum(outcome, levels[-1]), arm, space=Space(levels),
            noise=shoal.Simulated(seed),
        )  # fmt: skip
        assert bool(told.estimate().warning) == warns


@pytest.mark.unit
@pytest.mark.parametrize("mechanism", [NoisyHistogram, NoisyHorvitzThompson])
def test_noisy_means_of_few_units_warn_unless_noise_is_most_of_the_error(
    mechanism: type[NoisyHistogram | NoisyHorvitzThompson],
) -> None:
    """Noise is known exactly, the spread of 10 units is not."""
    outcome, arm = np.arange(310) % 2, np.repeat([0, 1], [300, 10])
    for epsilon, warns in ((20, True), (0.1, False)):
        told = mechanism(epsilon=epsilon).privatize(
            outcome, arm, space=Space.binary(), noise=shoal.Simulated(1)
        )
        assert bool(told.estimate().warning) == warns


@pytest.mark.unit
@pytest.mark.parametrize("mechanism", [UniformPrior, BestTable])
def test_a_warning_is_printed_and_in_the_document(
    mechanism: type[UniformPrior | BestTable],
) -> None:
    """It names the arm of the fewest, and the number that would be enough."""
    arm = np.array(["old"] * 400 + ["new"] * 4 + ["other"] * 400)
    told = mechanism(epsilon=2).privatize(
        np.arange(804) % 2, arm, space=Space.binary(), control="old", noise=shoal.Simulated(1)
    )
    new, other = told.estimate("new"), told.estimate("other")
    assert "arm new" in new.warning
    assert f"fewer than {FEWEST:g}" in str(new)
    assert new.to_document()["warning"] == new.warning
    assert not other.warning
    assert "warning" not in str(other)
