"""What noisy bins say of each cell: shares, values, intervals and quantiles. Post-processing.

Nothing here knows how users count: bins are parts of a cell that add up to 1, with noise of sum
zero, and with a part of the weight that may have been moved between users.

Source: docs/theory/cells.md#values-of-bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import Bools, Floats
from shoal.distributions.bins import FINE, on_simplex
from shoal.theory import sum_zero
from shoal.theory.user_clipping import SPREAD

# Cells of which more of the weight may have been moved are not reliable.
MOST_MOVED = 0.25
# Of the moved weight, what typically biases a share.
_BIAS = 0.1
# The largest error of a reliable cell, as a part of the spread between cells.
_ERROR = 0.8
# In a bin the values are as in the common distribution, but for this part that lies evenly.
_EVENLY = 0.1
# Where slopes between bins are found they hold at least two deviations of the noise of a bin, as
# parts of the common distribution, or this part if that is less.
_LEAST_MASS = 0.01
# Of the covariance between cells, the part that is replaced by that of bins of one record.
_SHAPE = 0.3
# The longest tick, as a part of the bounds' width: there are ten tick bits at least.
_TICK = 2.0**-10
# What is added to variances, so that cells with little noise do not decide alone: of the covariance
# between cells, and of their spread.
_LEAST = 1e-4
_NOISE = 0.01
# Bins of cells far apart are empty, but for more than so many units of noise, where these are at
# most this part of a cell.
_BEYOND_NOISE = 6.0
_KNOWN = 0.5
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
        half_tick: An edge is off by so much at most, as values and thresholds are rounded to ticks.
        found: The common distribution function at even places in the bounds; None if there is none,
            as all thresholds were given.
        far: Whether cells lie far apart, so that each has records in few bins.
    """

    plain: Floats
    noise: Floats
    moved: Floats
    edges: Floats
    half_tick: float
    found: Floats | None
    far: bool = False

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @cached_property
    def _places(self) -> tuple[Floats, Floats]:
        """Even places in the bounds, and the common distribution function there."""
        even = np.arange(2**FINE + 1) / 2**FINE
        low = self.edges[0]
        places = low + even * (self.edges[-1] - low)
        if self.found is None:
            return places, even
        return places, self.found

    @cached_property
    def prior(self) -> Floats:
        """The parts that all cells have in common."""
        if self.found is None:
            weight = 1 / self._variance
            mean = weight @ self.plain / weight.sum()
            return np.asarray(on_simplex(mean[None])[0])
        places, found = self._places
        at_edges = np.interp(self.edges, places, found)
        parts = np.diff(at_edges)
        return np.asarray(parts)

    @cached_property
    def _variance(self) -> Floats:
        """The variance of the noise of one bin of each cell, but for 1 - 1/bins."""
        of_unit = sum_zero.variance(self.bins, 1) / (1 - 1 / self.bins)
        return np.asarray(of_unit * self.noise**2)

    @cached_property
    def _so_far(self) -> Floats:
        """The noisy share of each cell below each inner edge, shape (cells, bins - 1)."""
        so_far = np.cumsum(self.plain, axis=1)
        return np.asarray(so_far[:, :-1])

    @cached_property
    def value(self) -> Floats:
        """The parts of each cell, moved towards what cells have in common where noise is large.

        With the covariance S between cells, its own part a and noise variance v the move is
        a S (a S + v C)^-1 (y - prior), where C is the identity less 1/bins.
        """
        cells = len(self.plain)
        if self.bins == 1:
            return np.ones_like(self.plain)
        away = self.plain - self.prior
        apart = np.ones(cells)
        for _ in range(_TURNS):
            between = self._between(away, apart)
            solved = self._solved(between, np.ones(cells), away)
            distance = np.einsum("gi,gi->g", away, solved)
            apart = np.maximum(1.0, distance / (self.bins - 1))
        solved = self._solved(between, apart, away)
        moved = apart[:, None] * solved @ between
        found = on_simplex(self.prior + moved)
        if self.far:
            known = _BEYOND_NOISE * self.noise <= _KNOWN
            found[known] = self._in_few_bins[known]
        return found

    @property
    def _in_few_bins(self) -> Floats:
        """The parts of each cell in its fullest bin and in those that noise does not explain."""
        fullest = self.plain.max(axis=1, keepdims=True)
        least = np.minimum(_BEYOND_NOISE * self.noise[:, None], fullest)
        kept = np.where(self.plain >= least, self.plain, 0.0)
        return on_simplex(kept / kept.sum(axis=1, keepdims=True))

    @property
    def _weight(self) -> Floats:
        """How much the square of each cell's parts says of all cells, by its noise."""
        least = np.median(self._variance) / 10 + _LEAST
        return np.asarray(1 / (self._variance + least) ** 2)

    @property
    def _flat(self) -> Floats:
        """The covariance of noise that adds up to 0, of variance 1 in all directions."""
        return np.asarray(np.eye(self.bins) - 1 / self.bins)

    def _between(self, away: Floats, apart: Floats) -> Floats:
        """The covariance between cells, without noise; cells that are `apart` weigh less."""
        weight = self._weight / apart
        seen = np.einsum("g,gi,gj->ij", weight, away, away)
        of_noise = (weight @ self._variance) * self._flat
        sizes, turn = np.linalg.eigh((seen - of_noise) / weight.sum())
        # The shape that bins of single records have, which vary most.
        shape = np.diag(self.prior) - np.outer(self.prior, self.prior)
        most = max(float(np.trace(shape)), 1e-9)
        # Sizes below 0 are noise, as is as much of those above 0.
        size = min(max(float(sizes.sum()), 0.0), most)
        above = np.maximum(sizes, 0)
        above *= size / max(float(above.sum()), 1e-9)
        between = (turn * above) @ turn.T
        mixed = (1 - _SHAPE) * between + _SHAPE * size / most * shape
        return np.asarray(mixed + 1e-10 * np.eye(self.bins))

    def _solved(self, between: Floats, apart: Floats, away: Floats) -> Floats:
        """Returns (a S + v C)^-1 (y - prior) of every cell."""
        of_cells = apart[:, None, None] * between
        of_noise = self._variance[:, None, None] * self._flat
        hair = 1e-9 * np.eye(self.bins)
        solved = np.linalg.solve(of_cells + of_noise + hair, away[:, :, None])
        return np.asarray(solved[:, :, 0])

    def band(self, bins: int, confidence: float) -> Floats:
        """How far the noisy share of so many bins may be off, whatever weight was moved."""
        quantile = sum_zero.quantile(self.bins, bins, confidence)
        return np.asarray(quantile * self.noise + self.moved)

    def edge_of(self, threshold: float) -> int:
        """The edge at a threshold, at most half a tick away; LookupError without one."""
        width = self.edges[-1] - self.edges[0]
        distance = np.abs(self.edges - threshold)
        nearest = int(distance.argmin())
        if distance[nearest] > _TICK * width:
            raise LookupError
        return nearest

    def share(self, first: int, last: int, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Value and interval of the share between two edges."""
        number = self.plain[:, first:last].sum(axis=1)
        value = self.value[:, first:last].sum(axis=1)
        band = self.band(last - first, confidence)
        low = np.clip(number - band, 0.0, 1.0)
        high = np.clip(number + band, 0.0, 1.0)
        low = np.minimum(low, value)
        high = np.maximum(high, value)
        return value, low, high

    def quantile(self, level: float, confidence: float) -> tuple[Floats, Floats, Floats]:
        """Value and interval of a quantile: the interval is a set of whole bins."""
        grid, function = self._inside
        crossings = [np.interp(level, row, grid) for row in function]
        value = np.array(crossings)
        may = self._may_be_in(level, confidence)
        # Where no bin seems possible, all are.
        may[~may.any(axis=1)] = True
        first = may.argmax(axis=1)
        from_above = may[:, ::-1]
        last = self.bins - from_above.argmax(axis=1)
        below = np.maximum(self.edges[first] - self.half_tick, self.edges[0])
        low = np.minimum(below, value)
        above = np.minimum(self.edges[last] + self.half_tick, self.edges[-1])
        high = np.maximum(above, value)
        return value, low, high

    def _may_be_in(self, level: float, confidence: float) -> Bools:
        """The bins that may begin below a level and end above it, shape (cells, bins)."""
        band = np.zeros_like(self._so_far)
        for cut in range(1, self.bins):
            band[:, cut - 1] = self.band(cut, confidence)
        least = np.zeros_like(self.plain)
        least[:, 1:] = self._so_far - band
        most = np.ones_like(self.plain)
        most[:, :-1] = self._so_far + band
        return np.asarray((least <= level) & (level <= most))

    @cached_property
    def _inside(self) -> tuple[Floats, Floats]:
        """Places in the bounds, and the distribution function of each cell there."""
        places, found = self._places
        grid = np.union1d(places, self.edges)
        at = np.searchsorted(self.edges, grid, side="right") - 1
        at = np.clip(at, 0, self.bins - 1)
        begin = self.edges[at]
        even = (grid - begin) / (self.edges[at + 1] - begin)
        starts = np.interp(self.edges, places, found)
        mass = np.diff(starts)[at]
        above_start = np.interp(grid, places, found) - starts[at]
        like_all = above_start / np.maximum(mass, 1e-12)
        mixed = (1 - _EVENLY) * like_all + _EVENLY * even
        # Where the common distribution has nothing, values lie evenly.
        part = np.where(mass > 1e-9, mixed, even)
        before = np.zeros_like(self.value)
        so_far = np.cumsum(self.value, axis=1)
        before[:, 1:] = so_far[:, :-1]
        inside = self.value[:, at] * part
        bent = self._bends(np.diff(starts))[:, at] * part * (1 - part)
        rising = before[:, at] + inside - bent / 2
        # A hair of slope, so that every level has one place.
        return grid, rising + 1e-12 * np.arange(len(grid))

    def _bends(self, mass: Floats) -> Floats:
        """How much more of each cell is at the upper end of a bin than at the lower one.

        Its density over the common one, whose parts are `mass`, has a slope between the slopes to
        both neighbours, each as far as noise does not explain that of cells.
        """
        noisy = 2 * math.sqrt(float(np.median(self._variance)))
        size = np.maximum(mass, min(noisy, _LEAST_MASS))
        middle = np.cumsum(size) - size / 2
        steps = np.diff(np.diag(1 / size), axis=0) / np.diff(middle)[:, None]
        of_unit = np.diag(steps @ self._flat @ steps.T)
        noise = self._variance[:, None] * of_unit
        seen = ((self.plain - mass) @ steps.T) ** 2
        weight = self._weight
        signal = np.maximum(weight @ (seen - noise) / weight.sum(), 0.0)
        known = signal / np.maximum(signal + noise, 1e-12)
        slopes = known**2 * ((self.value - mass) @ steps.T)
        both = known[:, 1:] + known[:, :-1]
        bends = np.zeros_like(self.value)
        bends[:, 1:-1] = (slopes[:, 1:] + slopes[:, :-1]) / np.maximum(both, 1e-12)
        bends *= size**2
        # So a density is nowhere below half of its mean in the bin.
        return np.asarray(np.clip(bends, -self.value, self.value))

    @cached_property
    def reliable(self) -> Bools:
        """Cells whose noise and bias are at most 0.8 of the spread between cells."""
        if self.bins == 1:
            return np.asarray((self.noise < 1.0) & (len(self.plain) < SPREAD))
        noise = _noise_at_edges(self.bins, self.noise)
        weight = _weight(noise)
        middle = weight @ self._so_far / weight.sum()
        apart = self._so_far - middle
        squares = (apart**2).mean(axis=1) - noise
        return less_than_spread(self.bins, self.noise, self.moved, squares)


def less_than_spread(bins: int, noise: Floats, moved: Floats, squares: Floats) -> Bools:
    """Returns in which cells noise and bias are at most 0.8 of the spread between cells.

    In few cells the spread is not known, and all cells are in which anybody counts.
    `squares` says how far each cell's shares are from those of all: the mean square over the edges,
    without noise.
    """
    if len(noise) < SPREAD:
        return np.asarray(noise < 1.0)
    at_edges = _noise_at_edges(bins, noise)
    weight = _weight(at_edges)
    between = float(weight @ squares / weight.sum())
    sizes = [sum_zero.mean_size(bins, cut) for cut in range(1, bins)]
    error = np.mean(sizes) * noise + _BIAS * moved
    spread = math.sqrt(max(between, 0.0))
    return np.asarray(error <= _ERROR * spread)


def _noise_at_edges(bins: int, noise: Floats) -> Floats:
    """Returns the variance of the noise of each cell's shares, a mean over the edges."""
    variances = [sum_zero.variance(bins, cut) for cut in range(1, bins)]
    of_unit = np.mean(variances)
    return np.asarray(of_unit * noise**2)


def _weight(noise: Floats) -> Floats:
    """Returns how much each cell says of the spread between cells, by its noise at edges."""
    variance = noise + _NOISE
    return np.asarray(1 / variance**2)
