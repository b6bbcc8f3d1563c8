"""Every mechanism: no bias, intervals that cover, and warnings where they cannot."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.privacy.noise import Simulated
from shoal.trials import ClusterPrior, Domain, Expected, Experiment
from shoal.trials.effect_estimation import FEWEST, kurtosis, units_that_count
from shoal.trials.plan import Plan

pytestmark = pytest.mark.statistics

Floats = NDArray[np.float64]

PRIORS = ("cluster_prior", "cluster_prior, pooled")
MECHANISMS = ("uniform_prior", *PRIORS, "histogram", "best_table", "questions")


@dataclass(frozen=True, eq=False)
class Population:
    """Units in the order of their clusters, with what each would do under every arm.

    Attributes:
        domain: Levels of the outcome.
        sizes: Units of each cell, clusters x arms, control first.
        potential: Outcomes, units x arms.
    """

    domain: Domain
    sizes: NDArray[np.int64]
    potential: Floats

    @cached_property
    def study(self) -> Experiment:
        """The public side, the same in every run: who is treated is in the order of outcomes."""
        clusters, arms = self.sizes.shape
        cell = np.repeat(np.arange(clusters * arms), self.sizes.ravel())
        return Experiment(cell % arms, cell // arms, control=0)

    @property
    def effects(self) -> Floats:
        """What is estimated, one number for each arm but control."""
        return np.asarray((self.potential[:, 1:] - self.potential[:, :1]).mean(axis=0))

    def outcomes(self, random: np.random.Generator) -> Floats:
        """Observed after complete randomisation in each cluster, in the study's order."""
        home = np.repeat(np.arange(len(self.sizes)), self.sizes.sum(axis=1))
        order = np.argsort(home + random.random(len(home)))
        arm = self.study.design.cell_of_unit % self.sizes.shape[1]
        return np.asarray(self.potential[order, arm])

    def plan(self, mechanism: str, epsilon: float, floor: float = 0.05, noise: float = 4.0) -> Plan:
        """A plan by the name of its mechanism."""
        if mechanism == "histogram":
            return self.study.histogram(self.domain, epsilon)
        if mechanism == "questions":
            return self.study.ask().effect().plan(self.domain, epsilon)
        kind: Any = mechanism
        if mechanism.startswith("cluster"):
            kind = ClusterPrior(floor, noise, pooled=mechanism == PRIORS[1])
        return self.study.table(self.domain, epsilon, mechanism=kind)


@dataclass(frozen=True, eq=False)
class Figures:
    """What many runs gave, runs x effects: errors, half widths of 95% intervals, stated errors."""

    error: Floats
    half: Floats
    stated: Floats
    warned: NDArray[np.bool_]

    @property
    def bias(self) -> Floats:
        """Mean error, in standard errors of that mean."""
        spread = self.error.std(axis=0, ddof=1)
        return np.asarray(self.error.mean(axis=0) / spread * np.sqrt(len(self.error)))

    @property
    def covered(self) -> NDArray[np.int64]:
        """How many intervals hold the effect."""
        return np.asarray((np.abs(self.error) <= self.half).sum(axis=0))


def measure(population: Population, plan: Plan, runs: int, seed: int = 0) -> Figures:
    """Errors and intervals of many runs, each a new assignment and a new draw."""
    random, rows = np.random.default_rng(seed), []
    for run in range(runs):
        drawn = plan.respond(population.outcomes(random), Simulated(run))
        for answer, truth in zip(plan.read(drawn, 0.95), population.effects, strict=True):
            here = getattr(answer, "finite_population", answer)
            half = (here.interval[1] - here.interval[0]) / 2
            warned = bool(getattr(answer, "warning", ""))
            rows.append((answer.value - truth, half, here.standard_error, warned))
    error, half, stated, warned = np.array(rows).reshape(runs, -1, 4).transpose(2, 0, 1)
    return Figures(error, half, stated, warned.astype(bool))


