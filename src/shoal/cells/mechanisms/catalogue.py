"""The mean mechanisms by name, and the choice that `auto` makes."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from shoal import checks
from shoal.cells.bounding import caps
from shoal.cells.mechanisms.adaptive import Adaptive
from shoal.cells.mechanisms.akmv import Akmv
from shoal.cells.mechanisms.array_averaging import ArrayAveraging, OptArrayAveraging
from shoal.cells.mechanisms.baseline import Baseline
from shoal.cells.mechanisms.clip_user import ClipUser
from shoal.cells.mechanisms.levy import Levy
from shoal.cells.mechanisms.optimal import Optimal, OptimalInRange
from shoal.cells.mechanisms.quantile import Quantile
from shoal.cells.mechanisms.worst_case_optimal import WorstCaseOptimal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.cells.mechanisms.base import MeanMechanism
    from shoal.data.value_lattice import Lattice

MECHANISMS: dict[str, type[MeanMechanism]] = {
    kind.name: kind
    for kind in (
        Baseline,
        ArrayAveraging,
        OptArrayAveraging,
        WorstCaseOptimal,
        Levy,
        Quantile,
        Akmv,
        Adaptive,
    )
}
# Users are bounded in all cells at once, whatever statistics are released.
BOUNDINGS: dict[str, type[MeanMechanism]] = {kind.name: kind for kind in (ClipUser, Optimal)}
OBJECTIVES: dict[str, type[MeanMechanism]] = {"typical": Adaptive, "worst_case": WorstCaseOptimal}
MOST_RECORDS = 2**36
_CHOICES: dict[str, tuple[str, ...]] = {
    "grouping": ("best_fit", "wrap_around"),
    "quantiles": ("fixed", "optimised"),
    "objective": tuple(OBJECTIVES),
    "spare": ("none", "best"),
    "noise": ("uniform", "balanced"),
    "targets": ("equal", "balanced"),
    "range": ("whole", "selected"),
}


def make_mechanism(name: str, lattice: Lattice, settings: Mapping[str, Any]) -> MeanMechanism:
    """A mechanism from its name and settings that were checked.

    `auto` with the objective `typical` (the default) is `adaptive`; with `worst_case` it is
    `worst_case_optimal`, the least certificate of all.
    """
    if name == "auto":
        return OBJECTIVES[str(settings.get("objective", "typical"))](lattice)
    if name == Optimal.name and settings.get("range") == "selected":
        return OptimalInRange(lattice, **settings)
    return {**MECHANISMS, **BOUNDINGS}[name](lattice, **settings)


def settings_allowed(name: str) -> tuple[str, ...]:
    """Names of the settings of a mechanism."""
    if name == "auto":
        return ("objective",)
    kind = {**MECHANISMS, **BOUNDINGS}[name]
    return tuple(each.name for each in fields(kind) if each.name != "lattice")


def checked_setting(name: str, value: object) -> str | int | float:
    """The value of a setting, as a Python object that a plan can hold.

    Raises:
        InputError: A value that the setting cannot have.

    Example:
        >>> checked_setting("cap", 3), checked_setting("gamma", 0.2)
        (3, 0.2)
    """
    if name in _CHOICES:
        return checks.choice(value, _CHOICES[name], name)
    if name == "gamma":
        return checks.number(value, name, above=0, below=1, example=0.2)
    if isinstance(value, str):
        return checks.choice(value, caps.NAMES, name)
    return checks.whole(value, name, least=1, most=MOST_RECORDS - 1)
