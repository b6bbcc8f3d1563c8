"""A hard occupancy of fifty sparse cells: plain numbers and values against guessing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.planner import plan_means
from shoal.cells.posterior import values_of
from shoal.cells.simulation import made_up
from shoal.data.aggregate import Aggregate
from shoal.data.value_lattice import Bounds, Lattice
from shoal.privacy.noise import Simulated
from shoal_studies.occupancies import sparse_cells

_BOUNDS, _DEVIATION, _CONFIDENCE = Bounds(0, 65), 10.73, 0.95
_METHODS: dict[str, tuple[str, dict[str, str | int | float]]] = {
    "balanced": ("balanced", {}),
    "array_averaging": ("array_averaging", {}),
    "user_clipped": ("user_clipped", {}),
    "adaptive": ("adaptive", {}),
    "optimal_in_range": ("optimal", {"range": "selected"}),
}


def run(repetitions: int, epsilon: float) -> Iterator[str]:
    """Mean absolute errors over cells and made-up data sets, in km/h, at one loss for all cells."""
    occupancy, centre = sparse_cells()
    lattice = Lattice(_BOUNDS)
    cell = np.repeat(occupancy.cell, occupancy.count)
    plans = {
        name: plan_means(occupancy, _BOUNDS, method, epsilon, settings)
        for name, (method, settings) in _METHODS.items()
    }
    data = []
    for turn in range(repetitions):
        rng = np.random.default_rng([50223, turn])
        # Cells are sorted by key: cell g of the occupancy has the g-th centre.
        data.append(made_up(occupancy, lattice, rng.normal(centre[cell], _DEVIATION)))
    truth = np.array([aggregate.cell_means() for aggregate in data])
    yield f"{repetitions} data sets of 50 cells and 223 users, epsilon {epsilon:g} in total"
    yield f"guessing the midpoint {np.abs(truth - 32.5).mean():>12.2f}"
    yield f"{'method':<18}{'hopeless':>9}{'plain':>9}{'value':>10}{'+-':>7}{'covered':>9}"
    for name, plan in plans.items():
        yield _line(name, plan, data, truth)


def _line(name: str, plan: PlanFacts, data: list[Aggregate], truth: np.ndarray) -> str:
    plain, value, covered = [], [], []
    for turn, aggregate in enumerate(data):
        drawn = draw(plan, aggregate, Simulated(turn))
        numbers = Estimates(plan, *drawn)
        found = values_of(numbers, _CONFIDENCE)
        plain.append(np.abs(numbers.value - truth[turn]).mean())
        value.append(np.abs(found.value - truth[turn]).mean())
        covered.append(((found.low <= truth[turn]) & (truth[turn] <= found.high)).mean())
    error = float(np.std(value)) / len(data) ** 0.5
    hopeless = int((plan.relative_error >= 1 / 2).sum())
    return (
        f"{name:<18}{hopeless:>9}{np.mean(plain):>9.2f}{np.mean(value):>10.2f}"
        f"{error:>7.2f}{np.mean(covered):>9.1%}"
    )
