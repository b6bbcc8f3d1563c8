"""Recounts private counts: all of a release, since it follows from the drawn whole numbers.

Source: docs/theory/private-counts.md.
"""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
from scipy import stats
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Document, Release, differs

_TOTALS = ("users", "records", "sum")
# What a statistic can be is divided into this many steps, whose ends are the ends of intervals.
_STEPS = 100
# Quantiles of noise that differ by less than this part are the same.
_SAME = 1e-6
# Below this product of epsilon and the number of users there are few users.
_FEW_USERS = 200
# Fewer cells do not show by how much cells differ.
_FEW_CELLS = 3
# Of a user so many keys count.
_MOST_KEYS = 256
# Chances that are subtracted from 1 are rounded by such a part.
_ROUNDED = 1e-4
# Stated numbers may differ by this part.
_CLOSE = 1e-8


def differences(release: Release) -> Iterator[str]:
    """Yields what does not follow from the request, the rounds and the drawn numbers."""
    yield from _loss(release)
    if release.finds != (release.selection is not None):
        yield "cells are found, and the plan does not say how"
    if release.size:
        yield from _numbers(release)
    elif any(row["value"] for row in release.rows):
        yield "there are numbers of no cell"


def _numbers(release: Release) -> Iterator[str]:
    """Yields what does not follow from the drawn numbers of the cells."""
    caps = _caps(release)
    users = _users(release)
    yield from differs("the number of users", release.users, users, _CLOSE)
    if caps.keys() != release.caps.keys():
        yield "there are other caps than blocks"
    for name, cap in caps.items():
        stated = [float(release.caps[name][each]) for each in cap]
        yield from differs(f"the cap of {name}", stated, [*cap.values()], _CLOSE)
    few = float(Fraction(release.asked)) * _noisy_users(release) < _FEW_USERS
    if release.guide is not None and release.range != release.guide["range"]:
        yield "the range is not that of the earlier release"
    values = None
    if release.range is not None:
        values = _Values(release, caps)
        yield from differs("the knots", release.knots, values.knots, _CLOSE, 1e-9)
    recounted = [*_rows(release, caps, values, few=few)]
    _mark(recounted, release.min_users)
    if len(recounted) != len(release.rows):
        yield f"there are {len(release.rows)} statistics, not {len(recounted)}"
        return
    for stated, (name, found) in zip(release.rows, recounted, strict=True):
        yield from _row_differs(name, stated, found)


def _loss(release: Release) -> Iterator[str]:
    """Yields a sentence unless the loss of all rounds is the stated one, and that was asked for.

    A round costs the units of a user in its blocks, divided by the scale of its noise.
    """
    loss = Fraction(0)
    for each in release.rounds.values():
        loss += Fraction(sum(each["blocks"].values()), 2 ** each["bits"])
    stated = release.epsilon
    if release.selection is not None:
        yield from _of_keys(release.selection, stated - loss, Fraction(release.asked_delta))
        if (stated, release.delta) != (Fraction(release.asked), Fraction(release.asked_delta)):
            yield "the loss is not the one that was asked for"
        return
    if not stated * (1 - Fraction(1, 10**6)) <= loss <= stated:
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if release.delta or stated != Fraction(release.asked):
        yield "the loss is not the one that was asked for"


def _of_keys(selection: Document, epsilon: Fraction, delta: Fraction) -> Iterator[str]:
    """Yields a sentence if finding cells costs more than is left, or shows lone users too often.

    Source: docs/theory/private-counts.md#keys.
    """
    bits = selection["bits"]
    moves = selection["first"] ** 2 + selection["second"] ** 2
    spent = noise.gaussian_delta(epsilon, Fraction(moves, 2 * 4**bits), 2 * _MOST_KEYS, bits)
    if epsilon <= 0 or spent > delta / 2:
        yield "finding cells costs more than is left of epsilon and delta"
    many = np.arange(1, _MOST_KEYS + 1)

    def above(level: int, whole: int) -> Array:
        """Returns the chance that noise lifts the weight of each of 1, 2, ... keys to a level."""
        least = level - 0.5 - np.floor(whole / np.sqrt(many))
        return np.asarray(stats.norm.sf(least / 2.0**bits))

    at_once = 1 - (1 - above(selection["found_first"], selection["first"])) ** many
    stays = above(selection["stay"], selection["first"])
    later = 1 - (1 - above(selection["found_second"], selection["second"])) ** many
    most = np.maximum.accumulate(later)
    shown = at_once + stats.binom.pmf(many, many[:, None], stays[:, None]) @ most
    if shown.max() > float(delta / 2) * (1 + _ROUNDED):
        yield "a user shows a key that nobody else has too often"


