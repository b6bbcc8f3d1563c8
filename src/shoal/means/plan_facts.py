"""Public facts of one unbiased mean, before any value is read."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from shoal import documents
from shoal.checks import check_confidence
from shoal.errors import InputError
from shoal.means import document as plan_document
from shoal.means.estimators.base import Estimator
from shoal.means.estimators.normal import check_level
from shoal.means.request import Request
from shoal.privacy.budget import Budget, round_up
from shoal.release.manifest import CONFIDENCE


@dataclass(frozen=True, eq=False)
class UnbiasedFacts:
    """Public facts of one unbiased mean. Make one with `shoal.unbiased.plan`.

    Attributes:
        request: What was asked for.
        estimator: What answers it: weights, moments, grid, noise.
        source: Public description of the records, kept in plan and manifest.
    """

    request: Request
    estimator: Estimator
    source: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse parts that are no request, or no estimator of its method."""
        sound = (
            isinstance(self.request, Request)
            and isinstance(self.estimator, Estimator)
            and self.estimator.name == self.request.method
            and (self.source is None or isinstance(self.source, Mapping))
        )
        if not sound:
            raise InputError(
                "an unbiased plan with parts that do not belong together",
                "a request, and an estimator of its method",
                "make it with shoal.unbiased.plan",
            )

    @property
    def method(self) -> str:
        """The method's name."""
        return self.estimator.name

    @property
    def n(self) -> int:
        """The number of users."""
        return self.estimator.weights.users

    @property
    def exact_epsilon(self) -> Fraction:
        """The exact privacy loss."""
        return self.estimator.loss.epsilon

    @property
    def exact_delta(self) -> Fraction:
        """The exact delta."""
        return self.estimator.loss.delta

    @property
    def loss(self) -> Budget:
        """What is stated and charged: the exact loss, rounded up to twelve digits."""
        return plan_document.stated_loss(self.request, self.estimator)

    @property
    def epsilon(self) -> float:
        """The privacy loss, rounded upwards."""
        return round_up(self.loss.epsilon)

    @property
    def delta(self) -> float:
        """The delta, rounded upwards."""
        return round_up(self.loss.delta)

    @property
    def bias_bound(self) -> float:
        """The largest bias of the estimate, in the value's unit."""
        return self.estimator.bias_bound

    @property
    def rmse_bound(self) -> float:
        """Largest root mean squared error, in the value's unit."""
        return self.estimator.rmse_bound

    @property
    def standard_error(self) -> float:
        """Largest standard deviation of the estimate, in the value's unit."""
        return self.estimator.standard_error

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise, in the value's unit; 0 if there is none."""
        return self.estimator.noise_scale

    @property
    def interval_by(self) -> str:
        """How intervals are made: `normal` or `certified`."""
        return self.request.interval_by

    def expected_half_width(self, confidence: float = CONFIDENCE) -> float:
        """Half an interval of values that spread as widely as the moments allow.

        Certified intervals have this width whatever the values; normal ones are narrower where
        values spread less, for they follow the released squares.

        Source: docs/theory/unbiased.md#a-normal-interval.

        Args:
            confidence: Of the interval, without a unit; of a normal one from 0.8 to 0.995.

        Returns:
            Half a width, in the value's unit.

        Raises:
            InputError: A confidence that is not usable.

        Guarantees: G-COVERAGE.

        Example:
            >>> from shoal.unbiased import Moment, plan
            >>> wanted = {"moment": Moment(8, 2), "epsilon": 1, "interval": (0, 9), "bias": 0.01}
            >>> normal = plan("clipped_mean", 5000, **wanted)
            >>> certified = plan("clipped_mean", 5000, **wanted, interval_by="certified")
            >>> 2.0 < certified.expected_half_width() / normal.expected_half_width() < 2.4
            True
        """
        return self.estimator.expected_half_interval(self.check_confidence(confidence))

    def check_confidence(self, confidence: object) -> float:
        """A confidence that the plan's intervals can have.

        Args:
            confidence: Of an interval, without a unit.

        Returns:
            The same, without a unit.

        Raises:
            InputError: None between 0 and 1, or for a normal interval outside 0.8 to 0.995.
        """
        if self.estimator.squares is None:
            return check_confidence(confidence)
        return check_level(confidence)

    @functools.cached_property
    def document(self) -> documents.Document:
        """The plan as a JSON object, made once, so that nobody can write into it."""
        found: documents.Document = plan_document.to_document(
            self.request, self.estimator, self.source
        )
        return found

    def written_anew(self) -> Self:
        """The plan that its document says, for one release: nobody else has it.

        Returns:
            A plan of the same facts, none of whose arrays anybody else has seen.

        Raises:
            DocumentError: Its document cannot be written or read.
        """
        written = documents.canonical_bytes(self.to_document())
        read = documents.parse(written, plan_document.SCHEMA, "plan")
        return type(self)(**plan_document.parts(read))

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            Of the schema of such plans.
        """
        return plan_document.to_document(self.request, self.estimator, self.source)
