"""One cell, one call: every mean mechanism of the library on values in memory.

Each function reads the values once, selects and draws with the operating system's randomness, and
returns an `Estimate`. It keeps no books: privacy losses of several calls on the same users add up,
and `shoal.plan` with a ledger is the way to publish. The mechanisms, their assumptions and how to
choose among them are in `docs/how-to/mechanisms.md`.

Example:
    >>> import numpy as np
    >>> users = np.repeat(np.arange(100), 5)
    >>> estimate = baseline(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20.0)
    >>> abs(estimate.value - 30) < 2, round(estimate.noise_scale, 4)
    (True, 0.0325)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import numpy as np

from shoal import checks
from shoal.cells.draw_of_plan import drawing_of
from shoal.cells.estimates import Numbers
from shoal.cells.objective import OBJECTIVES, RANGES, choose
from shoal.cells.one_cell_result import Estimate
from shoal.cells.one_cell_values import aggregate_of
from shoal.cells.planner import decide
from shoal.cells.request import mean_request
from shoal.cells.warnings import doubts, few_cells, few_own_much, private_range
from shoal.checks import check_confidence, keywords
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.noise import Simulated, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from shoal.cells.one_cell_values import Users
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.privacy.budget import Amount

Cap = Literal["median", "levy", "minimax", "surrogate"]
Grouping = Literal["best_fit", "wrap_around"]
_BOOKS = "check the spelling; a release with a ledger is made by shoal.plan"


class Options(TypedDict, total=False):
    """What every function of this module takes besides its own arguments.

    Attributes:
        confidence: Of the interval; 0.95 unless given.
        tick_bits: Values are rounded to the width over 2^tick_bits; 20 unless given.
        noise: `shoal.Simulated(seed)` for studies; the estimate is marked and not private.
    """

    confidence: float
    tick_bits: int
    noise: Simulated | None


def baseline(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Mean of all records of one cell, plus Laplace noise.

    The noise has the scale U m*/(n epsilon), with U the width of the bounds, n the number of
    records and m* that of the heaviest user. There is no bias.

    Source: docs/theory/sensitivity.md; paper 002, section III-B.

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

    Guarantees: G-LOSS, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = baseline(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> abs(found.value - 30) < 2, round(found.noise_scale, 4)
        (True, 0.0325)
    """
    return one_estimate("baseline", {}, values, users, bounds, epsilon, options)


