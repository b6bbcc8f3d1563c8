"""Plans of private counts, which open no file, and their releases."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from shoal import checks, documents
from shoal.checks import check_confidence
from shoal.data.cell_rules import Rule
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds
from shoal.errors import DataError, InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import TextTable
from shoal.presence import shown
from shoal.presence.documents import (
    Columns,
    Manifest,
    PlanDocument,
    Published,
    Record,
    Results,
    RoundPart,
    SelectionPart,
    drawn_of,
)
from shoal.presence.draw import Drawn, draw
from shoal.presence.earlier import guide_of
from shoal.presence.estimates import Estimates
from shoal.presence.found import check_levels, steps_of
from shoal.presence.keys import cells_of, cells_to_find, periods_of
from shoal.presence.request import Request
from shoal.presence.rounds import Round, rounds_of, selection_of
from shoal.privacy.accounting import Step
from shoal.privacy.budget import Amount, Budget
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import Periods, Unit, all_periods, unit_of_column
from shoal.release import plan as plans
from shoal.release import release
from shoal.release.envelope import CONFIDENCE, EVERYBODY
from shoal.release.plan import check_ledger
from shoal.release.rows import Row
from shoal.release.statistics import Statistic
from shoal.theory.key_threshold import Selection


@dataclass(frozen=True, eq=False, repr=False)
class Plan(plans.Plan[Records, Drawn], Tabular):
    """A plan of private counts: cells, statistics and noise, which no record changes.

    Source: docs/theory/private-counts.md#one-user-one-vector.

    Attributes:
        request: What was asked.
        rounds: The draws in their order, and what each costs.
        selection: How cells are found before; None if they are listed.
        source: Public description of the records: their columns.
        holds: Says what the column of periods holds; None before a release.

    Guarantees: G-LOSS, G-PURE.
    """

    request: Request
    rounds: Mapping[str, Round]
    selection: Selection | None = None
    source: Mapping[str, Any] | None = None
    holds: Callable[[], str] | None = None

    family = "presence"
    kind = "presence"
    document_model = PlanDocument
    claims_model = plans.Claims
    record_model = Record
    manifest_model = Manifest
    neighbours = "presence: one user comes or goes, with all records"
    audience = EVERYBODY
    relation = "private"

    @property
    def steps(self) -> Sequence[Step]:
        """The search for cells, two looks, a range and the answers, as far as they are needed."""
        of_rounds = [each.step(name) for name, each in self.rounds.items()]
        if self.selection is None:
            return of_rounds
        return [*steps_of(self.selection, self.request.delta), *of_rounds]

    @cached_property
    def loss(self) -> Budget:
        """What was asked for, of which whole numbers of units leave out less than a millionth."""
        return Budget(self.request.epsilon, self.request.delta)

    @property
    def parts(self) -> Mapping[str, Any]:
        """Request, columns and rounds."""
        rounds = {name: RoundPart(**each._asdict()) for name, each in self.rounds.items()}
        columns = Columns.described(self.source)
        found = None if self.selection is None else SelectionPart(**self.selection._asdict())
        return {
            "request": self.request,
            "records": columns,
            "rounds": rounds,
            "selection": found,
        }

    @property
    def asked(self) -> documents.Document:
        """The request: nothing of the records."""
        return self.request.to_document()

    @property
    def protected(self) -> str:
        """What is protected, in one line, and the loss over all periods if there are any."""
        unit = Unit((self.source or {}).get("user", "user"), self.relation, self.period)
        return str(unit) + all_periods(unit, self.request.periods or None, self.loss)

    @property
    def periods(self) -> Periods | None:
        """The public list of periods that are answered and charged."""
        rule = (self.source or {}).get("period")
        if rule is None:
            return None
        holds = "" if self.holds is None else self.holds()
        return Periods(rule, holds, self.request.periods)

    @property
    def size(self) -> float:
        """The largest number that the bounds allow."""
        return float(np.max(np.abs(self.request.bounds)))

    def warnings(self) -> list[str]:
        """Sentences that say what a custodian should know before spending."""
        return [*shown.plan_warnings(self.request)]

    @classmethod
    def of_document(cls, document: Any) -> Self:
        """The plan of a document, whose rounds must be those that the request needs."""
        request = document.request
        rounds = {name: Round(**vars(each)) for name, each in document.rounds.items()}
        wanted = rounds_of(request)
        for name, each in wanted.items():
            # Other versions may share epsilon in another way, among the same blocks.
            if rounds[name].blocks.keys() != each.blocks.keys():
                raise LookupError
            rounds[name].check()
        if rounds.keys() != wanted.keys():
            raise LookupError
        source = None if document.records is None else document.records.to_document()
        if (source or {}).get("period") is None and request.periods:
            raise LookupError
        if (document.selection is not None) != request.finds:
            raise LookupError
        ordered = {name: rounds[name] for name in wanted}
        found = None if document.selection is None else Selection(**vars(document.selection))
        if found is not None:
            check_levels(found, request.delta)
        return cls(request, ordered, found, source)

    def of_periods(self, given: Any, rule: Rule | None) -> Self:
        """The same plan for other periods, which must be given if it is of periods at all."""
        periods = periods_of(given, rule)
        return replace(self, request=self.request.model_copy(update={"periods": periods}))

    def like(self, before: Release) -> Self:
        """The same plan with an earlier release as the guide, in place of looks and a range.

        Args:
            before: A release of private counts with the same bounds and statistics.

        Raises:
            InputError: It has others, or saw too few users.
        """
        name = before.said.name
        # Cells that were found are public, and are not looked for again.
        request = self.request.of_cells(before.cells) if self.request.finds else self.request
        guide = guide_of(before.numbers, name, request, simulation=before.simulated)
        guided = request.model_copy(update={"guide": guide})
        return replace(self, request=guided, rounds=rounds_of(guided), selection=None)

    def _text(self) -> TextTable:
        return shown.plan_text(
            self.request, self.rounds, self.selection, self.protected, self.warnings()
        )

    def __repr__(self) -> str:
        """One line."""
        return f"<Plan, {shown.summary(self.request)}>"

    def table(self) -> pa.Table:
        """One row for each statistic: its noise in each cell, and the error to be expected.

        Returns:
            `typical_error` is about what each cell will err by if users are spread evenly over the
            cells and there are as many as was said; `small_cell_error` of a cell with a fifth of
            them. Null where it depends on what users have. Nothing is read for it.
        """
        return shown.plan_table(self.request, self.rounds)

    def advise(self) -> TextTable:
        """Typical errors at other losses, and if each user counts for at most 3 to 20 records.

        Returns:
            A row for each change: print it. Nothing is read for it.
        """
        return shown.advice(self.request)

    def release(
        self,
        records: Records,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        privacy_unit: str = "",
    ) -> Release:
        """Reads the records, adds exact noise, records result and charge, and delivers.

        The same plan and name again deliver what the ledger holds, without a look at the records.

        Args:
            records: The records that the plan is for: the same columns and bounds.
            ledger: The data set's ledger, which `shoal.Ledger.create` makes; needed unless `noise`
                is a simulation.
            name: What the release is about, such as a period; a release by another name draws new
                noise and is charged again.
            noise: `shoal.Simulated(seed)` for studies; the release is marked and not private.
            privacy_unit: What a user is, in a word; by default the user column's name.

        Returns:
            The noisy numbers with their errors, and the manifest.

        Raises:
            InputError: No ledger, or one with simulated noise or of another privacy unit.
            DataError: The records have other columns or bounds than the plan, or cannot be read.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REPLAY, G-REFUSE.
        """
        check_ledger(ledger, noise)
        guide = self.request.guide
        if noise is None and guide is not None and guide.simulation:
            raise InputError(
                "the guide is a simulated release, which is not private",
                "give like= the manifest of a release that a ledger recorded",
            )
        checks.instance(records, Records, "records", "give the shoal.Records of the plan")
        self.check(records)
        if not self.exact_loss.within(self.loss):
            raise InputError("the plan costs more than it says", "make the plan again")
        described = records.describe()
        unit = unit_of_column(privacy_unit, records.user, self.relation, self.period)
        plan = replace(self.with_source(described), holds=records.holds)
        with np.errstate(all="ignore"):
            done = plan.deliver(records, described, unit, name=name, ledger=ledger, noise=noise)
        return Release.delivered(done, plan, ledger, inputs={"records": records.place})

    def check(self, private: Records) -> None:
        """Refuses records of other columns, bounds or ticks than the plan's; reads nothing."""
        if private.relation != self.relation:
            raise InputError(
                "the plan is for private counts, and those of the records are declared public",
                'give records with counts="private", or plan from the public counts',
            )
        if self.source is not None and dict(self.source) != private.describe():
            raise DataError(
                "columns or rules of the records differ from those of the plan",
                "give the records that the plan was made for, or make a new plan from these",
            )
        if private.lattice != self.request.lattice:
            raise DataError(
                "the records have other bounds or tick bits than the plan",
                "give the records that the plan was made for, or make a new plan from these",
            )

    def draw(self, private: Records, noise: Noise) -> Drawn:
        """Reads the records, and draws all numbers."""
        self.check(private)
        return draw(self.request, self.rounds, private, noise, self.selection)

    def results(self, drawn: Drawn) -> documents.Document:
        """What was drawn, and what follows from it."""
        return Results.of_numbers(self.estimates(drawn)).to_document()

    def published(self, drawn: Drawn) -> Published:
        """All of it: there is no row of a user."""
        return Published(
            plan=self.to_document(),
            results=Results.of_numbers(self.estimates(drawn)),
        )

    def drawn_of(self, results: Any) -> Drawn:
        """Reads the whole numbers that were drawn."""
        return drawn_of(results, self.request, self.rounds)

    def estimates(self, drawn: Drawn) -> Estimates:
        """What is said of every cell."""
        request = self.request if drawn.keys is None else self.request.of_cells(drawn.keys)
        return Estimates(request, self.rounds, drawn)


