"""The least worst-case error of one cell over all ways of bounding its users, over the width."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError


def threshold(counts: NDArray[np.int64], epsilon: float, dimension: int = 1) -> int:
    """T over U: no user moves the sum of the cell by more than T records' worth.

    T is the ceil(2d/epsilon)-th largest count, 0 if there are fewer users: the largest one for
    epsilon >= 2d, 0 for epsilon < 2d/L (docs/theory/worst-case.md; errata 5 and 6).

    `counts`: m, records of each user, shape (users,); `dimension`: d, numbers in one record.
    """
    if not epsilon > 0:
        raise InputError(
            f"epsilon is {epsilon!r}", "a number above 0", "give for example epsilon=1"
        )
    if dimension < 1:
        raise InputError(
            f"a dimension of {dimension!r}", "whole numbers from 1", "give dimension=1 for a number"
        )
    # One unit of the last place downwards keeps ceil(2d/epsilon) from rising above the exact one.
    wanted = 2 * dimension / epsilon * (1 - 2.0**-52)
    if wanted > len(counts):
        return 0
    place = len(counts) - max(1, math.ceil(wanted))
    return int(np.partition(counts, place)[place])
