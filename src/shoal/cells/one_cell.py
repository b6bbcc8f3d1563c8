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

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from shoal.cells.estimates import Numbers
from shoal.cells.one_cell_result import Estimate
from shoal.cells.planner import decide
from shoal.cells.release import drawing_of
from shoal.cells.request import mean_request
from shoal.checks import check_confidence
from shoal.checks.floats import read_floats
from shoal.checks.keywords import check_keywords
from shoal.checks.roles import check_arrays
from shoal.data import keys
from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import build
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError
from shoal.privacy.noise import Simulated, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from shoal.privacy.budget import Amount

__all__ = [
    "Estimate",
    "adaptive",
    "akmv",
    "array_averaging",
    "auto",
    "baseline",
    "levy",
    "opt_array_averaging",
    "quantile",
    "worst_case_optimal",
]

Users: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any]"
Cap = Literal["median", "levy", "minimax", "surrogate"]
Grouping = Literal["best_fit", "wrap_around"]
_CONVERT = "convert them first, for example with astype(float)"
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
    """Mean of all records plus Laplace noise of scale U m*/(n epsilon).

    Source: docs/theory/sensitivity.md.

    Args:
        values: One number a record; clipped to the bounds.
        users: Whose record it is, one key a record.
        bounds: Public range [lo, hi] of the values.
        epsilon: Privacy loss of every user.
        **options: See `Options`.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.
    """
    return _one("baseline", {}, values, users, bounds, epsilon, options)


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
    """Records grouped into arrays of length `cap`; the mean of the arrays' means.

    The noise fits max_l w_l exactly, at most 1/K with K arrays (docs/theory/grouping.md#arrays;
    erratum 7). Arguments, errors and guarantees as in `baseline`.

    Args:
        values: One number a record.
        users: Whose record it is.
        bounds: Public range of the values.
        epsilon: Privacy loss of every user.
        cap: `median`, `levy`, `minimax`, `surrogate` or a whole number of records.
        grouping: `best_fit` or `wrap_around`.
        **options: See `Options`.
    """
    settings = {"cap": cap, "grouping": grouping}
    return _one("array_averaging", settings, values, users, bounds, epsilon, options)


def opt_array_averaging(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Array averaging at the minimax cap, 1 - K/n + m/(epsilon K) being least (paper 002, V).

    Arguments, errors and guarantees as in `array_averaging`.
    """
    settings = {"grouping": grouping}
    return _one("opt_array_averaging", settings, values, users, bounds, epsilon, options)


def worst_case_optimal(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Users' means clipped to U/2 -+ T/(2 m_l): the least worst-case error (paper 001, III.1).

    Arguments, errors and guarantees as in `baseline`. For vectors see `vector`.
    """
    return _one("worst_case_optimal", {}, values, users, bounds, epsilon, options)


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
    """Array means clipped to mu -+ 1.5 tau around a private middle mu (paper 002, III-D).

    tau = U sqrt(ln(2K/gamma)/(2 m_UB)) supposes independent records. Half of epsilon selects mu.
    Arguments, errors and guarantees as in `array_averaging`.
    """
    settings = {"cap": cap, "grouping": grouping, "gamma": gamma}
    return _one("levy", settings, values, users, bounds, epsilon, options)


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
    """Array means clipped to private quantiles: 1/10 and 9/10, or ceil(2/epsilon) from the ends.

    A quarter of epsilon selects each quantile (paper 002, III-E). Arguments, errors and guarantees
    as in `array_averaging`.
    """
    settings = {"quantiles": quantiles, "cap": cap, "grouping": grouping}
    return _one("quantile", settings, values, users, bounds, epsilon, options)


def akmv(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Sums of users clipped to [0, T], T a private ceil(2/epsilon)-th largest sum (paper 001, IV).

    Half of epsilon selects T. Arguments, errors and guarantees as in `baseline`.
    """
    return _one("akmv", {}, values, users, bounds, epsilon, options)


def adaptive(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    **options: Unpack[Options],
) -> Estimate:
    """Capped weights and one private range, from public counts alone (docs/theory/adaptive.md).

    Arguments, errors and guarantees as in `baseline`; small errors are typical where users are
    exchangeable, and no data set is excluded in which the range misses the values.
    """
    return _one("adaptive", {}, values, users, bounds, epsilon, options)


def auto(
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    objective: Literal["typical", "worst_case"] = "typical",
    **options: Unpack[Options],
) -> Estimate:
    """`adaptive` for the objective `typical`, `worst_case_optimal` for `worst_case`.

    Arguments, errors and guarantees as in `baseline`.
    """
    settings = {"objective": objective}
    return _one("auto", settings, values, users, bounds, epsilon, options)


def _one(
    method: str,
    settings: Mapping[str, str | int | float],
    values: ArrayLike,
    users: Users,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    options: Options,
) -> Estimate:
    check_keywords(options, Options.__annotations__, f"mean.{method}", _BOOKS)
    wanted = check_confidence(options.get("confidence", 0.95))
    lattice = Lattice(Bounds.of(bounds), options.get("tick_bits", 20))
    request = mean_request(method, epsilon, settings)
    source = source_of(options.get("noise"))
    aggregate = aggregate_of(values, users, lattice)
    plan = decide(aggregate.occupancy, lattice, request)
    drawn = drawing_of(plan).draw(aggregate, source)
    numbers = Numbers(plan, drawn.steps, drawn.chosen)
    low, high = numbers.intervals(wanted)
    typical_low, typical_high = numbers.typical_intervals(wanted)
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
        simulated=source.simulated,
    )


def numbers_of(values: ArrayLike) -> NDArray[np.float64]:
    """Values as floating-point numbers.

    Raises:
        DataError: They are no real numbers.
    """
    if np.ma.is_masked(values):
        # NumPy would read what is behind the mask.
        raise DataError(
            "masked values",
            "a number in every row",
            "drop such records beforehand if whether a value is present is public",
        )
    numbers = read_floats(values)
    if numbers is None:
        raise DataError("values that are no real numbers", "one number a record", _CONVERT)
    return numbers


def aggregate_of(values: ArrayLike, users: Users, lattice: Lattice) -> Aggregate:
    """Sums of ticks of every user of one cell.

    Args:
        values: One number a record.
        users: Whose record it is.
        lattice: Bounds and ticks.

    Raises:
        DataError: Lengths differ, nothing is there, or a value is missing or not finite.
    """
    check_arrays({"value": values}, {"user": users})
    numbers = numbers_of(values)
    if numbers.size == 0:
        raise DataError("no records", "at least one record", "give a value and a user for each")
    who = keys.encode(keys.as_array(users, "user"), "user")
    if numbers.ndim != 1 or len(numbers) != len(who):
        raise DataError(
            f"values of shape {numbers.shape} for {len(who)} users' keys",
            "one value and one user for each record",
            "give two columns of the same length",
        )
    if not np.isfinite(numbers).all():
        raise DataError(
            "missing or infinite values",
            "finite numbers",
            "drop such records beforehand if whether a value is present is public",
        )
    order = np.argsort(who, kind="stable")
    counts = np.bincount(who)
    sums = np.add.reduceat(lattice.ticks(numbers)[order], np.cumsum(counts) - counts)
    cells = pa.table({"cell": pa.array(["all"] * len(counts))})
    occupancy, rows = build(pa.array(np.arange(len(counts))), cells, counts.astype(np.int64))
    centred = sums[rows] - (occupancy.count << (lattice.bits - 1))
    # Squares serve the variance, which these mechanisms do not release.
    return Aggregate(occupancy, lattice, centred, np.zeros_like(centred))
