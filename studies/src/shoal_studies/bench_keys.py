"""Keys found with a delta, beside noisy counts with the best cap of keys a user in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files

import duckdb
import numpy as np
from scipy import special

from shoal.presence.found import found_keys
from shoal.privacy.noise import Noise, Simulated
from shoal.theory import gaussian, key_threshold
from shoal.theory.key_threshold import Selection
from shoal_studies.populations import Floats, Whole

DELTA = 1e-6
# Parts of epsilon that keys are found with.
_PARTS = (0.1, 0.2, 0.3)
CAPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which user has which key, once each."""

    name: str
    user: Whole = field(repr=False)
    key: Whole = field(repr=False)

    @cached_property
    def size(self) -> tuple[int, int]:
        """How many users and keys there are."""
        return int(self.user.max()) + 1, int(self.key.max()) + 1

    @cached_property
    def names(self) -> list[str]:
        """The text of each key."""
        return [str(each) for each in range(self.size[1])]

    @cached_property
    def many(self) -> Whole:
        """How many keys the user of each pair has."""
        return np.bincount(self.user)[self.user]

    @cached_property
    def shares(self) -> Floats:
        """The same share for each key of a user, of a norm of 1."""
        return 1 / np.sqrt(self.many)

    def counted(self) -> Pairs:
        """What is left if of each user the first `MOST_KEYS` keys count."""
        place = key_threshold.public_order(self.names)
        kept = key_threshold.counted(self.user, place[self.key])
        return Pairs(self.name, self.user[kept], self.key[kept])


def tables() -> Iterator[Callable[[], Pairs]]:
    """Makers of two real tables and of two whose keys are rare for the most part."""
    yield lambda: _flights("destination x hour", "hour")
    yield lambda: _flights("destination x week", "week")
    yield lambda: _made("search words", (20_000, 50_000), 1.1, 20)
    yield lambda: _made("places", (5_000, 5_000), 1.4, 8)


def _flights(name: str, part: str) -> Pairs:
    place = files("shoal") / "datasets" / "flights_2013.parquet"
    found = duckdb.connect().sql(
        f"""select dense_rank() over (order by tailnum) - 1 as who,
                   dense_rank() over (order by dest, part) - 1 as key
            from (select distinct tailnum, dest, {part}(time_hour at time zone 'UTC') as part
                  from '{place}' where tailnum is not null)"""
    )
    user, key = found.fetchnumpy().values()
    return Pairs(name, user.astype(np.int64), key.astype(np.int64))


def _made(name: str, size: tuple[int, int], power: float, median: float) -> Pairs:
    """A lognormal number of records a user, each with a key by a power law of its rank."""
    users, keys = size
    rng = np.random.default_rng([users, keys])
    records = np.ceil(rng.lognormal(np.log(median), 1.0, users)).astype(np.int64)
    chance = np.arange(1.0, keys + 1) ** -power
    drawn = rng.choice(keys, records.sum(), p=chance / chance.sum())
    _, key = np.unique(drawn, return_inverse=True)
    pair = np.unique(np.repeat(np.arange(users), records) * keys + key)
    return Pairs(name, pair // keys, pair % keys)


def found(pairs: Pairs, chosen: Selection, noise: Noise) -> int:
    """How many keys one selection finds."""
    return len(found_keys(pairs.user, pairs.key, pairs.names, chosen, noise))


def capped(pairs: Pairs, epsilon: float, releases: int) -> tuple[float, float]:
    """Keys that noisy counts find with the best cap: with Gaussian noise and with Laplace noise.

    A user counts for so many of its keys, drawn at random; a key is found where the noisy count is
    so high that a lone user shows one of its own with a chance of delta, or half of it.
    """
    best = np.zeros(2)
    for cap in CAPS:
        normal = deviation(epsilon) * np.sqrt(cap)
        normal_level = 1 - normal * special.ndtri(each_of(DELTA / 2, cap))
        laplace = cap / epsilon
        laplace_level = laplace_threshold(laplace, cap)
        many = np.zeros(2)
        for turn in range(releases):
            count = counts(pairs, cap, turn)
            above = (count - laplace_level) / laplace
            tail = np.exp(-np.abs(above)) / 2
            many[0] += special.ndtr((count - normal_level) / normal).sum()
            many[1] += np.where(above > 0, 1 - tail, tail).sum()
        best = np.maximum(best, many / releases)
    return float(best[0]), float(best[1])


def deviation(epsilon: float) -> float:
    """The noise of a user's vector of norm 1, at half of the delta."""
    return float(1 / np.sqrt(2 * gaussian.rho_of(epsilon, DELTA / 2)))


def laplace_threshold(scale: float, cap: int) -> float:
    """The count at which a user whose keys nobody else has shows one with a chance of delta."""
    return float(1 - scale * np.log(2 * each_of(DELTA, cap)))


def each_of(delta: float, many: Whole | int) -> Floats:
    """The chance of each of many keys of which one is shown with a chance of delta."""
    return -np.expm1(np.log1p(-delta) / np.asarray(many))


def counts(pairs: Pairs, cap: int, turn: int) -> Floats:
    """Users of each key that has any, with at most so many keys of each user."""
    rng = np.random.default_rng([cap, turn])
    order = np.lexsort((rng.random(len(pairs.user)), pairs.user))
    user, key = pairs.user[order], pairs.key[order]
    begins = np.searchsorted(user, user)
    count = np.bincount(key[np.arange(len(user)) - begins < cap])
    return count[count > 0].astype(np.float64)


def lines(releases: int, epsilon: list[float], only: str) -> Iterator[str]:
    """What `shoal bench presence --keys` prints."""
    yield (
        f"keys found at delta {DELTA:g} with a part of epsilon, means of {releases} simulated "
        "releases; Gaussian, Laplace: noisy counts above a threshold, as of OpenDP and PipelineDP, "
        "with the cap that finds most on this very table; ratio: to the better, or to one key"
    )
    yield (
        f"{'table':<20}{'keys':>8}{'eps':>6}{'part':>6}{'ours':>9}{'Gaussian':>10}{'Laplace':>9}"
        f"{'ratio':>8}"
    )
    for made in tables():
        pairs = made()
        for loss in epsilon if only in pairs.name else ():
            for part in _PARTS:
                chosen = key_threshold.selection(loss * part, DELTA)
                turns = range(releases)
                ours = sum(found(pairs, chosen, Simulated(each)) for each in turns) / releases
                normal, laplace = capped(pairs, loss * part, min(releases, 3))
                yield (
                    f"{pairs.name:<20}{pairs.size[1]:>8}{loss:>6g}{part:>6g}{ours:>9.1f}"
                    f"{normal:>10.1f}{laplace:>9.1f}{ours / max(normal, laplace, 1.0):>8.2f}"
                )
