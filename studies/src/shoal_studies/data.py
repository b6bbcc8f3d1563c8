"""Made-up counts and values that studies and benches share, from what the papers publish."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from shoal.cells.comparisons.assumptions import Distribution, Normal
from shoal.data.counts import Counts

# The largest speed of buses, km/h (papers 001 and 002).
WIDTH = 65.0
BOUNDS = (0.0, WIDTH)
# Mean and variance of the speeds of the ITMS cell (paper 002, section IV).
MEAN = 20.66769
VARIANCE = 115.135
# Our variant: the standard deviation between users, within the same variance.
BETWEEN = 6.0
# Published of the ITMS data (paper 000, section VI-A1): cells, users, most cells of a user.
_CELLS = 50
_USERS = 223
_MOST = 11


def itms() -> NDArray[np.int64]:
    """217 counts with the published statistics of the ITMS cell; made up to match them.

    L = 217, n = 17,166, m* = 417, m_* = 1, median 46 (paper 002, section IV). At the Levy cap, 56,
    160 arrays with wrap_around and 164 with best_fit. They are not the original counts.
    """
    text = (files("shoal_studies") / "itms_counts.csv").read_text(encoding="utf-8")
    return np.array(text.split(), dtype=np.int64)


def geometric(levels: int = 6) -> NDArray[np.int64]:
    """2^i users with 2^(M-i) records each, i = 0..M (paper 001, section IV)."""
    level = np.arange(levels + 1)
    return np.repeat(2 ** level[::-1], 2**level)


def extreme(users: int = 101, most: int = 10) -> NDArray[np.int64]:
    """One user with `most` records, and one record of each other user (paper 001, section IV)."""
    return np.append(most, np.ones(users - 1, dtype=np.int64))


def one_cell(counts: NDArray[np.int64]) -> Counts:
    """One cell, `all`, from the records of each user."""
    users = len(counts)
    return Counts.from_counts(np.arange(users), ["all"] * users, counts)


def synthetic(gamma: float, seed: int, cells: int = 12, q: float = 0.01) -> Counts:
    """The synthetic counts of paper 000, section VI-A2.

    See docs/papers.md#figures.

    2^G - 1 users; users 2^j ... 2^(j+1) - 1 are in exactly G - j cells, drawn uniformly without
    replacement, with Geo(q) records on {1, 2, ...} in each; then one heaviest user of each cell
    has its count multiplied by 1 + gamma (to the nearest whole number).
    """
    rng = np.random.default_rng(seed)
    users = 2**cells - 1
    level = np.repeat(np.arange(cells), 2 ** np.arange(cells))
    # The first G - j of a random order of the cells.
    rank = rng.random((users, cells)).argsort(axis=1).argsort(axis=1)
    user, cell = np.nonzero(rank < cells - level[:, None])
    count = rng.geometric(q, len(user)).astype(np.int64)
    # Of each cell's users by falling count, the first.
    order = np.lexsort((-count, cell))
    heaviest = order[np.searchsorted(cell[order], np.arange(cells))]
    count[heaviest] = np.rint(count[heaviest] * (1 + gamma)).astype(np.int64)
    return Counts.from_counts(user, cell, count)


def itms_many(seed: int = 0) -> Counts:
    """Counts built to the published figures of the ITMS data; not the original ones.

    What paper 000, section VI-A1, publishes: the 50 fullest hexagons of one hour, 223 users, at
    most 11 of the cells a user. Everything else is made up: buses visit neighbouring hexagons of
    a line that gets quieter towards its end, and stay in each for a log-normal number of records.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, _MOST + 1, _USERS)
    lengths[: _CELLS // _MOST + 1] = _MOST
    start = np.floor(rng.beta(1.0, 1.6, _USERS) * (_CELLS - lengths + 1)).astype(np.int64)
    # A few buses go along the whole line, so that no hexagon is without one.
    start[: _CELLS // _MOST + 1] = np.linspace(0, _CELLS - _MOST, _CELLS // _MOST + 1).astype(int)
    user = np.repeat(np.arange(_USERS), lengths)
    within = np.arange(len(user)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    cell = start[user] + within
    stay = rng.lognormal(3.0, 0.9, len(user)) * np.exp(-cell / 16)
    return Counts.from_counts(user, cell, np.maximum(1, np.rint(stay)).astype(np.int64))


def sparse_cells() -> tuple[Counts, NDArray[np.float64]]:
    """Hard, made-up counts with the true centre of every cell, in km/h."""
    rng = np.random.default_rng(50223)
    weight = rng.lognormal(0, 0.8, _CELLS)
    degree = np.clip(rng.geometric(0.28, _USERS), 1, _MOST)
    degree[0] = _MOST
    chosen = [
        rng.choice(_CELLS, size, replace=False, p=weight / weight.sum()) for size in degree.tolist()
    ]
    user = np.repeat(np.arange(_USERS), degree)
    cell = np.concatenate(chosen)
    # A cell that nobody chose gets one user, in rising order of cells.
    empty = np.setdiff1d(np.arange(_CELLS), cell)
    extra = np.array([1 + int(rng.integers(_USERS - 1)) for _ in empty], dtype=np.int64)
    user = np.append(user, extra)
    cell = np.append(cell, empty)
    order = np.lexsort((cell, user))
    user = user[order]
    cell = cell[order]
    count = np.clip(np.round(46 * np.exp(1.1 * rng.normal(size=len(user)))), 1, 417).astype(int)
    count[user == 0] = 417
    return Counts.from_counts(user, cell, count), rng.normal(20.67, 4, _CELLS)


def uniform(
    rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Uniform values between the bounds."""
    return WIDTH * rng.random(len(user))


def projected(
    rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Normal values of mean U/2 and variance U/4, drawn again until they lie in (0, U]."""
    deviation = math.sqrt(WIDTH / 4)
    values = rng.normal(WIDTH / 2, deviation, len(user))
    while (outside := (values <= 0) | (values > WIDTH)).any():
        values[outside] = rng.normal(WIDTH / 2, deviation, int(outside.sum()))
    return values


def speeds(*, differ: bool = False) -> Distribution:
    """Normal values with the published mean and variance of the ITMS cell; clipped when read."""
    return Normal(MEAN, math.sqrt(VARIANCE), BETWEEN**2 / VARIANCE if differ else 0.0)
