"""Charges and their sums as fractions of bounded length, rounded against us.

A plan's exact loss is a fraction of thousands of digits, and sums of fractions grow with every
charge. A ledger books each charge rounded up to the next fraction whose denominator is at most
10^40, and each running sum rounded up to the next whose denominator is at most 10^80. Fractions
that are short enough stay as they are: three charges of 1/3 fill a budget of 1. As the next such
fraction is never above another one that is not smaller than the value, rounding never carries a
charge beyond a limit like 1/3 that it kept.
"""

from __future__ import annotations

from fractions import Fraction

from shoal.privacy.budget import Budget

LONGEST_CHARGE = 10**40
LONGEST_SUM = 10**80


def booked(charge: Budget) -> Budget:
    """What a ledger books for a charge: at least the charge, exact if it is short.

    Example:
        >>> booked(Budget.of("1/3")) == Budget.of("1/3")
        True
    """
    return Budget(ceiling(charge.epsilon, LONGEST_CHARGE), ceiling(charge.delta, LONGEST_CHARGE))


def added(spent: Budget, charge: Budget) -> Budget:
    """A running sum after a charge: at least the sum, exact while it is short."""
    epsilon, delta = spent.epsilon + charge.epsilon, spent.delta + charge.delta
    return Budget(ceiling(epsilon, LONGEST_SUM), ceiling(delta, LONGEST_SUM))


def ceiling(value: Fraction, most: int) -> Fraction:
    """The least fraction not below a value whose denominator is at most `most`.

    Convergents of the continued fraction lead to the value's two neighbours in the Farey sequence
    of order `most` (Graham, Knuth, Patashnik: Concrete Mathematics, section 4.5).

    Example:
        >>> ceiling(Fraction(314159, 100000), 100), ceiling(Fraction(33333, 100000), 10)
        (Fraction(22, 7), Fraction(1, 3))
    """
    if value.denominator <= most:
        return value
    (low, below), (high, above) = (0, 1), (1, 0)
    top, bottom = value.numerator, value.denominator
    while True:
        whole = top // bottom
        if below + whole * above > most:
            break
        (low, below), (high, above) = (high, above), (low + whole * high, below + whole * above)
        top, bottom = bottom, top - whole * bottom
    times = (most - below) // above
    one, other = Fraction(low + times * high, below + times * above), Fraction(high, above)
    return max(one, other)
