"""Accounts for Gaussian noise: its zCDP loss, its exact (epsilon, delta), and both on a lattice.

Let m be the l2 norm of the vector by which a user moves the numbers of a release, each divided by
its noise scale. The user's zCDP loss is rho = m^2 / 2; losses of independent noise add up. The
discrete Gaussian with a scale of t steps has P[Z = z] proportional to exp(-z^2/(2t^2)).
Source: docs/theory/privacy.md#gaussian-noise.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

from shoal import checks
from shoal.arrays import Floats
from shoal.errors import InputError

# With a smaller delta, rounding upwards would no longer be close.
LEAST_DELTA = 1e-300
_LARGEST_EPSILON = 1e9
_LARGEST_RHO = 1e12
_ROOT = math.sqrt(2 * math.pi)
# A relative margin, far above the errors of SciPy's functions and of a few operations.
_OUTWARD = 2.0**-46
# A relative margin, far above the distance at which bisections end.
_CAPACITY = 2.0**-40
# Products below the normal floats lose at most a few of their least units.
_UNDERFLOW = 16 * math.ulp(0.0)
_MOST_BITS = 61
# E|X^2 - 1| = 4 phi(1) for a normal variable X with scale 1, rounded upwards.
SQUARE_NOISE = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) * (1 + _OUTWARD)


def delta_of(epsilon: float, rho: float) -> float:
    """Returns the least delta of Gaussian noise of zCDP loss rho, rounded upwards.

    delta = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m) with m = sqrt(2 rho), which is
    attained (Balle and Wang 2018, Theorem 8). The result is above 0 unless rho is 0.
    """
    checks.number(epsilon, "epsilon", least=0, most=_LARGEST_EPSILON)
    check_rho(rho)
    return _delta(epsilon, rho)


def epsilon_of(rho: float, delta: float) -> float:
    """Returns the least epsilon >= 0 of Gaussian noise of loss rho at a delta, rounded upwards."""
    check_rho(rho)
    check_delta(delta)
    if _delta(0.0, rho) <= delta:
        return 0.0
    # The search starts at the looser conversion of zCDP (Bun and Steinke 2016, Proposition 1.3).
    good = rho + 2 * math.sqrt(-rho * math.log(delta))
    while _delta(good, rho) > delta:
        good *= 2
    return _last_good(lambda epsilon: _delta(epsilon, rho) <= delta, good, 0.0)


def rho_of(epsilon: float, delta: float) -> float:
    """Returns the largest zCDP loss of (epsilon, delta)-private Gaussian noise, downwards."""
    checks.number(epsilon, "epsilon", above=0, most=_LARGEST_EPSILON)
    check_delta(delta)
    # The search starts at the looser conversion, as in `epsilon_of`, solved for rho.
    root = math.sqrt(-math.log(delta))
    good = (epsilon / (math.sqrt(epsilon + root * root) + root)) ** 2
    while _delta(epsilon, good) > delta:
        good /= 2
    bad = 2 * good + math.ulp(0.0)
    while _delta(epsilon, bad) <= delta:
        bad *= 2
    good = _last_good(lambda rho: _delta(epsilon, rho) <= delta, good, bad)
    return good * (1 - _CAPACITY)


def lattice_correction(rho: float, numbers: int, bits: int) -> float:
    """Returns the most that noise in whole numbers adds to delta at any epsilon, rounded upwards.

    Let k be the `numbers` of a user, c = 4^-bits / 24, q = exp(-2 pi^2 4^bits) and
    h = 2 q / (1 - q). It is k c + ((1 + h) / sqrt(1 - 2c))^k exp(2 rho c / (1 - 2c)) - 1
    (docs/theory/privacy.md#delta-on-the-lattice).
    """
    check_rho(rho)
    _check_lattice(numbers, bits)
    c = 4.0**-bits / 24
    q = math.exp(-2 * math.pi**2 * 4.0**bits)
    log_ratio = math.log1p(2 * q / (1 - q)) - math.log1p(-2 * c) / 2
    exponent = numbers * log_ratio + 2 * rho * c / (1 - 2 * c)
    added = numbers * c + math.expm1(min(1.0, exponent))
    return min(1.0, added * (1 + _OUTWARD))


def delta_of_lattice(epsilon: float, rho: float, numbers: int, bits: int) -> float:
    """Returns a delta of discrete Gaussian noise: `delta_of` and `lattice_correction`, upwards."""
    exact = delta_of(epsilon, rho) + lattice_correction(rho, numbers, bits)
    return min(1.0, math.nextafter(exact, math.inf))


def epsilon_of_lattice(rho: float, delta: float, numbers: int, bits: int) -> float:
    """Returns an epsilon of discrete Gaussian noise of loss rho at a delta, rounded upwards."""
    return epsilon_of(rho, _left(delta, rho, numbers, bits))


def rho_of_lattice(epsilon: float, delta: float, numbers: int, bits: int) -> float:
    """Returns a zCDP loss of (epsilon, delta)-private discrete Gaussian noise, rounded downwards.

    It is nearly the largest: the correction is taken at the larger loss of continuous noise.
    """
    largest = rho_of(epsilon, delta)
    return rho_of(epsilon, _left(delta, largest, numbers, bits))


def mean_absolute(scale: float) -> float:
    """Bounds the mean of |Z| by scale sqrt(2/pi), its value for continuous noise, in steps."""
    _check_scale(scale)
    return scale * math.sqrt(2 / math.pi) * (1 + _OUTWARD)


def tail_quantile(scale: float, beta: float) -> int:
    """Returns a whole z with P[|Z| > z] <= beta, in steps: the least one or, rarely, the next.

    P[|Z| > z] <= P[|X| > z + 1/2] / (1 - 1/(24 t^2)) for normal X of standard deviation t, which
    is `scale`.
    """
    _check_scale(scale)
    if not LEAST_DELTA <= beta < 1:
        raise InputError(f"the error probability is {beta!r}", "give for example confidence=0.95")
    exact = scale * -float(special.ndtri(beta * (1 - 1 / (24 * scale * scale)) / 2)) - 0.5
    # The margin covers the rounding of the quantile, so the tail is never above beta.
    return max(0, math.ceil(exact + 1e-12 * scale))


def mean_error(bias: Floats) -> Floats:
    """Returns E|X + bias| for a standard normal X."""
    density = np.sqrt(2 / np.pi) * np.exp(-(bias**2) / 2)
    return np.asarray(density + bias * (1 - 2 * special.ndtr(-bias)))


def one_sided(room: Floats, miss: float) -> Floats:
    """Returns by how much a quantile is less where a bias within a room is on one side alone.

    The standard deviation is 1 (docs/theory/cells.md#intervals).
    """
    both_sides = special.ndtri(1 - miss / 2)
    one_side = special.ndtri(1 - miss / (1 + np.exp(-(room**2) / 2)))
    return np.asarray(both_sides - one_side)


def tail_of_difference(scale: Floats, q: float) -> float:
    """Returns P[first - second > q] for normal noises of two standard deviations."""
    return float(special.ndtr(-q / np.hypot(*scale)))


def cells_at_least(epsilon: float, delta: float) -> float:
    """Returns the numbers of a user beyond which Gaussian noise can be less than Laplace noise.

    It is epsilon^2 / (pi rho), where rho is `rho_of` epsilon and delta
    (docs/theory/privacy.md#when-a-delta-helps).
    """
    return epsilon**2 / (math.pi * rho_of(epsilon, delta))


def joint_rate(mean_scale: Floats | float, square_scale: Floats | float) -> Floats:
    """Returns the rate R of a joint release of mean and second moment, rounded upwards.

    A user with a share v of a cell has the loss rho = v^2 R / 2. With the scales s1 as a part of
    the width and s2 as a part of its square, R is the maximum of D^2/s1^2 + D^2 (1-D)^2/s2^2 over D
    in [0, 1], at D = 1 or at D = (3 - sqrt(1 - 8 s2^2/s1^2))/4
    (docs/theory/privacy.md#two-moments-with-gaussian-noise).
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    second = np.asarray(square_scale, dtype=np.float64)
    inside = (3 - np.sqrt(np.maximum(0.0, 1 - 8 * (second / first) ** 2))) / 4
    both = (inside / first) ** 2 + (inside * (1 - inside) / second) ** 2
    return np.asarray(np.maximum(both, first**-2.0) * (1 + _OUTWARD))


def _delta(epsilon: float, rho: float) -> float:
    """Returns `delta_of` without checking its arguments."""
    if rho == 0:
        return 0.0
    move = math.sqrt(2 * rho)
    near = (epsilon - rho) / move
    far = (epsilon + rho) / move
    # phi(near) = e^epsilon phi(far). So delta = phi(near) (M(near) - M(far)) with Mills ratios M,
    # and phi(near) M(near) = Phi(-near).
    density = math.exp(-near * near / 2) / _ROOT
    if move <= 1:
        # The ratios are so close that their difference is computed as one integral.
        exact = density * _mills_difference(near, move)
    else:
        mills = math.sqrt(math.pi / 2) * float(special.erfcx(far / math.sqrt(2)))
        exact = float(special.ndtr(-near)) - density * mills
    # A relative error of `near` becomes near^2 times as large in the density.
    return min(1.0, exact * (1 + _OUTWARD * (1 + max(near, 0.0) ** 2)) + _UNDERFLOW)


def _mills_difference(near: float, move: float) -> float:
    """Returns the difference of the Mills ratios at `near` and at `near` + `move`.

    It is the integral over s > 0 of e^(-near s - s^2/2) (1 - e^(-move s)). Every term is positive,
    so nothing cancels when `move` is small.
    """
    nodes, weights = _legendre()
    # The integral ends where the exponent is below -45.
    end = 90 / (near + math.sqrt(near * near + 90))
    s = end * nodes
    return end * float(weights @ (np.exp(-near * s - s * s / 2) * -np.expm1(-move * s)))


@cache
def _legendre() -> tuple[Floats, Floats]:
    """Returns nodes and weights of a Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


def _last_good(accepts: Callable[[float], bool], good: float, bad: float) -> float:
    """Bisects between an accepted and a refused number, and returns the last accepted one."""
    while abs(good - bad) > _OUTWARD * good:
        middle = (good + bad) / 2
        if middle in {good, bad}:
            break
        if accepts(middle):
            good = middle
        else:
            bad = middle
    return good


def check_rho(rho: float) -> None:
    """Refuses a zCDP loss outside 0 to 1e12."""
    if not 0 <= rho <= _LARGEST_RHO:
        raise InputError(f"rho is {rho!r}", "give a number from 0 to 1e12, or use Laplace noise")


def check_delta(delta: float) -> None:
    """Refuses a delta that is below 1e-300, or 1 or more."""
    if not LEAST_DELTA <= delta < 1:
        raise InputError(
            f"delta is {delta!r}", "give a number far below 1, such as 1e-9, or use Laplace noise"
        )


def _left(delta: float, rho: float, numbers: int, bits: int) -> float:
    """Returns the part of delta that the lattice correction leaves; refuses too small a part."""
    check_delta(delta)
    # The margin also covers a delta that was rounded to a float.
    left = delta * (1 - _OUTWARD) - lattice_correction(rho, numbers, bits)
    if left < LEAST_DELTA:
        raise InputError(
            f"a lattice of {bits} bits is too coarse for a delta of {delta!r}",
            "use more bits or a larger delta",
        )
    return left


def _check_lattice(numbers: int, bits: int) -> None:
    """Refuses a user without numbers, and a lattice of unusable bits."""
    if numbers < 1 or not 0 <= bits <= _MOST_BITS:
        raise InputError(
            f"a user has {numbers} numbers on a lattice of {bits} bits",
            "give at least one number, and from 0 to 61 bits",
        )


def _check_scale(scale: float) -> None:
    if not (scale >= 1 and float(scale).is_integer()):
        raise InputError(f"the noise scale is {scale!r} steps", "give a whole number, 1 or more")
