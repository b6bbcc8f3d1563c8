"""What the custodian asks of a plan: checked once, before any work."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from shoal import checks
from shoal.cells.objective import OBJECTIVES, RANGES
from shoal.cells.presets import METHODS, checked_settings, parts_of
from shoal.cells.statistics.catalogue import statistics as statistics_of
from shoal.errors import InputError
from shoal.privacy.budget import Amount, Budget, check_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shoal.cells.plan_parts import PlanParts
    from shoal.cells.statistics.base import Statistic

Uninformative = Literal["drop", "keep", "refuse"]
UNINFORMATIVE: tuple[Uninformative, ...] = get_args(Uninformative)
STATISTICS = ("mean",)
_MOST_DELTA = Fraction(1, 100)
MOST_WEIGHT = 1e6


@dataclass(frozen=True)
class Request:
    """A request: how much privacy loss or error, by which method, under which public rules.

    Attributes:
        method: What the parts of the plan are called together (`shoal.cells.presets`).
        epsilon: Total loss allowed, or None if an error was asked for.
        error: Largest worst-case error of a cell in the value's unit, or None.
        statistics: What is released of each cell.
        delta: The delta of (epsilon, delta)-DP; above 0, noise may be Gaussian.
        uninformative: What happens to cells no better than guessing.
        min_users: Fewest users of a released cell.
        min_records: Fewest records of a released cell.
        weights: Importance of cells by label; 1 where not named.
        settings: Of the method, by name.
        objective: What the method was chosen for (`shoal.cells.objective`); nothing if it was
            named.
        max_error: Largest error of a released cell, as a part of its range, or None.
        range: What is known of the bounds, if an objective chose the method: `tight`, `loose`, or
            nothing.
    """

    method: str
    epsilon: Fraction | None
    error: float | None
    statistics: tuple[Statistic, ...]
    delta: Fraction
    uninformative: Uninformative
    min_users: int
    min_records: int
    weights: Mapping[str, float]
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    objective: str = ""
    max_error: float | None = None
    range: str = ""

    @cached_property
    def parts(self) -> PlanParts:
        """The parts that method, settings and delta stand for."""
        return parts_of(self.method, self.settings, self.delta)


def make_request(
    *,
    method: str,
    epsilon: Amount | None,
    error: float | None,
    statistics: Sequence[str],
    uninformative: str,
    min_users: int,
    min_records: int,
    weights: Mapping[str, float] | None,
    settings: Mapping[str, str | int | float] | None = None,
    delta: Amount = 0,
    objective: str = "",
    max_error: float | None = None,
    range: str = "",
) -> Request:
    """Check each request and put them together.

    Raises:
        InputError: Any of them is not usable, or both or neither of epsilon and error are given.
    """
    if (epsilon is None) == (error is None):
        got = "neither epsilon nor error" if epsilon is None else "both epsilon and error"
        raise InputError(got, "exactly one of them", "give for example epsilon=1.0")
    wanted = statistics_of(statistics)
    users = checks.whole(min_users, "min_users", least=1)
    records = checks.whole(min_records, "min_records", least=1)
    chosen = checks.choice(method, METHODS, "method")
    heavy = {} if weights is None else _weights(checks.mapping(weights, "weights"))
    own = checked_settings(chosen, settings)
    parts = parts_of(chosen, own)
    if heavy and parts.shares and not parts.allocation.weighs:
        raise InputError(
            f"weights with the method {chosen}", "weights with balanced", "leave them out"
        )
    exact_delta = _delta(delta)
    limit = checks.optional(error, checks.number, "error", above=0, example=5)
    _check_together(chosen, parts, limit, wanted, exact_delta)
    most = checks.optional(max_error, checks.number, "max_error", above=0, below=0.5, example=0.05)
    if most is not None and (limit is not None or uninformative != "drop"):
        raise InputError(
            "max_error with an error, or with what happens to uninformative cells",
            'max_error with epsilon and uninformative="drop"',
            "leave the others out: cells above max_error are left out, and no others",
        )
    return Request(
        method=chosen,
        epsilon=None if epsilon is None else check_epsilon(epsilon),
        error=limit,
        statistics=wanted,
        delta=exact_delta,
        uninformative=checks.choice(uninformative, UNINFORMATIVE, "uninformative"),
        min_users=users,
        min_records=records,
        weights=heavy,
        settings=own,
        objective=checks.choice(objective, ("", *OBJECTIVES), "objective"),
        max_error=most,
        range=checks.choice(range, ("", *RANGES) if objective else ("",), "range"),
    )


def _check_together(
    method: str,
    parts: PlanParts,
    error: float | None,
    statistics: tuple[Statistic, ...],
    delta: Fraction,
) -> None:
    many = [each.name for each in statistics]
    if many != list(STATISTICS) and parts.allocation.by_cell:
        raise InputError(
            f"statistics {', '.join(many)} with the method {method}",
            f"{_those(lambda each: not each.allocation.by_cell)}, or the mean alone",
            "choose another method",
        )
    if many != list(STATISTICS) and parts.mean_alone:
        raise InputError(
            f"a selected range with {', '.join(many)}", "the mean alone", "leave the range whole"
        )
    if error is not None and (not parts.takes_error or len(many) > 1 or delta):
        raise InputError(
            f"an error with the method {method}, {len(many)} statistics and delta {float(delta):g}",
            f"an error with {_those(lambda each: each.takes_error)}, one statistic and no delta",
            "give epsilon instead, and look at the errors it leads to",
        )
    if delta and not parts.takes_delta:
        raise InputError(
            f"delta with the method {method}",
            f"delta with {_those(lambda each: each.takes_delta)}; the others need Laplace noise",
            "leave delta out",
        )


def _those(wanted: Callable[[PlanParts], bool]) -> str:
    """Names of the methods whose parts are wanted."""
    return ", ".join(name for name in METHODS if wanted(parts_of(name)))


def _delta(delta: Amount) -> Fraction:
    exact = Budget.of(0, delta).delta
    if exact and not Fraction(1, 10**100) <= exact <= _MOST_DELTA:
        raise InputError(
            f"delta is {checks.shown(delta)}",
            f"0, or 1e-100 to {float(_MOST_DELTA):g}",
            "give far less than one over the number of users, such as 1e-9",
        )
    return exact


def mean_request(
    method: str,
    epsilon: Amount,
    settings: Mapping[str, str | int | float],
    delta: Amount = 0,
) -> Request:
    """The request for means of every cell, uninformative or not, by one method.

    Raises:
        InputError: The method, epsilon or a setting is not usable.
    """
    return make_request(
        method=method,
        epsilon=epsilon,
        error=None,
        statistics=STATISTICS,
        uninformative="keep",
        min_users=1,
        min_records=1,
        weights=None,
        settings=settings,
        delta=delta,
    )


def _weights(weights: Mapping[str, object]) -> dict[str, float]:
    ends: dict[str, Any] = {"least": 1 / MOST_WEIGHT, "most": MOST_WEIGHT}
    return {
        label: checks.number(weights[label], f"the weight of cell {checks.shown(label)}", **ends)
        for label in sorted(weights)
    }
