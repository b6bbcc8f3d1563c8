"""Estimators of a mean on made-up values: exact errors, and simulated ones.

The sampled and the combined mean (paper 004, propositions 3.0.2 and 3.0.3) show a sampled user's
value as it is: they are simulated here and nowhere released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal import unbiased
from shoal.means.estimators import OUTWARD
from shoal.means.request import METHODS
from shoal.means.sums import Grid
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Simulated
from shoal.privacy.noisy import NoisySum
from shoal.theory import clipping
from shoal.theory.clipping import Moments
from shoal.unbiased import UnbiasedPlan
from shoal_studies import regimes
from shoal_studies.simulate import Effort, carry_out

Floats: TypeAlias = "NDArray[np.float64]"
CLIPPED, SYMMETRIC = METHODS
SAMPLED = regimes.SAMPLED
COMBINED = regimes.RESIDUAL
WORDS = {CLIPPED: "clipped", SAMPLED: "sampled", COMBINED: "combined", SYMMETRIC: "symmetric"}
_SAMPLING = 3
_ROUNDING = 1
_NOISE = 2
_LEAST_MARGIN = 2.0**-10
_MOST_MARGIN = 2.0**30
# Steps of a bisection: enough for a chance of 1e-40.
_HALVINGS = 160
_SKEW = 1.5
# Distances of the far point that are tried, over the deviation.
_FARS = np.geomspace(1.0, 1e5, 500)
# Values in memory at once, values of all runs of a job over the repetitions, and the fewest runs.
_BLOCK = 1_000_000
_SHARE = 1000
FEWEST = 20
_SEEDS = 2**20


@dataclass(frozen=True)
class Points:
    """A distribution of finitely many points, whose mean is 0."""

    name: str
    values: tuple[float, ...]
    chances: tuple[float, ...]

    @property
    def variance(self) -> float:
        """In the value's unit squared."""
        return float(np.square(self.values) @ np.array(self.chances))

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        edges = np.cumsum(self.chances)[:-1]
        return np.asarray(np.array(self.values)[np.searchsorted(edges, rng.random(shape))])

    def clipped(self, low: float, high: float) -> tuple[float, float, float]:
        """E Y, E Y^2 and E (X - Y)^2 of Y = clip(X, low, high)."""
        found = np.clip(self.values, low, high)
        chances = np.array(self.chances)
        rest = np.array(self.values) - found
        return float(found @ chances), float(found**2 @ chances), float(rest**2 @ chances)


def _lognormal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """exp(1.5 Z), skewed, with mean 0 and deviation 1."""
    mean = math.exp(_SKEW**2 / 2)
    size = mean * math.sqrt(math.expm1(_SKEW**2))
    return np.asarray((rng.lognormal(sigma=_SKEW, size=shape) - mean) / size)


# Of deviation 1; t4 is Student's t with 4 degrees of freedom (no fourth moment).
_DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(scale=math.sqrt(0.5), size=shape),
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), size=shape),
    "t4": lambda rng, shape: np.asarray(rng.standard_t(4, size=shape) / math.sqrt(2)),
    "lognormal": _lognormal,
}


@dataclass(frozen=True)
class Drawn:
    """A distribution of mean 0 and deviation 1 that can be drawn."""

    name: str
    variance: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        return _DRAWS[self.name](rng, shape)

    def clipped(self, low: float, high: float) -> tuple[float, float, float]:
        """E Y, E Y^2 and E (X - Y)^2 of Y = clip(X, low, high), X normal."""
        (below, at_low), (above, at_high) = (
            (math.erfc(x / math.sqrt(2)) / 2, math.exp(-x * x / 2) / math.sqrt(2 * math.pi))
            for x in (-low, high)
        )
        first = at_low - at_high + low * below + high * above
        second = 1 - below - above + low * at_low - high * at_high
        beyond = (1 + high**2) * above - high * at_high + (1 + low**2) * below + low * at_low
        return first, second + low**2 * below + high**2 * above, beyond


