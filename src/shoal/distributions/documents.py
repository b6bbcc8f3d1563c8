"""Documents of statistics of public counts: plan, record and manifest, each with its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from shoal import documents
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.results import drawn_from, results_of
from shoal.cells.facts.basis import Basis
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import Claims as PartClaims
from shoal.cells.facts.plan_file import CountsPart, DecisionPart, Records, Result, claims_of
from shoal.cells.facts.request import Request as PartRequest
from shoal.cells.shown.left_out import counted_out
from shoal.cells.shown.published import Published as PublishedPart
from shoal.distributions.estimates import Distributions
from shoal.distributions.parts import Drawn
from shoal.distributions.request import Request
from shoal.documents.model import Integers, Model
from shoal.release import envelope
from shoal.release import plan as plans
from shoal.release.envelope import CONFIDENCE, Keys, Text
from shoal.release.rows import RowPart


class Part(Model):
    """A part of a plan: what it asks, what was chosen for it, and what it costs and promises."""

    request: PartRequest
    decision: DecisionPart
    claims: PartClaims

    @classmethod
    def of_facts(cls, facts: Facts) -> Self:
        """Returns the document of a part."""
        decision = DecisionPart.of_decision(facts.decision)
        return cls(request=facts.request, decision=decision, claims=claims_of(facts))


class PlanDocument(plans.PlanDocument):
    """A plan of statistics of public counts."""

    schema_: Literal["shoal.distributions-plan/1"] = Field(
        default="shoal.distributions-plan/1", alias="schema"
    )
    request: Request
    records: Records | None
    counts: CountsPart
    parts: dict[str, Part]
    claims: plans.Claims


class Results(Model):
    """The numbers that were drawn for each part, and a row of what follows for each statistic."""

    parts: dict[str, tuple[Result, ...]]
    rows: tuple[RowPart, ...]


class Record(envelope.Record):
    """The record of a release."""

    kind: Literal["distributions"]
    records: Records
    plan: PlanDocument
    results: Results


class Published(envelope.Published):
    """Cells that readers see, with what was drawn for each part and what follows.

    Attributes:
        request: What was asked.
        parts: The means of values and of squares, as a release of each would be published.
        cells: The keys of these cells.
        users: The users of each cell.
        records: The records of each cell.
        counting: The same as far as they count: with `records_per_user` parts of records, too.
        left_out: How many cells each public rule leaves out.
        warnings: Where intervals may not cover.
        rows: A row for each statistic.
    """

    plan: None = None
    results: None = None
    request: Request
    parts: dict[str, PublishedPart]
    cells: Keys
    users: Integers
    records: Integers
    counting: tuple[float, ...]
    left_out: dict[str, int]
    warnings: tuple[Text, ...]
    rows: tuple[RowPart, ...]

    stated: ClassVar[str] = "moved weights and totals of cells"

    @classmethod
    def of_parts(cls, **entries: Any) -> Self:
        """Returns these entries with the rows that follow from them."""
        return cls(rows=(), **entries).again()

    @property
    def basis(self) -> Basis:
        """The public numbers of the first part, which knows bounds, cells and rules."""
        return next(iter(self.parts.values())).basis

    @property
    def sentences(self) -> list[str]:
        """How many cells public rules leave out, in words."""
        return [*counted_out(self.basis.request, self.left_out)]

    @property
    def numbers(self) -> Distributions:
        """What is said of every cell."""
        drawn = {name: part.numbers for name, part in self.parts.items()}
        return Distributions(self.request, Drawn(**drawn), np.array(self.counting))

    @property
    def size(self) -> float:
        """The largest number that the bounds allow."""
        return max(part.size for part in self.parts.values()) * max(1.0, *self.counting)

    def again(self) -> Self:
        """Returns the same, computed from what was drawn."""
        parts = {name: part.again() for name, part in self.parts.items()}
        return self.model_copy(update={"parts": parts, "rows": rows_of(self.numbers)})


class Manifest(envelope.Manifest):
    """What everybody may have of a release."""

    kind: Literal["distributions"]
    records: Records
    results: Published


def rows_of(numbers: Distributions) -> tuple[RowPart, ...]:
    """Returns the rows of a release as documents hold them."""
    return tuple(map(RowPart.of_row, numbers.rows(CONFIDENCE)))


def results_of_parts(
    plan: Mapping[str, Facts], drawn: Drawn, numbers: Distributions
) -> documents.Document:
    """Returns what was drawn and what follows from it, as JSON."""
    parts = {name: results_of(facts, _of(drawn, name)) for name, facts in plan.items()}
    return {"parts": parts, "rows": [each.to_document() for each in rows_of(numbers)]}


def _of(drawn: Drawn, name: str) -> Estimates:
    """Returns what was drawn of a part that was planned."""
    found: Estimates = getattr(drawn, name)
    return found


def drawn_of_parts(plan: Mapping[str, Facts], results: Mapping[str, Any]) -> Drawn:
    """Returns the numbers that were drawn, from results as JSON."""
    stated = results["parts"]
    if stated.keys() != plan.keys():
        raise LookupError
    return Drawn(**{name: drawn_from(facts, stated[name]) for name, facts in plan.items()})
