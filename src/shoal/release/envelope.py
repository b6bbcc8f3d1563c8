"""Defines the parts that records and manifests of all families have in common."""

from __future__ import annotations

import hashlib
import platform
import secrets
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Literal, get_args

import pyarrow as pa
from pydantic import BeforeValidator, Field, PlainSerializer

from shoal import documents
from shoal.data import keys
from shoal.data.value_lattice import Bounds
from shoal.documents.model import Model, is_none
from shoal.errors import DocumentError
from shoal.privacy.budget import from_text
from shoal.privacy.unit import Relation, Unit

RECORD = "shoal.record/2"
MANIFEST = "shoal.manifest/9"
# The first line of a document says for whom it is.
Inside = Literal["custodian and auditors: it has rows of users or units, without names"]
Everybody = Literal["everybody: nothing in it is about a single user or unit"]
INSIDE: Inside = get_args(Inside)[0]
EVERYBODY: Everybody = get_args(Everybody)[0]
CONFIDENCE = 0.95
# The fewest units of a kind that a manifest names: fewer could be told apart.
FEWEST_ALIKE = 10
_SALT = 32  # bytes
Exact = Annotated[str, BeforeValidator(lambda each: str(from_text(each)))]
Text = Annotated[str, Field(max_length=1000)]
# Public bounds of values, as two numbers.
TwoBounds = Annotated[
    tuple[float, float],
    BeforeValidator(lambda each: (lambda found: (found.lo, found.hi))(Bounds.of(each))),
]
# Columns that make cells, as documents hold them.
Keys = Annotated[
    pa.Table,
    BeforeValidator(lambda each: each if isinstance(each, pa.Table) else keys.from_document(each)),
    PlainSerializer(keys.to_document),
]


class Protected(Model):
    """The part of a unit that is protected: see `shoal.privacy.unit.Unit`."""

    counts: Relation
    period: Text | None = None


class UnitPart(Protected):
    """The unit whose loss a release states."""

    name: Text
    records: Literal["all", "one", "declared"]


class Guarantee(Model):
    """The guarantee of a release, and the periods on which its charge is booked."""

    privacy: Text
    unit: UnitPart
    neighbours: Text
    periods: tuple[Text, ...] | None = Field(default=None, exclude_if=is_none)
    epsilon: Exact
    epsilon_at_most: float
    delta: Exact
    delta_at_most: float


class Versions(Model):
    """The versions of the programs that made the release."""

    shoal: Text
    opendp: Text
    python: Text


class Envelope(Model):
    """The entries of both documents of a release; families define `records` and `results`."""

    kind: Text
    name: Text
    records: Any
    simulation: bool
    guarantee: Guarantee
    results: Any
    confidence: float
    versions: Versions


class Record(Envelope):
    """The whole of a release, with rows of users but not their names: for custodian and auditors.

    The random `salt` keeps its digest, which everybody may have, from telling which rows it has.
    """

    audience: Inside | Everybody
    schema_: Literal["shoal.record/2"] = Field(alias="schema")
    request: Text
    salt: Text
    plan: Any


def needs_record() -> DocumentError:
    """Returns the error for a manifest where rows of users are needed."""
    return DocumentError(
        "a manifest has no rows of users, which this needs",
        "give the record, which the custodian has in the ledger: shoal show --ledger LEDGER "
        "--name NAME --record FILE",
    )


class Published(Model):
    """The results of a manifest, with the whole plan if every row of that stands for many units."""

    plan: Any = None
    results: Any = None
    # The words for those results that only rows of users or units can prove.
    stated: ClassVar[str] = "what follows from single users"

    @property
    def size(self) -> float:
        """The size of its numbers; differences far below it are rounding."""
        return 0.0

    def plan_document(self) -> documents.Document:
        """Returns the plan's document, which this holds or which follows from it."""
        if self.plan is None:
            raise needs_record()
        return dict(self.plan)

    def again(self) -> Published:
        """Returns these results, computed again from drawn numbers as far as no plan is needed."""
        return self


class Manifest(Envelope):
    """The part of a release that everybody may have: nothing about a single user or unit."""

    audience: Everybody
    results: Published
    schema_: Literal["shoal.manifest/9"] = Field(alias="schema")
    record_sha256: Text


def manifest_of(record: bytes, said: Record, results: Published) -> documents.Document:
    """Returns the manifest of a record's bytes and of what the family publishes of it."""
    names = Envelope.model_fields.keys()
    common = {name: each for name, each in said.to_document().items() if name in names}
    digest = hashlib.sha256(record).hexdigest()
    changed = {
        "audience": EVERYBODY,
        "schema": MANIFEST,
        "record_sha256": digest,
        "results": results.to_document(),
    }
    return common | changed


def enveloped(
    plan: Any,
    records: Mapping[str, Any],
    key: str,
    unit: Unit,
    name: str,
    results: Any,
    *,
    simulated: bool,
) -> documents.Document:
    """Returns the record of what was drawn, as a JSON object."""
    return {
        "audience": plan.audience,
        "schema": RECORD,
        # A simulation is the same each time.
        "salt": "0" * 2 * _SALT if simulated else secrets.token_hex(_SALT),
        "kind": plan.kind,
        "name": name,
        "records": dict(records),
        "request": documents.digest({"question": key, "name": name}),
        "simulation": simulated,
        "guarantee": plan.guarantee(unit),
        "plan": plan.to_document(),
        "results": results,
        "confidence": CONFIDENCE,
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }
