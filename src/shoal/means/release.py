"""Carrying out a plan of an unbiased mean: values once, one draw, one charge, then delivery."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shoal import checks, documents
from shoal.errors import DataError, InputError
from shoal.means.document import KIND
from shoal.means.estimate import UnbiasedEstimate
from shoal.means.estimators.base import Drawn
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.one_value_per_user import Users, UserValues
from shoal.means.plan_facts import UnbiasedFacts
from shoal.means.request import PUBLISHING
from shoal.means.results import to_results
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.release.draw import release
from shoal.release.manifest import CONFIDENCE
from shoal.release.question import Question

_MOST_HALF = 2.0**900


@np.errstate(all="ignore")
def release_mean(
    plan: UnbiasedFacts,
    values: ArrayLike,
    users: Users | None,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    noise: Simulated | None,
    confidence: float,
    values_name: str,
    privacy_unit: str,
) -> UnbiasedEstimate:
    """See `UnbiasedPlan.release`."""
    confidence = plan.check_confidence(confidence)
    printed_text(values_name)
    unit = unit_of_values(
        privacy_unit,
        several=users is not None,
        recorded=ledger is not None,
        unnamed="" if values_name else "values_name",
    )
    _check_source(plan, values_name, unit)
    user_values = UserValues.of(values, users)
    if not np.array_equal(user_values.count, plan.request.counts):
        raise DataError(
            f"{len(user_values.count)} users with other numbers of records than the plan's",
            f"the plan's {plan.n} users with the records that were planned for",
            "plan with the counts of these records",
        )
    plan = plan.written_anew()
    _check_written(plan)
    question = question_of(plan, values_name, unit, name)
    done = release(question, MeanDraw(plan, user_values), ledger=ledger, noise=noise)
    return UnbiasedEstimate.delivered(done, plan, confidence=confidence)


@dataclass(frozen=True, eq=False)
class MeanDraw:
    """The draw of a plan of a mean.

    Attributes:
        plan: What is carried out.
        user_values: The private data, one value a user.
    """

    plan: UnbiasedFacts
    user_values: UserValues

    def draw(self, noise: Noise) -> Drawn:
        """One estimate."""
        return self.plan.estimator.release(self.user_values.value, noise)

    def results(self, drawn: Drawn) -> documents.Document:
        """The estimate, exactly and as a number, with its interval."""
        return to_results(self.plan, drawn)

    def publishes_values(self, drawn: Drawn) -> bool:
        """If the method samples users, always; else if the coarse step failed."""
        return self.plan.method in PUBLISHING or bool(drawn.failed)

    def check(self) -> None:
        """The counts, all that is public of the records, are part of the plan, and were checked."""


def _check_written(plan: UnbiasedFacts) -> None:
    """Refuse a plan whose results might be no numbers: an error after a draw is not charged."""
    # Estimates are below 2^600: values are read up to 2^500, weights of sampled ones to 2^64.
    if not plan.estimator.half_interval(CONFIDENCE) <= _MOST_HALF:
        raise InputError(
            "a plan whose intervals are wider than numbers reach",
            "moments and intervals of moderate size",
            "give the values in another unit",
        )


def _check_source(plan: UnbiasedFacts, values_name: str, unit: str) -> None:
    """Refuse to release what the plan's description calls something else."""
    for role, name in (("user", unit), ("value", values_name)):
        told = (plan.source or {}).get(role, name)
        if told != name:
            raise InputError(
                f"a source whose {role} is {checks.shown(told)}, with {checks.shown(name)}",
                "one name of users and of values in source, privacy_unit and values_name",
                f"leave {role} out of source, or give the same name",
            )


def question_of(plan: UnbiasedFacts, values_name: str, unit: str, name: str = "") -> Question:
    """What a release of a plan is asked for; its claims follow from the rest."""
    document = plan.document
    return Question(
        kind=KIND,
        plan=document,
        asked={part: each for part, each in document.items() if part != "claims"},
        records={"value": values_name},
        unit=unit,
        loss=plan.loss,
        privacy=_words(plan),
        neighbours="values: all values of one user change, the counts are public",
        name=name,
    )


def _words(plan: UnbiasedFacts) -> str:
    if plan.exact_delta == 0:
        return "pure differential privacy"
    if plan.method in PUBLISHING:
        return "approximate differential privacy; a sampled user's value is published"
    if plan.method == Symmetric.name:
        return (
            "approximate differential privacy; should the coarse step fail, "
            "a sampled user's value is published"
        )
    return "approximate differential privacy"
