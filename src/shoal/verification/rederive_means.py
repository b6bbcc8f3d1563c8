"""The second opinion on means by the library: request, counts, choice and drawn integers.

Loss, claims, value and intervals follow from these four: they are made again and compared with what
a manifest states; `verification.recount` does the same by code of its own.
"""

from collections.abc import Iterator

from shoal import documents
from shoal.means.plan import UnbiasedEstimate
from shoal.verification.recount import recount
from shoal.verification.rederive import check_of, genuine, same
from shoal.verification.verdict import Check, Verdict, checked

_UNVERIFIED = (
    "that users are independent and their values keep the moments: the certificates rest on it, the"
    " loss does not",
    "that no other choice of this loss has a smaller error",
)
_SYMMETRY = (
    "that values are as likely above their mean as below, at every distance: the bias is 0 and the"
    " interval holds only then"
)
_NEARLY_NORMAL = (
    "that the mean of so many users is nearly normal: a normal interval rests on it, a certified"
    " one on the moments alone"
)


def verify(manifest: documents.Document) -> Verdict:
    """Returns what a manifest of a mean claims, line by line, and whether it holds."""
    verdict = checked(_checks, manifest, _UNVERIFIED)
    symmetric = manifest["plan"]["request"]["method"] == "symmetric_mean"
    normal = manifest["results"]["squares"] is not None
    more = [each for each, holds in ((_SYMMETRY, symmetric), (_NEARLY_NORMAL, normal)) if holds]
    return Verdict(verdict.checks, (*verdict.unverified, *more))


def _checks(manifest: documents.Document) -> Iterator[Check]:
    release = UnbiasedEstimate(documents.canonical_bytes(manifest), loaded=True)
    plan, found = release.plan, list(differences(release))
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield check_of("loss, claims, value and interval follow", found, loss)
    yield check_of("recount by other code", recount(manifest), loss)
    yield genuine(manifest)


def differences(release: UnbiasedEstimate) -> Iterator[str]:
    """Yields one sentence for each part of a manifest that does not follow from the others."""
    plan, manifest = release.plan, release.manifest
    unit = manifest["guarantee"]["unit"]
    question = plan.question(manifest["records"]["value"], unit["name"], manifest["name"])
    if manifest["guarantee"] != {**question.guarantee, "publishes_values": False}:
        yield "the guarantee does not state the loss and the words of its plan"
    if unit["records"] == "one" and plan.counts[-1] > 1:
        yield "the guarantee is for one record, and users have several"
    if manifest["request"] != question.request:
        yield "the key of the request is not that of request, counts, values and unit"
    size = abs(release.value or 0.0) + plan.half(manifest["confidence"])
    own = {"claim": plan.to_document()["claims"], "result": plan.results(release.released)}
    stated = {"claim": manifest["plan"]["claims"], "result": manifest["results"]}
    for kind, each in own.items():
        for name, true in each.items():
            if not same(true, stated[kind][name], size if kind == "result" else 1e-280):
                yield f"the {kind} {name} does not follow from the choice and the drawn integers"
