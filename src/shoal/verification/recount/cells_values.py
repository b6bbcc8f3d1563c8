"""Values, claimed errors and certified intervals of cells, and what a plan proves of others."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.reading import Array, Release, differs

# Mechanisms that select a range in private.
_SELECTING = ("levy", "quantile", "akmv", "adaptive", "optimal_in_range", "user_clipped")
# The least (1 + r)^2/(4 r) (5 + 4 r): what both moments cost together, at 8 r^2 + 5 r - 5 = 0.
_R = (math.sqrt(185) - 5) / 16
_JOINT_COST = (1 + _R) ** 2 / (4 * _R) * (5 + 4 * _R)


@dataclass(frozen=True, eq=False)
class Values:
    """What the noisy integers of cells stand for."""

    cells: Release
    losses: Losses

    def differences(self) -> Iterator[str]:
        """Loss, claims, values, intervals, bounds and gaps that do not follow."""
        yield from self.losses.differences()
        cells = self.cells
        places = [(name, at) for name in cells.statistics for at in range(cells.size)]
        stated = zip(cells.bias_bound, cells.worst_case_error, strict=True)
        for (name, at), claims in zip(places, stated, strict=True):
            true = [float(self.cells.ranges[name][1]) * each for each in self._errors(name, at)]
            yield from differs(f"bias bound and error of {name} of cell {at}", claims, true, 1e-9)
            yield from self._result(name, at)
        yield from self._not_proved()

    def _errors(self, name: str, at: int) -> tuple[float, float]:
        """Bias bound and worst-case error over the range; 1 where a smaller range is selected."""
        if self.cells.name in _SELECTING:
            return 1.0, 1.0
        bias = float(self._bias(name, at, Fraction(1)))
        return bias, bias + self._mean_noise(name, at)

    def _bounding_bias(self, name: str, at: int) -> tuple[Fraction, Fraction]:
        """Bias by bounding over the range, and what is added (docs/theory/cells.md#variance)."""
        moved, missing = self.losses.bias[at], 2 * self.losses.bias[at]
        if name != "variance":
            return moved, Fraction(0)
        if self.cells.name not in ("optimal", "optimal_in_range"):
            moved = min(moved, Fraction(1, 2))
            return 4 * moved * (1 - moved), Fraction(0)
        # What is missing is taken to lie in the middle of the bounds.
        below = missing * (1 - missing)
        above = 3 * below if 2 * missing <= 1 else 1 - below
        return (above + below) / 2, (above - below) / 2

    def _bias(self, name: str, at: int, width: Fraction) -> Fraction:
        """Most that an estimate is off before noise, over its range, in a range of this width."""
        cells, half_step = self.cells, Fraction(1, 2 << self.cells.lattice_bits)
        shares = cells.method in ("balanced", "equalised", "uniform")
        means = Fraction(0 if shares else 1, cells.top)
        moved = means + Fraction(1025, 1024 << (cells.tick_bits + 1))
        rounding = {"mean": moved, "variance": 4 * (moved + moved**2)}.get(name, means)
        rounding += half_step * cells.scale[name][at] * width
        if name == "variance" and cells.joint:
            first = half_step * cells.scale["mean"][at]
            rounding += 4 * (first + first**2)
        return rounding + self._bounding_bias(name, at)[0]

    def _mean_noise(self, name: str, at: int) -> float:
        """Mean absolute noise over the range; of a joint variance, a bound."""
        cells, step = self.cells, 2.0**-self.cells.lattice_bits
        mean = math.sqrt(2 / math.pi) if cells.gaussian else step / math.sinh(step)
        error = float(cells.scale[name][at]) * mean
        if name == "variance" and cells.joint:
            first = float(cells.scale["mean"][at])
            square = noise.GAUSSIAN_SQUARE if cells.gaussian else noise.LAPLACE_SQUARE
            error += 4 * (first * mean + square * first**2)
        return error

    def _result(self, name: str, at: int) -> Iterator[str]:
        """Whether a value and its interval follow from lattice steps."""
        cells, (low, length) = self.cells, self.cells.ranges[name]
        steps, ends, unclamped, value, interval = cells.results[name][at]
        width = Fraction(ends[1] - ends[0], cells.top) if ends else Fraction(1)
        bias, joint = self._bias(name, at, width), cells.joint and name == "variance"
        if ends:
            bias = min(bias + self.losses.range_bias(at, ends[0], ends[1]), Fraction(1))
        miss = (1 - cells.confidence) / (2 if joint else 1)
        far = Fraction(noise.quantile(cells.lattice_bits, miss, gaussian=cells.gaussian))
        scale = cells.scale[name][at] * width
        drawn = scale * Fraction(steps, 2**cells.lattice_bits)
        exact, least, most, size = drawn, drawn - far * scale, drawn + far * scale, 1 + abs(drawn)
        if joint:
            exact, least, most, size = self._variance(at, drawn, far)
        digits = 1e-14 * float(abs(low) + length * size)
        true, *span = (float(low + length * each) for each in (exact, least - bias, most + bias))
        # Sums are clamped to the selected range where everybody is clipped to it.
        if ends is None or cells.widened or cells.name in ("akmv", "user_clipped"):
            ends = [0, cells.top]
        inside = [float(low + length * end / cells.top) for end in ends]
        values = [true, min(max(true, inside[0]), inside[1])]
        yield from differs(f"{name} of cell {at}", [unclamped, value], values, 0.0, digits)
        bottom, top = float(low), float(low + length)
        if span[0] > top or span[1] < bottom:
            span = [bottom, top]
        span = [min(max(span[0], bottom), value), max(min(span[1], top), value)]
        slack = 1e-6 * float(length * (bias + (most - least) / 2)) + digits
        yield from differs(f"interval of {name} of cell {at}", interval, span, 0.0, slack)

    def _variance(self, at: int, second: Fraction, far: Fraction) -> tuple[Fraction, ...]:
        """A variance by both moments, its ends but for the bias, and the size of its parts."""
        cells, middle = self.cells, self._bounding_bias("variance", at)[1]
        scale, steps = cells.scale["mean"][at], cells.results["mean"][at][0]
        centre = scale * Fraction(steps, 2**cells.lattice_bits) - Fraction(1, 2)
        squares = sorted((centre + side * far * scale) ** 2 for side in (-1, 1))
        least = Fraction(0) if abs(centre) <= far * scale else squares[0]
        moved, most = far * cells.scale["variance"][at], min(squares[1], Fraction(1, 4))
        # The square of the noise adds b^2, or 2 b^2, to that of the mean.
        exact = second - 4 * (centre**2 - (1 if cells.gaussian else 2) * scale**2)
        ends = (exact, second - moved - 4 * most, second + moved - 4 * least)
        size = 1 + abs(second) + 4 * centre**2 + 8 * scale**2
        return (*(each + middle for each in ends), size)

    def _not_proved(self) -> Iterator[str]:
        """Lower bounds, and gaps to the best plan, that are not proved."""
        cells = self.cells
        places = [(name, at) for name in cells.statistics for at in range(cells.size)]
        true = [] if cells.gaussian else [self._least(name, at) for name, at in places]
        yield from differs("lower bounds", cells.lower_bound or [], true, 1e-9)
        balanced = "balanced" in (cells.method, cells.settings.get("noise"))
        if cells.dual is None or cells.gap is None:
            if cells.gap is not None or cells.dual is not None or balanced:
                yield "a gap and its dual variables belong together"
        elif balanced:
            yield from differs("gap", cells.gap, self._balanced(cells.dual), 1e-6, 1e-9)
        elif cells.gap < 0 or not self._optimal_holds(cells.dual, cells.gap):
            yield f"a gap of {cells.gap:.9g} to the best plan is not proved"

    def _least(self, name: str, at: int) -> float:
        """Error that no Laplace noise of this loss beats (docs/theory/cells.md#limits-of-means)."""
        cells, length = self.cells, float(self.cells.ranges[name][1])
        counts = np.sort(cells.count[cells.members[at]]).astype(np.float64)
        if name != "variance":
            return length * _least_error(counts, 0.5, float(cells.epsilon))
        # Errors of at most this leave this mass, of which a unit moves the variance so much.
        most = min(self._errors(name, at)[1], 0.5)
        kept = (1 + math.sqrt(max(1 - 2 * most, 0.0))) / 2
        move = 1 + _steeper(min(float(counts[-1] / counts.sum()), kept), kept)
        return length * min(_least_error(counts, 2 * kept, float(cells.epsilon) / move), most)

    def _balanced(self, dual: Array) -> float:
        """How far the mean of ln b could still fall (docs/theory/cells.md#balanced-plans)."""
        cells, power = self.cells, 2 if self.cells.gaussian else 1
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
        cells, targets, total = self.cells, np.array(self.cells.targets), 0.0
        names, errors = cells.statistics, np.zeros(cells.size)
        for at, name in itertools.product(range(cells.size), names):
            errors[at] += float(self._bounding_bias(name, at)[0]) + self._mean_noise(name, at)
        allowed = (errors / targets).max() / (1 + gap) * (1 - 1e-9) * targets
        linear, varies = sum(name != "variance" for name in names), "variance" in names

        def bias(missing: float) -> float:
            moved = min(missing, 0.5)
            return linear * missing / 2 + 2 * moved * (1 - moved) * varies

        for members, error in zip(cells.members, allowed.tolist(), strict=True):
            counts, price = cells.count[members], dual[cells.user[members]]
            share, order, low, missing = counts / counts.sum(), np.argsort(price), 0.0, 1.0
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
        direct = (linear + math.sqrt(1 + _steeper(min(heaviest, 1 - missing), 1 - missing))) ** 2
        joint = (linear - 1 + math.sqrt(_JOINT_COST)) ** 2
        return min(direct, joint) if "mean" in names else direct


def _steeper(part: float, mass: float) -> float:
    """What others add to how far a share moves a variance, over the share."""
    others = mass - part
    if not 0 < part < 1:
        return 0.0
    return max((others**2 / (1 - part) - max(others - part, 0.0) ** 2) / part, 0.0)


def _least_error(counts: Array, cut: float, epsilon: float) -> float:
    """Least over all thresholds T of the mass that is cut and of T/epsilon; counts rise."""
    if epsilon <= 0:
        return cut
    above = np.append(np.cumsum(counts[::-1])[::-1], 0)
    threshold, at = np.append(0, counts), np.append(0, np.arange(len(counts)))
    lost = above[at] - threshold * (len(counts) - at)
    return float((cut * lost + threshold / epsilon).min() / above[0])
