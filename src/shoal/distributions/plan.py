"""Plans of sums, standard deviations and distributions of public counts, and their releases."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa

from shoal import documents
from shoal.cells.comparisons.advice import Advice, Judged, warn_of_worth
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import described, met
from shoal.cells.public_counts import Counted, PublicPlan, check_period
from shoal.cells.shown.published import Published as PublishedPart
from shoal.checks import check_confidence
from shoal.data.aggregate import Tally
from shoal.data.counts import Counts
from shoal.data.records import Measure, Records
from shoal.data.value_lattice import Bounds
from shoal.distributions import shown
from shoal.distributions.advice import advise, unreliable
from shoal.distributions.bin_estimates import Bins
from shoal.distributions.bins import Place, draw_bins
from shoal.distributions.documents import (
    BinsPart,
    Manifest,
    Part,
    PlanDocument,
    Published,
    Record,
    UnitsPart,
    drawn_of,
    largest_number,
    results_of,
)
from shoal.distributions.estimates import Distributions
from shoal.distributions.parts import (
    Drawn,
    Parts,
    check_squares,
    draw_means,
    planned_cells,
    plans_of,
    units_of,
)
from shoal.distributions.request import Request
from shoal.errors import InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import TextTable
from shoal.privacy.accounting import Step, account
from shoal.privacy.budget import Amount, Budget
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.progress import Progress
from shoal.release import plan as plans
from shoal.release import release
from shoal.release.envelope import CONFIDENCE
from shoal.release.rows import Row
from shoal.release.statistics import Statistic


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Parts, PublicPlan[Drawn], Tabular):
    """A plan of sums, standard deviations or distributions. `shoal.plan` makes one.

    Source: docs/theory/cells.md#standard-deviations.

    Attributes:
        source: Public description of the records, if known.

    Guarantees: G-LOSS, G-PURE.
    """

    source: Mapping[str, Any] | None = None

    family = "cells"
    kind = "distributions"
    document_model = PlanDocument
    claims_model = plans.Claims
    record_model = Record
    manifest_model = Manifest

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of all parts."""
        steps = [step for facts in self.planned.values() for step in facts.steps]
        return steps if self.units is None else [*steps, *self.units.steps]

    @property
    def exact_loss(self) -> Budget:
        """The losses of the parts, which add up."""
        losses = [facts.exact_loss for facts in self.planned.values()]
        if self.units is not None:
            losses.append(Budget(account(self.units.steps, Fraction(0)).epsilon))
        nothing = Fraction(0)
        epsilon = sum((each.epsilon for each in losses), nothing)
        return Budget(epsilon, sum((each.delta for each in losses), nothing))

    @property
    def of_cells(self) -> list[Facts]:
        """The plan of each part."""
        return [*self.planned.values()]

    @property
    def unreliable(self) -> list[str]:
        """The statistics of which likely no cell will be reliable, as far as that can be said."""
        return unreliable(self)

    @property
    def parts(self) -> Mapping[str, Any]:
        """Request, columns, counts, and what was chosen for each part."""
        return {
            "request": self.request,
            "records": None if self.source is None else described(self.source),
            "counts": self.counts,
            "parts": {name: Part.of_facts(facts) for name, facts in self.planned.items()},
            "bins": None if self.units is None else UnitsPart.of_units(self.units),
        }

    @property
    def size(self) -> float:
        """A bound on the absolute size of the numbers."""
        return largest_number(self.request, float(self.counts.totals.max()))

    def warnings(self) -> list[str]:
        """Sentences that say where its typical errors or its intervals may not hold."""
        return [*shown.warnings_of(self)]

    @classmethod
    def of_document(cls, document: Any) -> Self:
        """Returns the plan of a document; refuses one whose parts cost more than was asked."""
        request = document.request
        counts = document.counts
        has_bins = document.bins is not None
        wants_bins = "bins" in request.parts
        if document.parts.keys() != {*request.of_means} or has_bins != wants_bins:
            raise LookupError
        check_squares(counts, request)
        planned = {}
        cells = len(planned_cells(counts, request))
        for name in request.of_means:
            decision = document.parts[name].decision.decision(counts.n_users)
            of_part = request.of_part(name, cells)
            planned[name] = met(Facts(counts, of_part, decision))
        source = None if document.records is None else document.records.to_document()
        check_period(source, counts)
        units = document.bins and document.bins.units_of(counts, planned_cells(counts, request))
        return cls(counts, request, planned, units, source)

    def _text(self) -> TextTable:
        return shown.plan_text(self, self.loss, self.protected)

    def __repr__(self) -> str:
        """One line."""
        return f"<Plan, {shown.summary(self, self.loss)}>"

    def table(self) -> pa.Table:
        """One row for each cell and statistic: keys, status, counts, and the error to be expected.

        Returns:
            `typical_error`, and of means and sums `typical_half_width`, half of the 95% interval,
            are for values with a standard deviation of a sixth of the bounds' width, and users who
            are about alike. Nothing is read for them.
        """
        return shown.plan_table(self)

    def advise(self, progress: Progress | None = None) -> Advice:
        """Changes that would make more cells reliable: losses, fewer records, coarser labels.

        Args:
            progress: Wraps the choices, to show how far they are; by default a bar on a terminal.

        Returns:
            In how many cells means, and what follows from bins, will be reliable as planned and
            after each change: see `shoal.cells.plan.Plan.advise`.

        Raises:
            InputError: Thresholds are given, or users are few, and the mean is not asked for.
        """
        return advise(self, progress)

    def release(
        self,
        records: Records,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        privacy_unit: str = "",
        before: Callable[[Judged], None] | None = warn_of_worth,
    ) -> Release:
        """Reads the values, adds exact noise, records result and charge, and delivers.

        The same plan and name again deliver what the ledger holds and cost nothing.

        Args:
            records: The records from which the plan's counts were counted.
            ledger: The data set's ledger, which `shoal.Ledger.create` makes; needed unless `noise`
                is a simulation.
            name: What the release is about, such as a period; a release by another name draws new
                noise and is charged again.
            noise: `shoal.Simulated(seed)` for studies; the release is marked and not private.
            privacy_unit: What a user is, in a word; by default the user column's name.
            before: A function that is called with the plan before values are read, as in
                `shoal.cells.plan.Plan.release`.

        Returns:
            The noisy numbers with their errors, and the manifest.

        Raises:
            InputError: No ledger, or one with simulated noise or of another privacy unit.
            DataError: The records do not match the plan's bounds, counts or columns.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REPLAY, G-REFUSE.
        """

        done, plan, inputs = self.carried_out(
            records,
            before,
            ledger=ledger,
            name=name,
            noise=noise,
            privacy_unit=privacy_unit,
        )
        return Release.delivered(done, plan, ledger, inputs=inputs)

    def draw(self, private: Records, noise: Noise) -> Drawn:
        """Reads the values once, and draws all numbers."""
        self.check_lattice(private)
        drawn = Drawn()
        if self.planned:
            counts, aggregate = private.aggregate(squares="squares" in self.planned)
            self.check_counts(counts)
            drawn = draw_means(self.planned, aggregate, noise)
        if self.units is None:
            return drawn
        place = Place(self.request.limits, self.request.thresholds)
        bits = self.request.tick_bits

        def read(measure: Measure) -> Tally:
            """Counts records by a measure."""
            counts, found = private.tally(measure)
            self.check_counts(counts)
            return found

        return drawn._replace(bins=draw_bins(self.units, place, bits, read, noise))

    def results(self, drawn: Drawn) -> documents.Document:
        """What was drawn for each part, and what follows from it."""
        return results_of(self.planned, drawn, self.numbers(drawn))

    def published(self, drawn: Drawn) -> Published:
        """Cells that readers see, what was drawn, and what follows."""
        parts = {
            name: PublishedPart.of_plan(each, getattr(drawn, name))
            for name, each in self.planned.items()
        }
        return Published.of_parts(
            request=self.request,
            parts=parts,
            bins=self._bins(drawn),
            cells=self.shown_cells,
            users=self.counts.users_per_cell[self.shown],
            records=self.counts.records[self.shown],
            left_out=self.left_out,
            warnings=tuple(shown.warnings_of_release(self, parts)),
        )

    def drawn_of(self, results: Any) -> Drawn:
        """Reads the whole numbers that were drawn."""
        return drawn_of(self.planned, self.units, self.request, results)

    def numbers(self, drawn: Drawn) -> Distributions:
        """What is said of every cell."""
        found = self._bins(drawn)
        bins = None if found is None else found.bins(self.request.lattice)
        records = self.counts.records[self.shown]
        return Distributions(self.request, drawn, records, bins)

    def _bins(self, drawn: Drawn) -> BinsPart | None:
        """The bins for everybody, if any were drawn."""
        if self.units is None or drawn.bins is None:
            return None
        return BinsPart.of_drawn(self.units, drawn.bins)


