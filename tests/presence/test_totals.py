"""Totals of cells: intervals cover at their level, and what is told of few cells or none."""

import numpy as np
import pytest

from shoal.presence.look import Cap
from shoal.presence.totals import Total
from shoal.privacy.noise import Simulated


def test_intervals_of_capped_totals_cover_by_laplace_noise() -> None:
    """Of 20,000 cells; without a cap that moves anything the level is exact."""
    rng = np.random.default_rng(0)
    noisy = 50 + rng.laplace(0, 3, 20_000)
    found = Total(noisy, 3.0, Cap(4.0), unit=10.0)
    low, high = found.interval(0.9)
    inside = (low <= 50 * 40) & (high >= 50 * 40)
    assert inside.mean() == pytest.approx(0.9, abs=0.008)
    assert found.noise_scale == pytest.approx(120)


def test_intervals_of_users_without_a_cap_cover_by_noise_of_the_hull() -> None:
    """Of 400 releases of 12 cells, by the exact sampler."""
    inside = []
    for seed in range(400):
        steps = Simulated(seed).add_hull([100 << 8] * 12, 8, 1)
        found = Total(np.array(steps) / 2**8, 1.0, Cap(12.0, hull=True))
        low, high = found.interval(0.8)
        inside.append((low <= 100) & (high >= 100))
    assert np.mean(inside) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("cap", "status"),
    [
        (Cap(1.0), "reliable"),
        (Cap(1.0, moved=0.3), "few users dominate"),
        (Cap(1.0, known=False), "few users"),
    ],
)
def test_status_is_that_of_the_cap(cap: Cap, status: str) -> None:
    """Without a known cap there is no value, and no upper end."""
    found = Total(np.array([900.0, 30.0, 400.0]), 5.0, cap)
    assert found.status == status
    low, high = found.interval(0.95)
    assert np.isnan(found.value).all() == np.isnan(high).all() == (status == "few users")
    assert (low >= 0).all()


def test_noisy_totals_are_drawn_together_and_a_single_one_is_not() -> None:
    """Cells that differ by less than noise are better told by their mean; one cell is by 0."""
    rng = np.random.default_rng(1)
    many = Total(100 + rng.laplace(0, 30, 50), 30.0, Cap(1.0))
    assert many.status == "too noisy"
    assert np.abs(many.value - 100).mean() < np.abs(many.number - 100).mean() / 2
    assert Total(np.array([900.0]), 30.0, Cap(1.0)).status == "reliable"
    one = Total(np.array([9.0]), 30.0, Cap(1.0))
    assert one.status == "too noisy"
    assert one.value.tolist() == [9.0]
