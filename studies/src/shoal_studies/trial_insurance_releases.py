"""The insurance experiment, released often by the real mechanisms with simulated noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.data.outcome_space import Space
from shoal.errors import MissingPartError
from shoal.privacy.noise import Simulated
from shoal.trials.effects import Effect
from shoal.trials.inference import effects_of
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.trials.mechanisms.base import Mechanism
from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree, UniformPrior
from shoal.trials.request import Units, take_in
from shoal_studies import trial_lines as lines

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

# Real effect: the form says "buy" unless crossed out. Null effect: a longer explanation.
REAL, NULL = "default", "intensive"
_PLACES = ("village", "address")
SPACE, CONFIDENCE = Space.binary(), 0.95
# Half of a uniform share of two levels, for priors that follow their histograms.
FLOOR = 0.25
_SHUFFLE = 2**31


@dataclass(frozen=True, eq=False)
class Households:
    """One experiment: its units, and how they came to their arms.

    Attributes:
        name: Column of the treatment.
        units: Households of villages with both arms.
        left_out: Villages without.
        hamlets: Small villages (`address`) in all.
        alike: Of them, those where all households have one arm.
    """

    name: str
    units: Units = field(repr=False)
    left_out: int
    hamlets: int
    alike: int

    @cached_property
    def plain(self) -> Effect:
        """The stratified effect without privacy."""
        group, sizes = self.units.assignment.group, self.units.assignment.sizes
        mean = np.bincount(group, self.units.outcomes) / sizes.ravel()
        square = np.bincount(group, (self.units.outcomes - mean[group]) ** 2)
        s2 = square / np.maximum(sizes.ravel() - 1, 1)
        shape = sizes.shape
        [found] = effects_of(self.units.assignment, mean.reshape(shape), s2.reshape(shape))
        return found


@dataclass(frozen=True, eq=False)
class Releases:
    """Simulated releases of one mechanism at one loss.

    Attributes:
        households: What was released.
        mechanism: Its name in tables.
        epsilon: The loss of one outcome.
        value: Estimates, one each release.
        error: Their standard errors.
        low: Lower ends of the intervals.
        high: Upper ends.
        shuffled: The same after shuffling arms within villages: the effect is 0.
    """

    households: Households
    mechanism: str
    epsilon: float
    value: Floats = field(repr=False)
    error: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    shuffled: Releases | None = field(default=None, repr=False)

    @property
    def rmse(self) -> float:
        """What privacy alone does: from the estimate without it, in shares of households."""
        return float(np.sqrt(((self.value - self.households.plain.value) ** 2).mean()))

    def covers(self, truth: float) -> float:
        """How often the interval holds a number."""
        return float(((self.low <= truth) & (truth <= self.high)).mean())

    @property
    def told(self) -> float:
        """How often the effect is distinguished from 0."""
        return 1 - self.covers(0.0)

    @property
    def valid(self) -> float:
        """How often the interval holds 0 after shuffling, when 0 is true."""
        return float("nan") if self.shuffled is None else self.shuffled.covers(0.0)


def load() -> tuple[Households, Households]:
    """The experiment with the real effect and the one with none; villages are clusters."""
    if find_spec("causaldata") is None:
        raise MissingPartError(
            "causaldata is not installed",
            "it has the data of the experiment",
            'run pip install "shoal[trials]"',
        )
    frame = import_module("causaldata.social_insure").load_pandas().data
    real, null = (
        _households(name, *(frame[each].to_numpy() for each in ("takeup_survey", name, *_PLACES)))
        for name in (REAL, NULL)
    )
    return real, null


def _households(
    name: str,
    outcome: NDArray[np.int64],
    treatment: NDArray[np.int64],
    village: NDArray[np.object_],
    hamlet: NDArray[np.object_],
) -> Households:
    units = take_in(
        outcome, treatment, village.tolist(), space=SPACE, unit=None, control=0, missing="refuse",
        single_arm="drop", outcome_name="takeup_survey",
    )  # fmt: skip
    code = np.unique(hamlet.astype(str), return_inverse=True)[1]
    share = np.bincount(code, treatment) / np.bincount(code)
    alike = int(((share == 0) | (share == 1)).sum())
    return Households(name, units, int(units.about["clusters_left_out"]), len(share), alike)


def mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """The five at one loss. The two with histograms get a floor, or they would be uniform too."""
    return {
        lines.UNIFORM: UniformPrior(epsilon),
        lines.FREE: ClusterFree(epsilon, floor=FLOOR),
        lines.CLUSTER: ClusterDP(epsilon, floor=FLOOR),
        lines.DIFFERENCES: NoisyHorvitzThompson(epsilon),
        lines.HISTOGRAMS: NoisyHistogram(epsilon),
    }


@dataclass(frozen=True, eq=False)
class Task:
    """Releases of all mechanisms at one loss.

    Attributes:
        households: What is released.
        epsilon: The loss of one outcome.
        repetitions: Releases of each mechanism, and as many after shuffling.
        seed: The first of as many.
    """

    households: Households
    epsilon: float
    repetitions: int
    seed: int


def carry(task: Task) -> list[Releases]:
    """The real mechanisms and standard errors, unit by unit, with simulated noise."""
    return [_releases(task, name, made) for name, made in mechanisms(task.epsilon).items()]


def _releases(task: Task, name: str, mechanism: Mechanism) -> Releases:
    given = task.households.units
    prepared = mechanism.prepare(given.assignment, SPACE)
    found: list[list[tuple[float, float, float, float]]] = [[], []]
    for at, shuffled in product(range(task.repetitions), (False, True)):
        seed = task.seed + at
        units = _shuffle(given, seed) if shuffled else given
        [effect] = prepared.draw(units, Simulated(seed)).effects(CONFIDENCE)
        here = effect.finite_population
        found[shuffled].append((effect.value, here.standard_error, *here.interval))
    own, other = (
        Releases(task.households, name, task.epsilon, *np.array(each).T) for each in found
    )
    return replace(own, shuffled=other)


def _shuffle(units: Units, seed: int) -> Units:
    """Outcomes change places within villages: as if arms were given anew, without any effect."""
    random = np.random.default_rng([_SHUFFLE, seed])
    village = units.assignment.group // units.assignment.sizes.shape[1]
    order = np.lexsort((random.random(len(village)), village))
    return replace(units, outcomes=units.outcomes[order])
