"""What a lower bound is asked about: users, budget, bias, a moment, and how well the mean is known.

Everything is checked once and put in units of the moment's size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from shoal.errors import InputError, raise_alone

_LEAST_ORDER = 2
# Smaller losses count as this one, so that their squares do not vanish.
_LEAST_EPSILON = 1e-100

Amount = Fraction | float | int | str


class MomentLike(Protocol):
    """A promise E|X - mean|^order <= size^order, the size in the value's unit."""

    @property
    def order(self) -> float:
        """From 2 on."""

    @property
    def size(self) -> float:
        """Above 0, in the value's unit."""


Moment = MomentLike | tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """Public facts of a problem: one value of each of n users, drawn from an unknown distribution.

    The class of distributions: E|X - mean|^order <= size^order and a mean within an interval.

    Attributes:
        n: Users, one value each.
        epsilon: Privacy loss when one user's value is replaced, rounded upwards.
        delta: Probability of a larger loss, rounded upwards.
        bias: Most bias over the class, over `size`; infinite if nothing is promised.
        order: Order of the moment.
        size: Size of the moment, in the value's unit.
        width: Length of the interval that is known to hold the mean, over `size`.
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
    ) -> Setting:
        """Check the facts and put them in units of the moment's size.

        Args:
            n: Users, from 1.
            epsilon: From 0; may be 0 if delta is not.
            delta: From 0 to below 1.
            bias: In the value's unit, from 0; infinite for no promise.
            moment: (order, size) or an object with these, order from 2 and size above 0.
            width: Length of the interval that holds the mean, in the value's unit; without it,
                the size of the moment.

        Raises:
            InputError: A number is outside its range.

        Example:
            >>> round(Setting.of(1000, "0.1", 0, 0.5, (2, 10.0)).bias, 9)
            0.05
        """
        order, size = moment if isinstance(moment, tuple) else (moment.order, moment.size)
        reach = size if width is None else width
        _check(f"{n} users", "1 or more", "count the users", holds=n >= 1)
        _check(
            f"a moment of order {order}",
            "2 or more",
            "give for example moment=(2, size)",
            holds=_LEAST_ORDER <= order < math.inf,
        )
        for name, length in (("moment of size", size), ("width of", reach)):
            _check(f"a {name} {length}", "above 0, finite", "give one", holds=0 < length < math.inf)
        _check(f"a bias of {bias}", "0 or more", "give bias=0 for unbiased", holds=bias >= 0)
        loss, chance = _upwards(epsilon, "epsilon"), _upwards(delta, "delta")
        _check(f"delta {chance}", "from 0 to below 1", "give for example 1e-6", holds=chance < 1)
        _check(
            "no budget at all",
            "epsilon or delta above 0",
            "give epsilon=1",
            holds=loss + chance > 0,
        )
        # The bias is promised: a larger one makes every bound weaker, so it is rounded upwards.
        share = math.nextafter(bias / size, math.inf) if bias > 0 else 0.0
        loss = max(loss, _LEAST_EPSILON) if loss > 0 else loss
        return cls(int(n), loss, chance, share, float(order), float(size), reach / size)


def downwards(bound: float) -> float:
    """A little below: more than what the rounding of NumPy's functions can add to a bound."""
    return bound * (1 - 2.0**-40)


def _upwards(amount: Amount, name: str) -> float:
    """The least float that is not below: more loss makes every lower bound weaker."""
    try:
        exact = Fraction(amount)
        nearest = float(exact)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        raise_alone(
            InputError(
                f"{name} is {str(amount)[:40]}", "a finite number", f"give for example {name}=0.5"
            )
        )
    _check(f"{name} is {nearest}", "0 or more", f"give for example {name}=0.5", holds=exact >= 0)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _check(got: str, allowed: str, todo: str, *, holds: bool) -> None:
    if not holds:
        raise InputError(got, allowed, todo)
