"""The second opinion on trials by the library: request, design, choice and drawn integers.

Loss, claims, estimates and intervals follow from these four: they are made again and compared with
what a manifest states; `verification.recount` does the same by code of its own.
"""

from collections.abc import Iterator
from typing import Any

from shoal import documents
from shoal.trials.plan import question_of
from shoal.trials.release import Release, results_of
from shoal.verification.recount import recount
from shoal.verification.rederive import check_of, genuine, same
from shoal.verification.verdict import Check, Verdict, checked


def verify(manifest: documents.Document) -> Verdict:
    """Returns what a manifest of a trial claims, line by line, and whether it holds."""
    return checked(_checks, manifest)


def _checks(manifest: documents.Document) -> Iterator[Check]:
    release = Release(documents.canonical_bytes(manifest), loaded=True)
    plan = release.plan
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield check_of("loss, claims and estimates follow", list(differences(release)), loss)
    yield check_of("recount by other code", recount(manifest), loss)
    yield genuine(manifest)


def differences(release: Release) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest = release.plan, release.manifest
    unit = manifest["guarantee"]["unit"]["name"]
    question = question_of(plan, manifest["records"], unit, manifest["name"])
    if manifest["guarantee"] != {**question.guarantee, "publishes_values": False}:
        yield "the guarantee does not state the loss and the words of its plan"
    if manifest["request"] != question.request:
        yield "the key of the request is not that of request, design, outcome and unit"
    if not _alike(plan.claims().to_document(), manifest["plan"]["claims"], plan.space.width**2):
        yield "the claims do not follow from the choice"
    own = results_of(plan, release.released)["estimates"]
    if not _alike(own, manifest["results"]["estimates"], plan.space.width):
        yield "the estimates do not follow from the drawn numbers"


def _alike(true: Any, stated: Any, unit: float) -> bool:
    """Whether documents are equal but for the last places of numbers."""
    if isinstance(true, dict):
        same_keys = isinstance(stated, dict) and true.keys() == stated.keys()
        return same_keys and all(_alike(true[key], stated[key], unit) for key in true)
    if isinstance(true, list | tuple):
        whole = isinstance(stated, list | tuple) and len(true) == len(stated)
        return whole and all(_alike(*each, unit) for each in zip(true, stated, strict=True))
    return same(true, stated, unit)
