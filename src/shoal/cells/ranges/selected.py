"""Selected ranges, public once they were selected, and where they clip every member of a design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.design import Design


@dataclass(frozen=True, eq=False)
class Range:
    """Where the contributions to each number are clipped; public once it was selected.

    Attributes:
        low: Lower end of each number, in ticks over 2^FINE.
        high: Upper end.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def range_width(self) -> NDArray[np.int64]:
        """High - low."""
        return self.high - self.low


def widened(design: Design, chosen: Range) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ends for each member: the range times heaviest weight over own weight, same middle.

    The weight times the width of each stays at most the heaviest weight times the range.
    """
    widest = chosen.range_width[design.number] * design.heaviest[design.number]
    half = widest // (2 * design.weight)
    middle = (chosen.low + chosen.high)[design.number] // 2
    return middle - half, middle + half


def ends(design: Design, chosen: Range) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the mean of each member is clipped."""
    if design.widened:
        return widened(design, chosen)
    if design.interval is not None:
        inside = chosen.range_width[design.number] * design.interval.near
        half = inside // (2 * design.interval.whole)
        middle = (chosen.low + chosen.high)[design.number] // 2
        return middle - half, middle + half
    return chosen.low[design.number], chosen.high[design.number]


def range_bias(design: Design, chosen: Range, top: int) -> NDArray[np.float64]:
    """Most that clipping to a range adds to the bias of each number, over the width.

    sum_l w_l max(low_l, U - high_l), less what own intervals leave out of the whole width; of
    clipped sums, (1/n) sum_l max(0, U m_l - T).

    Args:
        design: Weights.
        chosen: The range.
        top: The width in ticks over 2^FINE.
    """
    number = design.number
    if design.sums:
        lost = np.maximum(design.count - chosen.high[number] / top, 0)
    else:
        low, high = ends(design, chosen)
        lost = design.weight * (np.maximum(np.maximum(low, top - high), 0) / top)
    found = np.bincount(number, lost, minlength=design.n_numbers) / design.total
    return np.asarray(found - design.missing / 2)
