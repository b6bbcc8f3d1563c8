"""The noise: right scale, wrong scale rejected, fresh in every process, refused when too large."""

import itertools
import math
import multiprocessing
import os
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.cells.estimates.intervals import SEEN
from shoal.privacy.noise import LARGEST_STEPS, Noise, OperatingSystem, Simulated
from shoal.theory.laplace import mean_absolute

BITS = 12
FULL = bool(os.environ.get("SHOAL_FULL"))
SIZE = 5_000_000 if FULL else 80_000
# Exact discrete Gaussian noise takes twice the time of discrete Laplace noise.
GAUSSIAN_SIZE = SIZE * 3 // 4
# A scale that is wrong by so much is rejected.
WRONG = 0.03 if FULL else 0.05
# Two-sided normal quantile of a false alarm rate of 1e-9; |Z| has standard deviation near t.
SIGMAS = 6.11


def scale_fits(noise: list[int], bits: int) -> bool:
    """Whether the mean absolute noise is that of scale 2^bits; false alarms below 1e-9."""
    absolute = np.abs(np.array(noise, dtype=np.float64))
    slack = SIGMAS * 2.0**bits / math.sqrt(len(noise))
    return bool(abs(absolute.mean() - mean_absolute(2.0**bits)) <= slack)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(7)], ids=["system", "simulated"])
def test_noise_has_its_scale_and_a_wrong_scale_is_rejected(source: Noise) -> None:
    """Accepts the truth, rejects less and more of it; each with a false alarm rate of 1e-9."""
    noise = source.add_laplace([0] * SIZE, BITS)
    assert scale_fits(noise, BITS)
    assert not scale_fits([round(z * (1 - WRONG)) for z in noise], BITS)
    assert not scale_fits([round(z * (1 + WRONG)) for z in noise], BITS)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(8)], ids=["system", "simulated"])
def test_noise_has_the_discrete_laplace_shape(source: Noise) -> None:
    """At scale 2 every probability within 6.11 standard errors; a shifted one is rejected."""
    size = SIZE // 4
    noise = np.array(source.add_laplace([0] * size, 1))
    q = math.exp(-0.5)
    for z in range(-4, 5):
        chance = (1 - q) / (1 + q) * q ** abs(z)
        slack = SIGMAS * math.sqrt(chance * (1 - chance) / size)
        assert abs(float((noise == z).mean()) - chance) <= slack
        if z:
            assert abs(float((noise == z).mean()) - chance / q) > slack


def gaussian_fits(noise: list[int], chances: NDArray[np.float64]) -> bool:
    """Pearson's test that -8..8, with the tails in the ends, have these chances; at 1e-9."""
    seen = np.bincount(np.clip(noise, -8, 8) + 8, minlength=17)
    # With so many in every bin the tail of chi-square holds at 1e-9.
    enough = chances * len(noise) >= 500
    found = stats.chisquare(
        np.append(seen[enough], seen[~enough].sum()),
        np.append(chances[enough], chances[~enough].sum()) * len(noise),
    )
    return bool(found.pvalue > 1e-9)


def gaussian_chances(scale: float) -> NDArray[np.float64]:
    """P[Z = z] for z in -8..8, proportional to exp(-z^2 / (2 t^2)), tails in the ends."""
    z = np.arange(-60, 61)
    weight = np.exp(-(z**2) / (2 * scale**2))
    return np.asarray(np.bincount(np.clip(z, -8, 8) + 8, weight) / weight.sum())


@pytest.mark.parametrize(
    ("source", "bits"), [(OperatingSystem(), 0), (Simulated(9), 0), (Simulated(9), 1)]
)
def test_gaussian_noise_has_its_law_and_others_are_rejected(source: Noise, bits: int) -> None:
    """Accepts the truth; rejects less, more, and a rounded normal, at 1e-9 false alarms."""
    scale = 2.0**bits
    noise = source.add_gaussian([0] * GAUSSIAN_SIZE, bits)
    assert gaussian_fits(noise, gaussian_chances(scale))
    assert not gaussian_fits(noise, gaussian_chances((1 - WRONG) * scale))
    assert not gaussian_fits(noise, gaussian_chances((1 + WRONG) * scale))
    edges = stats.norm.cdf(np.append(np.arange(-8, 8), np.inf) + 0.5, scale=scale)
    assert bits or not gaussian_fits(noise, np.diff(edges, prepend=0))


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(6)], ids=["system", "simulated"])
def test_gaussian_noise_is_normal_at_fine_scales(source: Noise) -> None:
    """Mean, variance and Kolmogorov distance fit; each with a false alarm rate of 1e-9."""
    noise = np.array(source.add_gaussian([0] * GAUSSIAN_SIZE, 40)) / 2.0**40

    def fits(sample: NDArray[np.float64]) -> bool:
        slack = SIGMAS / math.sqrt(GAUSSIAN_SIZE)
        near = stats.kstest(sample, "norm").pvalue > 1e-9
        return bool(
            near
            and abs(sample.mean()) <= slack
            and abs((sample**2).mean() - 1) <= math.sqrt(2) * slack
        )

    assert fits(noise)
    assert not fits(0.95 * noise)
    assert not fits(1.05 * noise)
    assert not fits(noise + 0.05)


