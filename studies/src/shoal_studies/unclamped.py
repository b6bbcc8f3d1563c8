"""Errors of estimates that are not moved into the bounds, as papers state them.

Releases of the library stay within the public bounds, at no cost: where the noise is as wide as
they are, that cuts the errors of all mechanisms to much the same. No release is made like this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.cells.draw import exact_numbers
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.planner import plan_means
from shoal.cells.simulation import made_up
from shoal.data.aggregate import Aggregate
from shoal.data.value_lattice import Bounds, Lattice
from shoal.privacy.noise import Simulated
from shoal_studies.lines import Line
from shoal_studies.measure import Curve, Effort, Setting

_SEEDS = 2**16
# Expectations over the noise are in closed form: more repetitions say little more.
_MOST = 1000


def measure(setting: Setting, lines: Sequence[Line], effort: Effort) -> list[Curve]:
    """Mean absolute error of every line at every loss, with nothing moved into the bounds.

    Of Laplace noise of scale b about an estimate that is off by d: |d| + b exp(-|d|/b).
    """
    occupancy, lattice = setting.occupancy, Lattice(Bounds.of(setting.bounds), 20)
    plans = [
        [
            plan_means(occupancy, setting.bounds, line.method, each, line.settings)
            for each in setting.epsilons
        ]
        for line in lines
    ]
    user, cell = (np.repeat(each, occupancy.count) for each in (occupancy.user, occupancy.cell))
    turns = min(effort.repetitions, _MOST)
    found = np.empty((turns, len(lines), len(setting.epsilons)))
    for turn in effort.progress(range(turns), turns):
        values = setting.values(np.random.default_rng([effort.seed, turn]), user, cell)
        aggregate = made_up(occupancy, lattice, values)
        noise = Simulated(effort.seed * _SEEDS + turn)
        found[turn] = [[_error(plan, aggregate, noise) for plan in row] for row in plans]
    spread = found.std(axis=0, ddof=1) / turns**0.5
    return [
        Curve(
            line,
            np.array(setting.epsilons),
            found[:, at].mean(axis=0),
            spread[at],
            turns,
        )
        for at, line in enumerate(lines)
    ]


def _error(plan: PlanFacts, aggregate: Aggregate, noise: Simulated) -> float:
    numbers = Estimates(plan, *exact_numbers(plan, aggregate, noise))
    truth = aggregate.cell_means()[plan.released]
    off: NDArray[np.float64] = np.abs(numbers.unclamped - truth)
    scale = numbers.noise_scale
    return float((off + scale * np.exp(-off / scale)).mean())
