"""What is said of the values of cells: from noisy parts of their weight, and nothing else.

A cell's parts are its weight at the knots of the selected range. The mean is the sum of knots times
parts over the weight; with the weight above each piece every share and quantile follows as well. At
the true theta of a statistic the parts, weighed by how far they are from theta, are noise alone: so
intervals hold for any weight, also none.

Source: docs/theory/private-counts.md#values-and-their-intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from shoal import intervals
from shoal.arrays import Bools, Floats, Ints
from shoal.release.envelope import CONFIDENCE

# How far a cap may move a cell's mean unseen, as a part of the range times the weight that it
# moves: in any cell, and by chance in a cell with one user; both so many times where nothing is
# seen of heavy users; otherwise with so many times the lean of all cells added.
_HIDES = 1 / 12
_HIDES_BY_CHANCE = 1 / 2
_TIMES_UNSEEN = 2.0
_HIDES_OF_LEAN = 2.0
# Of fewer cells nobody can tell by how much they differ.
FEWEST_CELLS = 3
# Thetas that are tried between the ends of the range.
_GRID = 101
# Noise scales of a tail that is taken for one, and the most that tails add, in ranges.
_SURE = 3.0
_MOST_TAIL = 0.1
# Noise scales that an interval adds to a tail, how much more of it than all cells together a cell
# may have, and the least share of an outer part that this is judged by.
_UNSEEN_TAIL = 1.0
_MOST_OF_TAIL = 5.0
_LEAST_SHARE = 0.02
# Ranges that values beyond an end move all means by, above which no mean is reliable.
_WRONG_RANGE = 0.5


class _Thetas(NamedTuple):
    """Intervals of cells, and where they reach the lowest and the highest theta."""

    low: Floats
    high: Floats
    at_low: Bools
    at_high: Bools


@dataclass(frozen=True, eq=False)
class Values:
    """The noisy parts of each cell, and where they lie.

    Attributes:
        parts: Weight of each cell at each knot, in users, shape (cells, knots).
        scale: Of the Laplace noise of each part.
        knots: Where the parts lie, ascending, in the value's unit, shape (knots,).
        bounds: The public range of values.
        moved: The part of the weight that caps move between users, or may move.
        tails: Weights of all cells: below the range, at its low and its high end of users below the
            cap, the same of users above it, and above the range; empty if not drawn.
        tail_scale: Of the noise of tails.
        unseen: The part of the weight that caps may move besides, as no look saw the users.
        priority: Of each cell: the higher it is, the more of its users are above the cap.
        users: About how many users there are for each cell.
    """

    parts: Floats
    scale: float
    knots: Floats
    bounds: tuple[float, float]
    moved: float
    tails: Floats = field(default_factory=lambda: np.zeros(0))
    tail_scale: float = 1.0
    unseen: float = 0.0
    priority: Floats = field(default_factory=lambda: np.zeros(0))
    users: float = 1.0

    @cached_property
    def weight(self) -> Floats:
        """Weight of each cell, in users."""
        return np.asarray(self.parts.sum(axis=1))

    @cached_property
    def pool(self) -> Floats:
        """The parts of all cells together, which add up to 1."""
        found = np.maximum(self.parts.sum(axis=0), 0.0)
        total = float(found.sum())
        return found / total if total > 0 else np.full(len(found), 1 / len(found))

    @cached_property
    def shift(self) -> Floats:
        """What all values below and above the range, counted as its ends, add to each mean."""
        if not len(self.tails):
            return np.zeros(2)
        sure = self.tails > _SURE * self.tail_scale
        outside = np.where(sure, self.tails, 0.0) / max(float(self.tails.sum()), 1.0)
        below, above = outside[0], outside[-1]
        most = _MOST_TAIL * (self.knots[-1] - self.knots[0])
        low, high = self.bounds
        found = np.array([below * (low - self.knots[0]), above * (high - self.knots[-1])])
        return np.asarray(np.clip(found, -most, most))

    @cached_property
    def lean(self) -> tuple[float, float]:
        """How much higher values of users above the cap lie, in ranges, and the noise of it.

        Both are NaN if nothing is known of either kind of users.
        """
        if not len(self.tails):
            return np.nan, np.nan
        ends = self.tails[1:-1].reshape(2, 2)
        weight = ends.sum(axis=1)
        if (weight < _SURE * 2 * self.tail_scale).any():
            return np.nan, np.nan
        place = np.clip(ends[:, 1] / weight, 0.0, 1.0)
        variance = 2 * self.tail_scale**2 * (place**2 + (1 - place) ** 2) / weight**2
        return float(place[1] - place[0]), float(np.sqrt(variance.sum()))

    @property
    def hidden(self) -> float:
        """The part of the range by which a cap may move a mean."""
        by = self.lean[0]
        by_chance = _HIDES_BY_CHANCE / math.sqrt(self.users)
        part = _HIDES + by_chance
        if np.isnan(by):
            part *= _TIMES_UNSEEN
        else:
            part += _HIDES_OF_LEAN * abs(by)
        return part * (self.moved + self.unseen)

    @property
    def capped(self) -> float:
        """What all means rise by if users above the cap had all their weight, if it is sure.

        What may be due to the cells of these users is left out: differences between cells move no
        mean.
        """
        by, noise = self.lean
        if np.isnan(by):
            return 0.0
        of_cells = self._lean_of_cells
        inside = by
        if of_cells * by > 0:
            size = max(abs(by) - abs(of_cells), 0.0)
            inside = math.copysign(size, by)
        if not abs(inside) > _SURE * noise:
            return 0.0
        width = float(self.knots[-1] - self.knots[0])
        return self.moved * inside * width

    @cached_property
    def _lean_of_cells(self) -> float:
        """The lean if users above the cap were those of the cells with the highest priorities.

        Where priorities differ by less than an octave it is a part of that.
        """
        order = np.argsort(-self.priority, kind="stable")
        weight = np.maximum(self.weight[order], 0.0)
        light, heavy = self.tails[1:-1].reshape(2, 2).sum(axis=1)
        share = heavy / (light + heavy)
        left = weight.sum() * share
        before = np.cumsum(weight) - weight
        of_heavy = np.clip(left - before, 0.0, weight)
        of_light = weight - of_heavy
        if not (of_heavy.any() and of_light.any()):
            return 0.0
        place = (self._own_or_drawn[order] - self.knots[0]) / np.ptp(self.knots)
        heavy_place = np.average(place, weights=of_heavy)
        light_place = np.average(place, weights=of_light)
        apart = heavy_place - light_place
        octaves = np.log2(self.priority[order])
        middle = np.average(octaves, weights=weight)
        variance = np.average((octaves - middle) ** 2, weights=weight)
        explained = min(math.sqrt(float(variance)), 1.0)
        return float(apart) * explained

    @cached_property
    def beyond(self) -> Floats:
        """By how much values below and above the range may move each cell's mean, shape (2, cells).

        It is what the tails of all cells say, one noise scale more, and more of it in cells that
        have more of their weight at that end.
        """
        if not len(self.tails):
            return np.zeros((2, len(self.parts)))
        most = np.maximum(self.tails[[0, -1]], 0.0) + _UNSEEN_TAIL * self.tail_scale
        share = np.clip(most / max(float(self.tails.sum()), 1.0), 0.0, 1.0)
        low, high = self.bounds
        far = share * np.array([self.knots[0] - low, high - self.knots[-1]])
        at_ends = self.shares[:, [0, -1]] / np.maximum(self.pool[[0, -1]], _LEAST_SHARE)
        return np.asarray(far[:, None] * np.clip(at_ends**2, 1.0, _MOST_OF_TAIL).T)

    @property
    def is_range_wrong(self) -> bool:
        """Whether values surely lie so far outside of the range that it says nothing of means."""
        if not len(self.tails):
            return False
        sure = np.where(self.tails > _SURE * self.tail_scale, self.tails, 0.0)
        outside = sure / max(float(self.tails.sum()), 1.0)
        below, above = outside[0], outside[-1]
        low, high = self.bounds
        moves = max(below * (self.knots[0] - low), above * (high - self.knots[-1]))
        return bool(moves > _WRONG_RANGE * (self.knots[-1] - self.knots[0]))

    def noise(self, along: Floats) -> float:
        """Variance of the noise of a cell's parts along a direction, beside that of the pool."""
        return 2 * self.scale**2 * float(((along - self.pool @ along) ** 2).sum())

    def spread(self, along: Floats) -> float:
        """Variance between cells of what parts say along a direction, beyond noise.

        Too few cells say nothing of it: they may differ by the whole range.
        """
        if len(self.parts) < FEWEST_CELLS:
            return float(np.ptp(along)) ** 2 / 12
        away = (self.parts - self.pool * self.weight[:, None]) @ along
        many = self.parts.shape[1]
        heavy = np.maximum(self.weight**2 - 2 * many * self.scale**2, 0.0).sum()
        return max(float((away**2 - self.noise(along)).sum() / max(float(heavy), 1e-9)), 0.0)

    @cached_property
    def above_noise(self) -> Bools:
        """Cells whose mean has less noise than cells differ by."""
        enough = self.noise(self.knots) <= self.spread(self.knots) * self.weight**2
        return np.asarray((self.weight > 0) & enough)

    def ridge(self, along: Floats) -> Floats:
        """What each cell's parts say along a direction, drawn towards all cells together."""
        weight = np.maximum(self.weight, 0.0)
        spread = self.spread(along)
        middle = float(self.pool @ along)
        away = self.parts @ along - middle * self.weight
        drawn = away * weight * spread
        return np.asarray(
            middle + drawn / np.maximum(weight**2 * spread + self.noise(along), 1e-30)
        )

    @cached_property
    def shares(self) -> Floats:
        """Parts over the weight: a cell's own if its mean is above noise, else a drawn one."""
        own = self.parts / np.maximum(self.weight, self.scale / 2)[:, None]
        many = self.parts.shape[1]
        weight = np.maximum(self.weight, 0.0)[:, None]
        noise = 2 * self.scale**2 * (many - 2 + many * float((self.pool**2).sum()))
        away = self.parts - self.pool * self.weight[:, None]
        heavy = np.maximum(self.weight**2 - 2 * many * self.scale**2, 0.0).sum()
        spread = float(((away**2).sum(axis=1) - noise).sum() / max(float(heavy), 1e-9))
        spread = min(max(spread, 1e-4), 1.0)
        drawn = self.pool + away * weight * spread / (weight**2 * spread + noise)
        return np.where(self.above_noise[:, None], own, drawn)

    @cached_property
    def mean(self) -> Floats:
        """The mean of each cell, moved into the range, and by what lies outside of it."""
        found = self._own_or_drawn + self.capped
        inside = np.clip(found, self.knots[0], self.knots[-1])
        return np.asarray(inside + self.shift.sum())

    @cached_property
    def _own_or_drawn(self) -> Floats:
        """The mean of each cell's parts, which below the noise is drawn towards all cells."""
        own = self.parts @ self.knots / np.maximum(self.weight, self.scale / 2)
        return np.where(self.above_noise, own, self.ridge(self.knots))

    @cached_property
    def survival(self) -> Floats:
        """The weight of each cell above the beginning of each knot, shape (cells, knots)."""
        return np.asarray(np.cumsum(self.parts[:, ::-1], axis=1)[:, ::-1])

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """Places, and the part of each cell's weight above each of them, which falls from 1 to 0.

        It goes through the middles of pieces, and is 1 and 0 at the ends of the range.
        """
        above = np.clip(np.cumsum(self.shares[:, ::-1], axis=1)[:, -2::-1], 0.0, 1.0)
        ends = np.ones((len(above), 1))
        middles = (self.knots[1:] + self.knots[:-1]) / 2
        places = np.concatenate([self.knots[:1], middles, self.knots[-1:]])
        return places, np.concatenate([ends, _falling(above), 0 * ends], axis=1)

    def quantile(self, level: float) -> Floats:
        """Where the falling curve is 1 - level."""
        places, above = self._curve
        return np.array([np.interp(level - 1, -row, places) for row in above])

    def share(self, low: float, high: float) -> Floats:
        """The part of each cell's weight above `low` and up to `high`, by the falling curve."""
        places, above = self._curve
        return np.array(
            [np.interp(low, places, row) - np.interp(high, places, row) for row in above]
        )

    def share_interval(self, low: float, high: float, confidence: float) -> tuple[Floats, Floats]:
        """An interval of the part of each cell's values above `low` and up to `high`.

        Pieces that lie between both limits are surely in it, and the others but for those that lie
        outside surely are not; values at a limit may count or not.
        """
        least = self._inside(self._after(low), self._before(high), confidence)[0]
        most = self._inside(self._before(low), self._after(high), confidence)[1]
        return least, most

    def is_beyond(self, limit: float) -> bool:
        """Whether a limit is outside the range, where nothing was measured."""
        return bool(np.isfinite(limit) and not self.knots[0] < limit < self.knots[-1])

    def _before(self, limit: float) -> int:
        """The last piece that ends at a limit or below it; 0 if none does."""
        if limit == np.inf:
            return len(self.knots)
        return max(int(np.searchsorted(self.knots, limit, side="right")) - 1, 0)

    def _after(self, limit: float) -> int:
        """The first piece that begins at a limit or above it; one after the last if none does."""
        if limit == -np.inf:
            return 0
        return min(int(np.searchsorted(self.knots, limit, side="left")) + 1, len(self.knots))

    def _inside(self, first: int, last: int, confidence: float) -> tuple[Floats, Floats]:
        """An interval of the part of the weight at the knots from `first` to before `last`."""
        along = np.zeros(len(self.knots))
        along[first:last] = 1.0
        if not 0 < along.sum() < len(along):
            return np.full(len(self.parts), along[0]), np.full(len(self.parts), along[0])
        found = self._like_noise(along, confidence)
        return found.low, found.high

    def _like_noise(self, along: Floats, confidence: float) -> _Thetas:
        """The first and the last theta at which the parts, weighed by along - theta, are noise.

        Between neighbours of a grid both the parts and the quantile of noise are taken for linear.
        """
        theta = np.linspace(along.min(), along.max(), _GRID)
        away = along - theta[:, None]
        limit = self.scale * _laplace_sums(confidence, (away**2).sum(axis=1), (away**4).sum(axis=1))
        allowed = limit[:, None] + self.hidden * np.maximum(self.weight, 0.0) * np.ptp(theta)
        off = away @ self.parts.T
        inside = np.abs(off) <= allowed
        # A theta at which the parts are 0 is like noise, also where no neighbour of it is.
        zero = (along @ self.parts.T) / np.where(self.weight == 0, np.nan, self.weight)
        is_zero_inside = (theta[0] <= zero) & (zero <= theta[-1])
        after_zero = np.searchsorted(theta, zero)
        is_any_inside = inside.any(axis=0)
        first = np.where(is_any_inside, inside.argmax(axis=0), _GRID)
        last = np.where(is_any_inside, _GRID - 1 - inside[::-1].argmax(axis=0), -1)
        first = np.where(is_zero_inside, np.minimum(first, after_zero), first)
        last = np.where(is_zero_inside, np.maximum(last, after_zero - 1), last)
        none = first == _GRID
        at_low = none | (first == 0)
        at_high = none | (last == _GRID - 1)
        last_place = _GRID - 1
        before = np.clip(first - 1, 0, last_place)
        after = np.clip(last + 1, 0, last_place)
        low = _crossing(theta, off, allowed, before, np.minimum(before + 1, last_place))
        high = _crossing(theta, off, allowed, after, np.maximum(after - 1, 0))
        low = np.where(at_low, theta[0], low)
        high = np.where(at_high, theta[-1], high)
        return _Thetas(low, high, at_low, at_high)

    def mean_interval(self, confidence: float) -> tuple[Floats, Floats]:
        """All thetas at which the parts look like noise; the bounds where there is no weight."""
        found = self._like_noise(self.knots, confidence)
        least, most = self.bounds
        # Values below the range only lower a mean, and values above it only raise it.
        lowest = found.low + self.capped - self.beyond[0]
        highest = found.high + self.capped + self.beyond[1]
        low = np.where(found.at_low, least, np.clip(lowest, least, most))
        high = np.where(found.at_high, most, np.clip(highest, least, most))
        return low, high

    @cached_property
    def outlying(self) -> Bools:
        """Cells whose mean may lie at an end of the range, so that its values lie beyond it."""
        found = self._like_noise(self.knots, CONFIDENCE)
        below = found.at_low & (self.knots[0] > self.bounds[0])
        above = found.at_high & (self.knots[-1] < self.bounds[1])
        return np.asarray(below | above)

    def quantile_interval(self, level: float, confidence: float) -> tuple[Floats, Floats]:
        """Ends of pieces with surely more, or less, than 1 - level of the weight above."""
        pieces = len(self.knots) - 1
        number = np.arange(1, pieces + 1)
        squares, fourths = (
            number * (1 - level) ** power + (pieces + 1 - number) * level**power for power in (2, 4)
        )
        limit = self.scale * _laplace_sums(confidence, squares, fourths)
        allowed = limit + self.hidden * np.maximum(self.weight, 0.0)[:, None]
        over = self.survival[:, 1:] - (1 - level) * self.weight[:, None]
        # Only runs from an end on count, so that one level holds for all pieces.
        more = np.logical_and.accumulate(over > allowed, axis=1).sum(axis=1)
        less = np.logical_and.accumulate((over < -allowed)[:, ::-1], axis=1).sum(axis=1)
        least, most = self.bounds
        low = np.where(more > 0, self.knots[np.maximum(more - 1, 0)], least)
        high = np.where(less > 0, self.knots[np.minimum(pieces - less + 1, pieces)], most)
        return low, high


