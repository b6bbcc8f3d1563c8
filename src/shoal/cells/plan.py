"""Offers plans of cells that can be printed, saved, loaded and carried out, and their releases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shoal import checks, documents
from shoal.arrays import Floats
from shoal.cells.comparisons.advice import Advice, Judged, advise, warn_of_worth
from shoal.cells.comparisons.assumptions import Distribution
from shoal.cells.comparisons.comparison import Choice, Comparison
from shoal.cells.comparisons.frontier import frontier
from shoal.cells.comparisons.simulation import compare_methods
from shoal.cells.estimates.differences import Difference, difference_of
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.intervals import judges_reliability
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.results import drawn_from, results_of
from shoal.cells.estimates.typical_error import forecast, some_reliable, typical_errors
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import (
    Claims,
    PlanDocument,
    Record,
    claims_of,
    met,
    parts_of,
)
from shoal.cells.facts.request import FEWEST_USERS, Request
from shoal.cells.mechanisms.cell_statistics import Mean, Variance
from shoal.cells.planners.planner import make_plan
from shoal.cells.public_counts import Counted, PublicPlan, check_period
from shoal.cells.shown import arrow_tables
from shoal.cells.shown.plan_text import (
    cell_title,
    clamped,
    describe,
    labels,
    legend,
    limited,
    summary,
)
from shoal.cells.shown.plan_warnings import assumption, plan_warnings
from shoal.cells.shown.published import Manifest, Published
from shoal.checks import check_confidence
from shoal.data import keys
from shoal.data.counts import Counts
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds
from shoal.errors import InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import SHOWN, TextTable, counted, texts_of
from shoal.privacy.budget import Amount
from shoal.privacy.events import event_of
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.progress import Progress
from shoal.release import envelope, release
from shoal.release.envelope import CONFIDENCE
from shoal.release.rows import COMMON, RELIABLE

if TYPE_CHECKING:
    import pyarrow as pa
    from dp_accounting.dp_event import DpEvent

_NAMES = (
    "advise",
    "bounds",
    "compare",
    "counts",
    "delta",
    "epsilon",
    "forecast",
    "frontier",
    "method",
    "release",
    "save",
    "status",
    "table",
    "to_pandas",
    "typical_error",
    "worst_case_error",
)

_BRACKETS = f"(in brackets) {COMMON} if it has one; of fewer than three cells, the cell's own"


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Facts, PublicPlan[Estimates], Tabular):
    """A plan that can be carried out. `shoal.plan` makes one; `Facts` lists its facts.

    Source: docs/theory/privacy.md#accounting; docs/theory/cells.md#limits-of-means.

    Attributes:
        source: Public description of the records (columns and cell rules), if known.

    Guarantees: G-LOSS, G-BOUND, G-PURE.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c", "a"], [1, 1, 1, 2], [2, 2, 4, 9])
        >>> known = {"bounds": (0, 10), "epsilon": 8.0, "objective": "worst_case"}
        >>> plan = shoal.plan(counts, min_users=1, **known)
        >>> plan.epsilon <= 8.0, plan.worst_case_error.round(1).tolist()
        (True, [0.6, 2.5])
        >>> shoal.plan(counts, **known).status
        ('planned', 'too few users')
    """

    source: Mapping[str, Any] | None = None

    family = "cells"
    kind = "cells"
    document_model = PlanDocument
    claims_model = Claims
    record_model = Record
    manifest_model = Manifest

    def _text(self) -> TextTable:
        return describe(self, self.protected, self.warnings())

    def warnings(self) -> list[str]:
        """Sentences that say where its typical errors or its intervals may not hold."""
        return plan_warnings(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Plan, {summary(self)}>"

    def __dir__(self) -> list[str]:
        """The names that a custodian needs."""
        return [*_NAMES]

    def table(self, *, left_out: bool = False) -> pa.Table:
        """One row for each cell and statistic: keys, status, counts, and both errors.

        Args:
            left_out: Whether cells that `min_users` or `min_records` leave out have a row too, with
                their keys and the reason, and without counts.

        Returns:
            A table with errors in the statistic's unit. For means, `typical_error` and
            `typical_half_width`, half of the 95% interval, hold for values with a standard
            deviation of a sixth of the bounds' width. `certified_error` is the worst-case error,
            and no plan beats `lower_bound`. Unknown numbers are null, as are those of left-out
            cells.
        """
        return arrow_tables.plan_table(self, left_out=left_out)

    def typical_error(self, sd: float | None = None) -> Floats:
        """The mean absolute error that each planned cell will typically have: no value is read.

        It comes from simulated releases on the plan's own counts, with normal values and users who
        are about alike (`shoal.cells.estimates.typical_error`). It is no certificate: with users
        unlike the others, or with long tails, errors are larger.

        Args:
            sd: Standard deviation of the values of all cells together, in their unit, if somebody
                can say it without looking at them. It is at most half of the width, as no values
                within the bounds have a larger one.

        Returns:
            Errors for values with this standard deviation, in their unit, shape (planned cells,).
            Without `sd` they are parts of the standard deviation, which is then taken to be a sixth
            of the width.

        Raises:
            InputError: The plan releases other statistics than the mean, or an unusable sd.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [4] * 90)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=4)
            >>> plan.typical_error().shape, bool((plan.typical_error() < 1).all())
            ((3,), True)
        """
        deviation = checks.optional(sd, checks.number, "sd", above=0, example=10)
        if deviation is None:
            return typical_errors(self)
        if deviation > self.width / 2:
            raise InputError(
                f"sd={deviation:g} is too large for bounds that are {self.width:g} apart",
                f"give the standard deviation of the values, at most {self.width / 2:g}",
            )
        return typical_errors(self, deviation / self.width) * deviation

    def compare(
        self,
        methods: Sequence[str | Choice] | None = None,
        *,
        assumed: Distribution | None = None,
        repetitions: int | None = None,
        progress: Progress | None = None,
    ) -> Comparison[Facts]:
        """Compares this plan's method, all others and simple estimators by their typical errors.

        It is `shoal.compare` on this plan's counts, bounds and epsilon, for means of all cells.

        Args:
            methods: Names, or names with settings; by default all methods but linear programs.
            assumed: The assumed distribution of the values.
            repetitions: Number of data sets to draw.
            progress: Wraps the plans, then the repetitions, to show how far they are; by default a
                bar on a terminal.

        Returns:
            Errors of each method, the smallest first.

        Raises:
            InputError: The plan releases other statistics than the mean, or an unusable argument.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(range(90), [0, 1, 2] * 30, [4] * 90)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=4)
            >>> found = plan.compare(["balanced", "midpoint"], repetitions=20)
            >>> found.table()["method"].to_pylist()
            ['balanced', 'midpoint']
        """
        return compare_methods(self, methods, assumed, repetitions, progress)

    def forecast(self) -> dict[float, int]:
        """How many cells will be reliable, by how much cells differ: no value is read.

        The numbers come from the simulated releases of `typical_error`, with three parts of the
        variance between cells. Where the plan alone decides which cells are reliable, as with fewer
        than ten cells or certified errors, all three numbers are the same
        (docs/theory/cells.md#which-cells-are-reliable).

        Returns:
            Numbers of cells by the part of the variance of all values that lies between cells: 0.3,
            0.1 and 0.03.

        Example:
            >>> import shoal
            >>> users, cells = [*range(600)] * 4, [*range(12)] * 200
            >>> counts = shoal.Counts.from_counts(users, sorted(cells), [4] * 2400)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=1, range="loose")
            >>> plan.forecast()
            {0.3: 12, 0.1: 12, 0.03: 9}
        """
        return forecast(self)

    def advise(self, progress: Progress | None = None) -> Advice:
        """Changes that would make more cells reliable: losses, objectives, rounds, coarser labels.

        Each change is planned and released three times or more on made-up values. The counts are
        those of the plan, or they are added up by parent hexagons, by days, or without a key
        column. The rule of docs/theory/cells.md#which-cells-are-reliable then says which cells are
        reliable. No value is read.

        Args:
            progress: Wraps the choices, to show how far they are; by default a bar on a terminal.

        Returns:
            How many cells will be reliable as planned and after each change, if 30% of the variance
            is between cells; `print` says the best two changes in a sentence each.

        Raises:
            InputError: The plan releases other statistics than the mean.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(range(600), [*range(12)] * 50, [4] * 600)
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=0.1, range="loose")
            >>> plan.advise().now.reliable, plan.advise().choices[0].change
            (0, 'epsilon=0.4')
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
        """Reads the values once, adds exact noise, records result and charge, and delivers.

        The ledger commits the noisy numbers and their charge in one transaction before anything
        is returned. Another release of the same plan and name delivers the recorded bytes, says
        when they were recorded, and costs nothing; counts, bounds and columns must still be the
        plan's. A plan that likely makes no cell reliable is carried out with a `ShoalWarning`.

        Args:
            records: The records from which the plan's counts were counted.
            ledger: The data set's ledger, which `shoal.Ledger.create` makes; needed unless `noise`
                is a simulation.
            name: What the release is about, such as a period; a release by another name draws new
                noise and is charged again.
            noise: `shoal.Simulated(seed)` for studies; the release is marked and not private.
            privacy_unit: What a user is, in a word; by default the user column's name. Give the
                ledger's word if this file calls the same users by another name (G-LEDGER).
            before: A function that is called with the plan before values are read, unless the
                release is recorded already or noise is simulated. It may raise. By default it warns
                of a plan that likely makes no cell reliable.

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

    def draw(self, private: Records, noise: Noise) -> Estimates:
        """Reads the values once, and draws all numbers."""
        self.check_lattice(private)
        measures = [each.measure for each in self.statistics if each.measure is not None]
        counts, aggregate = private.aggregate(measures, squares=Variance() in self.statistics)
        self.check_counts(counts)
        return Estimates.of(self, *draw(self, aggregate, noise))

    def results(self, drawn: Estimates) -> list[documents.Document]:
        """One object a number: whole lattice steps, the value they stand for, its interval."""
        return results_of(self, drawn)

    def published(self, drawn: Estimates) -> Published:
        """Cells that readers see, their totals, what was drawn, and what follows."""
        return Published.of_plan(self, drawn)

    def drawn_of(self, results: list[documents.Document]) -> Estimates:
        """Reads the drawn numbers from the whole numbers of a manifest's results."""
        return drawn_from(self, results)

    def frontier(
        self,
        methods: Sequence[str | Choice] | None = None,
        epsilons: Sequence[Amount] | None = None,
        progress: Progress | None = None,
    ) -> Comparison[Plan]:
        """The errors of several methods at several epsilons on these counts: no value is read.

        Every plan has the counts, bounds, statistics, public rules and weights of this plan. It
        keeps uninformative cells, so that all plans are compared on the same cells. Look at the
        result with `print`, `table()`, `shoal.picture(frontier, path)` and
        `frontier.plan(method, epsilon)`.

        Args:
            methods: Names, or names with settings; by default those that suit the statistics. With
                more than 10,000 pairs of a user and a cell, linear programs and `clip_user` take
                minutes and have to be named.
            epsilons: Losses; by default from an eighth to eight times the plan's, in powers of two.
            progress: Wraps the plans, to show how far they are; by default a bar on a terminal.

        Returns:
            One row for each method and loss, with lower bounds where they are known.

        Raises:
            InputError: An unknown method, or an unusable epsilon.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8)
            >>> found = plan.frontier(["balanced", "optimal"], epsilons=[4, 8])
            >>> found.plan("optimal", 4).epsilon <= 4
            True
        """
        return frontier(self, methods, epsilons, progress)

    def to_dp_event(self) -> DpEvent:
        """The release as an event of dp-accounting: see `shoal.privacy.events.event_of`.

        Returns:
            An event that dp-accounting can compose with others.

        Raises:
            MissingPartError: dp-accounting is not installed.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8)
            >>> type(plan.to_dp_event()).__name__
            'RandomizedResponseDpEvent'
        """
        return event_of(self.epsilon, self.rho)

    @property
    def parts(self) -> Mapping[str, Any]:
        """Request, columns, counts and decision."""
        return parts_of(self, self.source)

    @property
    def of_cells(self) -> list[Facts]:
        """The plan itself."""
        return [self]

    @property
    def unreliable(self) -> list[str]:
        """All statistics, if likely no cell will be reliable."""
        return [] if some_reliable(self) else [*self.request.statistics]

    @property
    def claims(self) -> Claims:
        """The plan's costs and promises, for readers."""
        return claims_of(self)

    @property
    def size(self) -> float:
        """A bound on the absolute size of the plan's numbers, in their units."""
        return float(np.max(np.abs(self.limits))) + self.width

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan written by `save`: see `shoal.release.plan.Plan.load`."""
        found = super().load(path)
        # The path is made absolute, as the working folder may change.
        return replace(found, counts=replace(found.counts, origin=os.path.abspath(path)))

    @classmethod
    def of_document(cls, document: Any) -> Self:
        """Returns the plan of a document; refuses one that costs or errs more than was asked."""
        decision = document.decision.decision(document.counts.n_users)
        source = None if document.records is None else document.records.to_document()
        check_period(source, document.counts)
        return met(cls(document.counts, document.request, decision, source))


@dataclass(frozen=True, eq=False)
class Release(release.CellRelease[Plan, Estimates]):
    """A release: noisy numbers with their errors, and the manifest.

    Source: docs/theory/privacy.md#lattice-noise.

    Guarantees: G-LOSS, G-COVERAGE.

    Example:
        >>> import pyarrow as pa, shoal
        >>> table = pa.table({"who": list(range(400)), "at": [1, 2] * 200, "speed": [30.0] * 400})
        >>> known = {"bounds": (0, 65), "by": "at", "counts": "public"}
        >>> records = shoal.Records(table, user="who", value="speed", **known)
        >>> plan = shoal.plan(records.counts(), bounds=(0, 65), epsilon=5)
        >>> release = plan.release(records, noise=shoal.Simulated(1))
        >>> release.simulated, len(release.table())
        (True, 2)
    """

    plan_model = Plan

    def _text(self, confidence: float = CONFIDENCE, *, origin: bool = True) -> TextTable:
        """The verdict, warnings, the first rows, and why cells are not reliable."""
        cells = self.cells
        table = self.table(confidence)
        # Every statistic has the same statuses: those of the first say it all.
        status = table["status"].to_pylist()[: cells.num_rows]
        verdict = f"Reliable: {status.count('reliable'):,} of {counted(len(status), 'cell')}."
        columns = [cell_title(cells), "users", "records", "value", "low", "high"]
        notes = [
            clamped(self.published.basis.bounds),
            *legend(cells.num_rows, self.published.sentences, table),
            *self._limited(),
            *assumption(self.numbers),
        ]
        if "common" in table["source"].to_pylist():
            notes.insert(0, _BRACKETS)
        head = f"{verdict}\n{self.head(origin=origin)}"
        return TextTable(head, columns, self._rows(table), notes, self.warnings())

    def _rows(self, table: pa.Table) -> list[list[str]]:
        """The first rows of a table as texts; values that cells have in common are in brackets."""
        shown = table.slice(0, SHOWN)
        names = labels(self.cells, table, range(len(shown)))
        rows = []
        for name, row in zip(names, shown.to_pylist(), strict=True):
            value, *ends = texts_of({each: row[each] for each in ("value", "low", "high")})
            counts = [f"{row[each]:,}" for each in ("users", "records")]
            if row["source"] == "common":
                value = f"({value})"
            rows.append([name, *counts, value, *ends])
        if len(table) > SHOWN:
            rows.append([f"... {len(table) - SHOWN:,} more in to_pandas() and files"])
        return rows

    def warnings(self) -> list[str]:
        """Sentences that a reader should know before relying on the numbers.

        They say where errors may be larger, or intervals may not cover.

        Returns:
            The sentences of the plan that still matter; none if there is nothing to say.
        """
        return [*self.published.warnings]

    @cached_property
    def published(self) -> Published:
        """What everybody may have of it."""
        found: Published = super().published
        return found

    @property
    def cells(self) -> pa.Table:
        """The keys of the cells that readers see."""
        return self.published.basis.cells

    def meaning(self) -> list[str]:
        """What the table's words mean, and how many cells are left out, in sentences."""
        sentences = self.published.sentences
        return [
            *([RELIABLE] if judges_reliability(self.published.basis) else []),
            *legend(self.cells.num_rows, sentences, self.table()),
            *self._limited(),
            *assumption(self.numbers),
        ]

    def _limited(self) -> Iterator[str]:
        """Says for how many of its records a user counts, if that is limited."""
        most = self.said.records and self.said.records.records_per_user
        yield from limited(self.said.guarantee.unit.name, most)

    def _drawn(self) -> Estimates:
        """The numbers, from the record or from the manifest."""
        if isinstance(self.said, envelope.Manifest):
            numbers: Estimates = self.published.numbers
            return numbers
        return super()._drawn()

    def _plan(self) -> Plan:
        """The plan; what is made of it replaces no records either."""
        plan = super()._plan()
        place = self.inputs.get("records") or self.inputs.get("manifest")
        origin = None if place is None else os.fspath(place)
        return replace(plan, counts=replace(plan.counts, origin=origin))

    @property
    def numbers(self) -> Estimates:
        """The released numbers with their error bars, as arrays in the order of planned cells."""
        found: Estimates = self.published.numbers
        return found

    @np.errstate(all="ignore")
    def table(
        self, confidence: float = CONFIDENCE, *, all: bool = False, left_out: bool = False
    ) -> pa.Table:
        """One row for each cell: keys, status, counts, value and interval, noise and errors.

        `value` is the best estimate. For means in three cells or more it is the posterior median
        given the other cells (docs/theory/cells.md#values). The interval from `low` to `high` is
        around the noisy number. In a reliable cell the `source` of the value is `own`, the cell's
        own number. In another cell it is `common`, the number of all cells, moved towards the
        cell's own; `reason` then says why the cell is not reliable
        (docs/theory/cells.md#which-cells-are-reliable).

        Args:
            confidence: Probability that an interval covers; changing it costs nothing.
            all: Whether the noisy number has a column too, `noisy_value`.
            left_out: Whether cells that `min_users` or `min_records` leave out have a row too, with
                their keys and the reason, and without values.

        Returns:
            One row for each cell and statistic.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
            DocumentError: `left_out` of a manifest, which does not name such cells.
        """
        rows = arrow_tables.rows_of(self.plan) if left_out else self.published.rows
        numbers = self.numbers
        return arrow_tables.make_table(numbers, rows, confidence, all=all, left_out=left_out)

    @np.errstate(all="ignore")
    def difference(self, cell: object, other: object, confidence: float = CONFIDENCE) -> Difference:
        """The mean of one cell minus that of another, with an interval: free.

        The interval allows for the noise of both numbers and for what clipping may hide in either.
        It is shorter than the one from `low` of one cell to `high` of the other
        (docs/theory/cells.md#differences). Of many differences some are missed by chance.

        Args:
            cell: Its key as in the table; of several keys a sequence, or a text such as "EWR, 7".
            other: The cell that is subtracted.
            confidence: Probability that the interval covers.

        Returns:
            The difference, its interval, and a status: `reliable` if both cells are.

        Raises:
            InputError: No such cell, a cell without a number of its own, no means, or confidence
                is not strictly between 0 and 1.

        Example:
            >>> import pyarrow as pa, shoal
            >>> visits = {"who": list(range(900)), "at": ["a", "b", "c"] * 300}
            >>> visits["speed"] = [20.0, 30.0, 30.0] * 300
            >>> known = {"bounds": (0, 65), "by": "at", "counts": "public"}
            >>> records = shoal.Records(pa.table(visits), user="who", value="speed", **known)
            >>> plan = shoal.plan(records.counts(), bounds=(0, 65), epsilon=5)
            >>> found = plan.release(records, noise=shoal.Simulated(1)).difference("a", "b")
            >>> found.low < -10 < found.high
            True
        """
        confidence = check_confidence(confidence)
        basis = self.published.basis
        if Mean() not in basis.statistics:
            raise InputError("the release has no means", "plan with the statistic mean")
        first = keys.position(self.cells, cell)
        second = keys.position(self.cells, other)
        names = keys.labels(self.cells)
        for each in (first, second):
            if basis.status[each] != "planned":
                raise InputError(
                    f"the cell {names[each]!r} was left out and has no number of its own",
                    "choose another cell, or merge cells",
                )
        if first == second:
            raise InputError("both cells are the same", "name two cells")
        pair = (names[first], names[second])
        return difference_of(self.numbers, pair, (first, second), confidence)


