"""Effects, standard errors and intervals, again, and whether a manifest states the same.

Nothing is imported from other packages, as in `verify`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.strict import real
from shoal.verification.trials.aggregates import Aggregate, Contrast, joined
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.responses import Responses
from shoal.verification.trials.spread import between, normal_laplace, student, summed
from shoal.verification.trials.tables import Tables

EFFECT = {"arm", "control", "value", "finite_population", "super_population"}
POPULATIONS = ("finite_population", "super_population")
INFERENCE = {"standard_error", "interval"}
# Rounding leaves a variance of this part of mean squares where there is none.
_NOTHING = 1e-26
_CLOSE, _CLOSE_QUANTILE = 1e-9, 1e-6
# Rounding of sums whose parts may cancel.
_DIGITS = 1e-14
# It excuses no more than this part of the error of outcomes of so many units.
_EXCUSED = 1 / 16
# Nor more than this part of half an interval, but for the last places.
_LITTLE, _LAST = 1e-3, 1e-15


@dataclass(frozen=True)
class Known:
    """A standard error and half an interval; NaN if they are not known."""

    error: float
    half: float


NOTHING = Known(math.nan, math.nan)


@dataclass(frozen=True)
class Found:
    """An effect, for these units and for where they came from.

    Attributes:
        value: In the outcome's unit.
        known: For these units, and for the population of clusters (of units, with one cluster).
        rounding: Error that floating-point numbers may have made in the value.
        size: What the value is a difference of, at most: an error in its last place is none.
    """

    value: float
    known: tuple[Known, Known]
    rounding: float
    size: float

    def excused(self, known: Known) -> float:
        """By how much a value beside an interval may be off: by little of half of it."""
        off = self.rounding + _CLOSE * abs(self.value)
        if math.isnan(known.half):
            return off
        return min(off, max(_LITTLE * known.half, _LAST * self.size))


def of_responses(released: Responses | Tables) -> list[Found]:
    """Effects of every arm from means and variances of debiased outcomes."""
    facts = released.facts
    mean, s2 = released.moments()
    # Debiased outcomes may lie far outside of the levels.
    most, size = rounding_of(facts) * released.stretch, released.magnitude()
    found = []
    for arm in range(1, len(facts.arms)):
        # What other arms say is no part of an effect, nor what nobody said.
        own = float(size[:, [arm, 0]].max())
        value, known = _direct(facts, mean, s2, arm)
        found.append(Found(value, known, min(most, _DIGITS * own), own))
    return found


def rounding_of(facts: Facts) -> float:
    """Error of a mean that floating-point numbers may have made: means are above the lowest level.

    Outcomes of n units have an error of width/sqrt(n): rounding may be a small part of that at
    most.
    """
    return min(_DIGITS * facts.width, _EXCUSED * facts.width / math.sqrt(facts.units))


def of_aggregates(released: Aggregate) -> list[Found]:
    """Effects of every arm from noisy numbers of clusters."""
    return [_noisy(released.facts, each) for each in released.contrasts()]


def _direct(
    facts: Facts, mean: NDArray[np.float64], s2: NDArray[np.float64], arm: int
) -> tuple[float, tuple[Known, Known]]:
    pair, weight = [arm, 0], facts.weight
    sizes, difference = facts.sizes[:, pair], mean[:, arm] - mean[:, 0]
    value, scale = float(weight @ difference), (1 / sizes).sum(axis=1)
    square = (mean**2 + np.nan_to_num(s2))[:, pair].sum(axis=1)
    nothing = _NOTHING * float(weight**2 @ square)
    thin = _thin(sizes, weight)
    here = there = NOTHING
    if len(weight) > 1 or not thin.any():
        part = (weight[:, None] ** 2 * s2[:, pair] / sizes)[~thin].ravel()
        degrees = (sizes[~thin] - 1).ravel().astype(np.float64)
        if thin.any():
            more = between(weight[thin], difference[thin], scale[thin])
            part, degrees = np.append(part, more[0]), np.append(degrees, more[1])
        here = there = _known(*summed(part, degrees), facts.confidence, nothing)
    if len(weight) > 1:
        there = _known(*between(weight, difference, scale), facts.confidence, nothing)
    return value, (here, there)


def _thin(sizes: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Clusters with one unit in either arm; a lone one takes the nearest of the others along."""
    thin: NDArray[np.bool_] = np.asarray((sizes == 1).any(axis=1))
    if len(thin) > 1 and int(thin.sum()) == 1:
        # Ties are broken by the floating-point weights, as they are when it is released.
        far = np.where(thin, math.inf, np.abs(weight - weight[thin]))
        thin[int(np.argmin(far))] = True
    return thin


def _known(variance: float, degrees: float, confidence: float, nothing: float) -> Known:
    if variance <= nothing:
        return NOTHING
    error = math.sqrt(variance)
    return Known(error, student(degrees, confidence) * error)


