"""The second opinion on a trial: recompute every claim of its manifest, with code of its own.

Exact fractions and outward-rounded decimals for the loss, and nothing imported from the
mechanisms or from other rooms: a fault there is not repeated here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal import documents
from shoal.verification.strict import real, release_name, text, unit, whole
from shoal.verification.trials import aggregates as verify_aggregates
from shoal.verification.trials import effects as verify_effects
from shoal.verification.trials import responses as verify_responses
from shoal.verification.trials.aggregates import Aggregate, Histogram
from shoal.verification.trials.asked import asked_hold
from shoal.verification.trials.facts import Facts, rational
from shoal.verification.trials.horvitz_thompson import HorvitzThompson
from shoal.verification.trials.responses import Responses
from shoal.verification.verdict import Check, Verdict, checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.verification.trials.effects import Found

    Opinion = Callable[[Facts, list[Found], list[documents.Document]], tuple[bool, str]]

SCHEMA = "shoal.trial/1"

_PARTS = {
    *("schema", "request", "question", "simulation", "guarantee", "released", "confidence"),
    *("effects", "versions"),
}
_QUESTION = {
    *("space", "assignment", "mechanism", "epsilon", "delta", "clustering_epsilon", "name", "unit"),
    "about",
}
_GUARANTEE = {
    "neighbours": "one unit's outcome changes; its cluster and treatment are public",
}
_STATED = {
    *(*_GUARANTEE, "unit", "privacy"),
    *("epsilon", "epsilon_at_most", "delta", "clustering_epsilon"),
}
_PRIVACY = {
    False: "pure label differential privacy",
    True: "approximate label differential privacy",
}
_SPACE = {"levels", "rounding", "labels"}
_ASSIGNMENT = {"clusters", "arms", "sizes", "units"}
_ABOUT = {"outcome", "missing", "single_arm", "clusters_left_out"}
_VERSIONS = {"shoal", "opendp", "python"}
_UNIT_MECHANISM = {"name", "pooled", "asked", "parameters", "reason"}
_AGGREGATE_MECHANISM = {"name", "asked", "aggregate", "reason"}
_ASKED = {"name", "pooled", "asked"}
_MOST_CLUSTERS = 2**53


def verify(manifest: documents.Document) -> Verdict:
    """Recompute epsilon, priors, effects and intervals of a trial's manifest from it alone.

    Args:
        manifest: The document.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a trial's manifest, or a part is missing or damaged.

    Example:
        >>> verify({"schema": "another"})
        Traceback (most recent call last):
        shoal.errors.DocumentError: manifest is not of the schema shoal.trial/1; ...
    """
    documents.check_schema(manifest, (SCHEMA,), "manifest")
    return checked(_checks, manifest, _UNVERIFIED)


_UNVERIFIED = (
    "that outcomes were moved to the levels in the way stated, at random or to the nearest",
    "how many clusters with one arm were left out, beyond none if they are refused",
    (
        "which unit gave which response, and which group of equal size is which: names and"
        " responses may be swapped where counts stay (a ledger binds them)"
    ),
    (
        "parameters that were chosen by predicted variance, and the figures of the sentence about"
        " them: other ones that cost as much are no less private"
    ),
    "what private clusters cost when they were made: of the loss stated, the rest is checked",
)


def _checks(manifest: documents.Document) -> list[Check]:
    name = manifest["question"]["mechanism"]["name"]
    if name not in verify_responses.POOLED and name not in verify_aggregates.NAMES:
        # Nothing else means anything for a mechanism that is not known.
        return [Check("mechanism", holds=False, found="unknown; no other claim can be checked")]
    facts = Facts.of(manifest)
    question = manifest["question"]
    own = _responses if name in verify_responses.POOLED else _aggregates
    checks = [
        Check("guarantee in words", *_guarantee(manifest, facts)),
        Check("noise of the operating system", *_genuine(manifest)),
        Check("request key", *_request(manifest)),
        Check("groups", facts.rising, f"{facts.units} units, sizes {facts.sizes.shape}"),
        Check("outcome space", *_space(question["space"])),
        Check("public rules", *_rules(question["about"])),
        Check("within what was asked for", *_within(facts, question)),
        Check("parameters as asked for", *asked_hold(facts, question["mechanism"])),
        *own(facts, manifest),
    ]
    if not _complete(manifest):
        checks.append(Check("no other parts", holds=False, found="something is added or missing"))
    return checks


def _responses(facts: Facts, manifest: documents.Document) -> list[Check]:
    found = Responses.of(facts, manifest["question"]["mechanism"], manifest["released"])
    checks = [
        Check("privacy loss", *found.loss_holds(facts.loss)),
        Check("mechanism", *found.parameters_hold()),
        Check("priors", *found.priors_hold()),
        Check("responses", *found.counts_hold()),
    ]
    if not all(check.holds for check in checks[1:]):
        return checks
    return checks + _effects(facts, verify_effects.of_responses(found), manifest)


def _aggregates(facts: Facts, manifest: documents.Document) -> list[Check]:
    kind: type[Aggregate] = Histogram if facts.mechanism == "noisy_histogram" else HorvitzThompson
    found = kind.of(facts, manifest["question"]["mechanism"], manifest["released"])
    checks = [
        Check("privacy loss", *found.loss_holds(facts.loss)),
        Check("mechanism", *found.parameters_hold()),
        Check("released numbers", *found.numbers_hold()),
    ]
    if not all(check.holds for check in checks[1:]):
        return checks
    return checks + _effects(facts, verify_effects.of_aggregates(found), manifest)


def _effects(facts: Facts, found: list[Found], manifest: documents.Document) -> list[Check]:
    stated = manifest["effects"]
    opinions: tuple[tuple[str, Opinion], ...] = (
        ("effects", verify_effects.values_hold),
        ("standard errors", verify_effects.errors_hold),
        ("intervals", verify_effects.intervals_hold),
    )
    return [Check(claim, *opinion(facts, found, stated)) for claim, opinion in opinions]


def _guarantee(manifest: documents.Document, facts: Facts) -> tuple[bool, str]:
    guarantee, question = manifest["guarantee"], manifest["question"]
    stated, shown = rational(guarantee["epsilon"]), real(guarantee["epsilon_at_most"])
    holds = (
        {name: guarantee[name] for name in _GUARANTEE} == _GUARANTEE
        and guarantee["unit"] == question["unit"]
        and unit(guarantee["unit"]) != ""
        and guarantee["privacy"] == _PRIVACY[facts.delta > 0]
        and facts.delta < 1
        and all(guarantee[x] == question[x] for x in ("epsilon", "delta", "clustering_epsilon"))
        # The least floating-point number that does not understate the loss.
        and Fraction(math.nextafter(shown, -math.inf)) < stated <= Fraction(shown)
    )
    whose = unit(guarantee["unit"])
    return (
        holds,
        f"{guarantee['privacy']}, {whose}, epsilon {shown:.6g}, delta {float(facts.delta):.6g}",
    )


def _genuine(manifest: documents.Document) -> tuple[bool, str]:
    genuine = manifest["simulation"] is False
    return genuine, "stated" if genuine else "a simulation, not private"


def _request(manifest: documents.Document) -> tuple[bool, str]:
    question = manifest["question"]
    mechanism = {k: v for k, v in question["mechanism"].items() if k in _ASKED}
    asked = {k: v for k, v in question.items() if k not in {"epsilon", "name"}}
    key = documents.digest({**asked, "mechanism": mechanism})
    key = documents.digest({"question": key, "name": question["name"]})
    return release_name(question["name"]) and key == manifest["request"], key[:16]


def _within(facts: Facts, question: documents.Document) -> tuple[bool, str]:
    asked = question["mechanism"]["asked"]
    most, delta = rational(asked["epsilon"]), rational(asked["delta"])
    return facts.loss <= most and facts.delta <= delta, f"epsilon {float(most):.6g}"


def _space(space: documents.Document) -> tuple[bool, str]:
    labels, levels = space["labels"], len(space["levels"])
    named = labels is None or (all(map(text, labels)) and len(set(labels)) == len(labels) == levels)
    return named and space["rounding"] in ("random", "nearest"), f"{levels} levels"


def _rules(about: documents.Document) -> tuple[bool, str]:
    left_out = whole(about["clusters_left_out"], 0, _MOST_CLUSTERS)
    holds = (
        about["missing"] in ("refuse", "public")
        and about["single_arm"] in ("refuse", "drop")
        and (left_out == 0 or about["single_arm"] == "drop")
        and release_name(about["outcome"])
    )
    return holds, f"missing {about['missing']}, single_arm {about['single_arm']}"


def _complete(manifest: documents.Document) -> bool:
    question, versions = manifest["question"], manifest["versions"]
    mechanism, released = question["mechanism"], manifest["released"]
    name = mechanism["name"]
    if name in verify_responses.POOLED:
        own = (
            (mechanism, _UNIT_MECHANISM),
            (mechanism["parameters"], verify_responses.PARAMETERS),
            (released, verify_responses.RELEASED),
        )
    else:
        own = (
            (mechanism, _AGGREGATE_MECHANISM),
            (mechanism["aggregate"], verify_aggregates.PARTS[name]),
            (released, verify_aggregates.RELEASED),
        )
    parts = (
        (manifest, _PARTS),
        (question, _QUESTION),
        (manifest["guarantee"], _STATED),
        (question["space"], _SPACE),
        (question["assignment"], _ASSIGNMENT),
        (question["about"], _ABOUT),
        (versions, _VERSIONS),
        *own,
        *((effect, verify_effects.EFFECT) for effect in manifest["effects"]),
        *(
            (effect[name], verify_effects.INFERENCE)
            for effect in manifest["effects"]
            for name in verify_effects.POPULATIONS
        ),
    )
    texts = all(map(text, [mechanism["reason"], *versions.values()]))
    return texts and all(part.keys() == names for part, names in parts)
