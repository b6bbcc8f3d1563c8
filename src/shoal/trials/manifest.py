"""The manifest of a trial release: everything public about it, in one JSON document."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.privacy.displayed_loss import round_up
from shoal.release.booking import request_of
from shoal.trials.effects import key_text

if TYPE_CHECKING:
    from shoal import documents
    from shoal.trials.effects import Effect, Inference
    from shoal.trials.released import Released
    from shoal.trials.request import Question

SCHEMA = "shoal.trial/1"
CONFIDENCE = 0.95


def make_manifest(question: Question, released: Released, *, simulated: bool) -> documents.Document:
    """Put what was released and all that is public about it together.

    Args:
        question: What was asked.
        released: What left the mechanism.
        simulated: Whether the randomness was repeatable.
    """
    charge = question.charge
    kind = "approximate" if charge.delta else "pure"
    return {
        "schema": SCHEMA,
        "request": request_of(question.key, question.name),
        "question": question.to_document(),
        "simulation": simulated,
        "guarantee": {
            "privacy": f"{kind} label differential privacy",
            "unit": question.unit.to_document(),
            "neighbours": "one unit's outcome changes; its cluster and treatment are public",
            "epsilon": str(charge.epsilon),
            "epsilon_at_most": round_up(charge.epsilon),
            "delta": str(charge.delta),
            "clustering_epsilon": str(question.clustering_epsilon),
        },
        "released": released.to_document(),
        "confidence": CONFIDENCE,
        "effects": [effect_document(each) for each in released.effects(CONFIDENCE)],
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }


def effect_document(effect: Effect) -> documents.Document:
    """An effect as a JSON object; what could not be estimated is null."""
    return {
        "arm": key_text(effect.arm),
        "control": key_text(effect.control),
        "value": effect.value,
        "finite_population": _inference(effect.finite_population),
        "super_population": _inference(effect.super_population),
    }


def _inference(found: Inference) -> dict[str, Any]:
    low, high = found.interval
    return {
        "standard_error": _number(found.standard_error),
        "interval": [_number(low), _number(high)],
    }


def _number(value: float) -> float | None:
    # JSON has no NaN: what could not be estimated is null.
    return float(value) if math.isfinite(value) else None
