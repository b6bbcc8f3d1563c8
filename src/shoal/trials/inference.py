"""Effects of arms against control with valid intervals, from public statistics of cells.

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
from shoal.trials.effects import ClusterEffects, Effect, Inference

# Equal outcomes leave a variance of this part of their square by rounding of their mean.
ROUNDING = 1e-26
# Units of an arm, as far as they count: with fewer, a mean may be far from normal, and its variance
# is often estimated as next to nothing (docs/theory/experiments.md#few-units).
FEWEST = 20.0
# Of noisy counts those below 0 are 0, and so may all of a cluster be.
_NOBODY = 1e-90
# A share that is short of 1/2 by less is taken for it: rounding decides nothing.
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
    """An estimated variance, its degrees of freedom, and privacy noise beside and in it.

    Noise is a variance in squared units of the outcome, like that of so many Laplace variables of
    one scale, its `terms`; `loose` is the scale of the noise of `variance`.
    """

    variance: float
    degrees: float
    noise: float = 0.0
    terms: float = 1.0
    loose: float = 0.0

    def half_width(self, confidence: float) -> float:
        """Half of an interval."""
        noise = self.noise, self.terms, self.loose
        return half_width(confidence, self.variance, *noise, self.degrees)


UNKNOWN = Spread(math.nan, math.nan)


class Cells(NamedTuple):
    """Statistics of cells, shape (clusters, arms), control first, in the outcome's unit or square.

    `sizes` are units, all above 0; `mean` and `s2` those of debiased outcomes, s2 with the divisor
    n - 1 and NaN for one unit; `noise` is the known variance of the mean that s2 does not contain,
    `squares` the sum of the squared variances of its Laplace variables, and `loose` the variance of
    the noise of s2/n.
    """

    sizes: Ints
    mean: Floats
    s2: Floats
    noise: Floats
    squares: Floats
    loose: Floats

    @classmethod
    def of(cls, sizes: Ints, mean: Floats, s2: Floats) -> "Cells":
        """Without noise of their own: s2 contains the mechanism's variance."""
        none = np.zeros(sizes.shape)
        return cls(sizes, mean, np.where(sizes > 1, s2, math.nan), none, none, none)

    @property
    def value(self) -> Floats:
        """Of two arms, how their means differ in each cluster."""
        return self.mean[:, 0] - self.mean[:, 1]

    @property
    def estimated(self) -> Floats:
        """Variances of means as the outcomes tell them."""
        return self.s2 / self.sizes


def effects_of(design: Design, cells: Cells, confidence: float) -> list[Effect]:
    """The effect of every arm against control, for these units and for where they came from."""
    arms = design.arms.to_pylist()
    homes = tuple(design.clusters.to_pylist())
    found = []
    one = len(homes) == 1
    every = np.ones(len(homes), dtype=np.bool_)
    weight = cells.sizes.sum(axis=1) / cells.sizes.sum()
    for arm in range(1, len(arms)):
        pair = Cells._make(each[:, [arm, 0]] for each in cells)
        value = float(weight @ pair.value)
        # Means may cancel near 0 where outcomes do not: their squares tell the scale of rounding.
        scale = pair.mean**2 + np.nan_to_num(np.abs(pair.s2))
        tiny = ROUNDING * float(weight**2 @ scale.sum(axis=1))
        here = _finite(weight, pair)
        there = here if one else _pooled(weight, pair, every)
        finite, wider = (
            inferred(value, spread, tiny, confidence, about)
            for spread, about in ((here, THESE_UNITS), (there, _ONE_CLUSTER if one else _CLUSTERS))
        )
        error = np.sqrt(np.maximum(pair.estimated, 0).sum(axis=1) + pair.noise.sum(axis=1))
        clusters = ClusterEffects(homes, pair.value, error, weight)
        found.append(Effect(arms[arm], arms[0], value, finite, wider, clusters))
    return found


def inferred(value: float, spread: Spread, tiny: float, confidence: float, about: str) -> Inference:
    """Standard error and interval; nothing is known where a variance is no more than rounding."""
    total = max(spread.variance, 0.0) + spread.noise
    if math.isnan(spread.variance) or total <= tiny:
        # The confidence is checked where no quantile is needed, too.
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
    """Neyman's variance where both arms have one, and how effects differ where not."""
    lacking: Bools = np.asarray(np.isnan(pair.estimated).any(axis=1))
    if lacking.sum() == 1:
        if len(lacking) == 1:
            return UNKNOWN
        # With the other cluster whose number of units is nearest: a public choice.
        gap = np.abs(weight - weight[lacking])
        lacking[int(np.where(lacking, math.inf, gap).argmin())] = True
    alone = ~lacking
    square = weight[alone] ** 2
    parts = (square[:, None] * pair.estimated[alone]).ravel()
    degrees = (pair.sizes[alone] - 1).ravel().astype(np.float64)
    if lacking.any():
        pooled = _pooled(weight, pair, lacking)
        parts = np.append(parts, pooled.variance)
        degrees = np.append(degrees, pooled.degrees)
    noise = float(square @ pair.noise[alone].sum(axis=1))
    squares, loose = (
        float(square**2 @ each[alone].sum(axis=1)) for each in (pair.squares, pair.loose)
    )
    variance, known_with = added(parts, degrees)
    terms = noise**2 / squares if squares > 0 else 1.0
    return Spread(variance, known_with, noise, terms, math.sqrt(loose / 2))


