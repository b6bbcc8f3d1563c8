"""Carrying out a plan: values once, exact noise, one transaction, then delivery."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import checks, documents
from shoal.cells import table
from shoal.cells.document import damaged, question_of
from shoal.cells.document import parts as read_plan
from shoal.cells.estimates import Numbers
from shoal.cells.manifest import CONFIDENCE, SCHEMA, make_manifest, numbers_of
from shoal.cells.mechanisms.contributions import FINE
from shoal.cells.mechanisms.draw import Drawing
from shoal.cells.mechanisms.ranges import Range
from shoal.cells.rules import keeps
from shoal.checks.frozen import cached_property, thaw
from shoal.data.records import Records
from shoal.errors import DataError, InputError
from shoal.files import outputs, tables
from shoal.privacy.budget import Budget
from shoal.privacy.displayed_loss import show
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.noise import source_of
from shoal.privacy.privacy_unit import unit_of_column
from shoal.release.booking import Booking, check_request, deliver, told
from shoal.release.rehearsal import rehearse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.data.aggregate import Aggregate
    from shoal.data.occupancy import Occupancy
    from shoal.privacy.ledger.ledger import Entry
    from shoal.privacy.noise import Noise, Simulated
    from shoal.privacy.privacy_unit import PrivacyUnit


@dataclass(frozen=True, eq=False)
class Release:
    """A release: noisy numbers with their errors, and the manifest.

    Source: docs/theory/lattice.md.

    Attributes:
        plan: The plan that was carried out.
        document: The manifest's bytes, as recorded in the ledger.
        entry: The ledger's entry; None for a simulation.
        from_ledger: Whether it had been recorded before: no value was read, nothing charged.
        inputs: The files of records and ledger, which no output may replace.

    Guarantees: G-ACCOUNTING, G-COVERAGE.

    Example:
        >>> import pyarrow as pa, shoal
        >>> table = pa.table({"who": list(range(400)), "at": [1, 2] * 200, "speed": [30.0] * 400})
        >>> records = shoal.Records(table, user="who", value="speed", bounds=(0, 65), cell="at")
        >>> plan = shoal.plan(records.occupancy(), bounds=(0, 65), epsilon=5)
        >>> release = plan.release(records, noise=shoal.Simulated(1))
        >>> release.simulated, len(release.table())
        (True, 2)
    """

    plan: PlanFacts
    document: bytes
    entry: Entry | None
    from_ledger: bool
    inputs: Mapping[str, str | os.PathLike[str] | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        """One line."""
        kind = "simulated release" if self.simulated else "release"
        return (
            f"<{kind} of {len(self.plan.released)} cells, "
            f"epsilon {show(self.plan.exact_epsilon)}, {told(self.entry, again=self.from_ledger)}>"
        )

    @cached_property
    def manifest(self) -> documents.Document:
        """Everything public about the release, as a JSON object."""
        return documents.parse(self.document, SCHEMA, "manifest")

    @cached_property
    def numbers(self) -> Numbers:
        """The released numbers with their error bars, as arrays in the order of released cells."""
        return numbers_of(self.plan, self.manifest)

    @property
    def simulated(self) -> bool:
        """Whether the noise was repeatable: such a release is not private."""
        return bool(self.manifest["simulation"])

    @property
    def epsilon(self) -> float:
        """The total privacy loss, rounded upwards."""
        return self.plan.epsilon

    def table(self, confidence: float = CONFIDENCE) -> pa.Table:
        """One row a cell: keys, status, counts, value, interval, noise scale and errors.

        Args:
            confidence: Of the intervals; changing it costs nothing.

        Returns:
            One row a cell of the occupancy; a cell that is left out has nulls.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
        """
        return table.make_table(self.numbers, confidence)

    def borrow(
        self,
        confidence: float = CONFIDENCE,
        *,
        within: str | Sequence[Any] | NDArray[Any] | None = None,
    ) -> pa.Table:
        """Estimates that borrow strength from all cells, beside the plain ones; costs nothing.

        Columns: the cell's keys, `value` as released, and `borrowed` with `low` and `high`. A
        borrowed estimate is shrunk towards the common mean: biased, and usually far closer where
        noise is large (`docs/theory/shrinkage.md`).

        Args:
            confidence: Of the intervals, over the cells together.
            within: Cells borrow within coarser ones only: names of key columns, or one public label
                for each cell of the occupancy, shape (cells,), such as its day or parent hexagon.

        Returns:
            One row a released cell and statistic.

        Raises:
            InputError: Fewer than three cells, unusable groups, or an unusable confidence.
        """
        return table.borrowed_table(self.numbers, confidence, within)

    def to_pandas(self, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """The table for pandas.

        Args:
            confidence: Of the intervals.

        Returns:
            One row a cell, as in `table`.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
            MissingPartError: pandas is not installed.
        """
        return tables.to_pandas(self.table(confidence))

    def to_polars(self, confidence: float = CONFIDENCE) -> pl.DataFrame:
        """The table for Polars.

        Args:
            confidence: Of the intervals.

        Returns:
            One row a cell, as in `table`.

        Raises:
            InputError: confidence is not strictly between 0 and 1.
            MissingPartError: Polars is not installed.
        """
        return tables.to_polars(self.table(confidence))

    def write(
        self,
        path: str | os.PathLike[str],
        confidence: float = CONFIDENCE,
        *,
        overwrite: bool = False,
    ) -> None:
        """Write the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            confidence: Of the intervals.
            overwrite: Replace a file that is there.

        Raises:
            InputError: Another ending.
            DocumentError: There is a file already, the place cannot be written, or it is that of
                records or ledger, which are never replaced.

        Guarantees: G-OUTPUTS.
        """
        outputs.keep_inputs(path, self.inputs)
        tables.write(self.table(confidence), path, overwrite=overwrite)

    def write_manifest(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the manifest, byte for byte as recorded.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                records or ledger, which are never replaced.

        Guarantees: G-OUTPUTS.
        """
        outputs.write_bytes(path, self.document, self.inputs, overwrite=overwrite)