def _row_differs(name: str, stated: Document, found: Document) -> Iterator[str]:
    """Yields a sentence for each entry of one statistic that differs from the one found again."""
    if (stated["statistic"], stated["status"]) != (name, found.pop("status")):
        yield f"name or status of {name} does not follow"
    slack = 1e-9 * (1 + float(np.nanmax(np.abs(found["value"]), initial=0.0)))
    ends = found.pop("ends", None)
    for entry, true in found.items():
        given = np.array(stated[entry], dtype=np.float64)
        yield from differs(f"{entry} of {name}", given, true, _CLOSE, slack)
    if ends is not None:
        yield from _outside(name, stated, ends, slack)


def _outside(name: str, stated: Document, ends: "_Ends", slack: float) -> Iterator[str]:
    """Yields a sentence if an interval is not one of those that rounding of quantiles allows."""
    for entry, (least, most) in zip(("low", "high"), ends, strict=True):
        given = np.array(stated[entry], dtype=np.float64)
        if not ((least - slack <= given) & (given <= most + slack)).all():
            yield f"{entry} of {name} does not follow from the parts"


def _scale(release: Release, draw: str, block: str) -> float:
    """Returns the noise scale of a block of numbers, in users."""
    found = release.rounds[draw]
    return float(2.0 ** found["bits"] / found["blocks"][block])


def _users(release: Release) -> float:
    """Returns about how many users there are, by the first look, or else as the request says."""
    if release.guide is not None:
        return float(release.guide["users"])
    if release.cells is None:
        return float(release.guess)
    units = sum(release.rounds["cells"]["blocks"].values())
    return max(float(sum(release.cells) / units), 1.0)


def _noisy_users(release: Release) -> float:
    """Returns about how many users there are, by either look if there was one.

    Each user has one size in each block of the second look, so that the noisy sums of all sizes
    tell more than the request's guess.
    """
    if release.cells is not None or not release.sizes:
        return _users(release)
    units = release.rounds["sizes"]["blocks"]
    users = [sum(sizes) / float(units[block]) for block, sizes in release.sizes.items()]
    return math.fsum(users) / len(users)


def _caps(release: Release) -> dict[str, Document]:
    """Returns what a user counts for in each block, from the sizes that the second look saw."""
    found = {}
    if release.guide is not None:
        # An earlier release said them: nothing of this one could show that they are others.
        return dict(release.guide["caps"])
    for block in release.rounds["answers"]["blocks"]:
        if block == "tails":
            continue
        if block in release.sizes:
            cap = _cap_of(release, block)
        else:
            given = None if block == "users" else release.records_per_user
            cap = _cap(float(release.size if given is None else given), hull=given is None)
        if block == "users" and _without_cap(cap, release.size):
            cap = _cap(float(release.size), hull=True)
        found[block] = cap
    return found


def _without_cap(cap: Document, cells: int) -> bool:
    """Whether users are counted without a cap: it hides nothing, and its noise grows with cells."""
    return cells <= 5 or not cap["known"] or cells + 2 <= 3.5 * max(cap["size"], 2.0)


def _cap(size: float, **more: Any) -> Document:
    """Returns a cap with the entries of a manifest, whose meaning `presence.look.Cap` says."""
    plain = {"size": size, "up": 1.0, "moved": 0.0, "users": 0.0, "known": True, "hull": False}
    return plain | more


def _cap_of(release: Release, block: str) -> Document:
    """Returns the cap with the least noise and loss.

    Source: docs/theory/private-counts.md#caps-and-priorities.
    """
    scale = _scale(release, "sizes", block)
    # The users of each size, with noise of this scale.
    seen = [each / release.rounds["sizes"]["blocks"][block] for each in release.sizes[block]]
    ends, middles = _sizes(release, block)
    if len(seen) != len(ends):
        raise ValueError
    bulk = _bulk(seen, scale)

    def users_by_size(scales: float) -> dict[float, float]:
        """Returns the users of the bulk, and of each size seen above so many noise scales."""
        return {
            middle: max(users, 0.0)
            for at, (middle, users) in enumerate(zip(middles, seen, strict=True))
            if at in bulk or users > scales * scale
        }

    # Sizes that may be noise decide no cap, but how far a total can be trusted.
    certain = users_by_size(10)
    possible = users_by_size(6)
    if max(seen) < 6 * scale or sum(certain.values()) < 0.6 * sum(seen):
        # The look says nothing that noise could not say.
        return _cap(ends[0], moved=0.5, known=False)
    whole = _total_under(math.inf, certain)
    under = [_total_under(end, certain) for end in ends]
    noise = [release.size * end * _scale(release, "answers", block) for end in ends]
    if block == "values":
        # The noise of a mean, and heavy users whose values are so far apart.
        users = _users(release)
        in_tails = _scale(release, "answers", "tails")
        by_noise = 8 * in_tails / users
        by_users = 0.6 * math.sqrt(release.size / users)
        apart = min(math.hypot(by_noise, by_users), 0.1)
        costs = [
            math.hypot(of_noise / kept, apart * _moved_by(end, certain))
            for end, of_noise, kept in zip(ends, noise, under, strict=True)
        ]
    else:
        costs = [
            of_noise + 0.5 * (whole - kept) for of_noise, kept in zip(noise, under, strict=True)
        ]
    # Below the bulk all caps of means are alike, and the highest of them is taken.
    lowest = max(bulk.start - 1, 0) if block == "values" else 0
    at = costs.index(min(costs[lowest:]), lowest)
    cap = ends[at]
    # Noise may hide users who have four times the weight of the others.
    moved = _moved_by(cap, possible) + 4 * scale * cap / under[at]
    return _cap(cap, up=min(whole / under[at], 2.0), moved=min(moved, 0.5), users=under[at] / cap)


