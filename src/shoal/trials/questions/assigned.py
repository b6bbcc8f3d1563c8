"""Variances of questions where whole groups were assigned: CR2 as public forms, and their noise.

Source: docs/theory/questions.md#assigned-groups.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, printable
from shoal.theory.questions.integer_strategy import IntegerForm, bits_for, integer_form
from shoal.theory.questions.variance_forms import cr2
from shoal.trials.questions.asked import EFFECT, MEANS, MOST_WEIGHTS, Asked, Block, design_of
from shoal.trials.questions.columns import Columns
from shoal.trials.questions.numbers import BITS
from shoal.trials.student import quantile

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
# Of outcomes of one assigned group, by which predictions and limits are made.
CORRELATION = 0.3
# Sums of groups are clipped to this many of their expected deviations.
DEVIATIONS = 3.0
# By how much the mean of a variance may miss the square of the weights, and whole numbers their
# factor, in parts of 1.
_UNBIASED, _ROUNDED = 1e-6, 0.51
# Columns times units of regressors, and groups times units of a variance.
_MOST_DESIGN, _MOST_FACTOR = 1 << 26, 1 << 25


def design_for(columns: Columns, asked: Asked) -> Floats:
    """Regressors of an entry: clusters and arms, by subgroups; arms alone; or its regression's.

    Raises:
        InputError: More of them than memory has room for.
    """
    if asked.kind == MEANS:
        return np.asarray(columns.arm[:, None] == np.arange(len(columns.arms)), dtype=np.float64)
    if asked.kind != EFFECT:
        return design_of(columns, asked.columns)[1]
    value = columns.covariate(asked.by).codes if asked.by else np.zeros_like(columns.arm)
    many = int(value.max()) + 1
    home = np.unique(columns.cluster * many + value, return_inverse=True)[1]
    arms = (len(columns.arms) - 1) * many
    if columns.n * (int(home.max()) + 1 + arms) > _MOST_DESIGN:
        raise InputError(
            f"{int(home.max()) + 1} clusters or parts of them with assigned groups of "
            f"{columns.n} units",
            "fewer",
            "merge clusters, or take a table of units",
        )
    place = (columns.arm - 1) * many + value
    treated = (place[:, None] == np.arange(arms)) & (columns.arm > 0)[:, None]
    cells = home[:, None] == np.arange(int(home.max()) + 1)
    return np.concatenate([cells, treated], axis=1).astype(np.float64)


def factors_of(columns: Columns, block: Block) -> Iterator[Floats]:
    """B of every question of an entry, shape (groups, units) each.

    Raises:
        InputError: A question that rests on groups which its regressors fit exactly.
    """
    group = columns.groups
    groups = int(group.max()) + 1
    if columns.n * groups > _MOST_FACTOR or len(block.rows) * columns.n * groups > MOST_WEIGHTS:
        raise InputError(
            f"{len(block.rows)} questions of {columns.n} units in {groups} groups",
            "fewer: each has a variance of its own, of groups times units",
            "ask fewer questions, or take a table of units",
        )
    design = design_for(columns, block.asked)
    for name, row in zip(block.names, block.rows, strict=True):
        factor = cr2(design, group, row)
        told, own = float((factor**2).sum()), float((row**2).sum())
        if abs(told / own - 1) > _UNBIASED:
            raise InputError(
                f"the question {printable(name)!r}, where one assigned group stands alone",
                "two assigned groups or more in every part of it: one tells nothing of how groups "
                "differ",
                "ask without these clusters, subgroups or columns",
            )
        yield factor


def expected_variance(rows: Floats, group: Whole, spread: float) -> Floats:
    """Of questions, where outcomes of one group correlate by 0.3, shape (questions,).

    Args:
        rows: Weights, shape (questions, units).
        group: Of each unit.
        spread: Standard deviation of outcomes, in their unit.
    """
    together = np.stack([np.bincount(group, row) for row in rows])
    own = (1 - CORRELATION) * (rows**2).sum(axis=1) + CORRELATION * (together**2).sum(axis=1)
    return np.asarray(spread**2 * own)


def form_of(factor: Floats, group: Whole, relative: float | None) -> tuple[IntegerForm, float]:
    """A variance in whole numbers and the unit of its factor, clipped where that costs less.

    Args:
        factor: B, shape (groups, units).
        group: Of each unit.
        relative: The stated standard deviation over the range, or None: then nothing is clipped, as
            limits that bind make intervals too short.

    Raises:
        InputError: Too many different units.
    """
    plain, unit = integer_form(factor)
    if relative is None:
        return plain, unit
    deviations = np.sqrt(expected_variance(factor, group, relative))
    clipped, _ = integer_form(factor, DEVIATIONS * np.maximum(deviations, unit))
    return (clipped if clipped.moves.max() < plain.moves.max() else plain), unit


def forms_agree(
    columns: Columns, blocks: Sequence[Block], forms: Sequence[IntegerForm], relative: float
) -> bool:
    """Whether whole numbers are those of the questions' factors, and no limit is below its own.

    Args:
        columns: Of the units.
        blocks: The questions, entry by entry.
        forms: One for each question.
        relative: The stated standard deviation over the range.
    """
    if len(forms) != sum(len(each.names) for each in blocks):
        return False
    every = (one for each in blocks for one in factors_of(columns, each))
    for factor, form in zip(every, forms, strict=True):
        if form.factor.shape[0] != len(factor) or len(form.kind) != columns.n:
            return False
        if int(np.abs(form.factor).max()) != 1 << bits_for(*factor.shape):
            return False
        unit = float(np.abs(factor).max()) / int(np.abs(form.factor).max())
        if float(np.abs(factor / unit - form.factor[:, form.kind]).max()) > _ROUNDED:
            return False
        least = DEVIATIONS * np.sqrt(expected_variance(factor, columns.groups, relative))
        if len(form.limits) and bool((form.limits < least / unit * (1 - _UNBIASED)).any()):
            return False
    return True


@dataclass(frozen=True, eq=False)
class Known:
    """What a form tells of its question's variance.

    Attributes:
        form: In whole numbers.
        length: Sum of squared weights of the question.
    """

    form: IntegerForm
    length: float

    @cached_property
    def worth(self) -> float:
        """What one step of V is worth, in squared ranges: the mean of V is right by it."""
        many = np.bincount(self.form.kind)
        squares = (self.form.factor.astype(np.float64) ** 2).sum(axis=0)
        return self.form.step * self.length / float(squares @ many)

    @property
    def scale(self) -> float:
        """Of the noise of V, in squared ranges."""
        return self.worth * 2.0**BITS

    @cached_property
    def degrees(self) -> float:
        """Bell and McCaffrey's."""
        weighed = self.form.factor * np.sqrt(np.bincount(self.form.kind))
        product = weighed @ weighed.T
        return float(np.trace(product)) ** 2 / float((product**2).sum())

    def inflation(self, confidence: float) -> float:
        """What few groups widen a variance by: (t quantile/normal quantile)^2."""
        few, normal = (quantile(each, confidence) for each in (self.degrees, math.inf))
        return max(1.0, (few / normal) ** 2)
