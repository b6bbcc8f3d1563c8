"""What a unit-level mechanism does and costs, in whole numbers: public, exact, checkable."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal import checks
from shoal.errors import InputError
from shoal.theory.randomised_response import replacement_for, response_epsilon

# Probabilities are whole numbers of 2^-32: one fair word keeps or replaces, and draws.
BITS = 32
ONE: int = 1 << BITS
LATTICE_BITS = 20
_SIDES = 2
# Nobody needs less noise than a 64th of a count, or a finer lattice than integers have room for.
_STEEPEST, _MOST_LATTICE_BITS = 64, 60
# From here on a response costs less than epsilon however it is drawn.
_ENOUGH = Fraction(700)


@dataclass(frozen=True)
class Parameters:
    """Cluster-DP's gamma, sigma and lambda as whole numbers, with the levels that are used.

    Each count of a group's histogram weighs `weight` steps and gets discrete Laplace noise of
    scale 2^`lattice_bits` steps, so sigma = 2^lattice_bits / weight. One label moves two bins:
    the histogram costs 2 weight / 2^lattice_bits = 2/sigma (erratum 12). With `weight` 0 there is
    no histogram and the prior is uniform.

    Attributes:
        kept: Positions of the levels of the space that are used.
        floor: gamma is floor / 2^32, the least share of a level in any prior.
        replaced: lambda is replaced / 2^32.
        weight: Steps a count.
        lattice_bits: log2 of the noise scale in steps.

    Raises:
        InputError: Numbers outside their ranges.

    Example:
        >>> found = Parameters((0, 1), floor=ONE // 2, replaced=ONE // 2)
        >>> round(float(found.epsilon(Fraction(0))), 6) == round(math.log(3), 6)
        True
    """

    kept: tuple[int, ...]
    floor: int
    replaced: int
    weight: int = 0
    lattice_bits: int = LATTICE_BITS

    def __post_init__(self) -> None:
        uniform = ONE // len(self.kept)
        fits = (
            0 <= self.lattice_bits <= _MOST_LATTICE_BITS
            and 0 < self.floor <= uniform
            and 0 < self.replaced < ONE
            and 0 <= self.weight <= 2**self.lattice_bits * _STEEPEST
            and (self.weight > 0 or self.floor == uniform)
        )
        if not fits:
            raise InputError(
                f"a floor of {self.floor / ONE:.6g}, replacement {self.replaced / ONE:.6g} and a "
                f"weight of {self.weight}",
                f"a floor above 0 and at most 1/{len(self.kept)}, a replacement between 0 and 1, "
                "and the uniform floor where there is no histogram",
                "leave them out to have them chosen",
            )

    @property
    def levels(self) -> int:
        """K, the number of levels in use."""
        return len(self.kept)

    @property
    def gamma(self) -> float:
        """The floor as a share."""
        return self.floor / ONE

    @property
    def lam(self) -> float:
        """The probability that an outcome is replaced."""
        return self.replaced / ONE

    @property
    def sigma(self) -> float:
        """Noise of the histogram in counts; infinite where there is none."""
        return 2.0**self.lattice_bits / self.weight if self.weight else math.inf

    @property
    def histogram_epsilon(self) -> Fraction:
        """2/sigma: one label moves one count down and one up."""
        return Fraction(_SIDES * self.weight, 2**self.lattice_bits)

    def epsilon(self, delta: Fraction) -> Fraction:
        """The loss of one outcome, rounded upwards: 2/sigma and that of its response."""
        keep = Fraction(ONE - self.replaced, ONE)
        least = Fraction(self.replaced * self.floor, ONE * ONE)
        return self.histogram_epsilon + response_epsilon(keep, least, delta)

    def to_document(self) -> dict[str, Any]:
        """The parameters as a JSON object."""
        return {
            "kept": list(self.kept),
            "floor": self.floor,
            "replaced": self.replaced,
            "weight": self.weight,
            "lattice_bits": self.lattice_bits,
        }


def calibrate(
    kept: Sequence[int],
    *,
    epsilon: Fraction,
    delta: Fraction,
    floor: float | None = None,
    sigma: float = math.inf,
) -> Parameters:
    """The parameters that replace least at a floor and a noise, and cost at most epsilon and delta.

    Args:
        kept: Positions of the levels in use.
        epsilon: The loss of one outcome in all.
        delta: The delta of (epsilon, delta)-DP.
        floor: gamma, above 0 and at most 1/K; None for 1/K.
        sigma: Noise of the histogram in counts; infinite for none, with a floor of 1/K.

    Raises:
        InputError: A histogram that costs all of epsilon, or numbers outside their ranges.

    Example:
        >>> found = calibrate((0, 1, 2), epsilon=Fraction(4), delta=Fraction(0), floor=0.1, sigma=4)
        >>> found.histogram_epsilon, found.epsilon(Fraction(0)) <= 4
        (Fraction(1, 2), True)
    """
    uniform = ONE // len(kept)
    share = uniform if floor is None else math.floor(_finite(floor, "floor") * ONE)
    # 1/K as a floating-point number may lie a little above the largest whole floor.
    if not 1 <= share <= uniform + 1:
        raise InputError(
            f"a floor of {floor!r}",
            f"a share above 2^-{BITS} and at most 1/{len(kept)}, the number of levels in use",
            "leave it out to have it chosen",
        )
    share = min(share, uniform)
    weight = 0
    if sigma != math.inf:
        noise = _finite(sigma, "sigma")
        if noise < 1 / _STEEPEST:
            raise InputError(
                f"histogram noise of {noise:.6g}", f"1/{_STEEPEST} of a count or more", "raise it"
            )
        weight = math.floor(2**LATTICE_BITS / noise)
    left = epsilon - Fraction(_SIDES * weight, 2**LATTICE_BITS)
    if left < 0 or (left == 0 and delta == 0):
        raise InputError(
            f"histogram noise of {sigma:.6g}, which costs {_SIDES / sigma:.6g}",
            f"a cost below epsilon {float(epsilon):.6g}",
            "raise the noise or epsilon",
        )
    replaced = replacement_for(min(left, _ENOUGH), delta, Fraction(share, ONE), BITS)
    if replaced >= ONE:
        raise InputError(
            f"epsilon {float(epsilon):.3g} and a floor of {share / ONE:.3g}",
            "numbers at which some outcomes are kept",
            "raise epsilon or the floor",
        )
    return Parameters(tuple(kept), share, max(replaced, 1), weight)


def _finite(value: object, name: str) -> float:
    return checks.number(value, name, above=0)
