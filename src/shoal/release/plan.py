"""Defines plans of all families: how they are saved, and their one way to a release."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import Field

from shoal import documents, files
from shoal.documents.model import Model, is_none
from shoal.errors import DocumentError, InputError, ShoalError
from shoal.files.text_table import Shown
from shoal.privacy.accounting import Losses, Step, account
from shoal.privacy.budget import Budget, round_up
from shoal.privacy.ledger import Entry, Ledger
from shoal.privacy.noise import Noise, Simulated, source_of
from shoal.privacy.unit import EACH_ROW, Periods, Relation, Unit, checked_name
from shoal.release.envelope import (
    INSIDE,
    Everybody,
    Exact,
    Inside,
    Manifest,
    Protected,
    Published,
    Record,
    Text,
    enveloped,
)

Private = TypeVar("Private")
Drawn = TypeVar("Drawn")
# The errors that parts of a damaged document lead to.
DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
# What neighbouring logs of an experiment differ in.
OF_LOG = (
    "one user's rows change, and how many there are; that the user takes part, its arm, cluster "
    "and covariates are public"
)
# The kinds of trials that answer questions.
ANSWERING = ("questions", "ratios", "bounds")


class Source(Model):
    """The public names of columns of the file that a plan of a mean or a trial is for."""

    value: Text
    missing: Literal["refuse", "public", "worst"] = "refuse"
    single_arm: Literal["refuse", "drop"] = "refuse"
    user: Text | None = None
    arm: Text | None = None
    cluster: Text | None = None
    unit: Text | None = None
    assigned: Text | None = None
    privacy_unit: Text | None = None
    per_user: Text | None = Field(default=None, exclude_if=is_none)
    denominator: Text | None = Field(default=None, exclude_if=is_none)
    missing_value: float | None = Field(default=None, exclude_if=is_none)

    @property
    def of_log(self) -> bool:
        """Whether a user has several rows, of which an outcome is made."""
        return self.per_user is not None or self.denominator is not None

    @property
    def tells_users(self) -> bool:
        """Whether a column says whose each row is."""
        return self.user not in (None, EACH_ROW)

    @property
    def protects(self) -> str:
        """The word for users: that of their ledger or else of their column; empty for rows."""
        users = self.user if self.tells_users else None
        return self.privacy_unit or users or self.unit or ""

    @property
    def outcome(self) -> str:
        """The name of the private numbers: of a log also what each user's rows make."""
        found = self.value
        if self.denominator is not None:
            found = f"{self.value} / {self.denominator} (sums per user)"
        elif self.per_user is not None:
            found = f"{self.value} ({self.per_user} per user)"
        if self.missing_value is not None:
            found += f", missing as {self.missing_value:g}"
        return found


class PlanDocument(Model):
    """The entries of documents of all plans; families add what was asked, chosen and claimed."""

    audience: Inside | Everybody = INSIDE
    version: Text
    unit: Protected


class Claims(Model):
    """The loss of a plan for readers; families add its errors."""

    epsilon: Exact
    delta: Exact


class Delivered(NamedTuple):
    """The bytes of a record, its entry in the ledger, and what was drawn.

    Without a ledger, `entry` is None. If the release had been recorded before, `from_ledger` is
    true, and `drawn` and `record` are None.
    """

    document: bytes
    entry: Entry | None
    from_ledger: bool
    drawn: Any = None
    record: Any = None


