"""Which parts of a plan serve an objective: chosen from public counts, and said in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from shoal import checks
from shoal.cells.noise_kinds import gaussian_is_smaller
from shoal.cells.optimal.program import is_small
from shoal.theory.user_clipping import rounds, split

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from shoal.cells.statistics.base import Statistic
    from shoal.data.occupancy import Counts

Objective = Literal["typical", "worst_case"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
# What is known of the bounds: values may fill them, or they are a margin of safety.
Range = Literal["tight", "loose"]
RANGES: tuple[Range, ...] = get_args(Range)
# Users times epsilon in a single cell: where one interval is found more surely than two ranks.
_FEW, _ENOUGH = 60, 150
# So few cells of users who count about alike err hardly more with the whole bounds than with a
# private radius, which leaves out more users than noise is worth (`shoal bench few`).
_FEW_CELLS, _ALIKE = 12, 0.75
# Beyond so many memberships a linear program takes minutes.
_MOST_OF_PROGRAM = 100_000
_SMALLER = "the smaller of Laplace and Gaussian noise, in every data set"


@dataclass(frozen=True)
class Chosen:
    """A method, and why.

    Attributes:
        method: Its name.
        settings: Its settings.
        reason: Half a sentence.
    """

    method: str
    reason: str
    settings: Mapping[str, str | int] = field(default_factory=dict)


def choose(
    objective: str,
    occupancy: Counts,
    statistics: tuple[Statistic, ...],
    epsilon: Fraction | None,
    delta: Fraction,
    known: str = "",
) -> Chosen:
    """The method with the smallest error for an objective, by what is public.

    What shape values have must be said, as no test finds it out cheaply: a mechanism that never
    errs more than 1.1 times plain noise gains at most 2.3 times where values are alike
    (docs/theory/user-clipped.md#tight-or-loose-bounds).

    Args:
        objective: `typical` or `worst_case`.
        occupancy: The counts.
        statistics: What is released of every cell.
        epsilon: Total loss; None if an error was asked for.
        delta: The delta of (epsilon, delta)-DP.
        known: What is known of the bounds: `tight`, `loose`, or nothing.

    Raises:
        InputError: An unknown objective.

    Example:
        >>> import shoal
        >>> from fractions import Fraction
        >>> from shoal.cells.statistics.mean import Mean
        >>> counts = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [1, 9] * 45)
        >>> wanted = counts, (Mean(),), Fraction(1), Fraction(0)
        >>> [choose(each, *wanted).method for each in OBJECTIVES]
        ['user_clipped', 'optimal']
    """
    checks.choice(objective, OBJECTIVES, "objective")
    means = [each.name for each in statistics] == ["mean"]
    if objective == "worst_case" or epsilon is None:
        return _certified(occupancy, statistics, epsilon, delta)
    if not means:
        why = "its error holds in every data set: private ranges are found for means alone"
        return replace(_certified(occupancy, statistics, epsilon, delta), reason=why)
    everyone = float(epsilon) * occupancy.n_users
    selects = split(float(epsilon), occupancy.n_users, occupancy.n_cells) is not None
    if known == "tight" and _count_alike(occupancy):
        why = (
            "users who count about alike, whose values may fill the bounds, gain by no other range"
        )
        return replace(_certified(occupancy, statistics, epsilon, delta), reason=why)
    few = selects and occupancy.n_cells <= _FEW_CELLS and not known
    if few and _count_alike(occupancy):
        why = (
            "few cells of users who count about alike, where a private range errs less only if "
            'values fill a small part of the bounds (say so by range="loose", --range loose)'
        )
        return replace(_certified(occupancy, statistics, epsilon, delta), reason=why)
    if occupancy.n_cells == 1 and _FEW <= everyone < _ENOUGH:
        return Chosen("adaptive", "few users in one cell find one private interval most surely")
    counts = occupancy.n_users, len(occupancy.user), occupancy.n_cells
    if rounds(float(epsilon), float(delta), *counts) > 1:
        why = "users in so many cells that noise is normal, where a second round costs little"
        return Chosen("user_clipped", why, {"rounds": 2})
    return Chosen("user_clipped", "the smallest error where no user is unlike all others")


def _count_alike(occupancy: Counts) -> bool:
    """Whether cells have nearly as many users as equal ones would be: (sum m)^2/sum m^2 of each."""
    count = occupancy.count.astype(np.float64)
    squares = np.bincount(occupancy.cell, count**2)
    equal = occupancy.totals.astype(np.float64) ** 2 / squares
    return bool(equal.sum() >= _ALIKE * len(count))


def _certified(
    occupancy: Counts,
    statistics: tuple[Statistic, ...],
    epsilon: Fraction | None,
    delta: Fraction,
) -> Chosen:
    """The smallest error in every data set; a delta is taken only where counts say it helps."""
    few = len(occupancy.user) <= _MOST_OF_PROGRAM
    if not (few and is_small(occupancy.user, occupancy.n_cells)):
        if delta:
            return Chosen("balanced", _SMALLER)
        return Chosen("balanced", "certified in every data set; a program would take too long")
    if epsilon and delta and gaussian_is_smaller(occupancy, epsilon, delta, len(statistics)):
        return Chosen("balanced", _SMALLER)
    settings: dict[str, str | int] = {} if epsilon is None else {"targets": "balanced"}
    return Chosen("optimal", "the smallest certified errors, in every data set", settings)
