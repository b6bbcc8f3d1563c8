"""Carrying out a plan of a trial: outcomes once, one draw, one charge, then delivery."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shoal.release.carry_out import carry_out
from shoal.release.manifest import CONFIDENCE
from shoal.trials.document import TrialPlan
from shoal.trials.effects import key_text
from shoal.trials.result import PrivateTrial, read_released

if TYPE_CHECKING:
    import os

    from shoal import documents
    from shoal.data.assignment import Assignment
    from shoal.privacy.ledger.ledger import Ledger
    from shoal.privacy.noise import Randomness, Simulated
    from shoal.privacy.privacy_unit import Whose
    from shoal.trials.effects import Effect, Inference
    from shoal.trials.request import Units
    from shoal.trials.result import Released


class Drawing(Protocol):
    """A mechanism that is ready to draw."""

    def draw(self, units: Units, noise: Randomness) -> Released:
        """What leaves the mechanism."""

    def blank(self, assignment: Assignment) -> Released:
        """The same with placeholders for all numbers, whatever the outcomes."""


def release_trial(
    plan: TrialPlan,
    units: Units,
    mechanism: Drawing,
    whose: Whose,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    again: bool,
    noise: Simulated | None,
) -> PrivateTrial:
    """See `Mechanism.privatize`."""
    question = plan.question(units.about, whose, name)
    way = TrialDraw(plan, units, mechanism)
    done = carry_out(question, way, ledger=ledger, again=again, noise=noise)
    return PrivateTrial(
        done.document, done.entry, done.from_ledger, known_plan=plan, drawn=done.drawn
    )


@dataclass(frozen=True, eq=False)
class TrialDraw:
    """The draw of a plan of a trial.

    Attributes:
        plan: What is carried out.
        units: The private data: one outcome for each unit.
        mechanism: What draws.
    """

    plan: TrialPlan
    units: Units
    mechanism: Drawing

    def draw(self, noise: Randomness) -> Released:
        """Read the outcomes and draw."""
        return self.mechanism.draw(self.units, noise)

    def blank(self) -> Released:
        """Placeholders for all numbers."""
        return self.mechanism.blank(self.units.assignment)

    def results(self, drawn: Released) -> documents.Document:
        """What left the mechanism, and the effects that follow from it."""
        effects = [effect_document(each) for each in drawn.effects(CONFIDENCE)]
        return {"released": drawn.to_document(), "effects": effects}

    def publishes_values(self, drawn: Released) -> bool:  # noqa: ARG002
        """Never: a response may be an outcome, with a probability that nobody's outcome changes."""
        return False

    def read(self, manifest: documents.Document) -> None:
        """The effects of what was released."""
        plan = TrialPlan.from_document(manifest["plan"])
        read_released(plan, manifest["results"]).effects(CONFIDENCE)

    def check_shape(self) -> None:
        """The question holds the whole assignment: other units are another question."""


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
