"""Lists every method by its name: how users weigh, where values are clipped, who plans noise."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints, by_cell
from shoal.cells.mechanisms import caps, weights
from shoal.cells.mechanisms.ranges import (
    LevyInterval,
    OneInterval,
    QuantilePair,
    Range,
    SumThreshold,
)
from shoal.cells.mechanisms.user_vectors import CentreAndRadius, TwoRounds
from shoal.cells.mechanisms.weights import (
    FINE,
    PART,
    Limit,
    Parameters,
    Weights,
    largest_counts,
    members,
)
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.theory import limits

Setting = str | int | float
# With `shared` every record counts, and noise is shared among cells. With `by cell` each cell has
# parameters of a mean mechanism and a part of the loss. The others plan all cells together.
Planner = Literal["shared", "by cell", "clip user", "user clipped", "optimal"]
# A cap that is given as a number is smaller than this.
_MOST_RECORDS = 2**36
# With more pairs of a user and a cell, some methods take minutes.
MOST_PAIRS = 10_000
# The limits of parameters that several methods have.
_CAP = Limit("cells", 1, "records")
_CAPPED = {"cap": _CAP}
_CHOICES: dict[str, tuple[str, ...]] = {
    "grouping": ("best_fit", "wrap_around"),
    "quantiles": ("fixed", "optimised"),
    "spare": ("none", "best"),
    "noise": ("uniform", "balanced"),
    "targets": ("equal", "balanced"),
    "range": ("whole", "selected"),
}


@dataclass(frozen=True)
class Method:
    """A method with its settings: one row of the table in `method_of`.

    Attributes:
        planner: Which planner chooses its noise.
        rule: Returns weights from counts, planned cells and the parameters in `limits`, by name.
        bound: Returns these parameters from counts, cells and the loss of each cell.
        limits: The limits of the parameters of `rule`, by name.
        range: Where values are clipped.
        mechanism: The name of the bounding within the range in the literature.
    """

    name: str
    planner: Planner
    rule: Callable[..., Weights] = weights.every_record
    bound: Callable[[Counts, Ints, Floats], Parameters] = lambda counts, cells, epsilon: {}
    limits: Mapping[str, Limit] = field(default_factory=dict)
    range: Range = field(default_factory=Range)
    mechanism: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def selects(self) -> bool:
        """Whether a range is selected privately, so that no error is certified."""
        return self.range.selects != "nothing"

    @property
    def means_alone(self) -> bool:
        """Whether only means can be released."""
        return self.selects or self.planner == "by cell"

    @property
    def takes_error(self) -> bool:
        """Whether an error can be asked for instead of a loss."""
        return not self.means_alone and self.planner != "clip user"

    @property
    def takes_delta(self) -> bool:
        """Whether noise may be Gaussian."""
        return self.planner in ("shared", "user clipped")

    @property
    def takes_weights(self) -> bool:
        """Whether some cells may matter more than others."""
        return self.planner != "shared" or self.name == "balanced"

    @property
    def takes_long(self) -> bool:
        """Whether planning takes minutes with more than `MOST_PAIRS` pairs of a user and a cell."""
        return self.planner in ("optimal", "clip user")

    @property
    def overcounts(self) -> bool:
        """Whether noise is planned by the paper's accounting, which counts losses too high."""
        return self.name in ("uniform", "clip_user")

    @property
    def levels(self) -> bool:
        """Whether the largest error is minimised, instead of the mean logarithm of errors."""
        return self.name in ("equalised", "optimal")

    def weigh(self, counts: Counts, cells: Ints, parameters: Parameters) -> Weights:
        """Returns the weights that follow from counts, planned cells and parameters."""
        return self.rule(counts, cells, **{name: parameters[name] for name in self.limits})

    def parameters(self, counts: Counts, cells: Ints, epsilon: Floats, bits: int) -> Parameters:
        """Returns public whole numbers that follow from the counts and the loss of each cell."""
        of_rule = self.bound(counts, cells, epsilon)
        if not self.range.limits:
            return of_rule
        weighed = self.weigh(counts, cells, of_rule)
        return of_rule | self.range.parameters(weighed, of_rule, epsilon, 1 << (bits + FINE))

    def check(self, parameters: Parameters, counts: Counts, cells: Ints, bits: int) -> bool:
        """Returns whether parameters have the names, shapes and limits of exact accounting."""
        limits = {**self.limits, **self.range.limits}
        if parameters.keys() != limits.keys():
            return False
        member, _ = members(counts, cells)
        sizes: dict[Any, Any] = {"cells": len(cells), "members": len(member)}
        largest: dict[Any, Any] = {
            "records": largest_counts(counts, cells),
            "width": 1 << (bits + FINE),
        }
        for name, (size, least, most) in limits.items():
            values = parameters[name]
            # A parameter of any size has a value at least.
            length = len(values) or 1 if size is None else sizes.get(size, size)
            if values.shape != (length,):
                return False
            highest = largest.get(most, most)
            if (values < least).any() or (values > highest).any():
                return False
        return self.range.fits(parameters)


