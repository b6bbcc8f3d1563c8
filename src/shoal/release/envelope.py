"""What manifests of all families have in common, as models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from shoal.documents.model import Model
from shoal.privacy.budget import from_text

MANIFEST = "shoal.manifest/6"
Exact = Annotated[str, BeforeValidator(lambda each: str(from_text(each)))]
Text = Annotated[str, Field(max_length=1000)]


class Unit(Model):
    """Whose loss it is."""

    name: Text
    relation: Literal["values"]
    records: Literal["all", "one"]


class Guarantee(Model):
    """What a release guarantees."""

    privacy: Text
    unit: Unit
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

    schema_: Literal["shoal.manifest/6"] = Field(alias="schema")
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
