"""Noise that sums to zero, against enumeration of its discrete law."""

import math

import numpy as np
import pytest

from shoal.theory.sum_zero import mean_size, quantile, variance


def test_noise_of_two_bins_is_laplace() -> None:
    """Its mean size is 1 and its quantile ln 20."""
    assert mean_size(2, 1) == pytest.approx(1, rel=3e-3)
    assert quantile(2, 1, 0.95) == pytest.approx(math.log(20), rel=3e-3)
    assert variance(2, 1) == pytest.approx(2, rel=1e-2)


@pytest.mark.parametrize(("bins", "cut"), [(3, 1), (4, 2), (6, 3), (6, 1), (90, 1)])
def test_noise_at_an_edge_is_that_of_whole_numbers(bins: int, cut: int) -> None:
    """Sums of k Laplace numbers of twice a scale of 12 steps, by convolution of exact chances."""
    scale, reach = 12.0, 900
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(steps) / (2 * scale))
    one /= one.sum()

    def several(many: int) -> np.ndarray:
        chance = one
        for _ in range(many - 1):
            chance = np.convolve(chance, one)[reach : 3 * reach + 1]
        return chance

    chance = several(cut) * several(bins - cut)[::-1]
    chance /= chance.sum()
    size = np.abs(steps) / scale
    assert mean_size(bins, cut) == pytest.approx(float(chance @ size), rel=0.01)
    assert variance(bins, cut) == pytest.approx(float(chance @ size**2), rel=0.01)
    beyond = chance[size > quantile(bins, cut, 0.95)].sum()
    # A whole step holds about a hundredth of the draws there.
    assert beyond == pytest.approx(0.05, abs=0.004)
