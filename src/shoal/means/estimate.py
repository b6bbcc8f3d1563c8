"""What one release of an unbiased mean delivers."""

from dataclasses import dataclass

from shoal import documents
from shoal.means import document as plan_document
from shoal.means.estimators.base import Drawn, Estimator
from shoal.means.estimators.normal import CERTIFIED, NORMAL
from shoal.means.plan_facts import UnbiasedFacts
from shoal.means.results import from_results
from shoal.privacy.budget import Budget
from shoal.release import release
from shoal.release.manifest import CONFIDENCE


@dataclass(frozen=True, eq=False)
class UnbiasedEstimate(release.Release[UnbiasedFacts, Drawn]):
    """A private mean with its error bars; all of it public, in the value's unit.

    Source: docs/theory/unbiased.md.

    Attributes:
        confidence: Of `interval`.

    Guarantees: G-COVERAGE, G-UNBIASED.

    Example:
        >>> from shoal.unbiased import Moment, symmetric_mean
        >>> found = symmetric_mean([4.0, 6.0] * 500, moment=Moment(8, 2), epsilon=1, delta="1e-6")
        >>> found.mechanism, found.interval[0] < found.value < found.interval[1]
        ('symmetric_mean', True)
    """

    confidence: float = CONFIDENCE

    kinds = (plan_document.KIND,)

    def _plan_of(self, document: documents.Document) -> UnbiasedFacts:
        """A plan, from its document."""
        return UnbiasedFacts(**plan_document.parts(document))

    @staticmethod
    def _loss_of(plan: UnbiasedFacts) -> Budget:
        """The exact privacy loss of a plan."""
        return Budget(plan.exact_epsilon, plan.exact_delta)

    @staticmethod
    def _drawn_of(plan: UnbiasedFacts, results: documents.Document) -> Drawn:
        """What was drawn, from a manifest's results."""
        return from_results(plan, results)

    @property
    def estimator(self) -> Estimator:
        """What drew it."""
        return self.plan.estimator

    @property
    def value(self) -> float:
        """The estimate, in the value's unit."""
        return float(self.released.value)

    @property
    def interval(self) -> tuple[float, float]:
        """Covers the mean of the users' distribution with `confidence`.

        By a normal approximation where `interval_by` is `normal`, else by Chebyshev's bound.
        """
        return self.estimator.stated_interval(self.released, self.confidence)

    @property
    def certified_interval(self) -> tuple[float, float]:
        """By Chebyshev's bound, in the value's unit: of all distributions that keep the moments."""
        return self.estimator.interval_around(self.released.value, self.confidence)

    @property
    def interval_by(self) -> str:
        """What `interval` rests on: `normal`, or `certified`, as where a coarse step failed."""
        return CERTIFIED if self.released.squares is None else NORMAL

    @property
    def coarse_failed(self) -> bool | None:
        """Whether the coarse step of `symmetric_mean` failed; None for other methods."""
        return self.released.failed

    @property
    def standard_error(self) -> float:
        """Largest standard deviation of the estimate, in the value's unit, sampling included."""
        return self.estimator.standard_error

    @property
    def bias_bound(self) -> float:
        """The largest bias of the estimate, in the value's unit."""
        return self.estimator.bias_bound

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise, in the value's unit; 0 if there is none."""
        return self.estimator.noise_scale

    @property
    def n(self) -> int:
        """The number of users."""
        return self.estimator.weights.users

    @property
    def mechanism(self) -> str:
        """The method's name."""
        return self.estimator.name

    @property
    def sentence(self) -> str:
        """The estimate and its errors in one line, without where it is recorded."""
        low, high = self.interval
        kind = "simulated " if self.simulated else ""
        failed = ", coarse step failed" if self.coarse_failed else ""
        losses = self.estimator.loss.show(up=True)
        return (
            f"{kind}{self.mechanism}: {self.value:.6g} in [{low:.6g}, {high:.6g}] "
            f"({self.confidence:.0%}, {self.interval_by}), "
            f"standard error at most {self.standard_error:.3g}, "
            f"bias at most {self.bias_bound:.3g}{self.estimator.supposes}, {losses}{failed}"
        )

    def __str__(self) -> str:
        """One line, with where it is recorded, and whether it was drawn just now."""
        return f"{self.sentence}; {self.origin}" if self.origin else self.sentence

    def __repr__(self) -> str:
        """The same."""
        return f"<{self}>"
