"""Which noise a plan may draw, and how released means are shrunk afterwards: parts of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class NoiseRule:
    """Laplace noise; with a delta Laplace or Gaussian noise, whichever has the smaller error.

    Attributes:
        delta: The delta of (epsilon, delta)-DP; 0 for Laplace noise alone.

    Example:
        >>> NoiseRule().gaussian, NoiseRule(Fraction(1, 10**6)).gaussian
        ((False,), (False, True))
    """

    delta: Fraction = Fraction(0)

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return "Laplace or Gaussian" if self.delta else "Laplace"

    @property
    def gaussian(self) -> tuple[bool, ...]:
        """The kinds of noise to plan with: whether each is Gaussian."""
        return (False, True) if self.delta else (False,)


@dataclass(frozen=True)
class ShrinkageRule:
    """Means of released cells are shrunk towards their common mean, beside the plain estimates.

    Post-processing: it costs nothing and changes no number of a release (docs/theory/shrinkage.md).

    Attributes:
        weighed: Whether users are weighed, so that exchangeable users leave a deviation that widens
            the posterior; clipped sums are of whole records, and leave none.
        fewest: Cells that a common mean is fitted to, at least.
    """

    weighed: bool = True
    fewest: int = 3

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return "common mean" + ("" if self.weighed else ", of noise alone")