@dataclass(frozen=True, eq=False)
class Release(release.BinRelease[Plan, Drawn]):
    """A release of private counts: noisy numbers with their errors, and the manifest.

    Guarantees: G-LOSS, G-COVERAGE.
    """

    plan_model = Plan

    @cached_property
    def numbers(self) -> Estimates:
        """What is said of every cell."""
        return self.plan.estimates(self.released)

    @property
    def cells(self) -> pa.Table:
        """The keys of all cells."""
        return self.numbers.request.keys

    def meaning(self) -> list[str]:
        """What the table's words mean, and what a user counts for, in sentences."""
        said = self.said
        rows = self.rows(CONFIDENCE)
        return shown.meaning(self.numbers, rows, self._unit, said.records.value)

    @property
    def _unit(self) -> str:
        """What one user is called, with its period if there is one."""
        unit = self.said.guarantee.unit
        return unit.name if unit.period is None else f"{unit.name} in one {unit.period}"

    def _drawn(self) -> Drawn:
        """What was drawn, in the record or in the manifest."""
        results = self.said.results
        kept = results.results if isinstance(self.said, Manifest) else results
        return self.plan.drawn_of(kept.to_document())

    def _text(self, confidence: float = CONFIDENCE, *, origin: bool = True) -> TextTable:
        rows = self.rows(check_confidence(confidence))
        head = self.head(origin=origin)
        return shown.release_text(self.numbers, rows, head, self._unit, self.said.records.value)

    def warnings(self) -> list[str]:
        """Sentences that a reader should know before relying on the numbers."""
        return [*shown.release_warnings(self.numbers)]

    def table(self, confidence: float = CONFIDENCE, *, all: bool = False) -> pa.Table:
        """One row for each cell and statistic: keys, status, noisy users and records, value, ends.

        Args:
            confidence: Probability that an interval covers; changing it costs nothing.
            all: Whether the number with its noise alone has a column too, `noisy_value`.

        Returns:
            Users and records are null unless they were asked for. The `source` of a value is `own`,
            or `common` where it is the number that all cells have in common, moved towards the
            cell's own.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
        """
        rows = self.rows(check_confidence(confidence))
        return self.table_of(rows, all=all)

    def bins(self) -> list[Statistic]:
        """The bins of the histogram, as shares between two limits."""
        return self.numbers.bins

    def rows(self, confidence: float) -> list[Row]:
        """Every statistic that was asked for, in its order."""
        return [*self.numbers.rows(confidence)]

    def of_values(self, kinds: Sequence[Statistic], confidence: float) -> list[Row]:
        """Statistics that follow from the pieces of the range, if any were drawn."""
        if self.plan.request.n_pieces < 2:
            raise InputError(
                "pieces of the range were not drawn",
                "ask for median, a quantile or histogram in the plan; then all of them are free",
            )
        return [self.numbers.of_values(each, confidence) for each in kinds]

    def table_of(self, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
        """Statistics as rows of a table."""
        return shown.release_table(self.numbers, rows, all=all)


def plan(
    records: Records,
    *,
    keys: Any = None,
    users: int | None = None,
    statistics: Sequence[str] | None = None,
    epsilon: Amount,
    pieces: int | None = None,
    records_per_user: int | None = None,
    periods: Any = None,
    min_users: int | None = None,
    delta: Amount = 0,
    like: Release | Literal["last"] | None = None,
) -> Plan:
    """Plans statistics of records whose counts are private, without opening their file.

    Source: docs/theory/private-counts.md#one-user-one-vector.

    Args:
        records: The records, of which only the names of columns, bounds and rules are used.
        keys: The cells, which are public: a mapping with the keys of each cell rule, of which all
            combinations are cells, a table or file with a row for each cell.
        users: About how many users there are: public knowledge, not from these records. A wrong
            number costs accuracy and never privacy.
        statistics: Of every cell: `users`, `records`, `sum`, `mean`, `median`, `quantile(0.9)`,
            `share_above(60)`, `share_below(60)`, `share_between(20, 60)`, `histogram`.
        epsilon: Largest privacy loss of any user, in all cells and statistics together.
        pieces: Of the private range, for medians and the like: 8, or 16 if epsilon times
            users is 600 in each cell or more.
        records_per_user: Each user counts for at most so many of its records.
        periods: The periods that are answered and charged, if the records have a period: names, or
            a text such as "2026-01..2026-12".
        delta: Finds the cells, which then are not listed: those that enough users have. It is the
            chance that epsilon does not hold.
        min_users: Cells with a smaller noisy number of users are marked in the table.
        like: An earlier release as a guide, in place of looks and a range; what is not given is as
            it was there. "last": `shoal.publish` takes the last release from the second one on.

    Returns:
        A plan, whose loss is the same for all records.

    Raises:
        InputError: An argument is not usable, or there are too few users for what is asked.

    Guarantees: G-LOSS, G-PURE.
    """
    checks.instance(records, Records, "records", "give shoal.Records")
    more: dict[str, Any] = {"like_last": like is not None}
    if isinstance(like, Release):
        if keys is None and not like.cells.num_rows:
            raise InputError("the earlier release found no cell", "give keys, or leave like out")
        before = like.plan.request
        keys = like.cells if keys is None else keys
        users = max(round(like.numbers.look.users), 1) if users is None else users
        statistics = statistics or before.statistics
        pieces = pieces or before.pieces
        records_per_user = records_per_user or before.records_per_user
        min_users = min_users or before.min_users
    elif like not in (None, "last"):
        raise InputError(
            f"like is {checks.shown(like)}, which is no release of private counts",
            'give the manifest of an earlier release, or like="last"',
        )
    if users is None:
        raise InputError(
            "the number of users is unknown",
            "give about how many there are, such as users=5000 (--users 5000): from an earlier "
            "release or common knowledge, not from these records",
        )
    if pieces is not None:
        more["pieces"] = pieces
    if statistics is None:
        statistics = ["users"] if records.value is None else ["users", "mean"]
    finds = keys is None and bool(records.rules) and delta not in (0, "0")
    request = Request.of(
        keys=cells_to_find(records.rules) if finds else cells_of(keys, records.rules),
        delta=delta,
        bounds=Bounds.of(records.bounds),
        tick_bits=records.lattice.bits,
        statistics=statistics,
        epsilon=epsilon,
        users=users,
        records_per_user=records_per_user,
        min_users=min_users,
        periods=periods_of(periods, records.period),
        **more,
    )
    needed = [each.name for each in request.kinds if each.kind not in ("users", "records")]
    if records.value is None and needed:
        raise InputError(
            f"{', '.join(needed)} need values, and the records name no column of them",
            "give value= and bounds= with the records, or ask for users and records alone",
        )
    shown.check_worth(request)
    if pieces is None:
        request = request.model_copy(update={"pieces": request.best_pieces})
    made = Plan(request, rounds_of(request), selection_of(request), records.describe())
    return made.like(like) if isinstance(like, Release) else made
