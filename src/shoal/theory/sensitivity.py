"""Computes how far one user can move a mean, as a part of the width of the bounds.

Source: docs/theory/privacy.md#sensitivity; docs/theory/privacy.md#lattice-noise.
"""

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.errors import InputError

# A factor above two roundings of a double.
OUTWARD = 1 + 2.0**-51
# The largest number of steps: doubles hold whole numbers up to it exactly, and sums of many of them
# fit 64 bits.
MOST_STEPS = 2**53
# Means and mean squares of users are rounded to 30 bits or more. This factor covers what that adds
# to the loss of both together (docs/theory/cells.md#variance).
ROUNDED_MEANS = 1 + 2.0**-27


def mean(counts: Ints, totals: Ints) -> Floats:
    """Returns how far one user moves a mean, as a part of the width: m/n, rounded upwards."""
    return np.minimum(1.0, counts / totals * OUTWARD)


def whole_steps(sensitivity: Floats, noise_scale: Floats, lattice_bits: int) -> Ints:
    """Returns the most lattice steps by which one user moves a number rounded to its lattice.

    It is ceil(sensitivity 2^lattice_bits / noise_scale): rounding to the nearest step commutes with
    moves by whole steps, so two numbers d steps apart are at most ceil(d) apart once rounded.
    """
    # The margin turns an exact whole number into the next one, which overstates the loss.
    whole = np.ceil(sensitivity / noise_scale * 2.0**lattice_bits * OUTWARD)
    if not (whole <= MOST_STEPS).all():
        raise InputError("the noise is too small for exact accounting", "ask for a smaller epsilon")
    return whole.astype(np.int64)
