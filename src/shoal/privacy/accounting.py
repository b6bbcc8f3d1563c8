"""The cost of any plan, from its steps: noisy vectors, selections, and losses proved elsewhere.

Pure losses are added up user by user in whole numbers, exactly; rho of Gaussian noise as well, and
turned into (epsilon, delta) with every rounding against us (`docs/theory/accounting.md`,
`docs/theory/gaussian.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from shoal.errors import InputError
from shoal.privacy import permute_and_flip
from shoal.privacy.budget import round_up
from shoal.theory.gaussian import epsilon_of_lattice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NoiseKind = Literal["laplace", "gaussian", "sum_zero", "hull"]


@dataclass(frozen=True, eq=False)
class NoisyVector:
    """Whole numbers with noise on whole numbers.

    Attributes:
        noise: Gaussian noise has variance 4^bits; the density of all others falls by a factor of
            exp(-1/2^bits) for each step of their norm.
        bits: The noise has the scale of 2^bits steps.
        moves: Most steps that each user moves the vector by, in the noise's norm: l1 for `laplace`,
            squared l2 for `gaussian`. Shape (users,), or (1,) if it is the same for whoever comes.
        touched: Most numbers that one user moves; only Gaussian noise needs it.
    """

    noise: NoiseKind
    bits: int
    moves: NDArray[Any]
    touched: int = 0


@dataclass(frozen=True, eq=False)
class Selection:
    """A permute-and-flip selection: 2 x sensitivity / scale for each user it reads, (users,)."""

    sensitivity: int
    scale: float
    voters: NDArray[np.bool_]


@dataclass(frozen=True)
class Stated:
    """A step of a loss that was proved elsewhere, for everybody: a randomised response, say."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)


Step = NoisyVector | Selection | Stated


@dataclass(frozen=True, eq=False)
class Losses:
    """What steps cost together, as `account` adds it up.

    Attributes:
        delta: The delta of (epsilon, delta)-DP: all that is allowed if some noise is Gaussian,
            otherwise the sum of what steps state.
        pure: Numerators of each user's pure loss over `whole`, shape (users,) or (1,).
        squares: Numerators of each user's rho over `whole_squares`; all 0 without Gaussian noise.
        gaussian: Its delta, the most numbers that one user moves, and the fewest bits; else None.
    """

    delta: Fraction
    pure: NDArray[np.object_]
    whole: int
    squares: NDArray[np.object_]
    whole_squares: int
    gaussian: tuple[Fraction, int, int] | None

    @cached_property
    def epsilon(self) -> Fraction:
        """The privacy loss: exact, or an upper bound if some noise is Gaussian."""
        pure = Fraction(int(self.pure.max()), self.whole)
        if self.gaussian is None:
            return pure
        delta, touched, bits = self.gaussian
        rho = Fraction(int(self.squares.max()), self.whole_squares)
        return pure + Fraction(epsilon_of_lattice(round_up(rho), float(delta), touched, bits))

    @cached_property
    def rho(self) -> float | None:
        """Zero-concentrated loss, rounded upwards; None unless it is of Gaussian noise.

        A pure loss of epsilon is one of epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4).
        """
        if self.gaussian is None or self.gaussian[0] != self.delta:
            return None
        pure = Fraction(int(self.pure.max()), self.whole)
        return round_up(Fraction(int(self.squares.max()), self.whole_squares) + pure**2 / 2)

    @cached_property
    def of_users(self) -> NDArray[np.float64]:
        """Each user's pure loss, or rho of Gaussian noise if there is some, rounded upwards."""
        top, whole = (
            (self.pure, self.whole) if self.gaussian is None else (self.squares, self.whole_squares)
        )
        kinds, kind = np.unique(top, return_inverse=True)
        return np.array([round_up(Fraction(int(each), whole)) for each in kinds])[kind]


def account(steps: Sequence[Step], delta: Fraction = Fraction(0)) -> Losses:
    """Add up what steps cost every user.

    Args:
        steps: All of one plan, with the same users in the same order.
        delta: What delta may be in all; Gaussian noise takes what other steps leave of it.

    Raises:
        InputError: An unknown step or noise, a loss below 0, arrays of different users, Gaussian
            noise without the numbers that a user moves, or no delta left for it.

    Example:
        >>> moves, voters = np.array([3, 1]), np.array([True, False])
        >>> found = account([NoisyVector("laplace", 2, moves), Selection(1, 8.0, voters)])
        >>> found.epsilon, found.of_users.tolist()
        (Fraction(1, 1), [1.0, 0.25])
    """
    pure, squares = [(np.zeros(1, dtype=object), 1)], [(np.zeros(1, dtype=object), 1)]
    left, wide = Fraction(delta), []
    for step in steps:
        if isinstance(step, NoisyVector) and step.noise == "gaussian":
            squares.append((_whole(step.moves), 2 * 4**step.bits))
            wide.append(step)
        elif isinstance(step, NoisyVector) and step.noise in get_args(NoiseKind):
            pure.append((_whole(step.moves), 2**step.bits))
        elif isinstance(step, Selection):
            loss = permute_and_flip.loss(step.sensitivity, step.scale)
            pure.append((_whole(step.voters) * loss.numerator, loss.denominator))
        elif isinstance(step, Stated):
            pure.append((np.array([step.epsilon.numerator], object), step.epsilon.denominator))
            left -= step.delta
        else:
            raise _bad("a step or a noise that nobody has proved the loss of", "a known one")
    if left < 0 or (wide and left == 0):
        raise _bad(
            "steps that take more delta than there is", f"a delta of {float(delta):g} in all"
        )
    if wide and min(step.touched for step in wide) < 1:
        raise _bad("Gaussian noise without the numbers that a user moves", "touched from 1")
    # On the coarsest lattice of all: what whole numbers add to delta is largest there.
    numbers, bits = sum(step.touched for step in wide), min((step.bits for step in wide), default=0)
    return Losses(
        delta if wide else delta - left,
        *_sum(pure),
        *_sum(squares),
        (left, numbers, bits) if wide else None,
    )


def _whole(values: NDArray[Any]) -> NDArray[np.object_]:
    """Whole numbers of any size, shape (users,)."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "biuO" or not len(found):
        raise _bad("moves or voters that are no whole numbers", "one of each user")
    return np.array([int(each) for each in found.tolist()], dtype=object)


def _sum(parts: list[tuple[NDArray[np.object_], int]]) -> tuple[NDArray[np.object_], int]:
    """The sum of fractions, as numerators over one denominator."""
    if len({len(each) for each, _ in parts} - {1}) > 1:
        raise _bad("steps of different users", "one number of each user in every step")
    if min(min(each.tolist()) for each, _ in parts) < 0:
        raise _bad("a step that costs less than nothing", "losses from 0")
    whole = math.lcm(*(denominator for _, denominator in parts))
    total = np.zeros(1, dtype=object)
    for each, denominator in parts:
        total = total + each * (whole // denominator)
    return total, whole


def _bad(got: str, allowed: str) -> InputError:
    return InputError(got, allowed, "this is an error of the plan: please report it")
