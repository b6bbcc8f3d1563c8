"""Plans unbiased means, whose errors are known before any value is read, and releases them."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from shoal import checks, documents
from shoal.arrays import Floats, Ints
from shoal.data.columns_in_memory import Users
from shoal.documents.model import Integers, Model
from shoal.errors import DataError, InputError
from shoal.files.text_table import TextTable, digits_of
from shoal.intervals import check_level
from shoal.means.estimators import CHOICES, OUTWARD, ClippedChoice, Facts, SymmetricChoice
from shoal.means.request import INTERVALS, Interval, MeanDrawn, Request
from shoal.means.users import UserValues, UserWeights, counts_of
from shoal.privacy.accounting import Step
from shoal.privacy.budget import Budget, from_text, round_up
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.release import envelope
from shoal.release import plan as plans
from shoal.release.envelope import CONFIDENCE, FEWEST_ALIKE, Text
from shoal.release.release import Release
from shoal.theory import clipping

# The largest half of an interval.
_WIDEST = 2.0**900
# The draw that shuffles users of equal weight.
_ORDER = 9


class Claims(plans.Claims):
    """The loss and errors of a plan for readers; errors are in the value's unit."""

    bias_bound: float
    standard_error: float
    rmse_bound: float
    failure_bound: float
    noise_scale: float
    half_width: float


class PlanDocument(plans.PlanDocument):
    """A plan of an unbiased mean."""

    schema_: Literal["shoal.mean-plan/4"] = Field(default="shoal.mean-plan/4", alias="schema")
    request: Request
    counts: Integers
    choice: ClippedChoice | SymmetricChoice
    source: plans.Source | None = None
    claims: Claims


class RecordsPart(Model):
    """The name of the values."""

    value: Text


class Result(Model):
    """The drawn whole numbers and the estimates from them; all None if there is no estimate."""

    steps: int | None
    squares: int | None
    guess: tuple[int, int] | None
    value: float | None
    interval: Interval | None
    certified_interval: Interval | None


class Record(envelope.Record):
    """The record of a release of an unbiased mean: all that is known of it."""

    kind: Literal["mean"]
    records: RecordsPart
    plan: PlanDocument
    results: Result


class Published(envelope.Published):
    """A mean, what its plan claims, and how many users there are.

    `alike` has numbers of records, and how many users have each number. The manifest holds the plan
    only if these are many users in each case.
    """

    method: Text
    interval_by: Text
    supposes: Text
    users: int
    records: int
    alike: tuple[tuple[int, int], ...] | None
    claims: Claims
    plan: dict[str, Any] | None
    results: dict[str, Any]

    stated: ClassVar[str] = "its errors"

    def plan_document(self) -> documents.Document:
        """The plan's document, with the numbers of records of all users."""
        document = super().plan_document()
        count, many = np.array(self.alike, dtype=np.int64).reshape(-1, 2).T
        return document | {"counts": documents.pack_integers(np.repeat(count, many))}


class Manifest(envelope.Manifest):
    """The manifest of a release of an unbiased mean: the part that everybody may have."""

    kind: Literal["mean"]
    records: RecordsPart
    results: Published


