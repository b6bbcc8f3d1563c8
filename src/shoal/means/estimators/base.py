"""What every estimator of an unbounded mean has in common."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.grid import saturated
from shoal.means.estimators.normal import Spread, Squares
from shoal.means.estimators.squares import Centred, NoisySquares, counts_as_two, few_users, unfit
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget, round_up
from shoal.privacy.noise import Noise
from shoal.theory import clipping
from shoal.theory.clipping import Moments

# Certificates are computed in floating point: this covers their roundings.
OUTWARD = 1 + 2.0**-40


@dataclass(frozen=True)
class Drawn:
    """What one run of a mechanism gives, public.

    Attributes:
        value: The estimate, exactly.
        failed: Whether the coarse step failed; None if there is none.
        squares: What was released beside it; None if nothing was.
    """

    value: Fraction
    failed: bool | None = None
    squares: Squares | None = None


@dataclass(frozen=True, eq=False)
class Estimator(ABC):
    """A frozen description of one estimator: public facts alone.

    It estimates the common mean of independent users from one value each. Its privacy holds for
    any values; its certificates hold for users whose values keep the moments.

    **No distribution depends on the order of users of equal weight**, so that rows may serve as
    users though their order may follow the values. Fair words are independent and alike, so dealing
    them to users in another order changes no probability. Sums of whole numbers, `fsum` and sorted
    bins are the same in any order of pairs of a value and its words; who is in which part of a
    split is decided by words, not by places. So a draw is a function of the multiset of these
    pairs, and its distribution one of the multiset of values, and neighbours differ in one of them.
    Words of a split collide with a chance of at most 2^-69: see `Weights.shuffled`.

    Attributes:
        weights: Of the users, ascending.
        moments: Public bounds on central moments.
        squares: Released beside the sum at no cost, for normal intervals; None for certified ones.
    """

    weights: Weights
    moments: Moments
    squares: NoisySquares | None = field(default=None, kw_only=True)

    name: ClassVar[str]

    @property
    def centred(self) -> Centred | None:
        """The sum beside which squares cost nothing; None for a method without one."""
        return None

    @property
    def may_be_normal(self) -> bool:
        """Whether normal intervals can be had: squares about a middle, of two users at least."""
        return self.centred is not None and counts_as_two(self.centred.weights)

    def with_squares(self) -> Self:
        """The same, with squares beside the sum.

        Raises:
            InputError: The method has no sum about a middle, or too few users.
        """
        centred = self.centred
        if centred is None:
            raise InputError(
                f"normal intervals of {self.name}: what it samples is far from normal",
                "normal intervals of clipped_mean and symmetric_mean",
                'ask for interval_by="certified"',
            )
        if not counts_as_two(centred.weights):
            raise few_users()
        return replace(self, squares=centred.fit())

    def _check_squares(self) -> None:
        """Refuse squares that would cost something, or that the method does not have."""
        if self.squares is None:
            return
        centred = self.centred
        if (
            not isinstance(self.squares, NoisySquares)
            or centred is None
            or not counts_as_two(centred.weights)
            or not centred.is_free(self.squares)
        ):
            raise unfit()

    @property
    @abstractmethod
    def loss(self) -> Budget:
        """The exact privacy loss of every user."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, int | str]:
        """Whole numbers (or text of fractions) that describe it, besides weights and moments."""

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Scale of the Laplace noise on the estimate, in the value's unit; 0 if there is none."""

    @property
    @abstractmethod
    def bias_bound(self) -> float:
        """Most that the estimate's expectation is off, in the value's unit."""

    @property
    def supposes(self) -> str:
        """What the bias rests on besides the stated bounds, in words; nothing in most cases."""
        return ""

    @property
    @abstractmethod
    def variance_bound(self) -> float:
        """Most variance of the estimate, in the value's unit squared."""

    @cached_property
    def mse_bound(self) -> float:
        """Largest mean squared error, in the value's unit squared."""
        return (self.variance_bound + self.bias_bound**2) * OUTWARD

    @cached_property
    def rmse_bound(self) -> float:
        """Largest root mean squared error, in the value's unit."""
        return math.sqrt(self.mse_bound) * OUTWARD

    @cached_property
    def standard_error(self) -> float:
        """Largest standard deviation of the estimate, in the value's unit."""
        return math.sqrt(self.variance_bound) * OUTWARD

    def half_interval(self, confidence: float) -> float:
        """Half-width of an interval that covers the mean, by Chebyshev's inequality.

        P[|estimate - expectation| >= k sd] <= 1/k^2, and the expectation is off by the bias.
        """
        return (self.bias_bound + self.standard_error / math.sqrt(1 - confidence)) * OUTWARD

    def interval_around(self, value: Fraction, confidence: float) -> tuple[float, float]:
        """An interval that covers the mean, its ends rounded outwards.

        Far from 0 floating-point numbers may lie further apart than the interval is wide.

        Args:
            value: The estimate, exactly.
            confidence: Of the interval.
        """
        half = Fraction(self.half_interval(confidence))
        return around(value, half)

    def spread(self, drawn: Drawn) -> Spread | None:
        """What a release tells of its sampling variance; None without squares.

        Args:
            drawn: What was drawn.
        """
        if self.squares is None or self.centred is None or drawn.squares is None:
            return None
        return Spread.told(self.centred, self.squares, drawn.value, drawn.squares)

    def normal_half(self, drawn: Drawn, confidence: float) -> float | None:
        """Half a normal interval with the bias bound; None without squares.

        Args:
            drawn: What was drawn.
            confidence: Of the interval, from 0.8 to 0.995.
        """
        spread = self.spread(drawn)
        if spread is None:
            return None
        return (self.bias_bound + spread.half(confidence)) * OUTWARD

    def stated_interval(self, drawn: Drawn, confidence: float) -> tuple[float, float]:
        """Normal where squares were released, else certified; its ends rounded outwards.

        Args:
            drawn: What was drawn.
            confidence: Of the interval.
        """
        half = self.normal_half(drawn, confidence)
        if half is None:
            return self.interval_around(drawn.value, confidence)
        return around(drawn.value, Fraction(half))

    def expected_half_interval(self, confidence: float) -> float:
        """Half an interval where values spread as widely as the moments allow; else narrower.

        Args:
            confidence: Of the interval.
        """
        if self.squares is None or self.centred is None:
            return self.half_interval(confidence)
        most = self.centred.weights.squares * Fraction(clipping.deviation(self.moments)) ** 2
        variance = float(most / self.centred.scale**2)
        spread = Spread.of(self.centred, self.squares, variance)
        return (self.bias_bound + spread.half(confidence)) * OUTWARD

    def release(self, values: NDArray[np.float64], source: Noise) -> Drawn:
        """Draw the estimate.

        Args:
            values: One finite number a user, in the order of the weights. Private.
            source: Of randomness.
        """
        return self.runs(values[None, :], source)[0]

    def runs(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """Independent runs on several data sets at once; a release is one run.

        Args:
            values: Shape (runs, users).
            source: Of randomness.
        """
        return self._draw(saturated(values), source)

    @abstractmethod
    def _draw(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """One result a row."""


def around(value: Fraction, half: Fraction) -> tuple[float, float]:
    """An interval of so many on either side, its ends rounded outwards.

    Args:
        value: Its middle, exactly.
        half: Half its width.
    """
    # 0.0 - x, not -x: an end at 0 has no sign.
    return 0.0 - round_up(half - value), round_up(value + half)
