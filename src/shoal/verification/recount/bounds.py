"""Recounts means and effects whatever missing outcomes are: losses, values and intervals."""

import math
from collections.abc import Iterator
from fractions import Fraction

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
    recovered_by,
    rows_of,
)
from shoal.verification.recount.reading import Array, Document, Release, differs

# The ends of an interval, and between them the ends of what missing outcomes leave open.
_Interval = tuple[float, float, float, float]


def differences(asked: Release) -> Iterator[str]:
    """Yields what does not follow from the released numbers."""
    own = asked.outcomes[0]
    loss = loss_of(own)
    stated = asked.epsilon - asked.clustering_epsilon
    # Numbers of missing outcomes are rounded as well.
    loss = (loss or Fraction(0)) + Fraction(1 if own.alone else len(own.steps), 2**BITS)
    if not own.moment_step or not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    answers = list[_Interval]()
    for question in asked.entries:
        for row in rows_of(own, question):
            found = _mean(asked, question, np.maximum(row, 0))
            if question["kind"] != "means":
                found = _difference(found, _mean(asked, question, np.maximum(-row, 0)))
            answers.append(found)
    for (low, bottom, top, high), given in zip(answers, asked.answers, strict=True):
        error = (high - low) / 2 / student(math.inf, asked.confidence)
        true = [(bottom + top) / 2, error, low, high]
        yield from differs("answer, its error and interval", given, true, 1e-9, 1e-6 * error)


def _mean(asked: Release, question: Document, row: Array) -> _Interval:
    """Returns the mean by a row of weights (docs/theory/experiments.md#missing-outcomes)."""
    both = asked.outcomes
    own = both[0]
    fits = [fit_of(each, question) for each in both]
    recovered = [recovered_by(each, row[None])[0] for each in both]
    numbers = [np.array(each.drawn_numbers) / TICKS for each in both]
    value, missing = (
        float(coefficients @ drawn) * own.width
        for coefficients, drawn in zip(recovered, numbers, strict=True)
    )
    reach = own.width / 2
    missing = min(max(missing, 0.0), reach)
    unit = own.moment_step * (own.width / TICKS) ** 2
    coarser = coarser_groups(own, fits[0])
    squares = np.array(asked.drawn_moments) @ coarser * unit
    moment_noise = coarser.sum(axis=0) * (2.0**BITS * unit) ** 2
    deviation = DEVIATION * own.width
    parts = (np.concatenate(recovered) * deviation) ** 2
    ends = []
    for sign in (-1, 1):
        hats = [fits[0].hat, sign * fits[1].hat]
        predicted = own.width * sum(hat @ each for hat, each in zip(hats, numbers, strict=True))
        moves = np.concatenate(hats, axis=1) * deviation
        spread = Spread(squares, moment_noise, np.asarray(predicted), moves)
        mean = min(max(value + sign * missing, -reach), reach)
        ends.append((own.low + reach + mean, spread.half(own, fits[0], row, parts)))
    (bottom, down), (top, up) = ends
    return max(bottom - down, own.low), bottom, top, min(top + up, own.low + own.width)


def _difference(one: _Interval, other: _Interval) -> _Interval:
    """Returns a difference of independent estimates (Donner and Zou, 2012)."""
    bottom = one[1] - other[2]
    top = one[2] - other[1]
    low = bottom - math.hypot(one[1] - one[0], other[3] - other[2])
    return low, bottom, top, top + math.hypot(one[3] - one[2], other[1] - other[0])
