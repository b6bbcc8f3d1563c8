"""The share of a cell's records above a public threshold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from shoal import checks
from shoal.cells.statistics.base import Linear

if TYPE_CHECKING:
    from shoal.data.value_lattice import Bounds, Lattice

_TEXT = re.compile(r"share_above\((?P<threshold>[-+.0-9eE]{1,30})\)")


@dataclass(frozen=True)
class ShareAbove(Linear):
    """Records above the threshold, over all records: 0 to 1.

    Values and threshold are rounded to ticks by one rule: a value equal to the threshold is never
    above it, and one that is more than a tick above it always is.

    Attributes:
        threshold: Public, in the value's unit.

    Raises:
        InputError: A threshold that is not finite.

    Example:
        >>> ShareAbove(60.0).name, ShareAbove.parse("share_above(60)") == ShareAbove(60.0)
        ('share_above(60)', True)
    """

    threshold: float
    power = 0

    def __post_init__(self) -> None:
        # Minus zero is zero.
        object.__setattr__(self, "threshold", checks.number(self.threshold, "a threshold") + 0.0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The statistic that a text such as `share_above(60)` asks for; None for another text."""
        match = _TEXT.fullmatch(text)
        try:
            return cls(float(match["threshold"])) if match else None
        except ValueError:
            return None

    @property
    def name(self) -> str:
        """The text that asks for it."""
        return f"share_above({repr(self.threshold).removesuffix('.0')})"

    @property
    def measure(self) -> Self:
        """Itself: it adds records up."""
        return self

    def statistic_range(self, bounds: Bounds) -> tuple[Fraction, Fraction]:
        """0 to 1."""
        return Fraction(0), Fraction(1)

    def edge(self, lattice: Lattice) -> int:
        """The threshold's tick from the middle of the bounds: a value equal to it is not above."""
        within = self.threshold >= lattice.bounds.lo
        place = int(lattice.ticks(np.array([self.threshold]))[0]) if within else -1
        return place - (1 << lattice.bits >> 1)
