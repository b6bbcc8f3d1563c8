"""Groups of units whose outcomes are taken to differ alike: arms, and arms by public columns.

Source: docs/theory/questions.md#variances-of-groups.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.trials.questions.asked import EFFECT, REGRESSION, Asked
from shoal.trials.questions.columns import ARM, CLUSTER, Columns
from shoal.trials.student import quantile

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
MOST_GROUPS, FEWEST_UNITS = 64, 20
# Groups times units: each group has its own row of weights.
_MOST_CELLS = 1 << 24
_TWO = 2
# Of a sum of squares: a group whose weights are 0 in truth may have so much of it.
_LEFT_BY_ROUNDING = 1e-12


def codes_of(columns: Columns, names: Sequence[str]) -> Whole:
    """Which group each unit is in, by columns: from 0, in the order of the columns' values.

    Raises:
        InputError: No such column.
    """
    codes = np.zeros(columns.n, dtype=np.int64)
    for name in names:
        if name == ARM:
            own, many = columns.arm, len(columns.arms)
        else:
            column = columns.covariate(name)
            own, many = column.codes, len(column.values)
        codes = np.unique(codes * many + own, return_inverse=True)[1].astype(np.int64)
    return codes


def group_means(codes: Whole) -> Floats:
    """Weights of the mean of each group, shape (groups, units)."""
    sizes = np.bincount(codes)
    return np.asarray((codes == np.arange(len(sizes))[:, None]) / sizes[:, None])


def adjusted_for(asked: Asked, by: Sequence[str]) -> list[str]:
    """The columns within whose values what was asked compares units, of those that make groups.

    An effect compares within clusters and within its subgroups, a regression within the values of
    its own columns, a mean within its arm.
    """
    if asked.kind == REGRESSION:
        return [name for name in (ARM, *by) if name in asked.columns]
    within = {asked.by, CLUSTER} if asked.kind == EFFECT else set()
    return [ARM, *(name for name in by if name in within)]


def means_needed(columns: Columns, asked: Sequence[Asked], by: Sequence[str]) -> Whole | None:
    """The groups whose means tell how outcomes differ; None if regressions alone were asked for."""
    others = [each for each in asked if each.kind != REGRESSION]
    if not others:
        return None
    names = {name for each in others for name in adjusted_for(each, by)}
    return codes_of(columns, [name for name in (ARM, *by) if name in names])


def candidates(columns: Columns, asked: Sequence[Asked]) -> list[str]:
    """Columns that groups may be made of: of subgroups first, then regressors, then clusters.

    Numbers are no groups, but where they have two values.
    """
    names = [each.by for each in asked if each.by]
    names += [name for each in asked if each.kind == REGRESSION for name in each.columns]
    names += [CLUSTER for each in asked if each.kind == EFFECT]
    found = []
    for name in dict.fromkeys(names):
        if name == ARM:
            continue
        column = columns.covariate(name)
        if len(column.values) == _TWO or (len(column.values) > _TWO and not column.numeric):
            found.append(name)
    return found


def usable(codes: Whole) -> bool:
    """Whether each group has units enough to tell how outcomes differ within it."""
    sizes = np.bincount(codes)
    few = len(sizes) <= MOST_GROUPS and len(sizes) * len(codes) <= _MOST_CELLS
    return few and int(sizes.min()) >= FEWEST_UNITS


def inflation(squares: Floats, degrees: Floats, confidence: float) -> Floats:
    """What few units widen sampling variances by, shape (questions,).

    (t quantile/normal quantile)^2 with the degrees of freedom of the group that has fewest: no sum
    of variances of groups has fewer.

    Args:
        squares: Sums of squared weights, shape (groups, questions).
        degrees: Of each group, shape (groups,).
        confidence: Of the interval.
    """
    counted = squares > _LEFT_BY_ROUNDING * squares.sum(axis=0)
    fewest = np.where(counted, degrees[:, None], np.inf).min(axis=0)
    normal = quantile(math.inf, confidence)
    return np.array([(quantile(each, confidence) / normal) ** 2 for each in fewest.tolist()])
