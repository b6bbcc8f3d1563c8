"""Coverage of 95% intervals of effects, as docs/theory/inference.md tells it.

`python -m tests.repository.trial_coverage 10000` prints both tables, with so many runs a line
(whole thousands); the numbers are the same every time.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from shoal.trials.inference import effects, super_population
from tests.trials.test_inference import BATCH, mixture, responded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

LAMBDA = 0.5
_SOME = np.arange(60) % 6 + 2
# What it is, units of each cluster, how many of them are treated.
DESIGNS: tuple[tuple[str, Whole, Whole], ...] = (
    ("500, 1,000 and 2,000 units", np.array([500, 1000, 2000]), np.array([250, 500, 1000])),
    (
        "32 of 8 to 200 units",
        np.rint(np.geomspace(8, 200, 32)).astype(np.int64),
        np.rint(np.geomspace(8, 200, 32)).astype(np.int64) // 2,
    ),
    ("3 of 20 to 22 units", np.array([20, 20, 22]), np.array([10, 10, 11])),
    ("1 of 20 units", np.array([20]), np.array([10])),
    ("50 of 4 units", np.full(50, 4), np.full(50, 2)),
    ("60 pairs", np.full(60, 2), np.full(60, 1)),
    ("60 of 2 to 7 units, one treated", _SOME, np.ones(60, dtype=np.int64)),
    ("10 of 30 units, 3 treated", np.full(10, 30), np.full(10, 3)),
)
CLUSTERS = (10, 30, 100)
UNLIKE = np.array([10.0, 32.0, 100.0, 316.0, 1000.0])
EQUAL = np.array([100.0])


def of_units(sizes: Whole, treated: Whole, runs: int) -> tuple[float, float]:
    """How often the units' effect is covered, and the median degrees of freedom.

    Gaussian mixture of paper 003, effect 1, a uniform prior with lambda 1/2.
    """
    rng = np.random.default_rng(3)
    population = mixture(rng, sizes)
    both = np.stack([sizes - treated, treated], axis=1)
    held, degrees = 0, []
    for _ in range(runs // BATCH):
        with np.errstate(all="ignore"):
            drawn = [
                responded(rng, y, own, LAMBDA, BATCH)
                for y, own in zip(population, treated.tolist(), strict=True)
            ]
        mean, s2 = (np.stack([part[i] for part in drawn], axis=1) for i in (0, 1))
        for m, s in zip(mean, s2, strict=True):
            found = effects(both, m, s, confidence=0.95)[0].finite_population
            held += found.interval[0] <= 1 <= found.interval[1]
            degrees.append(found.degrees_of_freedom)
    return held / runs, float(np.median(degrees))


def of_populations(options: NDArray[np.float64], clusters: int, runs: int) -> float:
    """How often the effect in a population of clusters is covered: clusters and units are drawn."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(runs):
        size = rng.choice(options, clusters)
        own = 1 + 0.5 * rng.normal(size=clusters)
        found = super_population(size, own + rng.normal(size=clusters) * np.sqrt(40 / size), 0.95)
        held += found.interval[0] <= 1 <= found.interval[1]
    return held / runs


def lines(runs: int) -> Iterator[str]:
    """Both tables."""
    yield f"{'clusters':<34}{'covered':>9}{'degrees':>10}"
    for name, sizes, treated in DESIGNS:
        part, degrees = of_units(sizes, treated, runs)
        yield f"{name:<34}{100 * part:>8.1f}%{degrees:>10,.0f}"
    for name, options in (("sizes from 10 to 1,000", UNLIKE), ("equal sizes", EQUAL)):
        for clusters in CLUSTERS:
            part = of_populations(options, clusters, runs)
            yield f"{f'population, {clusters} of {name}':<34}{100 * part:>8.1f}%"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1])):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
