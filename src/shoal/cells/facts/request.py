"""Holds what the custodian asks of a plan, checked once, before any work."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from shoal import checks
from shoal.cells.mechanisms import cell_statistics
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Statistic
from shoal.cells.mechanisms.methods import METHODS, Method, checked_settings, method_of
from shoal.data.value_lattice import MOST_BITS, Bounds, Lattice
from shoal.documents.model import Model, checked
from shoal.errors import InputError
from shoal.privacy.budget import check_delta, check_epsilon
from shoal.release.envelope import TwoBounds

Objective = Literal["typical", "worst_case"]
KnownRange = Literal["tight", "loose"]
Uninformative = Literal["drop", "keep", "refuse"]
OBJECTIVES = get_args(Objective)
RANGES = get_args(KnownRange)
# Cells with fewer users are left out unless somebody asks for them.
FEWEST_USERS = 3
_MOST_WEIGHT = 1e6
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,12})?) ?%")
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?")


def _weights(given: Any) -> dict[str, float]:
    """Returns the importance of each label, sorted by label and within its limits."""
    weights = checks.mapping(given, "weights")
    checked_weights = {}
    for label in sorted(weights):
        name = f"the weight of cell {checks.shown(label)}"
        checked_weights[label] = checks.number(
            weights[label], name, least=1 / _MOST_WEIGHT, most=_MOST_WEIGHT
        )
    return checked_weights


def _largest_error(given: Any) -> float | str:
    """Checks `max_error`: a number, also as a text, in the statistic's unit, or a percentage."""
    if isinstance(given, str) and _PERCENT.fullmatch(given):
        return given
    if isinstance(given, str) and _NUMBER.fullmatch(given) is None:
        raise InputError(
            f"max_error is {checks.shown(given)}",
            'give max_error=5, in the unit of the values, or max_error="5%" of the range',
        )
    number = float(given) if isinstance(given, str) else given
    return checks.number(number, "max_error", above=0, example=5)


PlainFraction = PlainSerializer(lambda each: None if each is None else str(each))
ExactDelta = Annotated[Fraction, BeforeValidator(check_delta), PlainFraction]


