"""What a table of responses leaves: a debiased outcome for each unit, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import documents
from shoal.data.assigned_groups import AssignedGroups
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.noise import Noise
from shoal.trials.best_table.choice import table_of
from shoal.trials.best_table.integer_table import IntegerTable
from shoal.trials.effects import Effect
from shoal.trials.few_units import warned
from shoal.trials.group_inference import effects_of_groups, warned_of_groups
from shoal.trials.inference import effects_of
from shoal.trials.request import Units
from shoal.trials.response import tabulate
from shoal.trials.unit_responses import (
    codes_of,
    columns_of,
    counts_agree,
    damaged,
    moments_of,
    unpacked,
)

KIND = "table"
# Draws of one release, told apart.
_ROUNDING, _RESPONDING = 0, 1


@dataclass(frozen=True, eq=False)
class TableRelease:
    """Responses of all units and the table they were drawn from: public.

    Attributes:
        assignment: Clusters, arms, sizes.
        drawn_from: The table, in whole numbers.
        counts: Units with each response, clusters x arms x responses.
        responses: Response of each named unit, in the assignment's order; None for units without
            names.
    """

    assignment: Assignment
    drawn_from: IntegerTable
    counts: NDArray[np.int64]
    responses: NDArray[np.int64] | None

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Response of each unit; rising within a group if units have no names."""
        return codes_of(self.counts, self.responses)

    @cached_property
    def debiased(self) -> NDArray[np.float64]:
        """Debiased outcome of each unit, in the assignment's order."""
        return np.asarray(self.drawn_from.debiased[self.codes])

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean above the lowest level and variance (divisor d - 1, NaN for one unit) of responses.

        Returns:
            Clusters x arms each.
        """
        return moments_of(self.counts, self.drawn_from.shift, self.assignment.sizes)

    def effects(
        self, confidence: float, groups: AssignedGroups | None = None
    ) -> tuple[Effect, ...]:
        """Every arm against the control; standard errors contain the mechanism's variance.

        Args:
            confidence: Of each interval on its own.
            groups: Groups that were assigned whole; None if units were, one by one.
        """
        if groups is None:
            mean, spread = self.moments()
            found = effects_of(self.assignment, mean, spread, confidence=confidence)
            return warned(found, self.counts, self.drawn_from.shift)
        above = self.drawn_from.shift[self.codes]
        parts = self.moments(), above
        found = effects_of_groups(self.assignment, groups, *parts, confidence)
        return warned_of_groups(warned(found, self.counts, self.drawn_from.shift))

    def table(self) -> pa.Table:
        """One row a unit: cluster, arm, unit if named, number of the response, debiased."""
        told = {"response": pa.array(self.codes), "debiased": pa.array(self.debiased)}
        return pa.table({**columns_of(self.assignment), **told})

    def to_document(self) -> documents.Document:
        """What was released, as a JSON object.

        Units without names are interchangeable: how many gave each response says all.
        """
        given = self.responses
        return {
            "kind": KIND,
            "counts": documents.pack_integers(self.counts.ravel()),
            "responses": None if given is None else documents.pack_integers(given),
        }

    @classmethod
    def from_document(
        cls,
        document: documents.Document,
        space: Space,
        assignment: Assignment,
        mechanism: documents.Document,
    ) -> TableRelease:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        table, given = table_of(mechanism["table"], space), document["responses"]
        found = cls(
            assignment,
            table,
            unpacked(document, "counts", (*assignment.sizes.shape, table.responses)),
            None if given is None else unpacked(document, "responses", (assignment.n,)),
        )
        if not counts_agree(assignment, found.counts, found.responses):
            raise damaged()
        return found


def draw_table(
    units: Units, space: Space, kept: Sequence[int], table: IntegerTable, noise: Noise
) -> TableRelease:
    """Round outcomes to levels and draw a response for each.

    Guarantees: label differential privacy with `table.epsilon`: only the response of the changed
    unit depends on its outcome, and its probabilities are in the table. Order and shape of what is
    released depend on public columns alone. Every unit has words of its own, independent and alike:
    without names only counts of each group are released, whose distribution is that of any order of
    rows.

    Args:
        units: The outcomes. Private.
        space: Levels of the outcome.
        kept: Positions of the levels in use.
        table: Whole numbers.
        noise: Where randomness comes from.
    """
    assignment = units.assignment
    codes = space.encode(units.outcomes, noise.bits(assignment.n, _ROUNDING), kept)
    given = table.respond(codes, noise.bits(assignment.n, _RESPONDING))
    counts = tabulate(given, assignment.group, assignment.sizes.size, table.responses)
    return TableRelease(
        assignment,
        table,
        counts.reshape(*assignment.sizes.shape, table.responses),
        # Rows without names may follow the outcomes: their order is forgotten here.
        None if assignment.units is None else given,
    )
