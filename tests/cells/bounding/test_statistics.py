"""What statistics cost, and how a cell's loss is best shared among them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

from shoal.cells.bounding.statistics import (
    MEAN,
    VARIANCE,
    Statistic,
    cell_errors,
    split,
)
from shoal.errors import InputError

pytestmark = pytest.mark.property

WIDTH = 65.0
amounts = st.floats(1e-6, 1e6)


def spread(values: tuple[float, ...]) -> float:
    """Population variance."""
    return sum(x * x for x in values) / len(values) - (sum(values) / len(values)) ** 2


@pytest.mark.parametrize("n", range(2, 7))
def test_erratum_1_bias_of_the_variance_by_enumeration(n: int) -> None:
    """Erratum 1: over all data sets on a 5-point grid, every number q of dropped records."""
    grid = [step / 4 for step in range(5)]
    data = list(itertools.product(grid, repeat=n))
    for dropped in range(1, n):
        worst = max(abs(spread(values) - spread(values[dropped:])) for values in data)
        stated = VARIANCE.bias(np.array([dropped]), np.array([n]))[0]
        assert worst == pytest.approx(stated, abs=1e-12)


@pytest.mark.parametrize("dropped", range(1, 5))
def test_bias_of_the_mean_by_enumeration(dropped: int) -> None:
    """Both bounds suffice: the extremes of a linear function."""
    data = list(itertools.product([0.0, 1.0], repeat=5))
    worst = max(abs(np.mean(values) - np.mean(values[dropped:])) for values in data)
    stated = MEAN.bias(np.array([dropped]), np.array([5]))[0]
    assert worst == pytest.approx(stated, abs=1e-12)


def test_error_is_bias_plus_noise_in_units() -> None:
    """K = 6 of n = 8 records, the heaviest user has 2: by hand, with U = 65."""
    arrays = np.array([2]), np.array([6]), np.array([8])
    found = cell_errors([MEAN, VARIANCE], (0.5, 0.25), *arrays, width=WIDTH)[0]
    mean = WIDTH * (2 / 8 + 2 / 6 / 0.5)
    variance = WIDTH**2 * (2 * 6 / 64 + 2 * 4 / 36 / 0.25)
    assert found == pytest.approx(mean + variance)


def test_a_third_statistic_needs_two_functions() -> None:
    """The mean of squares: what the mean costs, in the unit of squares."""
    squares = Statistic("mean square", 2, MEAN.sensitivity, MEAN.bias)
    arrays = np.array([2]), np.array([6]), np.array([8])
    alone = cell_errors([MEAN], 1.0, *arrays)[0]
    assert cell_errors([squares], 1.0, *arrays, width=3.0)[0] == pytest.approx(9 * alone)


def test_one_number_is_split_evenly() -> None:
    """The statistics of a cell share its loss; nobody gets all of it."""
    assert split([MEAN, VARIANCE, MEAN], 0.75) == (0.25, 0.25, 0.25)
    arrays = np.array([2]), np.array([6]), np.array([8])
    together = cell_errors([MEAN, VARIANCE], 1.0, *arrays)
    assert together.tolist() == cell_errors([MEAN, VARIANCE], (0.5, 0.5), *arrays).tolist()


@pytest.mark.parametrize("shares", [0, -1.0, float("nan"), float("inf"), (1.0,), (1.0, 0.0)])
def test_shares_that_do_not_fit(shares: float | tuple[float, ...]) -> None:
    """One number above 0, or one a statistic."""
    with pytest.raises(InputError, match="epsilon_per_cell"):
        split([MEAN, VARIANCE], shares)


def test_no_statistic() -> None:
    """Nothing to release is refused."""
    with pytest.raises(InputError):
        split([], 1.0)
