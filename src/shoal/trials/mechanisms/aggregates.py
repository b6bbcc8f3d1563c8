"""Mechanisms that release noisy numbers of clusters, not outcomes of units."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from shoal import checks, documents
from shoal.checks import amount
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Noise
from shoal.trials import histogram, horvitz_thompson
from shoal.trials.aggregate_release import Aggregate, AggregateRelease, draw_aggregate
from shoal.trials.charge import charge_of
from shoal.trials.mechanisms.base import Mechanism
from shoal.trials.request import Units

# What a manifest holds of it.
_LONGEST_SHARE = 90


@dataclass(frozen=True, eq=False)
class _Prepared:
    """An aggregate mechanism with its whole numbers."""

    name: str
    space: Space
    aggregate: Aggregate
    asked: Mapping[str, str]
    reason: str

    @property
    def epsilon(self) -> Fraction:
        """Exact loss of one outcome."""
        return self.aggregate.exact_epsilon

    @property
    def delta(self) -> Fraction:
        """Nothing may go wrong."""
        return Fraction(0)

    def describe(self) -> documents.Document:
        """Name and whole numbers, as a JSON object."""
        return {
            "name": self.name,
            "asked": dict(self.asked),
            "reason": self.reason,
            "aggregate": self.aggregate.to_document(),
        }

    def draw(self, units: Units, noise: Noise) -> AggregateRelease:
        """Noisy numbers."""
        return draw_aggregate(units, self.space, self.aggregate, noise)


@dataclass(frozen=True)
class NoisyHorvitzThompson(Mechanism):
    """The difference of means of every cluster, with Laplace noise; nothing about single units.

    Noise has the scale (max - min)/(min(n_0, n_1) epsilon) (erratum 14). A part of epsilon buys
    the sampling variance, without which no standard error could be given.

    Source: docs/theory/trials.md#aggregates.

    Attributes:
        epsilon: The loss of one outcome in all, without that of the clusters.
        spread_share: Part of epsilon for the sampling variance; chosen unless given, 0 for none.

    Raises:
        InputError: An epsilon or a share that cannot be used.

    Guarantees: G-LOSS, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import NoisyHorvitzThompson, Space
        >>> arm = np.arange(4000) % 2
        >>> bought = np.random.default_rng(1).random(4000) < 0.2 + 0.1 * arm
        >>> found = NoisyHorvitzThompson(epsilon=1).privatize(bought, arm, space=Space.binary())
        >>> abs(found.estimate().value - 0.1) < 0.1
        True
    """

    epsilon: Amount
    spread_share: Fraction | float | None = None

    name: ClassVar[str] = "noisy_horvitz_thompson"

    def __post_init__(self) -> None:
        charge_of(self.epsilon)
        if self.spread_share is None:
            return
        share = amount(self.spread_share, "spread_share")
        if share >= 1 or len(str(share)) > _LONGEST_SHARE:
            raise InputError(
                f"a spread_share of {checks.shown(self.spread_share)}",
                f"0 or more and below 1, written in at most {_LONGEST_SHARE} characters",
                "leave it out",
            )

    def prepare(self, assignment: Assignment, space: Space) -> _Prepared:
        """Fix all public numbers of the mechanism; no outcome is read."""
        epsilon = charge_of(self.epsilon).epsilon
        share = None if self.spread_share is None else amount(self.spread_share, "spread_share")
        made = horvitz_thompson.NoisyHorvitzThompson.plan(
            assignment.sizes, space.levels, epsilon, share
        )
        asked = {"epsilon": str(epsilon), "delta": "0"}
        asked["spread_share"] = "chosen" if share is None else str(share)
        reason = "Differences of means of clusters, with noise."
        return _Prepared(self.name, space, made, asked, reason)


@dataclass(frozen=True)
class NoisyHistogram(Mechanism):
    """How many units of every group are on each level, with Laplace noise.

    A label moves two bins, so noise on shares has the scale 2/(n epsilon) (erratum 15).

    Source: docs/theory/trials.md#aggregates.

    Attributes:
        epsilon: The loss of one outcome in all, without that of the clusters.

    Guarantees: G-LOSS, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import NoisyHistogram, Space
        >>> arm = np.arange(4000) % 2
        >>> bought = np.random.default_rng(1).random(4000) < 0.2 + 0.1 * arm
        >>> found = NoisyHistogram(epsilon=1).privatize(bought, arm, space=Space.binary())
        >>> abs(found.estimate().value - 0.1) < 0.1
        True
    """

    epsilon: Amount

    name: ClassVar[str] = "noisy_histogram"

    def __post_init__(self) -> None:
        charge_of(self.epsilon)

    def prepare(self, assignment: Assignment, space: Space) -> _Prepared:
        """Fix all public numbers of the mechanism; no outcome is read."""
        epsilon = charge_of(self.epsilon).epsilon
        made = histogram.NoisyHistogram.plan(assignment.sizes, space.levels, epsilon)
        asked = {"epsilon": str(epsilon), "delta": "0"}
        return _Prepared(self.name, space, made, asked, "Histograms of groups, with noise.")
