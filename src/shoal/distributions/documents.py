"""Documents of statistics of public counts: plan, record and manifest, each with its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from shoal import documents
from shoal.arrays import Ints
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.results import drawn_from
from shoal.cells.estimates.results import results_of as results_of_means
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import Claims as PartClaims
from shoal.cells.facts.plan_file import CountsPart, DecisionPart, Records, Result, claims_of
from shoal.cells.facts.request import Request as PartRequest
from shoal.cells.shown.left_out import counted_out
from shoal.cells.shown.published import Published as PublishedPart
from shoal.cells.shown.published import for_everybody
from shoal.data.counts import Counts
from shoal.data.value_lattice import Lattice
from shoal.distributions.bin_estimates import Bins
from shoal.distributions.bins import (
    AllCells,
    DrawnBins,
    edges_of,
    far_apart,
    number_of_bins,
    smooth,
)
from shoal.distributions.estimates import Distributions
from shoal.distributions.parts import Drawn, narrowed
from shoal.distributions.request import Request
from shoal.distributions.units import BITS, Units
from shoal.documents.model import Integers, Model, Numbers
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


class UnitsPart(Model):
    """The plan of bins: see `shoal.distributions.units.Units`."""

    units: Integers
    vote: int
    rounds: int
    fullest: int
    bins: int

    @classmethod
    def of_units(cls, units: Units) -> Self:
        """Returns the document of units."""
        return cls(**{name: getattr(units, name) for name in cls.model_fields})

    def units_of(self, counts: Counts, cells: Ints) -> Units:
        """Returns the units of the members of these cells, checked."""
        found = Units(counts, cells, **dict(self))
        found.check()
        return found


class DrawnPart(Model):
    """The bins that were drawn: see `shoal.distributions.bins.DrawnBins`."""

    rounds: tuple[tuple[int, ...], ...]
    fullest: tuple[int, ...]
    edges: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]


class BinsPart(DrawnPart):
    """The bins of cells for readers.

    Attributes:
        total: The units of each planned cell, which its bins add up to.
        moved: The part of each cell's weight that caps and rounding moved.
        few: Whether no common distribution was found as users are too few.
        far: Whether cells lie far apart.
    """

    total: Integers
    moved: Numbers
    few: bool
    far: bool

    @classmethod
    def of_drawn(cls, units: Units, drawn: DrawnBins) -> Self:
        """Returns what everybody may have of bins that were drawn."""
        return cls(
            rounds=tuple(map(tuple, drawn.rounds)),
            fullest=tuple(drawn.fullest),
            edges=tuple(drawn.edges),
            rows=tuple(map(tuple, drawn.rows)),
            total=units.total,
            moved=units.moved_for_readers,
            few=units.bins > 1 and not units.rounds,
            far=far_apart(units, drawn.rounds, drawn.fullest),
        )

    def bins(self, lattice: Lattice) -> Bins:
        """Returns the parts of each cell in bins, in the value's unit."""
        total = np.maximum(self.total, 1)
        top = 1 << lattice.bits
        ticks = np.array([0, *self.edges, top])
        width = float(lattice.bounds.width)
        edges = lattice.bounds.lo + ticks / top * width
        rows = np.array(self.rows, dtype=np.float64).reshape(len(total), -1)
        parts = rows / total[:, None]
        noise = 2.0**BITS / total
        found = None
        if self.rounds or self.few:
            rounds = [[*each] for each in self.rounds]
            found = smooth(rounds, self.edges, AllCells.of_rows(rows), lattice.bits)
        half_tick = width / 2 / top
        return Bins(parts, noise, self.moved, edges, half_tick, found, self.far)


class PlanDocument(plans.PlanDocument):
    """A plan of statistics of public counts."""

    schema_: Literal["shoal.distributions-plan/2"] = Field(
        default="shoal.distributions-plan/2", alias="schema"
    )
    request: Request
    records: Records | None
    counts: CountsPart
    parts: dict[str, Part]
    bins: UnitsPart | None
    claims: plans.Claims


