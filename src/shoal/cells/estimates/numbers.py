"""Converts the noisy lattice numbers of a release to values, ranges and error bars."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.facts.basis import Basis, basis_of, mean_rounding
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.remembered import Remembering
from shoal.cells.mechanisms.cell_statistics import Mean
from shoal.cells.mechanisms.private_sums import Interval
from shoal.checks import check_confidence
from shoal.privacy.noise import Counted

Ends: TypeAlias = "tuple[Floats, Floats]"


@dataclass(frozen=True, eq=False)
class Estimates(Remembering):
    """The released numbers of a plan, as lattice steps and in the unit of each statistic.

    Arrays have a number for each statistic of each planned cell, statistic by statistic. `excess`
    counts in parts what clipping cut off from all users together, below and above, and then the
    users who are far; each number has noise.
    """

    basis: Basis
    steps: list[int]
    chosen: Interval | None
    excess: Counted | None = None

    @classmethod
    def of(
        cls, plan: Facts, steps: list[int], chosen: Interval | None, excess: Counted | None = None
    ) -> "Estimates":
        """The numbers that were drawn for a basis."""
        return cls(basis_of(plan, chosen), steps, chosen, excess)

    @cached_property
    def _drawn(self) -> Floats:
        """The values that lattice numbers stand for; of a joint variance, the second moment."""
        basis = self.basis
        cells = len(basis.planned)
        scales = basis.scale.tolist()
        widths = self._widths
        values = list[float]()
        for at, (low, length) in enumerate(basis.statistic_ranges):
            rows = slice(at * cells, (at + 1) * cells)
            # The length of one unit of a width.
            unit = length / self._whole_width
            values += _values(low, unit, basis.bits, self.steps[rows], scales[rows], widths[rows])
        return np.array(values)

    @cached_property
    def unclamped(self) -> Floats:
        """The estimates before they are moved into ranges, shape (numbers,), in their units."""
        found = self._drawn
        if self.basis.joint:
            found = found.copy()
            found[self._variance_rows] = joint_variances(self.basis, self._shares)
        return found

    @cached_property
    def value(self) -> Floats:
        """The estimates, moved into `range`, shape (numbers,), in their units."""
        return np.clip(self.unclamped, *self.range)

    @property
    def range(self) -> Ends:
        """The range that holds each estimate: the one that bounds allow, or a selected one.

        A selected range of sums, or one that is wider for lighter users, need not hold the
        estimate: then the bounds are the range.
        """
        if not self.basis.held:
            return self.basis.limits
        return self._selected

    @property
    def of_vectors(self) -> bool:
        """Whether users' whole vectors were clipped to a ball."""
        return self.basis.of_vectors

    @cached_property
    def _selected(self) -> Ends:
        """The selected range of the means; the range that bounds allow if none was selected."""
        chosen = self.chosen
        if chosen is None or self.basis.sums:
            return self.basis.limits
        return self._places(chosen.low), self._places(chosen.high)

    def _places(self, ticks: Ints) -> Floats:
        """Converts whole multiples of 2^-FINE ticks to the value's unit."""
        place = self.basis.lattice.value
        return np.array([place(at, self.top) for at in ticks.tolist()])

    def clipped_to(self, at: int) -> tuple[float, float] | None:
        """Returns the range to which one cell's means (for akmv, sums above lo) were clipped."""
        basis = self.basis
        top = self.top
        if self.chosen is None:
            return None
        low = int(self.chosen.low[at])
        high = int(self.chosen.high[at])
        if basis.sums:
            return 0.0, high / top * basis.width
        if self.of_vectors:
            # The selected ends are the centre of a ball and its upper edge.
            centre = low
            low = max(centre - (high - centre), 0)
            high = min(high, top)
        place = basis.lattice.value
        return place(low, top), place(high, top)

    @property
    def noise_scale(self) -> Floats:
        """Noise scale of each number with its selected range, shape (numbers,), in its unit."""
        return self.basis.scale * self._width * self.basis.statistic_range

    @property
    def bias_bound(self) -> Floats:
        """Largest bias in any data set with these ranges, shape (numbers,), in their units."""
        return self.basis.bias_bound

    def half_widths(self, confidence: float) -> Floats:
        """Returns, for each number released directly, its bias bound plus a quantile of noise."""
        return self.bias_bound + self.noise_scale * self.quantile(1 - confidence)

    def intervals(self, confidence: float) -> Ends:
        """Returns intervals that cover in every data set, cut to the range that bounds allow.

        An interval outside that range becomes all of it.
        """
        confidence = check_confidence(confidence)
        basis = self.basis
        half = self.half_widths(confidence)
        low = self.unclamped - half
        high = self.unclamped + half
        if basis.joint:
            rows = self._variance_rows
            noise = self.quantile((1 - confidence) / 2)
            low[rows], high[rows] = joint_intervals(basis, self._shares, noise)
        lowest, highest = basis.limits
        outside = (low > highest) | (high < lowest)
        low = np.where(outside, lowest, np.maximum(low, lowest))
        high = np.where(outside, highest, np.minimum(high, highest))
        # A value moved into its range stays inside its interval.
        return np.minimum(low, self.value), np.maximum(high, self.value)

    def typical_intervals(self, confidence: float) -> Ends:
        """Returns intervals of means for exchangeable users, never wider than `intervals`.

        The probability of a miss is shared by the noise and by a normal variable with the
        basis's `deviation`. Where users count in parts of a selected range, their means are assumed
        to lie in it (docs/theory/cells.md#adaptive-mean).
        """
        low, high = self.intervals(confidence)
        basis = self.basis
        miss = 1 - confidence
        only_means = basis.statistics == (Mean(),) and not basis.sums
        if basis.windows and self.chosen is not None:
            bias = basis.missing * self._width / 2
        elif not basis.windows and only_means:
            # Half of the probability of a miss is for the noise, half for the normal variable.
            miss /= 2
            level = 1 - miss / 2
            # Where rounding makes the level 1, only the certified interval is finite.
            normal = NormalDist().inv_cdf(level) if level < 1 else np.inf
            bias = normal * basis.deviation
        else:
            return low, high
        noise = self.noise_scale * self.quantile(miss)
        half = noise + (bias + self._rounding) * basis.width
        lower = self.unclamped - half
        upper = self.unclamped + half
        inner_low = np.minimum(np.maximum(low, lower), self.value)
        inner_high = np.maximum(np.minimum(high, upper), self.value)
        # A typical interval wholly outside the bounds shows that its assumption is false, or that
        # the noise was unusually large: then the certified interval is given.
        outside = (upper <= basis.bounds.lo) | (lower >= basis.bounds.hi)
        return np.where(outside, low, inner_low), np.where(outside, high, inner_high)

    def without_missing_mass(self) -> "NoisyMeans":
        """Returns the cells' means without the mass that windows put in the middle.

        With missing mass d a mean is (estimate - d middle)/(1 - d) and its noise scale is divided
        by 1 - d. Where all mass is missing, the noise scale is ten widths.
        """
        basis = self.basis
        missing = basis.missing
        cells = len(basis.planned)
        first = basis.statistics.index(Mean()) * cells
        rows = slice(first, first + cells)
        low, high = basis.limits
        if missing.any():
            low, high = self._selected
        middle = (low[rows] + high[rows]) / 2
        empty = missing >= 1
        # Nothing is divided by 0: the results of empty cells are replaced.
        not_missing = np.maximum(1 - missing, 1e-9)
        estimate = (self.unclamped[rows] - missing * middle) / not_missing
        estimate = np.where(empty, middle, estimate)
        scale = np.where(empty, 10 * basis.width, self.noise_scale[rows] / not_missing)
        return NoisyMeans(estimate, scale, basis.deviation * basis.width)

    @property
    def radius(self) -> float | None:
        """The private radius of users' vectors, in the value's unit; None without one."""
        if self.chosen is None or not self.of_vectors:
            return None
        return float(self.chosen.width[0]) / self.top * self.basis.width

    def quantile(self, miss: float) -> float:
        """Returns how many noise scales noise exceeds with at most this probability."""
        bits = self.basis.bits
        return float(self.basis.law.tail_quantile(2.0**bits, miss)) * 2.0**-bits

    @property
    def _shares(self) -> Floats:
        """The numbers as parts of their ranges: more precise than values far from 0."""
        basis = self.basis
        scale = basis.scale * 2.0**-basis.bits
        return np.array(self.steps, dtype=np.float64) * scale

    @property
    def _rounding(self) -> Floats:
        """The most that rounding moves each mean, as a part of the bounds' width."""
        basis = self.basis
        return mean_rounding(basis.lattice, basis.scale, basis.bits, self._width)

    @property
    def top(self) -> int:
        """The width of the bounds, in units of 2^-FINE ticks."""
        return self.basis.top

    @property
    def _variance_rows(self) -> slice:
        """The positions of the variances among the numbers of a joint release."""
        cells = len(self.basis.planned)
        _, second = self.basis.pair
        return slice(second * cells, (second + 1) * cells)

    @property
    def _whole_width(self) -> int:
        """The width of the bounds in the unit of `_widths`."""
        return 1 if self.chosen is None else self.top

    @cached_property
    def _widths(self) -> list[int]:
        """The width of each number's selected range in units of 2^-FINE ticks; 1 without one."""
        if self.chosen is None:
            return [1] * len(self.steps)
        widths: list[int] = self.chosen.width.tolist()
        return widths

    @cached_property
    def _width(self) -> Floats:
        """The width of each number's selected range, as a part of the bounds' width."""
        return np.array(self._widths, dtype=np.float64) / self._whole_width