def _sizes(release: Release, block: str) -> tuple[list[float], list[float]]:
    """Returns the upper ends of users' sizes in a block, and what users of each have."""
    if block == "users":
        # Whole numbers of cells: the powers of 2^(1/4), rounded down, up to the first that is as
        # large as the number of cells.
        ends = [1.0]
        power = 0
        while 2 ** (power / 4) < max(release.size, 2) * (1 - 1e-12):
            power += 1
            end = float(math.floor(2 ** (power / 4)))
            if end > ends[-1]:
                ends.append(end)
        return ends, [(low + 1 + high) / 2 for low, high in zip([0.0, *ends], ends, strict=False)]
    # Powers of two, the lowest and the highest, in half octaves.
    first, last = {"records": (0, 20), "sum": (-8, 20), "values": (-6, 20)}[block]
    ends = [2.0 ** (first + at / 2) for at in range(2 * (last - first) + 1)]
    return ends, [max(end / 2**0.25, ends[0]) for end in ends]


def _bulk(seen: list[float], scale: float) -> range:
    """Returns the places of the most frequent size and of those beside it that are no noise."""
    low = high = seen.index(max(seen))
    # Sizes are added as long as the next two together have more users than two noise scales.
    while low > 0 and sum(seen[max(low - 2, 0) : low]) > 2 * scale:
        low -= 1
    while high < len(seen) - 1 and sum(seen[high + 1 : high + 3]) > 2 * scale:
        high += 1
    return range(low, high + 1)


def _total_under(cap: float, users_by_size: dict[float, float]) -> float:
    """Returns what all users have together if each counts for the cap at most."""
    return sum(min(size, cap) * users for size, users in users_by_size.items())


def _moved_by(cap: float, users_by_size: dict[float, float]) -> float:
    """Returns the part of all that a cap moves: to sizes below it, from those above it."""
    uncut = _total_under(math.inf, users_by_size)
    cut = _total_under(cap, users_by_size)
    return sum(
        max(users * size / uncut - users * min(size, cap) / cut, 0.0)
        for size, users in users_by_size.items()
    )


def _rows(
    release: Release, caps: dict[str, Document], values: "_Values | None", *, few: bool
) -> Iterator[tuple[str, Document]]:
    """Yields the name of each statistic and its numbers."""
    for name in release.statistics:
        if name in _TOTALS:
            yield name, _total(release, name, caps[name], few=few)
            continue
        if values is None:
            raise ValueError
        bins = [*zip(values.outer[:-1], values.outer[1:], strict=True)]
        calls = [f"share_between({low:g}, {high:g})" for low, high in bins]
        is_histogram = name == "histogram"
        wanted = zip(calls, bins, strict=True) if is_histogram else [(name, _limits(name))]
        for call, limits in wanted:
            row = values.row(call, limits, is_bin=is_histogram)
            if few:
                row["status"] = ["few users"] * release.size
            yield call, row


def _mark(rows: list[tuple[str, Document]], min_users: int | None) -> None:
    """Marks cells whose noisy number of users is below a limit."""
    if min_users is None:
        return
    users = np.nan_to_num(dict(rows)["users"]["value"])
    for _, row in rows:
        pairs = zip(row["status"], users, strict=True)
        row["status"] = ["below min_users" if n < min_users else s for s, n in pairs]


