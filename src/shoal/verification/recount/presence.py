"""Recounts private counts: all of a release, since it follows from the drawn whole numbers.

Source: docs/theory/private-counts.md.
"""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import numpy as np
from scipy.optimize import brentq

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Document, Release, differs

_TOTALS = ("users", "records", "sum")
# Ends of intervals are multiples of this part of what a statistic can be.
_STEPS = 100
# Quantiles of noise that differ by less are the same.
_SAME = 1e-6
# Epsilon times users below which there are few users, and the least number of cells that differ.
_FEW_USERS = 200
_FEW_CELLS = 3
_CLOSE = 1e-8


def differences(release: Release) -> Iterator[str]:
    """Yields what does not follow from the request, the rounds and the drawn numbers."""
    yield from _loss(release)
    caps = _caps(release)
    users = _users(release)
    yield from differs("the number of users", release.users, users, _CLOSE)
    if caps.keys() != release.caps.keys():
        yield "there are other caps than blocks"
    for name, cap in caps.items():
        stated = [float(release.caps[name][each]) for each in cap]
        yield from differs(f"the cap of {name}", stated, [*cap.values()], _CLOSE)
    if release.cells is None and release.sizes:
        block = next(iter(release.sizes))
        users = sum(release.sizes[block]) / release.rounds["sizes"]["blocks"][block]
    few = float(Fraction(release.asked)) * users < _FEW_USERS
    values = None
    if release.range is not None:
        values = _Values(release, caps)
        yield from differs("the knots", release.knots, values.knots, _CLOSE, 1e-9)
    recounted = [*_rows(release, caps, values, few=few)]
    if len(recounted) != len(release.rows):
        yield f"there are {len(release.rows)} statistics, not {len(recounted)}"
        return
    for stated, (name, found) in zip(release.rows, recounted, strict=True):
        yield from _row_differs(name, stated, found)


def _loss(release: Release) -> Iterator[str]:
    """Yields a sentence unless what was asked is stated, and units over noise add up to it."""
    loss = Fraction(0)
    for each in release.rounds.values():
        loss += Fraction(sum(each["blocks"].values()), 2 ** each["bits"])
    stated = release.epsilon
    if not stated * (1 - Fraction(1, 10**6)) <= loss <= stated:
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if release.delta or stated != Fraction(release.asked):
        yield "the loss is not the one that was asked for"


def _row_differs(name: str, stated: Document, found: Document) -> Iterator[str]:
    """Yields what of one statistic of all cells does not follow."""
    if (stated["statistic"], stated["status"]) != (name, found.pop("status")):
        yield f"name or status of {name} does not follow"
    slack = 1e-9 * (1 + float(np.nanmax(np.abs(found["value"]), initial=0.0)))
    ends = found.pop("ends", None)
    for each, true in found.items():
        given = np.array(stated[each], dtype=np.float64)
        yield from differs(f"{each} of {name}", given, true, _CLOSE, slack)
    if ends is not None:
        yield from _between(name, stated, ends, slack)


def _between(name: str, stated: Document, ends: Any, slack: float) -> Iterator[str]:
    """Yields a sentence if an interval is not one of those that rounding of quantiles allows."""
    for each, (least, most) in zip(("low", "high"), ends, strict=True):
        given = np.array(stated[each], dtype=np.float64)
        if not ((least - slack <= given) & (given <= most + slack)).all():
            yield f"{each} of {name} does not follow from the parts"


def _scale(release: Release, draw: str, block: str) -> float:
    """The noise of a block in users."""
    found = release.rounds[draw]
    return float(2.0 ** found["bits"] / found["blocks"][block])


def _users(release: Release) -> float:
    """About how many users there are: what the first look heard, or what was said."""
    if release.cells is None:
        return float(release.guess)
    units = sum(release.rounds["cells"]["blocks"].values())
    return max(float(sum(release.cells) / units), 1.0)


def _caps(release: Release) -> dict[str, Document]:
    """What a user counts for in each block, from the sizes that the second look saw."""
    found = {}
    for block in release.rounds["answers"]["blocks"]:
        if block == "tails":
            continue
        if block in release.sizes:
            cap = _cap_of(release, block)
        else:
            given = None if block == "users" else release.records_per_user
            cap = _cap(float(release.size if given is None else given), hull=given is None)
        if block == "users":
            free = release.size <= 5 or not cap["known"]
            if free or release.size + 2 <= 3 * max(cap["size"], 2.0):
                cap = _cap(float(release.size), hull=True)
        found[block] = cap
    return found


