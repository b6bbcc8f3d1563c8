"""Released numbers of cells as JSON, and back."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.estimates import Numbers
from shoal.cells.mechanisms.ranges import Range
from shoal.data import keys
from shoal.release.manifest import CONFIDENCE

if TYPE_CHECKING:
    from shoal import documents
    from shoal.cells.plan_facts import PlanFacts


def to_results(numbers: Numbers) -> list[documents.Document]:
    """One object a number: whole steps of the lattice, the value they stand for, its interval."""
    plan, chosen = numbers.plan, numbers.chosen
    low, high = numbers.intervals(CONFIDENCE)
    columns = keys.to_document(plan.occupancy.cells)["columns"]
    key = list(zip(*(column["values"] for column in columns), strict=True))
    cells = plan.released.tolist()
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
        for at, (statistic, cell) in enumerate(product(plan.statistics, cells))
    ]


def from_results(plan: PlanFacts, results: list[documents.Document]) -> Numbers:
    """The inverse of `to_results`."""
    ranges = [result["range"] for result in results]
    chosen = None
    if ranges[0] is not None:
        low, high = np.array(ranges, dtype=np.int64).T
        chosen = Range(low, high)
    return Numbers(plan, [result["steps"] for result in results], chosen)
