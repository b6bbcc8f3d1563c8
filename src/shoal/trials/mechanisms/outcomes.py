"""Mechanisms that release private outcomes of units: ClusterDP, ClusterFree, UniformPrior."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal import checks, documents
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.budget import Amount
from shoal.privacy.noise import Noise
from shoal.trials.charge import charge_of
from shoal.trials.choose import Choice, check_levels, choose
from shoal.trials.expected import Expected, check_expected
from shoal.trials.mechanisms.base import Mechanism, Prepared
from shoal.trials.request import Units
from shoal.trials.unit_release import UnitRelease, draw_units


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A unit-level mechanism with its whole numbers."""

    name: str
    space: Space
    pooled: bool
    choice: Choice
    delta: Fraction
    asked: Mapping[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """Exact loss of one outcome."""
        return self.choice.parameters.epsilon(self.delta)

    def describe(self) -> documents.Document:
        """Name and whole numbers, as a JSON object."""
        return {
            "name": self.name,
            "pooled": self.pooled,
            "asked": dict(self.asked),
            "parameters": self.choice.parameters.to_document(),
            "reason": self.choice.reason,
        }

    def draw(self, units: Units, noise: Noise) -> UnitRelease:
        """Responses and priors."""
        parameters = self.choice.parameters
        return draw_units(units, self.space, parameters, noise, pooled=self.pooled)


@dataclass(frozen=True)
class _UnitMechanism(Mechanism):
    """What the three mechanisms share.

    Attributes:
        epsilon: The loss of one outcome in all, without that of the clusters.
        delta: The delta of (epsilon, delta)-DP.
    """

    epsilon: Amount
    delta: Amount = 0

    name: ClassVar[str]
    pooled: ClassVar[bool]

    def __post_init__(self) -> None:
        charge_of(self.epsilon, self.delta)

    def choose(self, sizes: NDArray[np.int64], space: Space) -> Choice:
        """Choose the parameters for groups of public sizes; no outcome is read.

        Args:
            sizes: Units of each group, shape (clusters, arms), control first.
            space: Levels of the outcome.

        Returns:
            Whole numbers of the mechanism, with a sentence about why.
        """
        raise NotImplementedError

    def prepare(self, assignment: Assignment, space: Space) -> Prepared:
        """Fix all public numbers of the mechanism; no outcome is read."""
        charge = charge_of(self.epsilon, self.delta)
        choice = self.choose(assignment.sizes, space)
        asked = {"epsilon": str(charge.epsilon), "delta": str(charge.delta), **self.asked()}
        return _Prepared(self.name, space, self.pooled, choice, charge.delta, asked)

    def asked(self) -> dict[str, Any]:
        """The request besides epsilon and delta, as a JSON object.

        Returns:
            Names and values.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class _WithPrior(_UnitMechanism):
    """A prior made of a noisy histogram.

    Attributes:
        floor: gamma, the least share of a level in a prior; chosen unless given.
        histogram_scale: sigma, the noise of a count, in units of the trial; chosen unless given.
        levels: Levels in use: `auto` takes the number with the least variance, `all`, or a number.
        expected: What is publicly known about outcomes, for the choice.
        epsilon: The loss of one outcome in all, without that of the clusters.
        delta: The delta of (epsilon, delta)-DP.
    """

    floor: float | None = None
    histogram_scale: float | None = None
    levels: int | str = "auto"
    expected: Expected | None = None

    def __post_init__(self) -> None:
        floor = checks.optional(self.floor, checks.number, "floor", above=0, most=1, example=0.1)
        scale = checks.optional(
            self.histogram_scale, checks.number, "histogram_scale", above=0, infinite=True
        )
        object.__setattr__(self, "floor", floor)
        object.__setattr__(self, "histogram_scale", scale)
        object.__setattr__(self, "levels", check_levels(self.levels))
        check_expected(self.expected)

    def choose(self, sizes: NDArray[np.int64], space: Space) -> Choice:
        """Choose the parameters for groups of public sizes; no outcome is read."""
        total = charge_of(self.epsilon, self.delta)
        return choose(
            sizes,
            space,
            epsilon=total.epsilon,
            delta=total.delta,
            pooled=self.pooled,
            levels=self.levels,
            floor=self.floor,
            sigma=self.histogram_scale,
            expected=self.expected,
        )

    def asked(self) -> dict[str, Any]:
        """The request besides epsilon and delta, as a JSON object."""
        return {
            "levels": self.levels,
            "floor": None if self.floor is None else str(self.floor),
            "histogram_scale": None if self.histogram_scale is None else str(self.histogram_scale),
            "expected": None if self.expected is None else self.expected.to_document(),
        }


@dataclass(frozen=True)
class ClusterDP(_WithPrior):
    """Outcomes replaced, with a probability, by draws from a noisy histogram of cluster and arm.

    The probability is lambda. The histogram, with noise sigma on each count and no level below
    gamma, costs 2/sigma: a label moves two bins, not one as printed. A response costs ln(1 + (1 -
    lambda - delta)/(lambda gamma)). Where a uniform prior has less variance at the same loss, it is
    used, and the release says so.

    Source: docs/theory/trials.md#what-it-costs; paper 003, Algorithm 2; erratum 12.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np, shoal
        >>> from shoal.trials import ClusterDP, Space
        >>> rng = np.random.default_rng(1)
        >>> arm, cluster = rng.permuted(np.arange(8000) % 2), np.arange(8000) // 2000
        >>> bought = rng.random(8000) < 0.2 + 0.1 * arm
        >>> found = ClusterDP(epsilon=2).privatize(bought, arm, cluster, space=Space.binary())
        >>> abs(found.estimate().value - 0.1) < 0.15, found.epsilon <= 2
        (True, True)
    """

    name: ClassVar[str] = "cluster_dp"
    pooled: ClassVar[bool] = False


@dataclass(frozen=True)
class ClusterFree(_WithPrior):
    """Outcomes replaced, with a probability, by draws from a noisy histogram of the arm.

    One histogram serves all clusters; the loss is that of `ClusterDP`. Where a uniform prior has
    less variance at the same loss, it is used, and the release says so.

    Source: docs/theory/trials.md#what-it-costs; paper 003, section 4; erratum 12.

    Guarantees: G-LOSS, G-UNBIASED, G-BOUND, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import ClusterFree, Space
        >>> arm = np.arange(8000) % 2
        >>> bought = np.random.default_rng(1).random(8000) < 0.2 + 0.1 * arm
        >>> found = ClusterFree(epsilon=2).privatize(bought, arm, space=Space.binary())
        >>> abs(found.estimate().value - 0.1) < 0.15
        True
    """

    name: ClassVar[str] = "cluster_free"
    pooled: ClassVar[bool] = True


@dataclass(frozen=True)
class UniformPrior(_UnitMechanism):
    """Outcomes replaced, with a probability, by uniform draws: local privacy without a curator.

    An outcome is kept with probability 1 - lambda, else replaced by one of K levels: epsilon is
    ln(1 + (1 - lambda - delta) K/lambda).

    Source: docs/theory/trials.md#the-uniform-prior.

    Attributes:
        levels: Levels in use: `auto` takes the number with the least variance, `all`, or a number.
        expected: What is publicly known about outcomes, for the choice of levels.
        epsilon: The loss of one outcome.
        delta: The delta of (epsilon, delta)-DP.

    Guarantees: G-LOSS, G-UNBIASED, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Space, UniformPrior
        >>> arm = np.arange(8000) % 2
        >>> bought = np.random.default_rng(1).random(8000) < 0.2 + 0.1 * arm
        >>> found = UniformPrior(epsilon=2).privatize(bought, arm, space=Space.binary())
        >>> abs(found.estimate().value - 0.1) < 0.15
        True
    """

    levels: int | str = "auto"
    expected: Expected | None = None

    name: ClassVar[str] = "uniform_prior"
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", check_levels(self.levels))
        check_expected(self.expected)

    def choose(self, sizes: NDArray[np.int64], space: Space) -> Choice:
        """Choose the parameters for groups of public sizes; no outcome is read."""
        total = charge_of(self.epsilon, self.delta)
        return choose(
            sizes,
            space,
            epsilon=total.epsilon,
            delta=total.delta,
            pooled=True,
            levels=self.levels,
            sigma=math.inf,
            expected=self.expected,
        )

    def asked(self) -> dict[str, Any]:
        """The request besides epsilon and delta, as a JSON object."""
        expected = None if self.expected is None else self.expected.to_document()
        return {"levels": self.levels, "expected": expected}