class Request(Model):
    """Exactly the arguments of `shoal.plan`; see there for each."""

    bounds: TwoBounds
    tick_bits: Annotated[int, checked(checks.whole, "tick bits", least=1, most=MOST_BITS)] = 20
    statistics: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda each: tuple(s.name for s in cell_statistics.statistics(each))),
    ] = ("mean",)
    epsilon: Annotated[Fraction | None, checked(check_epsilon), PlainFraction] = None
    error: Annotated[float | None, checked(checks.number, "error", above=0, example=5)] = None
    delta: ExactDelta = Fraction(0)
    max_error: Annotated[float | str | None, checked(_largest_error)] = None
    objective: Annotated[str | None, checked(checks.choice, OBJECTIVES, "objective")] = None
    range: Annotated[str | None, checked(checks.choice, RANGES, "range")] = None
    method: Annotated[str | None, checked(checks.choice, METHODS, "method")] = None
    settings: dict[str, str | int | float] = Field(default_factory=dict)
    uninformative: Annotated[
        str, checked(checks.choice, get_args(Uninformative), "uninformative")
    ] = "drop"
    min_users: Annotated[int, checked(checks.whole, "min_users", least=1)] = FEWEST_USERS
    min_records: Annotated[int, checked(checks.whole, "min_records", least=1)] = 1
    weights: Annotated[dict[str, float], BeforeValidator(_weights)] = Field(default_factory=dict)

    @cached_property
    def lattice(self) -> Lattice:
        """Bounds and ticks of the values."""
        return Lattice(Bounds(*self.bounds), self.tick_bits)

    @cached_property
    def kinds(self) -> tuple[Statistic, ...]:
        """The statistics that are released of each cell."""
        return cell_statistics.statistics(self.statistics)

    @property
    def largest_error(self) -> float | None:
        """`max_error` as a part of the range of every statistic."""
        given = self.max_error
        if given is None:
            return None
        if isinstance(given, str) and (matched := _PERCENT.fullmatch(given)):
            return float(matched[1]) / 100
        _, length = self.kinds[0].statistic_range(self.lattice.bounds)
        return float(given) / float(length)

    @model_validator(mode="before")
    @classmethod
    def _sorted_settings(cls, given: Any) -> Any:
        """Checks settings and sorts them by name; refuses settings without a method."""
        settings = given.get("settings") if isinstance(given, dict) else None
        if settings is None:
            # Without the entry, its default holds.
            return {name: each for name, each in given.items() if name != "settings"}
        if given.get("method") is None:
            if checks.mapping(settings, "settings"):
                raise InputError("settings need a method", 'give method="user_clipped" or another')
            return given
        return {**given, "settings": checked_settings(given["method"], settings)}

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuses arguments that do not go together."""
        # This refuses bounds and tick bits that do not go together.
        _ = self.lattice
        if (self.epsilon is None) == (self.error is None):
            both = "missing" if self.epsilon is None else "given"
            raise InputError(
                f"epsilon and error are both {both}",
                "give exactly one of them, for example epsilon=1.0",
            )
        if self.method is not None and (self.objective or self.range):
            raise InputError(
                f"{'an objective' if self.objective else 'a range'} and a method are both given",
                "leave method out: shoal chooses one that suits the objective and the range",
            )
        if self.range is not None and (self.objective == "worst_case" or self.epsilon is None):
            raise InputError(
                'range is given together with error= or objective="worst_case"',
                "leave range out: certified plans do not use it",
            )
        # Without a method, `balanced` is checked: it allows whatever some method allows.
        self._check_method(method_of(self.method or "balanced", self.settings))
        self._check_largest_error()
        return self

    def _check_method(self, method: Method) -> None:
        """Refuses arguments that the method cannot carry out."""
        names = ", ".join(self.statistics)
        only_mean = names == "mean"
        if self.weights and not method.takes_weights:
            raise InputError(
                f"the method {method.name} takes no weights",
                "leave weights out, or choose the method balanced",
            )
        if not only_mean and method.planner == "by cell":
            raise InputError(
                f"the method {method.name} cannot release the statistics {names}",
                f"choose {_those(lambda each: each.planner != 'by cell')}, or plan only the mean",
            )
        if not only_mean and method.means_alone:
            raise InputError(
                f"private ranges work only for plans of the mean, not of {names}",
                "leave the setting range out, or choose another method",
            )
        several = len(self.statistics) > 1
        if self.error is not None and (not method.takes_error or several or self.delta):
            raise InputError(
                "error= needs one statistic, no delta, and a method that can plan for an error",
                "give epsilon instead, or leave out what does not fit; the methods that can are "
                f"{_those(lambda each: each.takes_error)}",
            )
        if self.delta and not method.takes_delta:
            raise InputError(
                f"the method {method.name} takes no delta",
                f"leave delta out, or choose one of {_those(lambda each: each.takes_delta)}, "
                "which have Gaussian noise",
            )

    def _check_largest_error(self) -> None:
        """Refuses a `max_error` that is no error below guessing, or does not go with the rest."""
        if self.max_error is None:
            return
        if self.error is not None or self.uninformative != "drop":
            raise InputError(
                "max_error is given together with an error or with uninformative",
                "leave the others out: max_error itself decides which cells are left out",
            )
        if len(self.statistics) > 1 and isinstance(self.max_error, float):
            raise InputError(
                f"max_error is a number, {self.max_error:g}, but there are several statistics",
                'give a percentage of the range, for example max_error="5%"',
            )
        part = self.largest_error
        if part is None or not 0 < part < MIDPOINT_ERROR:
            raise InputError(
                f"max_error is {part or 0:.3%} of the range",
                'give for example "5%": above 0% and below 50%, the error of guessing the middle',
            )


def _those(wanted: Callable[[Method], bool]) -> str:
    """Returns the names of the methods that fulfil a condition."""
    return ", ".join(name for name in METHODS if wanted(method_of(name)))
