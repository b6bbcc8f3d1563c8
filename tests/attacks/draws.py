"""Draws of discrete Laplace and discrete Gaussian noise, as releases draw it.

They are compared with the exact distributions at scales from 2 to 2^40 lattice steps, by
likelihood-ratio tests of single draws and tests of independence of neighbours in a vector, each
with a false-alarm rate of 1e-9. The same draws must reject a scale that is a little too small.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shoal.privacy.noise import OperatingSystem
from tests.attacks.goodness import FALSE_ALARM, judge

SIZE, UNIT = 16_000_000, "draws"

BITS = (1, 6, 20, 40)
KINDS = ("Laplace", "Gaussian")
_AT_ONCE = 200_000
_PAIRS = 4


def edges(bits: int) -> NDArray[np.int64]:
    """The last whole number of each bin but the last: a half of the scale each, at least one."""
    step = max(1, 2**bits // 2)
    return np.arange(-24, 24, dtype=np.int64) * np.int64(step)


def below(kind: str, z: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P[Z <= z]: in closed form for Laplace; summed, or normal at fine scales, for Gaussian."""
    if kind == "Laplace":
        q = np.exp(-1 / scale)
        tail = np.exp(-np.where(z >= 0, z + 1, -z) / scale) / (1 + q)
        return np.asarray(np.where(z >= 0, 1 - tail, tail))
    if scale > 1e4:
        # The lattice is so fine that the midpoint rule errs by less than 1 / scale^2.
        return np.asarray(stats.norm.cdf((z + 0.5) / scale))
    every = np.arange(-int(40 * scale), int(40 * scale) + 1)
    weight = np.cumsum(np.exp(-((every / scale) ** 2) / 2))
    return np.asarray(weight[np.clip(z - every[0], 0, len(every) - 1)] / weight[-1])


def chances(kind: str, bits: int, factor: float) -> NDArray[np.float64]:
    """Of every bin, tails in the ends, if the scale were factor x 2^bits."""
    cumulated = below(kind, edges(bits), factor * 2.0**bits)
    return np.diff(np.concatenate([[0.0], cumulated, [1.0]]))


def draw(kind: str, bits: int, size: int) -> NDArray[np.int64]:
    """So many noise terms from the operating system, on the number that is furthest from clamps."""
    source, middle = OperatingSystem(), 2**60
    add = source.add_laplace if kind == "Laplace" else source.add_gaussian
    return np.asarray(add([middle] * size, bits)) - middle


def attack(size: int, _seed: int, _folder: Path) -> Iterator[str]:
    """Draw an equal part of each kind at each scale."""
    each = -(-size // (len(BITS) * len(KINDS)))
    for kind in KINDS:
        for bits in BITS:
            seen = np.zeros(len(edges(bits)) + 1, dtype=np.int64)
            pairs = np.zeros(_PAIRS**2, dtype=np.int64)
            quarters = _quarters(chances(kind, bits, 1.0))
            for at in range(0, each, _AT_ONCE):
                noise = draw(kind, bits, min(_AT_ONCE, each - at))
                place = np.searchsorted(edges(bits), noise)
                seen += np.bincount(place, minlength=len(seen))
                quarter = quarters[place]
                pairs += np.bincount(quarter[:-1] * _PAIRS + quarter[1:], minlength=len(pairs))
            what = f"{kind} noise of scale 2^{bits}"
            yield from judge(what, seen, partial(chances, kind, bits))
            yield from _independent(what, pairs.reshape(_PAIRS, _PAIRS))


def _quarters(chance: NDArray[np.float64]) -> NDArray[np.int64]:
    """A rough quarter of the distribution for each bin."""
    middle = np.cumsum(chance) - chance / 2
    return np.minimum((middle * _PAIRS).astype(np.int64), _PAIRS - 1)


def _independent(what: str, pairs: NDArray[np.int64]) -> list[str]:
    """Neighbours in a vector know nothing of each other."""
    kept = pairs[pairs.sum(axis=1) > 0][:, pairs.sum(axis=0) > 0]
    found = float(stats.chi2_contingency(kept).pvalue)
    return [f"{what}: neighbours depend, p = {found:.2g}"] if found < FALSE_ALARM else []
