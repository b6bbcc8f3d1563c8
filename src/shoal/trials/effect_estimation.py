"""Estimates effects of arms against control with valid intervals, from statistics of cells.

Source: Neyman (1923); docs/theory/experiments.md#inference.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import Bools, Floats, Ints
from shoal.errors import printable
from shoal.intervals import half_width, student
from shoal.trials.design import Design
from shoal.trials.results import ClusterEffects, Effect, Inference

# Because their mean is rounded, equal outcomes have a variance of this part of their square.
ROUNDING = 1e-26
# If an arm counts as fewer units, its mean may be far from normal, and its variance is often
# estimated as next to nothing (docs/theory/experiments.md#few-units).
FEWEST = 20.0
# Noisy counts below 0 are raised to 0. Where all counts are 0, this is the number of units, since
# it is a divisor.
_NOBODY = 1e-90
# A weight that misses the sum of all others by less than this part counts as equal to it, so that
# rounding decides nothing.
_HALF = 1e-9
THESE_UNITS = (
    "The effect on these units, over the assignment and the mechanism; also the effect in the "
    "populations of these clusters, if their units were drawn from them."
)
_CLUSTERS = (
    "The effect in a population of clusters that these were drawn from, weighted by their units."
)
_ONE_CLUSTER = "The effect in a population that the units of this one cluster were drawn from."
_ALONE = (
    "Not known: there is one cluster, and an arm of it has one unit or an unknown variance; with "
    "another cluster, or a second unit, it would be known."
)
_CONSTANT = (
    "Not known: all outcomes are equal and do not show how much others vary; give more units."
)


class Spread(NamedTuple):
    """The estimated variance of an estimate, its degrees of freedom, and privacy noise.

    `noise` is the known variance of the noise of the estimate, which `variance` does not contain,
    in squared units of the outcome; this noise is like the sum of `terms` Laplace variables of one
    scale. `variance_noise` is the scale of the noise of `variance` itself.
    """

    variance: float
    degrees: float
    noise: float = 0.0
    terms: float = 1.0
    variance_noise: float = 0.0

    def half_width(self, confidence: float) -> float:
        """Returns half of an interval."""
        noise = self.noise, self.terms, self.variance_noise
        return half_width(confidence, self.variance, *noise, self.degrees)


UNKNOWN = Spread(math.nan, math.nan)


class Cells(NamedTuple):
    """Statistics of cells, shape (clusters, arms), control first, in the outcome's unit or square.

    `sizes` are units, all above 0. `mean` and `s2` are mean and variance of debiased outcomes; s2
    has the divisor n - 1 and is NaN for one unit. `noise` is the known variance of the mean that s2
    does not contain, and `squares` the sum of the squared variances of its Laplace variables.
    `s2_noise` is the variance of the noise of s2/n.
    """

    sizes: Ints
    mean: Floats
    s2: Floats
    noise: Floats
    squares: Floats
    s2_noise: Floats

    @classmethod
    def of(cls, sizes: Ints, mean: Floats, s2: Floats) -> "Cells":
        """Returns cells without noise of their own: s2 contains the mechanism's variance."""
        none = np.zeros(sizes.shape)
        return cls(sizes, mean, np.where(sizes > 1, s2, math.nan), none, none, none)

    @property
    def value(self) -> Floats:
        """The difference of the means of two arms in each cluster."""
        return self.mean[:, 0] - self.mean[:, 1]

    @property
    def estimated(self) -> Floats:
        """The variances of means, estimated from the outcomes."""
        return self.s2 / self.sizes


