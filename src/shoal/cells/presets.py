"""Every method by its name and settings: the parts of a plan that it stands for."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal import checks
from shoal.cells.allocation.balanced import Balanced
from shoal.cells.allocation.base import BalancedLosses, LinearProgram
from shoal.cells.allocation.equalised import Equalised
from shoal.cells.allocation.uniform import Uniform
from shoal.cells.bounding import caps
from shoal.cells.contributions.averaged_arrays import AveragedArrays
from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.cells_left_out import CellsLeftOut
from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.nearly_full_counts import NearlyFullCounts
from shoal.cells.contributions.parts_of_weights import PartsOfWeights
from shoal.cells.contributions.truncated_users import TruncatedUsers
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.noise_rule import NoiseRule
from shoal.cells.plan_parts import PlanParts
from shoal.cells.ranges.centre_and_radius import CentreAndRadius
from shoal.cells.ranges.centres_of_cells import CentresOfCells
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.ranges.quantile_pair import QuantilePair
from shoal.cells.ranges.sum_threshold import SumThreshold
from shoal.cells.shrinkage_rule import ShrinkageRule
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shoal.cells.contributions.arrays import Grouping
    from shoal.cells.ranges.quantile_pair import Quantiles

    Setting = str | int | float

MOST_RECORDS = 2**36
_PUBLIC, _SELECTED, _LOSSES = PublicRange(), OneInterval(), BalancedLosses()
_CHOICES: dict[str, tuple[str, ...]] = {
    "grouping": ("best_fit", "wrap_around"),
    "quantiles": ("fixed", "optimised"),
    "spare": ("none", "best"),
    "noise": ("uniform", "balanced"),
    "targets": ("equal", "balanced"),
    "range": ("whole", "selected"),
}


def _balanced() -> PlanParts:
    return PlanParts("baseline", EveryRecord(), _PUBLIC, Balanced())


def _equalised() -> PlanParts:
    return PlanParts("baseline", EveryRecord(), _PUBLIC, Equalised())


def _uniform() -> PlanParts:
    return PlanParts("baseline", EveryRecord(), _PUBLIC, Uniform())


def _clip_user(*, spare: str = "none", noise: str = "uniform") -> PlanParts:
    how = Uniform() if noise == "uniform" else Balanced()
    return PlanParts("clip_user", CellsLeftOut(spare), _PUBLIC, how)


def _optimal(*, targets: str = "equal", range: str = "whole") -> PlanParts:
    if range == "whole":
        return PlanParts("optimal", PartsOfWeights(), _PUBLIC, LinearProgram(targets))
    return PlanParts("optimal_in_range", PartsOfWeights(), _SELECTED, LinearProgram(targets))


def _baseline() -> PlanParts:
    return PlanParts("baseline", EveryRecord(), _PUBLIC, _LOSSES)


def _array_averaging(*, cap: str | int = "median", grouping: Grouping = "best_fit") -> PlanParts:
    return PlanParts("array_averaging", AveragedArrays(cap, grouping), _PUBLIC, _LOSSES)


def _opt_array_averaging(
    *, cap: str | int = "minimax", grouping: Grouping = "best_fit"
) -> PlanParts:
    return PlanParts("opt_array_averaging", AveragedArrays(cap, grouping), _PUBLIC, _LOSSES)


def _worst_case_optimal() -> PlanParts:
    return PlanParts("worst_case_optimal", TruncatedUsers(), _PUBLIC, _LOSSES)


def _levy(
    *, cap: str | int = "levy", grouping: Grouping = "best_fit", gamma: float = 0.2
) -> PlanParts:
    return PlanParts("levy", ClippedArrays(cap, grouping), LevyInterval(gamma), _LOSSES)


def _quantile(
    *, quantiles: Quantiles = "fixed", cap: str | int = "levy", grouping: Grouping = "best_fit"
) -> PlanParts:
    return PlanParts("quantile", ClippedArrays(cap, grouping), QuantilePair(quantiles), _LOSSES)


def _akmv() -> PlanParts:
    plain = ShrinkageRule(weighed=False)
    return PlanParts("akmv", UserSums(), SumThreshold(), _LOSSES, shrinkage=plain)


def _adaptive() -> PlanParts:
    return PlanParts("adaptive", CappedCounts(), _SELECTED, _LOSSES)


def _user_clipped(*, rounds: int = 1) -> PlanParts:
    where = CentreAndRadius() if rounds == 1 else CentresOfCells()
    return PlanParts("user_clipped", NearlyFullCounts(), where, _LOSSES)


# What each method stands for; its settings are the names of the arguments.
PRESETS: dict[str, Callable[..., PlanParts]] = {
    "balanced": _balanced,
    "equalised": _equalised,
    "uniform": _uniform,
    "clip_user": _clip_user,
    "optimal": _optimal,
    "baseline": _baseline,
    "array_averaging": _array_averaging,
    "opt_array_averaging": _opt_array_averaging,
    "worst_case_optimal": _worst_case_optimal,
    "levy": _levy,
    "quantile": _quantile,
    "akmv": _akmv,
    "adaptive": _adaptive,
    "user_clipped": _user_clipped,
}
METHODS = tuple(PRESETS)


def parts_of(
    method: str, settings: Mapping[str, Any] | None = None, delta: Fraction = Fraction(0)
) -> PlanParts:
    """The parts of a plan that a method stands for.

    Args:
        method: One of `METHODS`.
        settings: Of the method, by name; those left out have their defaults.
        delta: The delta of (epsilon, delta)-DP.

    Raises:
        InputError: An unknown method or setting, or noise that the method cannot have.

    Example:
        >>> parts_of("levy", {"gamma": 0.1}).range
        LevyInterval(gamma=0.1)
    """
    own = checked_settings(method, settings)
    made = PRESETS[method](**own)
    return replace(made, noise=NoiseRule(delta)) if delta else made


def settings_of(method: str) -> dict[str, Setting]:
    """Names and defaults of the settings of a method.

    Example:
        >>> settings_of("array_averaging"), settings_of("akmv")
        ({'cap': 'median', 'grouping': 'best_fit'}, {})
    """
    given = inspect.signature(PRESETS[method]).parameters.values()
    return {each.name: each.default for each in given}


def checked_settings(method: str, settings: object) -> dict[str, Setting]:
    """Settings of a method, checked, sorted by name.

    Raises:
        InputError: An unknown method, a setting that it does not have, or an unusable value.

    Example:
        >>> checked_settings("levy", {"gamma": 0.1})
        {'gamma': 0.1}
    """
    checks.choice(method, METHODS, "method")
    given = {} if settings is None else checks.mapping(settings, "settings")
    allowed = settings_of(method)
    for name in given:
        if name not in allowed:
            raise InputError(
                f"the setting {checks.shown(name)} of {method}",
                ", ".join(allowed) or "no settings",
                "leave it out",
            )
    return {name: checked_setting(name, given[name]) for name in sorted(given)}


def checked_setting(name: str, value: object) -> Setting:
    """The value of a setting, as a Python object that a plan can hold.

    Raises:
        InputError: A value that the setting cannot have.

    Example:
        >>> checked_setting("cap", 3), checked_setting("gamma", 0.2)
        (3, 0.2)
    """
    if name in _CHOICES:
        return checks.choice(value, _CHOICES[name], name)
    if name == "rounds":
        return checks.whole(value, name, least=1, most=2)
    if name == "gamma":
        return checks.number(value, name, above=0, below=1, example=0.2)
    if isinstance(value, str):
        return checks.choice(value, caps.NAMES, name)
    return checks.whole(value, name, least=1, most=MOST_RECORDS - 1)
