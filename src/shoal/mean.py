"""One cell, one call: private means of values in memory, by every mechanism of the library.

Each function reads the values once, selects and draws with the operating system's randomness, and
returns an `Estimate`. It keeps no books: losses of several calls on the same users add up, and
`shoal.plan` with a ledger is the way to publish. How to choose: docs/plans.md.

All take the same arguments besides their own:

- `values`: one number a record, shape (n,), in the value's unit, clipped to the bounds; private;
- `users`: whose record it is, one key a record, shape (n,);
- `bounds`: the public range [lo, hi] of the values, in their unit;
- `epsilon`: the privacy loss of every user, above 0;
- `confidence` of the intervals, 0.95 unless given; `tick_bits`: values are rounded to the width
  over 2^tick_bits, 20 unless given; `noise`: `shoal.Simulated(seed)` for studies, which is marked
  and not private.

They raise InputError for an argument that is not usable, and DataError for values that are missing
or not finite, or where lengths differ. Guarantees: G-LOSS, G-BOUND, G-COVERAGE, G-REACH.

Example:
    >>> import numpy as np
    >>> from shoal import mean
    >>> users = np.repeat(np.arange(100), 5)
    >>> found = mean.baseline(np.full(500, 30.0), users, bounds=(0, 65), epsilon=20)
    >>> abs(found.value - 30) < 2, round(found.noise_scale, 4)
    (True, 0.0325)
"""

from typing import Literal, Required, TypedDict, Unpack

from numpy.typing import ArrayLike

from shoal.cells.one_cell import Estimate, one_estimate
from shoal.cells.vector_mean import VectorEstimate, vector
from shoal.data.columns_in_memory import Users
from shoal.data.value_lattice import Bounds
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Simulated

__all__ = [
    "Estimate",
    "VectorEstimate",
    "adaptive",
    "akmv",
    "array_averaging",
    "auto",
    "baseline",
    "levy",
    "opt_array_averaging",
    "quantile",
    "user_clipped",
    "vector",
    "worst_case_optimal",
]

Cap = Literal["median", "levy", "minimax", "surrogate"] | int
Grouping = Literal["best_fit", "wrap_around"]


class Options(TypedDict, total=False):
    """What every function takes besides values, users and its own arguments."""

    bounds: Required[Bounds | tuple[float, float]]
    epsilon: Required[Amount]
    confidence: float
    tick_bits: int
    noise: Simulated | None


def baseline(values: ArrayLike, users: Users, **options: Unpack[Options]) -> Estimate:
    """Mean of all records, plus Laplace noise of scale U m*/(n epsilon); no bias.

    U is the width of the bounds, n the number of records, m* that of the heaviest user.

    Source: docs/theory/privacy.md#sensitivity; paper 002, section III-B.
    """
    return one_estimate("baseline", {}, values, users, **options)


