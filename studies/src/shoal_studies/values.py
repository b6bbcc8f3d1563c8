"""Distributions of values that the papers' experiments draw from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.cells.assumptions import Normal

# The largest speed of buses, km/h (papers 001 and 002).
WIDTH = 65.0
BOUNDS = (0.0, WIDTH)
# Mean and variance of the speeds of the ITMS cell (paper 002, section IV).
MEAN, VARIANCE = 20.66769, 115.135
# Our variant: the standard deviation between users, within the same variance.
BETWEEN = 6.0


@dataclass(frozen=True)
class Uniform:
    """Uniform values on [0, high).

    Example:
        >>> import numpy as np
        >>> who = np.zeros(1000, np.int64)
        >>> drawn = Uniform(65.0)(np.random.default_rng(0), who, who)
        >>> bool((drawn >= 0).all() and (drawn < 65).all())
        True
    """

    high: float

    def __call__(
        self,
        rng: np.random.Generator,
        user: NDArray[np.int64],
        cell: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """One value a record."""
        return self.high * rng.random(len(user))


@dataclass(frozen=True)
class Projected:
    """Normal values, drawn again until they lie in (0, high] (paper 001, section IV).

    Example:
        >>> import numpy as np
        >>> who = np.zeros(1000, np.int64)
        >>> drawn = Projected(32.5, 4000.0, 65.0)(np.random.default_rng(0), who, who)
        >>> bool((drawn > 0).all() and (drawn <= 65).all())
        True
    """

    mean: float
    variance: float
    high: float

    def __call__(
        self,
        rng: np.random.Generator,
        user: NDArray[np.int64],
        cell: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """One value a record."""
        deviation = math.sqrt(self.variance)
        values = rng.normal(self.mean, deviation, len(user))
        while (outside := (values <= 0) | (values > self.high)).any():
            values[outside] = rng.normal(self.mean, deviation, int(outside.sum()))
        return values


def speeds(*, differ: bool = False) -> Normal:
    """Normal values with the published mean and variance of the ITMS cell; clipped when read.

    Example:
        >>> round(speeds().deviation, 3), round(speeds(differ=True).between, 3)
        (10.73, 0.313)
    """
    return Normal(MEAN, math.sqrt(VARIANCE), BETWEEN**2 / VARIANCE if differ else 0.0)