def method_of(name: str, settings: Mapping[str, Any] | None = None) -> Method:
    """Returns a method with its settings, checked; those left out have their defaults."""
    checked = checked_settings(name, settings)
    row = METHODS[name]
    return replace(row.make({**row.defaults, **checked}), name=name, settings=checked)


def _optimal(given: Mapping[str, Any]) -> Method:
    """Returns the method in which users count in parts of their shares.

    Values lie in the bounds or are clipped to a selected range.
    """
    in_bounds = Method("optimal", "optimal", weights.parts, _whole_parts, _IN_PARTS)
    if given["range"] == "whole":
        return in_bounds
    return replace(in_bounds, range=OneInterval(), mechanism="optimal_in_range")


def _user_clipped(given: Mapping[str, Any]) -> Method:
    """Returns the method in which users' vectors are clipped to a ball, in one round or two."""
    where = TwoRounds() if given["rounds"] == 2 else CentreAndRadius()
    return Method("user_clipped", "user clipped", weights.capped, _largest_caps, _CAPPED, where)


def _arrays(given: Mapping[str, Any], where: Range) -> Method:
    """Returns a method that averages means of arrays of records, perhaps clipped one by one."""

    def chosen_caps(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
        cap = []
        for at, users_counts in _each_cell(counts, cells):
            cap.append(caps.choose(given["cap"], users_counts, float(epsilon[at])))
        return {"cap": np.array(cap, dtype=np.int64)}

    clipped = where.selects != "nothing"
    averaged = partial(weights.arrays, grouping=given["grouping"], clipped=clipped)
    return Method("", "by cell", averaged, chosen_caps, _CAPPED, where)


def _each_cell(counts: Counts, cells: Ints) -> Iterator[tuple[int, Ints]]:
    """Yields the place of each cell and the counts of its users."""
    member, cell = members(counts, cells)
    for at, inside in enumerate(by_cell(cell, len(cells))):
        yield at, counts.count[member[inside]]


def _everybody_kept(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns caps that cut nothing, and that every membership is kept."""
    member, _ = members(counts, cells)
    return {"cap": largest_counts(counts, cells), "kept": np.ones(len(member), dtype=np.int64)}


def _whole_parts(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns the whole share of each member as its part."""
    member, _ = members(counts, cells)
    return {"part": np.full(len(member), 1 << PART, dtype=np.int64)}


def _thresholds(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns the threshold of each cell with the least worst-case error."""
    of_cell = _each_cell(counts, cells)
    found = [limits.threshold(users, float(epsilon[at])) for at, users in of_cell]
    return {"threshold": np.array(found, dtype=np.int64)}


def _widened(counts: Counts, cells: Ints, cap: Ints, widened: Ints) -> Weights:
    """Returns capped weights, with wider ranges for lighter users if `widened` holds 1."""
    return weights.capped(counts, cells, cap, widened=bool(widened[0]))


def _exchangeable(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns caps, and whether users are in one cell each: then lighter users get wider ranges."""
    member, cell = members(counts, cells)
    alone = int(np.bincount(counts.user[member]).max()) == 1
    cap = caps.exchangeable(cell, counts.count[member], len(cells), epsilon)
    return {"cap": cap, "widened": np.array([int(alone)], dtype=np.int64)}


def _largest_caps(counts: Counts, cells: Ints, epsilon: Floats) -> Parameters:
    """Returns caps that cut nothing."""
    return {"cap": largest_counts(counts, cells)}


class Row(NamedTuple):
    """A row of the table of methods: makes the method from settings, which have defaults."""

    make: Callable[[Mapping[str, Any]], Method]
    defaults: Mapping[str, Setting] = MappingProxyType({})


_SHARED = Row(lambda _: Method("", "shared", mechanism="baseline"))
_IN_PARTS = {"part": Limit("members", 0, 1 << PART)}
_KEPT = {"cap": _CAP, "kept": Limit("members", 0, 1)}
_THRESHOLD = {"threshold": Limit("cells", 0, "records")}
_WIDENED = {"cap": _CAP, "widened": Limit(1, 0, 1)}
_GROUPED: dict[str, Setting] = {"grouping": "best_fit"}
# The page docs/architecture.md#where-new-code-goes says what a new method needs.
METHODS: dict[str, Row] = {
    "balanced": _SHARED,
    "equalised": _SHARED,
    "uniform": _SHARED,
    "clip_user": Row(
        lambda _: Method("", "clip user", weights.kept_users, _everybody_kept, _KEPT),
        {"spare": "none", "noise": "uniform"},
    ),
    "optimal": Row(_optimal, {"targets": "equal", "range": "whole"}),
    "baseline": Row(lambda _: Method("", "by cell")),
    "array_averaging": Row(lambda given: _arrays(given, Range()), {"cap": "median", **_GROUPED}),
    "opt_array_averaging": Row(
        lambda given: _arrays(given, Range()), {"cap": "minimax", **_GROUPED}
    ),
    "worst_case_optimal": Row(
        lambda _: Method("", "by cell", weights.truncated, _thresholds, _THRESHOLD)
    ),
    "levy": Row(
        lambda given: _arrays(given, LevyInterval(given["gamma"])),
        {"cap": "levy", **_GROUPED, "gamma": 0.2},
    ),
    "quantile": Row(
        lambda given: _arrays(given, QuantilePair(given["quantiles"])),
        {"quantiles": "fixed", "cap": "levy", **_GROUPED},
    ),
    "akmv": Row(lambda _: Method("", "by cell", weights.user_sums, range=SumThreshold())),
    "adaptive": Row(
        lambda _: Method("", "by cell", _widened, _exchangeable, _WIDENED, OneInterval())
    ),
    "user_clipped": Row(_user_clipped, {"rounds": 1}),
}


def checked_settings(method: str, settings: object) -> dict[str, Setting]:
    """Returns settings of a method, checked, sorted by name."""
    checks.choice(method, tuple(METHODS), "method")
    given = {} if settings is None else checks.mapping(settings, "settings")
    allowed = METHODS[method].defaults
    for name in given:
        if name not in allowed:
            step = "leave it out: the method has no settings"
            if allowed:
                step = f"choose one of {', '.join(allowed)}"
            raise InputError(f"the method {method} has no setting {checks.shown(name)}", step)
    return {name: _checked_setting(name, given[name]) for name in sorted(given)}


def _checked_setting(name: str, value: object) -> Setting:
    """Returns the checked value of a setting, as a Python object that a plan can hold."""
    if name in _CHOICES:
        return checks.choice(value, _CHOICES[name], name)
    if name == "rounds":
        return checks.whole(value, name, least=1, most=2)
    if name == "gamma":
        return checks.number(value, name, above=0, below=1, example=0.2)
    # What is left is a cap, by its name or as a number.
    if isinstance(value, str):
        return checks.choice(value, caps.NAMES, name)
    return checks.whole(value, name, least=1, most=_MOST_RECORDS - 1)
