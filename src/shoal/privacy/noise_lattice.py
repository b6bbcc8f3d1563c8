"""From a method's answer to noise that can be drawn: the lattice, and the exact loss on it."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS

# One step of rounding costs each number 2^-j; together at most this share of the whole loss.
_OVERHEAD_BITS = 20
_SCALE_BITS = 24


def lattice_bits(most_numbers: int, epsilon: float, delta: float = 0.0) -> int:
    """j: at a scale of 2^j steps rounding costs a millionth of epsilon, and of delta."""
    bits = max(_OVERHEAD_BITS, _OVERHEAD_BITS + math.ceil(math.log2(most_numbers / epsilon)))
    if not delta:
        return bits
    # On a lattice delta grows by about (numbers + rho)/(12 4^j), and rho is below epsilon.
    wide = math.log2((most_numbers + epsilon) / (12 * delta))
    return max(bits, math.ceil((wide + _OVERHEAD_BITS) / 2))


def round_scale(noise_scale: Floats) -> Floats:
    """Noise scales with 24 significant bits, rounded upwards: the same on every machine."""
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
    """The method's scales, widened by the least that brings the exact loss under what is allowed.

    Scales are b over the range of each number; the loss falls with their `power`. InputError if the
    noise would not fit the lattice.
    """
    if bits >= MOST_BITS:
        raise _unfit(bits)
    scale = round_scale(noise_scale)
    for _ in range(60):
        spent = loss(scale)
        if spent <= allowed:
            break
        scale = round_scale(scale * float(spent / allowed) ** (1 / power) * (1 + 2.0**-_SCALE_BITS))
    else:
        raise _unfit(bits)
    if 2.0**bits / float(scale.min()) > LARGEST_STEPS:
        raise _unfit(bits, "a smaller epsilon, or fewer cells")
    return scale


def _unfit(bits: int, cure: str = "a larger epsilon, or fewer cells") -> InputError:
    return InputError(f"the noise does not fit a lattice of {bits} bits", f"ask for {cure}")
