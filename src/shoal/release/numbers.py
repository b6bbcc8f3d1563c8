"""What the noisy lattice numbers of a release stand for: values, ranges and their error bars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.mechanisms.mean import draw
from shoal.mechanisms.mean.design import FINE
from shoal.mechanisms.mean.ranges import Range, ends, range_bias
from shoal.theory import laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.planning.facts import PlanFacts


@dataclass(frozen=True, eq=False)
class Numbers:
    """The released numbers of a plan, in the value's unit.

    Attributes:
        plan: What was carried out.
        steps: Noisy lattice number of each released cell.
        chosen: The selected ranges, or None.
    """

    plan: PlanFacts
    steps: list[int]
    chosen: Range | None

    @cached_property
    def unclamped(self) -> NDArray[np.float64]:
        """What the lattice numbers stand for."""
        plan = self.plan
        return np.array(
            [
                draw.value(plan.lattice, x, scale, plan.lattice_bits, span)
                for x, scale, span in zip(
                    self.steps, plan.relative_scale.tolist(), self._spans, strict=True
                )
            ]
        )

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """The estimates: within the bounds, and within the range that was selected for means."""
        low, high = self.range
        return np.clip(self.unclamped, low, high)

    @cached_property
    def range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the means were clipped, at most the bounds."""
        bounds, size = self.plan.bounds, len(self.plan.released)
        if self.chosen is None or self.plan.design.sums:
            return np.full(size, bounds.lo), np.full(size, bounds.hi)
        place = self.plan.lattice.value
        low = [place(int(a), self._top) for a in self.chosen.low]
        high = [place(int(b), self._top) for b in self.chosen.high]
        return np.array(low), np.array(high)

    def clipped_to(self, at: int) -> tuple[float, float] | None:
        """Where the means (of akmv, the sums above lo) of one number were clipped, if selected."""
        if self.chosen is None:
            return None
        low, high = int(self.chosen.low[at]), int(self.chosen.high[at])
        if self.plan.design.sums:
            return 0.0, high / self._top * self.plan.width
        place = self.plan.lattice.value
        return place(low, self._top), place(high, self._top)

    @cached_property
    def noise_scale(self) -> NDArray[np.float64]:
        """Noise scale of each number, now that the ranges are known."""
        return self.plan.relative_scale * self._span_of_width * self.plan.width

    @cached_property
    def bias_bound(self) -> NDArray[np.float64]:
        """Most that the estimate without noise is off in any data set with these ranges."""
        if self.chosen is None:
            return self.plan.bias_bound
        plan = self.plan
        bias = plan.design.bias + range_bias(plan.design, self.chosen, self._top)
        return np.minimum(self._rounding + bias, 1.0) * plan.width

    def half_widths(self, confidence: float) -> NDArray[np.float64]:
        """Bias bound plus the noise's quantile of each number.

        The noise exceeds the quantile with probability at most 1 - confidence, so the interval
        covers the mean of the cell's records (clipped to the bounds) at least that often, in every
        data set.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        check_confidence(confidence)
        bits = self.plan.lattice_bits
        quantile = laplace.tail_quantile(2.0**bits, 1 - confidence)
        return self.bias_bound + self.noise_scale * (quantile * 2.0**-bits)

    def intervals(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends around unclamped values, cut to the bounds, which no mean leaves.

        Where nothing of the interval lies within the bounds the noise was exceptional; then the
        whole range is given, which covers in any case.
        """
        half, bounds = self.half_widths(confidence), self.plan.bounds
        low, high = self.unclamped - half, self.unclamped + half
        outside = (low > bounds.hi) | (high < bounds.lo)
        low = np.where(outside, bounds.lo, np.maximum(low, bounds.lo))
        high = np.where(outside, bounds.hi, np.minimum(high, bounds.hi))
        # A value moved into its range stays inside its interval.
        return np.minimum(low, self.value), np.maximum(high, self.value)

    def typical_intervals(
        self, confidence: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Intervals under an assumption: users are exchangeable within the range.

        If who is heavy says nothing of its values, and what the range cuts off balances, the
        deviation sum (w_l - v_l) mean_l has a standard deviation of at most
        sqrt(sum (w_l - v_l)^2 r_l^2 L/(L-1)), r_l half the user's range. The normal quantile of
        that and the noise's quantile share the chance of a miss. Never wider than `intervals`.

        Raises:
            InputError: confidence is not a probability strictly between 0 and 1.
        """
        low, high = self.intervals(confidence)
        spread = self._exchanged
        if spread is None:
            return low, high
        bits, miss = self.plan.lattice_bits, (1 - confidence) / 2
        quantile = laplace.tail_quantile(2.0**bits, miss) * 2.0**-bits
        # A miss that is lost in rounding leaves no finite interval but the certified one.
        normal = NormalDist().inv_cdf(1 - miss / 2) if 1 - miss / 2 < 1 else np.inf
        half = self.noise_scale * quantile + (normal * spread + self._rounding) * self.plan.width
        bounds = self.plan.bounds
        near = np.clip(self.unclamped, bounds.lo, bounds.hi)
        return (
            np.minimum(np.maximum(low, self.unclamped - half), near),
            np.maximum(np.minimum(high, self.unclamped + half), near),
        )

    @property
    def deviation(self) -> NDArray[np.float64]:
        """What exchangeable users leave of the bias of each number, a standard deviation."""
        spread = self._exchanged
        return np.zeros(len(self.steps)) if spread is None else spread * self.plan.width

    @property
    def _rounding(self) -> NDArray[np.float64]:
        """Most that ticks, means of users and lattice steps move each estimate, over the width."""
        plan = self.plan
        steps = plan.relative_scale * self._span_of_width * 2.0 ** -(plan.lattice_bits + 1)
        return float(plan.lattice.rounding) + 2.0 ** -(plan.lattice.bits + FINE) + steps

    @property
    def _exchanged(self) -> NDArray[np.float64] | None:
        """Standard deviation that exchangeable users leave in each number, over the width."""
        design = self.plan.design
        if design.sums or design.interval is not None:
            return None
        half = np.full(len(design.member), 0.5)
        if self.chosen is not None:
            low, high = ends(design, self.chosen)
            half = np.minimum((high - low) / (2 * self._top), 0.5)
        apart = (design.weight / design.total[design.number] - design.share) * half
        users = np.bincount(design.number, minlength=design.n_numbers)
        variance = np.bincount(design.number, apart**2, minlength=design.n_numbers)
        return np.asarray(np.sqrt(variance * users / np.maximum(users - 1, 1)))

    @property
    def _top(self) -> int:
        return 1 << (self.plan.lattice.bits + FINE)

    @cached_property
    def _spans(self) -> list[int]:
        return draw.spans(self.plan.design, self.chosen, self._top)

    @property
    def _span_of_width(self) -> NDArray[np.float64]:
        return np.array(self._spans) / self._top


def check_confidence(confidence: float) -> None:
    """Refuse what is no probability strictly between 0 and 1.

    Raises:
        InputError: It is not.
    """
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise InputError(
            f"confidence is {confidence!r}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