class NoisyMeans(NamedTuple):
    """The mean of each cell, its noise scale, and its `deviation` from weighting users.

    All are in the value's unit and have shape (cells,).
    """

    estimate: Floats
    scale: Floats
    deviation: Floats


class _Moments(NamedTuple):
    """Centred first moments, second moments, and the noise scales of the first moments.

    The second moments are divided by a quarter of the squared width, the others by the width.
    """

    centre: Floats
    second: Floats
    scale: Floats


def _values(
    low: Fraction,
    unit: Fraction,
    bits: int,
    steps: list[int],
    scales: list[float],
    widths: list[int],
) -> list[float]:
    """Returns low + unit x width x scale x steps/2^bits of each number, rounded once."""
    values = list[float]()
    # The denominator of a number is this times the denominator of its scale.
    denominator = low.denominator * unit.denominator << bits
    offset = low.numerator * unit.denominator << bits
    factor = unit.numerator * low.denominator
    for step, scale, width in zip(steps, scales, widths, strict=True):
        up, down = scale.as_integer_ratio()
        numerator = offset * down + factor * width * step * up
        # Dividing two integers rounds once, unlike floating-point arithmetic in several steps.
        values.append(numerator / (denominator * down))
    return values


def joint_variances(basis: Basis, shares: Floats) -> Floats:
    """Returns variances from noisy moments (docs/theory/cells.md#two-moments)."""
    centre, second, scale = _moments(basis, shares)
    # The square of a noisy moment is too large by the variance of its noise.
    estimate = second - 4 * centre**2 + 4 * basis.law.variance * scale**2 + _middle(basis)
    return estimate * basis.width**2 / 4


