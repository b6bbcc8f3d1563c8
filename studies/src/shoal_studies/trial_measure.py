"""Variances of many mechanisms in many settings, the populations shared among processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal_studies.chart import Row
from shoal_studies.registry import short
from shoal_studies.simulate import Effort, carry_out
from shoal_studies.trial_setting import Setting
from shoal_studies.trial_simulation import Draws, Mechanism, assign

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

DELTA = Fraction(1, 10_000)
# Fifty populations of 500 realisations, as in the paper; in a hurry five of 60.
_POPULATIONS, _REALISATIONS = (5, 50), (60, 500)


@dataclass(frozen=True)
class Point:
    """A mechanism in a setting: a point of a curve.

    Attributes:
        line: The curve.
        at: Where on the horizontal axis.
        setting: Makes populations.
        mechanism: Makes estimates.
        claimed: The loss that the source claims, or None for the true one.
        merged: Whether the assignment and the estimate ignore clusters.
        note: Parameters, for the table.
    """

    line: str
    at: float
    setting: Setting
    mechanism: Mechanism
    claimed: float | None = None
    merged: bool = False
    note: str = ""

    @property
    def loss(self) -> float:
        """The true epsilon at delta = 1e-4."""
        return self.mechanism.loss(DELTA)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found, populations x points.

    Attributes:
        points: The points.
        variance: Of the estimates over assignments and mechanism, from realisations.
        exact: Variance of the non-private estimate, in closed form, plus what the mechanism adds
            given its prior, in closed form, averaged over realisations of assignment and prior.
        realisations: Of each population.
    """

    points: tuple[Point, ...]
    variance: Floats = field(repr=False)
    exact: Floats = field(repr=False)
    realisations: int

    def curve(self, line: str) -> Curve:
        """One of the curves."""
        these = [at for at, point in enumerate(self.points) if point.line == line]
        return Curve(
            line,
            np.array([self.points[at].at for at in these]),
            self.variance[:, these],
            self.exact[:, these],
            tuple(self.points[at] for at in these),
        )

    @property
    def lines(self) -> list[str]:
        """Names of the curves in their order."""
        return list(dict.fromkeys(point.line for point in self.points))

    def best(self, lines: Sequence[str], name: str) -> Measured:
        """The best point of some curves at each place, as a curve of another name."""
        found: dict[float, int] = {}
        mean = self.exact.mean(axis=0)
        for at, point in enumerate(self.points):
            if point.line in lines and mean[at] < mean[found.get(point.at, at)] * (1 + 1e-12):
                found[point.at] = at
        picked = self._pick(list(found.values()))
        return replace(picked, points=tuple(replace(each, line=name) for each in picked.points))

    def only(self, lines: Sequence[str]) -> Measured:
        """Some of the curves."""
        return self._pick([at for at, point in enumerate(self.points) if point.line in lines])

    def split(self, at: int) -> tuple[Measured, Measured]:
        """The points before a position, and the others."""
        every = range(len(self.points))
        return self._pick(every[:at]), self._pick(every[at:])

    def _pick(self, these: Sequence[int]) -> Measured:
        columns = list(these)
        return Measured(
            tuple(self.points[at] for at in columns),
            self.variance[:, columns],
            self.exact[:, columns],
            self.realisations,
        )

    def rows(self, panel: str) -> list[Row]:
        """One row a point."""
        populations = len(self.variance)
        found: list[Row] = []
        for at, point in enumerate(self.points):
            claimed = point.loss if point.claimed is None else point.claimed
            found.append(
                {
                    "panel": panel,
                    "line": point.line,
                    "at": round(point.at, 6),
                    "claimed_epsilon": round(claimed, 6),
                    "true_epsilon": round(point.loss, 6),
                    "delta": float(DELTA),
                    "parameters": point.note,
                    "variance": short(self.variance[:, at].mean()),
                    "deviation_between_populations": short(self.variance[:, at].std()),
                    "exact_variance": short(self.exact[:, at].mean()),
                    "populations": populations,
                    "realisations": self.realisations,
                }
            )
        return found


@dataclass(frozen=True, eq=False)
class Curve:
    """Variances along a line, populations x points."""

    line: str
    at: Floats
    variance: Floats
    exact: Floats
    points: tuple[Point, ...]

    def mean(self) -> Floats:
        """Exact variances, averaged over populations."""
        return np.asarray(self.exact.mean(axis=0))

    def over(self, other: Curve) -> Floats:
        """Ratio of the exact variances at places that both have."""
        theirs = dict(zip(other.at.tolist(), other.mean().tolist(), strict=True))
        pairs = zip(self.at.tolist(), self.mean().tolist(), strict=True)
        return np.array([mine / theirs[at] for at, mine in pairs if at in theirs])


def join(parts: Iterable[Measured]) -> Measured:
    """Several of them as one."""
    found = list(parts)
    return Measured(
        tuple(point for part in found for point in part.points),
        np.hstack([part.variance for part in found]),
        np.hstack([part.exact for part in found]),
        found[0].realisations,
    )


def amounts(effort: Effort) -> tuple[int, int]:
    """Populations, and realisations of each."""
    return _POPULATIONS[effort.full], _REALISATIONS[effort.full]


def measure(
    points: Sequence[Point],
    effort: Effort,
    *,
    fewer: int = 1,
    populations: int | None = None,
    each: int | None = None,
) -> Measured:
    """Simulate every point in every population.

    All points of a setting see the same populations and assignments.
    """
    many, realisations = amounts(effort)
    many = populations or max(1, many // fewer)
    tasks = [
        _Task(tuple(points), each or realisations, effort.seed, number) for number in range(many)
    ]
    made = carry_out(_simulate, tasks, min(effort.workers, many))
    found = np.array(list(effort.progress(made, len(tasks))))
    return Measured(tuple(points), found[:, 0], found[:, 1], tasks[0].realisations)


def agreement(measured: Measured) -> float:
    """Largest distance of a simulated variance from the exact one, in its standard errors.

    A variance of R realisations has a relative standard error of about sqrt(2/R).
    """
    ratio = (measured.variance / measured.exact).mean(axis=0) - 1
    error = (2 / (measured.realisations - 1) / len(measured.variance)) ** 0.5
    return float(np.abs(ratio).max() / error)


@dataclass(frozen=True)
class _Task:
    """One population of every setting."""

    points: tuple[Point, ...]
    realisations: int
    seed: int
    number: int


def _simulate(task: _Task) -> Floats:
    """Variance and exact variance of every point, 2 x points."""
    made: dict[tuple[Setting, bool], Draws] = {}
    found = np.empty((2, len(task.points)))
    for at, point in enumerate(task.points):
        key = point.setting, point.merged
        if key not in made:
            made[key] = _draws(point, task)
        draws = made[key]
        random = np.random.default_rng((task.seed, task.number, 1, at))
        estimate, added = point.mechanism.draw(draws, random)
        found[:, at] = estimate.var(ddof=1), draws.variance + added.mean()
    return found


def _draws(point: Point, task: _Task) -> Draws:
    population = point.setting.population((task.seed, task.number))
    if point.merged:
        population = population.merged()
    random = np.random.default_rng((task.seed, task.number, 2, int(point.merged)))
    return assign(population, task.realisations, random)
