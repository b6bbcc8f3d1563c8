"""Draws bins: finds a common distribution and its edges, and one vector of bins for each cell.

Edges are whole ticks; a value at an edge is below it. What was drawn is public.

Source: docs/theory/cells.md#bins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from shoal.arrays import Floats, Ints, add
from shoal.data.aggregate import Tally
from shoal.data.records import Measure, above
from shoal.data.value_lattice import Lattice
from shoal.distributions.units import BITS, COARSE, Units, ranks_of
from shoal.privacy.noise import Noise
from shoal.theory import sum_zero

# Edges that are found are whole multiples of the width over 2^FINE.
FINE = 10
# The distribution function at these multiples if records lie evenly.
_EVEN: Floats = np.arange(2**FINE + 1) / 2**FINE
# The bins of each round that finds the common distribution.
_ROUND = 32
# The part that is spread evenly over the bounds: in a first round all, in a second one, for edges.
_EVENLY = (1.0, 0.1, 0.02)
# A bin of a round holds a value that many records have if it is at most so many places long, and
# has so many times an equal part of the records.
_SHORT = 8
_MANY = 3.0
# Between these ranks bins are short, so that records lie smoothly in them.
_QUARTILES = (0.25, 0.75)
# Cells lie far apart if so much of them, beside what chance explains, is in one coarse bin each.
_FAR = 0.55
# Then there are so many times the planned bins, at most.
_TIMES = 4
_MOST_BINS = 48
# Draws of bins have numbers from here on.
_START = 20_000_000
_FULLEST = _START + 10

Reader = Callable[[Measure], Tally]


class DrawnBins(NamedTuple):
    """What was drawn: bins of rounds, fullest bins, edges in ticks, and bins of each cell.

    `fullest` holds the units of all cells in their fullest coarse bins; nothing without a look.
    """

    rounds: list[list[int]]
    fullest: list[int]
    edges: list[int]
    rows: list[list[int]]


class AllCells(NamedTuple):
    """The share of all cells together below each edge, and the variance of its noise."""

    below: Floats
    variance: Floats

    @classmethod
    def of_rows(cls, rows: Floats) -> AllCells:
        """Returns what noisy bins of cells, in units, say together."""
        cells, bins = rows.shape
        so_far = np.cumsum(rows.sum(axis=0))
        total = max(so_far[-1], 1.0)
        of_cell = np.array([sum_zero.variance(bins, cut) for cut in range(1, bins)])
        unit = 2.0**BITS / total
        below = so_far[:-1] / total
        variance = cells * unit**2 * of_cell
        return cls(below, variance)


@dataclass(frozen=True)
class Place:
    """How many possible edges each record is above: multiples of the width, and thresholds.

    Attributes:
        given: The thresholds, ascending, in the value's unit.
        ticks: Their ticks, each of which is another one.
    """

    given: Sequence[float]
    ticks: Sequence[int]

    @property
    def name(self) -> str:
        """The name of what is measured."""
        return "place"

    def amount(self, lattice: Lattice) -> str:
        """Returns SQL of the place of a record."""
        beyond = [f"CASE WHEN {above(each, lattice)} THEN 1 ELSE 0 END" for each in self.given]
        half = 1 << lattice.bits >> 1
        width = 1 << (lattice.bits - FINE)
        # The lowest tick is in the first bin with those above it, up to the first edge.
        fine = f"floor((tick + {half - 1}) / {width}.0)"
        return " + ".join([f"greatest({fine}, 0)", *beyond])

    def ends(self, edges: Sequence[int], bits: int) -> Ints:
        """Returns the last place up to each edge.

        At a threshold that is a possible edge, too, values are compared with the threshold.
        """
        found = np.array(edges, dtype=np.int64)
        multiples = (found - 1) >> (bits - FINE)
        thresholds = np.array(self.ticks, dtype=np.int64)
        below = np.searchsorted(thresholds, found)
        return np.asarray(multiples + below)


def draw_bins(units: Units, place: Place, bits: int, read: Reader, noise: Noise) -> DrawnBins:
    """Draws the rounds and then the bins, of which `place` has the public thresholds.

    Formal guarantee: a change of all values of a user moves the bins of a round by its vote in half
    the l1 norm, those of all cells by the sum of its units, and the fullest bins by no more than
    that; edges depend on what was drawn alone. `read` counts records by a measure of theirs, once.
    """
    tally = read(place)
    rounds: list[list[int]] = []
    count = tally.whole[units.member]

    def below(edges: Sequence[int]) -> Ints:
        """Returns the records of each member up to each edge."""
        return tally.up_to(place.ends(edges, bits))[units.member]

    for turn in range(units.rounds):
        user = units.user
        users = int(user.max()) + 1
        whole = add(user, count, users)
        there = whole > 0
        inside = below(edges_of_round(rounds, bits))
        columns = [add(user, each, users) for each in inside.T]
        of_users = np.stack(columns, axis=1)
        votes = np.full(int(there.sum()), units.vote)
        of_voters = in_units(votes, of_users[there], whole[there])
        exact = of_voters.sum(axis=0).tolist()
        [drawn] = noise.add_sum_zero([exact], BITS, _START + 1 + turn)
        rounds.append(drawn)

    def of_cells(edges: Sequence[int]) -> Ints:
        """Returns the bins of each cell, in units."""
        exact = in_units(units.units, below(edges), count)
        columns = [add(units.cell, each, len(units.cells)) for each in exact.T]
        return np.stack(columns, axis=1)

    fullest: list[int] = []
    if units.fullest:
        together = int(of_cells(coarse_edges(rounds, bits)).max(axis=1).sum())
        fullest = noise.add_laplace([together >> units.fullest], BITS, _FULLEST)
    edges = edges_of(rounds, place.ticks, number_of_bins(units, rounds, fullest), bits)
    rows = of_cells(edges).tolist()
    drawn_rows = noise.add_sum_zero(rows, BITS, _START)
    return DrawnBins(rounds, fullest, edges, drawn_rows)


def in_units(units: Ints, below: Ints, count: Ints) -> Ints:
    """Returns the bins of each owner in units, which add up to its units.

    With C_k of m records up to edge k they are differences of floor(M C_k/m): so no change of
    values moves them by more than M, in half the l1 norm.
    """
    owners, edges = below.shape
    so_far = np.zeros((owners, edges + 2), dtype=np.int64)
    so_far[:, 1:-1] = units[:, None] * below // count[:, None]
    so_far[:, -1] = units
    return np.diff(so_far, axis=1)


def edges_of_round(rounds: Sequence[list[int]], bits: int) -> list[int]:
    """Returns the edges of the next round: even ones, or where the last round found records."""
    ranks = np.arange(1, _ROUND) / _ROUND
    return _at_ranks(common(rounds, bits), ranks, _EVENLY[len(rounds)], bits)


def coarse_edges(rounds: Sequence[list[int]], bits: int) -> list[int]:
    """Returns the edges of the bins of which the fullest of each cell is looked for."""
    ranks = np.arange(1, COARSE) / COARSE
    return _at_ranks(common(rounds, bits), ranks, _EVENLY[2], bits)


def far_apart(units: Units, rounds: Sequence[list[int]], fullest: Sequence[int]) -> bool:
    """Returns whether cells surely lie far apart: each has most records in one coarse bin."""
    if not fullest:
        return False
    [number] = fullest
    edges = [0, *coarse_edges(rounds, FINE), 1 << FINE]
    at_edges = common(rounds, FINE)[edges]
    alike = units.alike(float(np.diff(at_edges).max()))
    away = float(units.total.sum()) - alike
    # Two units of noise are not enough to say so.
    surely = number - 2 * 2.0**BITS
    least = alike + _FAR * away
    return surely * 2.0**units.fullest >= least


def number_of_bins(units: Units, rounds: Sequence[list[int]], fullest: Sequence[int]) -> int:
    """Returns the number of bins, which is larger than planned if cells lie far apart."""
    if not far_apart(units, rounds, fullest):
        return units.bins
    return min(_TIMES * units.bins, _MOST_BINS)


def edges_of(rounds: Sequence[list[int]], given: Sequence[int], bins: int, bits: int) -> list[int]:
    """Returns the edges between bins: thresholds, and ranks of the common distribution."""
    found: list[int] = []
    if bins > 1:
        ranks = np.array(ranks_of(bins))
        found = _at_ranks(common(rounds, bits), ranks, _EVENLY[2] if rounds else 1.0, bits)
    return sorted({*found, *given})


def common(rounds: Sequence[list[int]], bits: int) -> Floats:
    """Returns the common distribution function at multiples of the width over 2^FINE.

    Without rounds it is even. Inside the bins of a round records lie as the round before found
    them, so that a value that many records have stays at its place.
    """
    found = _EVEN
    for turn, drawn in enumerate(rounds):
        edges = np.array(edges_of_round(rounds[:turn], bits)) >> (bits - FINE)
        noisy = np.array([drawn]) / sum(drawn)
        [parts] = on_simplex(noisy)
        knots = np.concatenate([[0], edges, [2**FINE]])
        so_far = np.append(0.0, np.cumsum(parts))
        before = _mixed(found, _EVENLY[2])
        found = np.asarray(np.interp(before, before[knots], so_far))
    return found


def smooth(rounds: Sequence[list[int]], edges: Sequence[int], cells: AllCells, bits: int) -> Floats:
    """Returns the common distribution function, by rounds and cells, without shapes that are noise.

    Source: docs/theory/cells.md#values-of-bins.
    """
    found = common(rounds, bits)
    if not rounds:
        return found
    found = _beside_edges(found, rounds, edges, cells.below, bits)
    places = np.arange(2**FINE + 1)
    knots = np.array([0, *edges, 1 << bits]) / (1 << (bits - FINE))
    found = _with_cells(found, rounds, knots, cells, bits)
    at_knots = np.interp(knots, places, found)
    apart = PchipInterpolator(knots, at_knots)(places) - found
    bins = len(knots) - 1
    at = np.searchsorted(knots[1:-1], places, side="right")
    distance = np.bincount(at, apart**2, bins) / np.maximum(np.bincount(at, minlength=bins), 1)
    # Of n bins of a round, whose sum is known, the sums so far have n/6 of the variance of one.
    unit = 2.0**BITS / sum(rounds[-1])
    variance = sum_zero.variance(_ROUND, 1) * unit**2
    noise = _ROUND * np.diff(at_knots) * variance / 6
    # A smooth function replaces as much as noise explains of the distance.
    part = np.minimum(1.0, noise / np.maximum(distance, 1e-12))
    ranks = (at_knots[1:] + at_knots[:-1]) / 2
    low, high = _QUARTILES
    part[(ranks < low) | (ranks > high)] = 0.0
    return np.asarray(found + part[at] * apart)


def _beside_edges(
    found: Floats, rounds: Sequence[list[int]], edges: Sequence[int], below: Floats, bits: int
) -> Floats:
    """Returns a distribution function in which a value of many records lies beside an edge.

    The last round does not say where in its bin such a value is, but cells say how many records are
    below an edge in that bin.
    """
    ends = _ends(rounds, bits)
    many = np.diff(found[ends]) >= _MANY / _ROUND
    held = many & (np.diff(ends) <= _SHORT)
    cuts = np.array(edges, dtype=np.int64)
    cut = cuts >> (bits - FINE)
    at = np.searchsorted(ends[1:-1], cut, side="right")
    # Thresholds may lie between two places.
    known = held[at] & (cut << (bits - FINE) == cuts)
    share = np.clip(below, found[ends[at]], found[ends[at + 1]])
    knots = np.append(ends, cut[known])
    order = np.argsort(knots, kind="stable")
    values = np.append(found[ends], share[known])[order]
    places = np.arange(2**FINE + 1)
    moved = np.interp(places, knots[order], np.maximum.accumulate(values))
    inside = held[np.searchsorted(ends[1:-1], places, side="right")]
    return np.where(inside, moved, found)


def _ends(rounds: Sequence[list[int]], bits: int) -> Ints:
    """Returns the ends of the bins of the last round, as places."""
    inner = edges_of_round(rounds[:-1], bits)
    return np.array([0, *inner, 1 << bits]) >> (bits - FINE)


def _with_cells(
    found: Floats, rounds: Sequence[list[int]], knots: Floats, cells: AllCells, bits: int
) -> Floats:
    """Returns a distribution function that is at edges the mean of what rounds and cells say.

    Each counts by its variance. Inside a bin of the last round all records may be at one place.
    """
    ends = _ends(rounds, bits)
    bins = len(rounds[-1])
    below = np.interp(knots[1:-1], ends, np.arange(bins + 1))
    first = below.astype(np.int64)
    part = below - first
    mass = np.diff(found[ends])[first]
    inside = mass**2 * part * (1 - part)
    unit = 2.0**BITS / sum(rounds[-1])
    of_one = sum_zero.variance(bins, 1) * unit**2
    of_rounds = of_one * below * (bins - below) / (bins - 1) + inside
    # A hair of slope, so that every level has one place.
    rising = _mixed(found, 1e-9)
    at_knots = np.interp(knots, np.arange(2**FINE + 1), rising)
    moved = at_knots.copy()
    part_of_cells = of_rounds / (of_rounds + cells.variance)
    moved[1:-1] += part_of_cells * (cells.below - at_knots[1:-1])
    moved = np.maximum.accumulate(np.clip(moved, 0.0, 1.0))
    return np.asarray(np.interp(rising, at_knots, moved))


def _mixed(found: Floats, evenly: float) -> Floats:
    """Returns a distribution function of which a part is even."""
    return np.asarray((1 - evenly) * found + evenly * _EVEN)


def _at_ranks(found: Floats, ranks: Floats, evenly: float, bits: int) -> list[int]:
    """Returns the edges, in ticks, at ranks of a distribution of which a part is even."""
    places = np.arange(2**FINE + 1)
    mixed = _mixed(found, evenly)
    at_ranks = np.interp(ranks, mixed, places)
    inner = np.rint(at_ranks).astype(np.int64)
    # An edge at an end of the bounds would leave an empty bin.
    inside = np.unique(inner[(inner > 0) & (inner < 2**FINE)])
    return [int(each) << (bits - FINE) for each in inside]


def on_simplex(rows: Floats) -> Floats:
    """Returns the nearest distributions to rows of numbers."""
    falling = -np.sort(-rows, axis=1)
    number = np.arange(1, rows.shape[1] + 1)
    excess = (falling.cumsum(axis=1) - 1) / number
    last = (falling > excess).sum(axis=1) - 1
    less = excess[np.arange(len(rows)), last]
    moved = rows - less[:, None]
    return np.asarray(np.maximum(moved, 0.0))