@dataclass(frozen=True, eq=False)
class UnbiasedPlan(plans.Plan[UserValues, MeanDrawn]):
    """A plan of one unbiased mean: all of it public. Make one with `shoal.unbiased.plan`.

    Its privacy holds for any values; its certificates hold for independent users of one mean whose
    values keep the moments. No distribution depends on the order of users of equal weight.

    Source: docs/theory/means.md.

    Attributes:
        request: What was asked for.
        counts: Public number of records of each user, ascending, shape (users,).
        choice: Whole numbers that were chosen.
        source: Columns of the file that the plan is for, if there is one.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal import unbiased
        >>> found = unbiased.plan(
        ...     "symmetric_mean", 5000, moment=unbiased.Moment(2, 10), epsilon=1, delta="1e-6"
        ... )
        >>> found.bias_bound, found.rmse_bound < 0.3, found.failure_bound < 1e-6
        (0.0, True, True)
    """

    request: Request
    counts: Ints
    choice: ClippedChoice | SymmetricChoice
    source: plans.Source | None = None

    family = "mean"
    kind = "mean"
    document_model = PlanDocument
    claims_model = Claims
    record_model = Record
    manifest_model = Manifest
    neighbours = "values: all values of one user change, the counts are public"

    def __post_init__(self) -> None:
        """Refuse a plan that costs or errs more than was asked, or whose results may overflow."""
        asked = self.request
        facts = self.facts
        facts.last_sum.check(self.choice.squares)
        wrong_method = type(self.choice) is not CHOICES[self.method]
        costs_more = not self.exact_loss.within(Budget(asked.epsilon, asked.delta))
        errs_more = asked.bias is not None and facts.bias > asked.bias
        other_intervals = asked.interval_by not in (None, self.interval_by)
        if wrong_method or costs_more or errs_more or other_intervals:
            raise InputError("the plan does not satisfy its request", "plan again")
        if not self.half(CONFIDENCE) <= _WIDEST:
            raise InputError(
                "the intervals of the plan are too wide for floating-point numbers",
                "give the values in another unit, so that moments and interval are moderate",
            )

    @cached_property
    def facts(self) -> Facts:
        """The steps and errors that follow from the choice."""
        return self.choice.facts(self.request, self.weights)

    def runs(self, values: Floats, source: Noise) -> list[MeanDrawn]:
        """Returns a draw for each row of values, shape (runs, users), in the users' order."""
        return self.choice.runs(values, self.facts.last_sum, source)

    def check(self, private: UserValues) -> None:
        """Refuse other counts than the plan's."""
        if not np.array_equal(private.count, self.counts):
            raise DataError(
                f"the numbers of records of {len(private.count)} users differ from the plan for "
                f"{self.n} users",
                "plan with the counts of these records",
            )

    def draw(self, private: UserValues, noise: Noise) -> MeanDrawn:
        """Draws from the users' private values."""
        values = private.value
        if self.choice.mixes:
            values = values[self.weights.shuffled(noise, _ORDER)]
        return self.runs(values[None, :], noise)[0]

    @cached_property
    def weights(self) -> UserWeights:
        """The weights of the users."""
        return self.request.weights_of(self.counts)

    @property
    def method(self) -> str:
        """The method's name."""
        return self.request.method

    @property
    def n(self) -> int:
        """The number of users."""
        return len(self.counts)

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the choice for the accountant."""
        return self.facts.steps

    @property
    def failure_bound(self) -> float:
        """Largest probability that no estimate is released; 0 for a clipped mean."""
        return self.facts.failure

    @property
    def bias_bound(self) -> float:
        """The largest bias of an estimate that is released, in the value's unit."""
        return self.facts.bias

    @property
    def standard_error(self) -> float:
        """Largest standard deviation of an estimate that is released, in the value's unit."""
        return math.sqrt(self.facts.variance) * OUTWARD

    @property
    def rmse_bound(self) -> float:
        """Largest root mean squared error of an estimate that is released, in the value's unit."""
        return math.sqrt(self.facts.variance + self.bias_bound**2) * OUTWARD

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise on the estimate, in the value's unit."""
        return float(self.facts.last_sum.scale)

    @property
    def interval_by(self) -> str:
        """The kind of intervals: `normal` or `certified`."""
        return INTERVALS[self.choice.squares is None]

    def value(self, drawn: MeanDrawn) -> Fraction:
        """Returns the exact estimate that was drawn, in the value's unit."""
        return self.choice.origin(drawn) + self.facts.last_sum.mean(drawn.steps or 0)

    def half(self, confidence: float, drawn: MeanDrawn | None = None) -> float:
        """Returns half an interval by Chebyshev's inequality, or a normal one by drawn squares."""
        half = self.standard_error / math.sqrt(1 - confidence)
        last = self.facts.last_sum
        squares = self.choice.squares
        if squares and drawn and drawn.squares is not None and drawn.steps is not None:
            # Squares were drawn beside the sum: they say how much the values vary.
            variance, mean = last.variance_of(squares, drawn.squares, drawn.steps)
            half = last.half(squares, confidence, variance, mean)
        return (self.bias_bound + half) * OUTWARD

    def interval(
        self, drawn: MeanDrawn, confidence: float, *, certified: bool = False
    ) -> tuple[float, float] | None:
        """Returns an interval around the estimate, rounded outwards; None without an estimate."""
        if drawn.steps is None:
            return None
        half = Fraction(self.half(confidence, None if certified else drawn))
        # The lower end is 0.0 - x, not -x, so that an end at 0 has no sign.
        return 0.0 - round_up(half - self.value(drawn)), round_up(self.value(drawn) + half)

    @property
    def half_width(self) -> float:
        """Half a 95% interval, in the value's unit, if values vary as much as the moments allow.

        Certified intervals always have this width; normal ones are narrower if values vary less,
        because they follow the released squares.
        """
        squares = self.choice.squares
        last = self.facts.last_sum
        if squares is None:
            return self.half(CONFIDENCE)
        # The largest deviation of the values, in noise scales.
        size = Fraction(clipping.deviation(self.request.moments)) / last.scale
        half = last.half(squares, CONFIDENCE, float(last.weights.squares * size**2))
        return (self.bias_bound + half) * OUTWARD

    @np.errstate(all="ignore")
    def release(
        self,
        values: ArrayLike,
        users: "Users | None" = None,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        confidence: float = CONFIDENCE,
        values_name: str = "",
        privacy_unit: str = "",
    ) -> "UnbiasedEstimate":
        """Read the values once, draw, record result and charge, and deliver.

        If plan and name are the same again, the recorded bytes are delivered, with a note, at no
        cost. Without a ledger, the losses of several releases add up and are not recorded.

        Args:
            values: One number a record, shape (n,), in the value's unit. Private.
            users: The user of each record, shape (n,); by default each record is a user's only one.
            ledger: The data set's ledger, or its path.
            name: A name of the release, such as a period: another name draws, and costs, again.
            noise: `shoal.Simulated(seed)` for studies; the estimate is marked and not private.
            confidence: Confidence of the returned interval; 0.8 to 0.995 for a normal one.
            values_name: The name of the values, needed with a ledger unless the plan has it: two
                kinds of values of the same users are two questions.
            privacy_unit: A word for a user, such as "person"; needed with a ledger and `users`.
                Without both, each row is protected by itself.

        Returns:
            The mean with its errors, in the value's unit.

        Raises:
            InputError: An argument that is not usable, or a ledger with simulated noise or of
                another privacy unit.
            DataError: The values are not finite numbers or do not have the plan's counts.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REPLAY.
        """
        check = checks.check_confidence if self.choice.squares is None else check_level
        confidence = check(confidence)
        values_name = self.called(values_name)
        unit = unit_of_values(
            privacy_unit,
            several=users is not None,
            recorded=ledger is not None,
            unnamed="" if values_name else "values_name",
        )
        private = UserValues.of(values, users)
        records = {"value": printed_text(values_name)}
        self.check(private)
        done = self.deliver(private, records, unit, name=name, ledger=ledger, noise=noise)
        return UnbiasedEstimate.delivered(done, self, ledger, confidence=confidence)

    def mismatches(self, records: Mapping[str, Any], unit: Mapping[str, Any]) -> Iterator[str]:
        """Yields a sentence if the unit is one record but users have several."""
        if unit["records"] != "all" and self.counts[-1] > 1:
            yield "the guarantee protects one record, but users have several"

    def results(self, drawn: MeanDrawn) -> documents.Document:
        """Returns drawn numbers and the estimates from them; all None if there is no estimate."""
        return Result(
            **drawn._asdict(),
            value=None if drawn.steps is None else float(self.value(drawn)),
            interval=self.interval(drawn, CONFIDENCE),
            certified_interval=self.interval(drawn, CONFIDENCE, certified=True),
        ).to_document()

    def published(self, drawn: MeanDrawn) -> Published:
        """Returns the mean and the claims; the plan, if many users have each number of records."""
        count, users_with = np.unique(self.counts, return_counts=True)
        alike = None
        plan = None
        if users_with.min() >= FEWEST_ALIKE:
            alike = tuple(zip(count.tolist(), users_with.tolist(), strict=True))
            plan = self.to_document()
            # `alike` says what the counts say.
            del plan["audience"], plan["counts"]
        return Published(
            method=self.method,
            interval_by=self.interval_by,
            supposes=self.choice.supposes,
            users=self.n,
            records=int(self.counts.sum()),
            alike=alike,
            claims=Claims(**dict(self.claims)),
            plan=plan,
            results=self.results(drawn),
        )

    def drawn_of(self, results: Any) -> MeanDrawn:
        """Returns the drawn whole numbers of a manifest's results."""
        steps, squares, guess = (results[name] for name in MeanDrawn._fields)
        fails = steps is None
        # Only a mean about a guess may fail.
        guesses = self.failure_bound > 0
        if fails and not guesses:
            raise LookupError
        wants_squares = not fails and self.choice.squares is not None
        wants_guess = not fails and guesses
        if (squares is not None) != wants_squares or (guess is not None) != wants_guess:
            raise LookupError
        return MeanDrawn(steps, squares, guess and (guess[0], guess[1]))

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the plan's document: request, counts, choice and source."""
        names = "request", "counts", "choice", "source"
        return {name: getattr(self, name) for name in names}

    @property
    def asked(self) -> documents.Document:
        """The request and the counts."""
        document = self.to_document()
        return {"request": document["request"], "counts": document["counts"]}

    @classmethod
    def of_document(cls, document: Any) -> "UnbiasedPlan":
        """Returns the plan of a document."""
        if not np.array_equal(document.counts, counts_of(document.counts)):
            raise LookupError
        return cls(document.request, document.counts, document.choice, document.source)

    def _text(self) -> TextTable:
        """Returns the plan as text: its loss and errors, and what is protected."""
        weights = self.weights
        fails = ""
        if self.failure_bound:
            fails = f"; no estimate with probability {self.failure_bound:.1g} at most"
        moments = ", ".join(f"({m.order:g}, {m.size:g})" for m in self.request.moments)
        lines = [
            f"{self.method} of {self.n:,} users: {self.exact_loss.show(up=True)}{fails}",
            f"bias at most {self.bias_bound:.4g}{self.choice.supposes}, root mean squared error at "
            f"most {self.rmse_bound:.4g}, noise scale {self.noise_scale:.4g}",
            f"for central moments (order, size) {moments}; the heaviest user has "
            f"{float(weights.share):.3g} of the weight, and users count as "
            f"{float(1 / weights.squares):.6g} equal ones",
            f"{self.interval_by} {CONFIDENCE:.0%} interval of about ±{self.half_width:.4g} if "
            "values vary as much as the moments allow",
            f"protected: {self.protected}",
        ]
        return TextTable("\n".join(lines), (), ())


