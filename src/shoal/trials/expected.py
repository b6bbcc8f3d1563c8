"""Derives variances from public expectations about the distribution of outcomes."""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.errors import InputError
from shoal.trials.domain import Domain

# Five kinds of clusters match the first nine moments of normal cluster means.
_KINDS = 5
# Levels of a binary outcome.
_TWO = 2
# The largest mean or standard deviation.
_LARGEST = 1e50
# If nothing is expected, a family of expectations stands for that. It has all combinations of:
# standard deviations, as parts of the domain's width,
_SPREADS = (0.05, 0.15, 0.3)
# means, as parts of the way from the lowest level to the highest,
_PLACES = (0.25, 0.5, 0.75)
# and shares of the variance that are between clusters.
_BETWEEN = (0.0, 0.5, 0.9)
# For two levels, it has all combinations of rates of the upper level
_RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
# and shares of the variance that are between clusters.
_RATES_BETWEEN = (0.0, 0.1, 0.5)


@dataclass(frozen=True)
class Expected:
    """A distribution of outcomes that somebody expects, from public knowledge alone.

    It must not be fitted to the trial's own outcomes. It decides which parameters are chosen and
    which standard errors are predicted; it changes neither what is estimated nor the privacy loss.
    A wrong expectation costs precision only.

    Source: docs/theory/experiments.md#choice-of-parameters.

    Attributes:
        mean: Mean of all outcomes, in the outcome's unit; without an sd it is the rate of the upper
            of two levels.
        sd: Standard deviation of all outcomes, in their unit; they are normal and moved to the
            nearest level.
        between: Share of the variance that is between clusters, 0 to 1.

    Raises:
        InputError: A number outside its range.

    Example:
        >>> from shoal import trials
        >>> rate = trials.Expected(0.2, between=0.25)
        >>> found = trials.forecast(1000, trials.Domain.binary(), epsilon=1, expected=rate)
        >>> round(found["no_privacy"].standard_error[1], 4) == round((0.12 * 4 / 1000) ** 0.5, 4)
        True
    """

    mean: float
    sd: float | None = None
    between: float = 0.0

    def __post_init__(self) -> None:
        ends: dict[str, Any] = {"least": -_LARGEST, "most": _LARGEST}
        rate = "a mean without a standard deviation (sd, --sd), which is a rate,"
        if self.sd is None:
            mean = checks.number(self.mean, rate, above=0, below=1, example=0.2)
        else:
            mean = checks.number(self.mean, "mean", **ends)
            object.__setattr__(self, "sd", checks.number(self.sd, "sd", above=0, most=_LARGEST))
        object.__setattr__(self, "mean", mean)
        between = checks.number(self.between, "between", least=0, most=1)
        object.__setattr__(self, "between", between)


class Kinds(NamedTuple):
    """Kinds of clusters of one expectation; of several, all kinds of the first come first.

    `share` is the share of units that are in clusters of each kind, shape (kinds,), which sum to 1
    for each expectation. `levels` is the share of their outcomes on each level, shape (kinds, K).
    `first` is the first kind of each expectation.
    """

    share: Floats
    levels: Floats
    first: Ints

    def average(self, by_kind: Floats) -> Floats:
        """Returns the average over the kinds of each expectation."""
        return np.add.reduceat(self.share * by_kind, self.first)

    def outcome_variance(self, domain: Domain) -> Floats:
        """Returns the variance within clusters, for each expectation, in squared units."""
        # The middle is taken off the levels, so that squares far from 0 do not cancel.
        levels = domain.array - (domain.levels[0] + domain.width / 2)
        return self.average(self.levels @ levels**2 - (self.levels @ levels) ** 2)

    def added_variance(self, domain: Domain, kept: tuple[int, ...], responses: Floats) -> Floats:
        """Returns the exact variance that rounding and responses add to one outcome.

        `responses` are variances of a response under each kept level.
        """
        moved = domain.moved_to(kept)
        levels = domain.array - (domain.levels[0] + domain.width / 2)
        rounding = moved @ levels[list(kept)] ** 2 - (moved @ levels[list(kept)]) ** 2
        return self.average(self.levels @ (moved @ responses + rounding))


