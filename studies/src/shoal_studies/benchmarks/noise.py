"""How many noisy numbers a second, each with a scale of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.cells.draw import to_steps
from shoal.privacy.noise import OperatingSystem

_BITS = 26


def run(numbers: int) -> Iterator[str]:
    """Draw the noise alone, then the whole way from exact sums to released values."""
    source, length = OperatingSystem(), Fraction(700, 1 << _BITS)
    source.add_laplace([0], _BITS)
    rng = np.random.default_rng(1)
    scales = rng.uniform(0.01, 1, numbers).tolist()
    sums = rng.integers(0, 2**40, numbers).tolist()
    began = time.perf_counter()
    source.add_laplace([0] * numbers, _BITS)
    alone = time.perf_counter() - began
    yield f"noise alone            {numbers / alone:>12,.0f} numbers a second"
    began = time.perf_counter()
    exact = [to_steps(x, 2**40, b, _BITS) for x, b in zip(sums, scales, strict=True)]
    noisy = source.add_laplace(exact, _BITS)
    found = [float(length * Fraction(b) * x) for x, b in zip(noisy, scales, strict=True)]
    whole = time.perf_counter() - began
    yield f"rounding, noise, value {len(found) / whole:>12,.0f} numbers a second"
    yield f"ratio                  {whole / alone:>12.2f}"
