"""Recounts values, claimed errors and intervals of cells, and bounds that hold for all plans."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.reading import Array, Release, cells_differ, differs

# Mechanisms that select a range in private.
_SELECTING = ("levy", "quantile", "akmv", "adaptive", "optimal_in_range", "user_clipped")
# The ratio r of both moments' noise scales at which their cost (1 + r)^2/(4 r) (5 + 4 r) is
# smallest: it solves 8 r^2 + 5 r - 5 = 0.
_RATIO = (math.sqrt(185) - 5) / 16
# The cost of both moments together at this ratio.
_JOINT_COST = (1 + _RATIO) ** 2 / (4 * _RATIO) * (5 + 4 * _RATIO)


class _Estimate(NamedTuple):
    """Values and ends of intervals of cells, without bias, and the size of the terms in a value.

    All are parts of the range.
    """

    value: Array
    low: Array
    high: Array
    size: Array


@dataclass(frozen=True, eq=False)
class CellValues:
    """The values and errors that follow from the noisy integers of cells."""

    cells: Release
    losses: Losses

    def differences(self) -> Iterator[str]:
        """Yields loss, claims, values, intervals, bounds and gaps that do not follow."""
        yield from self.losses.differences()
        cells = self.cells
        claims = np.array([cells.bias_bound, cells.worst_case_error], dtype=np.float64)
        claims = claims.reshape(2, len(cells.statistics), cells.size)
        for at, name in enumerate(cells.statistics):
            true = float(cells.ranges[name][1]) * np.array(self._errors(name))
            yield from cells_differ(f"bias bound and error of {name}", claims[:, at], true, 1e-9)
            yield from self._results(name)
        yield from self._not_proved()

    def _errors(self, name: str) -> tuple[Array, Array]:
        """Returns bias bound and worst-case error as parts of the range.

        Both are 1 if a smaller range is selected in private.
        """
        ones = np.ones(self.cells.size)
        if self.cells.name in _SELECTING:
            return ones, ones
        bias = self._bias(name, ones)
        return bias, bias + self._mean_noise(name)

    @cached_property
    def _moved(self) -> Array:
        """The mass of each cell by which weights differ from shares of records."""
        return np.array(self.losses.bias, dtype=np.float64)

    def _scale(self, name: str) -> Array:
        """Returns the noise scale of each cell as a part of the range."""
        return np.array(self.cells.scale[name], dtype=np.float64)

    def _bounding_bias(self, name: str) -> tuple[Array, Array]:
        """Returns the bias by bounding, and what is added to estimates, as parts of the range.

        Source: docs/theory/cells.md#variance.
        """
        moved = self._moved
        if name != "variance":
            return moved, np.zeros_like(moved)
        if self.cells.name not in ("optimal", "optimal_in_range"):
            moved = np.minimum(moved, 1 / 2)
            return 4 * moved * (1 - moved), np.zeros_like(moved)
        # Missing mass is assumed to lie in the middle of the bounds.
        missing = 2 * moved
        below = missing * (1 - missing)
        above = np.where(2 * missing <= 1, 3 * below, 1 - below)
        return (above + below) / 2, (above - below) / 2

    def _bias(self, name: str, width: Array) -> Array:
        """Returns the largest bias as a part of the range, given the widths of selected ranges."""
        cells = self.cells
        half_step = 2.0 ** -(cells.lattice_bits + 1)
        # Values are rounded to ticks. Methods but these also round users' means, to parts of ticks.
        exact_means = cells.method in ("balanced", "equalised", "uniform")
        means = 0 if exact_means else 1 / cells.top
        moved = means + 1025 / 1024 * 2.0 ** -(cells.tick_bits + 1)
        rounding = {"mean": moved, "variance": 4 * (moved + moved**2)}.get(name, means)
        steps = half_step * self._scale(name) * width
        if name == "variance" and cells.joint:
            # The square of the rounded mean is taken off.
            first = half_step * self._scale("mean")
            steps += 4 * (first + first**2)
        return np.asarray(rounding + steps + self._bounding_bias(name)[0])

    def _mean_noise(self, name: str) -> Array:
        """Returns mean absolute noise as a part of the range, or a bound of it for joint noise."""
        cells = self.cells
        size: float = cells.law.size(cells.lattice_bits)
        error = self._scale(name) * size
        if name == "variance" and cells.joint:
            # The square of the mean is taken off, whose noise adds to that of the second moment.
            first = self._scale("mean")
            error += 4 * (first * size + cells.law.square * first**2)
        return error

    def _results(self, name: str) -> Iterator[str]:
        """Yields values and intervals that do not follow from lattice steps."""
        cells = self.cells
        low, length = map(float, cells.ranges[name])
        top = low + length
        steps, selected, unclamped, value, interval = zip(*cells.results[name], strict=True)
        width = np.ones(cells.size)
        bias = self._bias(name, width)
        # Values are clamped to these ends, shape (2, cells).
        ends = np.array([[low], [top]])
        if None not in selected:
            ranges = np.array(selected, dtype=np.float64)
            width = np.diff(ranges).ravel() / cells.top
            by_range = [self.losses.range_bias(at, *each) for at, each in enumerate(selected)]
            bias = self._bias(name, width) + np.array(by_range, dtype=np.float64)
            bias = np.minimum(bias, 1)
            # If everybody is clipped to the selected range, sums are clamped to it.
            if not cells.widened and cells.name not in ("akmv", "user_clipped"):
                ends = (low + length * ranges / cells.top).T
        scale = self._scale(name) * width
        number = scale * np.array([each * 2.0**-cells.lattice_bits for each in steps])
        if cells.joint and name == "variance":
            # Mean and variance may each miss with half of the probability.
            found = self._variance(number, self._far((1 - cells.confidence) / 2))
        else:
            far = self._far(1 - cells.confidence) * scale
            found = _Estimate(number, number - far, number + far, 1 + np.abs(number))
        digits = 1e-14 * (abs(low) + length * found.size)
        true = low + length * found.value
        stated = np.array([unclamped, value], dtype=np.float64)
        yield from cells_differ(name, stated, np.array([true, np.clip(true, *ends)]), 0.0, digits)
        span = low + length * np.array([found.low - bias, found.high + bias])
        outside = (span[0] > top) | (span[1] < low)
        # An interval outside of the range says nothing, and becomes the whole range.
        span = np.where(outside, [[low], [top]], np.clip(span, low, top))
        # No interval is without the stated value.
        span = np.array([np.minimum(span[0], stated[1]), np.maximum(span[1], stated[1])])
        slack = 1e-6 * length * (bias + (found.high - found.low) / 2) + digits
        given = np.array(interval, dtype=np.float64).T
        yield from cells_differ(f"interval of {name}", given, span, 0.0, slack)

    def _far(self, miss: float) -> float:
        """Returns how many scales noise exceeds with probability `miss`."""
        far: float = self.cells.law.quantile(self.cells.lattice_bits, miss)
        return far

    def _variance(self, second: Array, far: float) -> "_Estimate":
        """Returns variances from the numbers of second moments, with noise of `far` scales."""
        cells = self.cells
        middle = self._bounding_bias("variance")[1]
        scale = self._scale("mean")
        steps = [each[0] * 2.0**-cells.lattice_bits for each in cells.results["mean"]]
        centre = scale * np.array(steps) - 1 / 2
        nearest = np.maximum(np.abs(centre) - far * scale, 0) ** 2
        farthest = np.minimum((np.abs(centre) + far * scale) ** 2, 1 / 4)
        moved = far * self._scale("variance")
        # Noise of scale b adds its variance, b^2 or 2 b^2, to the square of the mean.
        noise_variance = cells.law.variance * scale**2
        exact = second - 4 * (centre**2 - noise_variance) + middle
        lowest = second - moved - 4 * farthest + middle
        highest = second + moved - 4 * nearest + middle
        size = 1 + np.abs(second) + 4 * centre**2 + 8 * scale**2
        return _Estimate(exact, lowest, highest, size)

    def _not_proved(self) -> Iterator[str]:
        """Yields lower bounds and gaps to the best plan that are not proved."""
        cells = self.cells
        bounds: Any = []
        if cells.law is noise.LAPLACE:
            bounds = np.concatenate([*map(self._lower_bounds, cells.statistics)])
        yield from differs("lower bounds", cells.lower_bound or [], bounds, 1e-9)
        balanced = "balanced" in (cells.method, cells.settings.get("noise"))
        if cells.dual is None or cells.gap is None:
            if cells.gap is not None or cells.dual is not None or balanced:
                yield "a gap and its dual variables belong together"
        elif balanced:
            yield from differs("gap", cells.gap, self._balanced(cells.dual), 1e-6, 1e-9)
        elif cells.gap < 0 or not self._optimal_holds(cells.dual, cells.gap):
            yield f"a gap of {cells.gap:.9g} to the best plan is not proved"

    def _lower_bounds(self, name: str) -> Array:
        """Returns lower bounds with Laplace noise (docs/theory/cells.md#limits-of-means)."""
        cells = self.cells
        length = float(cells.ranges[name][1])
        epsilon = np.full(cells.size, float(cells.epsilon))
        if name != "variance":
            return length * self._least_error(np.full(cells.size, 0.5), epsilon)
        # With errors of at most `error`, at least the mass `kept` remains, and a unit of that mass
        # moves the variance by `move`.
        error = np.minimum(self._errors(name)[1], 0.5)
        kept = (1 + np.sqrt(np.maximum(1 - 2 * error, 0.0))) / 2
        heaviest = [cells.count[each].max() / cells.count[each].sum() for each in cells.members]
        move = 1 + _steeper(np.minimum(heaviest, kept), kept)
        return length * np.minimum(self._least_error(2 * kept, epsilon / move), error)

    def _least_error(self, cut: Array, epsilon: Array) -> Array:
        """Returns for each cell the least sum of cut mass and T/epsilon over all thresholds T."""
        cells = self.cells
        order = np.lexsort((cells.count, cells.cell))
        count = cells.count[order]
        cell = cells.cell[order]
        members = np.bincount(cell, minlength=cells.size)
        end = np.cumsum(members)
        total = np.add.reduceat(count, end - members)
        # Each count is tried as the threshold: users with as many records or more lose what they
        # have above it.
        heavier_records = np.cumsum(total)[cell] - np.cumsum(count) + count
        heavier_users = end[cell] - np.arange(len(cell))
        lost = heavier_records - count * heavier_users
        error = cut[cell] * lost + count / epsilon[cell]
        least = np.minimum(np.minimum.reduceat(error, end - members) / total, cut)
        return np.where(epsilon > 0, least, cut)

    def _balanced(self, dual: Array) -> float:
        """Returns how far the mean log scale could fall (docs/theory/cells.md#balanced-plans)."""
        cells = self.cells
        power: int = cells.law.power
        pairs, kind = self.losses.kinds
        moves_of_pairs = [self.losses.moves(at, moved) for at, moved in pairs]
        cost = np.array([sum(float(each) ** power for each in moves) for moves in moves_of_pairs])
        per_cell = np.bincount(cells.cell, dual[cells.user] * cost[kind], cells.size)
        spent = cells.epsilon if power == 1 else 2 * self.losses.largest
        weight = np.array(cells.weight)
        gap = float(weight @ np.log(weight / per_cell) / weight.sum())
        return max(0.0, gap + math.log(float(spent) * dual.sum() / weight.sum())) / power

    def _optimal_holds(self, dual: Array, gap: float) -> bool:
        """Returns whether all plans with errors divided by 1 + gap lose more.

        Source: docs/theory/cells.md#optimal-plan.
        """
        cells = self.cells
        targets = np.array(cells.targets)
        total_cost = 0.0
        names = cells.statistics
        errors = sum(self._bounding_bias(name)[0] + self._mean_noise(name) for name in names)
        allowed = (errors / targets).max() / (1 + gap) * (1 - 1e-9) * targets
        for members, error in zip(cells.members, allowed.tolist(), strict=True):
            counts = cells.count[members]
            price = dual[cells.user[members]]
            share = counts / counts.sum()
            order = np.argsort(price)
            missing = self._most_missing(error)
            # The bias by any smaller missing mass is at least this slope times that mass.
            slope = self._bias_of_missing(missing) / max(missing, 1e-12)
            if error < slope:
                # With users v of a cell, its cost is at least c (sum dual v)/(E - a + a sum v),
                # where E is `error` and a is `slope`; it is least with the cheapest users.
                capacity = error - slope + slope * np.cumsum(share[order])
                paid = self._cost(float(share.max()), missing) * np.cumsum((price * share)[order])
                total_cost += float((paid[capacity > 0] / capacity[capacity > 0]).min())
        # Dual variables divided by their sum prove that some user loses at least this cost.
        least = total_cost / dual.sum()
        return bool(least >= float(cells.epsilon - self.losses.once) * (1 - 1e-9))

    def _bias_of_missing(self, missing: float) -> float:
        """Returns the bias of all statistics together if a cell lacks this part of its mass."""
        names = self.cells.statistics
        linear = sum(name != "variance" for name in names)
        moved = min(missing, 0.5)
        return linear * missing / 2 + 2 * moved * (1 - moved) * ("variance" in names)

    def _most_missing(self, error: float) -> float:
        """Returns the largest missing mass whose bias is at most an error, by halving."""
        low = 0.0
        high = 1.0
        for _ in range(80):
            middle = (low + high) / 2
            if self._bias_of_missing(middle) <= error:
                low = middle
            else:
                high = middle
        return high

    def _cost(self, heaviest: float, missing: float) -> float:
        """Returns the cost of a cell: the least loss of a user of weight 1 at a unit of noise.

        It is the square of a sum of roots of sensitivities, divided by weights.
        """
        names = self.cells.statistics
        linear = sum(name != "variance" for name in names)
        if "variance" not in names:
            return float(linear**2)
        mass = np.asarray(1 - missing)
        direct = (linear + math.sqrt(1 + _steeper(np.minimum(heaviest, mass), mass))) ** 2
        if "mean" not in names:
            return direct
        # Mean and second moment together may cost less than mean and variance.
        joint = (linear - 1 + math.sqrt(_JOINT_COST)) ** 2
        return min(direct, joint)


def _steeper(part: Array, mass: Array) -> Array:
    """Returns what other users add to the move of a variance by a user, divided by its part."""
    others = mass - part
    more = (others**2 / (1 - part) - np.maximum(others - part, 0.0) ** 2) / part
    return np.where((part > 0) & (part < 1), np.maximum(more, 0.0), 0.0)
