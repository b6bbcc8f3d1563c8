"""Released numbers of cells as JSON, and back."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.design import FINE
from shoal.cells.estimates import Numbers
from shoal.cells.ranges.centre_and_radius import can_be, radius_can_be
from shoal.cells.ranges.selected import Range
from shoal.release.manifest import CONFIDENCE
from shoal.release.release import damaged

if TYPE_CHECKING:
    from shoal import documents
    from shoal.cells.plan_facts import PlanFacts


def to_results(numbers: Numbers) -> list[documents.Document]:
    """One object a number: whole steps of the lattice, the value they stand for, its interval."""
    plan, chosen = numbers.plan, numbers.chosen
    low, high = numbers.intervals(CONFIDENCE)
    key, cells = plan.occupancy.key_rows, plan.released.tolist()
    return [
        {
            "cell": cell,
            "key": list(key[cell]),
            "statistic": statistic.name,
            "steps": numbers.steps[at],
            "range": None if chosen is None else [int(chosen.low[at]), int(chosen.high[at])],
            "unclamped": float(numbers.unclamped[at]),
            "value": float(numbers.value[at]),
            "interval": [float(low[at]), float(high[at])],
        }
        for at, (statistic, cell) in enumerate(product(plan.request.statistics, cells))
    ]


def from_results(plan: PlanFacts, results: list[documents.Document]) -> Numbers:
    """The inverse of `to_results`, from the whole numbers alone; `shoal.verify` compares the rest.

    Args:
        plan: What was carried out.
        results: One for each statistic of each released cell, in order.

    Raises:
        DocumentError: Too few or too many, in another order, or with a range that cannot be.
    """
    names = [each.name for each in plan.request.statistics]
    stated = [(each["statistic"], each["cell"]) for each in results]
    if stated != [*product(names, plan.released.tolist())]:
        raise damaged()
    return Numbers(plan, [each["steps"] for each in results], _chosen(plan, results))


def _chosen(plan: PlanFacts, results: list[documents.Document]) -> Range | None:
    """The selected ranges: where the mechanism selects, one a number, within the bounds."""
    ranges = [result["range"] for result in results]
    selects = plan.mechanism.range.selects != "nothing"
    if any((each is not None) != selects for each in ranges):
        raise damaged()
    if not selects:
        return None
    low, high = np.array(ranges, dtype=np.int64).T
    # A range of sums is as wide as the most records of a user make it; a radius, around any centre.
    where = plan.mechanism.range
    inside = where.of_sums or where.of_vectors or int(high.max()) <= 1 << (plan.lattice.bits + FINE)
    if not (inside and ((low >= 0) & (low < high)).all()):
        raise damaged()
    top = 1 << (plan.lattice.bits + FINE)
    pairs = {*zip(low.tolist(), high.tolist(), strict=True)} if where.of_vectors else set()
    if plan.rounds > 1:
        widths = {high - low for low, high in pairs}
        if len(widths) > 1 or not all(radius_can_be(*pair, plan.parameters, top) for pair in pairs):
            raise damaged()
        return Range(low, high)
    if len(pairs) > 1 or not all(can_be(*pair, plan.parameters, top) for pair in pairs):
        raise damaged()
    return Range(low, high)
