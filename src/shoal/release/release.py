"""Defines releases of all families: their record and manifest, and what is read from them."""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from shoal import checks, documents, files
from shoal.documents.strict_json import strict
from shoal.errors import DocumentError, InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import Shown, TextTable
from shoal.privacy.budget import from_text, round_up, show
from shoal.privacy.ledger import Entry, Ledger
from shoal.release.envelope import (
    CONFIDENCE,
    RECORD,
    Envelope,
    Manifest,
    Record,
    manifest_of,
    needs_record,
)
from shoal.release.plan import DAMAGED, Delivered, Plan
from shoal.release.rows import Row, histogram_table
from shoal.release.statistics import Statistic, named

PlanT = TypeVar("PlanT", bound=Plan[Any, Any])
Drawn = TypeVar("Drawn")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Release(Generic[PlanT, Drawn]):
    """A release as it was delivered; its manifest is for everybody.

    Attributes:
        document: The record's bytes, as the ledger keeps them if there is one; of a loaded
            manifest its own.
        entry: The ledger's entry; None without a ledger.
        from_ledger: Whether it had been recorded before: nothing private was used or charged.
        inputs: The files of records, ledger and loaded document, which no output may replace.
        loaded: Whether it is from a file, which knows no ledger.
        known_plan: The plan, if it was drawn just now; else it is read from the document.
        drawn: What was drawn, if that was just now; else it is read from the document.
        known: What the document says, if it was drawn or read just now.
    """

    document: bytes
    entry: Entry | None = None
    from_ledger: bool = False
    inputs: Mapping[str, str | os.PathLike[str] | None] = field(default_factory=dict, repr=False)
    loaded: bool = False
    known_plan: PlanT | None = field(default=None, repr=False)
    drawn: Drawn | None = field(default=None, repr=False)
    known: Envelope | None = field(default=None, repr=False)

    # The class of plans whose releases these are.
    plan_model: ClassVar[type[Plan[Any, Any]]]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `write_manifest` or `write_record` wrote.

        Args:
            path: Where it is.

        Returns:
            The release; without a ledger's entry, as no file knows of one. From a manifest it has
            what everybody may have: table, picture, report, but no rows of users and so no plan.

        Raises:
            DocumentError: Missing, damaged, of another kind, or a record that states less than
                what its plan loses. Whether results follow is for `shoal.verify`.

        Guarantees: G-LEDGER.
        """
        data = documents.read_bytes(path, "manifest")
        return cls.of_file(path, data, strict(data, f"manifest {str(path)!r}"))

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], data: bytes, found: object) -> Self:
        """Returns the release in a file, given its bytes and what `strict` found in them."""
        kind = found.get("kind") if isinstance(found, dict) else None
        if isinstance(kind, str) and kind not in cls.kinds():
            raise DocumentError(
                f"the manifest is of the kind {checks.shown(kind)}, not {' or '.join(cls.kinds())}",
                "give another file, or read it with shoal.load, which takes all kinds",
            )
        # An absolute path, whatever the working folder is later.
        inputs = {"manifest": os.path.abspath(path)}
        known = cls.read(data, f"manifest {str(path)!r}", found)
        loaded = cls(data, loaded=True, inputs=inputs, known=known)
        # What cannot be read is refused here, not when somebody looks at it.
        loaded._part(loaded._check)
        return loaded

    @classmethod
    def delivered(cls, done: Delivered, plan: PlanT, ledger: Any, **more: Any) -> Self:
        """Returns the release of what was delivered for a plan; `more` are further attributes.

        A release that had been recorded before is read from its own record: another version of
        shoal, which chose other parameters, may have recorded it.
        """
        book = ledger.path if isinstance(ledger, Ledger) else ledger
        place = None if book is None else os.path.abspath(book)
        more["inputs"] = more.get("inputs", {}) | {"ledger": place}
        if done.from_ledger:
            return cls(done.document, done.entry, from_ledger=True, **more)
        more |= {"known_plan": plan, "drawn": done.drawn, "known": done.record}
        return cls(done.document, done.entry, **more)

    @cached_property
    def said(self) -> Envelope:
        """The contents of the document, as a model."""
        return self.known or self.read(self.document, "record")

    @property
    def record(self) -> documents.Document:
        """The whole release with rows of users, as a JSON object: not to be published.

        Raises:
            DocumentError: The release is from a manifest, which has no such rows.
        """
        return self._record.to_document()

    @cached_property
    def manifest(self) -> documents.Document:
        """The part that everybody may have, as a JSON object; it follows from the record."""
        if isinstance(self.said, Manifest):
            return self.said.to_document()
        return manifest_of(self.document, self._record, self.published)

    @cached_property
    def published(self) -> Any:
        """The part of the results that everybody may have."""
        if isinstance(self.said, Manifest):
            return self.said.results
        return self.plan.published(self.released)

    @property
    def _record(self) -> Record:
        """The contents of the record, as a model."""
        if isinstance(self.said, Record):
            return self.said
        raise needs_record()

    @classmethod
    def read(cls, data: bytes, what: str, found: object = None) -> Envelope:
        """Returns a record or manifest of this kind, given its bytes.

        `found` is what `strict` found in them, if they were read before.
        """
        known = strict(data, what) if found is None else found
        is_record = isinstance(known, dict) and known.get("schema") == RECORD
        family = cls.plan_model
        model = family.record_model if is_record else family.manifest_model
        return model.from_bytes(data, what, known)

    @classmethod
    def kinds(cls) -> tuple[str, ...]:
        """The kinds of plans whose releases these are, as manifests name them."""
        return cls.plan_model.kinds_of()

    @cached_property
    def plan(self) -> PlanT:
        """The plan that was carried out."""
        if self.known_plan is not None:
            return self.known_plan
        return self._part(self._plan)

    @cached_property
    def released(self) -> Drawn:
        """The drawn numbers, as numbers and not as JSON."""
        if self.drawn is not None:
            return self.drawn
        return self._part(self._drawn)

    def _plan(self) -> PlanT:
        """Returns the plan in the document."""
        found: Any
        if isinstance(self.said, Manifest):
            found = self.plan_model.of_published(self.said.results)
        else:
            found = self.plan_model.from_bytes(documents.canonical_bytes(self.record["plan"]))
        plan: PlanT = found
        return plan

    def _drawn(self) -> Drawn:
        """Returns the drawn numbers in the document."""
        is_manifest = isinstance(self.said, Manifest)
        results = self.published.results if is_manifest else self.record["results"]
        drawn: Drawn = self.plan.drawn_of(results)
        return drawn

    def _check(self) -> None:
        """Refuse what cannot be read, and a record that states less than what its plan loses."""
        if isinstance(self.said, Manifest):
            _ = self.published
            return
        _ = self.released
        found = self.record
        guarantee = found["guarantee"]
        claims = found["plan"]["claims"]
        loss = self.plan.exact_loss
        for name, exact in (("epsilon", loss.epsilon), ("delta", loss.delta)):
            stated = from_text(guarantee[name])
            if stated < exact or claims[name] != guarantee[name]:
                raise damaged()
            if guarantee[f"{name}_at_most"] != round_up(stated):
                raise damaged()

    @property
    def simulated(self) -> bool:
        """Whether the randomness was repeatable: such a release is not private."""
        return self.said.simulation

    @property
    def epsilon(self) -> float:
        """The privacy loss of every unit, rounded upwards."""
        return round_up(from_text(self.said.guarantee.epsilon))

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-differential privacy, rounded upwards."""
        return round_up(from_text(self.said.guarantee.delta))

    @property
    def origin(self) -> str:
        """Where the release is recorded, and whether it was drawn just now; empty if loaded."""
        if self.entry is None:
            return "" if self.loaded else "not recorded in a ledger"
        named = f", named {self.entry.name!r}" if self.entry.name else ", without a name"
        ledger = os.path.basename(self.inputs.get("ledger") or "the ledger")
        withdrawn = f", {self.entry.withdrawn}" if self.entry.withdrawn else ""
        place = f"entry {self.entry.number} of {os.fspath(ledger)}{named}{withdrawn}"
        again = f"recorded on {self.entry.recorded_at[:10]}, nothing charged: "
        return f"{again}{place}" if self.from_ledger else place

    def write_manifest(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the manifest, which everybody may have: nothing in it is about a single user.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                records, ledger or the document that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        data = documents.canonical_bytes(self.manifest)
        files.write_bytes(path, data, self.inputs, overwrite=overwrite)

    def write_record(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the record, byte for byte as the ledger keeps it: for auditors, not for everybody.

        It has rows of users, without their names, from which anybody computes the loss again.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: As `write_manifest`, or the release is from a manifest.

        Guarantees: G-REFUSE.
        """
        _ = self._record
        files.write_bytes(path, self.document, self.inputs, overwrite=overwrite)

    def difference(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family says how two cells differ."""
        raise InputError(
            "difference works with releases of means alone, of cells of public counts",
            "compare the intervals of both cells",
        )

    def quantiles(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family has bins."""
        raise no_bins()

    def histogram(self, *_: Any, **__: Any) -> Any:
        """Refuses, unless a family has bins."""
        raise no_bins()

    @np.errstate(all="ignore")
    def _part(self, read: Callable[[], Found]) -> Found:
        """Returns what `read` reads in the document; DocumentError if it cannot be read."""
        try:
            return read()
        except DocumentError:
            raise
        except DAMAGED:
            raise damaged() from None


class TableRelease(Release[PlanT, Drawn], Tabular):
    """A release whose numbers are rows of a table."""

    @abstractmethod
    def table(self, confidence: float = CONFIDENCE, *, all: bool = False) -> pa.Table:
        """The released table, with intervals of this confidence."""

    @property
    def _sources(self) -> files.Places:
        """Records, ledger, and the manifest that was loaded."""
        return self.inputs


class CellRelease(Shown, TableRelease[PlanT, Drawn]):
    """A release with rows of cells, which print shows on one screen."""

    @property
    @abstractmethod
    def cells(self) -> pa.Table:
        """The keys of the cells that readers see."""

    def __repr__(self) -> str:
        """One line."""
        return f"<{self.head()}>"

    def to_text(self, confidence: float = CONFIDENCE) -> str:
        """The text that `print` shows, with intervals of any confidence and without the ledger."""
        return str(self._text(confidence, origin=False))

    def head(self, *, origin: bool = True) -> str:
        """Returns what was released, its epsilon, and where it is recorded, in one line."""
        what = "simulated release, not private" if self.simulated else "release"
        entry = f", {self.origin}" if self.origin and origin else ""
        period = self.said.guarantee.unit.period
        whose = "user" if period is None else f"user-{period}"
        delta = f", delta {self.delta:g}" if self.delta else ""
        return f"{what}, epsilon {show(self.epsilon)}{delta} per {whose}{entry}"

    @abstractmethod
    def _text(self, confidence: float = CONFIDENCE, *, origin: bool = True) -> TextTable:
        """Returns the text that `print` shows."""


class BinRelease(CellRelease[PlanT, Drawn]):
    """A release of cells of which quantiles and a histogram may follow from bins."""

    @abstractmethod
    def rows(self, confidence: float) -> list[Row]:
        """Returns every statistic that was asked for, in its order."""

    @abstractmethod
    def bins(self) -> list[Statistic]:
        """The bins of the histogram, as shares between two limits."""

    @abstractmethod
    def of_values(self, kinds: Sequence[Statistic], confidence: float) -> list[Row]:
        """Returns statistics that follow from bins; InputError if none were drawn."""

    @abstractmethod
    def table_of(self, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
        """Returns statistics as rows of a table."""

    @np.errstate(all="ignore")
    def quantiles(
        self, levels: float | Sequence[float], confidence: float = CONFIDENCE
    ) -> pa.Table:
        """Quantiles of the values of every cell: free, from what was released.

        Args:
            levels: One or more numbers between 0 and 1, such as 0.9.
            confidence: Probability that an interval covers.

        Returns:
            A row for each cell and level, as `table`.

        Raises:
            InputError: No statistic that needs bins was asked for, so that none were drawn, or a
                level is not usable.
        """
        listed = [levels] if isinstance(levels, float) else checks.items(levels, "levels", least=1)
        numbers = [checks.number(each, "a level", above=0, below=1, example=0.9) for each in listed]
        kinds = [Statistic(named("quantile", p), "quantile", (p,)) for p in numbers]
        return self.table_of(self.of_values(kinds, checks.check_confidence(confidence)))

    @np.errstate(all="ignore")
    def histogram(self, confidence: float = CONFIDENCE) -> pa.Table:
        """Shares of the values of every cell in all bins: free.

        Args:
            confidence: Probability that an interval covers.

        Returns:
            A row for each cell and bin: keys, `bin_low`, `bin_high`, `share`, `low`, `high`,
            `status`.

        Raises:
            InputError: No statistic that needs bins was asked for, so that none were drawn.
        """
        # This refuses a release without bins first.
        rows = self.of_values([], checks.check_confidence(confidence))
        bins = self.bins()
        rows += self.of_values(bins, confidence)
        return histogram_table(self.cells, [each.limits for each in bins], rows)


def no_bins() -> InputError:
    """The error of a release of which no quantiles follow."""
    return InputError(
        "no bins were drawn",
        "ask for median, a quantile, shares or histogram in the plan; then these are free",
    )


def damaged() -> DocumentError:
    """The error of a manifest whose parts do not fit each other."""
    return DocumentError(
        "the manifest is damaged or was changed",
        "fetch it again, or have it delivered from the ledger",
    )
