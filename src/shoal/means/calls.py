"""One call an estimator: plan from the public counts of the values at hand, then release."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.checks import keywords
from shoal.means.estimate import UnbiasedEstimate
from shoal.means.one_value_per_user import Users, UserValues
from shoal.means.plan import plan
from shoal.privacy.budget import Amount
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated
from shoal.theory.clipping import Moment


class Options(TypedDict, total=False):
    """What every function of this module takes besides its own arguments.

    Attributes:
        weights: `equal` unless given, or `counts`.
        cap: Largest weight with `counts`.
        interval_by: `normal` or `certified`; by default normal where it can be had, see `plan`.
        source: Public description of the records, kept in plan and manifest.
        ledger: The data set's ledger, or its path; without one nobody keeps the books.
        name: What the release is of, such as a period; tells releases of the same plan apart.
        noise: `shoal.Simulated(seed)` for studies; the estimate is marked and not private.
        confidence: Of the interval; 0.95 unless given.
        values_name: What the values are called; needed with a ledger.
        privacy_unit: What a user is, such as "person"; needed with a ledger and `users`.
    """

    weights: str
    cap: int | None
    interval_by: str | None
    source: Mapping[str, Any] | None
    ledger: str | os.PathLike[str] | Ledger | None
    name: str
    noise: Simulated | None
    confidence: float
    values_name: str
    privacy_unit: str


_PLANNED = {"weights", "cap", "interval_by", "source"}


def clipped_mean(
    values: ArrayLike,
    users: Users | None = None,
    *,
    interval: tuple[float, float],
    bias: float,
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    **options: Unpack[Options],
) -> UnbiasedEstimate:
    """Mean of values clipped to a margin beyond an interval, plus Laplace noise: (epsilon, 0)-DP.

    The margin t is the least whose bias bound E(X - mu - t)+ keeps the budget.

    Source: docs/theory/unbiased.md#clipping; paper 004, Proposition 3.0.1, with sharp constants.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: Whose record it is, shape (n,); by default each record is a user's only one.
        interval: Public interval that holds the mean, in the value's unit.
        bias: Most that the expectation may be off, in the value's unit.
        moment: Public bound on a central moment of a user's value, or several.
        epsilon: Largest privacy loss of every user.
        **options: See `Options`.

    Returns:
        The mean with its errors, in the value's unit.

    Raises:
        InputError: An argument that is not usable.
        DataError: Values are missing or not finite, or lengths differ.
        BudgetError: The charge does not fit the ledger's budget.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = clipped_mean(
        ...     [4.0, 6.0] * 500, interval=(0, 10), bias=0.1, moment=Moment(2, 1), epsilon=1
        ... )
        >>> found.bias_bound <= 0.1, abs(found.value - 5) < 1
        (True, True)
    """
    request = {"interval": interval, "bias": bias, "moment": moment, "epsilon": epsilon}
    return _one("clipped_mean", values, users, request, **options)


def sampled_mean(
    values: ArrayLike,
    users: Users | None = None,
    *,
    interval: tuple[float, float],
    moment: Moment | Sequence[Moment],
    delta: Amount,
    publish_values: bool = False,
    **options: Unpack[Options],
) -> UnbiasedEstimate:
    """Mean of users sampled with probability delta, each weighted 1/delta: (0, delta).

    The mean is exactly unbiased whatever the interval, whose middle values are counted from (paper
    004, 3.0.2). It "names and shames": who is sampled is published.

    Source: docs/theory/unbiased.md#sampling-and-residuals.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: Whose record it is, shape (n,); by default each record is a user's only one.
        interval: The certificate holds for means in it; in the value's unit.
        moment: Public bound on a central moment.
        delta: Probability to sample a user, rounded down to a multiple of 2^-64.
        publish_values: Must be True: a sampled user's value is not protected.
        **options: See `Options`.

    Returns:
        The mean with its errors, in the value's unit.

    Raises:
        InputError: An argument that is not usable.
        DataError: Values are missing or not finite, or lengths differ.
        BudgetError: The charge does not fit the ledger's budget.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> sampled_mean([4.0, 6.0], interval=(0, 9), moment=Moment(2, 1), delta="1/2")
        Traceback (most recent call last):
        shoal.errors.InputError: sampled_mean publishes values: ...
    """
    request = {"interval": interval, "moment": moment, "delta": delta}
    return _one(
        "sampled_mean", values, users, {**request, "publish_values": publish_values}, **options
    )


def clipped_plus_residual(
    values: ArrayLike,
    users: Users | None = None,
    *,
    interval: tuple[float, float],
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    delta: Amount,
    publish_values: bool = False,
    **options: Unpack[Options],
) -> UnbiasedEstimate:
    """Clipped mean with noise plus the sampled mean of what was cut off: (epsilon, delta).

    The mean is exactly unbiased for every distribution whose mean exists (paper 004, Proposition
    3.0.3), with the margin of the least certificate. Users beyond the margin are published with
    probability delta, others never.

    Source: docs/theory/unbiased.md#sampling-and-residuals.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: Whose record it is, shape (n,); by default each record is a user's only one.
        interval: The certificate holds for means in it; in the value's unit.
        moment: Public bound on a central moment; of order above 2 for a small error.
        epsilon: Largest epsilon.
        delta: Probability to sample a user, rounded down to a multiple of 2^-64.
        publish_values: Must be True: a sampled user beyond the margin is not protected.
        **options: See `Options`.

    Returns:
        The mean with its errors, in the value's unit.

    Raises:
        InputError: An argument that is not usable.
        DataError: Values are missing or not finite, or lengths differ.
        BudgetError: The charge does not fit the ledger's budget.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = clipped_plus_residual(
        ...     [4.0, 6.0] * 500, interval=(0, 10), moment=Moment(8, 2), epsilon=1, delta="1e-6",
        ...     publish_values=True,
        ... )
        >>> found.bias_bound, round(found.delta, 9)
        (0.0, 1e-06)
    """
    request = {"interval": interval, "moment": moment, "epsilon": epsilon, "delta": delta}
    return _one(
        "clipped_plus_residual",
        values,
        users,
        {**request, "publish_values": publish_values},
        **options,
    )


def symmetric_mean(
    values: ArrayLike,
    users: Users | None = None,
    *,
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    delta: Amount,
    reuse: bool | None = None,
    farthest: float | None = None,
    **options: Unpack[Options],
) -> UnbiasedEstimate:
    """A private guess of the centre, then a mean clipped around it: (epsilon, delta).

    The mean is exactly unbiased for every symmetric distribution, without an interval (paper 004,
    section 4, Algorithm 2).

    Source: docs/theory/unbiased.md#the-symmetric-mean.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: Whose record it is, shape (n,); by default each record is a user's only one.
        moment: Public bound on a central moment; of order above 2 for a small error.
        epsilon: Largest epsilon.
        delta: Largest delta.
        reuse: All users in both steps, or a split; by default the one with the smaller error.
        farthest: The certificate holds for means of at most this absolute value, in the value's
            unit.
        **options: See `Options`.

    Returns:
        The mean with its errors, in the value's unit.

    Raises:
        InputError: An argument that is not usable.
        DataError: Values are missing or not finite, or lengths differ.
        BudgetError: The charge does not fit the ledger's budget.
        LedgerError: The ledger is missing, damaged or cannot be written.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = symmetric_mean([4.0, 6.0] * 500, moment=Moment(8, 2), epsilon=1, delta="1e-6")
        >>> found.coarse_failed, abs(found.value - 5) < 1
        (False, True)
    """
    request = {"moment": moment, "epsilon": epsilon, "delta": delta}
    return _one(
        "symmetric_mean",
        values,
        users,
        {**request, "reuse": reuse, "farthest": farthest},
        **options,
    )


@np.errstate(all="ignore")
def _one(
    method: str,
    values: ArrayLike,
    users: Users | None,
    request: Mapping[str, Any],
    **options: Unpack[Options],
) -> UnbiasedEstimate:
    keywords(options, Options.__annotations__, f"unbiased.{method}")
    given: dict[str, Any] = dict(options)
    planned = {name: given.pop(name) for name in _PLANNED & given.keys()}
    made = plan(method, UserValues.of(values, users).count, **request, **planned)
    return made.release(values, users, **given)
