"""Estimates means of vectors of one cell, in an l1 ball or number by number in a box.

Source: docs/theory/cells.md#limits-of-vectors; errata 4 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.cells.estimates.draw import to_steps
from shoal.cells.one_cell import one_estimate
from shoal.checks import check_confidence
from shoal.data.columns_in_memory import Users, finite_numbers, paired, user_codes
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, InputError
from shoal.privacy.budget import Amount, check_epsilon, round_up
from shoal.privacy.noise import LARGEST_STEPS, Noise, Simulated, source_of
from shoal.theory import laplace, limits

# Rounding to lattice steps costs a millionth of epsilon.
_OVERHEAD_BITS = 20
# Bits of a noise scale.
_SCALE_BITS = 24
# The noise scale divided by U if nobody counts: any noise is then private.
_LEAST_NOISE = 2.0**-20


@dataclass(frozen=True)
class VectorEstimate:
    """A private mean of vectors; all of it is public and in the value's unit.

    Source: docs/theory/cells.md#limits-of-vectors.

    Attributes:
        value: The estimate, one number a dimension, in the value's unit.
        low: Lower ends of the intervals, in the value's unit; together they cover with the given
            confidence.
        high: Upper ends, in the value's unit.
        noise_scale: Scale b of the Laplace noise on every number (the largest, in a box), in the
            value's unit.
        bias_bound: The most that the estimate without noise is off in any data set, in the l1 norm
            and the value's unit.
        worst_case_error: Bias bound plus mean l1 norm of the noise, in the value's unit.
        epsilon: Privacy loss of the heaviest user, rounded upwards.
        confidence: Probability that all intervals cover together.
        threshold: T, the most records' worth of norm that a user keeps; in a box it is for every
            number.
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
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    domain: Literal["ball", "box"] = "ball",
    confidence: float = 0.95,
    tick_bits: int = 20,
    noise: Simulated | None = None,
) -> VectorEstimate:
    """The mean of vectors with the least worst-case l1 error.

    Source: docs/theory/cells.md#limits-of-vectors; errata 4, 5.

    In the `ball`, x >= 0 and |x|_1 <= U with bounds (0, U); vectors outside are scaled to it. A
    user's sum is cut to the norm U T, where T is the ceil(2d/epsilon)-th largest count (0 if there
    are fewer users), and each number gets Laplace noise of scale 2 U T/(n epsilon). In a `box`
    every number lies in [lo, hi] and is released by `worst_case_optimal` with epsilon/d.

    Args:
        values: Records, shape (n, d) with d at least 2, in the value's unit. Private.
        users: Whose record it is, one key a record, shape (n,).
        bounds: (0, U) of the ball, or the range of every number of the box, in the value's unit.
        epsilon: Privacy loss of every user for the whole vector, above 0.
        domain: `ball` or `box`.
        confidence: Probability that all intervals cover together.
        tick_bits: Numbers are cut to multiples of the width divided by 2^tick_bits.
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
    lattice = Lattice(Bounds.of(bounds), tick_bits)
    options = _Options(lattice, check_epsilon(epsilon), check_confidence(confidence), noise)
    paired({"value": values}, {"user": users})
    points = finite_numbers(values)
    if points.ndim != 2 or points.shape[1] < 2:
        raise DataError(
            f"the values have the shape {points.shape}",
            "give one row for each record, and 2 or more columns",
        )
    source_of(noise)
    box = checks.choice(domain, ("ball", "box"), "domain") == "box"
    return _box(points, users, options) if box else _ball(points, users, options)


@dataclass(frozen=True)
class _Options:
    """The checked options of a mean of vectors."""

    lattice: Lattice
    epsilon: Fraction
    confidence: float
    noise: Simulated | None


def _ball(points: Floats, users: Any, options: _Options) -> VectorEstimate:
    """Releases the mean of vectors in the l1 ball."""
    bounds = options.lattice.bounds
    source = source_of(options.noise)
    if bounds.lo != 0:
        raise InputError(
            f"bounds of a ball start at {bounds.lo:g}, not 0", "shift values and give bounds (0, U)"
        )
    who = user_codes(users, len(points))
    size = points.shape[1]
    # The sums of each user's ticks, (users, dimensions).
    sums = np.zeros((int(who.max()) + 1, size), dtype=np.int64)
    np.add.at(sums, who, ticks(points, bounds.hi, options.lattice.bits))
    plan = BallMean.plan(np.bincount(who), size, options.epsilon, options.lattice.bits)
    noise_scale = plan.relative_scale * bounds.hi
    bias = plan.bias_bound * bounds.hi
    step = plan.relative_scale * 2.0**-plan.bits * bounds.hi
    value = np.array(plan.release(sums, source)) * step
    # The dimensions share the probability of a miss.
    noise = laplace.tail_quantile(2.0**plan.bits, (1 - options.confidence) / size) * step

    def clipped(numbers: Floats) -> tuple[float, ...]:
        return tuple(np.clip(numbers, 0, bounds.hi).tolist())

    return VectorEstimate(
        value=clipped(value),
        low=clipped(value - bias - noise),
        high=clipped(value + bias + noise),
        noise_scale=noise_scale,
        bias_bound=bias,
        worst_case_error=bias + size * noise_scale,
        epsilon=round_up(plan.loss(int(plan.counts.max()))),
        confidence=options.confidence,
        threshold=plan.threshold,
        simulated=options.noise is not None,
    )


def _box(points: Floats, users: Any, options: _Options) -> VectorEstimate:
    """Releases the mean of vectors in a box, number by number."""
    size = points.shape[1]
    noise = options.noise
    estimates = []
    for at in range(size):
        # Each number has its own simulated noise, and shares epsilon and the probability of a miss.
        estimate = one_estimate(
            "worst_case_optimal",
            {},
            points[:, at],
            users,
            bounds=options.lattice.bounds,
            epsilon=options.epsilon / size,
            confidence=1 - (1 - options.confidence) / size,
            tick_bits=options.lattice.bits,
            noise=None if noise is None else type(noise)(noise.seed + at),
        )
        estimates.append(estimate)
    bias = sum(each.bias_bound for each in estimates)
    low, high = zip(*(each.interval for each in estimates), strict=True)
    # Every number has the same counts, and so the same threshold.
    [threshold] = estimates[0].parameters["threshold"]
    return VectorEstimate(
        value=tuple(each.value for each in estimates),
        low=low,
        high=high,
        noise_scale=max(each.noise_scale for each in estimates),
        bias_bound=bias,
        worst_case_error=bias + sum(each.noise_scale for each in estimates),
        epsilon=round_up(sum((Fraction(each.epsilon) for each in estimates), Fraction(0))),
        confidence=options.confidence,
        threshold=threshold,
        simulated=options.noise is not None,
    )


@dataclass(frozen=True, eq=False)
class BallMean:
    """Public facts of a release of a mean in the l1 ball (docs/theory/cells.md#limits-of-vectors).

    Attributes:
        threshold: T, the most records' worth of norm that a user keeps.
        relative_scale: Noise scale of every number, divided by U.
        bits: The noise scale is 2^bits lattice steps.
        tick_bits: Numbers are rounded downwards to multiples of U divided by 2^tick_bits.
    """

    counts: Ints
    dimension: int
    threshold: int
    relative_scale: float
    bits: int
    tick_bits: int

    @classmethod
    def plan(cls, counts: Ints, dimension: int, epsilon: Fraction, tick_bits: int) -> BallMean:
        """Plans with the threshold T, the ceil(2d/epsilon)-th largest count or 0 without one."""
        if int(counts.max()) << tick_bits >= LARGEST_STEPS:
            raise InputError(
                f"a user has {int(counts.max()):,} records, too many for {tick_bits} tick bits",
                "lower tick_bits",
            )
        threshold = limits.threshold(counts, float(epsilon), dimension)
        if threshold == 0:
            return cls(counts, dimension, 0, _LEAST_NOISE, _OVERHEAD_BITS, tick_bits)
        bits = _OVERHEAD_BITS + max(0, math.ceil(math.log2(dimension / epsilon)))
        # A step of each dimension is for rounding: see `loss`.
        allowed = (math.floor(epsilon * 2**bits) - dimension) * int(counts.sum())
        exact = Fraction(2 * min(threshold, int(counts.max())) * 2**bits, allowed)
        if 2**bits > LARGEST_STEPS * exact:
            raise InputError(
                f"at epsilon {float(epsilon):g} the noise of vectors is too fine for a lattice of "
                "61 bits",
                "ask for a smaller epsilon",
            )
        # The scale has 24 bits and is above the exact one, even if `float` rounds that downwards.
        mantissa, exponent = math.frexp(float(exact))
        scale = math.ldexp(math.ceil(mantissa * 2**_SCALE_BITS) + 1, exponent - _SCALE_BITS)
        return cls(counts, dimension, threshold, scale, bits, tick_bits)

    @property
    def records(self) -> int:
        """The number of records of all users."""
        return int(self.counts.sum())

    def loss(self, count: int) -> Fraction:
        """Returns the exact privacy loss of a user with so many records."""
        if self.threshold == 0:
            return Fraction(0)
        moved = Fraction(2 * min(count, self.threshold), self.records)
        steps = math.ceil(moved * 2**self.bits / Fraction(self.relative_scale)) + self.dimension
        return Fraction(steps, 2**self.bits)

    @property
    def bias_bound(self) -> float:
        """The most that cut norms and rounding move the estimate, in the l1 norm divided by U."""
        cut = float(np.maximum(self.counts - self.threshold, 0).sum()) / self.records
        # A number loses up to a tick in each record, another when norms are cut, and half a step.
        ticks = 2 * self.dimension * 2.0**-self.tick_bits
        return cut + ticks + self.dimension * self.relative_scale * 2.0 ** -(self.bits + 1)

    def release(self, sums: Ints, noise: Noise) -> list[int]:
        """Returns noisy lattice numbers, one for each dimension, from private sums of ticks.

        The sums have one row for each user and one column for each dimension.
        """
        # Python integers are used, as a product of two sums may not fit 64 bits.
        positive = np.maximum(sums, 0).astype(object)
        norm = positive.sum(axis=1)
        allowed = np.minimum(self.counts, self.threshold).astype(object) * 2**self.tick_bits
        # Sums of a larger norm than a user may have are scaled to it.
        scaled = positive * allowed[:, None] // np.maximum(norm, 1)[:, None]
        too_large = (norm > allowed)[:, None]
        totals = np.where(too_large, scaled, positive).sum(axis=0).tolist()
        largest_sum = self.records << self.tick_bits
        exact = [to_steps(int(x), largest_sum, self.relative_scale, self.bits) for x in totals]
        return noise.add_laplace(exact, self.bits)


def ticks(values: Floats, radius: float, tick_bits: int) -> Ints:
    """Converts records to ticks: negative numbers become 0, longer vectors shrink to the radius.

    Every record's ticks add up to at most 2^tick_bits, whatever the rounding.

    Example:
        >>> ticks(np.array([[3.0, 1.0], [9.0, 27.0]]), 4.0, 4).tolist()
        [[12, 4], [4, 12]]
    """
    positive = np.maximum(values, 0)
    # Each record is first divided by its largest number, so that none overflows.
    largest = np.maximum(positive.max(axis=1, keepdims=True), radius)
    part = positive / largest
    norm = np.maximum(part.sum(axis=1, keepdims=True), radius / largest)
    whole = np.floor(part / norm * 2**tick_bits).astype(np.int64)
    total = whole.sum(axis=1, keepdims=True)
    top = 1 << tick_bits
    scaled = whole * top // np.maximum(total, 1)
    return np.asarray(np.where(total > top, scaled, whole))