@dataclass(frozen=True, eq=False)
class UnbiasedEstimate(Release[UnbiasedPlan, MeanDrawn]):
    """A private mean with its error bars; all of it public, in the value's unit.

    Source: docs/theory/means.md.

    Attributes:
        confidence: Confidence of the intervals.

    Guarantees: G-COVERAGE, G-UNBIASED.

    Example:
        >>> from shoal.unbiased import Moment, symmetric_mean
        >>> found = symmetric_mean([4.0, 6.0] * 500, moment=Moment(8, 2), epsilon=1, delta="1e-6")
        >>> found.plan.method, found.interval[0] < found.value < found.interval[1]
        ('symmetric_mean', True)
    """

    confidence: float = CONFIDENCE

    plan_model = UnbiasedPlan

    @property
    def coarse_failed(self) -> bool:
        """Whether the coarse step of `symmetric_mean` failed, so that there is no estimate."""
        return self.published.results["steps"] is None

    @property
    def value(self) -> float | None:
        """The estimate, in the value's unit; None if the coarse step failed."""
        found: float | None = self.published.results["value"]
        return found

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval that covers the mean of the users' distribution; None without a value.

        It is a normal approximation if the plan's `interval_by` is `normal`, otherwise it follows
        from Chebyshev's inequality.
        """
        return self._interval("interval")

    @property
    def certified_interval(self) -> tuple[float, float] | None:
        """Interval by Chebyshev's inequality, for all distributions that keep the moments."""
        return self._interval("certified_interval")

    def _interval(self, name: str) -> tuple[float, float] | None:
        """Returns an interval; without the plan only those of one confidence are there."""
        if self.confidence != CONFIDENCE:
            certified = name == "certified_interval"
            return self.plan.interval(self.released, self.confidence, certified=certified)
        ends = self.published.results[name]
        return ends and (ends[0], ends[1])

    @property
    def sentence(self) -> str:
        """The estimate and its errors in one line, without where it is recorded."""
        published = self.published
        claims = published.claims
        value = self.value
        interval = self.interval
        estimate = (
            "no estimate: the coarse step found no centre; a release under another name draws "
            "again and costs again"
        )
        if value is not None and interval is not None:
            digits = digits_of(*interval, 6)
            low, high = (f"{each:.{digits}g}" for each in interval)
            estimate = (
                f"{value:.{digits}g} in [{low}, {high}] ({self.confidence:.0%}, "
                f"{published.interval_by}), standard error at most {claims.standard_error:.3g}, "
                f"bias at most {claims.bias_bound:.3g}{published.supposes}"
            )
        head = "simulated " if self.simulated else ""
        loss = Budget(from_text(claims.epsilon), from_text(claims.delta)).show(up=True)
        return f"{head}{published.method}: {estimate}, {loss}"

    def __str__(self) -> str:
        """The sentence, with where the release is recorded, and whether it was drawn just now."""
        return f"{self.sentence}; {self.origin}" if self.origin else self.sentence

    def __repr__(self) -> str:
        """The same text in angle brackets."""
        return f"<{self}>"
