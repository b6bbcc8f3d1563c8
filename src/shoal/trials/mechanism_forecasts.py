"""What each mechanism of a trial is expected to report: standard errors from public numbers."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.privacy.budget import Budget
from shoal.trials.best_table.choice import best_table
from shoal.trials.choose import choose
from shoal.trials.expected import Expected, kinds_of
from shoal.trials.histogram import NoisyHistogram
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson
from shoal.trials.parameters import Parameters
from shoal.trials.predicted import Scene, cluster_weights, represent
from shoal.trials.questions.effect_noise import noise_of_effects

UNITS, AGGREGATES, EVERYTHING = "units", "aggregates", "everything"
ANSWERS, NUMBERS = "answers", "one number"
NAMES = (
    "no_privacy",
    "uniform_prior",
    "best_table",
    "cluster_free",
    "cluster_dp",
    "noisy_horvitz_thompson",
    "noisy_histogram",
    "questions",
    "laplace_by_hand",
)
_AGGREGATES: dict[str, type[NoisyHorvitzThompson | NoisyHistogram]] = {
    NAMES[5]: NoisyHorvitzThompson,
    NAMES[6]: NoisyHistogram,
}
_ANSWERS = {
    NAMES[7]: ", with its standard error and interval",
    NAMES[8]: ": all of epsilon for the number, nothing for its interval",
}


@dataclass(frozen=True)
class Forecast:
    """What a mechanism is expected to report.

    Attributes:
        mechanism: Its name; `no_privacy` without any.
        releases: `units` (an outcome for each), `aggregates`, or `everything`.
        standard_error: Of the effect, least and most over what may be expected, in the outcome's
            unit; with several arms the root mean square over their effects.
        cluster_error: The same of the effect in one cluster, in the outcome's unit, as the root
            mean square over clusters; not a number where no effects by cluster are released.
        levels: How many levels are in use.
        reason: Where the parameters come from, in one sentence.
        parameters: The whole numbers of a mechanism that releases units, else None.
    """

    mechanism: str
    releases: str
    standard_error: tuple[float, float]
    cluster_error: tuple[float, float]
    levels: int
    reason: str
    parameters: Parameters | None = None

    @property
    def errors(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Standard errors of the mean effect, and of effects by cluster, in the outcome's unit."""
        return self.standard_error, self.cluster_error


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
    scenes = _scenes(sizes, space, expected)
    errors = [_errors(each.sampling) for each in scenes]
    plain = Forecast(NAMES[0], EVERYTHING, errors[0], errors[1], space.size, "no privacy")
    uniform, _, *others = NAMES[1:5]
    units = [_units(uniform, sizes, scenes, charge, expected)]
    table = _table(scenes, charge, expected)
    for name in others:
        # Without delta the choice is the same uniform prior for all: `choose` shows why.
        alike = replace(units[0], mechanism=name)
        units.append(_units(name, sizes, scenes, charge, expected) if charge.delta else alike)
    made = [_aggregate(name, sizes, scenes, charge) for name in _AGGREGATES]
    asked = noise_of_effects(sizes, space.width, float(charge.epsilon))
    answers = [_answer(name, scenes[0], asked[name], why) for name, why in _ANSWERS.items()]
    every = (plain, units[0], table, *units[1:], *made, *answers)
    return tuple(each for each in every if each is not None)


def _scenes(
    sizes: NDArray[np.int64], space: Space, expected: Expected | None
) -> tuple[Scene, Scene]:
    """What is expected of the mean effect, and of the effects of clusters."""
    kinds, weight = kinds_of(expected, space), cluster_weights(sizes)
    every, each = represent(sizes, pooled=False), represent(sizes, pooled=False, weight=weight)
    return Scene(every, space, kinds), Scene(each, space, kinds)


def _units(
    name: str,
    sizes: NDArray[np.int64],
    scenes: tuple[Scene, Scene],
    charge: Budget,
    expected: Expected | None,
) -> Forecast:
    found = choose(
        sizes,
        scenes[0].space,
        epsilon=charge.epsilon,
        delta=charge.delta,
        pooled=name != "cluster_dp",
        sigma=math.inf if name == "uniform_prior" else None,
        expected=expected,
    )
    parameters = found.parameters
    by_cluster = _errors(scenes[1].variance(parameters))
    return Forecast(
        name, UNITS, found.standard_error, by_cluster, parameters.levels, found.reason, parameters
    )


def _table(
    scenes: tuple[Scene, Scene], charge: Budget, expected: Expected | None
) -> Forecast | None:
    """Of the best table; a delta is of no use to it."""
    try:
        found = best_table(scenes[0].space, charge.epsilon, expected=expected)
    except InputError:
        return None
    added = scenes[0].distribution(found.kept).mean_of(found.variances)
    errors = [_errors(each.sampling + each.groups.total * added) for each in scenes]
    reason = found.reason(scenes[0].space.size)
    return Forecast(NAMES[2], UNITS, errors[0], errors[1], len(found.kept), reason)


def _aggregate(
    name: str,
    sizes: NDArray[np.int64],
    scenes: tuple[Scene, Scene],
    charge: Budget,
) -> Forecast | None:
    space = scenes[0].space
    try:
        made = _AGGREGATES[name].plan(sizes, space.levels, charge.epsilon)
    except InputError:
        return None
    weight = sizes.sum(axis=1) / sizes.sum()
    added = float((weight**2 @ made.noise_variance).mean()), float(made.noise_variance.mean())
    errors = [_errors(each.sampling + more) for each, more in zip(scenes, added, strict=True)]
    reason = f"noise of {math.sqrt(added[0]):.3g} in the effect, whatever the outcomes are"
    return Forecast(name, AGGREGATES, errors[0], errors[1], space.size, reason)


def _answer(name: str, scene: Scene, noise: float | None, why: str) -> Forecast | None:
    """Of what answers one question; None where its noise cannot be computed."""
    if noise is None:
        return None
    releases = ANSWERS if name == NAMES[7] else NUMBERS
    errors, unknown = _errors(scene.sampling + noise**2), (math.nan, math.nan)
    return Forecast(
        name,
        releases,
        errors,
        unknown,
        scene.space.size,
        f"noise of {noise:.3g} in the effect{why}",
    )


def _errors(variance: NDArray[np.float64]) -> tuple[float, float]:
    return float(np.sqrt(variance.min())), float(np.sqrt(variance.max()))
