"""Carrying a mean mechanism out: select the ranges, add up exactly, round to the lattice, draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.mechanisms.mean.design import FINE
from shoal.mechanisms.mean.ranges import Contributions, Range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.mechanisms.mean.base import MeanMechanism, Parameters
    from shoal.mechanisms.mean.design import Design
    from shoal.mechanisms.noise import Noise
    from shoal.records.aggregate import Aggregate
    from shoal.records.lattice import Lattice


@dataclass(frozen=True, eq=False)
class Drawn:
    """What left the mechanism: public from now on.

    Attributes:
        steps: Noisy whole number of lattice steps of each released cell.
        chosen: The selected ranges, or None.
    """

    steps: list[int]
    chosen: Range | None


@dataclass(frozen=True, eq=False)
class Drawing:
    """The public facts of a draw.

    Formal guarantee: user l loses what `planning.losses.Losses` says, whatever the values, and
    nothing but the values of one user differs between neighbours.

    Attributes:
        mechanism: Which one.
        design: What each user contributes.
        parameters: Of the mechanism.
        selection_scale: Of its private selections.
        relative_scale: b over the span of each number.
        bits: j; noise has the scale of 2^j steps.
    """

    mechanism: MeanMechanism
    design: Design
    parameters: Parameters
    selection_scale: NDArray[np.float64]
    relative_scale: NDArray[np.float64]
    bits: int

    def draw(self, aggregate: Aggregate, noise: Noise) -> Drawn:
        """Selections first, then one noisy number for each cell.

        Args:
            aggregate: Private sums.
            noise: The source of randomness.
        """
        contributions = Contributions(self.design, aggregate)
        chosen = self.mechanism.select(contributions, self.parameters, self.selection_scale, noise)
        exact = [
            to_steps(total, whole * span, scale, self.bits)
            for total, whole, span, scale in zip(
                contributions.add_up(chosen),
                self.design.total.tolist(),
                spans(self.design, chosen, contributions.top),
                self.relative_scale.tolist(),
                strict=True,
            )
        ]
        return Drawn(noise.add_laplace(exact, self.bits), chosen)


def spans(design: Design, chosen: Range | None, top: int) -> list[int]:
    """The span of each number in ticks over 2^FINE."""
    found: list[int] = [top] * design.n_numbers if chosen is None else chosen.span.tolist()
    return found


def to_steps(total: int, most: int, relative_scale: float, bits: int) -> int:
    """The share total/most in lattice steps b/2^j, rounded to the nearest, halves upwards.

    Exact integer arithmetic: non-decreasing in the total, and a shift by whole steps shifts it.

    Example:
        >>> to_steps(1, 4, 0.5, 3), to_steps(5, 32, 1.0, 3)
        (4, 1)
    """
    up, down = relative_scale.as_integer_ratio()
    numerator, denominator = (total << bits) * down, most * up
    return (2 * numerator + denominator) // (2 * denominator)


def value(lattice: Lattice, steps: int, relative_scale: float, bits: int, span: int) -> float:
    """What a lattice number x stands for: lo + x b/2^j with b = relative scale x span."""
    up, down = relative_scale.as_integer_ratio()
    return lattice.value(steps * up * span, down << (bits + lattice.bits + FINE))
