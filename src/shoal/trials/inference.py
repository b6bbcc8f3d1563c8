"""Effects of arms against control with valid intervals, from public statistics of groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.data.assignment import Assignment
from shoal.errors import InputError
from shoal.trials.effects import ClusterEffects, Effect, Inference
from shoal.trials.spread import Spread, added, between
from shoal.trials.student import quantile

__all__ = [
    "Effect",
    "Inference",
    "effects",
    "effects_of",
    "inferred",
    "known",
    "super_population",
]

_GROUPED, _FEWEST_ARMS = 2, 2
# Equal outcomes leave a variance of this part of their square by rounding of their mean.
ROUNDING = 1e-26
_THESE_UNITS = (
    "The effect on these units, over the assignment and the mechanism; also the effect in the "
    "populations of these clusters, if their units were drawn from them."
)
_CLUSTERS = (
    "The effect in a population of clusters that these were drawn from, weighted by their units."
)
_ONE_CLUSTER = "The effect in a population that the units of this one cluster were drawn from."
_ALONE = (
    "Not known: there is one cluster, and an arm of it has one unit, or a "
    "variance that is not known; another cluster, or a second unit, would tell."
)
_CONSTANT = (
    "Not known: no outcomes differ, so that nothing tells how much others would; more units would."
)
UNKNOWN = Spread(math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Checked statistics of groups, clusters x arms; `s2` is NaN where it is not known."""

    sizes: NDArray[np.float64]
    mean: NDArray[np.float64]
    s2: NDArray[np.float64]
    noise: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Contrast:
    """One arm and control by cluster: `estimated` variances of both means are clusters x 2."""

    weight: NDArray[np.float64]
    value: NDArray[np.float64]
    sizes: NDArray[np.float64]
    estimated: NDArray[np.float64]
    noise: NDArray[np.float64]
    tiny: float

    @classmethod
    def of(cls, groups: _Groups, arm: int) -> _Contrast:
        two = [arm, 0]
        units, sizes, mean = groups.sizes.sum(axis=1), groups.sizes[:, two], groups.mean[:, two]
        weight = units / units.sum()
        # Means may cancel near 0 where outcomes do not: their squares tell the scale of rounding.
        scale = mean**2 + np.nan_to_num(groups.s2[:, two])
        tiny = ROUNDING * float(weight**2 @ scale.sum(axis=1))
        value, noise = mean[:, 0] - mean[:, 1], groups.noise[:, two].sum(axis=1)
        return cls(weight, value, sizes, groups.s2[:, two] / sizes, noise, tiny)


def effects(
    sizes: ArrayLike,
    mean: ArrayLike,
    s2: ArrayLike,
    *,
    noise_variance: ArrayLike | None = None,
    confidence: float = 0.95,
    arms: Sequence[object] | None = None,
    clusters: Sequence[object] | None = None,
) -> list[Effect]:
    """The effect of every arm against control, for these units and for where they came from.

    These units: V = sum_c (n_c/n)^2 (s2_1/n_1 + s2_0/n_0 + noise) is on average the variance over
    assignment, rounding and mechanism, plus sum_c (n_c/n)^2 S^2(tau_c)/n_c, which is 0 if all units
    of a cluster have the same effect. Clusters where an arm has one unit, or no s2, are pooled: how
    much their effects differ stands in (`spread.between`); a lone one is pooled with the cluster
    of the next number of units. Population of clusters: all are pooled (`super_population`).

    Args:
        sizes: Units of each group, clusters x arms, control first; all above 0.
        mean: Mean of the debiased outcomes of each group, in their unit. Where only differences
            are released: the differences, with 0 for control and NaN for every s2.
        s2: Their sample variance with divisor n_{c,a} - 1; NaN where it is not known. It is left
            out where there is one unit; below 0 (noisy counts may give that) it counts as 0.
        noise_variance: Known variance of each group's mean that s2 does not contain, such as the
            noise of an aggregate; None for 0. Independent between groups.
        confidence: Of every interval on its own.
        arms: Names of the arms, control first; 0, 1, ... unless given.
        clusters: Names of the clusters; 0, 1, ... unless given.

    Returns:
        One effect for each arm but control. An interval that the numbers do not tell is NaN and
        its `about` says why.

    Raises:
        InputError: Statistics of other shapes or not usable, or a confidence outside 0 to 1.

    Source: Neyman (1923); docs/theory/inference.md.

    Example:
        >>> found, = effects([[50, 50], [20, 30]], [[1.0, 2.0], [4.0, 4.5]], [[9.0, 8], [7, 6]])
        >>> print(found)
        1 against 0: 0.833333, 95% [-0.0773, 1.74] for these units
        95% [-3.4, 5.07] for clusters like these
    """
    groups = _checked(sizes, mean, s2, noise_variance)
    n_clusters, n_arms = groups.sizes.shape
    named = _names(arms, n_arms, "arm")
    homes = tuple(_names(clusters, n_clusters, "cluster"))
    return [
        _effect(_Contrast.of(groups, arm), (named[arm], named[0]), homes, confidence)
        for arm in range(1, n_arms)
    ]