def effects_of(design: Design, cells: Cells, confidence: float) -> list[Effect]:
    """Returns the effect of every arm, for these units and for the population they came from."""
    arms = design.arms.to_pylist()
    cluster_names = tuple(design.clusters.to_pylist())
    found = []
    single_cluster = len(cluster_names) == 1
    all_clusters = np.ones(len(cluster_names), dtype=np.bool_)
    weight = cells.sizes.sum(axis=1) / cells.sizes.sum()
    for arm in range(1, len(arms)):
        pair = Cells._make(each[:, [arm, 0]] for each in cells)
        value = float(weight @ pair.value)
        # Means may cancel near 0 where outcomes do not, so that squares give the size of rounding.
        scale = pair.mean**2 + np.nan_to_num(np.abs(pair.s2))
        tiny = ROUNDING * float(weight**2 @ scale.sum(axis=1))
        of_these_units = _finite(weight, pair)
        finite = inferred(value, of_these_units, tiny, confidence, THESE_UNITS)
        if single_cluster:
            population = inferred(value, of_these_units, tiny, confidence, _ONE_CLUSTER)
        else:
            of_clusters = _pooled(weight, pair, all_clusters)
            population = inferred(value, of_clusters, tiny, confidence, _CLUSTERS)
        error = np.sqrt(np.maximum(pair.estimated, 0).sum(axis=1) + pair.noise.sum(axis=1))
        clusters = ClusterEffects(cluster_names, pair.value, error, weight)
        found.append(Effect(arms[arm], arms[0], value, finite, population, clusters))
    return found


def inferred(value: float, spread: Spread, tiny: float, confidence: float, about: str) -> Inference:
    """Returns standard error and interval, or NaN where a variance is no more than rounding."""
    total = max(spread.variance, 0.0) + spread.noise
    if math.isnan(spread.variance) or total <= tiny:
        # The confidence is checked even if no quantile is needed.
        student(math.inf, confidence)
        # An interval of no width would claim certainty where nothing is known.
        error = reach = degrees = math.nan
        about = _ALONE if math.isnan(spread.variance) else _CONSTANT
    else:
        error = math.sqrt(total)
        reach = spread.half_width(confidence)
        degrees = spread.degrees
    return Inference(
        standard_error=error,
        interval=(value - reach, value + reach),
        confidence=confidence,
        degrees_of_freedom=degrees,
        about=about,
    )


def _finite(weight: Floats, pair: Cells) -> Spread:
    """Returns Neyman's variance of the effect.

    Clusters in which it is not known get the variance between their effects instead.
    """
    lacking: Bools = np.asarray(np.isnan(pair.estimated).any(axis=1))
    if lacking.sum() == 1:
        if len(lacking) == 1:
            return UNKNOWN
        # The cluster is joined by the one whose number of units is nearest, which is public.
        distance = np.abs(weight - weight[lacking])
        lacking[int(np.where(lacking, math.inf, distance).argmin())] = True
    sufficient = ~lacking
    squared_weight = weight[sufficient] ** 2
    parts = (squared_weight[:, None] * pair.estimated[sufficient]).ravel()
    degrees = (pair.sizes[sufficient] - 1).ravel().astype(np.float64)
    if lacking.any():
        pooled = _pooled(weight, pair, lacking)
        parts = np.append(parts, pooled.variance)
        degrees = np.append(degrees, pooled.degrees)
    noise = float(squared_weight @ pair.noise[sufficient].sum(axis=1))
    squares = float(squared_weight**2 @ pair.squares[sufficient].sum(axis=1))
    s2_noise = float(squared_weight**2 @ pair.s2_noise[sufficient].sum(axis=1))
    variance, total_degrees = added(parts, degrees)
    terms = noise**2 / squares if squares > 0 else 1.0
    return Spread(variance, total_degrees, noise, terms, math.sqrt(s2_noise / 2))


def _pooled(weight: Floats, pair: Cells, chosen: Bools) -> Spread:
    """Returns the variance between the effects of the chosen clusters."""
    return between(weight[chosen], pair.value[chosen], (1 / pair.sizes[chosen]).sum(axis=1))