def _cap(size: float, **more: Any) -> Document:
    plain = {"size": size, "up": 1.0, "moved": 0.0, "users": 0.0, "known": True, "hull": False}
    return plain | more


def _cap_of(release: Release, block: str) -> Document:
    """The cap with the least noise and loss (docs/theory/private-counts.md#caps-and-priorities)."""
    octaves = {"records": (0, 20), "sum": (-8, 20), "values": (-6, 20)}
    first, last = octaves.get(block, (0, math.log2(max(release.size, 2))))
    scale = _scale(release, "sizes", block)
    seen = [each / release.rounds["sizes"]["blocks"][block] for each in release.sizes[block]]
    ends = [2.0 ** (first + at / 2) for at in range(len(seen))]
    if first + (len(seen) - 1) / 2 > last + 0.5:
        raise ValueError
    top = seen.index(max(seen))
    low = high = top
    while low > 0 and sum(seen[max(low - 2, 0) : low]) > 2 * scale:
        low -= 1
    while high < len(seen) - 1 and sum(seen[high + 1 : high + 3]) > 2 * scale:
        high += 1
    if seen[top] < 6 * scale or sum(seen[low : high + 1]) < 0.6 * sum(seen):
        return _cap(ends[0], moved=0.5, known=False)
    # What may be noise decides no cap, but how far a total can be trusted.
    bins, possible = (
        {
            max(end / 2**0.25, ends[0]): max(number, 0.0)
            for at, (end, number) in enumerate(zip(ends, seen, strict=True))
            if low <= at <= high or number > scales * scale
        }
        for scales in (10, 6)
    )
    whole = sum(size * many for size, many in bins.items())
    lost = 0.1 if block == "values" else 0.5
    answers = _scale(release, "answers", block)
    under = [sum(min(size, end) * many for size, many in bins.items()) for end in ends]
    costs = [
        release.size * end * answers + lost * (whole - kept)
        for end, kept in zip(ends, under, strict=True)
    ]
    at = costs.index(min(costs))
    end = ends[at]
    all_of_it = sum(size * many for size, many in possible.items())
    cut = sum(min(size, end) * many for size, many in possible.items())
    moved = sum(
        max(many * size / all_of_it - many * min(size, end) / cut, 0.0)
        for size, many in possible.items()
    )
    moved += 4 * scale * end / whole
    return _cap(end, up=min(whole / under[at], 2.0), moved=min(moved, 0.5), users=under[at] / end)


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


def _limits(name: str) -> tuple[float, float]:
    """The limits of a share; of another statistic nothing that is looked at."""
    numbers = [float(each) for each in re.findall(r"[-+.\d]+(?:[eE][-+]?\d+)?", name)]
    if name.startswith("share_above"):
        return numbers[0], math.inf
    if name.startswith("share_below"):
        return -math.inf, numbers[0]
    if name.startswith("share_between"):
        return numbers[0], numbers[1]
    return -math.inf, math.inf


def _total(release: Release, name: str, cap: Document, *, few: bool) -> Document:
    """A total of all cells, its interval and its status."""
    answers = release.rounds["answers"]["blocks"]
    unit = release.bounds[1] if name == "sum" else 1.0
    size = unit if cap["hull"] else cap["size"] * cap["up"] * unit
    number = np.array(release.answers[name], dtype=np.float64) / answers[name] * size
    scale = _scale(release, "answers", name) * size
    cells = release.size
    variance = 2 * scale**2
    off = min(cap["up"] - 1 + cap["moved"], 1.0) * np.maximum(number, 0.0)
    half = scale * math.log(1 / (1 - release.confidence))
    if cap["hull"]:
        variance = scale**2 * (cells + 2) * (cells + 3) / 6
        half = scale * _hull_quantile(cells, 1 - release.confidence)
        off = np.zeros(cells)
    middle = 0.0 if cells < _FEW_CELLS else float(np.mean(number))
    between = max(float(np.mean((number - middle) ** 2)) - variance, 0.0)
    status = "too noisy" if variance > between else "reliable"
    if cap["moved"] > 1 / 4:
        status = "few users dominate"
    looked = name in release.sizes and not cap["hull"]
    if not cap["known"] or (few and looked):
        status = "few users"
    value = np.maximum(number, 0.0)
    # What was seen of few users decides only what is said of it.
    noisy = cap["known"] and cap["moved"] <= 1 / 4 and variance > between
    if noisy and cells >= _FEW_CELLS:
        middle = max(middle, 0.0)
        value = np.maximum(middle + (number - middle) * between / (between + variance), 0.0)
    low = np.maximum(np.maximum(number, 0.0) - half - off, 0.0)
    high = np.maximum(number, 0.0) + half + off
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
    """The size in scales of what the noise of one cell exceeds with this chance."""

    def tail(size: float) -> float:
        inner = mpmath.gammainc(cells - 1, size, regularized=True) if cells > 1 else 0
        found = (
            mpmath.gammainc(cells + 1, size, regularized=True)
            - 2 * size / (cells + 1) * mpmath.gammainc(cells, size, regularized=True)
            + size**2 / (cells * (cells + 1)) * inner
        )
        return float(found) - miss

    return float(brentq(tail, 1e-9, 50.0 * (cells + 5), xtol=1e-11))


