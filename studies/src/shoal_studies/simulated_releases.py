"""What simulated releases of a plan say of every cell, and how far that is from the truth."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.posterior import values_of
from shoal.cells.told import statuses
from shoal.privacy.noise import Simulated
from shoal_studies.populations import Population

if TYPE_CHECKING:
    Floats = NDArray[Any]
    Flags = NDArray[np.bool_]

_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Releases:
    """Figures of each cell in each release, shape (releases, cells), in the value's unit.

    Attributes:
        plain: Absolute error of the noisy number.
        error: The same of the value.
        common: The same of one number for all cells, the mean of all numbers by their noise.
        half_width: Of the value's 95% interval.
        covered: Whether that holds the truth.
        told: Whether the cell is told.
        outside: Whether the value is not inside; a told one may be at an end at a bound alone.
    """

    plain: Floats
    error: Floats
    common: Floats
    half_width: Floats
    covered: Flags
    told: Flags
    outside: Flags

    def of_told(self, figures: Floats) -> float:
        """The mean of figures of told cells; not a number if there are none."""
        return float(figures[self.told].mean()) if self.told.any() else float("nan")


def releases_of(plan: PlanFacts, population: Population, releases: int) -> Releases:
    """Returns so many simulated releases, of the population's draws in turn."""
    draws = [population.draw(turn) for turn in range(min(releases, len(population.means)))]
    found = []
    for turn in range(releases):
        aggregate = draws[turn % len(draws)]
        numbers = Estimates(plan, *draw(plan, aggregate, Simulated(turn)))
        found.append(_release(numbers, aggregate.cell_means()[plan.released]))
    columns = zip(*found, strict=True)
    return Releases(
        **{each.name: np.array(rows) for each, rows in zip(fields(Releases), columns, strict=True)}
    )


def _release(numbers: Estimates, truth: Floats) -> tuple[Floats, ...]:
    """Figures of one release, in the order of the attributes."""
    value, low, high = values_of(numbers, _CONFIDENCE)
    told = np.array(statuses(numbers)) == "released"
    common = np.average(numbers.value, weights=numbers.noise_scale**-2.0)
    # The truth at a bound may miss an end there in rounding.
    almost = 1e-9 * numbers.plan.width
    covered = (low - almost <= truth) & (truth <= high + almost)
    at_bound = np.isin(value, (numbers.plan.bounds.lo, numbers.plan.bounds.hi))
    inside = np.where(told, (low < value) & (value < high), (low <= value) & (value <= high))
    return (
        np.abs(numbers.value - truth),
        np.abs(value - truth),
        np.abs(common - truth),
        (high - low) / 2,
        covered,
        told,
        ~(inside | (at_bound & (low <= value) & (value <= high))),
    )