def _pooled(weight: Floats, pair: Cells, chosen: Bools) -> Spread:
    return between(weight[chosen], pair.value[chosen], (1 / pair.sizes[chosen]).sum(axis=1))


def added(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """The sum of independent estimates of variances, with Welch's degrees of freedom."""
    total = float(variances.sum())
    if not total > 0:
        return total, float(degrees.min())
    uncertain = float(((np.maximum(variances, 0) / total) ** 2 / (degrees + 2)).sum())
    return total, max(1 / uncertain - 2, float(degrees.min()))


def between(weight: Floats, value: Floats, scale: Floats) -> Spread:
    """The variance of sum w_c D_c from how uncorrelated D_c differ: never too small on average."""
    heaviest = int(weight.argmax())
    top = float(weight[heaviest])
    others = float(np.delete(weight, heaviest).sum())
    if top >= others * (1 - _HALF):
        share = weight / others / 2
        share[heaviest] = 1 / 2
        # The limit of the formula: that of the others' mean against the heaviest.
        factor = np.zeros_like(weight)
        factor[heaviest] = 4 * max(top, others) ** 2
    else:
        share = weight / weight.sum()
        capacity = 1 - 2 * share
        factor = weight**2 / capacity / (1 + float((share**2 / capacity).sum()))
    variance = float(factor @ (value - share @ value) ** 2)
    sides = np.stack([share, factor], axis=1)
    core = np.array([[factor.sum(), -1.0], [-1.0, 0.0]])
    known = (
        degrees_of(factor * v, sides * np.sqrt(v)[:, None], core)
        for v in (scale, np.ones_like(scale))
    )
    return Spread(variance, max(1.0, min(known)))


def degrees_of(diagonal: Floats, sides: Floats, core: Floats) -> float:
    """(tr M)^2/tr M^2 of M = diag(d) + A C A', of low rank but for its diagonal; 0 if M is 0."""
    moved = sides @ core
    part = (moved * sides).sum(axis=1)
    inner = sides.T @ moved
    trace = float((diagonal + part).sum())
    square = float(diagonal @ (diagonal + 2 * part)) + float((inner * inner.T).sum())
    return trace**2 / square if trace > 0 and square > 0 else 0.0


def units_that_count(sizes: Ints) -> Floats:
    """Units that tell the variance of an arm's mean: (sum_c v_c)^2/sum_c v_c^2/n_{c,a}."""
    weight = sizes.sum(axis=1) / sizes.sum()
    part = weight[:, None] ** 2 / sizes
    return np.asarray(part.sum(axis=0) ** 2 / (part**2 / sizes).sum(axis=0))


def kurtosis(counts: Floats, values: Floats, arm: int) -> float:
    """The largest kurtosis of arm, control, or both, by clusters x arms x responses; 1 at least."""
    return max(
        _kurtosis(counts[:, group], values[:, group], together)
        for group in ([0], [arm], [0, arm])
        for together in ((1, 2), (0, 1, 2))
    )


def warned(effects: Sequence[Effect], counts: NDArray[np.number], values: Floats) -> list[Effect]:
    """The effects, with a warning where units of an arm, over the kurtosis, count as few."""
    found = []
    own = counts.astype(np.float64)
    for arm, effect in enumerate(effects, start=1):
        why = ""
        if (own[:, [0, arm]].sum(axis=(0, 2)) > 0).all():
            units = units_that_count(np.maximum(own.sum(axis=2), _NOBODY))[[0, arm]]
            units = units / kurtosis(own, values, arm)
            least = int(np.argmin(units))
            if units[least] < FEWEST:
                name = printable(str((effect.control, effect.arm)[least]))
                why = (
                    f"arm {name} counts as {units[least]:.2g} units (its units over the kurtosis "
                    f"of their responses); with fewer than {FEWEST:g} an interval may cover far "
                    "less than stated"
                )
        found.append(effect.warned(why))
    return found


def _kurtosis(counts: Floats, values: Floats, together: tuple[int, ...]) -> float:
    """With deviations from the means over these axes."""
    share = counts / counts.sum()
    units = counts.sum(axis=together, keepdims=True)
    mean = (counts * values).sum(axis=together, keepdims=True) / np.maximum(units, _NOBODY)
    square = (values - mean) ** 2
    # Of values that differ by rounding alone the fourth powers vanish.
    if not (share * square**2).sum() > 0:
        return 1.0
    return float((share * square**2).sum() / (share * square).sum() ** 2)
