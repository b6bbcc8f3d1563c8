"""Estimators of a mean with equal weights, planned for a study."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shoal.means.estimators import calibrate as search
from shoal.means.estimators.clipped import Clipped
from shoal.means.estimators.residual import Residual
from shoal.means.estimators.sampled import Chance, Sampled
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.estimators.weights import Weights
from shoal.theory.clipping import Moments

CLIPPED, SAMPLED, COMBINED, SYMMETRIC = (
    "clipped_mean",
    "sampled_mean",
    "clipped_plus_residual",
    "symmetric_mean",
)
WORDS = {
    CLIPPED: "clipped",
    SAMPLED: "sampled",
    COMBINED: "combined",
    SYMMETRIC: "symmetric",
}
COLOURS = {
    "bound": "#333333",
    CLIPPED: "#1f6f8b",
    SAMPLED: "#8d99ae",
    COMBINED: "#d1495b",
    SYMMETRIC: "#2a9d8f",
}
_FARTHEST = 2.0**20


@dataclass(frozen=True)
class Asked:
    """What is asked of an estimator.

    Attributes:
        n: Users.
        moments: Public bounds.
        epsilon: Largest epsilon.
        delta: Largest delta.
        interval: Holds the mean.

    Example:
        >>> from shoal.theory.clipping import Moment
        >>> asked = Asked(10**4, (Moment(2, 1), Moment(4, 1.4)), 1.0, 1e-6)
        >>> [asked.clipped(0.01).name, asked.sampled().name]
        ['clipped_mean', 'sampled_mean']
        >>> asked.symmetric().rmse_bound < 0.012, asked.combined().rmse_bound < 0.1
        (True, True)
    """

    n: int
    moments: Moments
    epsilon: float
    delta: float
    interval: tuple[float, float] = (0.0, 1.0)

    def clipped(self, bias: float) -> Clipped:
        """With a bias budget; delta is not used."""
        weights, loss = Weights.equal(self.n), Fraction(self.epsilon)
        return Clipped.plan(weights, self.moments, self.interval, loss, bias=bias)

    def sampled(self) -> Sampled:
        """Epsilon is not used."""
        return Sampled(Weights.equal(self.n), self.moments, self.interval, self._chance)

    def combined(self) -> Residual:
        """Clipped plus sampled residuals."""
        weights, loss = Weights.equal(self.n), Fraction(self.epsilon)
        return Residual.best(weights, self.moments, self.interval, loss, self._chance)

    def symmetric(self, *, reuse: bool | None = None) -> Symmetric:
        """The interval is not used."""
        weights, loss, delta = Weights.equal(self.n), Fraction(self.epsilon), Fraction(self.delta)
        return search.best(
            search.SearchRequest(weights, self.moments, loss, delta, reuse, _FARTHEST)
        )

    @property
    def _chance(self) -> Chance:
        return Chance.at_most(Fraction(self.delta))
