"""Which noise a plan may draw, as a part of what is asked of it."""

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
