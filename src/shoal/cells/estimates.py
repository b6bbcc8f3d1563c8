"""What the noisy lattice numbers of a release stand for: values, ranges and their error bars."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells import draw
from shoal.cells import joint_moments as jointly
from shoal.cells.contributions.design import FINE
from shoal.cells.ranges.balls import before_moving, holds_all
from shoal.cells.ranges.selected import Range, ends, range_bias
from shoal.cells.statistics.mean import Mean
from shoal.checks import check_confidence
from shoal.theory import gaussian, laplace
from shoal.theory.user_clipping import hidden_radii

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts

Ends = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The released numbers of a plan, in the unit of each statistic.

    Arrays have a number for each statistic of each released cell: statistic by statistic, each in
    the order of the cells.

    Attributes:
        plan: What was carried out.
        steps: Noisy lattice number of each.
        chosen: The selected ranges, or None.
    """

    plan: PlanFacts
    steps: list[int]
    chosen: Range | None

    @functools.cached_property
    def _drawn(self) -> NDArray[np.float64]:
        """What the lattice numbers stand for; of a joint variance, the second moment."""
        plan, cells = self.plan, len(self.plan.released)
        statistic_ranges = [each for each in plan.statistic_ranges for _ in range(cells)]
        scales = plan.relative_scale.tolist()
        return np.array(
            draw.values(statistic_ranges, self.steps, scales, plan.lattice_bits, self._spans)
        )

    @functools.cached_property
    def unclamped(self) -> NDArray[np.float64]:
        """The estimates before they are moved into ranges, shape (numbers,), in their units."""
        found = self._drawn
        if self.plan.joint:
            found = found.copy()
            found[slice(*jointly.rows(self.plan))] = jointly.variances(self.plan, self._shares)
        kept: NDArray[np.float64] = found
        return kept

    @functools.cached_property
    def value(self) -> NDArray[np.float64]:
        """The estimates, moved into `range`, shape (numbers,), in their units."""
        low, high = self.range
        kept: NDArray[np.float64] = np.clip(self.unclamped, low, high)
        return kept

    @property
    def range(self) -> Ends:
        """Where the values of each statistic lie: as the bounds allow, or in a selected range.

        Only a range that clips every user's mean holds the estimate: not one of sums, and not one
        that is wider for lighter users, whose means may carry the estimate out of it.
        """
        design, where = self.plan.design, self.plan.mechanism.range
        free = design.sums or design.widened or where.of_vectors
        return self.plan.limits if free else self._selected

    @functools.cached_property
    def _selected(self) -> Ends:
        """The selected range of the means; what the bounds allow if there is none."""
        if self.chosen is None or self.plan.design.sums:
            return self.plan.limits
        place = self.plan.lattice.value
        low = np.array([place(int(a), self._top) for a in self.chosen.low])
        high = np.array([place(int(b), self._top) for b in self.chosen.high])
        return low, high

    def clipped_to(self, at: int) -> tuple[float, float] | None:
        """Where the means (of akmv, the sums above lo) of one number were clipped, if selected.

        Of users' vectors, where a mean lies that is no further from the centre than the radius.

        Args:
            at: The number's place among the released ones.

        Returns:
            Both ends, in the value's unit; None without a selected range.
        """
        if self.chosen is None:
            return None
        low, high = int(self.chosen.low[at]), int(self.chosen.high[at])
        if self.plan.design.sums:
            return 0.0, high / self._top * self.plan.width
        if self.plan.mechanism.range.of_vectors:
            low, high = max(2 * low - high, 0), min(high, self._top)
        place = self.plan.lattice.value
        return place(low, self._top), place(high, self._top)

    @property
    def noise_scale(self) -> NDArray[np.float64]:
        """Noise scale of each number, shape (numbers,), in its unit, now that ranges are known."""
        return self.plan.relative_scale * self._span_of_width * self.plan.statistic_range

    @property
    def bias_bound(self) -> NDArray[np.float64]:
        """Largest bias in any data set with these ranges, shape (numbers,), in their units."""
        if self.chosen is None or self.plan.mechanism.range.of_vectors:
            return self.plan.bias_bound
        plan = self.plan
        bias = plan.design.bias + range_bias(plan.design, self.chosen, self._top)
        return np.minimum(self._rounding + bias, 1.0) * plan.width

    def half_widths(self, confidence: float) -> NDArray[np.float64]:
        """Bias bound plus the noise's quantile of each number.

        The noise exceeds the quantile with probability at most 1 - confidence, so the interval
        covers the statistic of the cell's records (clipped to the bounds) at least that often, in
        every data set. Of numbers released directly.

        Args:
            confidence: Of each interval by itself.

        Returns:
            Half of each interval, shape (numbers,), in the statistic's unit.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        confidence = check_confidence(confidence)
        return self.bias_bound + self.noise_scale * self._quantile(1 - confidence)

    def intervals(self, confidence: float) -> Ends:
        """Lower and upper ends around unclamped values, cut to what the bounds allow.

        Where nothing of the interval lies within that range the noise was exceptional; then the
        whole range is given, which covers in any case.

        Args:
            confidence: Of each interval by itself.

        Returns:
            Both ends, shape (numbers,) each, in the statistic's unit.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        half, plan = self.half_widths(confidence), self.plan
        low, high = self.unclamped - half, self.unclamped + half
        if plan.joint:
            rows = slice(*jointly.rows(plan))
            miss = self._quantile((1 - confidence) / 2)
            low[rows], high[rows] = jointly.intervals(plan, self._shares, miss)
        least, most = plan.limits
        outside = (low > most) | (high < least)
        low = np.where(outside, least, np.maximum(low, least))
        high = np.where(outside, most, np.minimum(high, most))
        # A value moved into its range stays inside its interval.
        return np.minimum(low, self.value), np.maximum(high, self.value)

    def plain_intervals(self, confidence: float) -> Ends:
        """Intervals of the released numbers that cover as often as they say.

        In every data set where nothing is clipped to a selected range; of users' vectors if those
        who are clipped hide about a radius each; else everything that the bounds allow.

        Args:
            confidence: Of each interval by itself.

        Returns:
            Both ends, shape (numbers,) each, in the statistic's unit.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        if self.plan.mechanism.range.of_vectors:
            return self.both_intervals(confidence)[1]
        return self.intervals(confidence)

    def both_intervals(self, confidence: float) -> tuple[Ends, Ends]:
        """`intervals`, and those of means under an assumption: users are exchangeable.

        If who is heavy says nothing of its values, and what the range cuts off balances, the
        deviation sum (w_l - v_l) mean_l has a standard deviation of at most
        sqrt(sum (w_l - v_l)^2 r_l^2 L/(L-1)), r_l half the user's range. The normal quantile of
        that and the noise's quantile share the chance of a miss. Where users count in parts of a
        selected range, the assumption is that the range holds their means: then the estimate is
        off by at most half of what is missing. Of users' vectors it is `hidden`. Never wider than
        `intervals`; the same for other statistics, and where all of the interval would lie outside
        the bounds.

        Args:
            confidence: Of each interval by itself.

        Returns:
            Ends that hold in every data set, and ends under the assumption, each as `intervals`.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        low, high = certified = self.intervals(confidence)
        if self.plan.mechanism.range.of_vectors:
            miss, off = 1 - confidence, self.hidden / self.plan.width
        elif self._exchanged is not None:
            miss = (1 - confidence) / 2
            # A miss that is lost in rounding leaves no finite interval but the certified one.
            normal = NormalDist().inv_cdf(1 - miss / 2) if 1 - miss / 2 < 1 else np.inf
            off = normal * self._exchanged
        elif self.chosen is not None and self.plan.design.interval is not None:
            miss, off = 1 - confidence, self._left_out
        else:
            return certified, certified
        bounds, noise = self.plan.lattice.bounds, self.noise_scale * self._quantile(miss)
        half = noise + (off + self._rounding) * self.plan.width
        lower, upper = self.unclamped - half, self.unclamped + half
        # An estimate so far outside says that the assumption or the noise is unusual.
        outside = (upper <= bounds.lo) | (lower >= bounds.hi)
        return certified, (
            np.where(outside, low, np.minimum(np.maximum(low, lower), self.value)),
            np.where(outside, high, np.maximum(np.minimum(high, upper), self.value)),
        )

    def unshrunk(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Means without the missing mass in the middle: estimates, noise scales, deviations.

        (estimate - d middle)/(1 - d) with noise b/(1 - d); the deviation is what exchangeable
        users leave, a standard deviation. Where everything is missing, noise of ten widths.

        Returns:
            Estimates, noise scales and deviations, shape (cells,) each, in the value's unit.
        """
        design, plan, cells = self.plan.design, self.plan, len(self.plan.released)
        first = plan.request.statistics.index(Mean()) * cells
        rows = slice(first, first + cells)
        kept = np.maximum(1 - design.missing, 1e-9)
        low, high = (ends[rows] for ends in self._selected)
        estimate = (self.unclamped[rows] - design.missing * (low + high) / 2) / kept
        empty = design.missing >= 1
        scale = np.where(empty, 10 * plan.width, self.noise_scale[rows] / kept)
        weight = design.weight if design.interval is None else design.contribution
        part = weight / (design.total * kept)[design.number]
        spread = self._spread(part) if plan.parts.shrinkage.weighed else np.zeros(cells)
        return np.where(empty, (low + high) / 2, estimate), scale, spread * plan.width

    @property
    def radius(self) -> float | None:
        """The private radius of users' vectors, in the value's unit; None without one."""
        if self.chosen is None or not self.plan.mechanism.range.of_vectors:
            return None
        return float(self.chosen.range_width[0]) / self._top * self.plan.width

    @property
    def wide_radius(self) -> float | None:
        """The largest radius that the private one can have had before its ball was moved."""
        if self.chosen is None or not self.plan.mechanism.range.of_vectors:
            return None
        return float(self._before_moving) / self._top * self.plan.width

    @property
    def _before_moving(self) -> int:
        """In ticks over 2^FINE, of the private radius."""
        assert self.chosen is not None
        centre, radius = int(self.chosen.low[0]), int(self.chosen.range_width[0])
        if self.plan.rounds > 1 or holds_all(centre, radius, self._top):
            return radius
        return before_moving(centre, radius, self._top)

    @cached_property
    def hidden(self) -> NDArray[np.float64]:
        """What clipped users can hide of each mean if each hides a radius, in the value's unit.

        With k users beyond the radius D, and weights w for shares v: f b k q epsilon_n/2 +
        (2/3) D (sqrt(sum (w - v)^2) + sum |w - v|/2), b the noise scale, f radii hidden by each
        and q the cell's part of all norms, at least 1/G of G cells; D as before a ball was moved,
        and k = 0 for the ball of all values (docs/theory/user-clipped.md#intervals). 0 where cells
        are clipped one by one.
        """
        plan, design, cells = self.plan, self.plan.design, len(self.plan.released)
        ball = plan.mechanism.range.ball(plan.parameters)
        if not ball or self.chosen is None:
            return np.zeros(cells)
        radius = int(self.chosen.range_width[0])
        beyond = int(plan.parameters["clipped"][0]) * 2 * ball * 2.0**-plan.lattice_bits
        if plan.rounds == 1 and holds_all(int(self.chosen.low[0]), radius, self._top):
            beyond = 0.0
        apart = design.weight / design.total[design.number] - design.share
        off = np.sqrt(np.bincount(design.number, apart**2, minlength=cells))
        moved = np.bincount(design.number, np.abs(apart), minlength=cells) / 2
        share = float(self._before_moving) / self._top
        beyond *= hidden_radii(1 / share) * self._before_moving / radius
        moved_by_weights = share * plan.width * 2 / 3 * (off + moved)
        power = 2 if plan.gaussian else 1
        reach = design.part / plan.relative_scale[design.number]
        norm = np.bincount(design.user, reach**power) ** (1 / power)
        each = np.bincount(design.number, reach, minlength=cells) / norm.sum()
        part = np.maximum(each, each.sum() / cells)
        return np.asarray(self.noise_scale * beyond * part / 2 + moved_by_weights)

    def _quantile(self, miss: float) -> float:
        """Noise, in noise scales, that is exceeded with at most this probability."""
        bits, kind = self.plan.lattice_bits, gaussian if self.plan.gaussian else laplace
        return float(kind.tail_quantile(2.0**bits, miss)) * 2.0**-bits

    @property
    def _shares(self) -> NDArray[np.float64]:
        """The numbers over their ranges: far from 0 the values have fewer places than these."""
        scale = self.plan.relative_scale * 2.0**-self.plan.lattice_bits
        return np.array(self.steps, dtype=np.float64) * scale

    @property
    def _rounding(self) -> NDArray[np.float64]:
        """Most that ticks, means of users and lattice steps move each mean, over the width."""
        plan = self.plan
        steps = plan.relative_scale * self._span_of_width * 2.0 ** -(plan.lattice_bits + 1)
        return float(plan.lattice.rounding) + 2.0 ** -(plan.lattice.bits + FINE) + steps

    @property
    def _left_out(self) -> NDArray[np.float64]:
        """Half of the missing mass times the range of the selected range, over the width."""
        return np.asarray(self.plan.design.missing * self._span_of_width / 2)

    @functools.cached_property
    def _exchanged(self) -> NDArray[np.float64] | None:
        """Standard deviation that exchangeable users leave in each mean, over the width."""
        design = self.plan.design
        if self.plan.request.statistics != (Mean(),) or design.sums or design.interval is not None:
            return None
        return self._spread(design.weight / design.total[design.number])

    def _spread(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for the weights w of the members: sqrt(sum (w - v)^2 r^2 L/(L-1))."""
        design = self.plan.design
        half = np.full(len(design.member), 0.5)
        if self.chosen is not None and design.interval is None:
            low, high = ends(design, self.chosen)
            half = np.minimum((high - low) / (2 * self._top), 0.5)
        elif self.chosen is not None:
            half = (self.chosen.range_width / (2 * self._top))[design.number]
        apart = (part - design.share) * half
        size = len(design.total)
        users = np.bincount(design.number, minlength=size)
        variance = np.bincount(design.number, apart**2, minlength=size)
        return np.asarray(np.sqrt(variance * users / np.maximum(users - 1, 1)))

    @property
    def _top(self) -> int:
        return 1 << (self.plan.lattice.bits + FINE)

    @functools.cached_property
    def _spans(self) -> list[Fraction]:
        if self.chosen is None:
            return [Fraction(1)] * len(self.steps)
        return [
            Fraction(range_width, self._top)
            for range_width in draw.range_widths(self.plan.design, self.chosen, self._top)
        ]

    @functools.cached_property
    def _span_of_width(self) -> NDArray[np.float64]:
        return np.array([float(range_width) for range_width in self._spans])
