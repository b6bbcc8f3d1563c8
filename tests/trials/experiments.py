"""Made-up experiments whose effects are known, and how often intervals of releases hold them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.privacy.noise import Simulated
from shoal.trials import ClusterPrior, Experiment, Space
from shoal.trials.plan import Plan

Floats = NDArray[np.float64]

MECHANISMS = ("uniform", "cluster_free", "cluster_dp", "histogram", "best", "questions")


@dataclass(frozen=True, eq=False)
class Population:
    """Units in the order of their clusters, with what each would do under every arm.

    Attributes:
        space: Levels of the outcome.
        sizes: Units of each cell, clusters x arms, control first.
        potential: Outcomes, units x arms.
    """

    space: Space
    sizes: NDArray[np.int64]
    potential: Floats

    @cached_property
    def study(self) -> Experiment:
        """The public side, the same in every run: who is treated is in the order of outcomes."""
        clusters, arms = self.sizes.shape
        cell = np.repeat(np.arange(clusters * arms), self.sizes.ravel())
        return Experiment(cell % arms, cell // arms)

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
            return self.study.histogram(self.space, epsilon)
        if mechanism == "questions":
            return self.study.ask().effect().plan(self.space, epsilon)
        kind: Any = mechanism
        if mechanism.startswith("cluster"):
            kind = ClusterPrior(floor, noise, pooled=mechanism == "cluster_free")
        return self.study.table(self.space, epsilon, mechanism=kind)


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
        drawn = plan.draw(population.outcomes(random), Simulated(run))
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
    return Population(Space.binary(), np.column_stack([units - treated, treated]), potential)


def counts() -> Population:
    """Counts from 0 to 8 in twelve clusters of 24 to 120, effects from -1 to 3 unit by unit."""
    random = np.random.default_rng(2)
    units = np.rint(np.geomspace(24, 120, 12)).astype(np.int64)
    home = np.repeat(np.arange(12), units)
    control = random.poisson(random.uniform(0.5, 3.0, 12)[home])
    lift = random.choice([-1, 0, 1, 3], len(home), p=[0.1, 0.4, 0.3, 0.2])
    potential = np.clip(np.column_stack([control, control + lift]), 0, 8).astype(np.float64)
    sizes = np.column_stack([units - units // 4, units // 4])
    return Population(Space.counts(0, 8), sizes, potential)


def continuous() -> Population:
    """Numbers from 0 to 100 on 11 bins, rounded at random; three arms, three clusters."""
    random = np.random.default_rng(3)
    sizes = np.array([[40, 20, 30], [80, 60, 60], [150, 120, 60]])
    home = np.repeat(np.arange(3), sizes.sum(axis=1))
    control = 10 + 75 * random.beta(1 + home, 2.0)
    potential = np.column_stack([control, control + 12.5, control - 8.25])
    return Population(Space.bins(0, 100, 11), sizes, potential)


# Of each population, the loss of an outcome, and whether effects are the same within clusters.
SETTINGS: dict[str, tuple[Callable[[], Population], float, bool]] = {
    "binary": (binary, 1.5, True),
    "counts": (counts, 3.0, False),
    "continuous": (continuous, 2.5, True),
}