class Steps(ABC):
    """The steps that read private data, and what they cost."""

    request: Any

    @property
    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """The steps of the release, for the accountant."""

    @property
    def step_delta(self) -> Fraction:
        """The delta that the steps may take in all."""
        found: Fraction = self.request.delta
        return found

    @cached_property
    def losses(self) -> Losses:
        """Privacy losses of the steps, by user (docs/theory/privacy.md#accounting)."""
        return account(self.steps, self.step_delta)

    @property
    def exact_loss(self) -> Budget:
        """The privacy loss: exact, or an upper bound with Gaussian noise."""
        return Budget(self.losses.epsilon, self.losses.delta)

    @cached_property
    def loss(self) -> Budget:
        """The stated loss, which is charged: that asked for, or the exact one rounded upwards."""
        return Budget.stated(self.exact_loss, self.request.epsilon, self.request.delta)

    @property
    def epsilon(self) -> float:
        """The privacy loss, rounded upwards."""
        return round_up(self.loss.epsilon)

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-differential privacy, rounded upwards; 0 if pure."""
        return round_up(self.loss.delta)


class Plan(Steps, Shown, Generic[Private, Drawn]):
    """A plan: the request, public facts and what was chosen, from which all else follows.

    A family names itself and its `kind`, the models of its documents and what neighbours differ in,
    and defines the abstract methods below.
    """

    family: ClassVar[str]
    kind: ClassVar[str]
    document_model: ClassVar[type[PlanDocument]]
    claims_model: ClassVar[type[Claims]]
    record_model: ClassVar[type[Record]]
    manifest_model: ClassVar[type[Manifest]]
    # For whom plan and record are: most have rows of users or units.
    audience: ClassVar[Inside | Everybody] = INSIDE
    relation: ClassVar[Relation] = "public"
    privacy: ClassVar[str] = "differential privacy"
    source: Any = None

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """What neighbouring data sets differ in, in words."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """The entries of the plan's document besides version, unit and claims."""

    @property
    @abstractmethod
    def asked(self) -> documents.Document:
        """The request, without what another version of shoal may choose or claim otherwise."""

    def warnings(self) -> list[str]:
        """Returns sentences that a custodian should read before spending anything."""
        return []

    def typical_error(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family says errors in the value's unit before any value is read."""
        raise _of_means_alone("typical_error")

    def forecast(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family says how many cells will be reliable."""
        raise _of_means_alone("forecast")

    def compare(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family has several methods."""
        raise _of_means_alone("compare")

    def frontier(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family has several methods at several losses."""
        raise _of_means_alone("frontier")

    @property
    def periods(self) -> Periods | None:
        """The periods on which a release is charged; None if users are protected as a whole."""
        return None

    @property
    def period(self) -> str | None:
        """The kind of period, such as month."""
        return None if self.periods is None else self.periods.kind

    @property
    def protected(self) -> str:
        """The line that says what is protected."""
        return str(Unit("user", self.relation))

    @classmethod
    def kinds_of(cls) -> tuple[str, ...]:
        """Returns the kinds of plans of this class."""
        return (cls.kind,)

    @classmethod
    @abstractmethod
    def of_document(cls, document: Any) -> Self:
        """Returns the plan of a document, whatever the document claims."""

    @abstractmethod
    def check(self, private: Private) -> None:
        """Refuse private data whose public shape is not the plan's; reads no value."""

    @abstractmethod
    def draw(self, private: Private, noise: Noise) -> Drawn:
        """Read the private data and draw once; nothing else does."""

    @abstractmethod
    def results(self, drawn: Drawn) -> Any:
        """Returns drawn numbers, and the results that follow from them, as JSON."""

    @abstractmethod
    def drawn_of(self, results: Any) -> Drawn:
        """Returns what was drawn, from results as JSON; any error means that they do not fit."""

    @abstractmethod
    def published(self, drawn: Drawn) -> Published:
        """Returns what everybody may have of a release: nothing about a single user or unit."""

    @classmethod
    def of_published(cls, results: Published) -> Self:
        """Returns the plan, if a manifest holds all of it."""
        return cls.from_bytes(documents.canonical_bytes(results.plan_document()))

    @property
    def claims(self) -> Claims:
        """The loss and the errors of the plan, for readers."""
        found: dict[str, Any] = {
            name: getattr(self, name, None) for name in self.claims_model.model_fields
        }
        found |= {"epsilon": str(self.loss.epsilon), "delta": str(self.loss.delta)}
        return self.claims_model(**found)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object."""
        unit = Protected(counts=self.relation, period=self.period)
        about: dict[str, Any] = {"version": version("shoal"), "claims": self.claims, "unit": unit}
        about["audience"] = self.audience
        return self.document_model(**about, **self.parts).to_document()

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as a versioned JSON document.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the records, or of the plan that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        data = documents.canonical_bytes(self.to_document())
        files.write_bytes(path, data, self._sources, overwrite=overwrite)

    @property
    def _sources(self) -> Mapping[str, str | None]:
        """Files that the plan was made from, which saving never replaces."""
        return {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan written by `save`; loss and errors are computed from what was chosen.

        Args:
            path: A file written by `save`.

        Returns:
            The plan.

        Raises:
            DocumentError: Missing, damaged, of another version, or one that costs or errs more
                than what was asked for, or than it states.

        Guarantees: G-VERIFY.
        """
        return cls.from_bytes(documents.read_bytes(path, "plan"))

    @classmethod
    @np.errstate(all="ignore")
    def from_bytes(cls, data: bytes) -> Self:
        """Returns the plan of the bytes of its document."""
        document = cls.document_model.from_bytes(data, "plan")
        with suppress(ShoalError, *DAMAGED):
            found = cls.of_document(document)
            unit = Protected(counts=cls.relation, period=found.period)
            fits = document.unit == unit and document.audience == cls.audience
            if fits and found.exact_loss.within(found.loss):
                return found
        raise DocumentError("the plan is damaged or was changed by hand", "make the plan again")

    def with_source(self, source: Any) -> Self:
        """Returns this plan for these columns of a file."""
        found = copy(self)
        object.__setattr__(found, "source", source)
        return found

    def called(self, name: str) -> str:
        """Returns the private column's name: that of the plan's file, or else the given one."""
        planned = self.source.value if self.source else ""
        if not planned or name in ("", planned):
            return name or planned
        raise InputError(
            f"the values are called {name!r}, and the plan is for {planned!r}",
            "give the column that the plan is for, or plan again",
        )

    def key(self, records: Mapping[str, Any], unit: Unit) -> str:
        """Returns the SHA-256 of what is asked of which data, by which a ledger knows a release."""
        question = {"plan": self.asked, "records": dict(records), "unit": unit.to_document()}
        return documents.digest(question)

    def guarantee(self, unit: Unit) -> documents.Document:
        """Returns the guarantee of a release, which holds whatever is drawn."""
        kind = "approximate" if self.loss.delta else "pure"
        neighbours = self.neighbours
        booked: documents.Document = {}
        if self.periods is not None:
            neighbours = neighbours.replace("one user", f"one user in one {self.period}")
            booked = {"periods": [*self.periods.names]}
        words = {"privacy": f"{kind} {self.privacy}", "neighbours": neighbours}
        return words | {"unit": unit.to_document()} | booked | self.loss.to_document()

    def deliver(
        self,
        private: Private,
        records: Mapping[str, Any],
        unit: Unit,
        *,
        name: str,
        ledger: str | os.PathLike[str] | Ledger | None,
        noise: Simulated | None,
        first: Callable[[], None] = lambda: None,
    ) -> Delivered:
        """Deliver what the ledger holds under this name, or draw, record and deliver.

        Nothing is drawn if the charge does not fit, and nothing is delivered before it is recorded.
        If another process recorded the same first, its result is delivered and ours is discarded.
        `first` is called before a draw, while a refusal costs nothing.
        """
        source = source_of(noise, recorded=ledger is not None)
        key = self.key(records, unit)
        checked_name(name)

        def draw() -> Delivered:
            first()
            drawn = self.draw(private, source)
            results = self.results(drawn)
            simulated = noise is not None
            record = enveloped(self, records, key, unit, name, results, simulated=simulated)
            document, read = self._written(record)
            return Delivered(document, None, from_ledger=False, drawn=drawn, record=read)

        if ledger is None:
            return draw()
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        known = book.find(key, name)
        if known is None:
            # This refuses a charge that does not fit, before anything is drawn.
            book.state().check(self.loss, unit, self.periods)
            made = draw()
            # Another process may have recorded meanwhile: then this is its entry.
            known = book.record(
                key,
                name=name,
                kind=self.kind,
                privacy_unit=unit,
                periods=self.periods,
                epsilon=self.loss.epsilon,
                delta=self.loss.delta,
                document=made.document,
            )
            if known.document == made.document:
                return made._replace(entry=known)
        # What is recorded is delivered only to those who have the planned data.
        self.check(private)
        return Delivered(known.document, known, from_ledger=True)

    @property
    def size(self) -> float:
        """The size of its numbers; differences far below it are rounding."""
        return 0.0

    def mismatches(self, records: Mapping[str, Any], unit: Mapping[str, Any]) -> Iterator[str]:
        """Yields sentences that say which records or unit of a manifest do not fit the plan."""
        yield from ()

    def _written(self, record: documents.Document) -> tuple[bytes, Record]:
        """Returns a record's bytes and model, and refuses a record that nobody could read."""
        with suppress(DocumentError):
            found = documents.canonical_bytes(record)
            return found, self.record_model.from_bytes(found, "record")
        raise InputError(
            "a record cannot hold public facts as long as these; nothing was charged",
            "give shorter names and keys, rounded times, and amounts with fewer digits",
        )


def _of_means_alone(name: str) -> InputError:
    """Returns the error of a plan that lacks what plans of means alone have."""
    return InputError(
        f"{name} works with plans of means alone, or of certified errors, of public counts",
        "print this plan for what it says beforehand, or plan means alone of public counts",
    )


def check_ledger(ledger: object, noise: Simulated | None) -> None:
    """Refuse a release that nothing would record."""
    if ledger is None and noise is None:
        raise InputError(
            "the release has no ledger",
            "make one with Ledger.create(path, epsilon=..., privacy_unit=..., counts=...) and give "
            "ledger=path",
        )