def effects_of(
    assignment: Assignment,
    mean: NDArray[np.float64],
    s2: NDArray[np.float64],
    *,
    noise_variance: NDArray[np.float64] | None = None,
    confidence: float = 0.95,
) -> list[Effect]:
    """`effects` with the sizes, arms and clusters of an assignment.

    Raises:
        InputError: As for `effects`.

    Example:
        >>> from shoal.data.assignment import enrol
        >>> found = enrol(["new", "old"] * 50, control="old").assignment
        >>> effect, = effects_of(found, np.array([[1.0, 2.0]]), np.array([[4.0, 5.0]]))
        >>> effect.arm, effect.control, round(effect.finite_population.standard_error, 3)
        ('new', 'old', 0.424)
    """
    return effects(
        assignment.sizes,
        mean,
        s2,
        noise_variance=noise_variance,
        confidence=confidence,
        arms=assignment.arms.to_pylist(),
        clusters=assignment.clusters.to_pylist(),
    )


def super_population(
    sizes: ArrayLike, difference: ArrayLike, confidence: float = 0.95
) -> Inference:
    """What differences of clusters tell about the population of clusters they were drawn from.

    The ratio estimator sum n_c D_c/sum n_c with the variance sum b_c (D_c - tau)^2 of
    `spread.between`; with one cluster they tell nothing.

    Args:
        sizes: Units of the clusters, one number each or clusters x arms (of all arms).
        difference: D_c, in the outcome's unit, with whatever noise.
        confidence: Of the interval.

    Raises:
        InputError: Other shapes, sizes not above 0, differences that are not finite, or a
            confidence outside 0 to 1.

    Example:
        >>> found = super_population([100, 100, 100], [1.0, 2.0, 3.0])
        >>> round(found.standard_error, 4), round(found.degrees_of_freedom, 4)
        (0.5774, 2.0)
    """
    given, value = np.asarray(sizes, np.float64), np.asarray(difference, np.float64)
    units = given.sum(axis=1) if given.ndim == _GROUPED else given
    if value.ndim != 1 or not value.size or units.shape != value.shape or not (units > 0).all():
        raise _bad(f"sizes of shape {given.shape} and differences of shape {value.shape}")
    if not (np.isfinite(value) & np.isfinite(units)).all():
        raise _bad("sizes or differences that are not finite")
    if len(value) == 1:
        return inferred(float(value[0]), UNKNOWN, confidence, _ALONE)
    weight = units / units.sum()
    spread = between(weight, value, 1 / units)
    tiny = ROUNDING * float(weight**2 @ value**2)
    return known(float(weight @ value), spread, tiny, confidence, _CLUSTERS)


def inferred(value: float, spread: Spread, confidence: float, about: str) -> Inference:
    """The standard error and the interval of a value with this spread.

    Args:
        value: The estimate, in the outcome's unit.
        spread: Its variance; NaN where it is not known.
        confidence: Of the interval, between 0 and 1.
        about: What the interval covers.

    Raises:
        InputError: A confidence outside 0 to 1.

    Example:
        >>> found = inferred(10.0, Spread(4.0, math.inf), 0.95, "the effect")
        >>> [round(end, 2) for end in found.interval]
        [6.08, 13.92]
    """
    if math.isnan(spread.variance):
        # The confidence is checked where no quantile is needed, too.
        quantile(math.inf, confidence)
        return Inference(math.nan, (math.nan, math.nan), math.nan, confidence, about)
    error = math.sqrt(spread.variance)
    reach = quantile(spread.degrees, confidence) * error
    return Inference(error, (value - reach, value + reach), spread.degrees, confidence, about)


