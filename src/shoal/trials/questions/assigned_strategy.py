"""Which part of the loss tells how assigned groups differ: what makes intervals the shortest.

Source: docs/theory/questions.md#assigned-groups.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.theory.questions.integer_strategy import IntegerForm, integer_strategy
from shoal.theory.questions.noisy_variance import half_width
from shoal.theory.questions.weights import scaled
from shoal.trials.questions.asked import Block, stacked
from shoal.trials.questions.assigned import Known, expected_variance, factors_of, form_of
from shoal.trials.questions.columns import Columns
from shoal.trials.questions.extremes import released_sums
from shoal.trials.questions.numbers import BITS, Numbers
from shoal.trials.questions.strategy import Expectations

Floats = NDArray[np.float64]
# Of the loss, for variances. The first that is best is taken.
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_CONFIDENCE = 0.95
_SPENT, _ROUNDS = Fraction(9999, 10000), 60
# Smaller steps are whole numbers that may be far above what is wanted.
_LEAST_STEP = 4.0


def numbers_by_group(
    columns: Columns, blocks: Sequence[Block], expected: Expectations, *, clip: bool
) -> Numbers:
    """Whole numbers for questions and for their variances by group, of a loss of at most epsilon.

    Variances have noise of one part of what is expected of each: b_k = r V_k with r = max_i sum_k
    (the most that unit i moves V_k)/V_k over the loss for them.

    Args:
        columns: Of the units.
        blocks: The questions, entry by entry.
        expected: Public numbers.
        clip: Whether sums of groups may be clipped by the stated spread.

    Raises:
        InputError: Questions that nearly depend on others, or an epsilon that leaves nothing.
    """
    rows = stacked(blocks)
    vectors = scaled(rows, expected.width)
    main = released_sums(vectors) @ vectors / expected.width
    relative = expected.spread / expected.width
    plain = [
        form_of(factor, columns.groups, relative if clip else None)[0]
        for each in blocks
        for factor in factors_of(columns, each)
    ]
    known = [Known(f, float(row @ row)) for f, row in zip(plain, rows, strict=True)]
    variance = expected_variance(rows, columns.groups, relative)
    # Of V in steps of 2^40 squared ticks, as forms are made.
    target = variance / np.array([each.worth for each in known])
    load = sum(f.moves[f.kind] / each for f, each in zip(plain, target.tolist(), strict=True))
    most = float(np.max(load)) / expected.loss
    recovered = np.linalg.norm(rows @ np.linalg.pinv(main, rcond=1e-12), axis=1)
    noise = recovered / expected.loss / expected.width
    share = min(SHARES, key=lambda each: _widths(known, variance, noise, most, each))
    return _within(main, plain, target * most / share * 2.0**-BITS, expected, share)


def _widths(
    known: Sequence[Known], variance: Floats, noise: Floats, most: float, share: float
) -> float:
    """The sum over questions of half widths, each over the question's length, for a share.

    Args:
        known: Of all forms.
        variance: Expected, in squared ranges.
        noise: Scales of the answers' noise for the whole loss, in ranges.
        most: Scale of a variance's noise over the variance, for the whole loss.
        share: Part of the loss for variances.
    """
    total = 0.0
    for at, each in enumerate(known):
        scale, loose = float(noise[at]) / (1 - share), most / share * float(variance[at])
        few, own = each.inflation(_CONFIDENCE), variance[at : at + 1]
        half = half_width(_CONFIDENCE, own, scale, loose, inflation=few)
        total += float(half[0]) / math.sqrt(each.length)
    return total


def _within(
    main: Floats,
    plain: Sequence[IntegerForm],
    steps: Floats,
    expected: Expectations,
    share: float,
) -> Numbers:
    """Forms of these steps, and linear numbers that spend what is left."""
    if float(steps.min()) < _LEAST_STEP or not float(steps.max()) < 2.0**58:
        raise InputError(
            f"epsilon {expected.loss:.3g} for {len(plain)} variances of assigned groups",
            "variances that fit 60 bits with their noise",
            "ask for a more moderate epsilon, or take a table of units",
        )
    every = zip(plain, steps.tolist(), strict=True)
    forms = tuple(replace(form, step=math.ceil(each)) for form, each in every)
    epsilon = expected.epsilon
    left, found = epsilon * Fraction(1 - share), None
    for _ in range(_ROUNDS):
        linear = integer_strategy(main, expected.width, left, bits=BITS)
        made = Numbers(linear.rows, linear.steps, 0, (), forms)
        over = made.loss - epsilon
        if over <= 0:
            found = made
            if made.loss >= _SPENT * epsilon:
                break
        # Units that move variances most need not be those that move numbers most.
        left -= over if over <= 0 else over * Fraction(1001, 1000)
        left = max(left, epsilon / 1000)
    if found is None or not found.fits:
        raise InputError(
            f"epsilon {expected.loss:.3g} for {main.shape[1]} units",
            "numbers that fit 60 bits",
            "ask for a more moderate epsilon",
        )
    return found
