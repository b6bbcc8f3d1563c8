"""Warnings of trials: few units that count, covariates by which arms seem to be assigned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.errors import printable
from shoal.trials.design import Covariate, Design, Floats, Ints
from shoal.trials.effects import Effect

# Units of an arm, as far as they count: with fewer, a mean may be far from normal, and its variance
# is often estimated as next to nothing (docs/theory/experiments.md#few-units).
FEWEST = 20.0
# Of noisy counts those below 0 are 0, and so may all of a cluster be.
_NOBODY = 1e-90
# Significance level of the test that a covariate determines the arm.
_CHANCE = math.log(1e-6)


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
    for arm, effect in enumerate(effects, start=1):
        own = counts.astype(np.float64)
        if (own[:, [0, arm]].sum(axis=(0, 2)) > 0).all():
            units = units_that_count(np.maximum(own.sum(axis=2), _NOBODY))[[0, arm]]
            effect = _warned(effect, units / kurtosis(own, values, arm))
        found.append(effect)
    return found


def _warned(effect: Effect, units: Floats) -> Effect:
    least = int(np.argmin(units))
    if units[least] >= FEWEST:
        return effect
    name = printable(str((effect.control, effect.arm)[least]))
    why = (
        f"arm {name} counts as {units[least]:.2g} units (its units over the kurtosis of what they "
        f"say); with fewer than {FEWEST:g} an interval may cover far less than it says"
    )
    return replace(effect, warning="; ".join(filter(None, [why, effect.warning])))


def _kurtosis(counts: Floats, values: Floats, together: tuple[int, ...]) -> float:
    """With deviations from the means over these axes."""
    share, units = counts / counts.sum(), counts.sum(axis=together, keepdims=True)
    mean = (counts * values).sum(axis=together, keepdims=True) / np.maximum(units, _NOBODY)
    square = (values - mean) ** 2
    # Of values that differ by rounding alone the fourth powers vanish.
    if not (share * square**2).sum() > 0:
        return 1.0
    return float((share * square**2).sum() / (share * square).sum() ** 2)


def assigned_by(design: Design) -> list[str]:
    """Covariates within whose values arms of units, or groups, never vary, hardly by chance."""
    return [each.name for each in design.covariates if _never_varies(design, each)]


def _never_varies(design: Design, column: Covariate) -> bool:
    arms = len(design.arms)
    if design.group is None:
        codes, arm, many = column.codes, design.arm, design.many
    else:
        groups = np.unique(design.group, return_index=True)[1]
        if bool((column.codes[groups][design.group] != column.codes).any()):
            return False
        codes, arm, many = column.codes[groups], design.arm[groups], np.ones(len(groups), int)
    count = np.bincount(codes * arms + arm, many, len(column.values) * arms).reshape(-1, arms)
    if bool((np.count_nonzero(count, axis=1) > 1).any()):
        return False
    sizes = count.sum(axis=0)
    if column.numeric and any(
        value == 0 and bool((own == sizes).any())
        for value, own in zip(column.values, count, strict=True)
    ):
        # A dose, or an interaction with the arm: 0 in all of the other.
        return False
    # A value of m units has one arm with the probability sum_a p_a^m.
    shares = sizes / sizes.sum()
    held, times = np.unique(count.sum(axis=1), return_counts=True)
    alike = np.array([math.log(float((shares**each).sum()) or 5e-324) for each in held.tolist()])
    return bool(float(alike @ times) < _CHANCE)
