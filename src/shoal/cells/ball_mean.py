"""Means of vectors x >= 0 with |x|_1 <= U: sums of users cut to one l1 norm, noise on each number.

Two vectors of norm b with disjoint supports are 2b apart, so that a user whose sum has the norm
min(m_l, T) moves the mean by 2 min(m_l, T)/n of U, not by half of it as printed (errata 4 and 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.draw import to_steps
from shoal.errors import InputError
from shoal.privacy.noise import LARGEST_STEPS
from shoal.theory import limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.privacy.noise import Noise

# Rounding to lattice steps costs a millionth of epsilon.
_OVERHEAD_BITS = 20
_SCALE_BITS = 24
# Over U, where nobody counts: any noise is private.
_LEAST_NOISE = 2.0**-20
_SMALLEST = 1e-6


@dataclass(frozen=True)
class BallMean:
    """Public facts of one release of a mean in the l1 ball (docs/theory/worst-case.md#vectors).

    Formal guarantee: with noise of scale b on every number, user l loses at most
    (ceil(2 min(m_l, T) 2^j / (n b)) + d) / 2^j: the l1 distance of neighbours in lattice steps,
    and less than one step more for each number that is rounded.

    Attributes:
        dimension: d, numbers in one record, at least 2.
        records: n.
        threshold: T, most records' worth of norm that a user keeps.
        relative_scale: b over U of every number.
        bits: j; noise has the scale of 2^j steps of b/2^j.
        tick_bits: Numbers are cut to U over 2^tick_bits, downwards.
    """

    dimension: int
    records: int
    threshold: int
    relative_scale: float
    bits: int
    tick_bits: int

    @classmethod
    def plan(
        cls, counts: NDArray[np.int64], dimension: int, epsilon: Fraction, tick_bits: int
    ) -> BallMean:
        """T is the ceil(2d/epsilon)-th largest count; the noise uses all of epsilon.

        Below 2d/L no user keeps anything (T = 0): the zero vector is released, which costs nothing.

        Args:
            counts: Records of each user.
            dimension: d.
            epsilon: Privacy loss of the heaviest user.
            tick_bits: Bits of a number.

        Raises:
            InputError: Fewer than two dimensions, or an epsilon that leaves no room on the lattice.
        """
        if dimension < 2:
            raise InputError(
                f"vectors of dimension {dimension}", "2 or more", "use the mean of numbers instead"
            )
        if int(counts.max()) << tick_bits >= LARGEST_STEPS:
            raise InputError(
                f"{int(counts.max()):,} records of one user",
                "sums of ticks below 2^61",
                "lower tick_bits",
            )
        total = int(counts.sum())
        threshold = limits.threshold(counts, float(epsilon), dimension)
        if threshold == 0:
            return cls(dimension, total, 0, _LEAST_NOISE, _OVERHEAD_BITS, tick_bits)
        bits = _OVERHEAD_BITS + max(0, math.ceil(math.log2(dimension / epsilon)))
        allowed = math.floor(epsilon * 2**bits) - dimension
        # Of the scales with 24 bits, the least at which the ceiling fits what is allowed.
        exact = Fraction(2 * min(threshold, int(counts.max())) * 2**bits, total * allowed)
        if 2**bits > LARGEST_STEPS * exact:
            raise InputError(
                f"an epsilon of {float(epsilon):g} for vectors",
                "noise that is not finer than the lattice of 61 bits",
                "ask for a smaller epsilon",
            )
        mantissa, exponent = math.frexp(float(exact))
        scale = math.ldexp(math.ceil(mantissa * 2**_SCALE_BITS) + 1, exponent - _SCALE_BITS)
        return cls(dimension, total, threshold, scale, bits, tick_bits)

    def loss(self, count: int) -> Fraction:
        """Exact privacy loss of a user with so many records."""
        if self.threshold == 0:
            return Fraction(0)
        moved = Fraction(2 * min(count, self.threshold), self.records)
        steps = math.ceil(moved * 2**self.bits / Fraction(self.relative_scale)) + self.dimension
        return Fraction(steps, 2**self.bits)

    def bias_bound(self, counts: NDArray[np.int64]) -> float:
        """Most that the estimate is off in l1 over U without noise: cut norms, then rounding."""
        cut = float(np.maximum(counts - self.threshold, 0).sum()) / self.records
        # A number loses up to a tick as a record, another when norms are cut, and half a step.
        ticks = 2 * self.dimension * 2.0**-self.tick_bits
        return cut + ticks + self.dimension * self.relative_scale * 2.0 ** -(self.bits + 1)

    def release(
        self, sums: NDArray[np.int64], counts: NDArray[np.int64], noise: Noise
    ) -> list[int]:
        """Noisy lattice numbers, one for each dimension.

        Args:
            sums: Private sums of ticks, users by dimensions, none negative.
            counts: Records of each user.
            noise: The source of randomness.
        """
        kept = self._cut(sums, counts).sum(axis=0).tolist()
        most = self.records << self.tick_bits
        exact = [to_steps(int(x), most, self.relative_scale, self.bits) for x in kept]
        return noise.add_laplace(exact, self.bits)

    def _cut(self, sums: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.object_]:
        # Python integers: a product of two sums may not fit 64 bits.
        whole = np.maximum(sums, 0).astype(object)
        norm = whole.sum(axis=1)
        allowed = np.minimum(counts, self.threshold).astype(object) * 2**self.tick_bits
        scaled = whole * allowed[:, None] // np.maximum(norm, 1)[:, None]
        return np.asarray(np.where((norm > allowed)[:, None], scaled, whole))


def ticks(values: NDArray[np.float64], radius: float, tick_bits: int) -> NDArray[np.int64]:
    """Records in ticks: negative numbers become 0, longer vectors are scaled to the radius.

    Every record's ticks add up to at most 2^tick_bits, whatever the rounding.

    Args:
        values: Records by dimensions.
        radius: U.
        tick_bits: Bits of a number.

    Example:
        >>> ticks(np.array([[3.0, 1.0], [9.0, 27.0]]), 4.0, 4).tolist()
        [[12, 4], [4, 12]]
    """
    positive = np.maximum(values, 0)
    # Divided by its own largest number first, no record overflows, however far outside it is.
    largest = np.maximum(positive.max(axis=1, keepdims=True), radius)
    part = positive / largest
    norm = np.maximum(part.sum(axis=1, keepdims=True), radius / largest)
    whole = np.floor(part / norm * 2**tick_bits).astype(np.int64)
    over = whole.sum(axis=1, keepdims=True)
    top = 1 << tick_bits
    return np.asarray(np.where(over > top, whole * top // np.maximum(over, 1), whole))
