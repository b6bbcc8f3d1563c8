"""Holds what everybody may have of a release of cells: no number in it is about a single user."""

from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.basis import Basis, for_readers
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import Records
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.private_sums import Interval
from shoal.cells.shown.arrow_tables import Rows
from shoal.cells.shown.left_out import counted_out, reasons
from shoal.cells.shown.plan_warnings import release_warnings
from shoal.documents.model import Integers, Numbers
from shoal.release import envelope
from shoal.release.envelope import CONFIDENCE, Text


class Published(envelope.Published):
    """Cells that readers see with their totals, the numbers that were drawn, and what follows.

    Attributes:
        basis: The public numbers from which values and intervals follow.
        users: The number of users of each cell that readers see.
        records: The number of records of each cell that readers see.
        reason: Why each of these cells is left out; empty for planned ones.
        left_out: How many cells each public rule leaves out.
        warnings: Where intervals may not cover.
        steps: The lattice steps that were drawn, a number for each statistic of a planned cell.
        low_ticks: The lower ends of selected ranges, in units of 2^-FINE ticks; None without any.
        high_ticks: The upper ends of selected ranges, in the same unit.
        excess: The noisy excess of clipped users: below, above, and of far users.
        status: Whether each planned cell is reliable, or why not.
        value: The best estimate of each number.
        low: The lower end of each number's interval.
        high: The upper end of each number's interval.
    """

    plan: None = None
    results: None = None
    basis: Basis
    users: Integers
    records: Integers
    reason: tuple[Text, ...]
    left_out: dict[str, int]
    warnings: tuple[Text, ...]
    steps: tuple[int, ...]
    low_ticks: Integers | None
    high_ticks: Integers | None
    excess: Annotated[tuple[int, ...], Field(min_length=3, max_length=3)] | None
    status: tuple[Text, ...]
    value: Numbers
    low: Numbers
    high: Numbers

    stated: ClassVar[str] = "certified errors, biases, moved weights and totals of cells"

    @classmethod
    def of_plan(cls, plan: Facts, numbers: Estimates) -> Self:
        """What may be published of the numbers that were drawn for a plan."""
        shown = plan.shown
        why = reasons(plan)
        chosen = numbers.chosen
        shown_numbers = for_everybody(plan, numbers)
        return cls(
            basis=shown_numbers.basis,
            users=plan.counts.users_per_cell[shown],
            records=plan.counts.records[shown],
            reason=tuple(why[at] for at in shown.tolist()),
            left_out=plan.left_out,
            warnings=tuple(release_warnings(plan, shown_numbers)),
            steps=tuple(numbers.steps),
            low_ticks=None if chosen is None else chosen.low,
            high_ticks=None if chosen is None else chosen.high,
            excess=numbers.excess,
            **_follows(shown_numbers),
        )

    @cached_property
    def numbers(self) -> Estimates:
        """The numbers that were drawn."""
        chosen = None
        if self.low_ticks is not None and self.high_ticks is not None:
            chosen = Interval(self.low_ticks, self.high_ticks)
        return Estimates(self.basis, [*self.steps], chosen, self.excess)

    @property
    def parts(self) -> dict[str, Self]:
        """All of it, which is one part."""
        return {"cells": self}

    @property
    def request(self) -> Request:
        """What was asked."""
        return self.basis.request

    @property
    def rows(self) -> Rows:
        """The cells that readers see."""
        basis = self.basis
        return Rows(basis.cells, self.users, self.records, basis.status, [*self.reason])

    @property
    def sentences(self) -> list[str]:
        """How many cells public rules leave out, in words."""
        return [*counted_out(self.basis.request, self.left_out)]

    @property
    def size(self) -> float:
        """The largest number that the bounds allow."""
        return float(np.max(np.abs(self.basis.limits))) + self.basis.width

    def again(self) -> Self:
        """Returns the same, with statuses, values and intervals computed from what was drawn."""
        return self.model_copy(update=_follows(self.numbers))


class Manifest(envelope.Manifest):
    """What everybody may have of a release of cells."""

    kind: Literal["cells"]
    records: Records
    results: Published


def for_everybody(plan: Facts, numbers: Estimates) -> Estimates:
    """Returns the numbers that were drawn with the basis that readers see."""
    return replace(numbers, basis=for_readers(plan, numbers.basis))


def _follows(numbers: Estimates) -> dict[str, Any]:
    """Returns the values, intervals and statuses that follow from drawn numbers."""
    found = values_of(numbers, CONFIDENCE)
    return {**found._asdict(), "status": tuple(intervals.statuses(numbers))}
