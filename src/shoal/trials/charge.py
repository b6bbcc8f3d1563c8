"""What a trial may be asked to cost."""

from fractions import Fraction

from shoal.errors import InputError
from shoal.privacy.budget import Amount, Budget

# Beyond these nothing is protected or nothing can be told, and floating-point numbers end.
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
LEAST_DELTA = Fraction(1, 10**100)


def charge_of(epsilon: Amount, delta: Amount = 0) -> Budget:
    """The exact epsilon and delta that a mechanism is asked for.

    Args:
        epsilon: From 1e-9 to 1e6.
        delta: 0, or from 1e-100 to below 1.

    Raises:
        InputError: Other numbers, or none.

    Example:
        >>> charge_of("0.5").epsilon
        Fraction(1, 2)
    """
    found = Budget.total(epsilon, delta)
    if not LEAST_EPSILON <= found.epsilon <= MOST_EPSILON:
        raise InputError(
            f"epsilon is {found.show(up=True).split(',')[0].removeprefix('epsilon ')}",
            "a number from 1e-9 to 1e6",
            "give for example epsilon=1",
        )
    if 0 < found.delta < LEAST_DELTA:
        raise InputError(
            "a delta below 1e-100", "0, or from 1e-100 to below 1", "give 0 or for example 1e-9"
        )
    return found


def clustering_of(epsilon: Amount) -> Fraction:
    """What private clusters cost when they were made, exactly.

    Args:
        epsilon: From 0 to 1e6.

    Raises:
        InputError: Another number, or none.

    Example:
        >>> clustering_of("0.25")
        Fraction(1, 4)
    """
    found = Budget.of(epsilon).epsilon
    if found > MOST_EPSILON:
        raise InputError(
            "a clustering_epsilon above 1e6", "a number from 0 to 1e6", "give what they cost"
        )
    return found
