"""Mean and second moment of a cell together: privacy loss of both, error of the variance.

Values are centred and relative to the width: y = (x - lo)/U - 1/2 lies in [-1/2, 1/2].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# E|X^2 - 2| of a Laplace variable with scale 1.
SQUARE_NOISE = 4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2))
# Six roundings of a double stay below this relative margin.
_OUTWARD = 1 + 2.0**-50


def loss(
    mean_scale: NDArray[np.float64] | float, square_scale: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Privacy loss of a user who has all records of a cell; a share v loses v times it.

    J = 1/b1 if b2 >= b1 (the second moment costs nothing), else (1 + b2/b1)^2 / (4 b2): the
    largest |dx|/b1 + |dz|/b2 between two points of the convex hull of {(y, y^2)}, where one
    user's means of y and y^2 lie. Exact for independent Laplace noise of scales b1 and b2
    (docs/theory/variance.md#mean-and-second-moment-together, with h = 1/2).

    `mean_scale`: b1 over U, above 0, of any shape; noise on the mean of y; `square_scale`: b2 over
    U^2, above 0, same shape; noise on the mean of y^2; returns the loss J, rounded upwards, same
    shape.
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    second = np.asarray(square_scale, dtype=np.float64)
    # At b2 = b1 both cases are 1/b1: with the ratio held at 1, the second case is the first.
    ratio = np.minimum(1.0, second / first)
    both = (1 + ratio) ** 2 / (4 * np.minimum(first, second))
    return np.asarray(both * _OUTWARD)


def error_bound(
    mean_scale: NDArray[np.float64] | float, square_scale: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Bound on E|Var^ - Var| over U^2 of Var^ = S2^ - S1^^2 + 2 b1^2, over all data sets.

    E <= b2 + b1 + 4 (1 + sqrt 2) e^(-sqrt 2) b1^2: the noise of the second moment, the noise of
    the mean times twice a mean of at most 1/2, and the squared noise of the mean about its
    expectation (docs/theory/variance.md#mean-and-second-moment-together, with h = 1/2). Var^ is
    unbiased.

    `mean_scale`: b1 over U, of any shape; `square_scale`: b2 over U^2, same shape.
    """
    first = np.asarray(mean_scale, dtype=np.float64)
    return np.asarray(square_scale + first + SQUARE_NOISE * first**2)
