"""How released means are shrunk afterwards, as a part of what is asked of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class ShrinkageRule:
    """Values of released cells are posterior medians given all cells, beside the plain numbers.

    Post-processing: it costs nothing and changes no number of a release
    (docs/theory/user-clipped.md#the-value).

    Attributes:
        weighed: Whether users are weighed, so that exchangeable users leave a deviation that widens
            the posterior; clipped sums are of whole records, and leave none.
    """

    weighed: bool = True

    # Cells that say something of each other, at least.
    fewest: ClassVar[int] = 3

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return "common mean" + ("" if self.weighed else ", of noise alone")
