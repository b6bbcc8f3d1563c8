"""One cell, one call: the mechanisms that find a private range first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from shoal.cells.one_cell import Cap, Grouping, Options, one_estimate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from shoal.cells.one_cell_result import Estimate
    from shoal.cells.one_cell_values import Users
    from shoal.data.value_lattice import Bounds
    from shoal.privacy.budget import Amount


def levy(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    cap: Cap | int = "levy",
    grouping: Grouping = "best_fit",
    gamma: float = 0.2,
    **options: Unpack[Options],
) -> Estimate:
    """Means of arrays clipped to mu -+ 1.5 tau around a private middle mu, averaged, plus noise.

    tau = U sqrt(ln(2K/gamma)/(2 m_UB)), with K arrays of length m_UB, is Hoeffding's bound for
    independent records. Half of epsilon selects mu by permute-and-flip.

    Source: docs/theory/selection.md#scores; paper 002, section III-D; errata 8 and 9.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        cap: Most records of a user that count: `median`, `levy`, `minimax`, `surrogate`, or a whole
            number from 1.
        grouping: How arrays are filled: `best_fit` or `wrap_around`.
        gamma: Accepted probability that an array mean lies outside, above 0 and below 1.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = levy(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> found.range is not None, found.epsilon <= 20
        (True, True)
    """
    settings = {"cap": cap, "grouping": grouping, "gamma": gamma}
    return one_estimate("levy", settings, values, users, bounds, epsilon, options)


def quantile(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    quantiles: Literal["fixed", "optimised"] = "fixed",
    cap: Cap | int = "levy",
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Means of arrays clipped to two private quantiles of them, averaged, plus noise.

    A quarter of epsilon selects each quantile by permute-and-flip, half of it is left for the
    noise.

    Source: docs/theory/selection.md#scores; paper 002, section III-E.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        quantiles: `fixed` for 1/10 and 9/10; `optimised` for the ceil(2/epsilon)-th array from both
            ends.
        cap: Most records of a user that count: `median`, `levy`, `minimax`, `surrogate`, or a whole
            number from 1.
        grouping: How arrays are filled: `best_fit` or `wrap_around`.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = quantile(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> found.range is not None, found.epsilon <= 20
        (True, True)
    """
    settings = {"quantiles": quantiles, "cap": cap, "grouping": grouping}
    return one_estimate("quantile", settings, values, users, bounds, epsilon, options)


def akmv(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Sums of users clipped to [0, T], with T a private ceil(2/epsilon)-th largest sum, plus noise.

    Half of epsilon selects T by permute-and-flip; the noise has the scale 2T/(n epsilon).

    Source: docs/theory/selection.md#scores; paper 001, section IV.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = akmv(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> found.mechanism, found.epsilon <= 20
        ('akmv', True)
    """
    return one_estimate("akmv", {}, values, users, bounds, epsilon, options)


def adaptive(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Mean of users' means with capped weights, clipped to one private range, plus noise.

    Cap and range's share of epsilon follow from public counts alone. Errors are small where users
    are exchangeable; no data set is excluded in which the range misses the values.

    Source: docs/theory/adaptive.md.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = adaptive(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> abs(found.value - 30) < 5, found.range is not None
        (True, True)
    """
    return one_estimate("adaptive", {}, values, users, bounds, epsilon, options)


def user_clipped(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Users' weighed deviations from a private centre, moved within a private radius, plus noise.

    z = sign(x) min(|x|, T) with x = w_l (mean_l - c): centre c and radius by rank, weights nearly
    those of the records. No data set is excluded in which many users are beyond the radius.

    Source: docs/theory/user-clipped.md.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = user_clipped(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> abs(found.value - 30) < 5, found.range is not None
        (True, True)
    """
    return one_estimate("user_clipped", {}, values, users, bounds, epsilon, options)


def auto(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    objective: Literal["typical", "worst_case"] = "typical",
    range: Literal["tight", "loose"] | None = None,
    **options: Unpack[Options],
) -> Estimate:
    """The mechanism for an objective, chosen from public counts and what is known of the bounds.

    For small typical errors the certified `optimal` where users count about alike, unless the
    bounds are loose or epsilon times users is below 60; else `user_clipped`, or `adaptive` from 60
    to 150. For the least worst-case error `worst_case_optimal`.

    Source: docs/theory/user-clipped.md; docs/theory/adaptive.md; docs/theory/worst-case.md#numbers.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        objective: `typical` for small errors where users are exchangeable, `worst_case` for the
            least certificate over all data sets.
        range: What is known of the bounds: `tight` if values may fill a tenth of them or more, or
            are rare events; `loose` if they are a margin of safety.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-REACH, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = auto([30.0] * 500, users, bounds=(0, 65), epsilon=20, objective="worst_case")
        >>> found.mechanism
        'worst_case_optimal'
    """
    wanted = {"objective": objective, "range": "" if range is None else range}
    return one_estimate(None, wanted, values, users, bounds, epsilon, options)
