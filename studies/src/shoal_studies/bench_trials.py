"""Variances of effects over that of a uniform prior, at equal true loss: where clusters pay."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from shoal.trials.expected import Expected
from shoal_studies import trial_lines as lines
from shoal_studies.registry import Losses, Repetitions, Seed, bench
from shoal_studies.simulate import Effort
from shoal_studies.trial_measure import DELTA, Measured, Point, measure
from shoal_studies.trial_setting import REACH, SIZES, SPREAD, Mixture
from shoal_studies.trial_simulation import NoisyDifferences, NoisyHistograms

EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
_BETAS, _SCALES = (0.5, 2.5, 4.5), (0.1, 1.0, 10.0)
# Floors as parts of 1/K, and shares of epsilon for the histogram.
_FLOORS, _SHARES = (0.1, 0.4, 0.75), (0.02, 0.1)
_POPULATIONS = 5
_PAYS = 0.98
_TOLERANCE = 1.02
_TOLD = "told"
_COLUMNS = (
    lines.FREE, lines.CLUSTER, lines.OURS_ALL, lines.OURS, _TOLD, lines.DIFFERENCES,
    lines.HISTOGRAMS,
)  # fmt: skip
_SHORT = ("free", "cluster", "all", "auto", "told", "noisy HT", "noisy hist")
_WIDE = 19


@bench("trials")
def trials(
    repetitions: Repetitions = 2000,
    epsilon: Losses = EPSILONS,
    seed: Seed = 0,
) -> Iterator[str]:
    """Compare variances of trial mechanisms at equal loss: where clusters pay, and where not.

    Ratios to a uniform prior on all levels with the same true loss, simulated and predicted.
    Gaussian mixtures of paper 003, three clusters, beta between clusters of a variance of 5.
    `free` and `cluster` are the best of 6 floors and noises with the outcomes in hand, on all
    levels; `all` and `auto` are chosen from public facts alone (on all levels, on some), `told`
    from the true mean, deviation and share between clusters.

    Example: shoal bench trials --repetitions 500 --epsilon 1
    """
    each = max(2, repetitions // _POPULATIONS)
    error = 2 * (each * _POPULATIONS) ** -0.5
    yield (
        f"variance over that of a uniform prior on all 12 levels, delta {float(DELTA):g}; "
        f"simulated/predicted, {each * _POPULATIONS:,} realisations a figure (+- {error:.0%})"
    )
    yield (
        "clusters".ljust(16)
        + "beta".rjust(5)
        + "epsilon".rjust(8)
        + "".join(name.rjust(_WIDE) for name in _SHORT)
    )
    cases = []
    for scale, beta in itertools.product(_SCALES, _BETAS):
        for loss in epsilon:
            case = _case(scale, beta, loss, each, seed)
            cases.append(case)
            yield case.text()
    yield from _summary(cases)


@dataclass(frozen=True, eq=False)
class Case:
    """One setting and loss.

    Attributes:
        setting: Sizes and beta.
        epsilon: True loss.
        ratio: Simulated and predicted ratio of each column.
    """

    setting: Mixture
    epsilon: float
    ratio: dict[str, tuple[float, float]]

    def text(self) -> str:
        """A line of the table."""
        sizes = "/".join(map(str, self.setting.sizes))
        shown = "".join(f"{a:.3g}/{b:.3g}".rjust(_WIDE) for a, b in self.ratio.values())
        return f"{sizes:<16}{self.setting.beta:>5g}{self.epsilon:>8g}{shown}"


def _case(scale: float, beta: float, epsilon: float, each: int, seed: int) -> Case:
    setting = Mixture(beta, tuple(round(scale * size) for size in SIZES))
    points = _points(setting, epsilon, seed)
    found = measure(points, Effort(repetitions=1, seed=seed), populations=_POPULATIONS, each=each)
    uniform = found.curve(lines.UNIFORM)
    base = float(uniform.variance.mean()), float(uniform.mean()[0])
    ratio = {name: _ratio(found, name, base) for name in _COLUMNS}
    return Case(setting, epsilon, ratio)


def _ratio(found: Measured, name: str, base: tuple[float, float]) -> tuple[float, float]:
    curve = found.best((name,), name).curve(name)
    return float(curve.variance.mean()) / base[0], float(curve.mean()[0]) / base[1]


def _points(setting: Mixture, epsilon: float, seed: int) -> list[Point]:
    population = setting.population((seed, 0))
    size = population.space.size
    points = [*lines.uniform(0.0, setting, size, epsilon)[:1]]
    for floor, share in itertools.product(_FLOORS, _SHARES):
        sigma = round(2 / (share * epsilon), 6)
        given = lines.calibrated(size, epsilon, floor=floor / size, sigma=sigma)
        if given is not None:
            points += [
                lines.point(name, 0.0, setting, given) for name in (lines.FREE, lines.CLUSTER)
            ]
    points += lines.ours(0.0, setting, population, epsilon)
    told = lines.chosen(population, epsilon, "auto", _expected(setting.beta))
    points.append(lines.point(_TOLD, 0.0, setting, told))
    points.append(Point(lines.DIFFERENCES, 0.0, setting, NoisyDifferences(epsilon)))
    points.append(Point(lines.HISTOGRAMS, 0.0, setting, NoisyHistograms(epsilon)))
    return points


def _expected(beta: float) -> Expected:
    step = 2 * SPREAD**0.5 / REACH
    return Expected(0.5, SPREAD**0.5 / step, beta / SPREAD)


def _summary(cases: list[Case]) -> Iterator[str]:
    """Where clusters pay, and whether a choice is ever worse than a uniform prior."""
    for name, short in zip(_COLUMNS[:2], _SHORT, strict=False):
        these = [case for case in cases if case.ratio[name][1] < _PAYS]
        where = "; ".join(
            f"{'/'.join(map(str, case.setting.sizes))} beta {case.setting.beta:g} epsilon "
            f"{case.epsilon:g}: {case.ratio[name][1]:.2f}"
            for case in these
        )
        yield f"best {short} prior more than 2% below uniform: {where or 'nowhere'}"
    free, cluster = _COLUMNS[:2]
    better = sum(case.ratio[cluster][1] < _PAYS * case.ratio[free][1] for case in cases)
    yield f"best cluster prior more than 2% below best free prior: {better} of {len(cases)} lines"
    for name, short in zip(_COLUMNS[2:5], _SHORT[2:5], strict=True):
        worst = max(case.ratio[name][1] for case in cases)
        word = "never" if worst <= _TOLERANCE else "at times"
        yield f"choice {short}: at most {worst:.3f} times a uniform prior, {word} above 1.02"
