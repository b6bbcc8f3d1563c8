"""A pair (epsilon, delta) in exact rationals: budgets, charges and their sums."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from shoal import checks
from shoal.checks import amount
from shoal.errors import InputError
from shoal.privacy.displayed_loss import plain, round_up

Amount = Fraction | float | int | str
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
# Of all releases of a data set together; more is a slip of the keyboard.
MOST_TOTAL = Fraction(10**15)

_STORED = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?")


@dataclass(frozen=True)
class Budget:
    """What may be, or has been, spent: a pair (epsilon, delta), exact.

    Attributes:
        epsilon: The privacy loss.
        delta: The probability with which the loss may be larger.

    Example:
        >>> Budget.of("0.1", 0) + Budget.of(0.2)
        Budget(epsilon=Fraction(3, 10), delta=Fraction(0, 1))
        >>> print(Budget.of("0.1") + Budget.of("1/3", 1e-9))
        epsilon 13/30, delta 1e-9
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Amount, delta: Amount = 0) -> Budget:
        """A charge: both parts zero or more.

        Args:
            epsilon: A fraction, number, or text such as "0.1" or "1/3". A float counts as its
                shortest decimal, so 0.1 is 1/10 exactly.
            delta: The same.

        Raises:
            InputError: Not a number, not finite, below zero, or of more than 400 digits.
        """
        return cls(amount(epsilon, "epsilon"), amount(delta, "delta"))

    @classmethod
    def total(cls, epsilon: Amount, delta: Amount = 0) -> Budget:
        """A budget: epsilon above zero, delta from zero to below one.

        Raises:
            InputError: As `Budget.of`, or outside these ranges.

        Example:
            >>> Budget.total(0)
            Traceback (most recent call last):
            shoal.errors.InputError: epsilon is 0; allowed: ...
        """
        budget = cls.of(epsilon, delta)
        if budget.epsilon == 0:
            raise _bad("epsilon", "0", "a finite number above 0", "1")
        if budget.epsilon > MOST_TOTAL:
            shown = checks.shown(epsilon)
            raise _bad("epsilon", shown, f"at most {float(MOST_TOTAL):g}", "1")
        if budget.delta >= 1:
            raise _bad("delta", checks.shown(delta), "a number from 0 to below 1", "0")
        return budget

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Budget) -> Budget:
        return Budget(self.epsilon - other.epsilon, self.delta - other.delta)

    def __str__(self) -> str:
        """Both parts exactly, or with `about` where that is too long to read."""
        return f"epsilon {plain(self.epsilon)}, delta {plain(self.delta)}"

    def texts(self) -> tuple[str, str]:
        """Both parts as stored and hashed: see `text`."""
        return text(self.epsilon), text(self.delta)

    @classmethod
    def from_texts(cls, epsilon: str, delta: str) -> Budget:
        """The inverse of `texts`.

        Raises:
            ValueError: As `from_text`.

        Example:
            >>> spent = Budget.of("0.1")
            >>> Budget.from_texts(*spent.texts()) == spent
            True
        """
        return cls(from_text(epsilon), from_text(delta))

    def to_document(self) -> dict[str, str | float]:
        """Both parts exactly, and as numbers that are rounded upwards.

        Example:
            >>> Budget.of("1/3").to_document()["epsilon"]
            '1/3'
        """
        return {
            "epsilon": text(self.epsilon),
            "epsilon_at_most": round_up(self.epsilon),
            "delta": text(self.delta),
            "delta_at_most": round_up(self.delta),
        }

    def times(self, number: int) -> Budget:
        """The same charge several times."""
        return Budget(self.epsilon * number, self.delta * number)

    def within(self, other: Budget) -> bool:
        """Whether both parts are at most those of another budget."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def show(self, *, up: bool) -> str:
        """Both parts with six significant digits, rounded to the safe side.

        Args:
            up: Round upwards (a charge) instead of downwards (what is left).

        Example:
            >>> Budget.of("1/3", "1e-9").show(up=True)
            'epsilon 0.333334, delta 1E-9'
        """
        return f"epsilon {_show(self.epsilon, up=up)}, delta {_show(self.delta, up=up)}"


NOTHING = Budget(Fraction(0))


def text(value: Fraction) -> str:
    """The one text of a fraction, as stored and hashed.

    Example:
        >>> text(Fraction("0.1")), text(Fraction(2))
        ('1/10', '2')
    """
    return str(value)


def from_text(stored: str) -> Fraction:
    """The inverse of `text`.

    Raises:
        ValueError: Not the one text of a fraction; the caller knows which file it is from.
    """
    match = _STORED.fullmatch(stored)
    if match is None or int(match[2] or 1) == 0:
        raise ValueError
    found = Fraction(int(match[1]), int(match[2] or 1))
    if text(found) != stored:
        raise ValueError
    return found


def _bad(name: str, value: str, allowed: str, example: str) -> InputError:
    return InputError(f"{name} is {value}", allowed, f"give for example {name}={example}")


def _show(value: Fraction, *, up: bool) -> str:
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    # Not the caller's context, which may trap what is rounded.
    with localcontext(Context(6, rounding, MIN_EMIN, MAX_EMAX, traps=[])):
        written = str(Decimal(value.numerator) / Decimal(value.denominator))
    mantissa, exponent, power = written.partition("E")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa + exponent + power


def check_epsilon(epsilon: Amount) -> Fraction:
    """An epsilon within what any release may cost, exactly.

    Raises:
        InputError: It is not.

    Example:
        >>> check_epsilon("0.1")
        Fraction(1, 10)
    """
    exact = Budget.total(epsilon).epsilon
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise InputError(
            f"epsilon is {checks.shown(epsilon)}",
            f"{float(LEAST_EPSILON):g} to {float(MOST_EPSILON):g}",
            "1 is a common choice; far larger ones protect nobody, far smaller ones say nothing",
        )
    return exact