def added(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """Returns the sum of independent estimates of variances, with Welch's degrees of freedom."""
    total = float(variances.sum())
    if not total > 0:
        return total, float(degrees.min())
    uncertain = float(((np.maximum(variances, 0) / total) ** 2 / (degrees + 2)).sum())
    return total, max(1 / uncertain - 2, float(degrees.min()))


def between(weight: Floats, value: Floats, scale: Floats) -> Spread:
    """Returns a variance of sum weight_c value_c that is never too small on average.

    The values must be uncorrelated. The variance is sum factor_c (value_c - centre)^2 with the
    centre sum centring_c value_c. If one weight is as large as all others together, the centre is
    halfway between its value and the mean of the others. Degrees of freedom are the fewer of those
    for equal variances of the values and for variances proportional to `scale`.
    """
    heaviest = int(weight.argmax())
    top = float(weight[heaviest])
    others = float(np.delete(weight, heaviest).sum())
    if top >= others * (1 - _HALF):
        centring = weight / others / 2
        centring[heaviest] = 1 / 2
        # The formula has this limit, which compares the mean of the others with the heaviest.
        factor = np.zeros_like(weight)
        factor[heaviest] = 4 * max(top, others) ** 2
    else:
        centring = weight / weight.sum()
        capacity = 1 - 2 * centring
        factor = weight**2 / capacity / (1 + float((centring**2 / capacity).sum()))
    variance = float(factor @ (value - centring @ value) ** 2)
    sides = np.stack([centring, factor], axis=1)
    core = np.array([[factor.sum(), -1.0], [-1.0, 0.0]])
    degrees = (
        degrees_of(factor * variances, sides * np.sqrt(variances)[:, None], core)
        for variances in (scale, np.ones_like(scale))
    )
    return Spread(variance, max(1.0, min(degrees)))


def degrees_of(diagonal: Floats, sides: Floats, core: Floats) -> float:
    """Returns (tr M)^2/tr M^2 of M = diag(diagonal) + A C A', where A is `sides` and C `core`.

    It is 0 if M is 0.
    """
    product = sides @ core
    added_diagonal = (product * sides).sum(axis=1)
    inner = sides.T @ product
    trace = float((diagonal + added_diagonal).sum())
    square = float(diagonal @ (diagonal + 2 * added_diagonal)) + float((inner * inner.T).sum())
    return trace**2 / square if trace > 0 and square > 0 else 0.0


def units_that_count(sizes: Ints) -> Floats:
    """Returns how many units each arm counts as: (sum_c v_c)^2/sum_c (v_c^2/n_{c,a}).

    Here v_c is the squared share that the cluster has of all units, divided by its units n_{c,a} in
    the arm.
    """
    share = sizes.sum(axis=1) / sizes.sum()
    variance_part = share[:, None] ** 2 / sizes
    return np.asarray(variance_part.sum(axis=0) ** 2 / (variance_part**2 / sizes).sum(axis=0))


def kurtosis(counts: Floats, values: Floats, arm: int) -> float:
    """Returns the largest of the kurtoses of an arm, of control and of both; it is at least 1.

    Responses deviate from the mean of their cluster, or from the mean of all clusters. Counts and
    values have the shape (clusters, arms, responses).
    """
    return max(
        _kurtosis(counts[:, group], values[:, group], together)
        for group in ([0], [arm], [0, arm])
        for together in ((1, 2), (0, 1, 2))
    )


def warned(effects: Sequence[Effect], counts: NDArray[np.number], values: Floats) -> list[Effect]:
    """Returns effects with a warning where an arm's units, divided by the kurtosis, are few."""
    found = []
    numbers = counts.astype(np.float64)
    for arm, effect in enumerate(effects, start=1):
        why = ""
        # If noise hides all units of an arm, nothing can be said of them.
        if (numbers[:, [0, arm]].sum(axis=(0, 2)) > 0).all():
            units = units_that_count(np.maximum(numbers.sum(axis=2), _NOBODY))[[0, arm]]
            units = units / kurtosis(numbers, values, arm)
            fewest = int(np.argmin(units))
            if units[fewest] < FEWEST:
                name = printable(str((effect.control, effect.arm)[fewest]))
                why = (
                    f"arm {name} counts as {units[fewest]:.2g} units (its units over the kurtosis "
                    f"of their responses); with fewer than {FEWEST:g} an interval may cover far "
                    "less than stated"
                )
        found.append(effect.warned(why))
    return found


def _kurtosis(counts: Floats, values: Floats, together: tuple[int, ...]) -> float:
    """Returns the kurtosis of deviations from the means over the axes `together`."""
    share = counts / counts.sum()
    units = counts.sum(axis=together, keepdims=True)
    mean = (counts * values).sum(axis=together, keepdims=True) / np.maximum(units, _NOBODY)
    square = (values - mean) ** 2
    # If values differ by rounding alone, their fourth powers vanish.
    if not (share * square**2).sum() > 0:
        return 1.0
    return float((share * square**2).sum() / (share * square).sum() ** 2)
