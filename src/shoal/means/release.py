"""Carrying out a plan of an unbiased mean: values once, one draw, one charge, then delivery."""

from __future__ import annotations

import platform
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks, documents
from shoal.checks import check_confidence
from shoal.errors import DataError, InputError
from shoal.means.document import parts
from shoal.means.estimate import SCHEMA, UnbiasedEstimate
from shoal.means.estimators.base import Drawn
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.one_value_per_user import People
from shoal.means.request import PUBLISHING
from shoal.privacy.budget import text
from shoal.privacy.displayed_loss import round_up
from shoal.privacy.noise import source_of
from shoal.privacy.privacy_unit import unit_of
from shoal.release.booking import Booking, check_request, check_text, deliver, request_of
from shoal.release.rehearsal import rehearse

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from shoal.means.one_value_per_user import Users
    from shoal.means.plan_facts import UnbiasedFacts
    from shoal.privacy.ledger.ledger import Ledger
    from shoal.privacy.noise import Randomness, Simulated
    from shoal.privacy.privacy_unit import PrivacyUnit

CONFIDENCE = 0.95
_MOST_HALF = 2.0**900


def carry_out(
    plan: UnbiasedFacts,
    values: ArrayLike,
    users: Users | None,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    again: bool,
    noise: Simulated | None,
    confidence: float,
    values_name: str,
    privacy_unit: str,
) -> UnbiasedEstimate:
    """As `UnbiasedPlan.release` says."""
    confidence = check_confidence(confidence)
    recorded = ledger is not None
    check_request(name, again=again, recorded=recorded)
    check_text(values_name)
    source = source_of(noise, recorded=recorded)
    whose = unit_of(
        privacy_unit,
        named=users is not None,
        recorded=recorded,
        unnamed="" if values_name else "values_name",
    )
    unit = whose.unit
    _check_source(plan, values_name, unit)
    people = People.of(values, users)
    if not np.array_equal(people.count, plan.request.counts):
        raise DataError(
            f"records of {len(people.count)} users whose numbers of records are not the plan's",
            f"the plan's {plan.n} users with the records that were planned for",
            "plan with the counts of these records",
        )

    _check_written(plan)

    def draw() -> bytes:
        return _draw(plan, people, source, name, values_name, unit)

    if ledger is None:
        return UnbiasedEstimate(
            plan.estimator, draw(), None, from_ledger=False, confidence=confidence
        )
    question = question_of(plan, values_name, unit)
    # The counts, all that is public of the records, are part of the plan and checked above.
    found = deliver(
        ledger, Booking(question, name, "mean", whose, plan.estimator.loss, again), draw
    )
    return UnbiasedEstimate(
        plan.estimator, found.document, found.entry,
        from_ledger=found.from_ledger, confidence=confidence,
    )  # fmt: skip


def _draw(
    plan: UnbiasedFacts,
    people: People,
    source: Randomness,
    name: str,
    values_name: str,
    unit: PrivacyUnit,
) -> bytes:
    """Write the manifest with an estimate of 0 and read it back; then draw."""

    def make(drawn: Drawn) -> documents.Document:
        return _manifest(plan, drawn, source, name, values_name, unit)

    blank = Drawn(Fraction(0), False if plan.method == Symmetric.name else None)
    rehearse(lambda: make(blank), SCHEMA, lambda found: parts(found["plan"]))
    return documents.canonical_bytes(make(plan.estimator.release(people.value, source)))


def _check_written(plan: UnbiasedFacts) -> None:
    """Refuse a plan whose results might be no numbers: an error after a draw is not charged."""
    # Estimates are below 2^600: values are read up to 2^500, weights of sampled ones to 2^64.
    if not plan.estimator.half_interval(CONFIDENCE) <= _MOST_HALF:
        raise InputError(
            "a plan whose intervals are wider than numbers reach",
            "moments and intervals of moderate size",
            "give the values in another unit",
        )


def _check_source(plan: UnbiasedFacts, values_name: str, unit: PrivacyUnit) -> None:
    """Refuse to release what the plan's description calls something else."""
    for role, name in (("user", unit.name), ("value", values_name)):
        told = (plan.source or {}).get(role, name)
        if told != name:
            raise InputError(
                f"a source whose {role} is {checks.shown(told)}, with {checks.shown(name)}",
                "one name of users and of values in source, privacy_unit and values_name",
                f"leave {role} out of source, or give the same name",
            )


def question_of(plan: UnbiasedFacts, values_name: str, unit: PrivacyUnit) -> str:
    """What a ledger knows a release by, besides its name: the plan without claims, values, unit."""
    contents = plan.to_document()
    del contents["claims"]
    return documents.digest({"plan": contents, "values": values_name, "unit": unit.to_document()})


def _manifest(
    plan: UnbiasedFacts,
    drawn: Drawn,
    source: Randomness,
    name: str,
    values_name: str,
    unit: PrivacyUnit,
) -> documents.Document:
    value, half = float(drawn.value), plan.estimator.half_interval(CONFIDENCE)
    return {
        "schema": SCHEMA,
        "name": name,
        "values": values_name,
        "request": request_of(question_of(plan, values_name, unit), name),
        "simulation": source.simulated,
        "guarantee": {
            "privacy": _words(plan),
            "unit": unit.to_document(),
            "neighbours": "values: all values of one user change, the counts are public",
            "publishes_values": plan.method in PUBLISHING or bool(drawn.failed),
            "epsilon": text(plan.exact_epsilon),
            "epsilon_at_most": round_up(plan.exact_epsilon),
            "delta": text(plan.exact_delta),
            "delta_at_most": round_up(plan.exact_delta),
        },
        "plan": plan.to_document(),
        "result": {
            "exact": text(drawn.value),
            "value": value,
            "interval": [value - half, value + half],
            "confidence": CONFIDENCE,
            "coarse_failed": drawn.failed,
        },
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }


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
