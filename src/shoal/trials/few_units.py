"""Effects whose intervals rest on few units say so: what was released alone decides."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.errors import printable
from shoal.trials.effects import Effect

# Units of an arm, as far as they count: with fewer, a mean may be far from normal, and its variance
# is often estimated as next to nothing (docs/theory/inference.md#few-units).
FEWEST = 20.0
# Of noisy counts those below 0 are 0, and so may all of a cluster be.
_NOBODY = 1e-300


def units_that_count(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many units know the variance of an arm's mean: (sum_c v_c)^2/sum_c v_c^2/n_{c,a}.

    With v_c = (n_c/n)^2/n_{c,a}, the part of a cluster where all units vary alike: all units of the
    arm if these parts are as large as the clusters, and few where a few units carry most of it.

    Args:
        sizes: Units, clusters x arms.

    Example:
        >>> units_that_count(np.array([[20, 10]])).round(6).tolist()
        [20.0, 10.0]
    """
    weight = sizes.sum(axis=1) / sizes.sum()
    part = weight[:, None] ** 2 / sizes
    return np.asarray(part.sum(axis=0) ** 2 / (part**2 / sizes).sum(axis=0))


def kurtosis(counts: NDArray[np.float64], values: NDArray[np.float64], arm: int) -> float:
    """The largest kurtosis: of the responses of an arm, of control, or of both together.

    The mean of fourth powers of deviations over the squared mean of squares; 1 without deviations.
    An arm of few units need not show the large responses that others have: so both together. From
    the means of clusters, whose differences are no error of the effect, and from the mean of all,
    as clusters of few units hide how far they vary.

    Args:
        counts: Units with each response, clusters x arms x responses, control first.
        values: What each response says, of the same shape.
        arm: Number of the arm.

    Example:
        >>> counts = np.array([[[99.0, 1.0], [10.0, 0.0]]])
        >>> round(kurtosis(counts, np.broadcast_to([0.0, 1.0], counts.shape), 1), 1)
        108.0
    """
    groups = ([0], [arm], [0, arm])
    return max(
        _kurtosis(counts[:, group], values[:, group], together)
        for group in groups
        for together in ((1, 2), (0, 1, 2))
    )


def warned(
    effects: Sequence[Effect],
    counts: NDArray[np.int64],
    values: NDArray[np.float64],
) -> tuple[Effect, ...]:
    """The effects, with a warning where the units of an arm count as few.

    A unit counts as 1/kurtosis of one: the variance of n of them is known like that of n/kurtosis.

    Args:
        effects: Of all arms against control, in the arms' order.
        counts: Units with each response, clusters x arms x responses, control first.
        values: What each response says, of a shape that spreads to that.

    Guarantees: G-COVERAGE.
    """
    spread, units = np.broadcast_to(values, counts.shape), units_that_count(counts.sum(axis=2))
    return tuple(
        warned_of(effect, units[[0, arm]] / kurtosis(counts.astype(np.float64), spread, arm))
        for arm, effect in enumerate(effects, start=1)
    )


def warned_of(effect: Effect, units: NDArray[np.float64]) -> Effect:
    """An effect, with a warning if control or the arm counts as few units.

    Args:
        effect: Of the arm against control.
        units: Of control and of the arm, as far as they count.
    """
    least = int(np.argmin(units))
    if units[least] >= FEWEST:
        return effect
    name = printable(str((effect.control, effect.arm)[least]))
    return replace(
        effect,
        warning=f"arm {name} counts as {units[least]:.2g} units (its units over the kurtosis of "
        f"what they say); with fewer than {FEWEST:g} an interval may cover far less than it says",
    )


def _kurtosis(
    counts: NDArray[np.float64], values: NDArray[np.float64], together: tuple[int, ...]
) -> float:
    """With deviations from the means over these axes."""
    share, units = counts / counts.sum(), counts.sum(axis=together, keepdims=True)
    mean = (counts * values).sum(axis=together, keepdims=True) / np.maximum(units, _NOBODY)
    square = (values - mean) ** 2
    # Of values that differ by rounding alone the fourth powers vanish.
    if not (share * square**2).sum() > 0:
        return 1.0
    return float((share * square**2).sum() / (share * square).sum() ** 2)
