"""The manifest: everything public about a release, in one JSON document."""

from __future__ import annotations

import platform
from importlib.metadata import version
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.cells import document as plan_document
from shoal.cells.estimates import Numbers
from shoal.cells.mechanisms.ranges import Range
from shoal.release.booking import request_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal import documents
    from shoal.cells.plan_facts import PlanFacts
    from shoal.privacy.privacy_unit import PrivacyUnit

SCHEMA = "shoal.manifest/3"
CONFIDENCE = 0.95
_PRIVACY = {False: "pure differential privacy", True: "approximate differential privacy"}


def make_manifest(
    numbers: Numbers,
    *,
    records: Mapping[str, Any],
    unit: PrivacyUnit,
    name: str,
    simulated: bool,
) -> documents.Document:
    """Put the noisy lattice numbers and all that is public about them together.

    Args:
        numbers: What was drawn.
        records: Public description of the records.
        unit: What the user column tells apart.
        name: What the release is of.
        simulated: Whether the noise was repeatable.
    """
    plan = numbers.plan
    return {
        "schema": SCHEMA,
        "name": name,
        "records": dict(records),
        "request": request_of(plan_document.question_of(plan, records, unit), name),
        "simulation": simulated,
        "guarantee": {
            "privacy": _PRIVACY[plan.gaussian],
            "unit": unit.to_document(),
            "neighbours": "values: all values of one user change, the counts are public",
            "epsilon": str(plan.exact_epsilon),
            "epsilon_at_most": plan.epsilon,
            "delta": str(plan.exact_delta),
        },
        "plan": plan_document.made_once(plan),
        "results": _results(numbers),
        "confidence": CONFIDENCE,
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }


def numbers_of(plan: PlanFacts, manifest: documents.Document) -> Numbers:
    """The released numbers of a manifest."""
    results = manifest["results"]
    ranges = [result["range"] for result in results]
    chosen = None
    if ranges[0] is not None:
        low, high = np.array(ranges, dtype=np.int64).T
        chosen = Range(low, high)
    return Numbers(plan, [result["steps"] for result in results], chosen)


def _results(numbers: Numbers) -> list[documents.Document]:
    plan, chosen = numbers.plan, numbers.chosen
    low, high = numbers.intervals(CONFIDENCE)
    columns = plan.occupancy.to_document()["cells"]["columns"]
    keys = list(zip(*(column["values"] for column in columns), strict=True))
    cells = plan.released.tolist()
    return [
        {
            "cell": cell,
            "key": list(keys[cell]),
            "statistic": statistic.name,
            "steps": numbers.steps[at],
            "range": None if chosen is None else [int(chosen.low[at]), int(chosen.high[at])],
            "unclamped": float(numbers.unclamped[at]),
            "value": float(numbers.value[at]),
            "interval": [float(low[at]), float(high[at])],
        }
        for at, (statistic, cell) in enumerate(product(plan.statistics, cells))
    ]
