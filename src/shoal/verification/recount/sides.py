"""Recounts ratios of two sums, and bounds of means whatever missing outcomes are."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.verification.recount.noise import student
from shoal.verification.recount.questions import (
    BITS,
    DEVIATION,
    TICKS,
    Spread,
    coarser_groups,
    fit_of,
    loss_of,
    most_of,
    recovered_by,
    rows_of,
)
from shoal.verification.recount.reading import Array, Document, Release, differs

# The ends of an interval, and between them those of the part that nothing drawn leaves open.
_Interval = tuple[float, ...]


def differences(asked: Release) -> Iterator[str]:
    """Yields what does not follow from the released numbers."""
    loss = _loss(asked)
    stated = asked.epsilon - asked.clustering_epsilon
    if not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    answers = list[_Interval]()
    for question in asked.entries:
        for row in rows_of(asked.outcomes[0], question):
            own = _Side(asked, question, np.maximum(row, 0)).interval()
            if question["kind"] == "means":
                answers.append(_cut(asked, own, compared=False))
                continue
            control = _Side(asked, question, np.maximum(-row, 0)).interval()
            answers.append(_cut(asked, _less(own, control), compared=True))
            if asked.kind == "ratios" and asked.lift:
                logs = [tuple(_log(each) for each in side) for side in (own, control)]
                known = all(math.isfinite(each[1]) for each in logs)
                lift = _less(*logs) if known else (-math.inf, math.nan, math.nan, math.inf)
                answers.append(tuple(math.expm1(each) for each in lift))
    for (low, bottom, top, high), given in zip(answers, asked.answers, strict=True):
        error = (high - low) / 2 / student(math.inf, asked.confidence)
        # Documents have no infinite numbers.
        every = ((bottom + top) / 2, error, low, high)
        true = [each if math.isfinite(each) else math.nan for each in every]
        finite = [abs(each) for each in true if math.isfinite(each)]
        slack = 1e-6 * (error if math.isfinite(error) else max(finite, default=0.0))
        yield from differs("answer, its error and interval", given, true, 1e-9, slack)


def _loss(asked: Release) -> Fraction:
    """Returns the loss of a unit, with that of rounding numbers and second moments."""
    first, second = asked.outcomes
    numbers = 1 if first.alone else len(first.steps)
    if asked.kind == "ratios":
        return Fraction(most_of(first) + most_of(second) + 2 * numbers + 3, 2**BITS)
    found = loss_of(first)
    if found is None or not first.moment_step:
        raise ValueError("second moments are not free")
    return found + Fraction(numbers, 2**BITS)


class _Side:
    """The means of two columns over a row of weights, and what is known of the side."""

    def __init__(self, asked: Release, question: Document, row: Array) -> None:
        self.asked = asked
        self.row = row
        self.columns = asked.outcomes
        self.fits = [fit_of(each, question) for each in self.columns]
        self.recovered = [recovered_by(each, row[None])[0] for each in self.columns]
        self.numbers = [np.array(each.drawn_numbers) / TICKS for each in self.columns]
        every = zip(self.recovered, self.numbers, self.columns, strict=True)
        self.means = [float(each @ drawn) * one.width for each, drawn, one in every]

    def interval(self) -> _Interval:
        """Returns the interval of a ratio or of a mean."""
        return self._ratio() if self.asked.kind == "ratios" else self._bounds()

    def _bounds(self) -> _Interval:
        """Returns a mean (docs/theory/experiments.md#missing-outcomes)."""
        one = self.columns[0]
        reach = one.width / 2
        value, missing = self.means
        missing = min(max(missing, 0.0), reach)
        factors = np.array([one.moment_step * (one.width / TICKS) ** 2])
        ends = []
        for sign in (-1, 1):
            mean = min(max(value + sign * missing, -reach), reach)
            ends.append((one.low + reach + mean, self._half(sign, factors)))
        (bottom, down), (top, up) = ends
        return bottom - down, bottom, top, top + up

    def _ratio(self) -> _Interval:
        """Returns a ratio with all r for which x - r y may be 0."""
        x, y = (
            each + one.low + one.width / 2
            for each, one in zip(self.means, self.columns, strict=True)
        )
        inside_x, inside_y = (
            min(max(mean, one.low), one.low + one.width)
            for mean, one in zip((x, y), self.columns, strict=True)
        )
        least, most = _possible(*self.columns)
        if inside_y <= 0:
            return least, math.nan, math.nan, most
        value = inside_x / inside_y
        half = self._half(-value, self._factors(-value))
        if abs(x - value * y) >= half:
            x = inside_x
            y = inside_y

        def excess(ratio: float) -> float:
            """Returns how far the mean of x - ratio y is from 0, beyond half of its interval."""
            return float(abs(x - ratio * y) - self._half(-ratio, self._factors(-ratio)))

        first = half / max(inside_y, 1e-3 * self.columns[1].width)
        return _end(excess, value, least, -first), value, value, _end(excess, value, most, first)

    def _factors(self, factor: float) -> Array:
        """Returns by which factors steps of three second moments add up to that of x + factor y."""
        x, y = self.columns
        a = most_of(x)
        b = most_of(y)
        p = a / (a + b)
        # In units of both widths.
        u = x.width
        w = factor * y.width
        parts = [u**2 + u * w * p / (1 - p), w**2 + u * w * (1 - p) / p, -u * w / (p * (1 - p))]
        units = [-(-2 * TICKS**2 // a) / TICKS**2, -(-2 * TICKS**2 // b) / TICKS**2, 2 / (a + b)]
        return np.asarray(np.array(parts) * np.array(units))

    def _half(self, factor: float, factors: Array) -> float:
        """Returns half of the interval of x + factor y, from second moments with these factors."""
        x, y = self.columns
        widths = x.width, factor * y.width
        coarser = coarser_groups(x, self.fits[0])
        moments = np.array(self.asked.drawn_moments, dtype=float).reshape(-1, len(factors))
        noise = 2.0 ** (2 * BITS) * float((factors**2).sum())
        hats = [fit.hat * width for fit, width in zip(self.fits, widths, strict=True)]
        parts = [each * width for each, width in zip(self.recovered, widths, strict=True)]
        predicted = sum(hat @ each for hat, each in zip(hats, self.numbers, strict=True))
        spread = Spread(
            (moments @ factors) @ coarser,
            coarser.sum(axis=0) * noise,
            np.asarray(predicted),
            np.concatenate(hats, axis=1) * DEVIATION,
        )
        variances = (np.concatenate(parts) * DEVIATION) ** 2
        return spread.half(x, self.fits[0], self.row, variances)


def _possible(x: Release, y: Release) -> tuple[float, float]:
    """Returns the least and the largest ratio of numbers in two ranges."""
    if y.low <= 0:
        return (0.0 if x.low >= 0 else -math.inf), math.inf
    corners = [
        top / bottom for top in (x.low, x.low + x.width) for bottom in (y.low, y.low + y.width)
    ]
    return min(corners), max(corners)


def _end(excess: Callable[[float], float], value: float, end: float, step: float) -> float:
    """Returns the first place outwards from which 0 is not likely any more, or the end."""
    if value == end or excess(value) >= 0:
        return value
    inside = value
    for _ in range(60):
        step *= 2
        tried = value + step / 4
        if math.isinf(tried) or abs(tried - value) >= abs(end - value):
            tried = end
        if math.isinf(tried):
            break
        if excess(tried) > 0:
            for _ in range(50):
                middle = (inside + tried) / 2
                if excess(middle) > 0:
                    tried = middle
                else:
                    inside = middle
            return tried
        if tried == end:
            break
        inside = tried
    return end


def _cut(asked: Release, interval: _Interval, *, compared: bool) -> _Interval:
    """Returns the part of the interval of a mean, or of two `compared` ones, in the range."""
    low, bottom, top, high = interval
    if asked.kind == "ratios":
        return interval
    one = asked.outcomes[0]
    least = -one.width if compared else one.low
    most = one.width if compared else one.low + one.width
    return max(low, least), bottom, top, min(high, most)


def _less(one: Any, other: Any) -> _Interval:
    """Returns a difference of independent estimates (Donner and Zou, 2012)."""
    if math.isnan(one[1] + other[1]):
        return -math.inf, math.nan, math.nan, math.inf
    bottom = one[1] - other[2]
    top = one[2] - other[1]
    low = bottom - math.hypot(one[1] - one[0], other[3] - other[2])
    return low, bottom, top, top + math.hypot(one[3] - one[2], other[1] - other[0])


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf
