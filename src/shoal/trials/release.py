"""Carrying out a plan of a trial: outcomes once, one draw, one charge, then delivery."""

import os
from dataclasses import dataclass
from typing import Protocol

from shoal import documents
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.release.draw import release
from shoal.trials.request import Units
from shoal.trials.result import PrivateTrial
from shoal.trials.stated_effects import Released, to_results
from shoal.trials.trial_plan import TrialPlan


class Drawing(Protocol):
    """A mechanism that is ready to draw."""

    def draw(self, units: Units, noise: Noise) -> Released:
        """What leaves the mechanism."""


def release_trial(
    plan: TrialPlan,
    units: Units,
    mechanism: Drawing,
    unit: str,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    noise: Simulated | None,
) -> PrivateTrial:
    """See `Mechanism.privatize`."""
    question = plan.question(units.about, unit, name)
    way = TrialDraw(plan, units, mechanism)
    done = release(question, way, ledger=ledger, noise=noise)
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

    def draw(self, noise: Noise) -> Released:
        """Read the outcomes and draw."""
        return self.mechanism.draw(self.units, noise)

    def results(self, drawn: Released) -> documents.Document:
        """What left the mechanism, and the effects that follow from it."""
        return to_results(drawn)

    def publishes_values(self, drawn: Released) -> bool:
        """Never: a response may be an outcome, with a probability that nobody's outcome changes."""
        return False

    def check(self) -> None:
        """The question holds the whole assignment: other units are another question."""