def _crossing(theta: Floats, off: Floats, allowed: Floats, outer: Ints, inner: Ints) -> Floats:
    """Returns where each cell's parts cease to be farther from 0 than allowed.

    It lies between two neighbours of theta, the outer of which is too far; off and allowed have the
    shape (thetas, cells) and are linear between them.
    """
    cell = np.arange(len(outer))
    sign = np.sign(off[outer, cell])
    too_far = sign * off[outer, cell] - allowed[outer, cell]
    not_too_far = allowed[inner, cell] - sign * off[inner, cell]
    step = theta[inner] - theta[outer]
    with np.errstate(invalid="ignore", divide="ignore"):
        part = too_far / (too_far + not_too_far)
        found = theta[outer] + part * step
    return np.asarray(found)


def _falling(above: Floats) -> Floats:
    """Returns the nearest curves that fall, a row for each cell."""
    fitted = [isotonic_regression(row, increasing=False).x for row in above]
    return np.array(fitted).reshape(above.shape)


def _laplace_sums(confidence: float, squares: Floats, fourths: Floats) -> Floats:
    """Returns quantiles of |sum of a Z| of standard Laplace Z, given sums of a^2 and of a^4."""
    found = [
        intervals.quantile(confidence, 0.0, 2 * square, square**2 / fourth)
        for square, fourth in zip(squares.tolist(), fourths.tolist(), strict=True)
    ]
    return np.array(found)