def _noisy(facts: Facts, told: Contrast) -> Found:
    weight, sizes = facts.weight, facts.sizes[:, [told.arm, 0]]
    pool, scale = joined(facts.sizes), (1 / sizes).sum(axis=1)
    value = float(weight @ told.difference)
    sampling, loose = _sampling(facts, told, ~pool)
    noise = float((weight**2 * told.noise)[~pool].sum())
    fourth = float((weight**4 * told.fourth)[~pool].sum())
    pooled, degrees = 0.0, math.inf
    if pool.any():
        pooled, degrees = between(weight[pool], told.difference[pool], scale[pool])
    total = sampling + noise + pooled
    loose += 2 * pooled**2 / degrees
    free = max(1.0, 2 * total**2 / loose) if loose > 0 else math.inf
    terms = 3 * noise**2 / fourth if fourth > 0 else 1.0
    half = normal_laplace(facts.confidence, sampling + pooled, noise, terms)
    half *= student(free, facts.confidence) / student(math.inf, facts.confidence)
    here = there = Known(math.sqrt(total), half)
    if len(weight) > 1:
        scale = 1 / facts.sizes.sum(axis=1)
        there = _known(*between(weight, told.difference, scale), facts.confidence, 0.0)
    # Differences are of levels from the first one, however far from 0 that lies.
    size = max(facts.width, float(np.abs(told.difference).max()))
    return Found(value, (here, there), _DIGITS * size, size)


def _sampling(facts: Facts, told: Contrast, alone: NDArray[np.bool_]) -> tuple[float, float]:
    """Sampling variance of clusters that are not pooled, and the variance of its estimate.

    What is told is held between 0 and the most that levels allow, n/(n - 1) width^2/4 for a
    cluster's outcomes. That stands where nothing is told.
    """
    sizes, units = facts.sizes[:, [told.arm, 0]][alone], facts.sizes.sum(axis=1)[alone]
    share = facts.weight[alone][:, None] ** 2 / sizes
    most = share * (units / (units - 1))[:, None] * facts.width**2 / 4
    enough = sizes > 1
    if math.isnan(told.sampling) or not enough.any():
        return float(most.sum()), 0.0
    known = min(max(told.sampling, 0.0), float(most[enough].sum()))
    part = share[enough]
    degrees = part.sum() ** 2 / (part**2 / (sizes[enough] - 1)).sum()
    found = known + float(most[~enough].sum())
    return found, told.loose + 2 * found**2 / float(degrees)


def values_hold(facts: Facts, found: list[Found], stated: list[Document]) -> tuple[bool, str]:
    """Whether each arm but the control has its effect, in order."""
    named = [(each["arm"], each["control"]) for each in stated]
    own = [(arm, facts.arms[0]) for arm in facts.arms[1:]]
    # True == 1, but they are not the same key.
    same = [tuple(map(repr, pair)) for pair in named] == [tuple(map(repr, pair)) for pair in own]
    close = all(
        abs(real(claim["value"]) - each.value) <= min(map(each.excused, each.known))
        for each, claim in zip(found, stated, strict=same)
    )
    return same and close, ", ".join(f"{each.value:.6g}" for each in found)


def errors_hold(_: Facts, found: list[Found], stated: list[Document]) -> tuple[bool, str]:
    """Whether both standard errors of each effect are right, and null where not known."""

    def right(each: Found, known: Known, told: Document) -> bool:
        error = told["standard_error"]
        if math.isnan(known.error) or error is None:
            return math.isnan(known.error) and error is None
        return abs(real(error) - known.error) <= each.excused(known) + _CLOSE * known.error

    shown = ", ".join(_pair([known.error for known in each.known]) for each in found)
    return _all(found, stated, right), shown


def intervals_hold(facts: Facts, found: list[Found], stated: list[Document]) -> tuple[bool, str]:
    """Whether both intervals of each effect are right, and null where not known."""

    def right(each: Found, known: Known, told: Document) -> bool:
        low, high = told["interval"]
        if math.isnan(known.half) or low is None or high is None:
            return math.isnan(known.half) and low is None and high is None
        capacity = each.excused(known) + _CLOSE_QUANTILE * known.half
        off = max(
            abs(real(low) - (each.value - known.half)),
            abs(real(high) - (each.value + known.half)),
        )
        return off <= capacity

    return _all(found, stated, right), f"at confidence {facts.confidence:.6g}"


def _all(
    found: list[Found], stated: list[Document], right: Callable[[Found, Known, Document], bool]
) -> bool:
    return len(found) == len(stated) and all(
        right(each, known, claim[name])
        for each, claim in zip(found, stated, strict=True)
        for name, known in zip(POPULATIONS, each.known, strict=True)
    )


def _pair(numbers: list[float]) -> str:
    return " and ".join("null" if math.isnan(each) else f"{each:.6g}" for each in numbers)
