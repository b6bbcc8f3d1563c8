"""Mechanisms of the studies of paper 003, and what they cost: as claimed, and in truth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.privacy.budget import Budget
from shoal.trials.choose import choose
from shoal.trials.expected import Expected
from shoal.trials.parameters import LATTICE_BITS, ONE, Parameters, calibrate
from shoal_studies.chart import Chart, Row
from shoal_studies.trial_measure import DELTA, Point
from shoal_studies.trial_setting import Population, Setting
from shoal_studies.trial_simulation import NonPrivate, Randomised

PLAIN = "non-private"
PRINTED = ", as printed"
UNIFORM, UNSTRATIFIED = "uniform prior", "uniform prior, unstratified"
CLUSTER, CLUSTER_PRINTED = "Cluster-DP", "Cluster-DP, as printed"
FREE, FREE_PRINTED = "cluster-free", "cluster-free, as printed"
OURS, OURS_ALL = "our choice", "our choice, all levels"
DIFFERENCES, HISTOGRAMS = "noisy Horvitz-Thompson", "noisy histogram"
_LOOKS = {
    PLAIN: ("#333333", ":", ""),
    UNIFORM: ("#8d99ae", "-", "o"),
    UNSTRATIFIED: ("#8d99ae", ":", "x"),
    FREE: ("#1f6f8b", "-", "^"),
    CLUSTER: ("#d1495b", "-", "s"),
    OURS_ALL: ("#2a9d8f", ":", "D"),
    OURS: ("#2a9d8f", "-", "D"),
    DIFFERENCES: ("#e09f3e", "-", "v"),
    HISTOGRAMS: ("#6a4c93", "-", "P"),
}
# Colour, line and marker of a mechanism; what is printed is dashed.
LOOKS = _LOOKS | {name + PRINTED: (a, "--", c) for name, (a, _, c) in _LOOKS.items()}
# The paper's defaults.
GAMMA, SIGMA, LAMBDA = 0.02, 10.0, 0.8


def variances(rows: Sequence[Row], across: str, log: str = "y") -> Chart:
    """Variances: closed forms as lines, simulated ones as marks, bars over populations."""
    return Chart(
        rows, "at", "exact_variance", "line", "panel", (across, "variance of the effect"), log,
        LOOKS, marks="variance", error="deviation_between_populations",
    )  # fmt: skip


def calibrated(
    levels: int, epsilon: float, *, floor: float, sigma: float, printed: bool = False
) -> Parameters | None:
    """Parameters at a loss, claimed or true, and delta = 1e-4; None if the histogram costs it all.

    The paper claims 1/sigma for the histogram: its noise at epsilon truly costs
    epsilon + 1/sigma (erratum 12).

    Example:
        >>> found = calibrated(12, 0.2, floor=1 / 120, sigma=10.0, printed=True)
        >>> round(float(found.epsilon(DELTA)), 3)
        0.3
    """
    allowed = Budget.of(epsilon) + Budget.of(1 / sigma if printed else 0)
    try:
        return calibrate(
            range(levels), epsilon=allowed.epsilon, delta=DELTA, floor=floor, sigma=sigma
        )
    except InputError:
        return None


def replacing(levels: int, lam: float, *, floor: float, sigma: float) -> Parameters:
    """Parameters with a given lambda."""
    weight = 0 if np.isinf(sigma) else int(2**LATTICE_BITS / sigma)
    least = ONE // levels if np.isinf(sigma) else int(min(floor, 1 / levels) * ONE)
    return Parameters(tuple(range(levels)), least, round(lam * ONE), weight)


def noted(parameters: Parameters) -> str:
    """Parameters for a table."""
    return (
        f"K={parameters.levels} gamma={parameters.gamma:.6g} sigma={parameters.sigma:.6g} "
        f"lambda={parameters.lam:.8g}"
    )


def point(
    line: str,
    at: float,
    setting: Setting,
    parameters: Parameters,
    *,
    claimed: float | None = None,
    merged: bool = False,
) -> Point:
    """A randomised response as a point; lines named cluster-free are pooled."""
    mechanism = Randomised(parameters, pooled=line.startswith(FREE))
    return Point(line, at, setting, mechanism, claimed, merged, noted(parameters))


def plain(at: float, setting: Setting) -> Point:
    """The non-private estimate."""
    return Point(PLAIN, at, setting, NonPrivate())


def uniform(at: float, setting: Setting, levels: int, epsilon: float) -> list[Point]:
    """Uniform priors with and without clusters in assignment and estimate."""
    found = calibrated(levels, epsilon, floor=1 / levels, sigma=np.inf)
    if found is None:
        return []
    return [
        point(UNIFORM, at, setting, found),
        point(UNSTRATIFIED, at, setting, found, merged=True),
    ]


def ours(at: float, setting: Setting, population: Population, epsilon: float) -> list[Point]:
    """What is chosen from public facts alone: on all levels, and on as many as are best."""
    return [
        point(line, at, setting, chosen(population, epsilon, levels))
        for line, levels in ((OURS_ALL, "all"), (OURS, "auto"))
    ]


def chosen(
    population: Population, epsilon: float, levels: str, expected: Expected | None = None
) -> Parameters:
    """Parameters chosen for the public sizes and levels of a population."""
    sizes = tuple(map(tuple, population.sizes.tolist()))
    return _chosen(sizes, tuple(population.levels.tolist()), epsilon, levels, expected)


@lru_cache(maxsize=512)
def _chosen(
    sizes: tuple[tuple[int, ...], ...],
    levels: tuple[float, ...],
    epsilon: float,
    number: str,
    expected: Expected | None,
) -> Parameters:
    return choose(
        np.array(sizes),
        Space(levels),
        epsilon=Budget.of(epsilon).epsilon,
        delta=DELTA,
        pooled=False,
        levels=number,
        expected=expected,
    ).parameters
