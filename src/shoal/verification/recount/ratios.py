"""Recounts ratios of two sums in arms: the loss of a unit, ratios, and what compares them."""

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
    Fit,
    Spread,
    coarser_groups,
    fit_of,
    recovered_by,
    rows_of,
)
from shoal.verification.recount.reading import Array, Document, Release, differs

# A value with the ends of its interval.
_Ratio = tuple[float, float, float]


def differences(asked: Release) -> Iterator[str]:
    """Yields what does not follow from the released numbers."""
    loss = Fraction(sum(_most(each) for each in asked.outcomes) + _rounding(asked), 2**BITS)
    stated = asked.epsilon - asked.clustering_epsilon
    if not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    answers = list[_Ratio]()
    for question in asked.entries:
        for row in rows_of(asked.outcomes[0], question):
            own = _ratio(asked, question, np.maximum(row, 0))
            if question["kind"] == "means":
                answers.append(own)
                continue
            control = _ratio(asked, question, np.maximum(-row, 0))
            answers.append(_difference(own, control))
            if asked.lift:
                logs = [tuple(_log(part) for part in each) for each in (own, control)]
                known = all(math.isfinite(each[0]) for each in logs)
                value, low, high = _difference(*logs) if known else (math.nan, -math.inf, math.inf)
                answers.append((math.expm1(value), math.expm1(low), math.expm1(high)))
    for (value, low, high), given in zip(answers, asked.answers, strict=True):
        error = (high - low) / 2 / student(math.inf, asked.confidence)
        # Documents have no infinite numbers.
        true = [each if math.isfinite(each) else math.nan for each in (value, error, low, high)]
        slack = 1e-6 * error if math.isfinite(error) else 0.0
        yield from differs("ratio, its error and interval", given, true, 1e-9, slack)


def _most(one: Release) -> int:
    """Returns the most steps by which one outcome moves its numbers."""
    moved = -(-np.abs(one.rows) * TICKS // one.steps[:, None])
    if int(np.abs(one.rows).max()) > 2**40:
        raise ValueError("weights are too large")
    return int(max(moved.sum(axis=0).astype(object)))


def _rounding(asked: Release) -> int:
    """Returns the steps by which rounding moves all numbers of a unit and three moments."""
    one = asked.outcomes[0]
    return 2 * (1 if one.alone else len(one.steps)) + 3


def _ratio(asked: Release, question: Document, row: Array) -> _Ratio:
    """Returns the ratio of the means by a row of weights, with all r for which x - r y may be 0."""
    fits = [fit_of(each, question) for each in asked.outcomes]
    recovered = [recovered_by(each, row[None])[0] for each in asked.outcomes]
    whole = []
    for one, coefficients in zip(asked.outcomes, recovered, strict=True):
        mean = coefficients @ np.array(one.drawn_numbers) * one.width / TICKS
        whole.append(float(mean) + one.low + one.width / 2)
    x_mean, y_mean = whole
    x, y = (
        min(max(mean, one.low), one.low + one.width)
        for mean, one in zip(whole, asked.outcomes, strict=True)
    )
    least, most = _possible(*asked.outcomes)
    value = min(max(x / y, least), most) if y > 0 else least

    def excess(ratio: float) -> float:
        """Returns how far the mean of x - ratio y is from 0, beyond half of its interval."""
        half = _half(asked, fits, recovered, row, ratio)
        return float(abs(x_mean - ratio * y_mean) - half)

    first = _half(asked, fits, recovered, row, value) / max(y, 1e-9)
    return value, _end(excess, value, least, -first), _end(excess, value, most, first)


def _possible(x: Release, y: Release) -> tuple[float, float]:
    """Returns the least and the largest ratio of numbers in two ranges."""
    if y.low <= 0:
        return (0.0 if x.low >= 0 else -math.inf), math.inf
    corners = [
        top / bottom for top in (x.low, x.low + x.width) for bottom in (y.low, y.low + y.width)
    ]
    return min(corners), max(corners)


def _half(
    asked: Release, fits: list[Fit], recovered: list[Array], row: Array, ratio: float
) -> float:
    """Returns half of the interval of x - ratio y (docs/theory/experiments.md#ratios)."""
    x, y = asked.outcomes
    signed = np.array([x.width, -ratio * y.width])
    # In units of both widths the square of x - ratio y has the parts a, b and c.
    a, b = _most(x), _most(y)
    p = a / (a + b)
    u, w = signed
    parts = [u**2 + u * w * p / (1 - p), w**2 + u * w * (1 - p) / p, -u * w / (p * (1 - p))]
    units = [-(-2 * TICKS**2 // a) / TICKS**2, -(-2 * TICKS**2 // b) / TICKS**2, 2 / (a + b)]
    coarser = coarser_groups(x, fits[0])
    moments = np.array(asked.drawn_moments, dtype=float).reshape(-1, 3)
    factors = np.array(parts) * np.array(units)
    squares = (moments @ factors) @ coarser
    moment_noise = coarser.sum(axis=0) * 2.0 ** (2 * BITS) * float((factors**2).sum())
    hats = [fit.hat * each for fit, each in zip(fits, signed, strict=True)]
    drawn = (np.array(each.drawn_numbers) / TICKS for each in (x, y))
    predicted = sum(hat @ numbers for hat, numbers in zip(hats, drawn, strict=True))
    moves = np.concatenate(hats, axis=1) * DEVIATION
    of_row = [each * size * DEVIATION for each, size in zip(recovered, signed, strict=True)]
    spread = Spread(squares, moment_noise, np.asarray(predicted), moves)
    return spread.half(x, fits[0], row, np.concatenate(of_row) ** 2)


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
            return tried
        if excess(tried) > 0:
            for _ in range(50):
                middle = (inside + tried) / 2
                if excess(middle) > 0:
                    tried = middle
                else:
                    inside = middle
            return tried
        if tried == end:
            return end
        inside = tried
    return end


def _difference(one: Any, other: Any) -> _Ratio:
    """Returns a difference of independent estimates with its interval (Donner and Zou, 2012)."""
    value = one[0] - other[0]
    down = math.hypot(one[0] - one[1], other[2] - other[0])
    up = math.hypot(one[2] - one[0], other[0] - other[1])
    return value, value - down, value + up


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf
