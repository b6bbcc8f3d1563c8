"""What is expected of the outcomes before anyone looks: public knowledge that sets parameters."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.data.outcome_space import Space, check_space
from shoal.errors import InputError

Floats = NDArray[np.float64]
SHAPES = ("normal", "binary")
# Five kinds of clusters match the first nine moments of normal cluster means.
_KINDS = 5
_BINARY_LEVELS = 2
_LARGEST = 1e50
# Spreads and places, as parts of the space's width, and shares between clusters, of a family that
# stands for not knowing anything.
_SPREADS, _PLACES, _BETWEEN = (0.05, 0.15, 0.3), (0.25, 0.5, 0.75), (0.0, 0.5, 0.9)
_RATES, _RATES_BETWEEN = (0.05, 0.2, 0.5, 0.8, 0.95), (0.0, 0.1, 0.5)


@dataclass(frozen=True)
class Expected:
    """A distribution of outcomes that somebody expects, from public knowledge alone.

    It must not be fitted to the trial's own outcomes. It decides which parameters are chosen and
    which standard errors are predicted; it changes neither what is estimated nor the privacy loss.
    A wrong expectation costs precision only.

    Source: docs/theory/trials.md#choice-of-parameters.

    Attributes:
        mean: Mean of all outcomes, in the outcome's unit.
        sd: Standard deviation of all outcomes, in the outcome's unit.
        between: Share of the variance that is between clusters, 0 to 1.
        shape: `normal` (moved to the nearest level), or `binary`.

    Raises:
        InputError: A number outside its range, or another shape.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> kinds = Expected.binary(0.2, between=0.25).kinds(Space.binary())
        >>> kinds.share.tolist(), kinds.levels[:, 1].round(3).tolist()
        ([0.8, 0.2], [0.1, 0.6])
    """

    mean: float
    sd: float
    between: float = 0.0
    shape: str = "normal"

    def __post_init__(self) -> None:
        checks.choice(self.shape, SHAPES, "shape")
        for name in ("mean", "sd", "between"):
            found = checks.number(getattr(self, name), name, least=-_LARGEST, most=_LARGEST)
            object.__setattr__(self, name, found)
        rate = self.shape != "binary" or 0 < self.mean < 1
        if not (self.sd > 0 and 0 <= self.between <= 1 and rate):
            raise InputError(
                f"an expected mean of {self.mean:g}, sd {self.sd:g} and between {self.between:g}",
                "an sd above 0, a share from 0 to 1, and a rate between 0 and 1",
                "give for example Expected(mean=50, sd=10, between=0.2)",
            )

    @classmethod
    def binary(cls, rate: float, between: float = 0.0) -> Expected:
        """An expectation of two levels: the upper one with a probability, the rate.

        Args:
            rate: Probability of the upper level, above 0 and below 1.
            between: Share of the variance rate (1 - rate) that is between clusters.

        Returns:
            The expectation.

        Raises:
            InputError: A rate or part outside its range.
        """
        share = checks.number(
            rate, "a mean without a standard deviation (sd, --sd), which is a rate,", above=0,
            below=1, example=0.2,
        )  # fmt: skip
        return cls(share, math.sqrt(share * (1 - share)), between, "binary")

    def kinds(self, space: Space) -> Kinds:
        """Expected clusters, in a few kinds.

        Normal: means of clusters at the points of Gauss-Hermite quadrature, normal outcomes within,
        each on the nearest level, the tails on the outer ones. Binary: a share 1 - rate of clusters
        at rate (1 - sqrt(b)), the others sqrt(b) above, which has variance b rate (1 - rate).

        Args:
            space: Levels of the outcome.

        Returns:
            Kinds of clusters, with how the outcomes of each lie on the levels.

        Raises:
            InputError: A mean outside the space, or a rate for more than two levels.
        """
        check_space(space)
        mean, sd, between = np.array([[self.mean], [self.sd], [self.between]])
        levels = space.levels
        if self.shape == "binary":
            if len(levels) != _BINARY_LEVELS:
                raise InputError(
                    f"an expected rate for {len(levels)} levels",
                    "two levels",
                    "give Expected(mean=..., sd=...) instead",
                )
            return _binary(mean, between)
        if not levels[0] <= self.mean <= levels[-1]:
            raise InputError(
                f"an expected mean of {self.mean:g}",
                f"a number from {levels[0]:g} to {levels[-1]:g}, as the space has it",
                "give another mean or another space",
            )
        return _normal(space.array, mean, sd, between)

    def to_document(self) -> dict[str, Any]:
        """The expectation as a JSON object.

        Returns:
            Names and numbers.
        """
        return {
            "mean": self.mean,
            "sd": self.sd,
            "between": self.between,
            "shape": self.shape,
        }


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of clusters under one expectation, or under several, one after another.

    Attributes:
        share: Share of the units that are in clusters of each kind, shape (kinds,); 1 in all for an
            expectation.
        levels: Share of their outcomes on each level of the space, shape (kinds, K).
        first: The first kind of each expectation, shape (expectations,).
    """

    share: Floats
    levels: Floats
    first: NDArray[np.int64]


