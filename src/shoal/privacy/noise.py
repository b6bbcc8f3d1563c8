"""Draws all randomness: exact noise on a lattice, or a marked simulation of it.

One release draws ONE vector of discrete Laplace or discrete Gaussian noise with the common scale of
2^j steps; every number has its own step, so every number has its own scale.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from opendp.mod import Measurement, Metric

from shoal import checks
from shoal.arrays import Ints
from shoal.errors import InputError
from shoal.privacy.hull_noise import hull_noise

# A number and its noise must fit 64-bit integers with room to spare.
LARGEST_STEPS = 2**61
MOST_BITS = 61
# Large vectors are drawn in chunks of this many numbers, side by side.
_CHUNK = 20_000
_MOST_SEED = 2**128
# The words that are read from the operating system at a time.
_WORDS = 1 << 20
# The tries for noise of sum zero at a time, in all and for each row at least, and how often. Of
# tries for two entries one in four is accepted, and of those for 24 one in twenty.
_TRIES = 512
_FEWEST_TRIES = 4
_MOST_TURNS = 512
# The numbers of the draws of such turns are so far apart.
_TURN = 100_000
Counted: TypeAlias = tuple[int, ...]
# The kinds of what a simulation draws, so that no two vectors of one seed are alike.
_NUMBERS = 1
_BITS = 2
_SELECTIONS = 3


class Noise(Protocol):
    """A source of noise, selections and fair bits; `draw` tells those of one release apart."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add discrete Laplace noise of scale 2^lattice_bits steps to each whole number."""

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add discrete Gaussian noise of scale 2^lattice_bits steps to each whole number."""

    def add_counted(self, counted: Counted, lattice_bits: int, draw: int) -> Counted:
        """Add noise x that is as likely as exp(-N(x) / 2^lattice_bits), to two to four numbers.

        N(x) is the larger of the sum of what rises and the sum of what falls. It suits numbers of
        which one user has parts of one whole: it is noise of sum zero on them and on the rest.
        """
        [[*moved, _]] = self.add_sum_zero([[*counted, 0]], lattice_bits, draw)
        return tuple(moved)

    def add_sum_zero(self, rows: list[list[int]], lattice_bits: int, draw: int) -> list[list[int]]:
        """Add noise z of sum 0 to each row, as likely as exp(-|z|_1 / (2 2^lattice_bits)).

        Laplace noise of twice the scale of all but the last entry is as likely as
        q^(|z_1| + |z_2| + ...). It is accepted if one more Laplace number is at least
        |z_1 + z_2 + ...|, which is as likely as q to this power: the size of the last entry.
        """
        size = len(rows[0])
        found: dict[int, list[int]] = {}
        tries = max(_TRIES // len(rows), _FEWEST_TRIES)
        for turn in range(_MOST_TURNS):
            todo = [at for at in range(len(rows)) if at not in found]
            if not todo:
                return [found[at] for at in range(len(rows))]
            numbers = [0] * size * tries * len(todo)
            drawn = self.add_laplace(numbers, lattice_bits + 1, draw + turn * _TURN)
            noise = np.array(drawn, dtype=np.int64)
            noise = noise.reshape(len(todo), tries, size)
            total = noise[:, :, :-1].sum(axis=2)
            accepted = noise[:, :, -1] >= np.abs(total)
            for place, at in enumerate(todo):
                first = int(accepted[place].argmax())
                if not accepted[place, first]:
                    continue
                drawn_entries = noise[place, first, :-1].tolist()
                rest = -int(total[place, first])
                entries = zip(_clamped(rows[at]), [*drawn_entries, rest], strict=True)
                found[at] = [x + z for x, z in entries]
        raise RuntimeError("no noise of sum zero was accepted")

    def add_hull(self, steps: list[int], lattice_bits: int, draw: int) -> list[int]:
        """Add noise as likely as exp(-(max(z, 0) + max(-z, 0)) / 2^lattice_bits), of all numbers.

        See `shoal.privacy.hull_noise`.
        """
        noise = hull_noise(self, len(steps), lattice_bits, draw)
        return [x + z for x, z in zip(_clamped(steps), noise, strict=True)]

    def select(self, scores: Ints, scale: float, draw: int) -> int:
        """Position of a high score, by permute-and-flip."""

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Independent words of 64 fair bits, shape (size,)."""


