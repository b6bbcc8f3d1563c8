"""Every mechanism: no bias, intervals that cover, and warnings where they cannot."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from shoal.privacy.noise import Simulated
from shoal.trials import Expected, Experiment, Space
from shoal.trials.inference import FEWEST, kurtosis, units_that_count
from tests.trials.experiments import MECHANISMS, SETTINGS, Population, measure

pytestmark = pytest.mark.statistics

ALARM = 1e-9
RUNS = 100


def most_bias(runs: int) -> float:
    """Most standard errors that a mean of so many runs without bias is off, at 1e-9."""
    return float(stats.t.isf(ALARM / 2, runs - 1))


def plausible(covered: int, runs: int, high: float) -> bool:
    """Whether a coverage from 94% to `high` explains what was seen, at 1e-9."""
    few, many = stats.binom.cdf(covered, runs, 0.94), stats.binom.sf(covered - 1, runs, high)
    return bool(min(few, many) > ALARM / 2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_effects_are_unbiased_and_covered(mechanism: str) -> None:
    """Fresh assignments; where effects differ within clusters intervals cover more often."""
    for seed, (make, epsilon, constant) in enumerate(SETTINGS.values()):
        population = make()
        found = measure(population, population.plan(mechanism, epsilon), RUNS, seed=seed)
        assert (np.abs(found.bias) <= most_bias(RUNS)).all()
        assert (np.abs(found.bias + np.sqrt(RUNS)) > most_bias(RUNS)).all()
        # Questions take all units of an arm as alike, so that differences of clusters count, too.
        high = 0.965 if constant and mechanism != "questions" else 1.0
        for covered in found.covered.tolist():
            assert plausible(covered, RUNS, high)


# Units of control and of the arm, the share of yes in both, and epsilon.
THIN = ((300, 10, 0.5, 2), (1000, 30, 0.05, 6))
ENOUGH = ((300, 40, 0.5, 2), (1000, 200, 0.15, 6))


@pytest.mark.parametrize("case", [*THIN, *ENOUGH])
def test_intervals_of_few_units_warn_and_the_others_cover(
    case: tuple[int, int, float, int],
) -> None:
    """Every effect of an arm of few units, or of few that say yes; 93% of the others."""
    control, arm, share, epsilon = case
    yes = (np.arange(control + arm) < round((control + arm) * share)).astype(float)
    sizes = np.array([[control, arm]])
    population = Population(Space.binary(), sizes, np.column_stack([yes, yes]))
    found = measure(population, population.plan("uniform", epsilon), 300)
    covered, warned = int(found.covered[0]), int(found.warned.sum())
    if case in THIN:
        assert warned >= 297
    else:
        assert warned <= 60
        assert covered >= stats.binom.ppf(ALARM, 300, 0.93)


def test_units_count_as_much_as_the_variance_of_a_variance_says() -> None:
    """sum_c v_c X_c/n_c with X_c of n_c degrees of freedom has the variance of one with so many."""
    rng = np.random.default_rng(0)
    for clusters, arms in itertools.product((1, 10), (2, 3)):
        sizes = rng.integers(1, 400, (clusters, arms))
        weight = sizes.sum(axis=1) / sizes.sum()
        for arm in range(arms):
            parts = weight**2 / sizes[:, arm]
            variance = float((2 * parts**2 / sizes[:, arm]).sum())
            assert units_that_count(sizes)[arm] == pytest.approx(2 * parts.sum() ** 2 / variance)
    assert units_that_count(np.array([[3500, 3500], [2997, 3]]))[1] < 4


def test_the_kurtosis_is_that_of_scipy() -> None:
    """Of either arm or of both, whichever is largest, with every unit written out."""
    rng = np.random.default_rng(0)
    for clusters, kinds in itertools.product((1, 3), (2, 5)):
        counts = rng.integers(0, 9, (clusters, 2, kinds)) + (np.arange(kinds) < 2)
        values = rng.normal(size=(clusters, 1, kinds)) * np.ones((1, 2, 1))
        told = [[np.repeat(values[c, at], counts[c, at]) for c in range(clusters)] for at in (0, 1)]
        both = [np.concatenate(pair) for pair in zip(*told, strict=True)]
        expected = max(
            stats.kurtosis(np.concatenate(each), fisher=False)
            for groups in (*told, both)
            for each in (groups, [group - group.mean() for group in groups])
        )
        assert kurtosis(counts.astype(float), values, 1) == pytest.approx(expected)
    # 1% far from the others within each of two clusters that are far apart.
    counts = np.array([[[990, 10, 0, 0], [50, 0, 0, 0]], [[0, 0, 990, 10], [0, 0, 50, 0]]])
    levels = np.broadcast_to([0.0, 30.0, 70.0, 100.0], counts.shape)
    assert 100 / kurtosis(counts.astype(float), levels, 1) < FEWEST


def test_a_warning_names_the_arm_of_the_fewest() -> None:
    """And the number that would be enough; it is in text and document."""
    arm = np.array(["old"] * 400 + ["new"] * 4 + ["other"] * 400)
    study = Experiment(arm, control="old")
    plan = study.table(Space.binary(), 2)
    found = plan.release(np.arange(804) % 2, study, noise=Simulated(1)).estimate()
    assert "arm new" in found["new"].warning
    assert f"fewer than {FEWEST:g}" in str(found["new"])
    assert found["new"].to_document()["warning"] == found["new"].warning
    assert not found["other"].warning


@pytest.mark.parametrize("mechanism", ["uniform", "best", "histogram"])
def test_forecasts_are_the_errors_that_releases_have(mechanism: str) -> None:
    """Normal outcomes as expected, within clusters and between: standard errors to a tenth."""
    random, runs = np.random.default_rng(6), 300
    space, expected = Space.counts(0, 10), Expected(5, 2, between=0.3)
    home = np.repeat(np.arange(20), 60)
    own = 2 * math.sqrt(0.7) * random.normal(size=1200)
    outcome = 5 + 2 * math.sqrt(0.3) * random.normal(size=20)[home] + own
    control = np.clip(np.rint(outcome), 0, 10)
    population = Population(space, np.full((20, 2), 30), np.column_stack([control, control]))
    study = population.study
    plan = (
        study.histogram(space, 2)
        if mechanism == "histogram"
        else study.table(space, 2, mechanism=mechanism, expected=expected)
    )
    found, forecast = measure(population, plan, runs), study.forecast(space, 2, expected=expected)
    name = {"uniform": "uniform_prior", "best": "best_table", "histogram": "noisy_histogram"}
    (error, most) = forecast[name[mechanism]].standard_error
    assert error == most
    # A deviation of 300 runs is within 27% but for 1e-9; its expectation is known to a tenth.
    assert float(found.error.std()) == pytest.approx(error, rel=0.3)
    assert float(np.sqrt((found.stated**2).mean())) == pytest.approx(error, rel=0.1)
