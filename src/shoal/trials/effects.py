"""What is known of an effect: value, intervals, clusters; as text and as a document."""

import math
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import printable


@dataclass(frozen=True)
class Inference:
    """A standard error and a confidence interval; NaN where the release does not determine them.

    Source: docs/theory/inference.md#these-units; docs/theory/inference.md#degrees-of-freedom.

    Attributes:
        standard_error: Of the effect, in the outcome's unit.
        interval: Value -+ the t quantile times the standard error, in the outcome's unit.
        degrees_of_freedom: Of the t quantile; infinite for a normal one.
        confidence: Of the interval, on its own: many intervals do not all cover at once.
        about: One sentence on what the interval covers, or on why there is none.

    Guarantees: G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Space, UniformPrior
        >>> bought, arm = np.tile([0, 1, 1, 1], 500), np.tile([0, 1], 1000)
        >>> effect = UniformPrior(epsilon=4).privatize(bought, arm, space=Space.binary()).estimate()
        >>> low, high = effect.finite_population.interval
        >>> low < effect.value < high
        True
    """

    standard_error: float
    interval: tuple[float, float]
    degrees_of_freedom: float
    confidence: float
    about: str

    def to_document(self) -> dict[str, Any]:
        """The inference as a JSON object; what is not known, or infinite, is null.

        Returns:
            Names and numbers.
        """
        low, high = self.interval
        return {
            "standard_error": _number(self.standard_error),
            "interval": [_number(low), _number(high)],
            "degrees_of_freedom": _number(self.degrees_of_freedom),
            "confidence": self.confidence,
            "about": self.about,
        }


@dataclass(frozen=True, eq=False)
class ClusterEffects:
    """The effect in every cluster; in the order of the clusters.

    Attributes:
        names: The clusters' keys; 0, 1, ... unless they have some.
        value: Mean of the arm less mean of control, in the outcome's unit.
        standard_error: For the cluster's units; NaN where an arm has one unit or no variance.
        weight: n_c/n, the cluster's part of all units.
    """

    names: tuple[object, ...]
    value: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one arm against control, in the outcome's unit.

    Source: docs/theory/inference.md.

    Attributes:
        arm: The arm's name.
        control: The name of the arm it is compared with.
        value: sum_c (n_c/n) (mean of the arm - mean of control), in the outcome's unit.
        finite_population: Inference about the effect on these units.
        super_population: Inference about the population of clusters that they came from; with one
            cluster, about the population of its units.
        clusters: The effect in each cluster.
        warning: Why intervals may cover less often than they say, or nothing.
        groups: Groups that were assigned whole, of the arm and of control; None where units were
            assigned one by one.

    Guarantees: G-COVERAGE, G-UNBIASED.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Space, UniformPrior
        >>> bought, arm = np.tile([0, 1, 1, 1], 500), np.tile([0, 1], 1000)
        >>> effect = UniformPrior(epsilon=4).privatize(bought, arm, space=Space.binary()).estimate()
        >>> effect.arm, effect.control, abs(effect.value - 0.5) < 0.3
        (1, 0, True)
    """

    arm: object
    control: object
    value: float
    finite_population: Inference
    super_population: Inference
    clusters: ClusterEffects = field(repr=False)
    warning: str = ""
    groups: tuple[int, int] | None = None

    def __str__(self) -> str:
        """Two lines: these units, and where they came from; and a warning, if there is one."""
        here, there = self.finite_population, self.super_population
        many = len(self.clusters.value) > 1
        arm, control = printable(str(self.arm)), printable(str(self.control))
        whole = (
            f", {self.groups[0]} and {self.groups[1]} groups assigned whole" if self.groups else ""
        )
        return (
            f"{arm} against {control}: {self.value:.6g}, {_shown(here)} for these units{whole}\n"
            f"{_shown(there)} for {'clusters' if many else 'units'} like these"
            + (f"\nwarning: {self.warning}" if self.warning else "")
        )

    def to_document(self) -> dict[str, Any]:
        """The effect as a JSON object; what is not known is null.

        Returns:
            Names and numbers.
        """
        parts = self.clusters
        return {
            "arm": key_text(self.arm),
            "control": key_text(self.control),
            "value": self.value,
            "finite_population": self.finite_population.to_document(),
            "super_population": self.super_population.to_document(),
            "warning": self.warning,
            "groups": None if self.groups is None else list(self.groups),
            "clusters": {
                "names": [key_text(name) for name in parts.names],
                "value": parts.value.tolist(),
                "standard_error": [_number(each) for each in parts.standard_error.tolist()],
                "weight": parts.weight.tolist(),
            },
        }

    def clusters_text(self) -> str:
        """One line a cluster: its name, effect, standard error and part of the units.

        The standard error is left out where an arm of the cluster has one unit.

        Returns:
            The lines, with a head.
        """
        parts = self.clusters
        columns = parts.value.tolist(), parts.standard_error.tolist(), parts.weight.tolist()
        return "\n".join(
            f"  {printable(str(name))}: {value:.6g}"
            + ("" if math.isnan(error) else f", standard error {error:.3g}")
            + f", {weight:.3g} of the units"
            for name, value, error, weight in zip(parts.names, *columns, strict=True)
        )


def key_text(value: object) -> object:
    """A key as JSON can hold it: dates and times as ISO text."""
    return value.isoformat() if isinstance(value, date) else value


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(found: Inference) -> str:
    low, high = found.interval
    if math.isnan(low):
        return "no interval"
    return f"{100 * found.confidence:.4g}% [{low:.3g}, {high:.3g}]"
