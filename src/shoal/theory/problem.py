"""Describes the problem of a lower bound: users, budget, bias, a moment, and where the mean lies.

All of it is checked once and put in units of the moment's size.

Source: docs/theory/means.md#the-trilemma.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

from shoal import checks
from shoal.errors import InputError

_PAIR = 2
# Larger numbers would overflow; no problem that anyone has is near these limits.
_MOST_ORDER = 1000
_MOST_USERS = 10**18
_MOST_LOSS = 10**15
_LENGTH: dict[str, Any] = {"least": 1e-100, "most": 1e100}
# A smaller epsilon counts as this one, so that its square does not vanish.
_LEAST_EPSILON = 1e-100
# A larger bias, in sizes of the moment, counts as infinite: its powers overflow, and no bound is
# left at this one.
_MOST_SHARE = 1e60

Amount = Fraction | float | int | str


class MomentLike(Protocol):
    """A promise that E|X - mean|^order <= size^order, with the size in the value's unit."""

    @property
    def order(self) -> float:
        """The order, from 2 on."""

    @property
    def size(self) -> float:
        """The size, above 0 and in the value's unit."""


Moment = MomentLike | tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """Public facts of a problem: one value of each of n users, drawn from an unknown distribution.

    The distribution has E|X - mean|^order <= size^order and its mean within an interval.

    Source: docs/theory/means.md#the-trilemma; paper 004, section 2.

    Attributes:
        n: Users, one value each.
        epsilon: Privacy loss when one user's value is replaced, rounded upwards.
        delta: Probability of a larger loss, rounded upwards.
        bias: Most bias over the class, as a factor of `size`; infinite if nothing is promised.
        order: Order of the moment.
        size: Size of the moment, in the value's unit.
        width: Length of the interval that is known to hold the mean, as a factor of `size`.
    """

    n: int
    epsilon: float
    delta: float
    bias: float
    order: float
    size: float
    width: float

    @classmethod
    def of(
        cls,
        n: int,
        epsilon: Amount,
        delta: Amount,
        bias: float,
        moment: Moment,
        width: float | None = None,
    ) -> Self:
        """Check the facts and put them in units of the moment's size.

        Args:
            n: Users, from 1.
            epsilon: From 0; may be 0 if delta is not.
            delta: From 0 to below 1.
            bias: In the value's unit, from 0; infinite for no promise.
            moment: (order, size) or an object with these, order from 2 and size above 0.
            width: Length of the interval that holds the mean, in the value's unit; without it,
                the size of the moment.

        Returns:
            The problem, with lengths in sizes of the moment.

        Raises:
            InputError: A number is outside its range.

        Example:
            >>> round(Setting.of(1000, "0.1", 0, 0.5, (2, 10.0)).bias, 9)
            0.05
        """
        users = checks.whole(n, "n", least=1, most=_MOST_USERS, example=1000)
        order, size = _moment(moment)
        reach = size if width is None else checks.number(width, "width", **_LENGTH)
        bias = checks.number(bias, "bias", least=0, infinite=True, example=0)
        loss = _upwards(epsilon, "epsilon")
        chance = _upwards(delta, "delta")
        if chance >= 1:
            raise InputError(f"delta is {chance}", "give a delta from 0 to below 1")
        if loss + chance == 0:
            raise InputError("epsilon and delta are both 0", "give one of them above 0")
        # The promised bias is rounded upwards, as a larger one makes every bound weaker.
        bias_in_sizes = math.nextafter(bias / size, math.inf) if bias > 0 else 0.0
        if bias_in_sizes > _MOST_SHARE:
            bias_in_sizes = math.inf
        if loss > 0:
            loss = max(loss, _LEAST_EPSILON)
        return cls(users, loss, chance, bias_in_sizes, float(order), float(size), reach / size)


def downwards(bound: float) -> float:
    """Returns a number below a bound, by more than the rounding of NumPy's functions adds to it."""
    return bound * (1 - 2.0**-40)


def _moment(moment: object) -> tuple[float, float]:
    """Returns order and size, from a pair or an object with these."""
    pair: tuple[object, ...] = ()
    if isinstance(moment, tuple):
        pair = moment
    else:
        # An object without these, or that fails to give them, is no moment.
        with suppress(Exception):
            pair = (moment.order, moment.size)  # type: ignore[attr-defined]
    if len(pair) != _PAIR:
        raise InputError(f"moment is {checks.shown(moment)}", "give for example moment=(2, 1.5)")
    given_order, given_size = pair
    order = checks.number(given_order, "a moment's order", least=2, most=_MOST_ORDER, example=2)
    return order, checks.number(given_size, "a moment's size", **_LENGTH)


def _upwards(amount: Amount, name: str) -> float:
    """Returns the least float not below an amount: more loss makes every lower bound weaker."""
    exact = checks.amount(amount, name)
    if isinstance(amount, float):
        # A float is taken exactly, in all its binary digits, and not as its shortest decimal.
        exact = Fraction(amount)
    if exact > _MOST_LOSS:
        raise InputError(f"{name} is {checks.shown(amount)}", f"give at most {_MOST_LOSS:g}")
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
