"""Adds up what any plan costs: its noisy vectors, selections, and losses proved elsewhere.

Pure losses are added up user by user in whole numbers, exactly. So are the rho of Gaussian noise,
which are then turned into (epsilon, delta) with every rounding against us
(`docs/theory/privacy.md#accounting`, `docs/theory/privacy.md#gaussian-noise`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.privacy.budget import round_up
from shoal.theory.gaussian import epsilon_of_lattice

NoiseKind = Literal["laplace", "gaussian", "counted", "hull"]
# Sums that are not below this are added as whole numbers of Python, not of 64 bits.
_MOST_WHOLE = 2**62
# A factor that covers the rounding of sums in floating point.
_OUTWARD = 1 + 2.0**-40


class Sums(NamedTuple):
    """The numerators of users' losses, shape (users,) or (1,), and their common denominator."""

    numerators: NDArray[Any]
    denominator: int


@dataclass(frozen=True, eq=False)
class NoisyVector:
    """Whole numbers with noise on whole numbers.

    Attributes:
        noise: Gaussian noise has variance 4^bits; the density of all others falls by a factor of
            exp(-1/2^bits) for each step of their norm.
        bits: The noise has the scale of 2^bits steps.
        moves: Most steps that each user moves the vector by, in the noise's norm: l1 for `laplace`,
            squared l2 for `gaussian`, the larger of the sums of what rises and of what falls for
            `counted`, and for a `hull` the largest number above 0 plus the largest below it. Shape
            (users,), or (1,) if it is the same for whoever comes; whole numbers, or floating-point
            numbers that were rounded upwards.
        touched: Most numbers that one user moves; only Gaussian noise needs it.
    """

    noise: NoiseKind
    bits: int
    moves: NDArray[Any]
    touched: int = 0


@dataclass(frozen=True, eq=False)
class Selections:
    """Permute-and-flip selections, each of which costs 2 x sensitivity / scale.

    A selection costs half of that if a user who comes lowers no score
    (docs/theory/private-counts.md#a-range).

    Attributes:
        bits: Losses are in 2^-bits.
        moves: What all selections that read a user cost it, rounded upwards, shape (users,).
    """

    bits: int
    moves: NDArray[Any]


@dataclass(frozen=True)
class Stated:
    """A step whose loss was proved elsewhere, such as a randomised response.

    Attributes:
        epsilon: What it costs.
        delta: The delta of (epsilon, delta)-DP.
        often: How often it reads each user, shape (users,), or (1,) if that is alike for all.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    often: tuple[int, ...] = (1,)


Step = NoisyVector | Selections | Stated


class GaussianPart(NamedTuple):
    """The delta that Gaussian noise may take, the numbers that one user moves, the fewest bits."""

    delta: Fraction
    touched: int
    bits: int


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of all steps together, as `account` adds them up.

    `pure` holds the pure loss of each user and `squares` its rho by Gaussian noise. `delta` is all
    that is allowed if some noise is Gaussian, otherwise what steps state.
    """

    delta: Fraction
    pure: Sums
    squares: Sums
    gaussian: GaussianPart | None

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
        if self.gaussian is None or self.gaussian.delta != self.delta:
            return None
        return round_up(self.noise_rho + _largest(self.pure) ** 2 / 2)

    @cached_property
    def of_users(self) -> Floats:
        """Each user's pure loss, or rho if some noise is Gaussian, rounded upwards."""
        # Many users have the same loss, which is rounded once.
        distinct, which = np.unique(self.pure.numerators, return_inverse=True)
        denominator = self.pure.denominator
        pure = np.array([round_up(_exact(each, denominator)) for each in distinct])[which]
        if self.gaussian is None:
            return pure
        rho = self.squares.numerators.astype(np.float64) / self.squares.denominator
        return np.asarray((rho + pure**2 / 2) * _OUTWARD)


