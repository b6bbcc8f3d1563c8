"""The manifest of a release: everything public about it, in one JSON document of one form."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.privacy.budget import text
from shoal.privacy.displayed_loss import round_up

if TYPE_CHECKING:
    from shoal import documents
    from shoal.release.question import Question

SCHEMA = "shoal.manifest/4"
CONFIDENCE = 0.95


def make_manifest(
    question: Question,
    results: Any,  # noqa: ANN401
    *,
    simulated: bool,
    publishes_values: bool = False,
) -> documents.Document:
    """Put what was drawn and all that is public about it together.

    Args:
        question: What was asked for.
        results: What was drawn and what follows from it, as JSON; of the question's kind.
        simulated: Whether the randomness was repeatable.
        publishes_values: Whether somebody's value may stand in the results as it is.
    """
    loss, unit = question.loss, question.whose.unit
    return {
        "schema": SCHEMA,
        "kind": question.kind,
        "name": question.name,
        "records": dict(question.records),
        "request": question.request,
        "simulation": simulated,
        "guarantee": {
            "privacy": question.privacy,
            "unit": unit.to_document(),
            "neighbours": question.neighbours,
            "publishes_values": publishes_values,
            "epsilon": text(loss.epsilon),
            "epsilon_at_most": round_up(loss.epsilon),
            "delta": text(loss.delta),
            "delta_at_most": round_up(loss.delta),
        },
        "plan": question.plan,
        "results": results,
        "confidence": CONFIDENCE,
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }
