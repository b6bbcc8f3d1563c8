"""Values, claimed errors and certified intervals of cells, and what a plan proves of others."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.reading import Array, Release, cells_differ, differs

# Mechanisms that select a range in private.
_SELECTING = ("levy", "quantile", "akmv", "adaptive", "optimal_in_range", "user_clipped")
# The least (1 + r)^2/(4 r) (5 + 4 r): what both moments cost together, at 8 r^2 + 5 r - 5 = 0.
_R = (math.sqrt(185) - 5) / 16
_JOINT_COST = (1 + _R) ** 2 / (4 * _R) * (5 + 4 * _R)


@dataclass(frozen=True, eq=False)
class CellValues:
    """What the noisy integers of cells stand for."""

    cells: Release
    losses: Losses

    def differences(self) -> Iterator[str]:
        """Loss, claims, values, intervals, bounds and gaps that do not follow."""
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
        """Bias bound and worst-case error over the range; 1 where a smaller range is selected."""
        whole = np.ones(self.cells.size)
        if self.cells.name in _SELECTING:
            return whole, whole
        bias = self._bias(name, whole)
        return bias, bias + self._mean_noise(name)

    @cached_property
    def _moved(self) -> Array:
        """Mass of each cell that is weighed otherwise than records are."""
        return np.array(self.losses.bias, dtype=np.float64)

    def _scale(self, name: str) -> Array:
        """Noise scale of each cell over the range."""
        return np.array(self.cells.scale[name], dtype=np.float64)

    def _bounding_bias(self, name: str) -> tuple[Array, Array]:
        """Bias by bounding over the range, and what is added (docs/theory/cells.md#variance)."""
        moved = self._moved
        if name != "variance":
            return moved, np.zeros_like(moved)
        if self.cells.name not in ("optimal", "optimal_in_range"):
            moved = np.minimum(moved, 1 / 2)
            return 4 * moved * (1 - moved), np.zeros_like(moved)
        # What is missing is taken to lie in the middle of the bounds.
        missing = 2 * moved
        below = missing * (1 - missing)
        above = np.where(2 * missing <= 1, 3 * below, 1 - below)
        return (above + below) / 2, (above - below) / 2

    def _bias(self, name: str, width: Array) -> Array:
        """Most that estimates are off before noise, over their range, in ranges of this width."""
        cells = self.cells
        half_step = 2.0 ** -(cells.lattice_bits + 1)
        shares = cells.method in ("balanced", "equalised", "uniform")
        means = 0 if shares else 1 / cells.top
        moved = means + 1025 / 1024 * 2.0 ** -(cells.tick_bits + 1)
        rounding = {"mean": moved, "variance": 4 * (moved + moved**2)}.get(name, means)
        steps = half_step * self._scale(name) * width
        if name == "variance" and cells.joint:
            first = half_step * self._scale("mean")
            steps += 4 * (first + first**2)
        return np.asarray(rounding + steps + self._bounding_bias(name)[0])

    def _mean_noise(self, name: str) -> Array:
        """Mean absolute noise over the range; of a joint variance, a bound."""
        cells = self.cells
        step = 2.0**-cells.lattice_bits
        mean = math.sqrt(2 / math.pi) if cells.gaussian else step / math.sinh(step)
        error = self._scale(name) * mean
        if name == "variance" and cells.joint:
            first = self._scale("mean")
            square = noise.GAUSSIAN_SQUARE if cells.gaussian else noise.LAPLACE_SQUARE
            error += 4 * (first * mean + square * first**2)
        return error

    def _results(self, name: str) -> Iterator[str]:
        """Whether values and their intervals follow from lattice steps."""
        cells = self.cells
        low, length = map(float, cells.ranges[name])
        steps, ends, unclamped, value, interval = zip(*cells.results[name], strict=True)
        width = np.ones(cells.size)
        bias = self._bias(name, width)
        selected = None not in ends
        if selected:
            width = np.diff(np.array(ends, dtype=np.float64)).ravel() / cells.top
            ranges = [self.losses.range_bias(at, *each) for at, each in enumerate(ends)]
            bias = self._bias(name, width) + np.array(ranges, dtype=np.float64)
            bias = np.minimum(bias, 1)
        joint = cells.joint and name == "variance"
        miss = (1 - cells.confidence) / (2 if joint else 1)
        far = noise.quantile(cells.lattice_bits, miss, gaussian=cells.gaussian)
        scale = self._scale(name) * width
        exact = scale * np.array([each * 2.0**-cells.lattice_bits for each in steps])
        least = exact - far * scale
        most = exact + far * scale
        size = 1 + np.abs(exact)
        if joint:
            exact, least, most, size = self._variance(exact, far)
        digits = 1e-14 * (abs(low) + length * size)
        true = low + length * exact
        inside = np.broadcast_to([low, low + length], (cells.size, 2))
        # Sums are clamped to the selected range where everybody is clipped to it.
        if selected and not cells.widened and cells.name not in ("akmv", "user_clipped"):
            inside = low + length * np.array(ends, dtype=np.float64) / cells.top
        values = np.array([true, np.clip(true, *inside.T)])
        stated = np.array([unclamped, value], dtype=np.float64)
        yield from cells_differ(name, stated, values, 0.0, digits)
        span = low + length * np.array([least - bias, most + bias])
        top = low + length
        outside = (span[0] > top) | (span[1] < low)
        span = np.where(outside, [[low], [top]], np.clip(span, low, top))
        span = np.array([np.minimum(span[0], stated[1]), np.maximum(span[1], stated[1])])
        slack = 1e-6 * length * (bias + (most - least) / 2) + digits
        given = np.array(interval, dtype=np.float64).T
        yield from cells_differ(f"interval of {name}", given, span, 0.0, slack)

    def _variance(self, second: Array, far: float) -> tuple[Array, Array, Array, Array]:
        """Variances by both moments, their ends but for the bias, and the size of their parts."""
        cells = self.cells
        middle = self._bounding_bias("variance")[1]
        scale = self._scale("mean")
        steps = [each[0] * 2.0**-cells.lattice_bits for each in cells.results["mean"]]
        centre = scale * np.array(steps) - 1 / 2
        nearest = np.maximum(np.abs(centre) - far * scale, 0) ** 2
        farthest = np.minimum((np.abs(centre) + far * scale) ** 2, 1 / 4)
        moved = far * self._scale("variance")
        # The square of the noise adds b^2, or 2 b^2, to that of the mean.
        exact = second - 4 * (centre**2 - (1 if cells.gaussian else 2) * scale**2)
        ends = second - moved - 4 * farthest + middle, second + moved - 4 * nearest + middle
        return exact + middle, *ends, 1 + np.abs(second) + 4 * centre**2 + 8 * scale**2

    def _not_proved(self) -> Iterator[str]:
        """Lower bounds, and gaps to the best plan, that are not proved."""
        cells = self.cells
        true: Any = [] if cells.gaussian else np.concatenate([*map(self._least, cells.statistics)])
        yield from differs("lower bounds", cells.lower_bound or [], true, 1e-9)
        balanced = "balanced" in (cells.method, cells.settings.get("noise"))
        if cells.dual is None or cells.gap is None:
            if cells.gap is not None or cells.dual is not None or balanced:
                yield "a gap and its dual variables belong together"
        elif balanced:
            yield from differs("gap", cells.gap, self._balanced(cells.dual), 1e-6, 1e-9)
        elif cells.gap < 0 or not self._optimal_holds(cells.dual, cells.gap):
            yield f"a gap of {cells.gap:.9g} to the best plan is not proved"

    def _least(self, name: str) -> Array:
        """Errors below any Laplace noise of this loss (docs/theory/cells.md#limits-of-means)."""
        cells = self.cells
        length = float(cells.ranges[name][1])
        epsilon = np.full(cells.size, float(cells.epsilon))
        if name != "variance":
            return length * self._least_error(np.full(cells.size, 0.5), epsilon)
        # Errors of at most this leave this mass, of which a unit moves the variance so much.
        most = np.minimum(self._errors(name)[1], 0.5)
        kept = (1 + np.sqrt(np.maximum(1 - 2 * most, 0.0))) / 2
        heaviest = [cells.count[each].max() / cells.count[each].sum() for each in cells.members]
        move = 1 + _steeper(np.minimum(heaviest, kept), kept)
        return length * np.minimum(self._least_error(2 * kept, epsilon / move), most)

    def _least_error(self, cut: Array, epsilon: Array) -> Array:
        """Least over all thresholds T of the mass that is cut and of T/epsilon, of each cell."""
        cells = self.cells
        order = np.lexsort((cells.count, cells.cell))
        count = cells.count[order]
        cell = cells.cell[order]
        members = np.bincount(cell, minlength=cells.size)
        end = np.cumsum(members)
        total = np.add.reduceat(count, end - members)
        # Records of users who have at least as many, and how many users they are.
        above = np.cumsum(total)[cell] - np.cumsum(count) + count
        lost = above - count * (end[cell] - np.arange(len(cell)))
        found = cut[cell] * lost + count / epsilon[cell]
        least = np.minimum(np.minimum.reduceat(found, end - members) / total, cut)
        return np.where(epsilon > 0, least, cut)

    def _balanced(self, dual: Array) -> float:
        """How far the mean of ln b could still fall (docs/theory/cells.md#balanced-plans)."""
        cells = self.cells
        power = 2 if cells.gaussian else 1
        pairs, kind = self.losses.kinds
        moves = [self.losses.moves(at, moved) for at, moved in pairs]
        cost = np.array([sum(float(each) ** power for each in one) for one in moves])
        per_cell = np.bincount(cells.cell, dual[cells.user] * cost[kind], cells.size)
        spent = 2 * self.losses.largest if cells.gaussian else cells.epsilon
        weight = np.array(cells.weight)
        gap = float(weight @ np.log(weight / per_cell) / weight.sum())
        return max(0.0, gap + math.log(float(spent) * dual.sum() / weight.sum())) / power

    def _optimal_holds(self, dual: Array, gap: float) -> bool:
        """Whether plans of errors over 1 + gap lose more (docs/theory/cells.md#optimal-plan)."""
        cells = self.cells
        targets = np.array(cells.targets)
        total = 0.0
        names = cells.statistics
        errors = sum(self._bounding_bias(name)[0] + self._mean_noise(name) for name in names)
        allowed = (errors / targets).max() / (1 + gap) * (1 - 1e-9) * targets
        linear = sum(name != "variance" for name in names)
        varies = "variance" in names

        def bias(missing: float) -> float:
            moved = min(missing, 0.5)
            return linear * missing / 2 + 2 * moved * (1 - moved) * varies

        for members, error in zip(cells.members, allowed.tolist(), strict=True):
            counts = cells.count[members]
            price = dual[cells.user[members]]
            share = counts / counts.sum()
            order = np.argsort(price)
            low = 0.0
            missing = 1.0
            for _ in range(80):
                middle = (low + missing) / 2
                low, missing = (middle, missing) if bias(middle) <= error else (low, middle)
            slope = bias(missing) / max(missing, 1e-12)
            if error < slope:
                # The cheapest users v of a cell cost at least c (sum dual v)/(E - a + a sum v).
                capacity = error - slope + slope * np.cumsum(share[order])
                paid = self._cost(float(share.max()), missing) * np.cumsum((price * share)[order])
                total += float((paid[capacity > 0] / capacity[capacity > 0]).min())
        return bool(total / dual.sum() >= float(cells.epsilon - self.losses.once) * (1 - 1e-9))

    def _cost(self, heaviest: float, missing: float) -> float:
        """c: the least square of the sum of the roots of the sensitivities over the weight."""
        names = self.cells.statistics
        linear = sum(name != "variance" for name in names)
        if "variance" not in names:
            return float(linear**2)
        mass = np.asarray(1 - missing)
        direct = (linear + math.sqrt(1 + _steeper(np.minimum(heaviest, mass), mass))) ** 2
        joint = (linear - 1 + math.sqrt(_JOINT_COST)) ** 2
        return min(direct, joint) if "mean" in names else direct


def _steeper(part: Array, mass: Array) -> Array:
    """What others add to how far a share moves a variance, over the share."""
    others = mass - part
    more = (others**2 / (1 - part) - np.maximum(others - part, 0.0) ** 2) / part
    return np.where((part > 0) & (part < 1), np.maximum(more, 0.0), 0.0)
