"""Rounds what a cell tells of its users, upwards: intervals widen, and no user's count follows.

In full, sums over the users of a small cell would have one solution. They are rounded by the bits
of floating-point numbers, in the same way on every machine.
"""

import numpy as np

from shoal.arrays import Bools, Floats

# Of cells with fewer users than this, sums of users are hardly told.
FEW_USERS = 10
# What another machine may compute otherwise decides no rounding.
_SLACK = 1 - 1e-9
_NOTHING = 1e-12
# Cells that are alike differ by less.
_HARDLY = 0.05
_BITS = 5  # of the numbers of cells with many users


def upwards(numbers: Floats, few: Bools) -> Floats:
    """Rounds up to five bits, and in cells of few users to a power of four."""
    mantissa, exponent = np.frexp(np.where(numbers > _NOTHING, numbers, 1.0) * _SLACK)
    steps = 2.0**_BITS
    many = np.ldexp(np.ceil(mantissa * steps) / steps, exponent)
    power = np.ldexp(1.0, exponent + exponent % 2)
    return np.where(numbers > _NOTHING, np.where(few, power, many), 0.0)


def parts_upwards(parts: Floats, few: Bools) -> Floats:
    """Rounds parts of a weight up to multiples of 1/64, and in cells of few users of 1/8."""
    step = np.where(few, 1 / 8, 1 / 64)
    return np.where(parts > _NOTHING, np.ceil(parts / step * _SLACK) * step, 0.0)


def halves_upwards(numbers: Floats) -> Floats:
    """Rounds up to multiples of one half, but for what is at most a twentieth above one."""
    return np.asarray(np.ceil(2 * (numbers - _HARDLY)) / 2)
