"""Defines laws of noise: all in which plans with Laplace and with Gaussian noise differ.

Source: docs/theory/privacy.md#lattice-noise and #gaussian-noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from shoal.arrays import Floats, Ints, add
from shoal.errors import InputError
from shoal.privacy.accounting import NoiseKind
from shoal.privacy.noise import LARGEST_STEPS, Noise
from shoal.theory import gaussian, laplace, sensitivity, variance
from shoal.theory.projections import L1, L2, Ball

# Squares of steps are added in floating point: this factor covers the rounding of 2^20 terms.
_SQUARES_OUTWARD = 1 + 2.0**-30
NameOfLaw = Literal["discrete laplace", "discrete gaussian"]


@dataclass(frozen=True, eq=False)
class Law:
    """A law of noise: what planners, accounting, draws and estimates have to know of it.

    Its scale is that of Laplace noise, or a standard deviation. Where nothing else is said the
    scale is 1, and the noise is continuous.

    Attributes:
        name: Its name in documents.
        kind: Its name for the accountant.
        power: A user loses the sum of these powers of what it moves in noise scales, divided by it.
        rounding: Steps that rounding adds where two numbers move together.
        whole: The type of whole numbers that hold sums of powers.
        root: Roots of sums of powers.
        whole_root: The same of a whole number, rounded downwards.
        spread: The sum of so many equal numbers, divided by the norm that belongs to the law.
        ball: The ball of this norm.
        moves: Each user's sum of powers of steps, given members' steps in an array for each term,
            the members' users and how many users there are.
        joint_rate: The root of what a user with all records loses by both moments of a cell, at
            scales as parts of the width and of its square.
        takes_delta: Whether it uses a delta.
        has_limits: Whether errors are known that no plan is below.
        add: Adds noise of a source to whole numbers: its scale is 2^bits steps.
        variance: Its variance.
        square_noise: The mean distance of squared noise from the variance.
        mean_absolute: The mean size, or a bound, of noise in whole numbers of a scale in steps.
        tail_quantile: The steps that such noise exceeds with at most this chance.
        mean_error: The mean size of noise plus a bias.
        one_sided: By how much the quantile of a chance is less where a bias within a room is on one
            side alone (docs/theory/cells.md#intervals).
        tail_of_difference: P[first - second > q] for noises of two scales and q from 0 on
            (docs/theory/cells.md#differences).
        normal: Whether it is normal.
    """

    name: NameOfLaw
    kind: NoiseKind
    power: int
    rounding: int
    whole: type
    root: Callable[[Floats], Floats]
    whole_root: Callable[[int], int]
    spread: Callable[[float], float]
    ball: Ball
    moves: Callable[[list[Ints], Ints, int], Any]
    joint_rate: Callable[[Floats, Floats], Floats]
    takes_delta: bool
    has_limits: bool
    add: Callable[[Noise, list[int], int, int], list[int]]
    variance: float
    square_noise: float
    mean_absolute: Callable[[float], float]
    tail_quantile: Callable[[float, float], int]
    mean_error: Callable[[Floats], Floats]
    one_sided: Callable[[Floats, float], Floats]
    tail_of_difference: Callable[[Floats, float], float]
    normal: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies of a plan, also in another process, have the same law."""
        return law_of, (self.name,)

    def delta(self, delta: Fraction) -> Fraction:
        """Returns what the law uses of a delta: all of it or nothing."""
        return delta if self.takes_delta else Fraction(0)


def _whole_moves(terms: list[Ints], user: Ints, users: int) -> Ints:
    """Returns each user's sum of steps, which has to fit 64 bits."""
    of_member = np.sum(terms, axis=0)
    if float(of_member.sum(dtype=np.float64)) >= LARGEST_STEPS:
        raise too_large()
    return add(user, of_member, users)


def _squared_moves(terms: list[Ints], user: Ints, users: int) -> Floats:
    """Returns each user's sum of squared steps, in floating point and rounded upwards."""
    squares = np.sum([term.astype(np.float64) ** 2 for term in terms], axis=0)
    return np.asarray(np.bincount(user, squares, minlength=users) * _SQUARES_OUTWARD)


def _gaussian_rate(mean_scale: Floats, square_scale: Floats) -> Floats:
    """Returns the root of a user's rate, rounded upwards."""
    return np.sqrt(gaussian.joint_rate(mean_scale, square_scale)) * sensitivity.OUTWARD


LAPLACE = Law(
    name="discrete laplace",
    kind="laplace",
    power=1,
    rounding=1,
    whole=np.int64,
    root=np.asarray,
    whole_root=int,
    spread=lambda _: 1.0,
    ball=L1,
    moves=_whole_moves,
    joint_rate=variance.joint_loss,
    takes_delta=False,
    has_limits=True,
    add=lambda noise, steps, bits, draw: noise.add_laplace(steps, bits, draw),
    variance=2.0,
    square_noise=variance.SQUARE_NOISE,
    mean_absolute=laplace.mean_absolute,
    tail_quantile=laplace.tail_quantile,
    mean_error=laplace.mean_error,
    one_sided=laplace.one_sided,
    tail_of_difference=laplace.tail_of_difference,
    normal=False,
)
GAUSSIAN = Law(
    name="discrete gaussian",
    kind="gaussian",
    power=2,
    rounding=2,
    whole=object,
    root=np.sqrt,
    whole_root=math.isqrt,
    spread=math.sqrt,
    ball=L2,
    moves=_squared_moves,
    joint_rate=_gaussian_rate,
    takes_delta=True,
    has_limits=False,
    add=lambda noise, steps, bits, draw: noise.add_gaussian(steps, bits, draw),
    variance=1.0,
    square_noise=gaussian.SQUARE_NOISE,
    mean_absolute=gaussian.mean_absolute,
    tail_quantile=gaussian.tail_quantile,
    mean_error=gaussian.mean_error,
    one_sided=gaussian.one_sided,
    tail_of_difference=gaussian.tail_of_difference,
    normal=True,
)
_LAWS: dict[NameOfLaw, Law] = {law.name: law for law in (LAPLACE, GAUSSIAN)}


def law_of(name: NameOfLaw) -> Law:
    """Returns the law with a name."""
    return _LAWS[name]


def too_large() -> InputError:
    """Returns the error of a loss that 64-bit integers cannot add up."""
    return InputError(
        "the privacy loss is too large for exact accounting",
        "ask for a smaller epsilon: sums have to stay below 2^61 lattice steps",
    )
