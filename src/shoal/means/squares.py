"""A sum of squares beside a noisy sum, at no cost, and the normal interval that it makes possible.

Source: docs/theory/unbiased.md#squares-beside-the-sum and #a-normal-interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.means.noisy_sum import CAPACITY, MOST_BITS, Bits, NoisySum, Positive, add_steps
from shoal.means.users import Weights
from shoal.privacy.noise import Noise

_SQUARES = 10
_FINEST, _KEPT = 10, 4
_LEAST, _MOST = 0.8, 0.995


class NoisySquares(Model):
    """How the sum of squares is released: in steps of so many squared units, with noise 2^bits."""

    step: Positive
    bits: Bits


@dataclass(frozen=True, eq=False)
class SumAboutCentre:
    """A noisy weighted sum of whole numbers y within -R..R about a middle, and squares beside it.

    A tick, in the value's unit, has c `parts`, and is worth u steps of noise of scale 2^i; `reach`
    is R. The sum of w^2 y^2 in steps of s, rounded upwards, with noise of scale 2^j, costs nothing
    if c ((2R - 1) w + s) 2^i <= u s 2^j for the largest weight w.
    """

    noise: NoisySum
    weights: Weights
    reach: int
    parts: int
    tick: Fraction

    def check(self, squares: NoisySquares | None) -> None:
        """Refuses squares that cost something, do not fit the sampler, or say nothing."""
        if squares is None:
            return
        if not self.weights.count_as_two:
            raise InputError(
                "a normal interval of users that count as fewer than two equal ones",
                'ask for interval_by="certified", or give more users',
            )
        price = self.parts * ((2 * self.reach - 1) * self.weights.largest + squares.step)
        free = price << self.noise.bits <= self.noise.per_unit * squares.step << squares.bits
        heavy = int(self.weights.squares * self.weights.total**2)
        if not free or -(-heavy * self.reach**2 // squares.step) > 2**CAPACITY:
            raise _unfit()

    def fit(self) -> NoisySquares:
        """The least noise that costs nothing, to about a part in 500."""
        coarser = min(_FINEST, (self.noise.per_unit.bit_length() - _KEPT) // 2)
        bits = max(0, self.noise.bits - coarser)
        # c (2R - 1) w 2^i <= s (u 2^j - c 2^i), both sides over the smaller power.
        least = min(bits, self.noise.bits)
        price = self.parts * 2 ** (self.noise.bits - least)
        left = self.noise.per_unit * 2 ** (bits - least) - price
        if left <= 0 or bits > MOST_BITS:
            raise _unfit()
        moved = (2 * self.reach - 1) * self.weights.largest
        return NoisySquares(step=max(1, -(-price * moved // left)), bits=bits)

    def release(
        self, whole: NDArray[np.int64], squares: NoisySquares | None, source: Noise
    ) -> list[int] | list[None]:
        """Sums of w^2 y^2 in steps, rounded upwards, with noise: one a row of private y."""
        if squares is None:
            return [None] * len(whole)
        sums = (whole.astype(object) ** 2 @ self.weights.number.astype(object) ** 2).tolist()
        return add_steps([-(-x // squares.step) for x in sums], squares.bits, source, _SQUARES)

    @property
    def scale(self) -> Fraction:
        """b1, of the noise on the mean, in the value's unit."""
        return Fraction(2**self.noise.bits, self.noise.per_unit) * self.tick / self.weights.total

    def half(
        self, squares: NoisySquares, released: int, moved: Fraction, confidence: float
    ) -> float:
        """Half a normal interval, but for the bias, from S in steps and the mean about the middle.

        V^ = (S/W^2 - Q (m^2 - 2 b1^2))/(1 - Q), for equal weights (S/n - m^2 + 2 b1^2)/(n - 1).
        """
        share, mean = self.weights.squares, moved / self.scale
        variance = released * squares.step * self._unit**2 - share * (mean**2 - 2)
        return self._half(squares, float(variance / (1 - share)), float(mean), confidence)

    def expected_half(self, squares: NoisySquares, deviation: float, confidence: float) -> float:
        """The same for values whose standard deviation is known."""
        variance = float(self.weights.squares * (Fraction(deviation) / self.scale) ** 2)
        return self._half(squares, variance, 0.0, confidence)

    def _half(
        self, squares: NoisySquares, variance: float, mean: float, confidence: float
    ) -> float:
        """For a variance and a mean in units of b1, so that no value's unit is too small.

        The noise of m^2 - 2 b1^2 is 2 m Z and Z^2 - 2 b1^2: variances of 8 m^2 b1^2 and 20 b1^4,
        as those of Laplace variables of scales 2 m b1 and sqrt(10) b1^2.
        """
        from scipy.special import ndtri, stdtrit

        from shoal.theory.questions.noisy_variance import half_width

        share = self.weights.squares
        part, level = float(share / (1 - share)), (1 + confidence) / 2
        own = float((squares.step << squares.bits) * self._unit**2 / (1 - share))
        variance_noise = math.hypot(own, 2 * part * mean, math.sqrt(10) * part)
        few = max(1.0, float(stdtrit(float(1 / share - 1), level) / ndtri(level)) ** 2)
        known = np.array([variance])
        [found] = half_width(confidence, known, 1.0, variance_noise, inflation=few)
        return float(found * float(self.scale))

    @property
    def _unit(self) -> Fraction:
        """A unit of y over W b1."""
        return Fraction(self.noise.per_unit, self.parts * 2**self.noise.bits)


def check_level(confidence: object) -> float:
    """A confidence for which it is known how much wider a noisy variance makes intervals."""
    number = checks.check_confidence(confidence)
    if not _LEAST <= number <= _MOST:
        raise InputError(
            f"a normal interval of confidence {number:g}",
            f'ask for {_LEAST} to {_MOST}, or plan with interval_by="certified"',
        )
    return number


def _unfit() -> InputError:
    return InputError(
        "a sum of squares that does not fit the lattice, or would cost something",
        "plan anew, or ask for certified intervals",
    )
