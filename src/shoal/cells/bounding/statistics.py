"""What a statistic of a cell costs: sensitivity and worst-case bias in closed form.

A third statistic is one `Statistic` more: no other module knows which there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.theory import sensitivity, variance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Statistic:
    """A number of a cell, of which kept records give an estimate; both answers over its unit.

    Attributes:
        name: What people call it.
        power: The unit is U to this power: 1 for the mean, 2 for the variance.
        sensitivity: Most that one user moves it, of (heaviest kept count, kept records) per cell.
        bias: Most that leaving records out moves it, of (dropped, all records) per cell.

    Both functions take and give arrays of one shape, and round upwards.

    Example:
        >>> squares = Statistic("mean square", 2, MEAN.sensitivity, MEAN.bias)
        >>> squares.sensitivity(np.array([3]), np.array([4])).round(6).tolist()
        [0.75]
    """

    name: str
    power: int
    sensitivity: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
    bias: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


def _mean_bias(dropped: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    return sensitivity.kept_mean(totals - dropped, totals)


MEAN = Statistic("mean", 1, sensitivity.mean, _mean_bias)
# Theorem IV.2 of paper 000 with its two cases the right way round (erratum 1).
VARIANCE = Statistic("variance", 2, variance.sensitivity, variance.bias)


def split(
    statistics: Sequence[Statistic], epsilon_per_cell: float | Sequence[float]
) -> tuple[float, ...]:
    """The privacy loss of each statistic of a cell.

    Args:
        statistics: At least one.
        epsilon_per_cell: One number, split evenly (paper 000, section III), or one a statistic.

    Returns:
        One number a statistic; they add up to the loss of a cell.

    Raises:
        InputError: No statistic, another number of shares, or one that is not above 0.

    Example:
        >>> split([MEAN, VARIANCE], 1.0), split([MEAN, VARIANCE], (0.25, 0.75))
        ((0.5, 0.5), (0.25, 0.75))
    """
    if isinstance(epsilon_per_cell, int | float):
        shares = (epsilon_per_cell / max(1, len(statistics)),) * len(statistics)
    else:
        shares = tuple(float(share) for share in epsilon_per_cell)
    sound = all(0 < share < math.inf for share in shares)
    if not statistics or len(shares) != len(statistics) or not sound:
        raise InputError(
            f"epsilon_per_cell is {epsilon_per_cell!r} for {len(statistics)} statistics",
            "a number above 0, or one above 0 a statistic, and at least one statistic",
            "give for example epsilon_per_cell=1",
        )
    return shares


def cell_errors(
    statistics: Sequence[Statistic],
    epsilon_per_cell: float | Sequence[float],
    heaviest: NDArray[np.int64],
    kept: NDArray[np.int64],
    totals: NDArray[np.int64],
    *,
    width: float = 1.0,
) -> NDArray[np.float64]:
    """Worst-case error of each cell: sum over its statistics of bias and expected noise.

    E_g = sum_s U^p_s (bias_s(n - K, n) + sensitivity_s(m*, K) / epsilon_s), with Laplace noise of
    the scale that the heaviest kept user needs (docs/theory/clip-user.md#the-algorithm).

    Args:
        statistics: What is released of every cell.
        epsilon_per_cell: Privacy loss of a cell, or of each of its statistics.
        heaviest: m*, the largest kept count of each cell, any shape.
        kept: K, records kept, same shape; at least 1.
        totals: n, records there are, same shape.
        width: U; 1 gives errors relative to it, if the statistics are of one unit.

    Returns:
        Errors, same shape, in units of the values (mean) plus their squares (variance).

    Raises:
        InputError: As `split`.

    Example:
        >>> cell_errors([MEAN], 1.0, np.array([2]), np.array([4]), np.array([8])).round(6).tolist()
        [1.0]
    """
    error = np.zeros(kept.shape)
    for statistic, share in zip(statistics, split(statistics, epsilon_per_cell), strict=True):
        biased = statistic.bias(totals - kept, totals)
        error += width**statistic.power * (biased + statistic.sensitivity(heaviest, kept) / share)
    return error
