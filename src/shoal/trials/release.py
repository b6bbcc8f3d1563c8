"""Carrying out a plan of a trial: outcomes once, one draw, one charge, then delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shoal.release.carry_out import carry_out
from shoal.trials.result import PrivateTrial
from shoal.trials.stated_effects import from_results, to_results
from shoal.trials.trial_plan import TrialPlan

if TYPE_CHECKING:
    import os

    from shoal import documents
    from shoal.data.assignment import Assignment
    from shoal.privacy.ledger.ledger import Ledger
    from shoal.privacy.noise import Randomness, Simulated
    from shoal.privacy.privacy_unit import Whose
    from shoal.trials.request import Units
    from shoal.trials.stated_effects import Released


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
    return PrivateTrial.delivered(done, plan)


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
        return to_results(drawn)

    def publishes_values(self, drawn: Released) -> bool:
        """Never: a response may be an outcome, with a probability that nobody's outcome changes."""
        return False

    def read(self, manifest: documents.Document) -> None:
        """The effects of what was released."""
        from_results(TrialPlan.from_document(manifest["plan"]), manifest["results"])

    def check_shape(self) -> None:
        """The question holds the whole assignment: other units are another question."""