def _limits(name: str) -> tuple[float, float]:
    """Returns the limits of a share by its name; those of other statistics are not used."""
    numbers = [float(each) for each in re.findall(r"[-+.\d]+(?:[eE][-+]?\d+)?", name)]
    if name.startswith("share_above"):
        return numbers[0], math.inf
    if name.startswith("share_below"):
        return -math.inf, numbers[0]
    if name.startswith("share_between"):
        return numbers[0], numbers[1]
    return -math.inf, math.inf


def _total(release: Release, name: str, cap: Document, *, few: bool) -> Document:
    """Returns the value of a total in each cell, its interval and its status."""
    answers = release.rounds["answers"]["blocks"]
    unit = release.bounds[1] if name == "sum" else 1.0
    # A user with the whole cap counts as much as this, in the unit of the total.
    size = unit if cap["hull"] else cap["size"] * cap["up"] * unit
    number = np.array(release.answers[name], dtype=np.float64) / answers[name] * size
    positive = np.maximum(number, 0.0)
    scale = _scale(release, "answers", name) * size
    cells = release.size
    # Laplace noise, and what the cap may move besides.
    variance = 2 * scale**2
    half = scale * math.log(1 / (1 - release.confidence))
    off = min(cap["up"] - 1 + cap["moved"], 1.0) * positive
    if cap["hull"]:
        variance = scale**2 * (cells + 2) * (cells + 3) / 6
        half = scale * _hull_quantile(cells, 1 - release.confidence)
        off = np.zeros(cells)
    middle = 0.0 if cells < _FEW_CELLS else float(np.mean(number))
    # The variance between cells, as far as noise does not explain it.
    between = max(float(np.mean((number - middle) ** 2)) - variance, 0.0)
    is_noisy = variance > between
    few_dominate = cap["moved"] > 1 / 4
    status = "too noisy" if is_noisy else "reliable"
    if few_dominate:
        status = "few users dominate"
    looked = name in release.sizes and not cap["hull"]
    if not cap["known"] or (few and looked):
        status = "few users"
    value = positive
    # Whether there are few users decides the status alone, and no value.
    if cap["known"] and not few_dominate and is_noisy and cells >= _FEW_CELLS:
        middle = max(middle, 0.0)
        value = np.maximum(middle + (number - middle) * between / (between + variance), 0.0)
    low = np.maximum(positive - half - off / 2, 0.0)
    high = positive + half + 3 * off
    if name in ("users", "records"):
        low, value, high = np.floor(low), np.rint(value), np.ceil(high)
    if not cap["known"]:
        value = high = np.full(cells, np.nan)
        low = np.zeros(cells)
    return {
        "value": value,
        "low": low,
        "high": high,
        "status": [status] * cells,
    }


def _hull_quantile(cells: int, miss: float) -> float:
    """Returns how many scales the noise of one cell without a cap exceeds with probability `miss`.

    Source: docs/theory/private-counts.md#counts-without-a-cap.
    """

    def tail(size: float) -> float:
        """Returns the probability of noise above a size, less `miss`."""
        inner = mpmath.gammainc(cells - 1, size, regularized=True) if cells > 1 else 0
        found = (
            mpmath.gammainc(cells + 1, size, regularized=True)
            - 2 * size / (cells + 1) * mpmath.gammainc(cells, size, regularized=True)
            + size**2 / (cells * (cells + 1)) * inner
        )
        return float(found) - miss

    return float(brentq(tail, 1e-9, 50.0 * (cells + 5), xtol=1e-11))


class _Ends(NamedTuple):
    """Both ends of intervals: of each, the least and the largest that quantiles of noise allow."""

    low: list[Array]
    high: list[Array]


class _Tails(NamedTuple):
    """What values below and above the range mean for means.

    `shift` is what they add to each mean, `reach` by how much intervals reach further down and up.
    """

    shift: Array
    reach: Array
    is_range_wrong: bool


class _Lean(NamedTuple):
    """How much higher values of users above the cap lie, and what it says of means, in ranges.

    `by` is that difference and `noise` its standard deviation, 0 where nothing is known; `hidden`
    is what the cap may hide of a mean, and `heavy` the part of the weight that these users have.
    """

    by: float
    noise: float
    hidden: float
    heavy: float