@dataclass(frozen=True)
class OperatingSystem(Noise):
    """Exact discrete noise by OpenDP from the operating system's randomness.

    Formal guarantees: whole-number vectors that differ by at most d in the l1 norm have outputs of
    `add_laplace` whose probabilities differ by a factor of at most exp(d / 2^lattice_bits). If they
    differ by at most d in the l2 norm, `add_gaussian` is zero-concentrated private (zCDP) with
    rho = d^2 / (2 4^lattice_bits) and (epsilon, delta) as `shoal.theory.gaussian` says
    (`docs/theory/privacy.md#gaussian-noise`); so for `add_counted`, `add_hull` and their norms.
    Numbers are clamped to -2^61..2^61 before, which brings no two further apart, and sums to 64
    bits after. Scores that differ by at most d each give selections whose probabilities differ by a
    factor of at most exp(2 d / scale) (McKenna and Sheldon 2020, Theorem 1), or exp(d / scale) if
    no score falls. A word below w of 2^64 has the chance w/2^64.

    Example:
        >>> noise = OperatingSystem()
        >>> len(noise.add_laplace([10, 20], lattice_bits=20))
        2
        >>> noise.select(np.array([0, 900, 0]), scale=4.0, draw=0)
        1
    """

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """One draw for each number; large vectors use every core."""
        import opendp.prelude as dp

        return _exact(dp.m.make_laplace, dp.l1_distance(T="i64"), steps, lattice_bits)

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """One draw for each number; large vectors use every core."""
        import opendp.prelude as dp

        return _exact(dp.m.make_gaussian, dp.l2_distance(T="i64"), steps, lattice_bits)

    def select(self, scores: Ints, scale: float, draw: int) -> int:
        """OpenDP's noisy max with exact exponential noise, which is permute-and-flip."""
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        measurement = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
        return int(measurement(scores.tolist()))

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Straight from the operating system."""
        words = np.empty(size, dtype=np.uint64)
        for at in range(0, size, _WORDS):
            part = words[at : at + _WORDS]
            part[:] = np.frombuffer(os.urandom(part.nbytes), dtype=np.uint64)
        return words


@dataclass(frozen=True)
class Simulated(Noise):
    """Repeatable discrete noise for studies and tests. It protects nobody.

    A release drawn with it is marked as a simulation and touches no ledger.

    Source: docs/theory/privacy.md#lattice-noise.

    Args:
        seed: Seed of NumPy's generator.

    Raises:
        InputError: The seed is no whole number from 0.

    Guarantees: G-VERIFY.

    Example:
        >>> Simulated(1).add_laplace([100], 3) == Simulated(1).add_laplace([100], 3)
        True
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.whole(self.seed, "seed", most=_MOST_SEED))

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add the difference of two geometric variables."""
        return _added(steps, _laplace(self._numbers(draw), 2.0**lattice_bits, len(steps)))

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Add the discrete Gaussian itself, by rejection from discrete Laplace noise."""
        return _added(steps, _gaussian(self._numbers(draw), 2.0**lattice_bits, len(steps)))

    def select(self, scores: Ints, scale: float, draw: int) -> int:
        """The position of the highest score, each with exponential noise."""
        rng = np.random.default_rng([self.seed, draw, _SELECTIONS])
        return int((scores + rng.exponential(scale, len(scores))).argmax())

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Words of 64 fair bits from NumPy's generator."""
        rng = np.random.default_rng([self.seed, draw, _BITS])
        return rng.integers(2**64, size=size, dtype=np.uint64)

    def _numbers(self, draw: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, draw, _NUMBERS] if draw else self.seed)


def source_of(noise: Simulated | None, *, recorded: bool = False) -> Noise:
    """The operating system, unless a study asks; a ledger records no simulation."""
    if noise is None:
        return OperatingSystem()
    if isinstance(noise, Simulated) and not recorded:
        return noise
    cause = f"noise has the type {type(noise).__name__}"
    if isinstance(noise, Simulated):
        cause = "a ledger takes no simulation"
    step = "give a ledger for a real release, or noise=shoal.Simulated(seed) for a study"
    raise InputError(cause, step)


def _exact(
    make: Callable[..., Measurement], distance: Metric, steps: list[int], lattice_bits: int
) -> list[int]:
    """Adds OpenDP's noise to whole numbers, in chunks that are drawn side by side."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = make(dp.vector_domain(dp.atom_domain(T="i64")), distance, 2.0**lattice_bits)
    numbers = _clamped(steps)
    chunks = [numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)]
    if len(chunks) == 1:
        return list(measurement(chunks[0]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [number for part in pool.map(measurement, chunks) for number in part]


def _laplace(rng: np.random.Generator, scale: float, size: int) -> Ints:
    """Returns discrete Laplace noise, as the difference of two geometric variables."""
    first, second = rng.geometric(-np.expm1(-1 / scale), size=(2, size))
    return np.asarray(first - second)


def _gaussian(rng: np.random.Generator, scale: float, size: int) -> Ints:
    """Returns discrete Gaussian noise (Canonne, Kamath and Steinke 2020, Algorithm 3).

    A discrete Laplace y of scale t is kept with probability exp(-(|y| - s^2/t)^2 / (2 s^2)), which
    leaves P[y] proportional to exp(-y^2 / (2 s^2)). At t = s about three of four are kept.
    """
    found = np.empty(0, dtype=np.int64)
    while len(found) < size:
        drawn = _laplace(rng, scale, 2 * size)
        kept = 2 * rng.exponential(size=2 * size) >= (np.abs(drawn) / scale - 1) ** 2
        found = np.concatenate([found, drawn[kept]])
    return found[:size]


def _added(steps: list[int], noise: Ints) -> list[int]:
    return [int(x) + int(z) for x, z in zip(_clamped(steps), noise, strict=True)]


def _clamped(steps: list[int]) -> list[int]:
    """Returns numbers within the limits of the lattice."""
    # A sound plan never comes near; refusing here would tell something about a private number.
    return [min(max(number, -LARGEST_STEPS), LARGEST_STEPS) for number in steps]
