"""What the custodian asks of a plan: checked once, before any work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from shoal.accounting.budget import Amount, Budget
from shoal.errors import InputError
from shoal.mechanisms.mean.catalogue import (
    BOUNDINGS,
    MECHANISMS,
    check_setting,
    settings_allowed,
)
from shoal.statistics.catalogue import statistics as statistics_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.statistics.base import Statistic

Worthless = Literal["drop", "keep", "refuse"]
# How noise is shared among cells in which every record counts.
SHARINGS = ("balanced", "equalised", "uniform")
# Any method that is neither of these nor bounds users in all cells at once is a mean mechanism,
# whose losses are balanced.
METHODS = (*SHARINGS, *BOUNDINGS, *MECHANISMS, "auto")
WORTHLESS: tuple[Worthless, ...] = get_args(Worthless)
STATISTICS = ("mean",)
_MOST_DELTA = Fraction(1, 100)
MOST_WEIGHT = 1e6
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Request:
    """A wish: how much privacy loss or error, by which method, under which public rules.

    Attributes:
        method: How the noise is shared among the cells, or a mean mechanism, or `auto`.
        epsilon: Total loss allowed, or None if an error was asked for.
        error: Largest worst-case error of a cell in the value's unit, or None.
        statistics: What is released of each cell.
        delta: What may go wrong; above 0, noise may be Gaussian.
        worthless: What happens to cells no better than guessing.
        min_users: Fewest users of a released cell.
        min_records: Fewest records of a released cell.
        weights: Importance of cells by label; 1 where not named.
        settings: Of the mean mechanism, by name.
    """

    method: str
    epsilon: Fraction | None
    error: float | None
    statistics: tuple[Statistic, ...]
    delta: Fraction
    worthless: Worthless
    min_users: int
    min_records: int
    weights: Mapping[str, float]
    settings: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def shares(self) -> bool:
        """Whether the method shares noise and bounds nobody."""
        return self.method in SHARINGS

    @property
    def bounds_together(self) -> bool:
        """Whether users are bounded in all cells at once, or not at all."""
        return self.method in (*SHARINGS, *BOUNDINGS)


def make_request(
    *,
    method: str,
    epsilon: Amount | None,
    error: float | None,
    statistics: Sequence[str],
    worthless: str,
    min_users: int,
    min_records: int,
    weights: Mapping[str, float] | None,
    settings: Mapping[str, str | int | float] | None = None,
    delta: Amount = 0,
) -> Request:
    """Check each wish and put them together.

    Raises:
        InputError: Any of them is not usable, or both or neither of epsilon and error are given.
    """
    if (epsilon is None) == (error is None):
        got = "neither epsilon nor error" if epsilon is None else "both epsilon and error"
        raise InputError(got, "exactly one of them", "give for example epsilon=1.0")
    wanted = statistics_of(statistics)
    for name, rule in (("min_users", min_users), ("min_records", min_records)):
        if isinstance(rule, bool) or not isinstance(rule, int) or rule < 1:
            raise InputError(f"{name} is {rule!r}", "a whole number from 1", f"give {name}=1")
    chosen = _choice(method, METHODS, "method")
    for name, wish in (("weights", weights), ("settings", settings)):
        if wish is not None and not isinstance(wish, Mapping):
            raise InputError(
                f"{name} of type {type(wish).__name__}", "a mapping by name", f"leave {name} out"
            )
    if weights and chosen in ("equalised", "uniform"):
        raise InputError(
            f"weights with the method {chosen}", "weights with balanced", "leave them out"
        )
    exact_delta, own = _delta(delta), _settings(chosen, settings or {})
    _check_together(chosen, error, wanted, exact_delta, own)
    return Request(
        method=chosen,
        epsilon=None if epsilon is None else check_epsilon(epsilon),
        error=None if error is None else _error(error),
        statistics=wanted,
        delta=exact_delta,
        worthless=_choice(worthless, WORTHLESS, "worthless"),
        min_users=min_users,
        min_records=min_records,
        weights=_weights(weights or {}),
        settings=own,
    )


def _check_together(
    method: str,
    error: float | None,
    statistics: tuple[Statistic, ...],
    delta: Fraction,
    settings: Mapping[str, str | int | float],
) -> None:
    many = [each.name for each in statistics]
    if many != list(STATISTICS) and method not in (*SHARINGS, *BOUNDINGS):
        raise InputError(
            f"statistics {', '.join(many)} with the method {method}",
            f"{', '.join((*SHARINGS, *BOUNDINGS))}, or the mean alone",
            "choose another method",
        )
    selects = settings.get("range") == "selected"
    if selects and many != list(STATISTICS):
        raise InputError(
            f"a selected range with {', '.join(many)}", "the mean alone", "leave the range whole"
        )
    takes = (*SHARINGS, "optimal")
    if error is not None and (selects or method not in takes or len(many) > 1 or delta):
        raise InputError(
            f"an error with the method {method}, {len(many)} statistics and delta {float(delta):g}",
            f"an error with {', '.join(takes)}, one statistic and no delta",
            "give epsilon instead, and look at the errors it leads to",
        )
    if delta and method not in SHARINGS:
        raise InputError(
            f"delta with the method {method}",
            f"delta with {', '.join(SHARINGS)}; the others need Laplace noise",
            "leave delta out",
        )


def _delta(delta: Amount) -> Fraction:
    exact = Budget.of(0, delta).delta
    if exact and not Fraction(1, 10**100) <= exact <= _MOST_DELTA:
        raise InputError(
            f"delta is {str(delta)[:20]}",
            f"0, or 1e-100 to {float(_MOST_DELTA):g}",
            "give far less than one over the number of users, such as 1e-9",
        )
    return exact


def check_epsilon(epsilon: Amount) -> Fraction:
    """An epsilon within what any release may cost, exactly.

    Raises:
        InputError: It is not.
    """
    exact = Budget.total(epsilon).epsilon
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise InputError(
            f"epsilon is {str(epsilon)[:20]}",
            f"{float(LEAST_EPSILON):g} to {float(MOST_EPSILON):g}",
            "1 is a common choice; far larger ones protect nobody, far smaller ones say nothing",
        )
    return exact


def _error(error: float) -> float:
    number = isinstance(error, int | float) and not isinstance(error, bool)
    if not number or not math.isfinite(error) or error <= 0:
        raise InputError(
            f"error is {error!r}", "a finite number above 0", "give it in the value's unit"
        )
    return float(error)


def mean_request(
    method: str, epsilon: Amount, settings: Mapping[str, str | int | float]
) -> Request:
    """The wish for means of every cell, worthless or not, by one method.

    Raises:
        InputError: The method, epsilon or a setting is not usable.
    """
    return make_request(
        method=method,
        epsilon=epsilon,
        error=None,
        statistics=STATISTICS,
        worthless="keep",
        min_users=1,
        min_records=1,
        weights=None,
        settings=settings,
    )


def _settings(method: str, settings: Mapping[str, object]) -> dict[str, str | int | float]:
    allowed = () if method in SHARINGS else settings_allowed(method)
    for name, value in settings.items():
        if name not in allowed:
            raise InputError(
                f"the setting {name!r} of {method}",
                ", ".join(allowed) or "no settings",
                "leave it out",
            )
        check_setting(name, value)
    return {name: settings[name] for name in sorted(settings)}  # type: ignore[misc]


def _choice(value: object, options: tuple[Name, ...], name: str) -> Name:
    for option in options:
        if option == value:
            return option
    raise InputError(f"{name} is {value!r}", f"one of {', '.join(options)}", f"give another {name}")


def _weights(weights: Mapping[str, float]) -> dict[str, float]:
    for label, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 1 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
            raise InputError(
                f"the weight of cell {label!r} is {weight!r}",
                f"numbers from {1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}",
                "give 1 to a cell of ordinary importance",
            )
    return {str(label): float(weight) for label, weight in sorted(weights.items())}
