"""Finds the difference between two cells of a release, with an interval.

Source: docs/theory/cells.md#differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from shoal.arrays import Floats, Ints
from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.mechanisms.cell_statistics import Mean
from shoal.files.text_table import texts_of
from shoal.privacy.law import Law


@dataclass(frozen=True)
class Difference:
    """The difference between the means of two cells, which `print` shows as a sentence.

    Attributes:
        cell: The first cell.
        other: The cell that is subtracted.
        value: The difference between both values of the table, in their unit.
        low: The lower end of its interval.
        high: The upper end of its interval.
        confidence: Confidence of the interval.
        status: `reliable` if both cells are, else the status of the first one that is not.
    """

    cell: str
    other: str
    value: float
    low: float
    high: float
    confidence: float
    status: str

    def __str__(self) -> str:
        """The sentence."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        value, low, high = texts_of(ends)
        cells = "both cells are reliable"
        if self.status != "reliable":
            cells = f"not both cells are reliable: {self.status}"
        return (
            f"{self.cell} minus {self.other}: {value}, {100 * self.confidence:g}% interval "
            f"{low} to {high}; {cells}"
        )


def difference_of(
    numbers: Estimates, names: tuple[str, str], cells: tuple[int, int], confidence: float
) -> Difference:
    """Returns the difference between the means of two cells, given names and positions in a plan.

    Both are cells with numbers of their own.
    """
    basis = numbers.basis
    statuses = intervals.statuses(numbers)
    first = basis.statistics.index(Mean()) * len(basis.planned)
    rows = [int(np.searchsorted(basis.planned, each)) for each in cells]
    pair = first + np.array(rows)
    value = float(np.subtract(*values_of(numbers, confidence, pair).value))
    low, high = _interval(numbers, pair, confidence)
    doubts = [statuses[each] for each in rows if statuses[each] != "reliable"]
    return Difference(
        cell=names[0],
        other=names[1],
        value=value,
        # As in the table, an interval holds its value.
        low=min(low, value),
        high=max(high, value),
        confidence=confidence,
        status=doubts[0] if doubts else "reliable",
    )


def _interval(numbers: Estimates, pair: Ints, confidence: float) -> tuple[float, float]:
    """Returns an interval of one number minus another.

    Its noise is that of both numbers, and a bias of either may add to that of the other. As in
    `intervals.intervals`, a bias is on one side alone: with room t for both sides together the
    interval reaches to a q with P[noise > q] + P[noise > q + t] = 1 - confidence. If users are
    clipped whom no interval allows for, it is all that bounds allow.
    """
    lowest, highest = (ends[pair] for ends in numbers.basis.limits)
    least = float(lowest[0] - highest[1])
    most = float(highest[0] - lowest[1])
    if numbers.of_vectors and intervals.hides_far_users(numbers):
        return least, most
    scale = numbers.noise_scale[pair]
    below, above, moved = _biases(numbers, pair)
    room_below = float(below[0] + above[1])
    room_above = float(above[0] + below[1])
    miss = 1 - confidence
    half = _quantile(numbers.basis.law, scale, room_below + room_above, miss)
    half += float(moved.sum())
    # Noise is a whole number of steps, which the quantile of continuous noise does not know.
    half += float(scale.sum()) * 2.0**-numbers.basis.bits
    difference = float(np.subtract(*numbers.unclamped[pair]))
    low = max(difference - half - room_below, least)
    high = min(difference + half + room_above, most)
    # An interval outside of what bounds allow becomes all of that.
    return (low, high) if low <= high else (least, most)


def _biases(numbers: Estimates, pair: Ints) -> tuple[Floats, Floats, Floats]:
    """Returns room for bias below and above two numbers, and what lies on either side of them."""
    if not numbers.of_vectors:
        nothing = np.zeros(2)
        return nothing, nothing, numbers.bias_bound[pair]
    scale = numbers.noise_scale[pair]
    below, above = intervals.rooms(numbers)
    moved = intervals.of_heavy_users(numbers)
    return below[pair] * scale, above[pair] * scale, moved[pair]


def _quantile(law: Law, scale: Floats, room: float, miss: float) -> float:
    """Returns q with P[noise > q] + P[noise > q + room] = miss, for the noise of a difference."""

    def excess(q: float) -> float:
        return law.tail_of_difference(scale, q) + law.tail_of_difference(scale, q + room) - miss

    # There the tail of the larger noise is far below any miss that is allowed.
    farthest = float(scale.sum()) * (10 - math.log(miss))
    # Below 0 a tail is not convex, and a bias in the middle could be missed more often.
    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, farthest, xtol=1e-9 * float(scale.min())))
