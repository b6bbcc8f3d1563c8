"""What noisy bins say of each cell: shares, values, intervals and quantiles. Post-processing.

Nothing here knows how users count: bins are parts of a cell that add up to 1, with noise of sum
zero, and with a part of the weight that may have been moved between users.

Source: docs/theory/cells.md#values-of-bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import Bools, Floats
from shoal.distributions.bins import FINE, on_simplex
from shoal.theory import sum_zero

# Of the moved weight, what intervals of quantiles allow for, where whole bins leave room; where
# more than the second part is moved they allow for all of it, as those of shares do.
_INSIDE = 0.5
MOST_MOVED = 0.25
# Of the moved weight, what typically biases a share.
_BIAS = 0.1
# The largest error of a reliable cell, as a part of the spread between cells.
_ERROR = 0.8
# In a bin the values are as in the common distribution, but for this part that lies evenly.
_EVENLY = 0.1
# Of the covariance between cells, the part that is replaced by that of bins of one record.
_SHAPE = 0.3
# The longest tick, as a part of the bounds' width: there are ten tick bits at least.
_TICK = 2.0**-10
# How often cells that are unlike the others are given more room.
_TURNS = 2


@dataclass(frozen=True, eq=False)
class Bins:
    """The noisy bins of cells.

    Attributes:
        plain: The noisy parts of each bin, which add up to 1, shape (cells, bins).
        noise: One unit of noise, as a part of each cell, shape (cells,).
        moved: The part of each cell's weight that may have been moved, shape (cells,).
        edges: The ends of the bins, ascending, with those of the bounds, in the value's unit.
        found: The common distribution function at even places in the bounds; None if there is none,
            as all thresholds were given.
    """

    plain: Floats
    noise: Floats
    moved: Floats
    edges: Floats
    found: Floats | None

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @cached_property
    def _places(self) -> tuple[Floats, Floats]:
        """Even places in the bounds, and the common distribution function there."""
        found = self.found
        if found is None:
            found = np.asarray(np.arange(2**FINE + 1) / 2**FINE)
        return np.linspace(self.edges[0], self.edges[-1], len(found)), np.asarray(found)

    @cached_property
    def prior(self) -> Floats:
        """The parts that all cells have in common."""
        if self.found is None:
            weight = 1 / self._variance
            mean = weight @ self.plain / weight.sum()
            return np.asarray(on_simplex(mean[None])[0])
        return np.asarray(np.diff(np.interp(self.edges, *self._places)))

    @cached_property
    def _variance(self) -> Floats:
        """The variance of the noise of one bin of each cell, but for 1 - 1/bins."""
        of_unit = sum_zero.variance(self.bins, 1) / (1 - 1 / self.bins)
        return np.asarray(of_unit * self.noise**2)

    @cached_property
    def value(self) -> Floats:
        """The parts of each cell, moved towards what cells have in common where noise is large.

        With the covariance S between cells, its own part a and noise variance v the move is
        a S (a S + v C)^-1 (y - prior), where C is the identity less 1/bins.
        """
        size = self.bins
        if size == 1:
            return np.ones_like(self.plain)
        away = self.plain - self.prior
        flat = np.eye(size) - 1 / size
        variance = self._variance
        apart = np.ones(len(away))
        shape = np.diag(self.prior) - np.outer(self.prior, self.prior)
        whole = max(float(np.trace(shape)), 1e-9)
        for _ in range(_TURNS):
            weight = 1 / (variance + np.median(variance) / 10 + 1e-4) ** 2 / apart
            between = np.einsum("g,gi,gj->ij", weight, away, away) - (weight @ variance) * flat
            sizes, turn = np.linalg.eigh(between / weight.sum())
            between = (turn * np.maximum(sizes, 0)) @ turn.T
            between = (1 - _SHAPE) * between + _SHAPE * np.trace(between) / whole * shape
            between += 1e-10 * np.eye(size)
            solved = _solved(between, np.ones(len(away)), variance, flat, away)
            apart = np.maximum(1.0, np.einsum("gi,gi->g", away, solved) / (size - 1))
        solved = _solved(between, apart, variance, flat, away)
        return on_simplex(self.prior + apart[:, None] * solved @ between)

    def below(self, edge: int) -> Floats:
        """The noisy share of each cell below an inner edge."""
        return np.asarray(self.plain[:, :edge].sum(axis=1))

    def band(self, bins: int, confidence: float, part: Floats | float) -> Floats:
        """How far the noisy share of so many bins may be off, with a part of the moved weight."""
        quantile = sum_zero.quantile(self.bins, bins, confidence)
        return np.asarray(quantile * self.noise + part * self.moved)

    def edge_of(self, threshold: float) -> int:
        """The edge at a threshold, at most half a tick away; LookupError without one."""
        distance = np.abs(self.edges - threshold)
        nearest = int(distance.argmin())
        if distance[nearest] > _TICK * (self.edges[-1] - self.edges[0]):
            raise LookupError
        return nearest

    def share(self, first: int, last: int, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Value and interval of the share between two edges."""
        number = self.plain[:, first:last].sum(axis=1)
        band = self.band(last - first, confidence, 1.0)
        value = self.value[:, first:last].sum(axis=1)
        low = np.minimum(np.clip(number - band, 0.0, 1.0), value)
        return value, low, np.maximum(np.clip(number + band, 0.0, 1.0), value)

    def quantile(self, level: float, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Value and interval of a quantile: the interval is a set of whole bins."""
        grid, function = self._inside
        value = np.array([np.interp(level, row, grid) for row in function])
        part = np.where(self.moved > MOST_MOVED, 1.0, _INSIDE)
        cells = len(self.plain)
        so_far = np.cumsum(self.plain, axis=1)[:, :-1]
        bands = [self.band(edge, confidence, part) for edge in range(1, self.bins)]
        band = np.stack(bands, axis=1) if bands else np.zeros((cells, 0))
        nothing = np.zeros((cells, 1))
        # The quantile may be in a bin that may begin below the level and end above it.
        begins = np.concatenate([nothing, so_far - band], axis=1) <= level
        ends = np.concatenate([so_far + band, nothing + 1], axis=1) >= level
        may = begins & ends
        may[~may.any(axis=1)] = True
        first = may.argmax(axis=1)
        last = self.bins - may[:, ::-1].argmax(axis=1)
        return value, np.minimum(self.edges[first], value), np.maximum(self.edges[last], value)

    @cached_property
    def _inside(self) -> tuple[Floats, Floats]:
        """Places in the bounds, and the distribution function of each cell there."""
        places, found = self._places
        grid = np.union1d(places, self.edges)
        at = np.clip(np.searchsorted(self.edges, grid, side="right") - 1, 0, self.bins - 1)
        begin = self.edges[at]
        even = (grid - begin) / (self.edges[at + 1] - begin)
        starts = np.interp(self.edges, places, found)
        mass = np.diff(starts)[at]
        like_all = (np.interp(grid, places, found) - starts[at]) / np.maximum(mass, 1e-12)
        part = np.where(mass > 1e-9, (1 - _EVENLY) * like_all + _EVENLY * even, even)
        before = np.concatenate([np.zeros((len(self.value), 1)), np.cumsum(self.value, axis=1)], 1)
        rising = before[:, at] + self.value[:, at] * part
        # A hair of slope, so that every level has one place.
        return grid, rising + 1e-12 * np.arange(len(grid))

    @cached_property
    def reliable(self) -> Bools:
        """Cells whose noise and bias are at most 0.8 of the spread between cells."""
        cuts = range(1, self.bins)
        if not len(cuts):
            return np.zeros(len(self.plain), dtype=bool)
        of_cuts = np.array([sum_zero.variance(self.bins, cut) for cut in cuts])
        noise = self.noise[:, None] ** 2 * of_cuts
        so_far = np.cumsum(self.plain, axis=1)[:, :-1]
        weight = 1 / (noise.mean(axis=1) + 0.01) ** 2
        middle = weight @ so_far / weight.sum()
        between = weight @ ((so_far - middle) ** 2 - noise).mean(axis=1) / weight.sum()
        size = np.mean([sum_zero.mean_size(self.bins, cut) for cut in cuts])
        error = size * self.noise + _BIAS * self.moved
        return np.asarray(error <= _ERROR * np.sqrt(max(float(between), 0.0)))


def _solved(between: Floats, apart: Floats, variance: Floats, flat: Floats, away: Floats) -> Floats:
    """Returns (a S + v C)^-1 (y - prior) of every cell."""
    hair = 1e-9 * np.eye(len(flat))
    matrices = apart[:, None, None] * between + variance[:, None, None] * flat + hair
    return np.asarray(np.linalg.solve(matrices, away[:, :, None])[:, :, 0])
