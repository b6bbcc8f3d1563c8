"""Recounts bins: losses, edges, and intervals of shares and quantiles, by integrals of its own."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import kve

from shoal.verification.recount.reading import Array, Document

# Noise has the scale of 2^24 units.
_SCALE = 2**24
# Edges are found among this many places, and each round has so many bins.
_PLACES = 2**10
_ROUND = 32
# Cells are far apart if more than this part of them, beside chance, is in one of six bins each.
_FAR = 0.55
_MISS = 0.05
_SHARE = re.compile(r"share_(above|below|between)\((.*)\)")
_QUANTILE = re.compile(r"quantile\((.*)\)")


class BinsRelease(NamedTuple):
    """What a record says of bins, beside the members of its planned cells."""

    plan: Document
    drawn: Document
    user: Array
    cell: Array
    records: Array
    bounds: tuple[float, float]
    tick_bits: int

    @property
    def loss(self) -> Fraction:
        """The largest loss of a user: its units in all cells, a look at them, and its votes."""
        units = np.array(self.plan["units"], dtype=object)
        spent = np.zeros(int(self.user.max()) + 1, dtype=object)
        np.add.at(spent, self.user, units)
        votes = self.plan["vote"] * self.plan["rounds"]
        most = int(spent.max())
        look = math.ceil(Fraction(most, 2 ** self.plan["fullest"])) if self.plan["fullest"] else 0
        return Fraction(most + look + votes, _SCALE)

    @property
    def totals(self) -> Array:
        """The units of each cell."""
        units = np.array(self.plan["units"], dtype=np.float64)
        return np.bincount(self.cell, units)

    def moved(self) -> Array:
        """The part of each cell's weight that differs from its users' shares of the records."""
        cell = self.cell
        total = np.maximum(self.totals, 1)
        records = np.bincount(cell, self.records)
        weight = np.array(self.plan["units"]) / total[cell]
        share = self.records / records[cell]
        apart = np.bincount(cell, np.abs(weight - share)) / 2
        # Each user's bins are rounded to whole units.
        rounded = np.bincount(cell) / total
        return np.minimum(apart + rounded, 1)


def differences(
    found: BinsRelease, rows: dict[str, Document], thresholds: list[float]
) -> Iterator[str]:
    """Yields a sentence for each number of bins that does not follow."""
    totals = found.totals.astype(np.int64).tolist()
    if [sum(row) for row in found.drawn["rows"]] != totals:
        yield "bins of a cell do not add up to its units"
    votes = len(np.unique(found.user)) * found.plan["vote"]
    sums_of_rounds = {sum(row) for row in found.drawn["rounds"]}
    if not sums_of_rounds <= {votes}:
        yield "bins of a round do not add up to its votes"
    if found.drawn["edges"] != _edges(found, thresholds):
        yield "edges do not follow from the common distribution and the thresholds"
        return
    for name, row in rows.items():
        yield from _too_short(found, name, row)


def _edges(found: BinsRelease, thresholds: list[float]) -> list[int]:
    """Returns the edges in ticks: thresholds, and ranks of what the rounds found."""
    low, high = found.bounds
    top = 2**found.tick_bits
    ticks_of_one = top / (high - low)
    edges = {math.floor((each - low) * ticks_of_one + 0.5) for each in thresholds}
    bins = found.plan["bins"]
    if bins == 1:
        return sorted(edges)
    function: Any = np.arange(_PLACES + 1) / _PLACES
    even_ranks = np.arange(1, _ROUND) / _ROUND
    for turn, row in enumerate(found.drawn["rounds"]):
        evenly = 0.1 if turn else 1.0
        inner = _at_ranks(function, even_ranks, evenly)
        noisy = np.array(row, dtype=np.float64) / sum(row)
        parts = _nearest_distribution(noisy)
        knots = [0, *inner, _PLACES]
        so_far = [0.0, *np.cumsum(parts).tolist()]
        # Inside a bin the records lie as the round before found them, in part evenly.
        inside = _in_part_even(function, 0.02)
        function = np.interp(inside, inside[knots], so_far)
    evenly = 0.02 if found.drawn["rounds"] else 1.0
    if _are_far(found, function):
        bins = min(4 * bins, 48)
    ranks = _at_ranks(function, _ranks(bins), evenly)
    return sorted(edges | {each * top // _PLACES for each in ranks})


def _are_far(found: BinsRelease, function: Any) -> bool:
    """Returns whether cells are far apart, by the records in their fullest bins."""
    if not found.plan["fullest"]:
        return False
    [drawn] = found.drawn["fullest"]
    coarse = [0, *_at_ranks(function, [each / 6 for each in range(1, 6)], 0.02), _PLACES]
    common = max(function[end] - function[begin] for begin, end in pairwise(coarse))
    squares = np.bincount(found.cell, np.array(found.plan["units"], dtype=np.float64) ** 2)
    # A cell of n users of equal weight has by chance 1/sqrt(n) of the rest in its fullest bin.
    others = (1 - common) * float((found.totals - np.sqrt(squares)).sum())
    surely = (drawn - 2 * _SCALE) * 2 ** found.plan["fullest"]
    return bool(surely >= found.totals.sum() - (1 - _FAR) * others)


def _at_ranks(function: Any, ranks: Any, evenly: float) -> list[int]:
    """Returns the inner places at which a function, in part an even one, has these ranks."""
    places = np.arange(_PLACES + 1)
    mixed = _in_part_even(function, evenly)
    found = {round(float(np.interp(each, mixed, places))) for each in ranks}
    return sorted(found - {0, _PLACES})


def _in_part_even(function: Any, part: float) -> Any:
    """Returns a function of which a part is an even one."""
    return (1 - part) * function + part * np.arange(_PLACES + 1) / _PLACES


def _ranks(bins: int) -> list[float]:
    """Returns the ranks at which the edges of so many bins lie."""
    if bins < 8:
        return [0.05, 0.25, 0.5, 0.75, 0.95]
    if bins == 8:
        return [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98]
    if bins >= 24:
        return [each / bins for each in range(1, bins)]
    return [0.02, *np.linspace(0.1, 0.9, bins - 3).tolist(), 0.98]


def _nearest_distribution(parts: Any) -> Any:
    """Returns the nearest numbers that are not negative and add up to 1."""

    def excess(cut: float) -> float:
        """Returns by how much the parts add up to more than 1 if so much is taken off each."""
        return float(np.maximum(parts - cut, 0).sum()) - 1

    less = brentq(excess, parts.min() - 1, parts.max())
    return np.maximum(parts - less, 0)


@cache
def _quantile(bins: int, cut: int) -> float:
    """Returns what the noise of the first `cut` bins is above in 5% of draws, in its units.

    It has the density f_cut(s) f_(bins - cut)(s), with f_k(s) as s^(k - 1/2) K_(k - 1/2)(s/2).
    """

    def density(size: float) -> float:
        """Returns the density, up to a factor."""
        found = 0.0
        for many in (cut, bins - cut):
            order = many - 0.5
            # The factor keeps numbers near 1.
            bessel = kve(order, size / 2) / kve(order, 1.0)
            found += order * math.log(size) + math.log(bessel) - size / 2
        return math.exp(found)

    far = 40 * math.sqrt(bins)

    def beyond(size: float) -> float:
        """Returns the part of the density beyond a size, up to the same factor."""
        return float(quad(density, size, far, limit=400)[0])

    missed = _MISS * beyond(1e-12)
    return float(brentq(lambda size: beyond(size) - missed, 0.1, far))


def _too_short(found: BinsRelease, name: str, row: Document) -> Iterator[str]:
    """Yields a sentence if an interval of a share or a quantile is shorter than it must be."""
    total = np.maximum(found.totals, 1)
    rows = np.array(found.drawn["rows"], dtype=np.float64)
    parts = rows / total[:, None]
    bins = parts.shape[1]
    noise = _SCALE / total
    moved = found.moved()
    low, high = found.bounds
    tick = (high - low) / 2**found.tick_bits
    ticks = np.array([0, *found.drawn["edges"], 2**found.tick_bits])
    edges = low + ticks * tick
    stated = {each: np.array(row[each], dtype=np.float64) for each in ("value", "low", "high")}
    slack = 1e-4
    if share := _SHARE.fullmatch(name):
        first, last = _between(share, edges)
        number = parts[:, first:last].sum(axis=1)
        band = _quantile(bins, last - first) * noise + moved
        least = np.minimum(np.clip(number - band, 0, 1), stated["value"])
        most = np.maximum(np.clip(number + band, 0, 1), stated["value"])
        is_low = stated["low"] <= least + slack
        is_high = stated["high"] >= most - slack
        if not (is_low & is_high).all():
            yield f"an interval of {name} is too short"
        return
    match = _QUANTILE.fullmatch(name)
    if name != "median" and match is None:
        return
    level = 0.5 if match is None else float(match[1])
    part = np.where(moved > 0.25, 1.0, 0.5)
    so_far = np.cumsum(parts, axis=1)
    for at in range(bins):
        begins = np.full(len(parts), True)
        ends = np.full(len(parts), True)
        if at > 0:
            band = _quantile(bins, at) * noise + part * moved - slack
            begins = so_far[:, at - 1] - band <= level
        if at + 1 < bins:
            band = _quantile(bins, at + 1) * noise + part * moved - slack
            ends = so_far[:, at] + band >= level
        is_low = stated["low"] <= edges[at]
        is_high = edges[at + 1] <= stated["high"]
        if (begins & ends & ~(is_low & is_high)).any():
            yield f"an interval of {name} leaves out a bin that it may be in"
            return


def _between(share: Any, edges: Array) -> tuple[int, int]:
    """Returns the edges between which values count for a share."""
    at = []
    for text in share[2].split(","):
        distance = np.abs(edges - float(text))
        at.append(int(distance.argmin()))
    if share[1] == "above":
        return at[0], len(edges) - 1
    if share[1] == "below":
        return 0, at[0]
    return at[0], at[1]