class _Values:
    """Parts of cells at the knots of the range that was selected."""

    def __init__(self, release: Release, caps: dict[str, Document]) -> None:
        self.release = release
        low, high = release.bounds
        top = 2**release.tick_bits
        first, last = _range(release.range, top)
        kinds = [each for each in release.statistics if each not in _TOTALS]
        pieces = 1 if kinds == ["mean"] else release.pieces
        ticks = [first + (last - first) * at // pieces for at in range(pieces + 1)]
        self.knots = low + np.array(ticks) / top * (high - low)
        self.outer = [low, *self.knots[1:-1].tolist(), high]
        blocks = release.rounds["answers"]["blocks"]
        drawn = np.array(release.answers["values"], dtype=np.float64) / blocks["values"]
        self.parts = drawn.reshape(pieces + 1, release.size).T
        self.scale = _scale(release, "answers", "values")
        self.weight = self.parts.sum(axis=1)
        self.hidden = caps["values"]["moved"] / 3
        pooled = np.maximum(self.parts.sum(axis=0), 0.0)
        everything = pooled.sum()
        self.pool = pooled / everything if everything > 0 else np.full(pieces + 1, 1 / (pieces + 1))
        tails = np.array(release.answers["tails"], dtype=np.float64) / blocks["tails"]
        sure = np.where(tails > 3 * _scale(release, "answers", "tails"), tails, 0.0)
        below, _, above = sure / max(float(tails.sum()), 1.0)
        most = 0.1 * (self.knots[-1] - self.knots[0])
        away = np.array([below * (low - self.knots[0]), above * (high - self.knots[-1])])
        self.shift = np.clip(away, -most, most)
        self.is_range_wrong = float(np.abs(away).max()) > (self.knots[-1] - self.knots[0]) / 2
        # What lies beyond each end, one scale of noise more, and up to three times as much in cells
        # with more of their weight there.
        noisy = np.maximum(tails[[0, 2]], 0.0) + _scale(release, "answers", "tails")
        part = np.clip(noisy / max(float(tails.sum()), 1.0), 0.0, 1.0)
        self.far = part * np.array([self.knots[0] - low, high - self.knots[-1]])
        # Parts weighed by knots: their noise, and by how much cells differ beyond it.
        centred = self.knots - float(self.pool @ self.knots)
        self.noise = 2 * self.scale**2 * float(centred @ centred)
        self.spread = (self.knots[-1] - self.knots[0]) ** 2 / 12
        if release.size >= _FEW_CELLS:
            moved = self.parts @ centred
            self.spread = max(float((moved**2 - self.noise).sum()) / self._heavy(), 0.0)
        self.clear = (self.weight > 0) & (self.noise <= self.spread * self.weight**2)

    def _heavy(self) -> float:
        """The sum of squared weights without their noise."""
        squares = self.weight**2 - 2 * len(self.knots) * self.scale**2
        return max(float(np.maximum(squares, 0.0).sum()), 1e-9)

    def row(self, name: str, limits: tuple[float, float], *, is_bin: bool) -> Document:
        """Value, interval and status of one statistic."""
        ends, outlying = self.mean_ends
        status = np.where(self.clear, "reliable", "too noisy").astype(object)
        status[self.clear & outlying] = "outlying users"
        if name == "mean":
            value = self._mean()
            if self.is_range_wrong:
                status[self.clear] = "outlying users"
        elif name == "median" or name.startswith("quantile"):
            level = 0.5 if name == "median" else float(name[9:-1])
            value = self._quantile(level)
            ends = self._quantile_ends(level)
        else:
            value = self._above(limits[0]) - self._above(limits[1])
            ends = self._share_ends(*limits)
            first, last = self.knots[0], self.knots[-1]
            if not is_bin and any(math.isfinite(x) and not first < x < last for x in limits):
                status[self.clear] = "outlying users"
        (least, upto), (from_, most) = ends
        own = (np.minimum(least, value), np.minimum(upto, value))
        other = (np.maximum(from_, value), np.maximum(most, value))
        return {
            "value": value,
            "status": status.tolist(),
            "ends": (own, other),
        }

    def _mean(self) -> Array:
        """Means: a cell's own, or one that is drawn towards all cells."""
        own = self.parts @ self.knots / np.maximum(self.weight, self.scale / 2)
        middle = float(self.pool @ self.knots)
        weight = np.maximum(self.weight, 0.0)
        moved = self.parts @ self.knots - middle * self.weight
        least = np.maximum(weight**2 * self.spread + self.noise, 1e-30)
        drawn = middle + moved * weight * self.spread / least
        found = np.where(self.clear, own, drawn)
        return np.asarray(np.clip(found, self.knots[0], self.knots[-1]) + self.shift.sum())

    def _shares(self) -> Array:
        """Parts over the weight, of unclear cells drawn towards those of all."""
        many = len(self.knots)
        own = self.parts / np.maximum(self.weight, self.scale / 2)[:, None]
        noise = 2 * self.scale**2 * (many - 2 + many * float(self.pool @ self.pool))
        away = self.parts - np.outer(self.weight, self.pool)
        spread = float(((away**2).sum(axis=1) - noise).sum()) / self._heavy()
        spread = min(max(spread, 1e-4), 1.0)
        weight = np.maximum(self.weight, 0.0)[:, None]
        drawn = self.pool + away * weight * spread / (weight**2 * spread + noise)
        return np.asarray(np.where(self.clear[:, None], own, drawn))

    def _curve(self) -> tuple[Array, list[list[float]]]:
        """Places, and the part above each of them: 1, the middles of pieces, 0."""
        places = np.r_[self.knots[0], (self.knots[1:] + self.knots[:-1]) / 2, self.knots[-1]]
        curves = []
        for row in self._shares().tolist():
            # Neighbours that rise are joined to a block with their mean, until none rises.
            blocks: list[list[float]] = []
            for at in range(1, len(row)):
                blocks.append([min(max(sum(row[at:]), 0.0), 1.0)])
                while len(blocks) > 1 and np.mean(blocks[-2]) < np.mean(blocks[-1]):
                    last = blocks.pop()
                    blocks[-1] += last
            fallen = [float(np.mean(block)) for block in blocks for _ in block]
            curves.append([1.0, *fallen, 0.0])
        return places, curves

    def _quantile(self, level: float) -> Array:
        """Where the curve is 1 - level."""
        places, curves = self._curve()
        return np.array([np.interp(level - 1, [-y for y in row], places) for row in curves])

    def _above(self, limit: float) -> Array:
        """The part above a limit."""
        places, curves = self._curve()
        return np.array([np.interp(limit, places, row) for row in curves])

    def _thetas(self, along: Array) -> tuple[Any, Any]:
        """The first and last theta that looks like noise, with quantiles a bit too small or large.

        Each is the lowest and highest such theta, and where that is the end of what is tried.
        """
        lows = []
        highs = []
        grid = np.linspace(along.min(), along.max(), _STEPS + 1)
        step = grid[1] - grid[0]
        allowed = []
        for theta in grid:
            squares = float(((along - theta) ** 2).sum())
            fourths = float(((along - theta) ** 4).sum())
            allowed.append(self._noise(squares, fourths))
        room = self.hidden * np.maximum(self.weight, 0.0) * (grid[-1] - grid[0])
        off = np.abs((along - grid[:, None]) @ self.parts.T)
        for factor in (1 - _SAME, 1 + _SAME):
            inside = off <= np.array(allowed)[:, None] * factor + room
            none = ~inside.any(axis=0)
            first = np.where(none, 0, inside.argmax(axis=0))
            last = np.where(none, _STEPS, _STEPS - inside[::-1].argmax(axis=0))
            lows.append(np.where(first == 0, -math.inf, grid[first] - step))
            highs.append(np.where(last == _STEPS, math.inf, grid[last] + step))
        return (lows[1], lows[0]), (highs[0], highs[1])

    def _noise(self, squares: float, fourths: float) -> float:
        """The quantile of a weighted sum of Laplace noise."""
        spread = math.sqrt(2 * squares)
        return self.scale * spread * _quantile(self.release.confidence, squares**2 / fourths)

    @cached_property
    def mean_ends(self) -> tuple[Any, Array]:
        """Ends of intervals of means, and which cells reach an end of the range."""
        low, high = self.release.bounds
        (least, upto), (from_, most) = self._thetas(self.knots)
        at_ends = self._shares()[:, [0, -1]] / np.maximum(self.pool[[0, -1]], 0.02)
        below, above = self.far[:, None] * np.clip(at_ends, 1.0, 3.0).T
        lows = [np.where(np.isinf(x), low, np.maximum(x - below, low)) for x in (least, upto)]
        highs = [np.where(np.isinf(x), high, np.minimum(x + above, high)) for x in (from_, most)]
        outlying = np.isinf(least) & (self.knots[0] > low)
        outlying |= np.isinf(most) & (self.knots[-1] < high)
        return (lows, highs), outlying

    def _quantile_ends(self, level: float) -> tuple[Any, Any]:
        """Ends of pieces that surely have more, or less, than 1 - level above."""
        low, high = self.release.bounds
        pieces = len(self.knots) - 1
        least = np.full(len(self.parts), low)
        most = np.full(len(self.parts), high)
        going_up = np.ones(len(self.parts), dtype=bool)
        going_down = going_up.copy()
        for at in range(1, pieces + 1):
            going_up &= self._surely(at, level) > 0
            least = np.where(going_up, self.knots[at - 1], least)
        for at in range(pieces, 0, -1):
            going_down &= self._surely(at, level) < 0
            most = np.where(going_down, self.knots[at], most)
        return (least, least), (most, most)

    def _surely(self, piece: int, level: float) -> Array:
        """Whether more (1) or less (-1) than 1 - level of the weight is above, or nobody knows."""
        many = piece
        others = len(self.knots) - many
        squares = many * (1 - level) ** 2 + others * level**2
        fourths = many * (1 - level) ** 4 + others * level**4
        allowed = self._noise(squares, fourths) + self.hidden * np.maximum(self.weight, 0.0)
        over = self.parts[:, piece:].sum(axis=1) - (1 - level) * self.weight
        return np.where(over > allowed, 1, np.where(over < -allowed, -1, 0))

    def _share_ends(self, low: float, high: float) -> tuple[Any, Any]:
        """Ends of intervals of a share: pieces that are surely inside, or not surely outside."""
        size = len(self.knots)

        def before(limit: float) -> int:
            if limit == math.inf:
                return size
            return max(int((self.knots <= limit).sum()) - 1, 0)

        def after(limit: float) -> int:
            if limit == -math.inf:
                return 0
            return min(int((self.knots < limit).sum()) + 1, size)

        inner = self._inside(after(low), before(high))[0]
        outer = self._inside(before(low), after(high))[1]
        return inner, outer

    def _inside(self, first: int, last: int) -> tuple[Any, Any]:
        """Ends of the part of the weight at some knots."""
        along = np.zeros(len(self.knots))
        along[first:last] = 1.0
        every = np.full(len(self.parts), along[0])
        if not 0 < along.sum() < len(along):
            return (every, every), (every, every)
        (least, upto), (from_, most) = self._thetas(along)
        lows = [np.where(np.isinf(each), 0.0, each) for each in (least, upto)]
        highs = [np.where(np.isinf(each), 1.0, each) for each in (from_, most)]
        return (lows[0], lows[1]), (highs[0], highs[1])


@lru_cache(maxsize=4096)
def _quantile(confidence: float, terms: float) -> float:
    """The quantile of Laplace noise of variance 1, as if of so many equal terms."""
    return noise.half_width(confidence, 0.0, 0.0, math.inf, 1.0, terms)


def _range(position: int, top: int) -> tuple[int, int]:
    """Both ends of a range by its number: widths 2^(-k/2), in steps of a quarter of each."""
    at = 0
    for halvings in range(9):
        width = 2.0 ** (-halvings / 2)
        many = math.ceil((1.0 - width) / (width / 4)) if width < 1 else 0
        starts = [step * (width / 4) for step in range(many)]
        for start in [*starts, 1.0 - width]:
            if at == position:
                return round(start * top), round((start + width) * top)
            at += 1
    raise LookupError
