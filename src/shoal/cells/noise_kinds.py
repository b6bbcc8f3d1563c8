"""Which is smaller before any plan is made: Gaussian noise of full shares, or weighed users."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal.theory.gaussian import cells_at_least, rho_of

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from shoal.data.occupancy import Counts

    Floats = NDArray[np.float64]

# Loads to which heavier users are held, between the lightest and the heaviest one.
_GRID = 24
# Weights of a linear program have smaller errors still than those compared here.
_CLEARLY = 0.95
# What a cell without any data errs.
_GUESS = 0.5


def gaussian_is_smaller(
    occupancy: Counts, epsilon: Fraction, delta: Fraction, numbers: int
) -> bool:
    """Whether a delta buys a smaller worst-case error than weights of users, by counts alone.

    It never does where no user is in k > epsilon^2/(pi rho) numbers (docs/theory/gaussian.md).
    Beyond that two plans are compared that anybody can write down, and whose noise is in
    proportion to the heaviest or to the mean share of each cell: Gaussian noise of full shares,
    and Laplace noise of users each held to one load. A clearly smaller mean logarithm decides.

    Args:
        occupancy: The counts.
        epsilon: Total loss.
        delta: The delta of (epsilon, delta)-DP, above 0.
        numbers: How many are released of every cell.

    Example:
        >>> import shoal
        >>> from fractions import Fraction
        >>> one = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [1, 9] * 45)
        >>> gaussian_is_smaller(one, Fraction(1), Fraction(1, 10**9), 1)
        False
    """
    loss, chance = float(epsilon), float(delta)
    if int(occupancy.cells_per_user.max()) * numbers <= cells_at_least(loss, chance):
        return False
    share = occupancy.count / occupancy.totals[occupancy.cell]
    heaviest = np.zeros(occupancy.n_cells)
    np.maximum.at(heaviest, occupancy.cell, share)
    units = heaviest, 1 / occupancy.users_per_cell
    normal = math.sqrt(numbers / (math.pi * rho_of(loss, chance)))
    by_noise = min(_log(unit * normal * _longest(occupancy, share, unit)) for unit in units)
    by_weights = min(_weighed(occupancy, share, unit, loss / numbers) for unit in units)
    return by_noise < by_weights + math.log(_CLEARLY)


def _longest(occupancy: Counts, share: Floats, unit: Floats) -> float:
    """The largest l2 norm of a user's shares over the units of their cells."""
    squares = np.bincount(occupancy.user, (share / unit[occupancy.cell]) ** 2)
    return math.sqrt(float(squares.max()))


def _weighed(occupancy: Counts, share: Floats, unit: Floats, epsilon: float) -> float:
    """The mean logarithm of the errors, with the best of a grid of loads."""
    user, cell = occupancy.user, occupancy.cell
    load = np.bincount(user, share / unit[cell])
    held = np.geomspace(load[load > 0].min(), load.max(), _GRID)
    return min(
        _log(np.bincount(cell, share * np.maximum(0, 1 - most / load[user])) / 2
             + unit * most / epsilon)
        for most in held
    )  # fmt: skip


def _log(error: Floats) -> float:
    return float(np.log(np.minimum(error, _GUESS)).mean())
