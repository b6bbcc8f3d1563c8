"""Carrying out a plan: values once, exact noise, one transaction, then delivery."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import checks, documents
from shoal.cells.comparisons.advice import warn_of_worth
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import PlanFacts
from shoal.cells.facts.plan_file import KIND, Manifest, PlanDocument, question_of
from shoal.cells.mechanisms.cell_statistics import Variance
from shoal.cells.mechanisms.private_sums import Interval
from shoal.cells.mechanisms.user_vectors import excess_of
from shoal.cells.shown import table
from shoal.cells.shown.plan_warnings import release_warnings
from shoal.cells.shown.text import cell_title, labels, legend
from shoal.data.occupancy import Counts
from shoal.data.records import Records
from shoal.errors import DataError, InputError
from shoal.files.text_table import SHOWN, Shown, TextTable, counted, texts_of
from shoal.privacy.budget import Budget, show
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import unit_of_column
from shoal.release import release
from shoal.release.draw import release as deliver
from shoal.release.manifest import CONFIDENCE
from shoal.release.release import damaged
from shoal.release.unit_column import check_unit_of_users

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Release(Shown, release.TableRelease[PlanFacts, Estimates]):
    """A release: noisy numbers with their errors, and the manifest.

    Source: docs/theory/privacy.md#lattice-noise.

    Guarantees: G-LOSS, G-COVERAGE.

    Example:
        >>> import pyarrow as pa, shoal
        >>> table = pa.table({"who": list(range(400)), "at": [1, 2] * 200, "speed": [30.0] * 400})
        >>> records = shoal.Records(table, user="who", value="speed", bounds=(0, 65), by="at")
        >>> plan = shoal.plan(records.counts(), bounds=(0, 65), epsilon=5)
        >>> release = plan.release(records, noise=shoal.Simulated(1))
        >>> release.simulated, len(release.table())
        (True, 2)
    """

    kinds, model = (KIND,), Manifest

    def __repr__(self) -> str:
        """One line."""
        return f"<{self._head()}>"

    def to_text(self, confidence: float = CONFIDENCE) -> str:
        """What `print` shows, with intervals of another confidence and without the ledger."""
        return str(self._text(confidence, origin=False))

    def _head(self, *, origin: bool = True) -> str:
        what = "simulated release, not private" if self.simulated else "release"
        entry = f", {self.origin}" if self.origin and origin else ""
        return f"{what}, epsilon {show(self.epsilon)} per user{entry}"

    def _text(self, confidence: float = CONFIDENCE, *, origin: bool = True) -> TextTable:
        """The verdict, warnings, the first rows, and why cells are not told."""
        plan, table = self.plan, self.table(confidence)
        status = table["status"].to_pylist()[: len(plan.shown)]
        verdict = f"{status.count('released'):,} of {counted(len(status), 'cell')} told."
        shown = table.slice(0, SHOWN)
        names, rows = labels(plan, table, range(len(shown))), []
        for name, row in zip(names, shown.to_pylist(), strict=True):
            mark = "*" * (row["source"] == "pooled")
            value, *ends = texts_of({each: row[each] for each in ("value", "low", "high")})
            counts = [f"{row[each]:,}" for each in ("users", "records")]
            rows.append([name, *counts, value + mark, *ends])
        if len(table) > SHOWN:
            rows.append([f"... {len(table) - SHOWN:,} more in to_pandas() and files"])
        columns = [cell_title(plan), "users", "records", "value", "low", "high"]
        notes = [*legend(plan, table)]
        if "pooled" in table["source"].to_pylist():
            notes.insert(0, "* not told: the value is shrunk towards those of the other cells")
        head = f"{verdict}\n{self._head(origin=origin)}"
        return TextTable(head, columns, rows, notes, self.warnings())

    def warnings(self) -> list[str]:
        """What a reader should know before relying on the numbers: where intervals may not cover.

        Returns:
            Sentences, as the plan said them before; none if there is nothing to say.
        """
        return release_warnings(self.numbers)

    def _plan_of(self, document: documents.Document) -> PlanFacts:
        """A plan, from its document; what is made of it replaces no records either."""
        found = PlanDocument.model_validate_json(documents.canonical_bytes(document)).facts()
        place = self.inputs.get("records") or self.inputs.get("manifest")
        origin = None if place is None else os.fspath(place)
        return PlanFacts(replace(found.counts, origin=origin), found.request, found.decision)

    @staticmethod
    def _loss_of(plan: PlanFacts) -> Budget:
        """The exact privacy loss of a plan."""
        return Budget(plan.exact_epsilon, plan.exact_delta)

    @staticmethod
    def _drawn_of(plan: PlanFacts, results: list[documents.Document]) -> Estimates:
        """What was drawn, from a manifest's results: whole numbers alone."""
        names, cells = plan.request.statistics, plan.released.tolist()
        stated = [(each["statistic"], each["cell"]) for each in results]
        ends = [each["range"] for each in results if each["range"] is not None]
        excess = {each["excess"] and tuple(each["excess"]) for each in results}
        if (
            stated != [*product(names, cells)]
            or len(ends) != plan.decision.method.selects * len(results)
            or len(excess) != 1
            or (None in excess) == (excess_of(plan.parameters)[0] > 0)
        ):
            raise damaged()
        chosen = None
        if ends:
            low, high = np.array(ends, dtype=np.int64).T
            if not ((low >= 0) & (low < high)).all():
                raise damaged()
            chosen = Interval(low, high)
        return Estimates(plan, [each["steps"] for each in results], chosen, excess.pop())

    @property
    def numbers(self) -> Estimates:
        """The released numbers with their error bars, as arrays in the order of released cells."""
        return self.released

    @np.errstate(all="ignore")
    def table(self, confidence: float = CONFIDENCE, *, left_out: bool = False) -> pa.Table:
        """One row a cell: keys, status, counts, value and interval, noise and errors.

        `value` is the best estimate: of means in three cells or more the posterior median given
        the other cells (docs/theory/cells.md#values). `low` and `high` are around the
        released number, which is `plain`. A cell that is too noisy to be told has the `source`
        pooled: its value is what the other cells say, and `reason` says why
        (docs/theory/cells.md#which-cells-are-told).

        Args:
            confidence: Of the intervals; changing it costs nothing.
            left_out: Whether cells that `min_users` or `min_records` leave out have a row too, with
                their keys and the reason, and without values.

        Returns:
            One row a cell and statistic.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
        """
        return table.make_table(self.numbers, confidence, left_out=left_out)


