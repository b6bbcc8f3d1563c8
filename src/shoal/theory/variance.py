"""Bounds how far one user, or leaving records out, can move a variance.

Results are parts of the squared width, or of a quarter of it. Both moves of a variance
sum (x - f)^2 / n have the same bound V(k, n): changing, or leaving out, k of its n values.
Source: docs/theory/cells.md#variance.
"""

import math

import numpy as np

from shoal.arrays import Floats, Ints

# A factor above six roundings of a double.
_OUTWARD = 1 + 2.0**-50
# E|X^2 - 2| for a Laplace variable X with scale 1.
SQUARE_NOISE = 4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2))
# Means of users are rounded to 30 bits or more. This factor covers what that adds to a sensitivity.
_ROUNDED = 1 + 2.0**-20


def sensitivity(counts: Ints, totals: Ints) -> Floats:
    """Returns how far `counts` of `totals` values move a variance, as a part of the squared width.

    V(k, n) = j (n - j) / n^2 with j = min(k, floor(n/2)): the k values split all n between the two
    bounds as evenly as they can. It is exact, but rounded upwards (docs/theory/cells.md#variance;
    erratum 3).
    """
    moved = np.minimum(counts, totals // 2)
    split = moved / totals * ((totals - moved) / totals)
    return np.minimum(0.25, split * _OUTWARD)


def bias(dropped: Ints, totals: Ints) -> Floats:
    """Returns the largest bias of a variance without the dropped records: V(dropped, totals).

    It is a part of the squared width, exact over all data sets, and rounded upwards
    (docs/theory/cells.md#variance; erratum 1).
    """
    return sensitivity(dropped, totals)


def mass_sensitivity(part: Floats, kept: Floats) -> Floats:
    """Returns how far a user of mass `part` moves a variance of mass `kept`, in parts of U^2/4.

    The result is rounded upwards. Let w be `part` and W <= 1 be `kept`; the missing mass 1 - W lies
    in the middle of the bounds. A user moves sum w s2 - (sum w s1)^2 by at most
    w (1 - 2w + W)^2/(4 (1 - w)) if W >= 2w, else by w/4 + (W - w)^2/(4 (1 - w)), or by W/4 if it is
    alone (docs/theory/cells.md#variance).
    """
    rest = np.maximum(1 - part, 2.0**-60)
    others = np.maximum(kept - part, 0.0)
    small = part * (1 - 2 * part + kept) ** 2 / rest
    large = part + np.minimum(others**2 / rest, others)
    return np.minimum(1.0, np.where(kept >= 2 * part, small, large) * _ROUNDED)


def mass_slope(part: Floats, kept: Floats) -> Floats:
    """Returns `mass_sensitivity` divided by the user's mass, rounded downwards and at least 1.

    With w = `part` and W = `kept` it is (1 - 2w + W)^2/(1 - w), or 1 + (W - w)^2/(w (1 - w)) if
    W < 2w. It falls with w and grows with W.
    """
    rest = np.maximum(1 - part, 2.0**-60)
    others = np.maximum(kept - part, 0.0)
    small = (1 - 2 * part + kept) ** 2 / rest
    large = 1 + np.minimum(others**2 / rest, others) / np.maximum(part, 2.0**-60)
    return np.maximum(1.0, np.where(kept >= 2 * part, small, large) * (2 - _OUTWARD))


def mass_bias(missing: Floats, distance: Floats) -> Floats:
    """Returns the bias of the variance of reweighted values in parts of U^2/4, rounded upwards.

    Where a mass d is missing it is at most 2 d (1 - d), or 1/2 from d = 1/2 on. Where weights
    differ from the shares by a mass d it is at most 4 d (1 - d), or 1 from d = 1/2 on
    (docs/theory/cells.md#variance).
    """
    moved = np.minimum(distance, 0.5)
    whole = 4 * moved * (1 - moved)
    return np.asarray(np.minimum(1.0, np.where(missing > 0, whole / 2, whole) * _OUTWARD))


def joint_loss(mean_scale: Floats | float, square_scale: Floats | float) -> Floats:
    """Returns the loss of a user with all records of a cell; one with a share v loses v times that.

    With b1 = `mean_scale` as a part of the width and b2 = `square_scale` as a part of its square it
    is 1/b1 if b2 >= b1, else (1 + b2/b1)^2 / (4 b2), rounded upwards
    (docs/theory/cells.md#two-moments).
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    second = np.asarray(square_scale, dtype=np.float64)
    # At b2 = b1 both cases are 1/b1: with the ratio held at 1, the second case is the first.
    ratio = np.minimum(1.0, second / first)
    both = (1 + ratio) ** 2 / (4 * np.minimum(first, second))
    return np.asarray(both * _OUTWARD)


def joint_error(mean_scale: Floats | float, square_scale: Floats | float) -> Floats:
    """Returns a bound on the mean error of a variance from two noisy moments, in any data set.

    As a part of the squared width, the estimate S2^ - S1^^2 + 2 b1^2 has a mean absolute error of
    at most b2 + b1 + 4 (1 + sqrt 2) e^(-sqrt 2) b1^2 (docs/theory/cells.md#two-moments).
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    return np.asarray(square_scale + first + SQUARE_NOISE * first**2)
