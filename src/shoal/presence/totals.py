"""Users, records and sums of cells with their intervals: from noisy numbers, and nothing else.

Source: docs/theory/private-counts.md#totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal import intervals
from shoal.arrays import Floats
from shoal.presence.look import Cap
from shoal.presence.values import FEWEST_CELLS
from shoal.theory import hull

# The part of a total that caps may have moved between users, above which no cell is reliable.
_MOVED = 0.25
# Of what caps take from all cells, as a part of their numbers, how much they may take from a cell
# with many heavy users, and how much scaling up may add to a cell without any.
_TAKEN = 3.0
_ADDED = 0.5


@dataclass(frozen=True, eq=False)
class Total:
    """One total of every cell.

    Attributes:
        drawn: Noisy numbers of cells, in users at the cap, shape (cells,).
        scale: Of their noise, in the same unit.
        cap: What a user counts for at most.
        unit: What one of it is: 1, or of sums the upper bound of values.
    """

    drawn: Floats
    scale: float
    cap: Cap
    unit: float = 1.0

    @property
    def _size(self) -> float:
        """What a user at the cap stands for."""
        return self.unit if self.cap.hull else self.cap.size * self.cap.up * self.unit

    @cached_property
    def number(self) -> Floats:
        """The noisy total of each cell, in its unit."""
        return np.asarray(self.drawn * self._size)

    @property
    def noise_scale(self) -> float:
        """Mean size of the noise of one cell, in the total's unit."""
        if self.cap.hull:
            return self.scale * self._size * hull.mean_absolute(len(self.drawn))
        return self.scale * self._size

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Variances of the noise, and of cells beyond it; of few cells their mean square."""
        noise = 2 * self.noise_scale**2
        if self.cap.hull:
            noise = hull.variance(len(self.drawn)) * (self.scale * self._size) ** 2
        few = len(self.drawn) < FEWEST_CELLS
        observed = float(np.mean(self.number**2)) if few else float(self.number.var())
        return noise, max(observed - noise, 0.0)

    @property
    def status(self) -> str:
        """Whether its cells are reliable, or why not: that of all cells, whose noise is alike."""
        if not self.cap.known:
            return "few users"
        if self.cap.moved > _MOVED:
            return "few users dominate"
        noise, between = self._variances
        return "too noisy" if noise > between else "reliable"

    @cached_property
    def value(self) -> Floats:
        """The best estimate of each cell: where cells differ by less than noise, near their mean.

        NaN if no cap is known.
        """
        if not self.cap.known:
            return np.full(len(self.number), np.nan)
        if self.status != "too noisy" or len(self.number) < FEWEST_CELLS:
            return np.maximum(self.number, 0.0)
        noise, between = self._variances
        middle = max(float(self.number.mean()), 0.0)
        return np.maximum(middle + (self.number - middle) * between / (between + noise), 0.0)

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """An interval of each cell: a quantile of noise, and what the cap may have moved.

        Without a known cap nothing is said: 0 and NaN.
        """
        cells = len(self.drawn)
        if not self.cap.known:
            return np.zeros(cells), np.full(cells, np.nan)
        if self.cap.hull:
            half = hull.tail_quantile(cells, 1 - confidence) * self.scale * self._size
            off = np.zeros(cells)
        else:
            half = intervals.quantile(confidence, 0.0, 2.0, 1.0) * self.scale * self._size
            part = min(self.cap.up - 1 + self.cap.moved, 1.0)
            off = part * np.maximum(self.number, 0.0)
        number = np.maximum(self.number, 0.0)
        return np.maximum(number - half - _ADDED * off, 0.0), number + half + _TAKEN * off
