"""What left a mechanism and the effects that follow from it as JSON, and back."""

import math
from typing import Any, TypeAlias

from shoal import documents
from shoal.privacy.budget import Budget, from_text
from shoal.release.manifest import CONFIDENCE
from shoal.release.release import damaged
from shoal.trials.aggregate_release import KINDS, AggregateRelease
from shoal.trials.best_table.choice import table_of
from shoal.trials.effects import Effect, Inference, key_text
from shoal.trials.table_release import KIND as TABLE
from shoal.trials.table_release import TableRelease
from shoal.trials.trial_plan import TrialPlan
from shoal.trials.unit_release import KIND as UNITS
from shoal.trials.unit_release import UnitRelease, parameters_of

Released: TypeAlias = UnitRelease | TableRelease | AggregateRelease


def to_results(released: Released) -> documents.Document:
    """What left the mechanism, and the effect of every arm."""
    effects = [_effect(each) for each in released.effects(CONFIDENCE)]
    return {"released": released.to_document(), "effects": effects}


def from_results(plan: TrialPlan, results: documents.Document) -> Released:
    """The inverse of `to_results`, from what was released; `shoal.verify` compares the effects.

    Args:
        plan: What was carried out.
        results: Of its manifest.

    Raises:
        DocumentError: A part is damaged.
    """
    document = results["released"]
    facts = plan.space, plan.assignment, plan.mechanism
    if document["kind"] == TABLE:
        return TableRelease.from_document(document, *facts)
    if document["kind"] == UNITS:
        return UnitRelease.from_document(document, *facts)
    return AggregateRelease.from_document(document, *facts)


def loss_of(plan: TrialPlan) -> Budget:
    """The exact loss of one outcome, from the whole numbers of the mechanism.

    Args:
        plan: As read from a document.

    Raises:
        DocumentError: A part is damaged.
    """
    mechanism, delta = plan.mechanism, from_text(plan.mechanism["asked"]["delta"])
    if "aggregate" in mechanism:
        epsilon = KINDS[mechanism["name"]].from_document(mechanism["aggregate"]).exact_epsilon
    elif "table" in mechanism:
        epsilon = table_of(mechanism["table"], plan.space).epsilon
    else:
        epsilon = parameters_of(mechanism["parameters"], plan.space.size).epsilon(delta)
    if epsilon > from_text(mechanism["asked"]["epsilon"]):
        raise damaged()
    return Budget(epsilon + plan.clustering_epsilon, delta)


def _effect(effect: Effect) -> documents.Document:
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
