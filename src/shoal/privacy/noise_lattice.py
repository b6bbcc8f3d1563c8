"""Turns the noise scales of a method into noise on a lattice, whose exact loss is allowed."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS

# Rounding to steps costs at most 2^-20 of the whole loss, for all numbers together.
_OVERHEAD_BITS = 20
# The significant bits of noise scales.
_SCALE_BITS = 24


def lattice_bits(most_numbers: int, epsilon: float, delta: float = 0.0) -> int:
    """Returns the j at which noise of 2^j steps makes rounding cost a millionth of the loss.

    That is a millionth of epsilon, and of delta if there is one.
    """
    bits = max(_OVERHEAD_BITS, _OVERHEAD_BITS + math.ceil(math.log2(most_numbers / epsilon)))
    if not delta:
        return bits
    # On a lattice delta grows by about (numbers + rho)/(12 4^j), and rho is below epsilon.
    wide = math.log2((most_numbers + epsilon) / (12 * delta))
    return max(bits, math.ceil((wide + _OVERHEAD_BITS) / 2))


def round_scale(noise_scale: Floats) -> Floats:
    """Returns noise scales with 24 significant bits, rounded upwards: equal on every machine."""
    mantissa, exponent = np.frexp(noise_scale)
    return np.ldexp(np.ceil(mantissa * 2.0**_SCALE_BITS) / 2.0**_SCALE_BITS, exponent)


def fit(
    noise_scale: Floats,
    bits: int,
    allowed: Fraction,
    loss: Callable[[Floats], Fraction],
    *,
    power: int = 1,
) -> Floats:
    """Returns the method's scales, widened just so much that the exact loss is allowed.

    Scales are divided by the range of each number, and the loss is proportional to 1 divided by
    their `power`. InputError if the noise would not fit the lattice.
    """
    if bits >= MOST_BITS:
        raise _unfit(bits)
    scale = round_scale(noise_scale)
    # Rounding to lattice steps adds to the loss: so one round may not be enough.
    for _ in range(60):
        spent = loss(scale)
        if spent <= allowed:
            break
        wider = float(spent / allowed) ** (1 / power)
        scale = round_scale(scale * wider * (1 + 2.0**-_SCALE_BITS))
    else:
        raise _unfit(bits)
    if 2.0**bits / float(scale.min()) > LARGEST_STEPS:
        raise _unfit(bits, "a smaller epsilon, or fewer cells")
    return scale


def _unfit(bits: int, cure: str = "a larger epsilon, or fewer cells") -> InputError:
    return InputError(f"the noise does not fit a lattice of {bits} bits", f"ask for {cure}")
