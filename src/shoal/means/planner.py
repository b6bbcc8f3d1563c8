"""Plans the two unbiased means, and makes each in one call."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.checks import keywords
from shoal.data.columns_in_memory import Users
from shoal.means.estimators import CHOICES
from shoal.means.plan import UnbiasedEstimate, UnbiasedPlan
from shoal.means.request import CLIPPED, INTERVALS, SYMMETRIC, Request
from shoal.means.users import UserValues, counts_of
from shoal.privacy.budget import Amount
from shoal.theory.clipping import Moment, moments_of

# Options that one call passes to `plan`.
_PLANNED = ("weights", "cap", "interval_by")
# Options that it passes to `UnbiasedPlan.release`.
_RELEASED = ("ledger", "name", "noise", "confidence", "values_name", "privacy_unit")


def plan(
    method: str,
    counts: int | Sequence[int] | NDArray[Any],
    *,
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    delta: Amount = 0,
    interval: tuple[float, float] | None = None,
    bias: float | None = None,
    weights: str = "equal",
    cap: int | None = None,
    interval_by: str | None = None,
) -> UnbiasedPlan:
    """Choose an estimator's parts for the smallest certified error, before any value is read.

    Users are independent, and their values have one mean mu and keep the moments. A user with
    several records counts with their mean. Neighbours differ in all values of one user; counts are
    public.

    Source: docs/theory/means.md.

    Args:
        method: `clipped_mean` or `symmetric_mean`.
        counts: Number of users with one record each, or records of every user, shape (users,).
        moment: Public bound on a central moment of a user's value, or several that all hold.
        epsilon: Largest epsilon.
        delta: Largest delta, for `symmetric_mean` alone.
        interval: Public interval that holds the mean, in the value's unit, for `clipped_mean`
            alone.
        bias: Largest bias, in the value's unit, for `clipped_mean` alone.
        weights: `equal`, or `counts` for weights in proportion to a user's records.
        cap: Largest weight with `counts`.
        interval_by: With `normal`, squares are released beside the sum, at no cost, and intervals
            are those of a normal approximation. With `certified`, they follow from Chebyshev's
            inequality for every distribution that keeps the moments, and are 2.2 to 2.5 times as
            wide. The default is `normal` unless users count as fewer than two equal ones.

    Returns:
        The plan with the smallest certified error.

    Raises:
        InputError: An argument that is not usable; a method that cannot be unbiased at delta 0.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = plan(
        ...     "clipped_mean", 10**4, moment=Moment(2, 1), epsilon=1, interval=(0, 1), bias=0.01
        ... )
        >>> print(found)
        clipped_mean of 10,000 users: epsilon 1
        bias at most 0.01, root mean squared error at most 0.01587, noise scale 0.005098
        for central moments (order, size) (2, 1); the heaviest user has 0.0001 of ...
        normal 95% interval of about ±0.03518 if values vary as much as the moments allow
        protected: all values of one user; who has how many records in which cell is public
    """
    numbers = counts_of(counts)
    request = Request.of(
        method=method,
        moments=moments_of(moment),
        epsilon=epsilon,
        delta=delta,
        interval=interval,
        bias=bias,
        weights=weights,
        cap=cap,
        interval_by=interval_by,
    )
    users = request.weights_of(numbers)
    choice = CHOICES[method].best(request, users)
    last = choice.facts(request, users).last_sum
    # Squares are added after the search, which they do not change.
    if interval_by == INTERVALS[0] or (interval_by is None and last.weights.count_as_two):
        choice = choice.model_copy(update={"squares": last.fit()})
    return UnbiasedPlan(request, numbers, choice)


def clipped_mean(
    values: ArrayLike,
    users: "Users | None" = None,
    *,
    interval: tuple[float, float],
    bias: float,
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    **options: Any,
) -> UnbiasedEstimate:
    """Mean of values clipped to a margin beyond an interval, plus Laplace noise: (epsilon, 0)-DP.

    Source: docs/theory/means.md#clipping; paper 004, Proposition 3.0.1, with sharp constants.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: The user of each record, shape (n,); a row is a user if not given.
        interval: Public interval that holds the mean, in the value's unit.
        bias: Largest bias, in the value's unit.
        moment: Public bound on a central moment of a user's value, or several.
        epsilon: Largest epsilon.
        **options: Those of `plan` and `UnbiasedPlan.release`.

    Returns:
        The mean with its errors, in the value's unit.

    Raises:
        ShoalError: As `plan` and `UnbiasedPlan.release`.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = clipped_mean(
        ...     [4.0, 6.0] * 500, interval=(0, 10), bias=0.1, moment=Moment(2, 1), epsilon=1
        ... )
        >>> found.plan.bias_bound <= 0.1, abs(found.value - 5) < 1
        (True, True)
    """
    request = {"interval": interval, "bias": bias, "moment": moment, "epsilon": epsilon}
    return _one(CLIPPED, values, users, request, options)


def symmetric_mean(
    values: ArrayLike,
    users: "Users | None" = None,
    *,
    moment: Moment | Sequence[Moment],
    epsilon: Amount,
    delta: Amount,
    **options: Any,
) -> UnbiasedEstimate:
    """A private guess of the centre, then a mean clipped around it: (epsilon, delta)-DP.

    If an estimate is released, it is unbiased for every symmetric distribution, and needs no
    interval. If the coarse step fails, there is no estimate; the probability of that is at most the
    plan's `failure_bound`.

    Source: docs/theory/means.md#the-symmetric-mean; paper 004, section 4, Algorithm 2.

    Args:
        values: One number a record, shape (n,), in the value's unit. Private.
        users: The user of each record, shape (n,); a row is a user if not given.
        moment: Public bound on a central moment; an order above 2 makes errors small.
        epsilon: Largest epsilon.
        delta: Largest delta.
        **options: Those of `plan` and `UnbiasedPlan.release`.

    Returns:
        The mean with its errors, in the value's unit; its `value` is None if there is no estimate.

    Raises:
        ShoalError: As `plan` and `UnbiasedPlan.release`.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = symmetric_mean([4.0, 6.0] * 500, moment=Moment(8, 2), epsilon=1, delta="1e-6")
        >>> found.coarse_failed, abs(found.value - 5) < 1
        (False, True)
    """
    request = {"moment": moment, "epsilon": epsilon, "delta": delta}
    return _one(SYMMETRIC, values, users, request, options)


@np.errstate(all="ignore")
def _one(
    method: str,
    values: ArrayLike,
    users: "Users | None",
    request: Mapping[str, Any],
    options: Mapping[str, Any],
) -> UnbiasedEstimate:
    """Plans a mean of these values by a method, and releases it."""
    keywords(options, (*_PLANNED, *_RELEASED), f"unbiased.{method}")
    planned = {name: each for name, each in options.items() if name in _PLANNED}
    made = plan(method, UserValues.of(values, users).count, **request, **planned)
    rest = {name: each for name, each in options.items() if name not in planned}
    return made.release(values, users, **rest)
