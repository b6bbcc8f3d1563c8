"""Simulated draws of a plan from sums that were aggregated once, where no engine is on trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shoal
from shoal.cells.draw_of_plan import drawing_of
from shoal.cells.estimates import Numbers

if TYPE_CHECKING:
    from shoal.cells.plan_facts import PlanFacts
    from shoal.data.aggregate import Aggregate


def drawn(plan: PlanFacts, sums: Aggregate, seed: int) -> Numbers:
    """Numbers as a release would publish them, with noise of a seed."""
    found = drawing_of(plan).draw(sums, shoal.Simulated(seed))
    return Numbers(plan, found.steps, found.chosen)