def _lean(release: Release, moved: float) -> _Lean:
    """Returns what the tails say of users above the cap.

    Source: docs/theory/private-counts.md#values-and-their-intervals.
    """
    units = release.rounds["answers"]["blocks"]["tails"]
    scale = _scale(release, "answers", "tails")
    _, *inside, _ = np.array(release.answers["tails"], dtype=np.float64) / units
    # Weights at the low and the high end of the range, of users below and above the cap.
    low, high = np.reshape(inside, (2, 2)).T
    weight = low + high
    # Nothing sees whether heavy users have more of the records than those of the guide.
    may_move = moved if release.guide is None else 2 * moved
    # What the cap may hide of a mean, the more the fewer users cells have.
    users_of_a_cell = max(_noisy_users(release), 1.0) / release.size
    by_chance = 1 / 2 / math.sqrt(users_of_a_cell)
    hides = 1 / 12 + by_chance
    if (weight < 6 * scale).any():
        return _Lean(by=0.0, noise=0.0, hidden=may_move * 2 * hides, heavy=0.0)
    # Where values of both kinds of users lie on average, from 0 to 1 in the range.
    place = np.clip(high / weight, 0.0, 1.0)
    by = float(place[1] - place[0])
    variances = 2 * scale**2 * (place**2 + (1 - place) ** 2) / weight**2
    return _Lean(
        by=by,
        noise=math.sqrt(float(variances.sum())),
        hidden=may_move * (hides + 2 * abs(by)),
        heavy=float(weight[1] / weight.sum()),
    )


def _priorities(release: Release) -> Array:
    """Returns how much a record counts in each cell, by the first look or an earlier release.

    Source: docs/theory/private-counts.md#caps-and-priorities.
    """
    if release.guide is not None:
        return np.array(release.guide["priority"])
    if release.cells is None:
        return np.ones(release.size)
    units = sum(release.rounds["cells"]["blocks"].values())
    weight = np.array(release.cells) / units
    scale = 2.0 ** release.rounds["cells"]["bits"] / units
    # Cells are drawn to their mean by the part that noise has of how they differ.
    noise = 2 * scale**2
    beyond_noise = max(float(weight.var()) - noise, 0.0)
    kept = beyond_noise / (beyond_noise + noise)
    middle = float(weight.mean())
    drawn = middle + kept * (weight - middle)
    found = 1 / np.maximum(drawn, 1.5 * scale)
    users = np.maximum(weight, 0.0)
    if not users.any():
        return np.ones(release.size)
    average = float(users @ found) / float(users.sum())
    # The average user has the middle of a size.
    return np.asarray(2**-0.25 * found / average)


