"""Rounds numbers that tell of a cell's users upwards: intervals widen, no user's count follows.

In full, sums over the users of a small cell would have one solution. They are rounded by the bits
of floating-point numbers, in the same way on every machine.
"""

import numpy as np

from shoal.arrays import Bools, Floats

# Numbers are multiplied by this before they are rounded up: so their last places, which differ
# between machines, decide no rounding.
_SLACK = 1 - 1e-9
# Numbers up to this, which other machines may compute as 0, count as 0.
_NOTHING = 1e-12
# A number that exceeds a multiple of one half by no more than this is rounded down to it: cells
# that are alike differ by less.
_HARDLY = 0.05
# Bits to which numbers of cells with many users are rounded.
_BITS = 5
# Bits to which the bounds on errors of such cells are rounded.
_BITS_OF_BOUNDS = 8


def upwards(numbers: Floats, few: Bools) -> Floats:
    """Rounds up to five bits, and in cells of few users to a power of four."""
    return _rounded(numbers, few, _BITS, 2)


def bounds_upwards(bounds: Floats, few: Bools) -> Floats:
    """Rounds certified bounds up to eight bits, and in cells of few users to a power of two."""
    return _rounded(bounds, few, _BITS_OF_BOUNDS, 1)


def _rounded(numbers: Floats, few: Bools, bits: int, powers: int) -> Floats:
    """Rounds up to `bits` bits, or to a power of two whose exponent is a multiple of `powers`.

    Numbers of cells of few users are rounded to powers; `powers` is 1 or 2.
    """
    # A number is its mantissa, from 1/2 to 1, times two to its exponent.
    mantissa, exponent = np.frexp(np.where(numbers > _NOTHING, numbers, 1.0) * _SLACK)
    steps = 2.0**bits
    to_bits = np.ldexp(np.ceil(mantissa * steps) / steps, exponent)
    to_power = np.ldexp(1.0, exponent + exponent % powers)
    rounded = np.where(few, to_power, to_bits)
    return np.where(numbers > _NOTHING, rounded, 0.0)


def parts_upwards(parts: Floats, few: Bools) -> Floats:
    """Rounds parts of a weight up to multiples of 1/64, and in cells of few users of 1/8."""
    step = np.where(few, 1 / 8, 1 / 64)
    return np.where(parts > _NOTHING, np.ceil(parts / step * _SLACK) * step, 0.0)


def halves_upwards(numbers: Floats) -> Floats:
    """Rounds up to multiples of one half, but down where a number exceeds one by 0.05 at most."""
    return np.asarray(np.ceil(2 * (numbers - _HARDLY)) / 2)
