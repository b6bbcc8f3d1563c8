"""The second opinion by the library: request, public facts, choice and drawn integers.

Loss, claims, values, intervals and statuses follow from these four: they are made again and
compared with what a manifest states; `verification.recount` does the same by code of its own.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal import documents
from shoal.cells import release as cells
from shoal.cells.facts import plan_file
from shoal.cells.facts.decision import public_status
from shoal.cells.facts.facts import PlanFacts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.planners.largest_error import within
from shoal.cells.planners.planner import make_plan
from shoal.documents.strict_json import strict
from shoal.errors import ShoalError
from shoal.means import plan as means
from shoal.release.question import Question
from shoal.release.release import Release
from shoal.trials import plan as trials

# Another machine's logarithms, sums and square roots.
_CLOSE = 1e-9
# Scales of a plan that is made again, and their parameters: rounded products of logarithms.
_REPLANNED = 1e-6


def guarantee(release: Release[Any, Any]) -> Iterator[str]:
    """Whether a manifest states the loss, the words and the key of what its plan asks for."""
    manifest = release.manifest
    unit, name = manifest["guarantee"]["unit"]["name"], manifest["name"]
    question_of = FAMILIES[manifest["kind"]].question_of
    question = question_of(release.plan, manifest["records"], unit, name)
    if manifest["guarantee"] != question.guarantee:
        yield "the guarantee differs from the one that follows from the plan"
    if manifest["request"] != question.request:
        yield "the digest of the request does not match plan, columns, unit and name"


def _of_cells(release: cells.Release) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest = release.plan, release.manifest
    if manifest["plan"]["records"] != manifest["records"]:
        yield "the plan has other columns than the release"
    stated = manifest["plan"]["claims"]
    own = plan_file.document_of(plan, manifest["records"]).to_document()["claims"]
    unit_of = dict.fromkeys(("bias_bound", "worst_case_error", "lower_bound"), plan.statistic_range)
    for name, claim in own.items():
        if not _same(claim, stated[name], unit_of.get(name, 1.0)):
            yield f"the claim {name} does not follow from the decision"
    yield from _statuses(plan)
    size = float(np.max(np.abs(plan.limits))) + plan.width
    for true, drawn in zip(cells.results_of(release.numbers), manifest["results"], strict=True):
        # What is the same to the last place is not looked at part by part.
        if true == drawn and repr(true["key"]) == repr(drawn["key"]):
            continue
        for name, each in true.items():
            if not _same(each, drawn[name], size):
                yield f"{name} of {drawn['statistic']} of cell {drawn['cell']} does not follow"


def _statuses(plan: PlanFacts) -> Iterator[str]:
    """Whether only cells that the public rules allow are released, or left out for their errors."""
    request, stated = plan.request, np.array(plan.status, dtype=object)
    own = public_status(plan.counts, request)
    left_out = "uninformative" if request.max_error is None else "error too large"
    allowed = request.uninformative == "drop" or request.max_error is not None
    if (np.where((stated == left_out) & allowed, "released", stated) != own).any():
        yield "the statuses of cells do not follow the public rules"
    if request.uninformative != "keep" and (plan.cell_error >= MIDPOINT_ERROR + _CLOSE).any():
        yield "a released cell has an error as large as guessing"
    if not within(plan):
        yield "a released cell has a larger error than was asked for"


def replanned(plan: PlanFacts) -> Iterator[str]:
    """What a plan that is made again from request and counts decides otherwise."""
    try:
        own, stated = make_plan(plan.counts, plan.request).decision, plan.decision
    except ShoalError as error:
        yield f"the request leads to no plan: {error}"
        return
    if (own.method.name, own.method.settings) != (stated.method.name, stated.method.settings):
        yield "the method differs from that of a new plan"
    for name in ("status", "bits", "joint", "gaussian"):
        if getattr(own, name) != getattr(stated, name):
            yield f"{name} differs from that of a new plan"
    for name in ("scale", "selection_scale", "targets"):
        if not _near(getattr(own, name), getattr(stated, name), _REPLANNED, 0):
            yield f"{name} differs from that of a new plan"
    for name, values in own.parameters.items():
        if not _near(values, stated.parameters.get(name), 0, 1):
            yield f"the parameter {name} differs from that of a new plan"


def _near(one: Any, other: Any, part: float, off: float) -> bool:
    """Whether arrays are alike, but for a part or so much, or neither is there."""
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and np.allclose(one, other, part, off)


def _of_mean(release: means.UnbiasedEstimate) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest = release.plan, release.manifest
    if manifest["guarantee"]["unit"]["records"] == "one" and plan.counts[-1] > 1:
        yield "the guarantee protects one record, but users have several"
    size = abs(release.value or 0.0) + plan.half(manifest["confidence"])
    for own, stated, unit in (
        (plan.to_document()["claims"], manifest["plan"]["claims"], 1e-280),
        (plan.results(release.released), manifest["results"], size),
    ):
        for name, true in own.items():
            if not _same(true, stated[name], unit):
                yield f"{name} does not follow from the decision and the noisy numbers"


def _of_trial(release: trials.Release) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest, width = release.plan, release.manifest, release.plan.space.width
    if not _same(plan.claims.to_document(), manifest["plan"]["claims"], width**2):
        yield "the claims do not follow from the decision"
    own = plan.results(release.released)["estimates"]
    if not _same(own, manifest["results"]["estimates"], width):
        yield "the estimates do not follow from the noisy numbers"


class Family(NamedTuple):
    """How a manifest of some kinds is read, what it was asked for, and what must follow."""

    release: type[Release[Any, Any]]
    question_of: Callable[..., Question]
    differences: Callable[[Any], Iterator[str]]


FAMILIES = {
    kind: family
    for family in (
        Family(cells.Release, plan_file.question_of, _of_cells),
        Family(means.UnbiasedEstimate, means.question_of, _of_mean),
        Family(trials.Release, trials.question_of, _of_trial),
    )
    for kind in family.release.kinds
}


def load(path: str | os.PathLike[str]) -> Release[Any, Any]:
    """The release in a manifest of any family."""
    data = documents.read_bytes(path, "manifest")
    found: Any = strict(data, f"manifest {os.fspath(path)!r}")
    kind = found.get("kind") if isinstance(found, dict) else None
    return FAMILIES.get(str(kind), FAMILIES["cells"]).release.of_file(path, data, found)


def _same(true: Any, stated: Any, unit: Any) -> bool:
    """Whether parts are equal but for the last places of numbers; names, as "07", in all."""
    if isinstance(true, dict):
        alike = isinstance(stated, dict) and true.keys() == stated.keys()
        return alike and all(_same(true[name], stated[name], unit) for name in true)
    if isinstance(true, list | tuple):
        if not isinstance(stated, list | tuple) or len(true) != len(stated):
            return False
        if not true or not all(isinstance(each, float) for each in true):
            return all(_same(*both, unit) for both in zip(true, stated, strict=True))
    elif not isinstance(true, float) or not isinstance(stated, float):
        return repr(true) == repr(stated)
    one = np.asarray(true)
    other = np.asarray(stated)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= 1e-14 * np.asarray(unit) + _CLOSE * np.abs(other)
    return bool(np.all(near | (one == other)))
