"""How far one user can move a variance, and how far dropping records can, over the squared width.

Both are V(k, n): what changing, or leaving out, k of n values does to Var = sum (x - f)^2 / n.
Source: docs/theory/cells.md#variance.
"""

import math

import numpy as np

from shoal.arrays import Floats, Ints

# Six roundings of a double stay below this relative margin.
_OUTWARD = 1 + 2.0**-50
# E|X^2 - 2| of a Laplace variable with scale 1.
SQUARE_NOISE = 4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2))
# Means of users are kept with 30 bits or more: what that may add to a sensitivity.
_ROUNDED = 1 + 2.0**-20


def sensitivity(counts: Ints, totals: Ints) -> Floats:
    """Sensitivity of a variance to k of its n values: V(k, n) over U^2, rounded upwards.

    j (n - j) / n^2 with j = min(k, floor(n/2)): the values split between the two bounds as evenly
    as k of them can make it. Exact (docs/theory/cells.md#variance; erratum 3).
    """
    moved = np.minimum(counts, totals // 2)
    split = moved / totals * ((totals - moved) / totals)
    return np.minimum(0.25, split * _OUTWARD)


def bias(dropped: Ints, totals: Ints) -> Floats:
    """Bias of the variance of the kept records: V(q, n) over U^2, rounded upwards, q those dropped.

    Exact over all data sets (docs/theory/cells.md#variance; erratum 1).
    """
    return sensitivity(dropped, totals)


def mass_sensitivity(part: Floats, kept: Floats) -> Floats:
    """Sensitivity, over U^2/4, of a variance in which a user's values have mass w of W <= 1.

    Rounded upwards. The missing mass 1 - W lies in the middle of the bounds; a user moves sum w s2
    - (sum w s1)^2 by at most w (1 - 2w + W)^2/(4 (1 - w)) if W >= 2w, else w/4 + (W - w)^2/(4 (1 -
    w)), or W/4 if it is alone (docs/theory/cells.md#variance).
    """
    rest = np.maximum(1 - part, 2.0**-60)
    others = np.maximum(kept - part, 0.0)
    small = part * (1 - 2 * part + kept) ** 2 / rest
    large = part + np.minimum(others**2 / rest, others)
    return np.minimum(1.0, np.where(kept >= 2 * part, small, large) * _ROUNDED)


def mass_slope(part: Floats, kept: Floats) -> Floats:
    """What one more unit of weight moves a variance by, over U^2/4: `mass_sensitivity` over w.

    (1 - 2w + W)^2/(1 - w), or 1 + (W - w)^2/(w (1 - w)) if W < 2w: falls with w, grows with W, is
    at least 1, and rounded downwards.
    """
    rest = np.maximum(1 - part, 2.0**-60)
    others = np.maximum(kept - part, 0.0)
    small = (1 - 2 * part + kept) ** 2 / rest
    large = 1 + np.minimum(others**2 / rest, others) / np.maximum(part, 2.0**-60)
    return np.maximum(1.0, np.where(kept >= 2 * part, small, large) * (2 - _OUTWARD))


def mass_bias(missing: Floats, distance: Floats) -> Floats:
    """Bias, over U^2/4, of the variance of reweighted values, rounded upwards.

    At most 2 d (1 - d) where mass d is missing, or 1/2 from d = 1/2 on; where weights differ from
    the shares by a mass d, 4 d (1 - d), or 1 (docs/theory/cells.md#variance).
    """
    moved = np.minimum(distance, 0.5)
    whole = 4 * moved * (1 - moved)
    return np.asarray(np.minimum(1.0, np.where(missing > 0, whole / 2, whole) * _OUTWARD))


def joint_loss(mean_scale: Floats | float, square_scale: Floats | float) -> Floats:
    """Privacy loss of a user who has all records of a cell; a share v loses v times it.

    J = 1/b1 if b2 >= b1, else (1 + b2/b1)^2 / (4 b2), rounded upwards, with b1 over U and b2 over
    U^2 (docs/theory/cells.md#two-moments).
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    second = np.asarray(square_scale, dtype=np.float64)
    # At b2 = b1 both cases are 1/b1: with the ratio held at 1, the second case is the first.
    ratio = np.minimum(1.0, second / first)
    both = (1 + ratio) ** 2 / (4 * np.minimum(first, second))
    return np.asarray(both * _OUTWARD)


def joint_error(mean_scale: Floats | float, square_scale: Floats | float) -> Floats:
    """Bound on E|Var^ - Var| over U^2 of Var^ = S2^ - S1^^2 + 2 b1^2, over all data sets.

    E <= b2 + b1 + 4 (1 + sqrt 2) e^(-sqrt 2) b1^2
    (docs/theory/cells.md#two-moments).
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    return np.asarray(square_scale + first + SQUARE_NOISE * first**2)
