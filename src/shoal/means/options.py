"""What one estimator would do: certificate, lower bound, what it needs and what it publishes."""

import math
from dataclasses import dataclass

from shoal import documents
from shoal.means.plan import UnbiasedPlan
from shoal.means.request import METHODS

CLIPPED, SAMPLED, RESIDUAL, SYMMETRIC = METHODS
_NEEDS = {
    CLIPPED: "an interval that holds the mean",
    SAMPLED: "an interval that holds the mean",
    RESIDUAL: "an interval that holds the mean",
    SYMMETRIC: "a symmetric distribution",
}
PUBLISHES = {
    CLIPPED: "the estimate alone",
    SAMPLED: "each user's value with probability delta",
    RESIDUAL: "each value far from the interval with probability delta",
    SYMMETRIC: "the estimate, whether the coarse step failed, and if so sampled values",
}


@dataclass(frozen=True)
class Option:
    """What one estimator would do.

    Attributes:
        method: Its name.
        plan: Of one release; None if it is impossible, or publishes values without consent.
        why_not: Why it is not to be had; empty if it is.
        epsilon: Of one release, rounded upwards.
        delta: The same.
        bias_bound: Of one release and of their average, in the value's unit.
        standard_error: Of one release, in the value's unit.
        rmse_bound: Of one release, in the value's unit.
        total_error: Certified root mean squared error of the average, in the value's unit.
        lower_bound: No private estimator with this loss and bias has a smaller total error on the
            whole class; None where none is known (symmetric distributions are a smaller class).
    """

    method: str
    plan: UnbiasedPlan | None
    why_not: str
    epsilon: float = math.nan
    delta: float = math.nan
    bias_bound: float = math.nan
    standard_error: float = math.nan
    rmse_bound: float = math.inf
    total_error: float = math.inf
    lower_bound: float | None = None

    @property
    def needs(self) -> str:
        """What must be known."""
        return _NEEDS[self.method]

    @property
    def publishes(self) -> str:
        """What anybody sees."""
        return PUBLISHES[self.method]

    @property
    def ratio(self) -> float | None:
        """`total_error` over `lower_bound`; None where there is no bound above 0."""
        return self.total_error / self.lower_bound if self.lower_bound else None

    def to_document(self) -> documents.Document:
        """As a JSON object; what does not exist is null.

        Returns:
            Names and numbers.
        """
        numbers = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "bias_bound": self.bias_bound,
            "standard_error": self.standard_error,
            "rmse_bound": self.rmse_bound,
            "total_error": self.total_error,
            "lower_bound": self.lower_bound,
            "ratio": self.ratio,
        }
        finite = {
            name: value if value is not None and math.isfinite(value) else None
            for name, value in numbers.items()
        }
        return {
            "method": self.method,
            "why_not": self.why_not or None,
            "needs": self.needs,
            "publishes": self.publishes,
            **finite,
        }