class _Values:
    """Parts of cells at the knots of the range that was selected.

    `parts` are weights of cells at knots, shape (cells, knots), each with Laplace noise of `scale`.
    `pool` are the parts of all cells together, which add up to 1. `hidden` is the part of the range
    by which the cap may move a mean.
    """

    def __init__(self, release: Release, caps: dict[str, Document]) -> None:
        self.release = release
        low, high = release.bounds
        top = 2**release.tick_bits
        first, last = _range(release.range, top)
        of_values = [each for each in release.statistics if each not in _TOTALS]
        # The mean needs the weights at both ends of the range alone.
        pieces = 1 if of_values == ["mean"] else release.pieces
        ticks = [first + (last - first) * at // pieces for at in range(pieces + 1)]
        self.knots = low + np.array(ticks) / top * (high - low)
        self.width = self.knots[-1] - self.knots[0]
        # A bin of a histogram is a piece, or two if there are more than 8 and none is left over.
        of_a_bin = 1
        if pieces > 8 and pieces % 2 == 0:
            of_a_bin = 2
        inner = self.knots[of_a_bin:-1:of_a_bin].tolist()
        self.outer = [low, *inner, high]
        units = release.rounds["answers"]["blocks"]["values"]
        drawn = np.array(release.answers["values"], dtype=np.float64) / units
        self.parts = drawn.reshape(pieces + 1, release.size).T
        self.scale = _scale(release, "answers", "values")
        self.weight = self.parts.sum(axis=1)
        self.moved = float(caps["values"]["moved"])
        self.lean = _lean(release, self.moved)
        self.hidden = self.lean.hidden
        pooled = np.maximum(self.parts.sum(axis=0), 0.0)
        everything = pooled.sum()
        self.pool = pooled / everything if everything > 0 else np.full(pieces + 1, 1 / (pieces + 1))
        # The parts, weighed by their distance from the common mean: their noise, and by how much
        # cells differ beyond it.
        centred = self.knots - float(self.pool @ self.knots)
        self.noise = 2 * self.scale**2 * float(centred @ centred)
        self.spread = self.width**2 / 12
        if release.size >= _FEW_CELLS:
            moved = self.parts @ centred
            self.spread = max(float((moved**2 - self.noise).sum()) / self._heavy(), 0.0)
        self.clear = (self.weight > 0) & (self.noise <= self.spread * self.weight**2)

    @cached_property
    def tails(self) -> _Tails:
        """What follows from the weights of all cells below, inside and above the range."""
        low, high = self.release.bounds
        first, last = self.knots[[0, -1]]
        units = self.release.rounds["answers"]["blocks"]["tails"]
        tails = np.array(self.release.answers["tails"], dtype=np.float64) / units
        total = max(float(tails.sum()), 1.0)
        scale = _scale(self.release, "answers", "tails")
        # Only a tail that noise does not explain moves means, and by a tenth of the range at most.
        below, *_, above = np.where(tails > 3 * scale, tails, 0.0) / total
        moves = np.array([below * (low - first), above * (high - last)])
        most = 0.1 * self.width
        # Intervals allow for whatever the tails say, and for one noise scale more.
        possible = np.maximum(tails[[0, -1]], 0.0) + scale
        part = np.clip(possible / total, 0.0, 1.0)
        return _Tails(
            shift=np.clip(moves, -most, most),
            reach=part * np.array([first - low, high - last]),
            is_range_wrong=float(np.abs(moves).max()) > self.width / 2,
        )

    def _heavy(self) -> float:
        """Returns the sum of squared weights without their noise."""
        squares = self.weight**2 - 2 * len(self.knots) * self.scale**2
        return max(float(np.maximum(squares, 0.0).sum()), 1e-9)

    def row(self, name: str, limits: tuple[float, float], *, is_bin: bool) -> Document:
        """Returns value, interval and status of one statistic."""
        ends, outlying = self.mean_ends
        status = np.where(self.clear, "reliable", "too noisy").astype(object)
        status[self.clear & outlying] = "outlying users"
        if name == "mean":
            value = self._mean()
            if self.tails.is_range_wrong:
                status[self.clear] = "outlying users"
        elif name == "median" or name.startswith("quantile"):
            level = 0.5 if name == "median" else float(name[9:-1])
            value = self._quantile(level)
            ends = self._quantile_ends(level)
        else:
            value = self._above(limits[0]) - self._above(limits[1])
            ends = self._share_ends(*limits)
            first, last = self.knots[0], self.knots[-1]
            # Nothing was measured at a limit outside the range.
            if not is_bin and any(math.isfinite(x) and not first < x < last for x in limits):
                status[self.clear] = "outlying users"
        # No interval is without its value.
        low = [np.minimum(each, value) for each in ends.low]
        high = [np.maximum(each, value) for each in ends.high]
        return {
            "value": value,
            "status": status.tolist(),
            "ends": _Ends(low, high),
        }

    @cached_property
    def capped(self) -> float:
        """The part of the range by which all means rise without the cap.

        It is what users above the cap differ by beyond what their cells explain.
        """
        explained = self._lean_of_cells()
        beyond = self.lean.by
        if explained * beyond > 0:
            beyond = math.copysign(max(abs(beyond) - abs(explained), 0.0), beyond)
        if not abs(beyond) > 3 * self.lean.noise:
            return 0.0
        return self.moved * beyond

    def _lean_of_cells(self) -> float:
        """Returns the lean if users above the cap were in the cells with the highest priorities."""
        priority = _priorities(self.release)
        weight = np.maximum(self.weight, 0.0)
        place = (self._plain_means() - self.knots[0]) / self.width
        # The weight of users above the cap, cell by cell from the highest priority on.
        heavy = np.zeros(len(weight))
        left = self.lean.heavy * float(weight.sum())
        for cell in sorted(range(len(weight)), key=lambda at: -priority[at]):
            heavy[cell] = min(left, weight[cell])
            left -= heavy[cell]
        light = weight - heavy
        if not (heavy.any() and light.any()):
            return 0.0
        of_heavy = float(heavy @ place / heavy.sum())
        of_light = float(light @ place / light.sum())
        # Priorities that differ by an octave or more explain it in full.
        octaves = np.log2(priority)
        total = float(weight.sum())
        middle = float(weight @ octaves) / total
        variance = float(weight @ (octaves - middle) ** 2) / total
        spread = math.sqrt(variance)
        return (of_heavy - of_light) * min(spread, 1.0)

    def _mean(self) -> Array:
        """Returns means: with what the cap and the range hide, inside of the range."""
        found = self._plain_means() + self.capped * self.width
        inside = np.clip(found, self.knots[0], self.knots[-1])
        return np.asarray(inside + self.tails.shift.sum())

    def _plain_means(self) -> Array:
        """Returns means of clear cells alone, others drawn towards the mean of all cells."""
        own = self.parts @ self.knots / np.maximum(self.weight, self.scale / 2)
        middle = float(self.pool @ self.knots)
        weight = np.maximum(self.weight, 0.0)
        moved = self.parts @ self.knots - middle * self.weight
        total = np.maximum(weight**2 * self.spread + self.noise, 1e-30)
        drawn = middle + moved * weight * self.spread / total
        return np.asarray(np.where(self.clear, own, drawn))

    def _shares(self) -> Array:
        """Returns parts divided by weights; those of unclear cells are drawn towards the pool."""
        knots = len(self.knots)
        own = self.parts / np.maximum(self.weight, self.scale / 2)[:, None]
        noise = 2 * self.scale**2 * (knots - 2 + knots * float(self.pool @ self.pool))
        away = self.parts - np.outer(self.weight, self.pool)
        spread = float(((away**2).sum(axis=1) - noise).sum()) / self._heavy()
        spread = min(max(spread, 1e-4), 1.0)
        weight = np.maximum(self.weight, 0.0)[:, None]
        drawn = self.pool + away * weight * spread / (weight**2 * spread + noise)
        return np.asarray(np.where(self.clear[:, None], own, drawn))

    def _curve(self) -> tuple[Array, list[list[float]]]:
        """Returns places, and the part of each cell above each of them, which falls from 1 to 0.

        The places are the middles of pieces, and both ends of the range.
        """
        places = np.r_[self.knots[0], (self.knots[1:] + self.knots[:-1]) / 2, self.knots[-1]]
        curves = []
        for shares in self._shares().tolist():
            # Neighbours that rise are joined to a block with their mean, until none rises.
            blocks: list[list[float]] = []
            for at in range(1, len(shares)):
                blocks.append([min(max(sum(shares[at:]), 0.0), 1.0)])
                while len(blocks) > 1 and np.mean(blocks[-2]) < np.mean(blocks[-1]):
                    last = blocks.pop()
                    blocks[-1] += last
            fallen = [float(np.mean(block)) for block in blocks for _ in block]
            curves.append([1.0, *fallen, 0.0])
        return places, curves

    def _quantile(self, level: float) -> Array:
        """Returns where the curve of each cell is 1 - level."""
        places, curves = self._curve()
        return np.array([np.interp(level - 1, [-y for y in row], places) for row in curves])

    def _above(self, limit: float) -> Array:
        """Returns the part of each cell above a limit."""
        places, curves = self._curve()
        return np.array([np.interp(limit, places, row) for row in curves])

    def _thetas(self, along: Array) -> _Ends:
        """Returns the first and the last theta whose sum of (along - theta) parts looks like noise.

        An end is infinite where it is the end of what is tried.
        """
        grid = np.linspace(along.min(), along.max(), _STEPS + 1)
        # One row for each theta, one column for each knot.
        away = along - grid[:, None]
        limit = np.array(
            [self._limit(float((row**2).sum()), float((row**4).sum())) for row in away]
        )
        room = self.hidden * np.maximum(self.weight, 0.0) * (grid[-1] - grid[0])
        sums = self.parts @ along
        lows = []
        highs = []
        # The release may have computed quantiles that are a bit smaller, or a bit larger.
        for factor in (1 - _SAME, 1 + _SAME):
            ends = [
                _first_and_last(each, weight, grid, limit * factor + more)
                for each, weight, more in zip(sums, self.weight, room, strict=True)
            ]
            low, high = np.array(ends).reshape(-1, 2).T
            lows.append(low)
            highs.append(high)
        # Larger quantiles make longer intervals.
        return _Ends(lows[::-1], highs)

    def _limit(self, squares: float, fourths: float) -> float:
        """Returns the quantile of a sum a Z of Laplace noise, by the sums of a^2 and of a^4."""
        spread = math.sqrt(2 * squares)
        return self.scale * spread * _quantile(self.release.confidence, squares**2 / fourths)

    @cached_property
    def mean_ends(self) -> tuple[_Ends, Array]:
        """Ends of intervals of means, and which cells reach an end of the range."""
        low, high = self.release.bounds
        found = self._thetas(self.knots)
        # A cell with more of its weight at an end of the range may also have more beyond it.
        at_ends = self._shares()[:, [0, -1]] / np.maximum(self.pool[[0, -1]], 0.02)
        below, above = self.tails.reach[:, None] * np.clip(at_ends**2, 1.0, 5.0).T
        down = self.capped * self.width - below
        up = self.capped * self.width + above
        lows = [np.where(np.isinf(x), low, np.clip(x + down, low, high)) for x in found.low]
        highs = [np.where(np.isinf(x), high, np.clip(x + up, low, high)) for x in found.high]
        outlying = np.isinf(found.low[0]) & (self.knots[0] > low)
        outlying |= np.isinf(found.high[1]) & (self.knots[-1] < high)
        return _Ends(lows, highs), outlying

    def _quantile_ends(self, level: float) -> _Ends:
        """Returns ends of pieces with surely more, or less, than 1 - level of the weight above."""
        low, high = self.release.bounds
        pieces = range(1, len(self.knots))
        cells = len(self.parts)
        least = np.full(cells, low)
        most = np.full(cells, high)
        # From either end pieces count until one of them is not sure.
        more = np.ones(cells, dtype=bool)
        less = np.ones(cells, dtype=bool)
        for piece in pieces:
            more &= self._surely(piece, level) > 0
            least = np.where(more, self.knots[piece - 1], least)
        for piece in reversed(pieces):
            less &= self._surely(piece, level) < 0
            most = np.where(less, self.knots[piece], most)
        return _Ends([least, least], [most, most])

    def _surely(self, piece: int, level: float) -> Array:
        """Returns 1 where surely more than 1 - level is above a piece, -1 where less is, else 0."""
        # The weight above less (1 - level) times all weight: the knots above count by `level`, and
        # those below by `level` - 1.
        below = piece
        above = len(self.knots) - below
        squares = below * (1 - level) ** 2 + above * level**2
        fourths = below * (1 - level) ** 4 + above * level**4
        allowed = self._limit(squares, fourths) + self.hidden * np.maximum(self.weight, 0.0)
        excess = self.parts[:, piece:].sum(axis=1) - (1 - level) * self.weight
        return np.where(excess > allowed, 1, np.where(excess < -allowed, -1, 0))

    def _share_ends(self, low: float, high: float) -> _Ends:
        """Returns ends of intervals of a share, by pieces surely inside, and not surely outside."""
        size = len(self.knots)

        def before(limit: float) -> int:
            """Returns the last piece that ends at a limit or below it; 0 if none does."""
            if limit == math.inf:
                return size
            return max(int((self.knots <= limit).sum()) - 1, 0)

        def after(limit: float) -> int:
            """Returns the first piece that begins at a limit or above it; the size if none does."""
            if limit == -math.inf:
                return 0
            return min(int((self.knots < limit).sum()) + 1, size)

        surely_inside = self._inside(after(low), before(high))
        perhaps_inside = self._inside(before(low), after(high))
        return _Ends(surely_inside.low, perhaps_inside.high)

    def _inside(self, first: int, last: int) -> _Ends:
        """Returns ends of intervals of a cell's part at the knots from `first` to before `last`."""
        along = np.zeros(len(self.knots))
        along[first:last] = 1.0
        if not 0 < along.sum() < len(along):
            # No knot is inside, or all are: the part is 0 or 1 in every cell.
            known = np.full(len(self.parts), along[0])
            return _Ends([known, known], [known, known])
        found = self._thetas(along)
        lows = [np.where(np.isinf(each), 0.0, each) for each in found.low]
        highs = [np.where(np.isinf(each), 1.0, each) for each in found.high]
        return _Ends(lows, highs)


def _first_and_last(
    total: float, weight: float, grid: Array, allowed: Array
) -> tuple[float, float]:
    """Returns the first and the last theta at which |total - theta weight| is allowed.

    What is allowed is linear between places of the grid. A result is infinite where it is an end of
    the grid, or where nothing is allowed.
    """

    def excess(theta: float) -> float:
        return float(abs(total - theta * weight) - np.interp(theta, grid, allowed))

    tried = [float(each) for each in grid]
    if weight and grid[0] < total / weight < grid[-1]:
        # Here nothing is left of the total.
        tried = sorted([*tried, total / weight])
    inside = [at for at, theta in enumerate(tried) if excess(theta) <= 0]
    if not inside:
        return -math.inf, math.inf
    first = inside[0]
    last = inside[-1]
    low = brentq(excess, tried[first - 1], tried[first]) if first else -math.inf
    is_end = last == len(tried) - 1
    high = math.inf if is_end else brentq(excess, tried[last], tried[last + 1])
    return low, high


@lru_cache(maxsize=4096)
def _quantile(confidence: float, terms: float) -> float:
    """Returns the quantile of Laplace noise of variance 1, as of a sum of `terms` equal terms."""
    return noise.half_width(confidence, 0.0, 0.0, math.inf, 1.0, terms)


def _range(number: int, top: int) -> tuple[int, int]:
    """Returns both ends, in ticks, of the range with this number among all that may be selected.

    Their widths are 2^(-k/2) of all `top` ticks, and they begin at steps of a quarter of a width.
    """
    before = 0
    for halvings in range(9):
        width = 2.0 ** (-halvings / 2)
        many = math.ceil((1.0 - width) / (width / 4)) if width < 1 else 0
        starts = [step * (width / 4) for step in range(many)]
        for start in [*starts, 1.0 - width]:
            if before == number:
                return round(start * top), round((start + width) * top)
            before += 1
    raise LookupError