@pytest.mark.parametrize("draw", ["add_laplace", "add_gaussian"])
def test_noise_is_added_to_the_numbers_in_their_order(draw: str) -> None:
    """Large vectors are cut into chunks; each number keeps its place, no chunk is repeated."""
    steps = [number * 2**40 for number in range(25_000)]
    noisy = getattr(OperatingSystem(), draw)(steps, 30)
    noise = [x - y for x, y in zip(noisy, steps, strict=True)]
    assert max(map(abs, noise)) < 2**38
    # At this scale hardly two are equal; a repeated chunk would repeat 5,000 or more.
    assert len(set(noise)) > 22_500


@dataclass
class Given(Noise):
    """Laplace noise that is given, of twice the scale that is asked for, and then zeros."""

    drawn: tuple[int, ...]

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        assert (lattice_bits, draw) == (2, 7)
        return [*self.drawn, *[0] * (len(steps) - len(self.drawn))]


@pytest.mark.parametrize(("size", "reach", "last"), [(2, 5, 120), (3, 2, 90)])
def test_noise_of_counted_parts_has_its_law(size: int, reach: int, last: int) -> None:
    """P[x] over P[0] is exp(-N(x)/2), the larger of rises and falls, summed over all rejections."""
    q = math.exp(-1 / 4)
    plain = tuple(range(20, 20 + size))
    found = {}
    for noise in itertools.product(range(-reach, reach + 1), repeat=size):
        moved = tuple(a + b for a, b in zip(plain, noise, strict=True))
        chance = 0.0
        for extra in range(-3, last):
            # A rejected draw is followed by zeros, which are the noise only if all are zero.
            accepted = Given((*noise, extra)).add_counted(plain, 1, 7) == moved
            if accepted and extra >= abs(sum(noise)):
                chance += q ** (sum(map(abs, noise)) + abs(extra))
            assert accepted == (extra >= abs(sum(noise)) or not any(noise))
        found[noise] = chance
    middle = found[(0,) * size]
    for noise, chance in found.items():
        rises = sum(each for each in noise if each > 0)
        falls = -sum(each for each in noise if each < 0)
        assert chance == pytest.approx(math.exp(-max(rises, falls) / 2) * middle, rel=1e-9)


def test_the_quantile_of_counted_parts() -> None:
    """One of three numbers is above 3.39 noise scales in 5% of draws, of a million."""
    drawn = np.random.default_rng(1).laplace(0, 2, (1_000_000, 4))
    accepted = drawn[drawn[:, 3] >= np.abs(drawn[:, :3].sum(axis=1))]
    assert len(accepted) > 150_000
    # Four standard deviations of as many draws.
    assert abs((accepted[:, 2] > SEEN).mean() - 0.05) < 0.002


def _draw(send: Connection) -> None:
    laplace = OperatingSystem().add_laplace([0] * 50, 40)
    send.send([*laplace, *OperatingSystem().add_gaussian([0] * 50, 40)])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_never_repeat_noise() -> None:
    """Children forked after a draw in the parent draw numbers of their own."""
    drawn = OperatingSystem().add_laplace([0] * 50, 40)
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=_draw, args=(send,))
        child.start()
        assert receive.poll(60)
        drawn += receive.recv()
        child.join()
    drawn += OperatingSystem().add_laplace([0] * 50, 40)
    assert len(set(drawn)) == len(drawn) == 500


def test_simulated_noise_is_repeatable() -> None:
    """The same seed gives the same numbers."""
    assert Simulated(3).add_laplace([5], 20) == Simulated(3).add_laplace([5], 20)
    assert Simulated(3).add_gaussian([5], 20) == Simulated(3).add_gaussian([5], 20)
    assert Simulated(3).add_gaussian([5] * 9, 20) != Simulated(4).add_gaussian([5] * 9, 20)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(5)], ids=["system", "simulated"])
@pytest.mark.parametrize("draw", ["add_laplace", "add_gaussian"])
def test_numbers_outside_the_lattice_are_clamped_not_refused(source: Noise, draw: str) -> None:
    """An exception would tell something about a private number."""
    low, high = getattr(source, draw)([-(2**70), 2**70], 4)
    assert abs(low + LARGEST_STEPS) < 2**12
    assert abs(high - LARGEST_STEPS) < 2**12


def test_draws_of_one_simulated_release_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed's noise, bits and selections come from streams of their own, also for draw 0."""
    make, asked = np.random.default_rng, list[str]()
    monkeypatch.setattr(np.random, "default_rng", lambda of: asked.append(str(of)) or make(of))
    for draw in (0, 1):
        Simulated(7).add_laplace([1], 4, draw)
        Simulated(7).bits(1, draw)
        Simulated(7).select(np.zeros(4, dtype=np.int64), 1.0, draw)
    assert len(set(asked)) == 6
