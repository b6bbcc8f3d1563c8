"""How far one user, or leaving records out, can move a mean, relative to the bounds' width.

Source: docs/theory/privacy.md#sensitivity; docs/theory/privacy.md#lattice-noise.
"""

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.errors import InputError

# Two roundings of a double stay below this relative margin.
OUTWARD = 1 + 2.0**-51
# Whole numbers up to here are exact as doubles, and many of them fit a 64-bit sum.
MOST_STEPS = 2**53
# Means and mean squares of users are kept with 30 bits or more: what rounding them may add to the
# loss of both together (docs/theory/cells.md#variance).
ROUNDED_MEANS = 1 + 2.0**-27


def mean(counts: Ints, totals: Ints) -> Floats:
    """Sensitivity of a mean to the values of one user: m/n of the width, rounded upwards."""
    return np.minimum(1.0, counts / totals * OUTWARD)


def whole_steps(sensitivity: Floats, noise_scale: Floats, lattice_bits: int) -> Ints:
    """Most lattice steps one user moves a number rounded to its lattice: ceil(D 2^j / b).

    Rounding to the nearest step commutes with whole steps, so two numbers d steps apart are at most
    ceil(d) apart once rounded.
    """
    # Outward rounding: an exact whole number becomes the next one, which only costs us.
    whole = np.ceil(sensitivity / noise_scale * 2.0**lattice_bits * OUTWARD)
    if not (whole <= MOST_STEPS).all():
        raise InputError("the noise is too small for exact accounting", "ask for a smaller epsilon")
    return whole.astype(np.int64)
