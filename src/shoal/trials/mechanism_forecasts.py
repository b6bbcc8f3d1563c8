"""What each mechanism of a trial is expected to report: standard errors from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.trials.best_table.choice import best_table
from shoal.trials.choose import choose
from shoal.trials.expected import kinds_of
from shoal.trials.histogram import NoisyHistogram
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson
from shoal.trials.predicted import Scene, represent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.outcome_space import Space
    from shoal.privacy.budget import Budget
    from shoal.trials.expected import Expected
    from shoal.trials.parameters import Parameters

UNITS, AGGREGATES, EVERYTHING = "units", "aggregates", "everything"
NAMES = (
    "no_privacy",
    "uniform_prior",
    "best_table",
    "cluster_free",
    "cluster_dp",
    "noisy_horvitz_thompson",
    "noisy_histogram",
)
_AGGREGATES: dict[str, type[NoisyHorvitzThompson | NoisyHistogram]] = {
    NAMES[5]: NoisyHorvitzThompson,
    NAMES[6]: NoisyHistogram,
}


@dataclass(frozen=True)
class Forecast:
    """What a mechanism is expected to report.

    Attributes:
        mechanism: Its name; `no_privacy` without any.
        releases: `units` (an outcome for each), `aggregates`, or `everything`.
        standard_error: Of the effect, least and most over what may be expected, in the outcome's
            unit; with several arms the root mean square over their effects.
        levels: How many levels are in use.
        reason: Where the parameters come from, in one sentence.
        parameters: The whole numbers of a mechanism that releases units, else None.
    """

    mechanism: str
    releases: str
    standard_error: tuple[float, float]
    levels: int
    reason: str
    parameters: Parameters | None = None


def forecasts_of(
    sizes: NDArray[np.int64], space: Space, charge: Budget, expected: Expected | None
) -> tuple[Forecast, ...]:
    """The forecast of every mechanism, in the order of `NAMES`.

    Aggregates whose numbers would not fit 64-bit integers are left out, and so is a table where
    epsilon or the levels are outside of what it is made for.

    Args:
        sizes: Units of each group, clusters x arms, control first.
        space: Levels of the outcome.
        charge: Epsilon and delta of one outcome.
        expected: What is publicly expected of outcomes, or None for a family of expectations.

    Raises:
        InputError: An epsilon that does not suit these sizes.
    """
    groups = represent(sizes, pooled=False)
    scene = Scene(groups, space, kinds_of(expected, space))
    sampling = scene.sampling
    plain = Forecast(NAMES[0], EVERYTHING, _errors(sampling), space.size, "no privacy")
    uniform, _, *others = NAMES[1:5]
    units = [_units(uniform, sizes, space, charge, expected)]
    table = _table(scene, charge, expected)
    for name in others:
        # Without delta the choice is the same uniform prior for all: `choose` shows why.
        alike = replace(units[0], mechanism=name)
        units.append(_units(name, sizes, space, charge, expected) if charge.delta else alike)
    made = [_aggregate(name, sizes, space, charge, sampling) for name in _AGGREGATES]
    every = (plain, units[0], table, *units[1:], *made)
    return tuple(each for each in every if each is not None)


def _units(
    name: str,
    sizes: NDArray[np.int64],
    space: Space,
    charge: Budget,
    expected: Expected | None,
) -> Forecast:
    found = choose(
        sizes,
        space,
        epsilon=charge.epsilon,
        delta=charge.delta,
        pooled=name != "cluster_dp",
        sigma=math.inf if name == "uniform_prior" else None,
        expected=expected,
    )
    levels = found.parameters.levels
    return Forecast(name, UNITS, found.standard_error, levels, found.reason, found.parameters)


def _table(scene: Scene, charge: Budget, expected: Expected | None) -> Forecast | None:
    """Of the best table; a delta is of no use to it."""
    try:
        found = best_table(scene.space, charge.epsilon, expected=expected)
    except InputError:
        return None
    added = scene.distribution(found.kept).mean_of(found.variances)
    errors = _errors(scene.sampling + scene.groups.total * added)
    many = len(found.kept)
    return Forecast(NAMES[2], UNITS, errors, many, found.reason(scene.space.size))


def _aggregate(
    name: str,
    sizes: NDArray[np.int64],
    space: Space,
    charge: Budget,
    sampling: NDArray[np.float64],
) -> Forecast | None:
    try:
        made = _AGGREGATES[name].plan(sizes, space.levels, charge.epsilon)
    except InputError:
        return None
    weight = sizes.sum(axis=1) / sizes.sum()
    added = float((weight**2 @ made.noise_variance).mean())
    reason = f"noise of {math.sqrt(added):.3g} in the effect, whatever the outcomes are"
    return Forecast(name, AGGREGATES, _errors(sampling + added), space.size, reason)


def _errors(variance: NDArray[np.float64]) -> tuple[float, float]:
    return float(np.sqrt(variance.min())), float(np.sqrt(variance.max()))