class Results(Model):
    """The numbers that were drawn for each part, and a row of what follows for each statistic."""

    parts: dict[str, tuple[Result, ...]]
    bins: DrawnPart | None
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
        bins: The bins of cells, if any were drawn.
        cells: The keys of these cells.
        users: The users of each cell.
        records: The records of each cell, as far as they count.
        left_out: How many cells each public rule leaves out.
        warnings: Where intervals may not cover.
        rows: A row for each statistic.
    """

    plan: None = None
    results: None = None
    request: Request
    parts: dict[str, PublishedPart]
    bins: BinsPart | None
    cells: Keys
    users: Integers
    records: Integers
    left_out: dict[str, int]
    warnings: tuple[Text, ...]
    rows: tuple[RowPart, ...]

    stated: ClassVar[str] = "moved weights and totals of cells"

    @classmethod
    def of_parts(cls, **entries: Any) -> Self:
        """Returns these entries with the rows that follow from them."""
        return cls(rows=(), **entries).again()

    @property
    def sentences(self) -> list[str]:
        """How many cells public rules leave out, in words."""
        return [*counted_out(self.request, self.left_out)]

    @property
    def numbers(self) -> Distributions:
        """What is said of every cell."""
        drawn = drawn_means({name: part.numbers for name, part in self.parts.items()})
        bins = None if self.bins is None else self.bins.bins(self.request.lattice)
        return Distributions(self.request, drawn, self.records, bins)

    @property
    def size(self) -> float:
        """The largest number that the bounds allow."""
        return largest_number(self.request, float(self.records.max()))

    def again(self) -> Self:
        """Returns the same, computed from what was drawn."""
        parts = {**self.parts}
        if "squares" in parts:
            basis = narrowed(parts["mean"].numbers, parts["squares"].numbers).basis
            parts["squares"] = parts["squares"].model_copy(update={"basis": basis})
        parts = {name: part.again() for name, part in parts.items()}
        return self.model_copy(update={"parts": parts, "rows": rows_of(self.numbers)})


class Manifest(envelope.Manifest):
    """What everybody may have of a release."""

    kind: Literal["distributions"]
    records: Records
    results: Published


def largest_number(request: Request, records: float) -> float:
    """Returns a bound on all numbers of cells of at most so many records."""
    low, high = request.bounds
    largest = max((high - low) ** 2, abs(low), abs(high))
    return largest * max(records, 1.0)


def rows_of(numbers: Distributions) -> tuple[RowPart, ...]:
    """Returns the rows of a release as documents hold them."""
    return tuple(map(RowPart.of_row, numbers.rows(CONFIDENCE)))


def drawn_means(parts: Mapping[str, Estimates]) -> Drawn:
    """Returns what was drawn of means, by the names of the parts."""
    return Drawn(parts.get("mean"), parts.get("squares"))


def results_of(
    plan: Mapping[str, Facts], drawn: Drawn, numbers: Distributions
) -> documents.Document:
    """Returns what was drawn and what follows from it, as JSON."""
    of_means = {"mean": drawn.mean, "squares": drawn.squares}
    parts = {
        name: results_of_means(facts, found)
        for name, facts in plan.items()
        if (found := of_means[name]) is not None
    }
    return {
        "parts": parts,
        "bins": None if drawn.bins is None else drawn.bins._asdict(),
        "rows": [each.to_document() for each in rows_of(numbers)],
    }


def drawn_of(
    plan: Mapping[str, Facts], units: Units | None, request: Request, results: Mapping[str, Any]
) -> Drawn:
    """Returns the numbers that were drawn, from results as JSON; LookupError if they do not fit."""
    stated = results["parts"]
    bins = results["bins"]
    if stated.keys() != plan.keys() or (bins is None) != (units is None):
        raise LookupError
    of_means = {name: drawn_from(facts, stated[name]) for name, facts in plan.items()}
    drawn = drawn_means(of_means)
    if drawn.mean is not None and drawn.squares is not None:
        published = for_everybody(plan["mean"], drawn.mean)
        drawn = drawn._replace(squares=narrowed(published, drawn.squares))
    if units is None:
        return drawn
    found = DrawnBins(*([*bins[name]] for name in DrawnBins._fields))
    if len(found.fullest) != (units.fullest > 0):
        raise LookupError
    number = number_of_bins(units, found.rounds, found.fullest)
    wanted = edges_of(found.rounds, request.thresholds, number, request.tick_bits)
    sums = [sum(row) for row in found.rows]
    many = {len(row) for row in found.rows}
    votes = {sum(each) for each in found.rounds}
    if (
        len(found.rounds) != units.rounds
        or found.edges != wanted
        or many != {len(wanted) + 1}
        or sums != units.total.tolist()
        or not votes <= {units.votes}
    ):
        raise LookupError
    return drawn._replace(bins=found)
