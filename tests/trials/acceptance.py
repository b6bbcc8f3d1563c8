"""Acceptance of trials: errors and coverage of all mechanisms in four made-up experiments.

`python -m tests.trials.acceptance 10000` prints the table, with so many runs of each. A run is a
new assignment and a new draw of the mechanism; figures are the same every time.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from shoal_studies.trial_setting import Mixture

from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.noise import Noise, Simulated
from shoal.trials.aggregate_release import AggregateRelease, draw_aggregate
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree, UniformPrior
from shoal.trials.mechanisms.table import BestTable
from shoal.trials.request import Units
from shoal.trials.table_release import TableRelease, draw_table
from shoal.trials.unit_release import UnitRelease, draw_units

Floats = NDArray[np.float64]
Draw = Callable[[Units, Noise], AggregateRelease | UnitRelease | TableRelease]

CONFIDENCE = 0.95
MECHANISMS = (
    "uniform_prior",
    "cluster_free",
    "cluster_dp",
    "noisy_horvitz_thompson",
    "noisy_histogram",
    "best_table",
)


@dataclass(frozen=True, eq=False)
class Population:
    """Units in the order of their clusters, with what each would do under every arm.

    Attributes:
        sizes: Units of each group, clusters x arms, control first.
        potential: Outcomes, units x arms.
    """

    sizes: NDArray[np.int64]
    potential: Floats

    @cached_property
    def home(self) -> NDArray[np.int64]:
        """Cluster of each unit."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes.sum(axis=1))

    @cached_property
    def assignment(self) -> Assignment:
        """Its public side, the same in every run: who is treated is in the order of outcomes."""
        clusters, arms = self.sizes.shape
        return Assignment(pa.array(np.arange(clusters)), pa.array(np.arange(arms)), self.sizes)

    @property
    def effects(self) -> Floats:
        """What is estimated, one number for each arm but control."""
        return np.asarray((self.potential[:, 1:] - self.potential[:, :1]).mean(axis=0))

    @property
    def constant(self) -> bool:
        """Whether all units of a cluster have the same effects, up to rounding."""
        effect = self.potential[:, 1:] - self.potential[:, :1]
        first = np.searchsorted(self.home, self.home)
        return bool(np.allclose(effect, effect[first], rtol=0, atol=1e-9))

    def outcomes(self, random: np.random.Generator) -> Floats:
        """Observed after complete randomisation in each cluster, in the assignment's order."""
        order = np.argsort(self.home + random.random(len(self.home)))
        return np.asarray(self.potential[order, self.assignment.group % self.sizes.shape[1]])


@dataclass(frozen=True, eq=False)
class Setting:
    """An experiment, and the parameters it is released with.

    Attributes:
        space: Levels of the outcome.
        populations: Runs take them by turns; all have the same sizes and effects.
        epsilon: The loss of one outcome.
        levels: How many levels are in use where outcomes of units are released.
        floor: gamma of Cluster-DP and cluster-free.
        sigma: Noise of their histograms, in counts.
    """

    space: Space
    populations: tuple[Population, ...]
    epsilon: float
    levels: int
    floor: float
    sigma: float

    def draw(self, mechanism: str) -> Draw:
        """The mechanism with all its public numbers."""
        facts = self.populations[0].assignment
        if mechanism == "noisy_horvitz_thompson":
            made = NoisyHorvitzThompson(self.epsilon).prepare(facts, self.space).aggregate
            return lambda units, noise: draw_aggregate(units, self.space, made, noise)
        if mechanism == "noisy_histogram":
            bins = NoisyHistogram(self.epsilon).prepare(facts, self.space).aggregate
            return lambda units, noise: draw_aggregate(units, self.space, bins, noise)
        if mechanism == "best_table":
            best = BestTable(self.epsilon, levels=self.levels).choose(self.space)
            return lambda units, noise: draw_table(units, self.space, best.kept, best.table, noise)
        kind = {
            "uniform_prior": UniformPrior(self.epsilon, levels=self.levels),
            "cluster_free": ClusterFree(
                self.epsilon, floor=self.floor, histogram_scale=self.sigma, levels=self.levels
            ),
            "cluster_dp": ClusterDP(
                self.epsilon, floor=self.floor, histogram_scale=self.sigma, levels=self.levels
            ),
        }[mechanism]
        parameters = kind.choose(facts.sizes, self.space).parameters
        return lambda units, noise: draw_units(
            units, self.space, parameters, noise, pooled=kind.pooled
        )


@dataclass(frozen=True, eq=False)
class Figures:
    """What many runs gave, runs x effects.

    Attributes:
        error: Estimate less effect.
        half: Half the width of the 95% interval for these units.
        standard_error: As stated.
    """

    error: Floats
    half: Floats
    standard_error: Floats

    @property
    def deviation(self) -> Floats:
        """Of the estimate."""
        return np.asarray(self.error.std(axis=0, ddof=1))

    @property
    def bias(self) -> Floats:
        """Mean error, in standard errors of that mean."""
        return np.asarray(self.error.mean(axis=0) / self.deviation * math.sqrt(len(self.error)))

    @property
    def covered(self) -> NDArray[np.int64]:
        """How many intervals hold the effect."""
        return np.asarray((np.abs(self.error) <= self.half).sum(axis=0))

    @property
    def coverage(self) -> Floats:
        """Which part of the intervals holds the effect."""
        return np.asarray(self.covered / len(self.error))

    @property
    def ratio(self) -> Floats:
        """Mean stated variance over the variance of the estimate."""
        return np.asarray((self.standard_error**2).mean(axis=0) / self.deviation**2)


