"""What one call of `shoal.mean` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.privacy.budget import show

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Estimate:
    """A private mean with its error bar; everything in the value's unit, and public.

    Source: docs/theory/grouping.md#linear-estimators-and-their-bias;
    docs/theory/adaptive.md#what-is-promised.

    Attributes:
        value: The estimate, within the bounds, in the value's unit.
        interval: Covers the mean of the records, clipped to the bounds, with the given confidence
            in every data set: bias bound plus the noise's quantile, in the value's unit. Wide where
            a range was selected, because a data set could have values far outside of it.
        typical_interval: The same, in the value's unit, under an assumption: users are exchangeable
            (who is heavy says nothing of its values) and what a private range cuts off balances or
            is small: where values have long tails or outliers, of yes or no, and of amounts that
            are mostly 0, it may miss. Never wider.
        noise_scale: Scale b of the Laplace noise: its mean absolute value, in the value's unit.
        bias_bound: Most that the estimate without noise is off in any data set with this range, in
            the value's unit.
        epsilon: Privacy loss of every user, rounded upwards.
        confidence: Of the interval.
        range: Where means of users (sums, for akmv) were clipped, in the value's unit; None if
            nothing was selected.
        mechanism: What was used.
        parameters: Its public whole numbers, such as the cap.
        simulated: Whether the randomness was repeatable: then nobody is protected.
        warnings: What speaks against the typical interval, in sentences.

    Guarantees: G-COVERAGE.

    Example:
        >>> from shoal import mean
        >>> found = mean.baseline([3.0, 4.0] * 500, range(1000), bounds=(0, 10), epsilon=5)
        >>> found.bias_bound < 1e-3, found.interval[0] < found.value < found.interval[1]
        (True, True)
    """

    value: float
    interval: tuple[float, float]
    typical_interval: tuple[float, float]
    noise_scale: float
    bias_bound: float
    epsilon: float
    confidence: float
    range: tuple[float, float] | None
    mechanism: str
    parameters: Mapping[str, tuple[int, ...]]
    simulated: bool
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line, and what speaks against it."""
        low, high = self.typical_interval
        found = "" if self.range is None else f", range [{self.range[0]:.4g}, {self.range[1]:.4g}]"
        kind = "simulated " if self.simulated else ""
        line = (
            f"{kind}{self.mechanism}: {self.value:.6g}, typically in "
            f"[{low:.6g}, {high:.6g}] ({self.confidence:.0%}), noise "
            f"{self.noise_scale:.3g}, bias at most {self.bias_bound:.3g}{found}, "
            f"epsilon {show(self.epsilon)}"
        )
        return "\n".join([line, *(f"warning: {sentence}" for sentence in self.warnings)])
