"""Noise of bins that sums to zero (docs/theory/cells.md#bins).

A vector z of K bins is as likely as exp(-|z|_1/2) in units of the noise. Cut after k bins, the sum
of the first k is that of k Laplace numbers of scale 2, given that the sum of K - k others is its
opposite. So it has the density f_k(s) f_(K-k)(s), where f_k(s) is in proportion to
s^(k - 1/2) K_(k - 1/2)(s/2), with the Bessel function K.
"""

from functools import lru_cache

import numpy as np

from shoal.arrays import Floats

# The grid of a density: so many points up to this multiple of the root of the number of bins.
_POINTS = 20_000
_REACH = 30.0


@lru_cache(maxsize=64)
def _chances(bins: int, cut: int) -> tuple[Floats, Floats]:
    """Returns noise sizes and the chances that |noise| after the first `cut` bins is at most so."""
    size = np.linspace(0, _REACH * np.sqrt(bins), _POINTS + 1)[1:]
    log_density = _log_density(cut, size) + _log_density(bins - cut, size)
    density = np.exp(log_density - log_density.max())
    # Half of each step lies above its middle.
    below = np.cumsum(density) - density / 2
    return size, below / density.sum()


def _log_density(many: int, size: Floats) -> Floats:
    """Returns the log of f_many at each size, but for a constant.

    Ratios K_(order + 1)/K_order follow from each other. They are of moderate size, where the Bessel
    functions of many bins would not fit floating-point numbers.
    """
    argument = size / 2
    log_bessel = -argument - np.log(argument) / 2
    ratio = np.ones(len(size))
    for order in np.arange(0.5, many - 0.5):
        ratio = 1 / ratio + 2 * order / argument
        log_bessel += np.log(ratio)
    return np.asarray((many - 0.5) * np.log(size) + log_bessel)


def mean_size(bins: int, cut: int) -> float:
    """Returns the mean of |noise| of the first `cut` of the bins, in units of the noise."""
    size, chance = _chances(bins, cut)
    return float(np.diff(chance, prepend=0.0) @ size)


def quantile(bins: int, cut: int, confidence: float) -> float:
    """Returns what |noise| of the first `cut` of the bins is below, with this probability."""
    size, chance = _chances(bins, cut)
    return float(np.interp(confidence, chance, size))


def variance(bins: int, cut: int) -> float:
    """Returns the variance of the noise of the first `cut` of the bins, in squared units."""
    size, chance = _chances(bins, cut)
    return float(np.diff(chance, prepend=0.0) @ size**2)