def kinds_of(expected: Expected | None, domain: Domain) -> Kinds:
    """Returns kinds of clusters under an expectation, or under a family of them if it is None."""
    if expected is None and domain.size == _TWO:
        rate, between = np.array(list(itertools.product(_RATES, _RATES_BETWEEN))).T
        return _binary(rate, between)
    levels = domain.array
    low = domain.levels[0]
    width = domain.width
    if expected is None:
        spread, place, between = np.array(list(itertools.product(_SPREADS, _PLACES, _BETWEEN))).T
        return _normal(levels, low + place * width, spread * width, between)
    mean = np.array([expected.mean])
    between = np.array([expected.between])
    if expected.sd is None:
        if domain.size != _TWO:
            raise InputError(
                f"an expectation for {domain.size} levels needs an sd", "give an sd as well"
            )
        return _binary(mean, between)
    if not low <= expected.mean <= domain.levels[-1]:
        raise InputError(
            f"the expected mean {expected.mean:g} is outside of the domain",
            f"give a mean from {low:g} to {domain.levels[-1]:g}, or another domain",
        )
    return _normal(levels, mean, np.array([expected.sd]), between)


def _normal(levels: Floats, mean: Floats, sd: Floats, between: Floats) -> Kinds:
    """Returns clusters with normal outcomes and means at the points of a Gauss-Hermite rule."""
    from scipy.special import ndtr

    rules = {}
    for points in (1, _KINDS):
        places, weight = np.polynomial.hermite_e.hermegauss(points)
        rules[points] = places, weight / weight.sum()
    # Clusters that do not differ are of one kind.
    kinds = np.where(between > 0, _KINDS, 1)
    place, share = np.hstack([rules[points] for points in kinds.tolist()])
    # The expectation that each kind belongs to.
    expectation = np.repeat(np.arange(len(mean)), kinds)
    middle = mean[expectation] + np.sqrt(between[expectation]) * sd[expectation] * place
    # Clusters in which all outcomes are equal are treated as very narrow ones.
    within = np.maximum(np.sqrt(1 - between) * sd, (levels[-1] - levels[0]) * 1e-9)[expectation]
    # An outcome goes to its nearest level.
    edges = levels[:-1] + np.diff(levels) / 2
    below = ndtr((edges - middle[:, None]) / within[:, None])
    on_level = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return Kinds(share, on_level / on_level.sum(axis=1, keepdims=True), np.cumsum(kinds) - kinds)


def _binary(rate: Floats, between: Floats) -> Kinds:
    """Returns two kinds of clusters, whose rates are the root of `between` apart.

    A share 1 - rate of clusters has the lower rate.
    """
    distance = np.sqrt(between)
    rates = np.column_stack([rate * (1 - distance), rate + (1 - rate) * distance]).ravel()
    share = np.column_stack([1 - rate, rate]).ravel()
    return Kinds(share, np.column_stack([1 - rates, rates]), 2 * np.arange(len(rate)))


def effect_weights(sizes: Ints) -> Floats:
    """Returns the weights of units' variances in those of the mean effect and of one by cluster.

    The first is (n_c/n)^2/n_{c,a}, the second 1/n_{c,a} divided by the number of clusters. Weights
    of arms other than the control are divided by the number of these arms, as the control is part
    of all effects. The shape is (2, clusters, arms).
    """
    clusters = sizes.sum(axis=1, keepdims=True)
    arms = sizes.shape[1]
    part = np.append(1.0, np.full(arms - 1, 1 / (arms - 1)))
    of_mean = (clusters / clusters.sum()) ** 2 / sizes * part
    return np.stack([of_mean, part / sizes / len(sizes)])
