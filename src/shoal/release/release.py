"""What a release of any family delivers: public bytes, where they are recorded, what they say."""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from shoal import checks, documents, files
from shoal.documents.strict_json import strict
from shoal.errors import DocumentError
from shoal.files.tables import Tabular
from shoal.privacy.budget import from_text, round_up
from shoal.privacy.ledger import Entry, Ledger
from shoal.release.envelope import CONFIDENCE, Envelope
from shoal.release.plan import DAMAGED, Delivered, Plan

if TYPE_CHECKING:
    pass

PlanT = TypeVar("PlanT", bound=Plan[Any, Any])
Drawn = TypeVar("Drawn")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Release(Generic[PlanT, Drawn]):
    """A release as it was delivered; everything in it is public.

    Attributes:
        document: The manifest's bytes, as recorded in the ledger if there is one.
        entry: The ledger's entry; None without a ledger.
        from_ledger: Whether it had been recorded before: nothing private was used or charged.
        inputs: The files of records, ledger and loaded manifest, which no output may replace.
        loaded: Whether it is from a manifest's file, which knows no ledger.
        known_plan: The plan, if it was drawn just now; else it is read from the manifest.
        drawn: What was drawn, if that was just now; else it is read from the manifest.
        known_manifest: What the document says, if it was drawn or read just now.
    """

    document: bytes
    entry: Entry | None = None
    from_ledger: bool = False
    inputs: Mapping[str, str | os.PathLike[str] | None] = field(default_factory=dict, repr=False)
    loaded: bool = False
    known_plan: PlanT | None = field(default=None, repr=False)
    drawn: Drawn | None = field(default=None, repr=False)
    known_manifest: Envelope | None = field(default=None, repr=False)

    # Whose releases these are.
    plan_model: ClassVar[type[Plan[Any, Any]]]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest written by `write_manifest`.

        Args:
            path: Where it is.

        Returns:
            The release; without a ledger's entry, as no file knows of one.

        Raises:
            DocumentError: Missing, damaged, not a manifest of this kind, or one that states less
                than what its plan loses. Whether its results follow is for `shoal.verify`.

        Guarantees: G-LEDGER.
        """
        data = documents.read_bytes(path, "manifest")
        return cls.of_file(path, data, strict(data, f"manifest {str(path)!r}"))

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], data: bytes, found: object) -> Self:
        """The release in a file, of which its bytes and what they say are read."""
        kind = found.get("kind") if isinstance(found, dict) else None
        if isinstance(kind, str) and kind not in cls.kinds():
            raise DocumentError(
                f"the manifest is of the kind {checks.shown(kind)}, not {' or '.join(cls.kinds())}",
                "give another file, or load it with the class of its kind",
            )
        # An absolute path, whatever the working folder is later.
        inputs = {"manifest": os.path.abspath(path)}
        known = cls.read(data, f"manifest {str(path)!r}", found)
        loaded = cls(data, loaded=True, inputs=inputs, known_manifest=known)
        # What cannot be read is refused here, not when somebody looks at it.
        _ = loaded.released
        loaded._part(loaded._check_loss)
        return loaded

    @classmethod
    def delivered(cls, done: Delivered, plan: PlanT, ledger: Any, **more: Any) -> Self:
        """What was delivered for a plan by a ledger, if there is one; `more` are attributes.

        What had been recorded before is read from its own manifest: another version of shoal, which
        chose other parameters, may have recorded it.
        """
        book = ledger.path if isinstance(ledger, Ledger) else ledger
        place = None if book is None else os.path.abspath(book)
        more["inputs"] = more.get("inputs", {}) | {"ledger": place}
        if done.from_ledger:
            return cls(done.document, done.entry, from_ledger=True, **more)
        more |= {"known_plan": plan, "drawn": done.drawn, "known_manifest": done.manifest}
        return cls(done.document, done.entry, **more)

    @cached_property
    def manifest(self) -> documents.Document:
        """Everything public about the release, as a JSON object."""
        return (self.known_manifest or self.read(self.document, "manifest")).to_document()

    @classmethod
    def read(cls, data: bytes, what: str, found: object = None) -> Envelope:
        """A manifest of this kind, from its bytes, and what `strict` found in them if it did."""
        return cls.plan_model.manifest_model.from_bytes(data, what, found)

    @classmethod
    def kinds(cls) -> tuple[str, ...]:
        """The kinds of plans whose releases these are, as manifests name them."""
        return cls.plan_model.kinds_of()

    @cached_property
    def plan(self) -> PlanT:
        """What was carried out."""
        if self.known_plan is not None:
            return self.known_plan
        return self._part(self._plan_of)

    @cached_property
    def released(self) -> Drawn:
        """What was drawn, as numbers and not as JSON."""
        if self.drawn is not None:
            return self.drawn
        found: Drawn = self._part(lambda found: self.plan.drawn_of(found["results"]))
        return found

    def _plan_of(self, found: documents.Document) -> PlanT:
        """The plan in a manifest."""
        plan: PlanT = self.plan_model.from_bytes(documents.canonical_bytes(found["plan"]))  # type: ignore[assignment]
        return plan

    def _check_loss(self, found: documents.Document) -> None:
        """Refuse a manifest that states less than what its plan loses, or two losses."""
        guarantee = found["guarantee"]
        loss = self.plan.exact_loss
        for name, exact in (("epsilon", loss.epsilon), ("delta", loss.delta)):
            stated = from_text(guarantee[name])
            shown = found["plan"]["claims"][name], guarantee[f"{name}_at_most"]
            if stated < exact or shown != (guarantee[name], round_up(stated)):
                raise damaged()

    @property
    def simulated(self) -> bool:
        """Whether the randomness was repeatable: such a release is not private."""
        return self._part(lambda found: bool(found["simulation"]))

    @property
    def epsilon(self) -> float:
        """The privacy loss of every unit, rounded upwards."""
        return self._part(lambda found: round_up(from_text(found["guarantee"]["epsilon"])))

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-differential privacy, rounded upwards."""
        return self._part(lambda found: round_up(from_text(found["guarantee"]["delta"])))

    @property
    def origin(self) -> str:
        """Where it is recorded, and whether it was drawn just now; nothing of a loaded one."""
        if self.entry is None:
            return "" if self.loaded else "not recorded in a ledger"
        named = f", named {self.entry.name!r}" if self.entry.name else ", without a name"
        ledger = os.path.basename(self.inputs.get("ledger") or "the ledger")
        place = f"entry {self.entry.number} of {os.fspath(ledger)}{named}"
        again = f"recorded on {self.entry.recorded_at[:10]}, nothing charged: "
        return f"{again}{place}" if self.from_ledger else place

    def write_manifest(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the manifest, byte for byte as recorded.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                records, ledger or the manifest that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        files.write_bytes(path, self.document, self.inputs, overwrite=overwrite)

    @np.errstate(all="ignore")
    def _part(self, read: Callable[[documents.Document], Found]) -> Found:
        """Something read from the manifest; DocumentError if its parts cannot be read."""
        try:
            return read(self.manifest)
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


def damaged() -> DocumentError:
    """The error of a manifest whose parts do not fit each other."""
    return DocumentError(
        "the manifest is damaged or was changed",
        "fetch it again, or have it delivered from the ledger",
    )