def array_averaging(
    values: ArrayLike,
    users: Users,
    *,
    cap: Cap = "median",
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Mean of the means of arrays of `cap` records, plus noise of scale U max_l w_l/epsilon.

    Each place of an array holds its user's mean; w_l is the weight that user l gets, at most 1/K
    with K arrays. `cap` is a rule or a whole number from 1, `grouping` how arrays are filled.

    Source: docs/theory/cells.md#arrays-and-caps; paper 002, section III-C; erratum 7.
    """
    settings = {"cap": cap, "grouping": grouping}
    return one_estimate("array_averaging", settings, values, users, **options)


def opt_array_averaging(
    values: ArrayLike, users: Users, *, grouping: Grouping = "best_fit", **options: Unpack[Options]
) -> Estimate:
    """Array averaging at the cap m with the least worst-case error 1 - K(m)/n + m/(epsilon K(m)).

    K(m) is the number of records that are left: the sum of min(m_l, m).

    Source: docs/theory/cells.md#arrays-and-caps; paper 002, section V.
    """
    settings = {"grouping": grouping}
    return one_estimate("opt_array_averaging", settings, values, users, **options)


def worst_case_optimal(values: ArrayLike, users: Users, **options: Unpack[Options]) -> Estimate:
    """Means of users clipped to U/2 -+ T/(2 m_l): the least worst-case error of all.

    T is the ceil(2/epsilon)-th largest of the U m_l, and the noise has the scale T/(n epsilon).
    With fewer than 2/epsilon users T is 0: the estimate is the middle of the bounds, at no cost.

    Source: docs/theory/cells.md#limits-of-means; paper 001, Theorem III.1.
    """
    return one_estimate("worst_case_optimal", {}, values, users, **options)


def levy(
    values: ArrayLike,
    users: Users,
    *,
    cap: Cap = "levy",
    grouping: Grouping = "best_fit",
    gamma: float = 0.2,
    **options: Unpack[Options],
) -> Estimate:
    """Means of arrays clipped to mu -+ 1.5 tau around a private middle mu, averaged, plus noise.

    tau = U sqrt(ln(2K/gamma)/(2 m)), with K arrays of length m, is Hoeffding's bound for
    independent records, which an array mean leaves with probability `gamma`. Half of epsilon
    selects mu by permute-and-flip.

    Source: docs/theory/privacy.md#selections; paper 002, section III-D; errata 8 and 9.
    """
    settings = {"cap": cap, "grouping": grouping, "gamma": gamma}
    return one_estimate("levy", settings, values, users, **options)


def quantile(
    values: ArrayLike,
    users: Users,
    *,
    quantiles: Literal["fixed", "optimised"] = "fixed",
    cap: Cap = "levy",
    grouping: Grouping = "best_fit",
    **options: Unpack[Options],
) -> Estimate:
    """Means of arrays clipped to two private quantiles of them, averaged, plus noise.

    `fixed` quantiles are 1/10 and 9/10, `optimised` ones the ceil(2/epsilon)-th array from both
    ends. A quarter of epsilon selects each by permute-and-flip.

    Source: docs/theory/privacy.md#selections; paper 002, section III-E.
    """
    settings = {"quantiles": quantiles, "cap": cap, "grouping": grouping}
    return one_estimate("quantile", settings, values, users, **options)


def akmv(values: ArrayLike, users: Users, **options: Unpack[Options]) -> Estimate:
    """Sums of users clipped to [0, T], with T a private ceil(2/epsilon)-th largest sum, plus noise.

    Half of epsilon selects T by permute-and-flip; the noise has the scale 2T/(n epsilon).

    Source: docs/theory/privacy.md#selections; paper 001, section IV.
    """
    return one_estimate("akmv", {}, values, users, **options)


def adaptive(values: ArrayLike, users: Users, **options: Unpack[Options]) -> Estimate:
    """Mean of users' means with capped weights, clipped to one private range, plus noise.

    Cap and range's share of epsilon follow from public counts alone. Errors are small where users
    are exchangeable; no data set is excluded in which the range misses the values.

    Source: docs/theory/cells.md#adaptive-mean.
    """
    return one_estimate("adaptive", {}, values, users, **options)


def user_clipped(values: ArrayLike, users: Users, **options: Unpack[Options]) -> Estimate:
    """Users' weighed deviations from a private centre, moved within a private radius, plus noise.

    z = sign(x) min(|x|, T) with x = w_l (mean_l - c): centre c and radius by rank, weights nearly
    those of the records. No data set is excluded in which many users are beyond the radius.

    Source: docs/theory/cells.md#user-clipped-mean.
    """
    return one_estimate("user_clipped", {}, values, users, **options)


def auto(
    values: ArrayLike,
    users: Users,
    *,
    objective: Literal["typical", "worst_case"] = "typical",
    range: Literal["tight", "loose"] | None = None,
    **options: Unpack[Options],
) -> Estimate:
    """The mechanism for an objective, chosen from public counts and what is known of the bounds.

    `typical` errors are small where users are exchangeable; the `worst_case` error is the least
    certificate over all data sets. Bounds are `tight` if values may fill a tenth of them or more,
    or are rare events; `loose` if they are a margin of safety.

    Source: docs/theory/cells.md#user-clipped-mean, #adaptive-mean and #limits-of-means.
    """
    asked = {"objective": objective, "range": range}
    return one_estimate(None, asked, values, users, **options)
