"""Zero-concentrated privacy (zCDP) of Gaussian noise: its exact (epsilon, delta).

A user who moves the numbers of a release, each over its noise scale, by a vector of l2 norm m has
the zCDP loss rho = m^2 / 2. Losses of independent noise add up. Proofs: `docs/theory/gaussian.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shoal.errors import InputError

# Below it, rounding upwards would no longer be close.
LEAST_DELTA = 1e-300
_LARGEST_EPSILON = 1e9
_LARGEST_RHO = 1e12
_ROOT = math.sqrt(2 * math.pi)
# SciPy's functions and a few operations stay well below this relative margin.
_OUTWARD = 2.0**-46
# Bisections end far closer than this.
_CAPACITY = 2.0**-40
# Products below the normal floats lose at most a few of their least units.
_UNDERFLOW = 16 * math.ulp(0.0)


def delta_of(epsilon: float, rho: float) -> float:
    """The least delta for which Gaussian noise of zCDP loss rho is (epsilon, delta)-private.

    delta = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m) with m = sqrt(2 rho) (Balle and
    Wang 2018, Theorem 8), attained.

    Returns a probability, rounded upwards; above 0 unless rho is 0.
    """
    _check_epsilon(epsilon, zero=True)
    check_rho(rho)
    return _delta(epsilon, rho)


def epsilon_of(rho: float, delta: float) -> float:
    """The least epsilon for which Gaussian noise of loss rho is (epsilon, delta)-private.

    Returns epsilon, rounded upwards: `delta_of` of it is at most delta. 0 if no epsilon is needed.
    """
    check_rho(rho)
    check_delta(delta)
    if _delta(0.0, rho) <= delta:
        return 0.0
    # Where the looser conversion of zCDP ends (Bun and Steinke 2016, Proposition 1.3).
    good = rho + 2 * math.sqrt(-rho * math.log(delta))
    while _delta(good, rho) > delta:
        good *= 2
    return _last_good(lambda epsilon: _delta(epsilon, rho) <= delta, good, 0.0)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest zCDP loss of (epsilon, delta)-private Gaussian noise.

    Returns loss rho, rounded downwards by a millionth of a millionth: `delta_of` of it is at most
    delta, and `epsilon_of` of it, or of less, at most epsilon.
    """
    _check_epsilon(epsilon)
    check_delta(delta)
    root = math.sqrt(-math.log(delta))
    good = (epsilon / (math.sqrt(epsilon + root * root) + root)) ** 2
    while _delta(epsilon, good) > delta:
        good /= 2
    bad = 2 * good + math.ulp(0.0)
    while _delta(epsilon, bad) <= delta:
        bad *= 2
    good = _last_good(lambda rho: _delta(epsilon, rho) <= delta, good, bad)
    return good * (1 - _CAPACITY)


def _delta(epsilon: float, rho: float) -> float:
    """See `delta_of`; no limits."""
    if rho == 0:
        return 0.0
    move = math.sqrt(2 * rho)
    near, far = (epsilon - rho) / move, (epsilon + rho) / move
    # As phi(near) = e^epsilon phi(far), delta = phi(near) (M(near) - M(far)), M(x) the Mills ratio.
    density = math.exp(-near * near / 2) / _ROOT
    if move <= 1:
        exact = density * _mills_difference(near, move)
    else:
        mills = math.sqrt(math.pi / 2) * float(special.erfcx(far / math.sqrt(2)))
        exact = float(special.ndtr(-near)) - density * mills
    # A relative error of `near` counts near^2 times in its density.
    return min(1.0, exact * (1 + _OUTWARD * (1 + max(near, 0.0) ** 2)) + _UNDERFLOW)


def _mills_difference(near: float, move: float) -> float:
    """M(x) - M(x + m) = integral over s > 0 of e^(-x s - s^2/2) (1 - e^(-m s)), x >= -m/2.

    Every term is positive, so nothing cancels when m is small.
    """
    nodes, weights = _legendre()
    end = 90 / (near + math.sqrt(near * near + 90))  # where the exponent is below -45
    s = end * nodes
    return end * float(weights @ (np.exp(-near * s - s * s / 2) * -np.expm1(-move * s)))


@cache
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


def _last_good(accepts: Callable[[float], bool], good: float, bad: float) -> float:
    """Bisection; what is returned was accepted."""
    while abs(good - bad) > _OUTWARD * good:
        middle = (good + bad) / 2
        if middle in {good, bad}:
            break
        if accepts(middle):
            good = middle
        else:
            bad = middle
    return good


def _check_epsilon(epsilon: float, *, zero: bool = False) -> None:
    if not (0 <= epsilon <= _LARGEST_EPSILON) or (epsilon == 0 and not zero):
        allowed = "a number from 0 to 1e9" if zero else "a number above 0, at most 1e9"
        raise InputError(f"epsilon is {epsilon!r}", allowed, "give for example epsilon=1")


def check_rho(rho: float) -> None:
    """Refuse a loss outside 0 to 1e12."""
    if not 0 <= rho <= _LARGEST_RHO:
        raise InputError(
            f"rho is {rho!r}", "a number from 0 to 1e12", "use wider noise, or Laplace noise"
        )


def check_delta(delta: float) -> None:
    """Refuse a delta outside 1e-300 to below 1."""
    if not LEAST_DELTA <= delta < 1:
        raise InputError(
            f"delta is {delta!r}",
            "a number from 1e-300 to below 1",
            "give for example delta=1e-9, or use Laplace noise",
        )
