"""What the custodian asks of a plan: checked once, before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from shoal.accounting.budget import Amount, Budget
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Method = Literal["balanced", "equalised", "uniform"]
Worthless = Literal["drop", "keep", "refuse"]
METHODS: tuple[Method, ...] = get_args(Method)
WORTHLESS: tuple[Worthless, ...] = get_args(Worthless)
STATISTICS = ("mean",)
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Request:
    """A wish: how much privacy loss or error, by which method, under which public rules.

    Attributes:
        method: How the noise is shared among the cells.
        epsilon: Total loss allowed, or None if an error was asked for.
        error: Largest worst-case error of a cell in the value's unit, or None.
        statistics: What is released of each cell.
        worthless: What happens to cells no better than guessing.
        min_users: Fewest users of a released cell.
        min_records: Fewest records of a released cell.
        weights: Importance of cells by label; 1 where not named.
    """

    method: Method
    epsilon: Fraction | None
    error: float | None
    statistics: tuple[str, ...]
    worthless: Worthless
    min_users: int
    min_records: int
    weights: Mapping[str, float]


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
) -> Request:
    """Check each wish and put them together.

    Raises:
        InputError: Any of them is not usable, or both or neither of epsilon and error are given.
    """
    if (epsilon is None) == (error is None):
        got = "neither epsilon nor error" if epsilon is None else "both epsilon and error"
        raise InputError(got, "exactly one of them", "give for example epsilon=1.0")
    if list(statistics) != list(STATISTICS):
        raise InputError(
            f"statistics are {list(statistics)}", 'statistics=["mean"]', "leave it out"
        )
    for name, rule in (("min_users", min_users), ("min_records", min_records)):
        if isinstance(rule, bool) or not isinstance(rule, int) or rule < 1:
            raise InputError(f"{name} is {rule!r}", "a whole number from 1", f"give {name}=1")
    if weights and method != "balanced":
        raise InputError(
            f"weights with the method {method}", "weights with balanced", "leave them out"
        )
    return Request(
        method=_choice(method, METHODS, "method"),
        epsilon=None if epsilon is None else _epsilon(epsilon),
        error=None if error is None else _error(error),
        statistics=tuple(statistics),
        worthless=_choice(worthless, WORTHLESS, "worthless"),
        min_users=min_users,
        min_records=min_records,
        weights=_weights(weights or {}),
    )


def _epsilon(epsilon: Amount) -> Fraction:
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


def _choice(value: object, options: tuple[Name, ...], name: str) -> Name:
    for option in options:
        if option == value:
            return option
    raise InputError(f"{name} is {value!r}", f"one of {', '.join(options)}", f"give another {name}")


def _weights(weights: Mapping[str, float]) -> dict[str, float]:
    for label, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not math.isfinite(weight) or weight <= 0:
            raise InputError(
                f"the weight of cell {label!r} is {weight!r}",
                "finite numbers above 0",
                "give 1 to a cell of ordinary importance",
            )
    return {str(label): float(weight) for label, weight in sorted(weights.items())}
