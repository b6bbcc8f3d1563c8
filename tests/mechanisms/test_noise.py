"""The noise: right scale, wrong scale rejected, fresh in every process, refused when too large."""

from __future__ import annotations

import math
import multiprocessing
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.mechanisms.noise import LARGEST_STEPS, OperatingSystem, Simulated
from shoal.theory.laplace import mean_absolute

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from shoal.mechanisms.noise import Noise

BITS = 12
SIZE = 5_000_000 if os.environ.get("SHOAL_PROVE") else 200_000
# Two-sided normal quantile of a false alarm rate of 1e-9; |Z| has standard deviation near t.
SIGMAS = 6.11


def scale_fits(noise: list[int], bits: int) -> bool:
    """Whether the mean absolute noise is that of scale 2^bits; false alarms below 1e-9."""
    absolute = np.abs(np.array(noise, dtype=np.float64))
    slack = SIGMAS * 2.0**bits / math.sqrt(len(noise))
    return bool(abs(absolute.mean() - mean_absolute(2.0**bits)) <= slack)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(7)], ids=["system", "simulated"])
def test_noise_has_its_scale_and_a_wrong_scale_is_rejected(source: Noise) -> None:
    """Accepts the truth, rejects 3% less and 3% more; each with a false alarm rate of 1e-9."""
    noise = source.add_laplace([0] * SIZE, BITS)
    assert scale_fits(noise, BITS)
    assert not scale_fits([round(z * 0.97) for z in noise], BITS)
    assert not scale_fits([round(z * 1.03) for z in noise], BITS)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(8)], ids=["system", "simulated"])
def test_noise_has_the_discrete_laplace_shape(source: Noise) -> None:
    """At scale 2 every probability within 6.11 standard errors; a shifted law is rejected."""
    noise = np.array(source.add_laplace([0] * SIZE, 1))
    q = math.exp(-0.5)
    for z in range(-4, 5):
        chance = (1 - q) / (1 + q) * q ** abs(z)
        slack = SIGMAS * math.sqrt(chance * (1 - chance) / SIZE)
        assert abs(float((noise == z).mean()) - chance) <= slack
        if z:
            assert abs(float((noise == z).mean()) - chance / q) > slack


def test_noise_is_added_to_the_numbers_in_their_order() -> None:
    """Large vectors are cut into chunks; each number keeps its place."""
    steps = [number * 2**40 for number in range(50_000)]
    noisy = OperatingSystem().add_laplace(steps, 4)
    assert max(abs(x - y) for x, y in zip(noisy, steps, strict=True)) < 2**12


def _draw(send: Connection) -> None:
    send.send(OperatingSystem().add_laplace([0] * 50, 40))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_never_repeat_noise() -> None:
    """Children forked after a draw in the parent draw numbers of their own."""
    drawn = [tuple(OperatingSystem().add_laplace([0] * 50, 40))]
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=_draw, args=(send,))
        child.start()
        assert receive.poll(60)
        drawn.append(tuple(receive.recv()))
        child.join()
    drawn.append(tuple(OperatingSystem().add_laplace([0] * 50, 40)))
    assert len({number for draw in drawn for number in draw}) == 50 * len(drawn)


def test_simulated_noise_is_repeatable_and_marked() -> None:
    """The same seed gives the same numbers, and says that it is a simulation."""
    assert Simulated(3).add_laplace([5], 20) == Simulated(3).add_laplace([5], 20)
    assert Simulated(3).simulated
    assert not OperatingSystem().simulated


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(5)], ids=["system", "simulated"])
def test_numbers_outside_the_lattice_are_clamped_not_refused(source: Noise) -> None:
    """G-REPLAY: an exception would tell something about a private number."""
    low, high = source.add_laplace([-(2**70), 2**70], 4)
    assert abs(low) < 2**12
    assert abs(high - LARGEST_STEPS) < 2**12
