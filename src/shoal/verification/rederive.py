"""The second opinion on cells by the library: request, counts, decision and drawn integers.

Loss, claims, values, intervals and statuses follow from these four: they are made again and
compared with what a manifest states; `verification.recount` does the same by code of its own.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal import documents
from shoal.cells.decision import public_status
from shoal.cells.largest_error import within
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.plan_file import document_of, question_of
from shoal.cells.planner import make_plan
from shoal.cells.release import Release, results_of
from shoal.cells.request import MIDPOINT_ERROR
from shoal.errors import ShoalError
from shoal.verification.recount import recount
from shoal.verification.verdict import Check, Verdict, checked

# Another machine's logarithms, sums and square roots.
_CLOSE = 1e-9
# Scales of a plan that is made again, and their parameters: rounded products of logarithms.
_REPLANNED = 1e-6
_PLANNED = "that the decision is the best for its request: another one costs error, never privacy"


def verify(manifest: documents.Document, *, replan: bool = False) -> Verdict:
    """Returns what a manifest of cells claims, line by line, and whether it holds."""
    unverified = () if replan else (_PLANNED,)
    return checked(lambda found: _checks(found, replan=replan), manifest, unverified)


def _checks(manifest: documents.Document, *, replan: bool) -> Iterator[Check]:
    release = Release(documents.canonical_bytes(manifest), loaded=True)
    plan, found = release.plan, list(differences(release))
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield check_of("loss, claims, values and statuses follow", found, loss)
    yield check_of("recount by other code", recount(manifest), loss)
    yield genuine(manifest)
    if replan:
        yield check_of("the decision is that of a new plan", list(_replanned(plan)), plan.method)


def check_of(claim: str, found: list[str], right: str) -> Check:
    """Returns a check that holds if nothing was found, with the first thing that was."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(claim, holds=not found, found=f"{found[0]}{more}" if found else right)


def genuine(manifest: documents.Document) -> Check:
    """Returns whether the noise was the operating system's."""
    held = manifest["simulation"] is False
    found = "stated" if held else "a simulation, not private"
    return Check("noise of the operating system", held, found)


def differences(release: Release) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest = release.plan, release.manifest
    unit = manifest["guarantee"]["unit"]["name"]
    question = question_of(plan, manifest["records"], unit, manifest["name"])
    guarantee = {**question.guarantee, "publishes_values": False}
    if manifest["guarantee"] != guarantee:
        yield "the guarantee does not state the loss and the words of its plan"
    if manifest["request"] != question.request:
        yield "the key of the request is not that of request, records, counts and unit"
    if manifest["plan"]["records"] != manifest["records"]:
        yield "the plan is about other columns than the release"
    stated = manifest["plan"]["claims"]
    own = document_of(plan, manifest["records"]).to_document()["claims"]
    unit_of = dict.fromkeys(("bias_bound", "worst_case_error", "lower_bound"), plan.statistic_range)
    for name, claim in own.items():
        if not same(claim, stated[name], unit_of.get(name, 1.0)):
            yield f"the claim {name} does not follow from the decision"
    yield from _statuses(plan)
    size = float(np.max(np.abs(plan.limits))) + plan.width
    for true, drawn in zip(results_of(release.numbers), manifest["results"], strict=True):
        for name, each in true.items():
            if not same(each, drawn[name], size):
                yield f"{name} of {drawn['statistic']} of cell {drawn['cell']} is another one"


def _statuses(plan: PlanFacts) -> Iterator[str]:
    """Whether only cells that the public rules allow are released, or left out for their errors."""
    request, stated = plan.request, np.array(plan.status, dtype=object)
    own = public_status(plan.counts, request)
    left_out = "uninformative" if request.max_error is None else "error too large"
    allowed = request.uninformative == "drop" or request.max_error is not None
    if (np.where((stated == left_out) & allowed, "released", stated) != own).any():
        yield "statuses are not those of the public rules"
    if request.uninformative != "keep" and (plan.cell_error >= MIDPOINT_ERROR + _CLOSE).any():
        yield "a released cell errs no less than guessing"
    if not within(plan):
        yield "a released cell errs more than was asked for"


def _replanned(plan: PlanFacts) -> Iterator[str]:
    """What a plan that is made again from request and counts decides otherwise."""
    try:
        own, stated = make_plan(plan.counts, plan.request).decision, plan.decision
    except ShoalError as error:
        yield f"the request leads to no plan: {error}"
        return
    if (own.method.name, own.method.settings) != (stated.method.name, stated.method.settings):
        yield "the method is another one"
    for name in ("status", "bits", "joint", "gaussian"):
        if getattr(own, name) != getattr(stated, name):
            yield f"{name} is another one"
    for name in ("scale", "selection_scale", "targets"):
        one, other = getattr(own, name), getattr(stated, name)
        if (one is None) != (other is None) or (
            one is not None
            and (one.shape != other.shape or not np.allclose(one, other, rtol=_REPLANNED, atol=0))
        ):
            yield f"{name} is another one"
    for name, values in own.parameters.items():
        other = stated.parameters.get(name)
        if other is None or values.shape != other.shape or (np.abs(values - other) > 1).any():
            yield f"the parameter {name} is another one"


def same(true: Any, stated: Any, unit: Any) -> bool:
    """Whether numbers are equal but for their last places; names, also such as "07", in all."""
    one, other = ([*each] if isinstance(each, list | tuple) else [each] for each in (true, stated))
    if not any(isinstance(each, float) for each in one):
        return repr(one) == repr(other)
    least = 1e-14 * np.asarray(unit)
    return len(one) == len(other) and bool(np.isclose(one, other, _CLOSE, least).all())