def array_averaging(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    cap: Cap | int = "median",
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Records grouped into arrays of length `cap`; the mean of the means of the arrays, plus noise.

    Each place of an array holds its user's mean. The Laplace noise has the scale
    U max_l w_l/epsilon, with w_l the weight that user l gets: at most 1/K with K arrays.

    Source: docs/theory/grouping.md#arrays; paper 002, section III-C; erratum 7.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        cap: Most records of a user that count: `median`, `levy`, `minimax`, `surrogate`, or a whole
            number from 1.
        grouping: How arrays are filled: `best_fit` or `wrap_around`.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = array_averaging(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20, cap=5)
        >>> abs(found.value - 30) < 2, found.parameters["cap"]
        (True, (5,))
    """
    settings = {"cap": cap, "grouping": grouping}
    return one_estimate("array_averaging", settings, values, users, bounds, epsilon, options)


def opt_array_averaging(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Array averaging at the cap m with the least worst-case error 1 - K(m)/n + m/(epsilon K(m)).

    K(m) is the number of records that are left: the sum of min(m_l, m).

    Source: docs/theory/grouping.md#caps; paper 002, section V.

    Args:
        values: One number a record, shape (n,), in the value's unit; clipped to the bounds.
            Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: Public range [lo, hi] of the values, in their unit.
        epsilon: Privacy loss of every user: the epsilon of epsilon-DP, above 0.
        grouping: How arrays are filled: `best_fit` or `wrap_around`.
        **options: `confidence`, `tick_bits` and `noise`: see `Options`.

    Returns:
        The mean with its intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = opt_array_averaging(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> abs(found.value - 30) < 2
        True
    """
    settings = {"grouping": grouping}
    return one_estimate("opt_array_averaging", settings, values, users, bounds, epsilon, options)


def worst_case_optimal(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Means of users clipped to U/2 -+ T/(2 m_l): the least worst-case error of all.

    T is the ceil(2/epsilon)-th largest of the U m_l, and the Laplace noise has the scale
    T/(n epsilon). With fewer than 2/epsilon users T is 0: the estimate is the middle of the bounds,
    and costs nothing. For vectors see `vector`.

    Source: docs/theory/worst-case.md#numbers; paper 001, Theorem III.1.

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

    Guarantees: G-LOSS, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> users = np.repeat(np.arange(100), 5)
        >>> found = worst_case_optimal(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
        >>> abs(found.value - 30) < 2
        True
    """
    return one_estimate("worst_case_optimal", {}, values, users, bounds, epsilon, options)


@np.errstate(all="ignore")
def one_estimate(
    method: str | None,
    settings: Mapping[str, str | int | float],
    values: ArrayLike,
    users: Users,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    options: Options,
) -> Estimate:
    """The estimate of one mechanism for one cell: check, plan, draw, read.

    Args:
        method: Name of the mechanism; None for that of an objective.
        settings: What the mechanism takes besides; objective and range, if it is to be chosen.
        values: One number a record, shape (n,), in the value's unit. Private.
        users: Whose record it is, shape (n,).
        bounds: Public range of the values, in their unit.
        epsilon: Privacy loss of every user.
        options: As the caller gave them.

    Returns:
        The mean with its intervals and errors.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.
    """
    keywords(options, Options.__annotations__, f"mean.{method or 'auto'}", _BOOKS)
    wanted = check_confidence(options.get("confidence", 0.95))
    lattice = Lattice(Bounds.of(bounds), options.get("tick_bits", 20))
    if method is None:
        _check_choice(settings)
    request = mean_request(method or "baseline", epsilon, settings if method else {})
    source = source_of(options.get("noise"))
    aggregate = aggregate_of(values, users, lattice)
    if method is None:
        name = _chosen(settings, aggregate.occupancy, request)
        request = mean_request(name, epsilon, {})
    plan = decide(aggregate.occupancy, lattice, request)
    drawn = drawing_of(plan).draw(aggregate, source)
    numbers = Numbers(plan, drawn.steps, drawn.chosen)
    (low, high), (typical_low, typical_high) = numbers.both_intervals(wanted)
    return Estimate(
        value=float(numbers.value[0]),
        interval=(float(low[0]), float(high[0])),
        typical_interval=(float(typical_low[0]), float(typical_high[0])),
        noise_scale=float(numbers.noise_scale[0]),
        bias_bound=float(numbers.bias_bound[0]),
        epsilon=plan.epsilon,
        confidence=wanted,
        range=numbers.clipped_to(0),
        mechanism=plan.mechanism.name,
        parameters={name: tuple(found.tolist()) for name, found in plan.parameters.items()},
        simulated=options.get("noise") is not None,
        warnings=(
            *few_cells(plan),
            *few_own_much(plan),
            *private_range(numbers),
            *doubts(numbers),
        ),
    )


def _check_choice(wanted: Mapping[str, str | int | float]) -> None:
    asked = checks.choice(wanted["range"], ("", *RANGES), "range")
    if checks.choice(wanted["objective"], OBJECTIVES, "objective") == "worst_case" and asked:
        raise InputError(
            "a range with the objective worst_case",
            "a range with the typical objective: certified errors hold in any range",
            "leave range out",
        )


def _chosen(wanted: Mapping[str, str | int | float], occupancy: Counts, request: Request) -> str:
    """The mechanism of one cell for an objective."""
    if wanted["objective"] == "worst_case":
        return "worst_case_optimal"
    asked = request.statistics, request.epsilon, request.delta, str(wanted["range"])
    return choose(str(wanted["objective"]), occupancy, *asked).method
