"""Holds what all plans of public counts have in common: their records, counts and checks."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from shoal import checks, documents
from shoal.cells.comparisons.advice import Advice, Judged
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import described
from shoal.cells.facts.shown_cells import ShownCells
from shoal.data.counts import Counts
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds
from shoal.errors import DataError, InputError
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated
from shoal.privacy.unit import Periods, Unit, all_periods, unit_of_column
from shoal.progress import Progress
from shoal.release import plan as plans
from shoal.release.columns import check_unit_of_users
from shoal.release.plan import Delivered, check_ledger

Drawn = TypeVar("Drawn")
_TICK_BITS = 20


class Counted(NamedTuple):
    """Public counts, the bounds and ticks of the values, and a description of the records."""

    counts: Counts
    bounds: Bounds | tuple[float, float]
    tick_bits: int
    source: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        counts: Counts | Records,
        bounds: Bounds | tuple[float, float] | None,
        tick_bits: int | None,
        source: Mapping[str, Any] | None,
        records_per_user: int | None,
    ) -> Counted:
        """Returns the counts of records, or given counts with what is given beside them."""
        if isinstance(counts, Records):
            if any(each is not None for each in (bounds, tick_bits, source)):
                raise InputError(
                    "bounds, tick_bits or source are given together with records",
                    "leave them out, as records contain them, or give records.counts() in their "
                    "place",
                )
            records = counts.at_most(records_per_user)
            check_public(records)
            return cls(records.counts(), records.bounds, records.lattice.bits, records.describe())
        todo = "give records, records.counts() or Counts.from_counts(...)"
        checks.instance(counts, Counts, "counts", todo)
        if records_per_user is not None:
            counts = counts.at_most(records_per_user)
            if source is not None:
                source = {**source, "records_per_user": records_per_user}
        if bounds is None:
            raise InputError(
                "counts do not contain the bounds of values", "give for example bounds=(0, 700)"
            )
        if source is not None:
            described(source)
            check_period(source, counts)
        return cls(counts, bounds, _TICK_BITS if tick_bits is None else tick_bits, source)


class PublicPlan(plans.Plan[Records, Drawn], ShownCells, Generic[Drawn]):
    """A plan that is made from public counts."""

    neighbours = "values: all values of one user change, the counts are public"

    @property
    @abstractmethod
    def of_cells(self) -> Sequence[Facts]:
        """The plans of means or certified statistics of cells that it consists of."""

    @property
    @abstractmethod
    def unreliable(self) -> list[str]:
        """The statistics of which likely no cell will be reliable, as far as that can be said."""

    @abstractmethod
    def advise(self, progress: Progress | None = None) -> Advice:
        """Changes that would make more cells reliable."""

    @property
    def protected(self) -> str:
        """What is protected, in one line, and the loss over all periods if there are any."""
        unit = Unit((self.source or {}).get("user", "user"), self.relation, self.period)
        return str(unit) + all_periods(unit, self.periods, self.loss)

    @property
    def periods(self) -> Periods | None:
        """The periods of the records that were counted."""
        return self.counts.periods

    @property
    def asked(self) -> documents.Document:
        """The request, and the fingerprint of the counts."""
        return {"request": self.request.to_document(), "counts": self.counts.fingerprint}

    @property
    def _sources(self) -> Mapping[str, str | None]:
        """The file of the records that were counted."""
        return {"records": self.counts.origin}

    def mismatches(self, records: Mapping[str, Any], unit: Mapping[str, Any]) -> Iterator[str]:
        """Yields a sentence if a release has other columns than the plan."""
        if self.source != records:
            yield "the plan has other columns than the release"

    def check(self, private: Records) -> None:
        """Refuses records with other bounds or counts than the plan's."""
        self.check_lattice(private)
        self.check_counts(private.counts())

    def check_lattice(self, records: Records) -> None:
        """Refuses records of other bounds or ticks than the plan's."""
        given = records.lattice
        wanted = self.request.lattice
        if given != wanted:
            raise DataError(
                f"the records have other bounds or tick bits than the plan: ({given.bounds.lo:g}, "
                f"{given.bounds.hi:g}) and {given.bits} tick bits",
                f"plan again, or give records with bounds ({wanted.bounds.lo:g}, "
                f"{wanted.bounds.hi:g}) and {wanted.bits} tick bits",
            )

    def check_counts(self, counts: Counts) -> None:
        """Refuses counts that differ from the plan's."""
        if not counts.same_as(self.counts):
            raise DataError(
                "the public counts of the records differ from those of the plan",
                "check the file, or make a new plan from these records",
            )

    def carried_out(
        self,
        records: Records,
        before: Callable[[Judged], None] | None,
        *,
        ledger: str | os.PathLike[str] | Ledger | None,
        name: str,
        noise: Simulated | None,
        privacy_unit: str,
    ) -> tuple[Delivered, Any, dict[str, Any]]:
        """Returns what is delivered, the plan for these columns, and the files that it is from.

        `before` is called with the plan before values are read.
        """
        check_ledger(ledger, noise)
        checks.instance(records, Records, "records", "give the shoal.Records that were counted")
        check_public(records)
        records = records.at_most((self.source or {}).get("records_per_user"))
        columns = records.describe()
        if self.source is not None and dict(self.source) != columns:
            raise DataError(
                "columns, rules or missing= of the records differ from those of the plan",
                "give the records that the plan was made for, or make a new plan from these",
            )
        check_unit_of_users(
            records.source,
            user=records.user,
            value=records.value,
            missing=records.missing,
            privacy_unit=privacy_unit,
            ledger=ledger,
        )
        unit = unit_of_column(privacy_unit, records.user, self.relation, self.period)
        plan = self.with_source(columns)

        def first() -> None:
            """Calls `before`, once it is known that no release is recorded yet."""
            if noise is None and before is not None:
                before(self)

        with np.errstate(all="ignore"):
            done = plan.deliver(
                records, columns, unit, name=name, ledger=ledger, noise=noise, first=first
            )
        return done, plan, {"records": records.place, "plan": self.counts.origin}


def check_public(records: Records) -> None:
    """Refuses records whose counts are private, since these plans are made from the counts."""
    if records.relation != PublicPlan.relation:
        raise InputError(
            "the counts of these records are private, and this plan is made from public counts",
            "call shoal.plan with keys= and users= (--keys, --users); or give the records "
            'counts="public" if everybody may know who has how many records in which cell',
        )


def check_period(source: Mapping[str, Any] | None, counts: Counts) -> None:
    """Refuses columns that divide users into other periods than the counts do."""
    rule = counts.periods and counts.periods.rule
    if source is not None and source.get("period") != rule:
        raise InputError(
            f"the counts are of {counts.of_whom}s, and the source has another period",
            "give the records themselves, or the counts and the description of the same records",
        )
