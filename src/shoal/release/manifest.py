"""The manifest: everything public about a release, in one JSON document."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.planning import document as plan_document
from shoal.release.interval import intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal import documents
    from shoal.planning.facts import PlanFacts

SCHEMA = "shoal.manifest/1"
CONFIDENCE = 0.95


def make_manifest(
    plan: PlanFacts, steps: list[int], *, records: Mapping[str, Any], name: str, simulated: bool
) -> documents.Document:
    """Put the noisy lattice numbers and all that is public about them together.

    Args:
        plan: What was carried out.
        steps: Noisy whole number of lattice steps of each released cell.
        records: Public description of the records.
        name: The release's name.
        simulated: Whether the noise was repeatable.
    """
    return {
        "schema": SCHEMA,
        "name": name,
        "records": dict(records),
        "request": plan_document.request_key(plan, records, name),
        "simulation": simulated,
        "guarantee": {
            "privacy": "pure differential privacy",
            "unit": "user",
            "neighbours": "values: all values of one user change, the counts are public",
            "epsilon": str(plan.exact_epsilon),
            "epsilon_at_most": plan.epsilon,
            "delta": "0",
        },
        "plan": plan_document.to_document(plan),
        "results": _results(plan, steps),
        "confidence": CONFIDENCE,
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }


def unclamped_values(plan: PlanFacts, steps: list[int]) -> NDArray[np.float64]:
    """What the noisy lattice numbers of the released cells stand for, in the value's unit."""
    value, bits = plan.mechanism.value, plan.lattice_bits
    scales = plan.relative_scale.tolist()
    return np.array([value(x, scale, bits) for x, scale in zip(steps, scales, strict=True)])


def _results(plan: PlanFacts, steps: list[int]) -> list[documents.Document]:
    unclamped = unclamped_values(plan, steps)
    low, high = intervals(plan, unclamped, CONFIDENCE)
    value = np.clip(unclamped, plan.bounds.lo, plan.bounds.hi)
    columns = plan.occupancy.to_document()["cells"]["columns"]
    keys = list(zip(*(column["values"] for column in columns), strict=True))
    return [
        {
            "cell": cell,
            "key": list(keys[cell]),
            "statistic": plan.mechanism.statistic,
            "steps": number,
            "unclamped": float(unclamped[at]),
            "value": float(value[at]),
            "interval": [float(low[at]), float(high[at])],
        }
        for at, (cell, number) in enumerate(zip(plan.released.tolist(), steps, strict=True))
    ]
