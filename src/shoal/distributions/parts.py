"""Plans and draws the parts of a release: means, and squares about the released means.

The squares of a cell are those of its values minus its released mean, which is public by then. So a
standard deviation is the root of one more mean, in bounds of 0 to the square of the width
(docs/theory/cells.md#standard-deviations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Ints
from shoal.cells.estimates.draw import draw, public_ticks
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.decision import Status, public_status
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.shown_cells import ShownCells
from shoal.cells.planners.planner import make_plan
from shoal.cells.shown.published import for_everybody
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.value_lattice import Lattice
from shoal.distributions.bins import DrawnBins
from shoal.distributions.request import Request
from shoal.distributions.units import Units, plan_units
from shoal.errors import InputError
from shoal.privacy.noise import Noise

# Draws of the squares have numbers from here on, so that no two of a simulation are alike.
_OF_SQUARES = 10_000_000
# Squares of far users are so large that counting them has so many times the part of a mean's.
_COUNTING = 4.0


class Drawn(NamedTuple):
    """What was drawn of each part that was planned."""

    mean: Estimates | None = None
    squares: Estimates | None = None
    bins: DrawnBins | None = None


@dataclass(frozen=True, eq=False)
class Parts(ShownCells):
    """What was asked of public counts, and the plan of each part of it.

    Attributes:
        counts: The public counts.
        request: What was asked.
        planned: The plan of each part that is one of means: `mean`, and `squares` about it.
        units: The plan of bins; None if no statistic needs any.
    """

    counts: Counts
    request: Request
    planned: Mapping[str, Facts]
    units: Units | None

    @cached_property
    def status(self) -> tuple[Status, ...]:
        """The status of each cell by public rules alone."""
        return tuple(public_status(self.counts, self.request))


@dataclass(frozen=True)
class Later(Noise):
    """A source of noise of which the draws have higher numbers."""

    noise: Noise
    start: int

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add noise of a later draw."""
        return self.noise.add_laplace(steps, lattice_bits, self.start + draw)

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add noise of a later draw."""
        return self.noise.add_gaussian(steps, lattice_bits, self.start + draw)

    def add_sum_zero(self, rows: list[list[int]], lattice_bits: int, draw: int) -> list[list[int]]:
        """Add noise of a later draw."""
        return self.noise.add_sum_zero(rows, lattice_bits, self.start + draw)

    def select(self, scores: Ints, scale: float, draw: int) -> int:
        """Select by a later draw."""
        return self.noise.select(scores, scale, self.start + draw)

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Words of a later draw."""
        return self.noise.bits(size, self.start + draw)


def plans_of(counts: Counts, request: Request) -> dict[str, Facts]:
    """Returns the plan of each part of a request that is one of means."""
    check_squares(counts, request)
    counting = {"mean": 1.0, "squares": _COUNTING}
    cells = len(planned_cells(counts, request))
    return {
        part: make_plan(counts, request.of_part(part, cells), counting[part])
        for part in request.of_means
    }


def units_of(counts: Counts, request: Request) -> Units | None:
    """Returns the plan of bins, if a request needs any."""
    if "bins" not in request.parts:
        return None
    return plan_units(
        counts,
        planned_cells(counts, request),
        float(request.epsilon / len(request.parts)),
        finds=request.finds,
        certified=request.objective == "worst_case",
    )


def planned_cells(counts: Counts, request: Request) -> Ints:
    """Returns the cells that public rules leave."""
    cells = np.flatnonzero(public_status(counts, request) == "planned")
    if not len(cells):
        raise InputError(
            f"every cell has fewer than {request.min_users:,} users or {request.min_records:,} "
            "records, and would be left out",
            "use larger cells, or lower min_users and min_records",
        )
    return cells


def check_squares(counts: Counts, request: Request) -> None:
    """Refuses counts of which sums of squares about a mean would not fit 64 bits."""
    most = int(counts.count.max())
    if "squares" in request.parts and most >= 1 << (62 - 2 * request.tick_bits):
        raise InputError(
            f"a user has {most // counts.units:,} records in one cell, too many for squares with "
            f"{request.tick_bits} tick bits",
            "use smaller cells or fewer tick bits",
        )


def draw_means(plans: Mapping[str, Facts], aggregate: Aggregate, noise: Noise) -> Drawn:
    """Draws the means, and then squares about them.

    Formal guarantee: the losses of both add up, as the second draw depends on the values and on
    what the first one gave.
    """
    of_mean = Estimates.of(plans["mean"], *draw(plans["mean"], aggregate, noise))
    if "squares" not in plans:
        return Drawn(of_mean)
    of_squares = plans["squares"]
    published = for_everybody(plans["mean"], of_mean)
    about = squares_about(published, aggregate, plans["mean"].planned, of_squares.lattice)
    drawn = draw(of_squares, about, Later(noise, _OF_SQUARES))
    return Drawn(of_mean, narrowed(published, Estimates.of(of_squares, *drawn)))


def narrowed(of_mean: Estimates, of_squares: Estimates) -> Estimates:
    """Returns means of squares, of which none is larger than the released means allow.

    No value is farther from the released mean of its cell than the farther bound.
    """
    top = 1 << of_mean.basis.lattice.bits
    about = public_ticks(of_mean, top)
    # One tick more is for rounding.
    highest = int(about.max())
    lowest = int(about.min())
    farthest = max(highest, top - lowest) + 1
    distance = of_mean.basis.width * farthest / top
    most = min(distance**2, of_squares.basis.bounds.hi)
    basis = of_squares.basis.model_copy(update={"most": most})
    return replace(of_squares, basis=basis)


def squares_about(
    of_mean: Estimates, aggregate: Aggregate, planned: Ints, lattice: Lattice
) -> Aggregate:
    """Returns squares of values about their cells' released means, as values of their own.

    `of_mean` are the means that everybody may have, and `planned` their cells; other cells take the
    middle in their place. Squares follow from sums of values and of squares in whole ticks: S2 -
    2 a S1 + m a^2, where a is the mean in ticks. A tick of them is the square of the width divided
    by as many ticks.
    """
    bits = aggregate.lattice.bits
    half = 1 << (bits - 1)
    members = aggregate.memberships
    mean = np.full(members.n_cells, half)
    mean[planned] = public_ticks(of_mean, 1 << bits)
    about = mean[members.cell] - half
    squares = aggregate.squares
    assert squares is not None
    mixed = 2 * about * aggregate.centred
    sums = squares - mixed + members.count * about**2
    rounded = (sums + half) >> bits
    # Means of limited users are rounded, so that a sum may lie beyond its limits by a tick.
    ticks = np.clip(rounded, 0, members.count << bits)
    nothing = np.zeros_like(ticks)
    return Aggregate(members, lattice, ticks - members.count * half, nothing)
