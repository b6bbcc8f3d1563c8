"""Simulated draws of a plan from sums that were aggregated once, where no engine is on trial."""

import shoal
from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.data.aggregate import Aggregate


def drawn(plan: PlanFacts, sums: Aggregate, seed: int) -> Estimates:
    """Numbers as a release would publish them, with noise of a seed."""
    return Estimates(plan, *draw(plan, sums, shoal.Simulated(seed)))