def account(steps: Sequence[Step], delta: Fraction = Fraction(0)) -> Losses:
    """Add up what steps of the same users cost every user; together they may take this delta.

    Raises:
        InputError: An unknown step or noise, a loss below 0, arrays of different users, Gaussian
            noise without the numbers that a user moves, or no delta left for it.
    """
    nothing = Sums(np.zeros(1, dtype=object), 1)
    pure = [nothing]
    squares = [nothing]
    gaussian_steps = list[NoisyVector]()
    delta_left = Fraction(delta)
    for step in steps:
        noise = step.noise if isinstance(step, NoisyVector) else None
        if isinstance(step, NoisyVector) and noise == "gaussian":
            # Its rho is the squared move divided by twice the variance 4^bits.
            squares.append(Sums(_moves(step.moves, floats=True), 2 * 4**step.bits))
            gaussian_steps.append(step)
        elif isinstance(step, Selections) or (
            isinstance(step, NoisyVector) and noise in get_args(NoiseKind)
        ):
            pure.append(Sums(_moves(step.moves), 2**step.bits))
        elif isinstance(step, Stated):
            often = np.array(step.often, dtype=object)
            pure.append(Sums(often * step.epsilon.numerator, step.epsilon.denominator))
            delta_left -= step.delta
        else:
            raise _bad("no privacy loss is proved for a step or its noise")
    if delta_left < 0 or (gaussian_steps and delta_left == 0):
        raise _bad("the steps take more delta than there is")
    if not gaussian_steps:
        return Losses(delta - delta_left, _sum(pure), _sum(squares), None)
    if min(step.touched for step in gaussian_steps) < 1:
        raise _bad("Gaussian noise lacks how many numbers a user moves")
    # The coarsest lattice is the worst case: rounding to whole steps adds most to delta there.
    bits = min(step.bits for step in gaussian_steps)
    touched = sum(step.touched for step in gaussian_steps)
    gaussian = GaussianPart(delta_left, touched, bits)
    return Losses(delta, _sum(pure), _sum(squares), gaussian)


def _moves(values: NDArray[Any], *, floats: bool = False) -> NDArray[Any]:
    """Returns moves as whole numbers, or as floating-point numbers if these are allowed."""
    moves = np.asarray(values)
    kind = moves.dtype.kind
    whole = kind in "bi" or (kind == "O" and set(map(type, moves.tolist())) <= {int})
    allowed = whole or (floats and kind == "f")
    if moves.ndim != 1 or not len(moves) or not allowed:
        raise _bad("the moves are not one whole number for each user")
    if not whole and not np.isfinite(moves).all():
        raise _bad("the moves are not finite")
    return moves.astype(np.int64) if kind in "bi" else moves


def _sum(parts: list[Sums]) -> Sums:
    """Returns the sum of losses, user by user; the first of the parts is nothing."""
    # An array with one number holds for all users, however many the others have.
    if len({len(numerators) for numerators, _ in parts} - {1}) > 1:
        raise _bad("the steps have different users")
    if min(numerators.min() for numerators, _ in parts) < 0:
        raise _bad("a step has a negative privacy loss")
    common = math.lcm(*(denominator for _, denominator in parts))
    largest = sum(
        _exact(numerators.max(), 1) * (common // denominator) for numerators, denominator in parts
    )
    fits_64_bits = max(largest, common) < _MOST_WHOLE
    total: NDArray[Any] = np.zeros(1, dtype=np.int64 if fits_64_bits else object)
    for numerators, denominator in parts:
        kind = float if numerators.dtype.kind == "f" else total.dtype
        total = total + numerators.astype(kind) * (common // denominator)
    # Besides nothing, a single array of floating-point numbers is as exact as it was given.
    if total.dtype.kind == "f" and len(parts) > 2:
        total = total * _OUTWARD
    return Sums(total, common)


def _largest(sums: Sums) -> Fraction:
    """Returns the largest loss of a user."""
    return _exact(sums.numerators.max(), sums.denominator)


def _exact(number: Any, divisor: int) -> Fraction:
    """Returns a whole or floating-point number, divided by a whole one, exactly."""
    return Fraction(float(number) if isinstance(number, float) else int(number)) / divisor


def _bad(got: str) -> InputError:
    return InputError(got, "please report this plan: shoal should not have made it")