Distribution: TypeAlias = Points | Drawn
NORMAL = Drawn("Gaussian")


def two_points(moments: Moments, far: Floats) -> list[Points]:
    """Far with the largest probability p <= 1/2 that the moments allow, else -p far/(1 - p).

    E|X|^order = p far^order (1 + (p/(1-p))^(order-1)) rises in p: bisection finds it.
    """
    low, high = np.zeros(len(far)), np.full(len(far), 0.5)
    for _ in range(_HALVINGS):
        p = (low + high) / 2
        fits = np.ones(len(far), dtype=np.bool_)
        for moment in moments:
            power = (np.abs(far) / moment.size) ** moment.order
            fits &= p * power * (1 + (p / (1 - p)) ** (moment.order - 1)) <= 1
        low, high = np.where(fits, p, low), np.where(fits, high, p)
    return [
        Points("two points", (at, -p * at / (1 - p)), (p, 1 - p))
        for at, p in zip(far.tolist(), low.tolist(), strict=True)
    ]


def mirrored(moments: Moments, far: float) -> Points:
    """Symmetric: +-far as likely as the moments allow, else 0."""
    chance = min([1.0, *((m.size / far) ** m.order for m in moments)])
    return Points("three symmetric points", (-far, 0.0, far), (chance / 2, 1 - chance, chance / 2))


@dataclass(frozen=True)
class Sampled:
    """c + sum_l (x_l - c) B_l/(n delta), B_l = 1 with probability delta, c the interval's middle.

    Its variance is (E(X - mu)^2 + (1 - delta)(mu - c)^2)/(n delta); a changed value shows with
    probability delta, and then entirely: (0, delta).
    """

    n: int
    moments: Moments
    interval: tuple[float, float]
    loss: Budget
    method: str = SAMPLED
    bias_bound: float = 0.0

    @property
    def chance(self) -> float:
        """With which a user is sampled."""
        return float(self.loss.delta)

    @property
    def centre(self) -> float:
        """c."""
        return (self.interval[0] + self.interval[1]) / 2

    @property
    def variance_bound(self) -> float:
        """At an end of the interval."""
        off = self.interval[1] - self.centre
        one = clipping.deviation(self.moments) ** 2 + (1 - self.chance) * off**2
        return one / self.chance / self.n

    @property
    def rmse_bound(self) -> float:
        """There is no bias."""
        return math.sqrt(self.variance_bound) * OUTWARD

    def exact(self, distribution: Distribution, centre: float) -> float:
        """Variance for independent values around a centre, without rounding to ticks."""
        square = distribution.variance + (centre - self.centre) ** 2
        return (distribution.variance + (1 / self.chance - 1) * square) / self.n

    def estimates(self, values: Floats, source: Simulated) -> Floats:
        """One a row of values."""
        return self.centre + self.sampled(values - self.centre, source)

    def sampled(self, terms: Floats, source: Simulated) -> Floats:
        """Sampled and weighted means of terms, one a row."""
        words = source.bits(terms.size, _SAMPLING).reshape(terms.shape)
        chosen = np.where(words < self.chance * 2.0**64, terms, 0.0)
        return np.asarray(chosen.sum(axis=1) / (self.chance * self.n))