def carry_out(
    plan: PlanFacts,
    records: Records,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    again: bool,
    noise: Simulated | None,
    privacy_unit: str,
) -> Release:
    """See `Plan.release`."""
    source = source_of(noise, recorded=ledger is not None)
    if ledger is None and not source.simulated:
        raise InputError(
            "a release without a ledger",
            "a ledger, which keeps the books of one data set",
            "make one with Ledger.create(path, epsilon=...) and give ledger=path",
        )
    check_request(name, again=again, recorded=ledger is not None)
    checks.instance(records, Records, "records", "give the shoal.Records that were counted")
    described = _described(plan, records)
    whose = unit_of_column(privacy_unit, records.user)
    if not keeps(plan):
        raise damaged()

    def draw() -> bytes:
        _rehearse(plan, described, whose.unit, name, source)
        return _draw(plan, _aggregate(plan, records), described, whose.unit, name, source)

    if ledger is None:
        inputs = {"records": records.place}
        return Release(plan, draw(), None, from_ledger=False, inputs=inputs)
    booking = Booking(
        question_of(plan, described, whose.unit),
        name,
        "cells",
        whose,
        Budget(plan.exact_epsilon, plan.exact_delta),
        again,
    )
    done = deliver(ledger, booking, draw, check_shape=lambda: _check_shape(plan, records))
    book = str(ledger.path) if isinstance(ledger, Ledger) else os.path.abspath(ledger)  # noqa: PTH100
    inputs = {"records": records.place, "ledger": book}
    return Release(plan, done.document, done.entry, from_ledger=done.from_ledger, inputs=inputs)


def _check_shape(plan: PlanFacts, records: Records) -> None:
    """Counts as planned, without a look at values: a recorded release is about such records."""
    _check_lattice(plan, records)
    _check_counts(plan, records.occupancy())


def _aggregate(plan: PlanFacts, records: Records) -> Aggregate:
    _check_lattice(plan, records)
    measures = [each.measure for each in plan.statistics if each.measure is not None]
    aggregate = records.aggregate(measures)
    _check_counts(plan, aggregate.occupancy)
    return aggregate


def _check_lattice(plan: PlanFacts, records: Records) -> None:
    if records.lattice != plan.lattice:
        raise DataError(
            f"records with bounds ({records.bounds.lo:g}, {records.bounds.hi:g}) and "
            f"{records.lattice.bits} tick bits",
            f"those of the plan, ({plan.bounds.lo:g}, {plan.bounds.hi:g}) and {plan.lattice.bits}",
            "make the records or the plan again",
        )


def _check_counts(plan: PlanFacts, occupancy: Occupancy) -> None:
    if occupancy.fingerprint != plan.occupancy.fingerprint:
        raise DataError(
            "records whose public counts (the occupancy) are not the plan's",
            "as many records of as many users in every cell as were planned for",
            "check the file, or make a new plan from these records",
        )


def _described(plan: PlanFacts, records: Records) -> dict[str, Any]:
    described = records.describe()
    if plan.source is not None and thaw(plan.source) != described:
        raise DataError(
            "records with other columns, cell rules or missing rule than the plan's",
            "the records that the plan is about",
            "make a new plan from these records",
        )
    return described


def _rehearse(
    plan: PlanFacts, described: dict[str, Any], unit: PrivacyUnit, name: str, noise: Noise
) -> None:
    """Write the manifest with every number 0 and the whole range selected, and read it back."""
    cells, chosen = len(plan.released), None
    if plan.mechanism.selects != "nothing":
        whole = np.full(cells, 1 << (plan.lattice.bits + FINE))
        chosen = Range(np.zeros_like(whole), whole)
    numbers = Numbers(plan, [0] * (cells * len(plan.statistics)), chosen)

    def read(manifest: documents.Document) -> None:
        read_plan(manifest["plan"])
        table.make_table(numbers_of(plan, manifest), CONFIDENCE)

    rehearse(
        lambda: make_manifest(
            numbers, records=described, unit=unit, name=name, simulated=noise.simulated
        ),
        SCHEMA,
        read,
    )


def _draw(
    plan: PlanFacts,
    aggregate: Aggregate,
    described: dict[str, Any],
    unit: PrivacyUnit,
    name: str,
    noise: Noise,
) -> bytes:
    drawn = drawing_of(plan).draw(aggregate, noise)
    numbers = Numbers(plan, drawn.steps, drawn.chosen)
    return documents.canonical_bytes(
        make_manifest(numbers, records=described, unit=unit, name=name, simulated=noise.simulated)
    )


def drawing_of(plan: PlanFacts) -> Drawing:
    """The draw that a plan prescribes."""
    return Drawing(
        mechanism=plan.mechanism,
        design=plan.design,
        parameters=plan.parameters,
        selection_scale=plan.selection_scale,
        relative_scale=plan.relative_scale,
        bits=plan.lattice_bits,
        statistics=plan.statistics,
        joint=plan.joint,
        gaussian=plan.gaussian,
    )