def _effect(
    contrast: _Contrast, arms: tuple[object, object], homes: tuple[object, ...], confidence: float
) -> Effect:
    value, one = float(contrast.weight @ contrast.value), len(homes) == 1
    here = _finite(contrast)
    there = here if one else _pooled(contrast, np.ones(len(homes), dtype=np.bool_))
    finite, wider = (
        known(value, spread, contrast.tiny, confidence, about)
        for spread, about in ((here, _THESE_UNITS), (there, _ONE_CLUSTER if one else _CLUSTERS))
    )
    error = np.sqrt(contrast.estimated.sum(axis=1) + contrast.noise)
    return Effect(
        *arms, value, finite, wider, ClusterEffects(homes, contrast.value, error, contrast.weight)
    )


def known(value: float, spread: Spread, tiny: float, confidence: float, about: str) -> Inference:
    """As `inferred`, and nothing is known where a variance is no more than rounding.

    Args:
        value: The estimate, in the outcome's unit.
        spread: Its variance; NaN where it is not known.
        tiny: A variance that rounding may leave, in the outcome's squared unit.
        confidence: Of the interval, between 0 and 1.
        about: What the interval covers.

    Raises:
        InputError: A confidence outside 0 to 1.
    """
    if math.isnan(spread.variance):
        return inferred(value, spread, confidence, _ALONE)
    if spread.variance <= tiny:
        # An interval of no width would claim certainty where nothing is known.
        return inferred(value, UNKNOWN, confidence, _CONSTANT)
    return inferred(value, spread, confidence, about)


def _finite(contrast: _Contrast) -> Spread:
    """Neyman's variance where both arms have one, and how effects differ where not."""
    lacking: NDArray[np.bool_] = np.asarray(np.isnan(contrast.estimated).any(axis=1))
    if lacking.sum() == 1:
        if len(lacking) == 1:
            return UNKNOWN
        lacking[_nearest(contrast, int(lacking.argmax()))] = True
    alone = ~lacking
    square = contrast.weight[alone] ** 2
    parts = (square[:, None] * contrast.estimated[alone]).ravel()
    degrees = (contrast.sizes[alone] - 1).ravel()
    if lacking.any():
        pooled = _pooled(contrast, lacking)
        parts, degrees = np.append(parts, pooled.variance), np.append(degrees, pooled.degrees)
    return added(parts, degrees, float(square @ contrast.noise[alone]))


def _nearest(contrast: _Contrast, lone: int) -> int:
    """The other cluster whose number of units is nearest: a public choice."""
    gap = np.abs(contrast.weight - contrast.weight[lone])
    gap[lone] = math.inf
    return int(gap.argmin())


def _pooled(contrast: _Contrast, chosen: NDArray[np.bool_]) -> Spread:
    scale = (1 / contrast.sizes[chosen]).sum(axis=1)
    return between(contrast.weight[chosen], contrast.value[chosen], scale)


def _checked(
    sizes: ArrayLike, mean: ArrayLike, s2: ArrayLike, noise_variance: ArrayLike | None
) -> _Groups:
    units, means = np.asarray(sizes, np.float64), np.asarray(mean, np.float64)
    spread = np.asarray(s2, np.float64)
    noise = np.zeros_like(units) if noise_variance is None else np.asarray(noise_variance, float)
    shapes = {array.shape for array in (units, means, spread, noise)}
    if len(shapes) != 1 or units.ndim != _GROUPED or not units.size:
        raise _bad(f"statistics of shapes {', '.join(str(shape) for shape in sorted(shapes))}")
    if units.shape[1] < _FEWEST_ARMS:
        raise _bad("one arm")
    if not (np.isfinite(units) & (units >= 1) & (units == np.floor(units))).all():
        raise _bad("groups of no, or of a broken number of, units")
    if not np.isfinite(means).all() or np.isinf(spread).any():
        raise _bad("means or variances that are not finite")
    if not (np.isfinite(noise) & (noise >= 0)).all():
        raise _bad("noise variances that are not finite or below 0")
    # The sample variance of one unit is 0/0, whatever was written for it.
    return _Groups(units, means, np.where(units > 1, np.maximum(spread, 0.0), math.nan), noise)


def _names(given: Sequence[object] | None, n: int, what: str) -> list[object]:
    names: list[object] = [*range(n)] if given is None else [*given]
    if len(names) != n:
        raise InputError(
            f"{len(names)} names of {n} {what}s", f"one for each {what}", "name all or none"
        )
    return names


def _bad(got: str) -> InputError:
    return InputError(
        got,
        "clusters x arms, at least two arms, at least one unit in each group; finite means; "
        "variances finite, or NaN where not known; noise variances from 0",
        "give one number for each cluster and arm",
    )
