"""Which mean mechanism a manifest speaks of, and whether its settings and parameters can be.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from shoal import documents
from shoal.verification.cells import caps as verify_caps
from shoal.verification.cells.facts import LEAST_SCALE
from shoal.verification.cells.grouping import group
from shoal.verification.cells.statistics import ALLOCATIONS
from shoal.verification.cells.vectors import FIRST, VECTORS, candidates_hold, selections
from shoal.verification.strict import real, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.verification.cells.facts import Facts
    from shoal.verification.cells.grouping import Arrays

ARRAYS = ("array_averaging", "opt_array_averaging", "levy", "quantile")
CLIPPED = ("levy", "quantile")
PER_CELL = ("levy", "quantile", "akmv")
FOR_ALL = ("adaptive", "optimal_in_range", "user_clipped")
# Users count in parts of their shares; what is missing lies in the middle.
IN_PARTS = ("optimal", "optimal_in_range")
_IN_ALL = {"widened", "reward", *VECTORS, *FIRST}
# A rank counts a user, or an array, as 2^10; the adaptive score counts a user as 2^16.
UNIT, USER = 2**10, 2**16
# Parts of users are whole numbers of 2^-16.
PART = 16
_OBJECTIVES = ("", "typical", "worst_case")
_RANGES = ("", "tight", "loose")
_CHOICES = {
    "grouping": ("best_fit", "wrap_around"),
    "quantiles": ("fixed", "optimised"),
    "spare": ("none", "best"),
    "targets": ("equal", "balanced"),
    "range": ("whole", "selected"),
    "noise": ("uniform", "balanced"),
}
_DEFAULTS: dict[str, dict[str, str | int | float]] = {
    "adaptive": {},
    "user_clipped": {"rounds": 1},
    "array_averaging": {"cap": "median", "grouping": "best_fit"},
    "opt_array_averaging": {"cap": "minimax", "grouping": "best_fit"},
    "worst_case_optimal": {},
    "levy": {"cap": "levy", "grouping": "best_fit", "gamma": 0.2},
    "quantile": {"quantiles": "fixed", "cap": "levy", "grouping": "best_fit"},
    "akmv": {},
    "baseline": {},
    "clip_user": {"spare": "none", "noise": "uniform"},
    "optimal": {"targets": "equal", "range": "whole"},
    **{method: {} for method in ALLOCATIONS},
}
_PARAMETERS = {
    "adaptive": {"cap", "widened", "reward"},
    "user_clipped": {"cap", *VECTORS},
    "array_averaging": {"cap"},
    "opt_array_averaging": {"cap"},
    "worst_case_optimal": {"threshold"},
    "levy": {"cap", "bins", "radius"},
    "quantile": {"cap", "low_rank", "high_rank"},
    "akmv": {"rank", "most"},
    "baseline": set[str](),
    "clip_user": {"cap", "kept"},
    "optimal": {"part"},
    "optimal_in_range": {"part", "reward"},
}
# The most that a packed parameter of every member can be.
_OF_MEMBERS = {"kept": 1, "part": 1 << PART}
_MOST = 2**53
_MOST_HALVINGS, _LEAST_HALVINGS = 10, 2
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Mechanism:
    """What releases the numbers.

    Attributes:
        name: Of the mean mechanism.
        shares: Whether the method shares the noise of baseline means.
        settings: Those given, and the defaults of the others.
        parameters: Whole numbers by name.
        of_members: Whole numbers of every member, by name.
        selection_scale: Of its private selections.
    """

    name: str
    shares: bool
    settings: dict[str, str | int | float]
    parameters: dict[str, list[int]]
    of_members: dict[str, NDArray[np.int64]]
    selection_scale: list[Fraction]

    @property
    def selects(self) -> bool:
        """Whether ranges are selected privately."""
        return self.name in PER_CELL + FOR_ALL


def refused(plan: documents.Document) -> str | None:
    """Why name, method and settings do not go together; None if they do."""
    method, settings = plan["request"]["method"], plan["request"]["settings"]
    stated = plan["mechanism"]
    if plan["request"]["objective"] not in _OBJECTIVES:
        return "an unknown objective"
    if plan["request"]["range"] not in (_RANGES if plan["request"]["objective"] else ("",)):
        return "an unknown range, or one that no objective asks for"
    if stated.keys() != {"name", "parameters", "selection_scale"}:
        return "something is added or missing"
    if not isinstance(method, str) or method not in _DEFAULTS:
        return "an unknown method"
    if not settings.keys() <= _DEFAULTS[method].keys():
        return f"settings that {method} does not have"
    if not all(_can_be(name, value) for name, value in settings.items()):
        return "a setting with a value that it cannot have"
    name = _name(method, settings)
    if stated["name"] != name:
        return f"{method} stands for another mechanism"
    if stated["parameters"].keys() != _PARAMETERS[name] | _of_rounds(settings):
        return f"not the parameters of {name}"
    return None


def read(plan: documents.Document, facts: Facts) -> Mechanism:
    """The mechanism of a plan that was not `refused`; ValueError for numbers that cannot be."""
    method, settings = plan["request"]["method"], plan["request"]["settings"]
    name, stated = plan["mechanism"]["name"], plan["mechanism"]
    size = len(facts.released)
    parameters = {
        each: [whole(number, 0, _MOST) for number in numbers]
        for each, numbers in stated["parameters"].items()
        if each not in _OF_MEMBERS
    }
    of_members = {
        each: documents.unpack_integers(stated["parameters"][each], "parameters")
        for each in _PARAMETERS[name] & _OF_MEMBERS.keys()
    }
    if any(len(values) != len(facts.member) for values in of_members.values()):
        raise ValueError
    if any(len(parameters[each]) != size for each in parameters.keys() - _IN_ALL):
        raise ValueError
    scale = [Fraction(real(each)) for each in stated["selection_scale"]]
    wanted = size if name in PER_CELL else int(name in FOR_ALL)
    if name == "user_clipped":
        wanted = selections(parameters)
    if len(scale) != wanted or not all(each >= LEAST_SCALE for each in scale):
        raise ValueError
    if "cap" in parameters:
        for counts, cap in zip(facts.counts, parameters["cap"], strict=True):
            whole(cap, 1, max(counts))
    return Mechanism(
        name=name,
        shares=method in ALLOCATIONS,
        settings={**_DEFAULTS[method], **settings},
        parameters=parameters,
        of_members=of_members,
        selection_scale=scale,
    )


def beyond(mechanism: Mechanism, facts: Facts) -> str | None:
    """Why no design has these parameters of members; None if one has."""
    for name, values in mechanism.of_members.items():
        if int(values.max()) > _OF_MEMBERS[name]:
            return f"{name} of a user above {_OF_MEMBERS[name]}"
    kept = mechanism.of_members.get("kept")
    if kept is not None and any(kept[members].max() == 0 for members in facts.by_number):
        return "a cell in which nobody is kept"
    return None


def arrays_of(mechanism: Mechanism, facts: Facts) -> list[Arrays]:
    """The arrays of every released cell, if records are put into arrays."""
    if mechanism.name not in ARRAYS:
        return []
    grouping = str(mechanism.settings["grouping"])
    return [
        group(counts, cap, grouping)
        for counts, cap in zip(facts.counts, mechanism.parameters["cap"], strict=True)
    ]


def parameters_hold(mechanism: Mechanism, facts: Facts, arrays: list[Arrays]) -> tuple[bool, str]:
    """Whether the parameters follow from counts and settings, as far as these determine them."""
    told, used = mechanism.parameters, facts.counts
    if "kept" in mechanism.of_members:
        kept = facts.count[facts.member] * mechanism.of_members["kept"]
        used = [kept[members][kept[members] > 0].tolist() for members in facts.by_number]
    if "reward" in told and not _rewards(told["reward"], facts):
        return False, "no rewards of narrower ranges that counts allow"
    if mechanism.name == "adaptive" and not _widened(told["widened"], facts):
        return False, "no choice of widening that counts allow"
    if mechanism.name == "user_clipped" and not candidates_hold(
        told, facts, mechanism.selection_scale
    ):
        return False, "no candidates of a centre and a radius"
    for at, counts in enumerate(used):
        own = {name: told[name][at] for name in told.keys() - _IN_ALL}
        number = arrays[at].number if arrays else 0
        if not _cell(mechanism, own, counts, number, facts.top):
            return False, f"cell {facts.released[at]} has parameters that do not follow"
    size = sum(map(len, told.values())) + sum(map(len, mechanism.of_members.values()))
    return True, f"{mechanism.name}, {size} parameters"


def _cell(
    mechanism: Mechanism, own: dict[str, int], counts: list[int], arrays: int, top: int
) -> bool:
    name, settings = mechanism.name, mechanism.settings
    if name in ARRAYS and own["cap"] not in verify_caps.allowed(counts, settings["cap"]):
        return False
    match name:
        case "levy":
            return _levy(own, arrays, real(settings["gamma"]), top)
        case "quantile":
            return _quantile(own, arrays, fixed=settings["quantiles"] == "fixed")
        case "akmv":
            return _akmv(own, counts)
        case "worst_case_optimal":
            return own["threshold"] in {0, *counts}
        case "adaptive":
            return own["cap"] in counts
        case "clip_user":
            return min(counts) <= own["cap"] <= max(counts)
        case "optimal" | "optimal_in_range" | "user_clipped":
            return True
    return name in {*ARRAYS, "baseline"}


def _levy(own: dict[str, int], arrays: int, gamma: float, top: int) -> bool:
    """Bins floor(1/tau), and 1.5 tau of the width, up to a rounding of tau."""
    tau = math.sqrt(math.log(2 * arrays / gamma) / (2 * own["cap"]))
    bins = {max(1, math.floor(slack / tau)) for slack in (1 - _ROUNDING, 1, 1 + _ROUNDING)}
    radius = {min(top, math.ceil(min(1.5 * tau, 2.0) * top) + off) for off in (-1, 0, 1)}
    return own["bins"] in bins and own["radius"] in radius


def _akmv(own: dict[str, int], counts: list[int]) -> bool:
    """A rank halfway between two users, at least one user away from the largest sum."""
    beyond, rest = divmod(len(counts) * UNIT + UNIT // 2 - own["rank"], UNIT)
    return own["most"] == max(counts) and (own["rank"] == 0 or (rest == 0 and beyond >= 1))


def _quantile(own: dict[str, int], arrays: int, *, fixed: bool) -> bool:
    low, ranks = own["low_rank"], arrays * UNIT
    if low + own["high_rank"] != ranks:
        return False
    if fixed:
        return low == ranks // 10
    return low == ranks // 2 or (low % UNIT == 0 and 0 < low < ranks // 2)


def _widened(told: list[int], facts: Facts) -> bool:
    users = len(set(facts.member_user.tolist()))
    return told == [int(users == len(facts.member_user))]


def _rewards(reward: list[int], facts: Facts) -> bool:
    users = len(set(facts.member_user.tolist()))
    halvings = {0, *range(_LEAST_HALVINGS, _MOST_HALVINGS + 1)}
    return (
        len(reward) % 2 == 1
        and len(reward) // 2 in halvings
        and reward[0] == 0
        and all(low <= high for low, high in pairwise(reward))
        and reward[-1] <= users * USER
    )


def _name(method: str, settings: documents.Document) -> str:
    if method in ALLOCATIONS:
        return "baseline"
    if method == "optimal" and settings.get("range") == "selected":
        return "optimal_in_range"
    return method


def _of_rounds(settings: documents.Document) -> set[str]:
    """Parameters of a first round, if there are two."""
    return set(FIRST) if settings.get("rounds") == 2 else set()


def _can_be(name: str, value: object) -> bool:
    if name == "rounds":
        return type(value) is int and value in (1, 2)
    if name in _CHOICES:
        return value in _CHOICES[name]
    if name == "gamma":
        return isinstance(value, float) and 0 < value < 1
    if isinstance(value, str):
        return value in verify_caps.NAMES
    return type(value) is int and 1 <= value < 2**40
