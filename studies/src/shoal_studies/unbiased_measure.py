"""Errors of estimators of a mean, simulated: many releases, what privacy adds told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.privacy.noise import Simulated
from shoal_studies.known_distributions import Distribution
from shoal_studies.paper_004_estimators import Part, estimates
from shoal_studies.simulate import Effort, carry_out

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

# Values in memory at once, values of all runs of a job over the repetitions, and the fewest runs.
_BLOCK = 1_000_000
_SHARE = 1000
_FEWEST = 20
_SEEDS = 2**20


@dataclass(frozen=True, eq=False)
class Job:
    """Releases of one estimator on one distribution."""

    part: Part
    distribution: Distribution
    centre: float
    runs: int


@dataclass(frozen=True, eq=False)
class Measured:
    """What a job found."""

    error: Floats
    plain: Floats
    free: float
    failed: float

    @property
    def bias(self) -> float:
        """Mean error; `plain` has mean 0 and is taken away."""
        return float((self.error - self.plain).mean())

    @property
    def bias_error(self) -> float:
        """Standard error of the bias."""
        return float((self.error - self.plain).std() / math.sqrt(len(self.error)))

    @property
    def rmse(self) -> float:
        """Root mean squared error; the mean of `plain` squared is replaced by its expectation."""
        return math.sqrt(max(0.0, float(self._squares.mean()) + self.free))

    @property
    def rmse_error(self) -> float:
        """Standard error of the root."""
        spread = float(self._squares.std()) / math.sqrt(len(self.error))
        return spread / (2 * self.rmse) if self.rmse > 0 else 0.0

    @property
    def _squares(self) -> Floats:
        return np.asarray(self.error**2 - self.plain**2)

    def average(self, releases: int) -> float:
        """Root mean squared error of averages of so many releases, without overlap.

        Example:
            >>> two = np.array([1.0, -1.0, 3.0, 1.0])
            >>> Measured(two, two, 1.0, 0.0).average(2)
            1.4142135623730951
        """
        groups = len(self.error) // releases
        means = self.error[: groups * releases].reshape(groups, releases).mean(axis=1)
        return math.sqrt(float((means**2).mean()))


def amount(effort: Effort, users: int) -> int:
    """How many releases: the repetitions, or fewer of many users."""
    return max(_FEWEST, min(effort.repetitions, effort.repetitions * _SHARE // users))


def simulate(jobs: Sequence[Job], effort: Effort) -> list[Measured]:
    """Errors of every job; the same seed gives the same ones whatever the number of processes.

    Example:
        >>> from shoal_studies.known_distributions import Normal
        >>> from shoal_studies.paper_004_estimators import Asked
        >>> from shoal.theory.clipping import Moment
        >>> part = Asked(100, (Moment(2, 1),), 1.0, 0.0).clipped(0.1)
        >>> [found] = simulate([Job(part, Normal(), 0.5, 50)], Effort())
        >>> len(found.error), found.rmse <= part.rmse_bound
        (50, True)
    """
    tasks = [task for number, job in enumerate(jobs) for task in _tasks(job, effort.seed, number)]
    found = list(effort.progress(carry_out(_run, tasks, effort.workers), len(tasks)))
    return [
        _together(job, [each for task, each in zip(tasks, found, strict=True) if task.job is job])
        for job in jobs
    ]


@dataclass(frozen=True, eq=False)
class _Task:
    job: Job
    runs: int
    seed: tuple[int, int, int]


def _tasks(job: Job, seed: int, number: int) -> list[_Task]:
    most = max(1, _BLOCK // job.part.n)
    sizes = [min(most, job.runs - at) for at in range(0, job.runs, most)]
    return [_Task(job, size, (seed, number, at)) for at, size in enumerate(sizes)]


def _run(task: _Task) -> Floats:
    """Errors, plain errors and failures, shape (3, runs)."""
    job, (seed, number, at) = task.job, task.seed
    rng = np.random.default_rng(task.seed)
    values = job.distribution.draw(rng, (task.runs, job.part.n)) + job.centre
    source = Simulated((seed * _SEEDS + number) * _SEEDS + at)
    error = estimates(job.part, values, source) - job.centre
    return np.array([error, values.mean(axis=1) - job.centre, np.isnan(error)])


def _together(job: Job, parts: list[Floats]) -> Measured:
    error, plain, failed = np.concatenate(parts, axis=1)
    error, plain = error[failed == 0], plain[failed == 0]
    free = job.distribution.variance / job.part.n
    return Measured(error, plain, free, float(failed.mean()))
