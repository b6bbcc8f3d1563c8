"""Means of vectors of one cell: in the l1 ball, or number by number in a box."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal import checks
from shoal.cells.ball_mean import BallMean, ticks
from shoal.cells.one_cell import worst_case_optimal
from shoal.cells.one_cell_values import numbers_of
from shoal.checks import check_confidence, different
from shoal.data import keys
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, InputError
from shoal.privacy.budget import check_epsilon, round_up
from shoal.privacy.noise import source_of
from shoal.theory import laplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from shoal.privacy.budget import Amount
    from shoal.privacy.noise import Simulated


@dataclass(frozen=True)
class VectorEstimate:
    """A private mean of vectors; everything in the value's unit, and public.

    Source: docs/theory/worst-case.md#vectors.

    Attributes:
        value: The estimate, one number a dimension, in the value's unit.
        low: Lower ends of the intervals, in the value's unit; together they cover with the given
            confidence.
        high: Upper ends, in the value's unit.
        noise_scale: Scale b of the Laplace noise on every number (the largest, in a box), in the
            value's unit.
        bias_bound: Most that the estimate without noise is off, in l1 and the value's unit, in any
            data set.
        worst_case_error: Bias bound plus mean l1 norm of the noise, in the value's unit.
        epsilon: Privacy loss of the heaviest user, rounded upwards.
        confidence: Of all intervals together.
        threshold: T, most records' worth of norm that a user keeps; of a box, of every number.
        simulated: Whether the randomness was repeatable: then nobody is protected.

    Example:
        >>> import numpy as np
        >>> from shoal import mean
        >>> points, users = np.full((3000, 3), 0.25), np.repeat(np.arange(1000), 3)
        >>> found = mean.vector(points, users, bounds=(0, 1), epsilon=10, domain="box")
        >>> len(found.value)
        3
    """

    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    noise_scale: float
    bias_bound: float
    worst_case_error: float
    epsilon: float
    confidence: float
    threshold: int
    simulated: bool


@np.errstate(all="ignore")
def vector(
    values: ArrayLike,
    users: Sequence[Any] | NDArray[Any] | pa.Array[Any],
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    domain: Literal["ball", "box"] = "ball",
    confidence: float = 0.95,
    tick_bits: int = 20,
    noise: Simulated | None = None,
) -> VectorEstimate:
    """The mean of vectors with the least worst-case l1 error.

    Source: docs/theory/worst-case.md#vectors; errata 4, 5.

    In the `ball`, x >= 0 and |x|_1 <= U = hi with bounds (0, U); what lies outside is scaled to it.
    A user's sum is cut to the norm U T, T the ceil(2d/epsilon)-th largest count (0 if there are
    fewer users), and each number gets Laplace noise of scale 2 U T/(n epsilon). In a `box` every
    number lies in [lo, hi] and is released by `worst_case_optimal` with epsilon/d.

    Args:
        values: Records, shape (n, d) with d at least 2, in the value's unit. Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: (0, U) of the ball, or the range of every number of the box, in the value's unit.
        epsilon: Privacy loss of every user for the whole vector, above 0.
        domain: `ball` or `box`.
        confidence: Probability that all intervals cover together.
        tick_bits: Numbers are cut to the width over 2^tick_bits.
        noise: `shoal.Simulated(seed)` for studies.

    Returns:
        The mean vector with intervals and errors, in the value's unit.

    Raises:
        InputError: An argument is not usable.
        DataError: Values are missing or not finite, or lengths differ.

    Guarantees: G-LOSS, G-BOUND, G-COVERAGE.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> points, users = rng.dirichlet([1, 1, 1], 3000), np.repeat(np.arange(1000), 3)
        >>> found = vector(points, users, bounds=(0, 1), epsilon=10.0)
        >>> len(found.value), round(found.noise_scale, 5)
        (3, 0.0002)
    """
    wanted = check_confidence(confidence)
    different({"value": values}, {"user": users})
    points = _points(values)
    limits = Bounds.of(bounds)
    if checks.choice(domain, ("ball", "box"), "domain") == "box":
        return _box(points, users, limits, epsilon, wanted, tick_bits, noise)
    if limits.lo != 0:
        raise InputError(
            f"a ball with the lower bound {limits.lo:g}", "bounds of (0, U)", "shift the values"
        )
    return _ball(points, users, limits, epsilon, wanted, tick_bits, noise)


def _points(values: ArrayLike) -> NDArray[np.float64]:
    points = numbers_of(values)
    if points.ndim != 2 or points.shape[1] < 2 or len(points) == 0:
        raise DataError(
            f"values of shape {points.shape}", "records by at least 2 dimensions", "give a matrix"
        )
    if not np.isfinite(points).all():
        raise DataError(
            "missing or infinite values",
            "finite numbers",
            "drop such records beforehand if whether a value is present is public",
        )
    return points


def _ball(
    points: NDArray[np.float64],
    users: Any,
    bounds: Bounds,
    epsilon: Amount,
    confidence: float,
    tick_bits: int,
    noise: Simulated | None,
) -> VectorEstimate:
    exact, lattice = check_epsilon(epsilon), Lattice(bounds, tick_bits)
    source = source_of(noise)
    who = keys.encode(keys.as_array(users, "user"), "user")
    if len(who) != len(points):
        raise DataError(
            f"{len(points)} records and {len(who)} users' keys", "one user a record", "match them"
        )
    counts = np.bincount(who)
    sums = np.zeros((len(counts), points.shape[1]), dtype=np.int64)
    np.add.at(sums, who, ticks(points, bounds.hi, lattice.bits))
    made = BallMean.plan(counts, points.shape[1], exact, lattice.bits)
    steps = made.release(sums, counts, source)
    unit = made.relative_scale * 2.0**-made.bits * bounds.hi
    value = np.array(steps) * unit
    bias = made.bias_bound(counts) * bounds.hi
    quantile = laplace.tail_quantile(2.0**made.bits, (1 - confidence) / made.dimension)
    noise_scale = made.relative_scale * bounds.hi
    low, high = value - bias - quantile * unit, value + bias + quantile * unit
    return VectorEstimate(
        value=_clipped(value, bounds),
        low=_clipped(low, bounds),
        high=_clipped(high, bounds),
        noise_scale=noise_scale,
        bias_bound=bias,
        worst_case_error=bias + made.dimension * noise_scale,
        epsilon=round_up(made.loss(int(counts.max()))),
        confidence=confidence,
        threshold=made.threshold,
        simulated=noise is not None,
    )


def _box(
    points: NDArray[np.float64],
    users: Any,
    bounds: Bounds,
    epsilon: Amount,
    confidence: float,
    tick_bits: int,
    noise: Simulated | None,
) -> VectorEstimate:
    size = points.shape[1]
    each = check_epsilon(epsilon) / size
    source_of(noise)
    found = [
        worst_case_optimal(
            points[:, at],
            users,
            bounds=bounds,
            epsilon=each,
            confidence=1 - (1 - confidence) / size,
            tick_bits=tick_bits,
            noise=None if noise is None else type(noise)(noise.seed + at),
        )
        for at in range(size)
    ]
    bias = sum(one.bias_bound for one in found)
    return VectorEstimate(
        value=tuple(one.value for one in found),
        low=tuple(one.interval[0] for one in found),
        high=tuple(one.interval[1] for one in found),
        noise_scale=max(one.noise_scale for one in found),
        bias_bound=bias,
        worst_case_error=bias + sum(one.noise_scale for one in found),
        epsilon=round_up(sum((Fraction(one.epsilon) for one in found), Fraction(0))),
        confidence=confidence,
        threshold=found[0].parameters["threshold"][0],
        simulated=noise is not None,
    )


def _clipped(values: NDArray[np.float64], bounds: Bounds) -> tuple[float, ...]:
    return tuple(float(x) for x in np.clip(values, bounds.lo, bounds.hi))