def joint_intervals(basis: Basis, shares: Floats, quantile: float) -> Ends:
    """Returns intervals that cover the variance whenever both noises stay below a quantile."""
    centre, second, scale = _moments(basis, shares)
    # The true first moment is between these, on either side of 0.
    distance = np.abs(centre)
    farthest = np.minimum(distance + quantile * scale, 0.5)
    nearest = np.maximum(distance - quantile * scale, 0.0)
    _, at = basis.pair
    rows = basis.per_statistic
    noise = quantile * rows(basis.scale)[at]
    bias = rows(basis.bias_bound)[at]
    low = second - noise - 4 * farthest**2
    high = second + noise - 4 * nearest**2
    middle = _middle(basis)
    unit = basis.width**2 / 4
    return (low + middle) * unit - bias, (high + middle) * unit + bias


def _middle(basis: Basis) -> Floats:
    """Returns the middle of what missing mass may add to each variance, divided by U^2/4."""
    missing = basis.missing
    added = missing * (1 - missing)
    return np.where(missing > 1 / 2, 1 / 2 - added, added)


def _moments(basis: Basis, shares: Floats) -> _Moments:
    """Returns the noisy moments of a joint release."""
    first, second = basis.pair
    rows = basis.per_statistic
    moments = rows(shares)
    scale = rows(basis.scale)[first]
    return _Moments(moments[first] - 1 / 2, moments[second], scale)