@dataclass(frozen=True, eq=False)
class Release(release.BinRelease[Plan, Drawn]):
    """A release of sums, standard deviations or distributions, and its manifest.

    Guarantees: G-LOSS, G-COVERAGE.
    """

    plan_model = Plan

    @cached_property
    def published(self) -> Published:
        """What everybody may have of it."""
        found: Published = super().published
        return found

    @property
    def numbers(self) -> Distributions:
        """What is said of every cell."""
        return self.published.numbers

    @property
    def cells(self) -> pa.Table:
        """The keys of the cells that readers see."""
        return self.published.cells

    def _drawn(self) -> Drawn:
        """What was drawn, in the record or in the manifest."""
        if isinstance(self.said, Manifest):
            return self.numbers.drawn
        return super()._drawn()

    def meaning(self) -> list[str]:
        """What the table's words mean, and what a user counts for, in sentences."""
        rows = self.rows(CONFIDENCE)
        return [*shown.meaning(self.published, rows, self._user, self._most_records)]

    @property
    def _user(self) -> str:
        """What one user is called."""
        return self.said.guarantee.unit.name

    @property
    def _most_records(self) -> int | None:
        """For how many of its records a user counts."""
        most: int | None = self.said.records.records_per_user
        return most

    def _text(self, confidence: float = CONFIDENCE, *, origin: bool = True) -> TextTable:
        rows = self.rows(check_confidence(confidence))
        notes = [*shown.meaning(self.published, rows, self._user, self._most_records)]
        head = self.head(origin=origin)
        return shown.release_text(self.published, rows, head, notes)

    def warnings(self) -> list[str]:
        """Sentences that a reader should know before relying on the numbers."""
        return [*self.published.warnings]

    @np.errstate(all="ignore")
    def table(self, confidence: float = CONFIDENCE, *, all: bool = False) -> pa.Table:
        """One row for each cell and statistic: keys, status, counts, value and interval.

        Args:
            confidence: Probability that an interval covers; changing it costs nothing.
            all: Whether the number with its noise alone has a column too, `noisy_value`.

        Returns:
            The `source` of a value is `own`, or `common` where it is the number that all cells have
            in common, moved towards the cell's own.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
        """
        rows = self.rows(check_confidence(confidence))
        return self.table_of(rows, all=all)

    def bins(self) -> list[Statistic]:
        """The bins of the histogram, as shares between two limits."""
        edges = self._checked_bins().edges.tolist()
        return [
            Statistic(f"share_between({low:g}, {high:g})", "bin", (low, high))
            for low, high in pairwise(edges)
        ]

    def rows(self, confidence: float) -> list[Row]:
        """Every statistic that was asked for, in its order."""
        return [*self.numbers.rows(confidence)]

    def of_values(self, kinds: Sequence[Statistic], confidence: float) -> list[Row]:
        """Statistics that follow from bins, if any were drawn."""
        self._checked_bins()
        return [self.numbers.of_bins(each, confidence) for each in kinds]

    def _checked_bins(self) -> Bins:
        """The bins, or the error that there are none."""
        if self.numbers.bins is None:
            raise release.no_bins()
        return self.numbers.bins

    def table_of(self, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
        """Statistics as rows of a table."""
        return shown.release_table(self.published, rows, all=all)


def plan(
    counts: Counts | Records,
    *,
    statistics: Sequence[str],
    epsilon: Amount | None = None,
    bounds: Bounds | tuple[float, float] | None = None,
    delta: Amount = 0,
    objective: str | None = None,
    range: str | None = None,
    min_users: int | None = None,
    min_records: int = 1,
    tick_bits: int | None = None,
    source: Mapping[str, Any] | None = None,
    records_per_user: int | None = None,
) -> Plan:
    """Plans statistics of public counts beside means: see `shoal.plan`."""
    if epsilon is None:
        raise InputError("no epsilon is given", "give the privacy loss of a user, such as 1")
    counted = Counted.of(counts, bounds, tick_bits, source, records_per_user)
    asked = {} if min_users is None else {"min_users": min_users}
    request = Request.of(
        bounds=counted.bounds,
        tick_bits=counted.tick_bits,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        objective=objective,
        range=range,
        min_records=min_records,
        **asked,
    )
    planned = plans_of(counted.counts, request)
    units = units_of(counted.counts, request)
    return Plan(counted.counts, request, planned, units, counted.source)