def binary() -> Population:
    """Thirty clusters of 10 to 200, a third treated in some: no effect, or 1 in every fifth."""
    random = np.random.default_rng(1)
    units = np.rint(np.geomspace(10, 200, 30)).astype(np.int64)
    treated = units // np.where(np.arange(30) % 2, 2, 3)
    home = np.repeat(np.arange(30), units)
    rate = np.where(np.arange(30) % 5, random.uniform(0.05, 0.6, 30), 0.0)
    control = (random.random(len(home)) < rate[home]).astype(np.float64)
    potential = np.column_stack([control, control + (home % 5 == 0)])
    return Population(Domain.binary(), np.column_stack([units - treated, treated]), potential)


def counts() -> Population:
    """Counts from 0 to 8 in twelve clusters of 24 to 120, effects from -1 to 3 unit by unit."""
    random = np.random.default_rng(2)
    units = np.rint(np.geomspace(24, 120, 12)).astype(np.int64)
    home = np.repeat(np.arange(12), units)
    control = random.poisson(random.uniform(0.5, 3.0, 12)[home])
    lift = random.choice([-1, 0, 1, 3], len(home), p=[0.1, 0.4, 0.3, 0.2])
    potential = np.clip(np.column_stack([control, control + lift]), 0, 8).astype(np.float64)
    sizes = np.column_stack([units - units // 4, units // 4])
    return Population(Domain.counts(0, 8), sizes, potential)


def continuous() -> Population:
    """Numbers from 0 to 100 on 11 bins, rounded at random; three arms, three clusters."""
    random = np.random.default_rng(3)
    sizes = np.array([[40, 20, 30], [80, 60, 60], [150, 120, 60]])
    home = np.repeat(np.arange(3), sizes.sum(axis=1))
    control = 10 + 75 * random.beta(1 + home, 2.0)
    potential = np.column_stack([control, control + 12.5, control - 8.25])
    return Population(Domain.bins(0, 100, 11), sizes, potential)


# Of each population, the loss of an outcome, and whether effects are the same within clusters.
SETTINGS: dict[str, tuple[Callable[[], Population], float, bool]] = {
    "binary": (binary, 1.5, True),
    "counts": (counts, 3.0, False),
    "continuous": (continuous, 2.5, True),
}

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
    population = Population(Domain.binary(), sizes, np.column_stack([yes, yes]))
    found = measure(population, population.plan("uniform_prior", epsilon), 300)
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
    plan = study.table(Domain.binary(), 2)
    found = plan.release(np.arange(804) % 2, study, noise=Simulated(1)).estimate()
    assert "arm new" in found["new"].warning
    assert f"fewer than {FEWEST:g}" in str(found["new"])
    assert found["new"].to_document()["warning"] == found["new"].warning
    assert not found["other"].warning


@pytest.mark.parametrize("mechanism", ["uniform_prior", "best_table", "histogram"])
def test_forecasts_are_the_errors_that_releases_have(mechanism: str) -> None:
    """Normal outcomes as expected, within clusters and between: standard errors to a tenth."""
    random, runs = np.random.default_rng(6), 300
    domain, expected = Domain.counts(0, 10), Expected(5, 2, between=0.3)
    home = np.repeat(np.arange(20), 60)
    own = 2 * math.sqrt(0.7) * random.normal(size=1200)
    outcome = 5 + 2 * math.sqrt(0.3) * random.normal(size=20)[home] + own
    control = np.clip(np.rint(outcome), 0, 10)
    population = Population(domain, np.full((20, 2), 30), np.column_stack([control, control]))
    study = population.study
    plan = (
        study.histogram(domain, 2)
        if mechanism == "histogram"
        else study.table(domain, 2, mechanism=mechanism, expected=expected)
    )
    found, forecast = measure(population, plan, runs), study.forecast(domain, 2, expected=expected)
    (error, most) = forecast[mechanism].standard_error
    assert error == most
    # A deviation of 300 runs is within 27% but for 1e-9; its expectation is known to a tenth.
    assert float(found.error.std()) == pytest.approx(error, rel=0.3)
    assert float(np.sqrt((found.stated**2).mean())) == pytest.approx(error, rel=0.1)
