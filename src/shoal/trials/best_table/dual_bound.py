"""What no unbiased private response can beat: dual variables, and the exact minimum of a curve."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# A weight of 0 would leave a level without a parabola; so small a part costs a bound nothing.
_EVEN = 1e-7
# What floating-point sums of some hundred terms of size 1 may be off.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Certificate:
    """Dual variables of the linear program over all columns; levels are centred, of width 1.

    With h_y(o) = weight_y o^2 - slope_y o - total_y and

        R(o) = sum_y h_y(o) + (e^epsilon - 1) sum_y min(h_y(o), 0),

    R >= 0 everywhere proves that no unbiased response has a weighted mean variance below
    sum total_y + sum slope_y y - sum weight_y y^2.

    Source: docs/theory/best-table.md#the-dual-bound.

    Attributes:
        weight: pi, a probability for each level, shape (K,).
        slope: beta, shape (K,).
        total: alpha, shape (K,).
    """

    weight: Floats
    slope: Floats
    total: Floats

    def evened(self) -> Certificate:
        """The same with a little weight on every level."""
        even = (1 - _EVEN) * self.weight + _EVEN / len(self.weight)
        return replace(self, weight=even)

    def half_way(self, other: Certificate) -> Certificate:
        """The mean of two."""
        return Certificate(
            (self.weight + other.weight) / 2,
            (self.slope + other.slope) / 2,
            (self.total + other.total) / 2,
        )

    def bound(self, levels: Floats) -> float:
        """The lower bound, if R >= 0 everywhere."""
        square = self.weight @ levels**2
        return float(self.total.sum() + self.slope @ levels - square)

    def pieces(self, ratio: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The least value of R between each two of its breaks, exactly, where it is, and the sets.

        R is a parabola between the roots of the h_y, of which there are two a level at most.

        Args:
            ratio: e^epsilon.

        Returns:
            Least values, outputs and sets of levels with h_y < 0, a row a piece.
        """
        low, high = self._roots()
        breaks = np.unique(np.concatenate([low, high]))
        breaks = breaks[np.isfinite(breaks)]
        breaks = breaks if breaks.size else np.zeros(1)
        ends = np.concatenate([breaks[:1] - 2, breaks, breaks[-1:] + 2])
        middle = ends[:-1] + np.diff(ends) / 2
        inside = (middle[:, None] > low) & (middle[:, None] < high)
        times = np.where(inside, ratio, 1.0)
        a, b, c = times @ self.weight, times @ self.slope, times @ self.total
        ends[0], ends[-1] = -np.inf, np.inf
        output = np.clip(b / (2 * a), ends[:-1], ends[1:])
        return a * output**2 - b * output - c, output, inside

    def repaired(self, ratio: float) -> Certificate:
        """All totals lowered until R is nowhere below 0."""
        least = float(self.pieces(ratio)[0].min())
        size = 1 + float(np.abs(self.total).sum() + np.abs(self.slope).sum()) * ratio
        lowered = max(0.0, -least) + _ROUNDING * size
        return replace(self, total=self.total - lowered / len(self.total))

    def _roots(self) -> tuple[Floats, Floats]:
        """Where each h_y is 0; infinite where it is nowhere below 0."""
        under = self.slope**2 + 4 * self.weight * self.total
        root = np.sqrt(np.maximum(under, 0))
        # The larger of two terms of one sign loses no digits; the other root follows from it.
        larger = (self.slope + np.where(self.slope >= 0, root, -root)) / 2
        one = larger / self.weight
        other = np.divide(-self.total, larger, out=one.copy(), where=larger != 0)
        real = under > 0
        low = np.where(real, np.minimum(one, other), np.inf)
        return low, np.where(real, np.maximum(one, other), np.inf)
