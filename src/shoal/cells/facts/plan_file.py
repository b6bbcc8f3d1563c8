"""Writes plans and manifests of cells as documents: request, counts, decision and claims.

Claims are for readers: when a plan is read back, losses and errors follow from the decision alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer

from shoal.arrays import Floats
from shoal.cells.facts.decision import Decision, Status
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.methods import method_of
from shoal.data.counts import Counts
from shoal.documents.model import Integers, Model, Numbers, is_none
from shoal.errors import InputError
from shoal.privacy.law import NameOfLaw, law_of
from shoal.release import envelope
from shoal.release import plan as plans
from shoal.release.envelope import Text

Floating = tuple[float, ...]
CountsPart = Annotated[
    Any,
    BeforeValidator(lambda each: each if isinstance(each, Counts) else Counts.from_document(each)),
    PlainSerializer(lambda counts: counts.to_document()),
]
SomeFacts = TypeVar("SomeFacts", bound=Facts)
# Fields that a decision and its document have in common.
_DECIDED = (
    *("status", "scale", "bits", "parameters", "selection_scale"),
    *("joint", "targets", "reason"),
)


class Duals(Model):
    """The dual variables of all users; a document holds only those above 0."""

    users: int
    user: Integers
    dual: Numbers

    @classmethod
    def sparse(cls, duals: Floats | None) -> Duals | None:
        """Returns the document of the dual variables of all users, or None without them."""
        if duals is None:
            return None
        user = np.flatnonzero(duals)
        return cls(users=len(duals), user=user, dual=duals[user])

    def dense(self, users: int) -> Floats:
        """Returns the dual variables of all users; raises a LookupError if their number differs."""
        if self.users != users or self.dual.shape != self.user.shape:
            raise LookupError
        duals = np.zeros(users)
        duals[self.user] = self.dual
        return duals


class Records(Model):
    """The columns of the records, what happens to missing values, and what one user is."""

    user: Text
    value: Text
    cell: tuple[Text, ...]
    missing: Literal["refuse", "public"]
    period: Text | None = Field(default=None, exclude_if=is_none)
    records_per_user: int | None = Field(default=None, exclude_if=is_none)


class DecisionPart(Model):
    """The planner's choices, as `Decision` holds them."""

    method: Text
    settings: dict[str, str | int | float]
    mechanism: Text
    reason: Text
    status: tuple[Status, ...]
    noise: NameOfLaw
    joint: bool
    bits: int
    scale: Numbers
    parameters: dict[str, Integers]
    selection_scale: Numbers
    targets: Numbers | None
    duals: Duals | None

    @classmethod
    def of_decision(cls, chosen: Decision) -> DecisionPart:
        """Returns the document of a decision."""
        return cls(
            method=chosen.method.name,
            settings=dict(chosen.method.settings),
            mechanism=chosen.method.mechanism or chosen.method.name,
            noise=chosen.law.name,
            duals=Duals.sparse(chosen.duals),
            **{name: getattr(chosen, name) for name in _DECIDED},
        )

    def decision(self, users: int) -> Decision:
        """Returns the decision of this document, for counts of so many users."""
        return Decision(
            duals=None if self.duals is None else self.duals.dense(users),
            method=method_of(self.method, self.settings),
            law=law_of(self.noise),
            **{name: getattr(self, name) for name in _DECIDED},
        )


class Claims(plans.Claims):
    """The costs and promises of a plan, for readers."""

    gap: float | None
    weight: Floating
    bias_bound: Floating
    worst_case_error: Floating
    lower_bound: Floating | None


class PlanDocument(plans.PlanDocument):
    """A plan of cells."""

    schema_: Literal["shoal.plan/7"] = Field(default="shoal.plan/7", alias="schema")
    request: Request
    records: Records | None
    counts: CountsPart
    decision: DecisionPart
    claims: Claims


class Result(Model):
    """One released number with its interval, its selected range, and the excess of all users."""

    cell: int
    key: tuple[Any, ...]
    statistic: Text
    steps: int
    range: tuple[int, int] | None
    excess: tuple[int, int, int] | None
    unclamped: float
    value: float
    interval: tuple[float, float]


class Record(envelope.Record):
    """The record of a release of cells."""

    kind: Literal["cells"]
    records: Records
    plan: PlanDocument
    results: tuple[Result, ...]


def met(plan: SomeFacts) -> SomeFacts:
    """Returns the plan if it costs and errs no more than was asked, and refuses it otherwise."""
    request = plan.request
    costs_more = request.epsilon is not None and plan.exact_epsilon > request.epsilon
    errs_more = request.error is not None and float(plan.worst_case_error.max()) > request.error
    if costs_more or errs_more:
        raise InputError(
            "the noise cannot be rounded finely enough for this request",
            "ask for a larger error or a smaller epsilon, or give more tick_bits",
        )
    return plan


def parts_of(plan: Facts, records: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the entries of a plan's document: request, columns, counts and decision."""
    return {
        "request": plan.request,
        "records": None if records is None else described(records),
        "counts": plan.counts,
        "decision": DecisionPart.of_decision(plan.decision),
    }


def claims_of(plan: Facts) -> Claims:
    """Returns the costs and promises of a plan."""
    lower = tuple(plan.lower_bound.tolist()) if plan.law.has_limits else None
    return Claims(
        epsilon=str(plan.loss.epsilon),
        delta=str(plan.loss.delta),
        gap=plan.gap,
        weight=tuple(plan.importance.tolist()),
        bias_bound=tuple(plan.bias_bound.tolist()),
        worst_case_error=tuple(plan.worst_case_error.tolist()),
        lower_bound=lower,
    )


def described(records: Mapping[str, Any]) -> Records:
    """Returns a description of records as a document; refuses what `describe()` does not give."""
    try:
        given = dict(records)
        if not isinstance(given["cell"], list | tuple):
            raise TypeError
        return Records(**{**given, "cell": tuple(given["cell"])})
    except (ValueError, TypeError, LookupError):
        raise InputError(
            "the source does not describe records", "give records.describe(), or leave source out"
        ) from None