@dataclass(frozen=True)
class Combined(Sampled):
    """Clip to [a - t, b + t], add noise, and add the sampled mean of x - clip(x): (epsilon, delta).

    The parts of estimate - mu are uncorrelated, so the variance is at most
    (sd^2 + tick^2/4 + (1/delta - 1) E(|X - mu| - t)+^2)/n + noise; t makes it least.
    """

    method: str = COMBINED

    @cached_property
    def margin(self) -> float:
        """t."""
        (low, high), size = self.interval, clipping.deviation(self.moments)
        noise = 2 / (self.n * float(self.loss.epsilon)) ** 2
        often = (1 / self.chance - 1) / self.n

        def error(t: float) -> float:
            beyond = clipping.excess_square(self.moments, t)
            return often * beyond + noise * (high - low + 2 * t) ** 2

        return clipping.least(error, _LEAST_MARGIN * size, _MOST_MARGIN * size)

    @cached_property
    def grid(self) -> Grid:
        """Where values are clipped."""
        return Grid.around(self.interval[0] - self.margin, self.interval[1] + self.margin)

    @cached_property
    def noise(self) -> NoisySum:
        """On the sum of ticks."""
        most = self.n * (self.grid.ticks // 2 + 1)
        return NoisySum.fit(self.grid.ticks, most, self.loss.epsilon)

    @property
    def noise_variance(self) -> float:
        """In the value's unit squared."""
        return self.noise.variance * (float(self.grid.tick) / self.n) ** 2

    @property
    def variance_bound(self) -> float:
        """Of values, rounding, sampling and noise."""
        one = clipping.deviation(self.moments) ** 2 + float(self.grid.tick) ** 2 / 4
        beyond = (1 / self.chance - 1) * clipping.excess_square(self.moments, self.margin)
        return (one + beyond) / self.n + self.noise_variance

    def exact(self, distribution: Distribution, centre: float) -> float:
        """(var(X) + (1/delta - 1) E(X - clip(X))^2)/n and the noise."""
        *_, beyond = distribution.clipped(*(edge - centre for edge in self.grid.edges))
        one = distribution.variance + (1 / self.chance - 1) * beyond
        return one / self.n + self.noise_variance

    def estimates(self, values: Floats, source: Simulated) -> Floats:
        """One a row of values."""
        words = source.bits(values.size, _ROUNDING).reshape(values.shape)
        sums = self.grid.whole(values, words).sum(axis=1).tolist()
        steps = np.array(self.noise.add(sums, source, _NOISE), dtype=np.float64)
        inside = (steps / (self.noise.per_unit * self.n) + self.grid.middle) * float(self.grid.tick)
        return inside + self.sampled(values - np.clip(values, *self.grid.edges), source)


Part: TypeAlias = UnbiasedPlan | Sampled


@dataclass(frozen=True)
class Asked:
    """What is asked: users, moments, losses, and an interval that holds the mean."""

    n: int
    moments: Moments
    epsilon: float
    delta: float
    interval: tuple[float, float] = (0.0, 1.0)

    def clipped(self, bias: float) -> UnbiasedPlan:
        """With a bias budget; delta is not used."""
        return self._plan(CLIPPED, interval=self.interval, bias=bias)

    def sampled(self) -> Sampled:
        """Epsilon is not used."""
        return Sampled(self.n, self.moments, self.interval, Budget.of(0, self.delta))

    def combined(self) -> Combined:
        """Clipped plus sampled residuals."""
        return Combined(self.n, self.moments, self.interval, Budget.of(self.epsilon, self.delta))

    def symmetric(self) -> UnbiasedPlan:
        """The interval is not used."""
        return self._plan(SYMMETRIC, delta=self.delta)

    def _plan(self, method: str, **more: Any) -> UnbiasedPlan:
        common: dict[str, Any] = {"moment": self.moments, "epsilon": self.epsilon}
        return unbiased.plan(method, self.n, **common, interval_by="certified", **more)


class Exact(NamedTuple):
    """Bias and variance of an estimate."""

    bias: float
    variance: float

    def rmse(self, releases: int = 1) -> float:
        """Root mean squared error of the average of releases on other users each."""
        return math.sqrt(self.bias**2 + self.variance / releases)


def exact(part: Part, distribution: Distribution, centre: float) -> Exact:
    """Bias and variance for independent values around a centre, without rounding to ticks."""
    if isinstance(part, Sampled):
        return Exact(0.0, part.exact(distribution, centre))
    choice: Any = part.choice
    grid = choice.grid
    first, second, _ = distribution.clipped(*(edge - centre for edge in grid.edges))
    noise = choice.noise.variance * (float(grid.tick) / part.n) ** 2
    return Exact(first, (second - first**2) / part.n + noise)


def worst(part: Part, releases: int = 1) -> tuple[Points, Exact]:
    """Two points around the upper end of the interval of the largest error, of many distances.

    Not always the worst of all distributions: a lower bound on the largest error.
    """
    asked = part if isinstance(part, Sampled) else part.request
    high = asked.interval[1] if asked.interval else 0.0
    distributions = two_points(asked.moments, _FARS * clipping.deviation(asked.moments))
    found = [(each, exact(part, each, high)) for each in distributions]
    return max(found, key=lambda each: each[1].rmse(releases))


class Measured(NamedTuple):
    """Errors of releases, their bias and root mean square with standard errors, and failures."""

    error: Floats
    bias: float
    bias_error: float
    rmse: float
    rmse_error: float
    failed: float

    def average(self, releases: int) -> float:
        """Root mean squared error of averages of so many releases, without overlap."""
        groups = len(self.error) // releases
        means = self.error[: groups * releases].reshape(groups, releases).mean(axis=1)
        return math.sqrt(float((means**2).mean()))


class Job(NamedTuple):
    """Releases of one estimator on one distribution around a centre."""

    part: Part
    distribution: Distribution
    centre: float
    runs: int


def amount(effort: Effort, users: int) -> int:
    """How many releases: the repetitions, or fewer of many users."""
    return max(FEWEST, min(effort.repetitions, effort.repetitions * _SHARE // users))


def simulate(jobs: Sequence[Job], effort: Effort) -> list[Measured]:
    """Errors of every job; the same seed gives the same ones whatever the number of processes."""
    tasks = []
    for number, job in enumerate(jobs):
        most = max(1, _BLOCK // job.part.n)
        for at, start in enumerate(range(0, job.runs, most)):
            size = min(most, job.runs - start)
            tasks.append((job._replace(runs=size), (effort.seed, number, at)))
    found: list[list[Floats]] = [[] for _ in jobs]
    made = effort.progress(carry_out(_errors, tasks, effort.workers), len(tasks))
    for (_, (_, number, _)), each in zip(tasks, made, strict=True):
        found[number].append(each)
    return [_together(*pair) for pair in zip(jobs, found, strict=True)]


def _errors(task: tuple[Job, tuple[int, int, int]]) -> Floats:
    """Errors, NaN where there is no estimate, and plain errors, shape (2, runs)."""
    (part, distribution, centre, runs), (seed, number, at) = task
    values = distribution.draw(np.random.default_rng(task[1]), (runs, part.n)) + centre
    source = Simulated((seed * _SEEDS + number) * _SEEDS + at)
    if isinstance(part, Sampled):
        found = part.estimates(values, source)
    else:
        drawn = part.runs(values, source)
        found = np.array([math.nan if x.steps is None else float(part.value(x)) for x in drawn])
    return np.array([found, values.mean(axis=1)]) - centre


def _together(job: Job, parts: list[Floats]) -> Measured:
    """The plain mean, whose mean and variance are known, is a control variate."""
    both = np.concatenate(parts, axis=1)
    failed = np.isnan(both[0])
    error, plain = both[:, ~failed]
    squares = error**2 - plain**2
    free = job.distribution.variance / job.part.n
    rmse = math.sqrt(max(0.0, float(squares.mean()) + free))
    bias_error, spread = (
        float(each.std() / math.sqrt(len(error))) for each in (error - plain, squares)
    )
    rmse_error = spread / (2 * rmse) if rmse > 0 else 0.0
    bias = float((error - plain).mean())
    return Measured(error, bias, bias_error, rmse, rmse_error, float(failed.mean()))