def plan(
    counts: Counts | Records,
    *,
    bounds: Bounds | tuple[float, float] | None = None,
    statistics: Sequence[str] = ("mean",),
    epsilon: Amount | None = None,
    error: float | None = None,
    max_error: float | str | None = None,
    objective: str | None = None,
    range: str | None = None,
    method: str | None = None,
    uninformative: str = "drop",
    min_users: int = FEWEST_USERS,
    min_records: int = 1,
    weights: Mapping[str, float] | None = None,
    settings: Mapping[str, str | int | float] | None = None,
    delta: Amount = 0,
    tick_bits: int | None = None,
    source: Mapping[str, Any] | None = None,
    records_per_user: int | None = None,
) -> Plan:
    """Chooses how users are bounded and how noise is shared: see `shoal.plan`."""
    counted = Counted.of(counts, bounds, tick_bits, source, records_per_user)
    request = Request.of(
        bounds=counted.bounds,
        tick_bits=counted.tick_bits,
        statistics=statistics,
        epsilon=epsilon,
        error=error,
        delta=delta,
        max_error=max_error,
        objective=objective,
        range=range,
        method=method,
        settings={} if settings is None else settings,
        uninformative=uninformative,
        min_users=min_users,
        min_records=min_records,
        weights={} if weights is None else weights,
    )
    facts = met(make_plan(counted.counts, request))
    return Plan(facts.counts, facts.request, facts.decision, counted.source).like(facts)
