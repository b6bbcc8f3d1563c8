"""What is expected of the outcomes before anyone looks: public knowledge that sets parameters."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import checks
from shoal.data.outcome_space import check_space
from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.data.outcome_space import Space

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
        if self.shape == "binary":
            return self._two(space)
        levels = space.array
        if not levels[0] <= self.mean <= levels[-1]:
            raise InputError(
                f"an expected mean of {self.mean:g}",
                f"a number from {levels[0]:g} to {levels[-1]:g}, as the space has it",
                "give another mean or another space",
            )
        from scipy.special import ndtr

        places, share = np.polynomial.hermite_e.hermegauss(_KINDS if self.between > 0 else 1)
        middle = self.mean + math.sqrt(self.between) * self.sd * places
        # Clusters of a single value each are the limit of narrow ones.
        within = max(math.sqrt(1 - self.between) * self.sd, space.width * 1e-9)
        edges = levels[:-1] + np.diff(levels) / 2
        below = ndtr((edges - middle[:, None]) / within)
        ends = np.ones((len(middle), 1))
        shares = np.diff(np.hstack([0 * ends, below, ends]), axis=1)
        return Kinds(share / share.sum(), shares / shares.sum(axis=1, keepdims=True))

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

    def _two(self, space: Space) -> Kinds:
        if space.size != _BINARY_LEVELS:
            raise InputError(
                f"an expected rate for {space.size} levels",
                "two levels",
                "give Expected(mean=..., sd=...) instead",
            )
        apart = math.sqrt(self.between)
        rates = np.array([self.mean * (1 - apart), self.mean + (1 - self.mean) * apart])
        share = np.array([1 - self.mean, self.mean])
        return Kinds(share, np.column_stack([1 - rates, rates]))


@dataclass(frozen=True, eq=False)
class Kinds:
    """Expected clusters, in a few kinds.

    Attributes:
        share: Share of the units that are in clusters of each kind, shape (kinds,).
        levels: Share of their outcomes on each level of the space, shape (kinds, K).
    """

    share: NDArray[np.float64]
    levels: NDArray[np.float64]


def family(space: Space) -> tuple[Expected, ...]:
    """What stands for knowing nothing: narrow to wide, low to high, mixed to separate clusters.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> len(family(Space.counts(0, 10))), len(family(Space.binary()))
        (27, 15)
    """
    if space.size == _BINARY_LEVELS:
        return tuple(
            Expected.binary(rate, between)
            for rate, between in itertools.product(_RATES, _RATES_BETWEEN)
        )
    low, width = space.levels[0], space.width
    return tuple(
        Expected(low + place * width, spread * width, between)
        for spread, place, between in itertools.product(_SPREADS, _PLACES, _BETWEEN)
    )


def check_expected(expected: object) -> Expected | None:
    """What is expected, or None.

    Raises:
        InputError: Something else.

    Example:
        >>> check_expected(None)
    """
    todo = "give for example trials.Expected(mean=50, sd=10), or leave it out"
    return checks.optional(expected, checks.instance, Expected, "expected", todo)
