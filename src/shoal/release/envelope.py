"""What manifests of all families have in common, as models."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from shoal import documents
from shoal.documents.model import Model
from shoal.privacy.budget import from_text
from shoal.privacy.unit import Relation, Unit

MANIFEST = "shoal.manifest/7"
CONFIDENCE = 0.95
Exact = Annotated[str, BeforeValidator(lambda each: str(from_text(each)))]
Text = Annotated[str, Field(max_length=1000)]


class Protected(Model):
    """What of a unit is protected: see `shoal.privacy.unit.Unit`."""

    counts: Relation
    period: Text | None = None


class UnitPart(Protected):
    """Whose loss it is."""

    name: Text
    records: Literal["all", "one"]


class Guarantee(Model):
    """What a release guarantees."""

    privacy: Text
    unit: UnitPart
    neighbours: Text
    epsilon: Exact
    epsilon_at_most: float
    delta: Exact
    delta_at_most: float


class Versions(Model):
    """What made the release."""

    shoal: Text
    opendp: Text
    python: Text


class Envelope(Model):
    """Everything public about a release; a family says what its records, plan and results are."""

    schema_: Literal["shoal.manifest/7"] = Field(alias="schema")
    kind: Text
    name: Text
    records: Any
    request: Text
    simulation: bool
    guarantee: Guarantee
    plan: Any
    results: Any
    confidence: float
    versions: Versions


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
    """What was drawn, as JSON, and all that is public about it together."""
    return {
        "schema": MANIFEST,
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