@np.errstate(all="ignore")
def release_cells(
    plan: PlanFacts,
    source: Mapping[str, Any] | None,
    records: Records,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    noise: Simulated | None,
    privacy_unit: str,
    worth: Callable[[PlanFacts], None] | None = warn_of_worth,
) -> Release:
    """See `Plan.release`; `source` describes the records that the plan is about, if it is known.

    `worth` looks at a plan that is not recorded yet, before its values are read and charged.
    """
    if ledger is None and noise is None:
        raise no_ledger()
    checks.instance(records, Records, "records", "give the shoal.Records that were counted")
    described = records.describe()
    if source is not None and dict(source) != described:
        raise DataError(
            "columns, cell rules or missing= of the records differ from those of the plan",
            "give the records that the plan was made for, or make a new plan from these",
        )
    check_unit_of_users(
        records.source, user=records.user, value=records.value, missing=records.missing,
        privacy_unit=privacy_unit, ledger=ledger,
    )  # fmt: skip
    unit = unit_of_column(privacy_unit, records.user)
    question = question_of(plan, described, unit, name)
    done = deliver(
        question,
        CellDraw(plan, records, worth if noise is None else None),
        ledger=ledger,
        noise=noise,
    )
    inputs = {"records": records.place, "plan": plan.counts.origin}
    return Release.delivered(done, plan, ledger, inputs=inputs)


def no_ledger() -> InputError:
    """The error of a release that nothing would record."""
    return InputError(
        "the release has no ledger",
        "make one with Ledger.create(path, epsilon=..., unit=...) and give ledger=path",
    )


@dataclass(frozen=True, eq=False)
class CellDraw:
    """The draw of a plan of cells from private records."""

    plan: PlanFacts
    records: Records
    worth: Callable[[PlanFacts], None] | None = None

    def draw(self, noise: Noise) -> Estimates:
        """Read the values once, and draw all numbers."""
        plan = self.plan
        if self.worth is not None:
            self.worth(plan)
        self._check_lattice()
        measures = [each.measure for each in plan.statistics if each.measure is not None]
        aggregate = self.records.aggregate(measures, squares=Variance() in plan.statistics)
        self._check_counts(aggregate.occupancy)
        return Estimates(plan, *draw(plan, aggregate, noise))

    def results(self, drawn: Estimates) -> list[documents.Document]:
        """One object a number."""
        return results_of(drawn)

    def check(self) -> None:
        """Counts as planned: a recorded release is about such records."""
        self._check_lattice()
        self._check_counts(self.records.counts())

    def _check_lattice(self) -> None:
        own, plan = self.records.lattice, self.plan.lattice
        if own != plan:
            raise DataError(
                f"the records have other bounds or tick bits than the plan: ({own.bounds.lo:g}, "
                f"{own.bounds.hi:g}) and {own.bits} tick bits",
                f"plan again, or give records with bounds ({plan.bounds.lo:g}, {plan.bounds.hi:g}) "
                f"and {plan.bits} tick bits",
            )

    def _check_counts(self, counts: Counts) -> None:
        if not counts.same_as(self.plan.counts):
            raise DataError(
                "the public counts of the records differ from those of the plan",
                "check the file, or make a new plan from these records",
            )


def results_of(numbers: Estimates) -> list[documents.Document]:
    """Returns one object a number: whole lattice steps, the value they stand for, its interval."""
    plan, chosen = numbers.plan, numbers.chosen
    low, high = numbers.intervals(CONFIDENCE)
    key, cells = plan.counts.key_rows, plan.released.tolist()
    return [
        {
            "cell": cell,
            "key": list(key[cell]),
            "statistic": statistic,
            "steps": numbers.steps[at],
            "range": None if chosen is None else [int(chosen.low[at]), int(chosen.high[at])],
            "excess": numbers.excess and [*numbers.excess],
            "unclamped": float(numbers.unclamped[at]),
            "value": float(numbers.value[at]),
            "interval": [float(low[at]), float(high[at])],
        }
        for at, (statistic, cell) in enumerate(product(plan.request.statistics, cells))
    ]