def kinds_of(expected: Expected | None, space: Space) -> Kinds:
    """The clusters under what is expected, or under a family of expectations if nothing is.

    Raises:
        InputError: As `Expected.kinds`.
    """
    return family(space) if expected is None else expected.kinds(space)


def family(space: Space) -> Kinds:
    """What stands for knowing nothing: narrow to wide, low to high, mixed to separate clusters.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> len(family(Space.counts(0, 10)).first), len(family(Space.binary()).first)
        (27, 15)
    """
    levels = space.array
    if len(levels) == _BINARY_LEVELS:
        rate, between = np.array(list(itertools.product(_RATES, _RATES_BETWEEN))).T
        return _binary(rate, between)
    low, width = levels[0], levels[-1] - levels[0]
    members = np.array(list(itertools.product(_SPREADS, _PLACES, _BETWEEN)))
    spread, place, between = members.T
    return _normal(levels, low + place * width, spread * width, between)


def _normal(levels: Floats, mean: Floats, sd: Floats, between: Floats) -> Kinds:
    """Of normal expectations: see `Expected.kinds`."""
    from scipy.special import ndtr

    rules = {}
    for points in (1, _KINDS):
        places, weight = np.polynomial.hermite_e.hermegauss(points)
        rules[points] = places, weight / weight.sum()
    number = np.where(between > 0, _KINDS, 1)
    member = np.repeat(np.arange(len(mean)), number)
    place, share = np.hstack([rules[points] for points in number.tolist()])
    middle = mean[member] + np.sqrt(between[member]) * sd[member] * place
    # Clusters of a single value each are the limit of narrow ones.
    within = np.maximum(np.sqrt(1 - between) * sd, (levels[-1] - levels[0]) * 1e-9)[member]
    edges = levels[:-1] + np.diff(levels) / 2
    below = ndtr((edges - middle[:, None]) / within[:, None])
    ends = np.ones((len(middle), 1))
    shares = np.diff(np.hstack([0 * ends, below, ends]), axis=1)
    first = np.cumsum(number) - number
    return Kinds(share, shares / shares.sum(axis=1, keepdims=True), first)


def _binary(rate: Floats, between: Floats) -> Kinds:
    """Of expected rates: see `Expected.kinds`."""
    apart = np.sqrt(between)
    rates = np.column_stack([rate * (1 - apart), rate + (1 - rate) * apart]).ravel()
    share = np.column_stack([1 - rate, rate]).ravel()
    return Kinds(share, np.column_stack([1 - rates, rates]), 2 * np.arange(len(rate)))


def check_expected(expected: object) -> Expected | None:
    """What is expected, or None.

    Raises:
        InputError: Something else.

    Example:
        >>> check_expected(None)
    """
    todo = "give for example trials.Expected(mean=50, sd=10), or leave it out"
    return checks.optional(expected, checks.instance, Expected, "expected", todo)
