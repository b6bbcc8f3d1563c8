"""The discrete Gaussian with scale t steps: P[Z = z] proportional to exp(-z^2 / (2 t^2)).

What it protects when whole numbers move by whole steps, and its moments. Proofs:
`docs/theory/gaussian.md`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shoal.errors import InputError
from shoal.theory import zcdp
from shoal.theory.zcdp import delta_of, epsilon_of, rho_of

__all__ = [
    "SQUARE_NOISE",
    "cells_at_least",
    "delta_of",
    "delta_of_lattice",
    "epsilon_of",
    "epsilon_of_lattice",
    "joint_rate",
    "lattice_correction",
    "mean_absolute",
    "rho_of",
    "rho_of_lattice",
    "tail_quantile",
]

_MOST_BITS = 61
# SciPy's functions and a few operations stay well below this relative margin.
_OUTWARD = 2.0**-46
# E|X^2 - 1| = 4 phi(1) of a normal variable with scale 1, rounded upwards.
SQUARE_NOISE = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) * (1 + _OUTWARD)


def lattice_correction(rho: float, numbers: int, bits: int) -> float:
    """What whole numbers add to delta: a bound on delta of the lattice less `delta_of`.

    With k numbers, c = 4^-bits / 24 and h = 2 q / (1 - q), q = exp(-2 pi^2 4^bits), it is
    k c + ((1 + h) / sqrt(1 - 2c))^k exp(2 rho c / (1 - 2c)) - 1, near (k + rho) / (12 4^bits),
    whatever epsilon (`docs/theory/gaussian.md`).

    `numbers`: k, the most numbers that one user touches, from 1; returns the bound on the
    probability delta, rounded upwards, at most 1.
    """
    zcdp.check_rho(rho)
    _check_lattice(numbers, bits)
    small = 4.0**-bits / 24
    theta = math.exp(-2 * math.pi**2 * 4.0**bits)
    each = math.log1p(2 * theta / (1 - theta)) - math.log1p(-2 * small) / 2
    exponent = numbers * each + 2 * rho * small / (1 - 2 * small)
    added = numbers * small + math.expm1(min(1.0, exponent))
    return min(1.0, added * (1 + _OUTWARD))


def delta_of_lattice(epsilon: float, rho: float, numbers: int, bits: int) -> float:
    """A delta for which discrete Gaussian noise on whole numbers is (epsilon, delta)-private.

    `delta_of` plus `lattice_correction`.

    Returns a probability, rounded upwards.
    """
    exact = delta_of(epsilon, rho) + lattice_correction(rho, numbers, bits)
    return min(1.0, math.nextafter(exact, math.inf))


def epsilon_of_lattice(rho: float, delta: float, numbers: int, bits: int) -> float:
    """An epsilon for which discrete Gaussian noise of loss rho is (epsilon, delta)-private.

    Returns epsilon, rounded upwards: `delta_of_lattice` of it is at most delta.
    """
    return epsilon_of(rho, _left(delta, rho, numbers, bits))


def rho_of_lattice(epsilon: float, delta: float, numbers: int, bits: int) -> float:
    """A zCDP loss for which discrete Gaussian noise is (epsilon, delta)-private.

    The largest but for the correction, which is taken at the loss of continuous noise.

    Returns loss rho, rounded downwards: `delta_of_lattice` of it is at most delta, and
    `epsilon_of_lattice` of it, or of less, at most epsilon.
    """
    largest = rho_of(epsilon, delta)
    return rho_of(epsilon, _left(delta, largest, numbers, bits))


def mean_absolute(scale: float) -> float:
    """E|Z| <= t sqrt(2/pi) of discrete Gaussian noise, in steps: the continuous value, upwards.

    `scale`: t, a whole number of steps from 1; returns an upper bound, in steps.
    """
    _check_scale(scale)
    return scale * math.sqrt(2 / math.pi) * (1 + _OUTWARD)


def tail_quantile(scale: float, beta: float) -> int:
    """A whole z with P[|Z| > z] <= beta, in steps: the least one or, rarely, one above.

    P[|Z| > z] <= P[|X| > z + 1/2] / (1 - 1/(24 t^2)) for normal X of standard deviation t.

    `scale`: t, a whole number of steps from 1.
    """
    _check_scale(scale)
    if not zcdp.LEAST_DELTA <= beta < 1:
        raise InputError(
            f"an error probability of {beta!r}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
    exact = scale * -float(special.ndtri(beta * (1 - 1 / (24 * scale * scale)) / 2)) - 0.5
    # The margin covers the rounding of the quantile, so the tail is never above beta.
    return max(0, math.ceil(exact + 1e-12 * scale))


def cells_at_least(epsilon: float, delta: float) -> float:
    """In how many numbers a user must be before Gaussian noise can be less than Laplace noise.

    k = epsilon^2 / (pi rho), rho what (epsilon, delta) pays for. Gaussian noise of mean absolute
    values b that charges a user of shares v the loss |v/b|_2^2 / pi = rho or less, in at most k
    numbers, has |v/b|_1 <= sqrt(k pi rho) <= epsilon: Laplace noise with the same b is allowed,
    too, without a delta.

    Source: docs/theory/gaussian.md.

    Returns a number of cells times numbers of each, above 0; not rounded.
    """
    return epsilon**2 / (math.pi * zcdp.rho_of(epsilon, delta))


def joint_rate(
    mean_scale: NDArray[np.float64] | float, square_scale: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """The factor R in rho = v^2 R / 2 of a user of share v, for mean and second moment together.

    R = max over D in [0, 1] of D^2/s1^2 + D^2 (1-D)^2/s2^2: the largest squared distance, in
    noise scales, of two points of the convex hull of {(y, y^2)}, |y| <= 1/2. It is at D = 1 or at
    D = (3 - sqrt(1 - 8 s2^2/s1^2))/4, so the second moment costs nothing from s2 >= 0.3003 s1 on,
    where s2^2/s1^2 = (5 sqrt 5 - 11)/2 (`docs/theory/gaussian.md`).

    `mean_scale`: s1 over U, above 0, of any shape; standard deviation of the noise on the mean of
    y; `square_scale`: s2 over U^2, above 0, same shape; of the noise on the mean of y^2; returns
    the factor R, rounded upwards, same shape.
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    second = np.asarray(square_scale, dtype=np.float64)
    inside = (3 - np.sqrt(np.maximum(0.0, 1 - 8 * (second / first) ** 2))) / 4
    both = (inside / first) ** 2 + (inside * (1 - inside) / second) ** 2
    return np.asarray(np.maximum(both, first**-2.0) * (1 + _OUTWARD))


def _left(delta: float, rho: float, numbers: int, bits: int) -> float:
    zcdp.check_delta(delta)
    # The margin also covers a delta that was rounded to a float.
    left = delta * (1 - _OUTWARD) - lattice_correction(rho, numbers, bits)
    if left < zcdp.LEAST_DELTA:
        raise InputError(
            f"a lattice of {bits} bits, too coarse for a delta of {delta!r}",
            "a lattice whose correction stays below delta",
            "use more bits or a larger delta",
        )
    return left


def _check_lattice(numbers: int, bits: int) -> None:
    if numbers < 1 or not 0 <= bits <= _MOST_BITS:
        raise InputError(
            f"{numbers} numbers of a user on a lattice of {bits} bits",
            "at least one number, and from 0 to 61 bits",
            "give for example numbers=1 and bits=26",
        )


def _check_scale(scale: float) -> None:
    if not (scale >= 1 and float(scale).is_integer()):
        raise InputError(
            f"Gaussian noise of {scale!r} steps", "a whole number of steps from 1", "use 2^bits"
        )