def seeded(name: str, mechanism: str) -> Callable[[int], Noise]:
    """A source of noise for each run of a case, another one for each case."""
    case = list(SETTINGS).index(name) * len(MECHANISMS) + MECHANISMS.index(mechanism) + 1
    return lambda run: Simulated(case * 10**8 + run)


def measure(
    name: str, mechanism: str, runs: int, noise: Callable[[int], Noise] | None = None
) -> Figures:
    """Errors and intervals of many runs.

    Args:
        name: Of the setting.
        mechanism: Its name.
        runs: How many.
        noise: A source for each run; seeded unless given.
    """
    setting, source = SETTINGS[name](), noise or seeded(name, mechanism)
    draw, random = setting.draw(mechanism), np.random.default_rng(MECHANISMS.index(mechanism))
    truth = setting.populations[0].effects
    found = np.empty((3, runs, len(truth)))
    for run in range(runs):
        population = setting.populations[run % len(setting.populations)]
        units = Units(population.assignment, population.outcomes(random), {})
        for at, effect in enumerate(draw(units, source(run)).effects(CONFIDENCE)):
            here = effect.finite_population
            half = (here.interval[1] - here.interval[0]) / 2
            found[:, run, at] = effect.value - truth[at], half, here.standard_error
    return Figures(*found)


def mixture() -> Setting:
    """The paper's: clusters of 500, 1000 and 2000, half treated, effect 1; 20 populations."""
    made = [Mixture(4.5).population((seed,)) for seed in range(20)]
    populations = []
    for each in made:
        control = np.repeat(np.tile(each.levels, len(each.control)), each.control.ravel())
        potential = np.column_stack([control, control + each.effect])
        populations.append(Population(each.sizes, potential))
    return Setting(made[0].space, tuple(populations), 2.0, 12, 0.02, 10.0)


def binary() -> Setting:
    """Thirty clusters of 10 to 200, a third treated in some: no effect, or 1 in every fifth."""
    random = np.random.default_rng(1)
    units = np.rint(np.geomspace(10, 200, 30)).astype(np.int64)
    treated = units // np.where(np.arange(30) % 2, 2, 3)
    home = np.repeat(np.arange(30), units)
    rate = np.where(np.arange(30) % 5, random.uniform(0.05, 0.6, 30), 0.0)
    control = (random.random(len(home)) < rate[home]).astype(np.float64)
    potential = np.column_stack([control, control + (home % 5 == 0)])
    sizes = np.column_stack([units - treated, treated])
    return Setting(Space.binary(), (Population(sizes, potential),), 1.5, 2, 0.2, 4.0)


def counts() -> Setting:
    """Counts from 0 to 8 in twelve clusters of 24 to 120, effects from -1 to 3 unit by unit."""
    random = np.random.default_rng(2)
    units = np.rint(np.geomspace(24, 120, 12)).astype(np.int64)
    home = np.repeat(np.arange(12), units)
    control = random.poisson(random.uniform(0.5, 3.0, 12)[home])
    lift = random.choice([-1, 0, 1, 3], len(home), p=[0.1, 0.4, 0.3, 0.2])
    potential = np.clip(np.column_stack([control, control + lift]), 0, 8).astype(np.float64)
    treated = units // 4
    sizes = np.column_stack([units - treated, treated])
    return Setting(Space.counts(0, 8), (Population(sizes, potential),), 3.0, 9, 0.03, 3.0)


def continuous() -> Setting:
    """Numbers from 0 to 100 on 11 bins, rounded at random; three arms, three clusters."""
    random = np.random.default_rng(3)
    sizes = np.array([[40, 20, 30], [80, 60, 60], [150, 120, 60]])
    home = np.repeat(np.arange(3), sizes.sum(axis=1))
    control = 10 + 75 * random.beta(1 + home, 2.0)
    potential = np.column_stack([control, control + 12.5, control - 8.25])
    return Setting(Space.bins(0, 100, 11), (Population(sizes, potential),), 2.5, 4, 0.1, 4.0)


SETTINGS: dict[str, Callable[[], Setting]] = {
    "mixture": mixture,
    "binary": binary,
    "counts": counts,
    "continuous": continuous,
}
HEAD = (
    f"{'setting':<12}{'mechanism':<24}{'arm':>3}{'runs':>8}{'effect':>9}{'deviation':>11}"
    f"{'bias/se':>9}{'coverage':>10}{'stated/true':>13}{'seconds':>9}"
)


def rows(name: str, mechanism: str, runs: int) -> list[str]:
    """Lines of the table: one for each effect."""
    start, truth = time.perf_counter(), SETTINGS[name]().populations[0].effects
    found = measure(name, mechanism, runs)
    seconds = time.perf_counter() - start
    return [
        f"{name:<12}{mechanism:<24}{at + 1:>3}{runs:>8}{effect:>9.4f}{found.deviation[at]:>11.4f}"
        f"{found.bias[at]:>9.2f}{100 * found.coverage[at]:>9.2f}%{found.ratio[at]:>13.4f}"
        f"{seconds:>9.1f}"
        for at, effect in enumerate(truth)
    ]


def main() -> None:
    """Print the table: bias in standard errors, coverage, mean stated variance over the true."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    sys.stdout.write(HEAD + "\n")
    for name in SETTINGS:
        for mechanism in MECHANISMS:
            sys.stdout.write("\n".join(rows(name, mechanism, runs)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
