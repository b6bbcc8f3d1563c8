"""The cost of any plan, from its steps: noisy vectors, selections, and losses proved elsewhere.

Pure losses are added up user by user in whole numbers, exactly; rho of Gaussian noise as well, and
turned into (epsilon, delta) with every rounding against us (`docs/theory/privacy.md#accounting`,
`docs/theory/privacy.md#gaussian-noise`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.privacy.budget import round_up
from shoal.theory.gaussian import epsilon_of_lattice

NoiseKind = Literal["laplace", "gaussian", "pair", "hull"]
# Numerators of each user's loss, shape (users,) or (1,), and their denominator.
Sums = tuple[NDArray[Any], int]
# Sums of 64-bit whole numbers stay below, or are added as Python's; those of floating point are
# rounded upwards.
_MOST_WHOLE = 2**62
_OUTWARD = 1 + 2.0**-40


@dataclass(frozen=True, eq=False)
class NoisyVector:
    """Whole numbers with noise on whole numbers.

    Attributes:
        noise: Gaussian noise has variance 4^bits; the density of all others falls by a factor of
            exp(-1/2^bits) for each step of their norm.
        bits: The noise has the scale of 2^bits steps.
        moves: Most steps that each user moves the vector by, in the noise's norm: l1 for `laplace`,
            squared l2 for `gaussian`, max(|x|, |y|, |x + y|) for a `pair`, and for a `hull` the
            largest number above 0 plus the largest below it. Shape (users,), or (1,)
            if it is the same for whoever comes; whole numbers, or floating-point numbers that were
            rounded upwards.
        touched: Most numbers that one user moves; only Gaussian noise needs it.
    """

    noise: NoiseKind
    bits: int
    moves: NDArray[Any]
    touched: int = 0


@dataclass(frozen=True, eq=False)
class Selections:
    """Permute-and-flip selections, each of which costs 2 x sensitivity / scale.

    Half of that if a user who comes lowers no score (docs/theory/private-counts.md#a-range).

    Attributes:
        bits: Losses are in 2^-bits.
        moves: What all selections that read a user cost it, rounded upwards, shape (users,).
    """

    bits: int
    moves: NDArray[Any]


@dataclass(frozen=True)
class Stated:
    """A step of a loss that was proved elsewhere: a randomised response, say.

    Attributes:
        epsilon: What it costs.
        delta: The delta of (epsilon, delta)-DP.
        often: How often it reads each user, shape (users,), or (1,) if that is alike for all.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    often: tuple[int, ...] = (1,)


Step = NoisyVector | Selections | Stated


@dataclass(frozen=True, eq=False)
class Losses:
    """What steps cost together, as `account` adds it up: of each user the pure loss, and rho.

    `delta` is all that is allowed if some noise is Gaussian, otherwise what steps state; `gaussian`
    is its part of delta, the most numbers that one user moves, and the fewest bits.
    """

    delta: Fraction
    pure: Sums
    squares: Sums
    gaussian: tuple[Fraction, int, int] | None

    @cached_property
    def epsilon(self) -> Fraction:
        """The privacy loss: exact, or an upper bound if some noise is Gaussian."""
        if self.gaussian is None:
            return _largest(self.pure)
        delta, touched, bits = self.gaussian
        rho = round_up(self.noise_rho)
        return _largest(self.pure) + Fraction(epsilon_of_lattice(rho, float(delta), touched, bits))

    @property
    def noise_rho(self) -> Fraction:
        """Zero-concentrated loss of Gaussian noise alone."""
        return _largest(self.squares)

    @cached_property
    def rho(self) -> float | None:
        """Zero-concentrated loss, rounded upwards; None unless it is of Gaussian noise.

        A pure loss of epsilon is one of epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4).
        """
        if self.gaussian is None or self.gaussian[0] != self.delta:
            return None
        return round_up(self.noise_rho + _largest(self.pure) ** 2 / 2)

    @cached_property
    def of_users(self) -> Floats:
        """Each user's pure loss, or rho if some noise is Gaussian, rounded upwards."""
        lost, whole = self.pure
        kinds, kind = np.unique(lost, return_inverse=True)
        pure = np.array([round_up(_exact(each, whole)) for each in kinds])[kind]
        if self.gaussian is None:
            return pure
        squares, parts = self.squares
        return np.asarray((squares.astype(np.float64) / parts + pure**2 / 2) * _OUTWARD)


def account(steps: Sequence[Step], delta: Fraction = Fraction(0)) -> Losses:
    """Add up what steps of the same users cost every user, at most `delta` in all.

    Raises:
        InputError: An unknown step or noise, a loss below 0, arrays of different users, Gaussian
            noise without the numbers that a user moves, or no delta left for it.
    """
    nothing: Sums = (np.zeros(1, dtype=object), 1)
    pure = [nothing]
    squares = [nothing]
    wide = list[NoisyVector]()
    left = Fraction(delta)
    for step in steps:
        if isinstance(step, NoisyVector) and step.noise == "gaussian":
            squares.append((_moves(step.moves, floats=True), 2 * 4**step.bits))
            wide.append(step)
        elif isinstance(step, Selections) or (
            isinstance(step, NoisyVector) and step.noise in get_args(NoiseKind)
        ):
            pure.append((_moves(step.moves), 2**step.bits))
        elif isinstance(step, Stated):
            often = np.array(step.often, dtype=object)
            pure.append((often * step.epsilon.numerator, step.epsilon.denominator))
            left -= step.delta
        else:
            raise _bad("no privacy loss is proved for a step or its noise")
    if left < 0 or (wide and left == 0):
        raise _bad("the steps take more delta than there is")
    if wide and min(step.touched for step in wide) < 1:
        raise _bad("Gaussian noise lacks how many numbers a user moves")
    # The coarsest lattice is the worst case: rounding to whole steps adds most to delta there.
    numbers = sum(step.touched for step in wide)
    bits = min((step.bits for step in wide), default=0)
    gaussian = (left, numbers, bits) if wide else None
    return Losses(delta if wide else delta - left, _sum(pure), _sum(squares), gaussian)


def _moves(values: NDArray[Any], *, floats: bool = False) -> NDArray[Any]:
    """Whole numbers, or floating-point numbers that stand for them, shape (users,)."""
    found = np.asarray(values)
    kind = found.dtype.kind
    whole = kind in "bi" or (kind == "O" and set(map(type, found.tolist())) <= {int})
    if found.ndim != 1 or not len(found) or not (whole or (floats and kind == "f")):
        raise _bad("the moves are not one whole number for each user")
    if not whole and not np.isfinite(found).all():
        raise _bad("the moves are not finite")
    return found.astype(np.int64) if kind in "bi" else found


def _sum(parts: list[Sums]) -> Sums:
    if len({len(each) for each, _ in parts} - {1}) > 1:
        raise _bad("the steps have different users")
    if min(each.min() for each, _ in parts) < 0:
        raise _bad("a step has a negative privacy loss")
    whole = math.lcm(*(each for _, each in parts))
    largest = sum(_exact(each.max(), 1) * (whole // denominator) for each, denominator in parts)
    small = max(largest, whole) < _MOST_WHOLE
    total: NDArray[Any] = np.zeros(1, dtype=np.int64 if small else object)
    for each, denominator in parts:
        total = total + each.astype(total.dtype if each.dtype.kind != "f" else float) * (
            whole // denominator
        )
    # One array of floating-point numbers is as exact as it was given.
    return (total * _OUTWARD if total.dtype.kind == "f" and len(parts) > 2 else total), whole


def _largest(sums: Sums) -> Fraction:
    return _exact(sums[0].max(), sums[1])


def _exact(number: Any, whole: int) -> Fraction:
    return Fraction(float(number) if isinstance(number, float) else int(number)) / whole


def _bad(got: str) -> InputError:
    return InputError(got, "please report this plan: shoal should not have made it")
