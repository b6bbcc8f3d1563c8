"""The second opinion on a trial: recompute every claim of its manifest, with code of its own.

Exact fractions and outward-rounded decimals for the loss, and nothing imported from the
mechanisms or from other packages: a fault there is not repeated here.
"""

from collections.abc import Callable
from fractions import Fraction

from shoal import documents
from shoal.verification.envelope import (
    Words,
    genuine,
    guarantee_holds,
    no_other_parts,
    request_key,
    shown,
)
from shoal.verification.strict import rational, text, unit, whole
from shoal.verification.trials import aggregates as verify_aggregates
from shoal.verification.trials import effects as verify_effects
from shoal.verification.trials import responses as verify_responses
from shoal.verification.trials import tables as verify_tables
from shoal.verification.trials.aggregates import Aggregate, Histogram
from shoal.verification.trials.asked import asked_hold
from shoal.verification.trials.effects import Found
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.horvitz_thompson import HorvitzThompson
from shoal.verification.trials.responses import Responses
from shoal.verification.trials.tables import Tables
from shoal.verification.verdict import Check, Verdict, checked

Opinion = Callable[[Facts, list[Found], list[documents.Document]], tuple[bool, str]]
KIND = "trial"

_PLAN_SCHEMA = "shoal.trial-plan/1"
_PLAN = {"schema", "space", "assignment", "mechanism", "clustering_epsilon", "claims"}
_CLAIMS = {"epsilon", "delta"}
_RESULTS = {"released", "effects"}
_NEIGHBOURS = "one unit's outcome changes; its cluster and treatment are public"
_PRIVACY = {
    False: "pure label differential privacy",
    True: "approximate label differential privacy",
}
_SPACE = {"levels", "rounding", "labels"}
_ASSIGNMENT = {"clusters", "arms", "sizes", "units"}
_RECORDS = {"outcome", "missing", "single_arm", "clusters_left_out"}
_UNIT_MECHANISM = {"name", "pooled", "asked", "parameters", "reason"}
_TABLE_MECHANISM = {"name", "asked", "table", "reason"}
_AGGREGATE_MECHANISM = {"name", "asked", "aggregate", "reason"}
_ASKED = {"name", "pooled", "asked"}
_MOST_CLUSTERS = 2**53
# Part of epsilon that noisy aggregates spend at least.
_SPENT = Fraction(999, 1000)
# What a mechanism may be asked for.
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
_LEAST_DELTA = Fraction(1, 10**100)


def verify(manifest: documents.Document) -> Verdict:
    """Recompute epsilon, priors, effects and intervals of a trial's manifest from it alone.

    Args:
        manifest: The document.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a trial's manifest, or a part is missing or damaged.
    """
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
    "that the weights of a table are those of what was expected: others are no less private",
    "what private clusters cost when they were made: of the loss stated, the rest is checked",
)


def _checks(manifest: documents.Document) -> list[Check]:
    plan = manifest["plan"]
    name = plan["mechanism"]["name"]
    own = _way_of(name)
    if own is None:
        # Nothing else means anything for a mechanism that is not known.
        return [Check("mechanism", holds=False, found="unknown; no other claim can be checked")]
    facts = Facts.of(manifest)
    return [
        Check("guarantee in words", *_guarantee(manifest, facts)),
        genuine(manifest),
        request_key(manifest, _asked(plan), manifest["records"]["outcome"]),
        Check("groups", facts.rising, f"{facts.units} units, sizes {facts.sizes.shape}"),
        Check("outcome space", *_space(plan["space"])),
        Check("public rules", *_rules(manifest["records"])),
        Check("within what was asked for", *_within(facts, plan)),
        Check("parameters as asked for", *asked_hold(facts, plan["mechanism"])),
        *own(facts, manifest),
        *no_other_parts(manifest, _parts(manifest)),
    ]


def _way_of(name: str) -> Callable[[Facts, documents.Document], list[Check]] | None:
    """The checks of a mechanism, by its name; None for a mechanism that is not known."""
    if name in verify_tables.NAMES:
        return _tables
    if name in verify_responses.POOLED:
        return _responses
    return _aggregates if name in verify_aggregates.NAMES else None


def _tables(facts: Facts, manifest: documents.Document) -> list[Check]:
    mechanism = manifest["plan"]["mechanism"]
    found = Tables.of(facts, mechanism, manifest["results"]["released"])
    checks = [
        Check("privacy loss", *found.loss_holds(facts.loss)),
        Check("mechanism", *found.parameters_hold()),
        Check("responses", *found.counts_hold()),
    ]
    if not all(check.holds for check in checks):
        return checks
    checks += [
        Check("responses without bias", *found.means_hold()),
        Check("variance of responses", *found.variance_holds()),
        Check("lower bound", *found.bound_holds(rational(mechanism["asked"]["epsilon"]))),
    ]
    return checks + _effects(facts, verify_effects.of_responses(found), manifest)


def _responses(facts: Facts, manifest: documents.Document) -> list[Check]:
    found = Responses.of(facts, manifest["plan"]["mechanism"], manifest["results"]["released"])
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
    found = kind.of(facts, manifest["plan"]["mechanism"], manifest["results"]["released"])
    if len(found.numbers) < found.fewest:
        # A short document must not keep the verifier busy with groups that have no numbers.
        shown = f"{len(found.numbers)}, where there are at least {found.fewest}"
        return [Check("released numbers", holds=False, found=f"{shown}; nothing follows from them")]
    checks = [
        Check("privacy loss", *found.loss_holds(facts.loss)),
        Check("mechanism", *found.parameters_hold()),
        Check("released numbers", *found.numbers_hold()),
    ]
    if not all(check.holds for check in checks[1:]):
        return checks
    return checks + _effects(facts, verify_effects.of_aggregates(found), manifest)


def _effects(facts: Facts, found: list[Found], manifest: documents.Document) -> list[Check]:
    stated = manifest["results"]["effects"]
    opinions: tuple[tuple[str, Opinion], ...] = (
        ("effects", verify_effects.values_hold),
        ("standard errors", verify_effects.errors_hold),
        ("intervals", verify_effects.intervals_hold),
    )
    return [Check(claim, *opinion(facts, found, stated)) for claim, opinion in opinions]


def _guarantee(manifest: documents.Document, facts: Facts) -> tuple[bool, str]:
    guarantee, claims = manifest["guarantee"], manifest["plan"]["claims"]
    holds = guarantee_holds(manifest, Words(_PRIVACY[facts.delta > 0], _NEIGHBOURS)) and all(
        guarantee[name] == claims[name] for name in ("epsilon", "delta")
    )
    whose = unit(guarantee["unit"])
    return holds, f"{guarantee['privacy']}, {whose}, {shown(manifest)}"


def _asked(plan: documents.Document) -> documents.Document:
    """What was asked for; parameters, their loss and the reason for them follow from it."""
    mechanism = {part: each for part, each in plan["mechanism"].items() if part in _ASKED}
    asked = {part: each for part, each in plan.items() if part != "claims"}
    return {**asked, "mechanism": mechanism}


def _within(facts: Facts, plan: documents.Document) -> tuple[bool, str]:
    asked = plan["mechanism"]["asked"]
    most, delta = rational(asked["epsilon"]), rational(asked["delta"])
    possible = _LEAST_EPSILON <= most <= _MOST_EPSILON and (delta == 0 or _LEAST_DELTA <= delta < 1)
    # Noisy aggregates spend all that was asked for, but for a few steps of their lattice.
    least = most * _SPENT if "aggregate" in plan["mechanism"] else 0
    holds = possible and least <= facts.loss <= most and facts.delta <= delta
    return holds, f"epsilon {float(most):.6g}"


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
    )
    return holds, f"missing {about['missing']}, single_arm {about['single_arm']}"


def _parts(manifest: documents.Document) -> list[tuple[documents.Document, set[str]]]:
    plan, results = manifest["plan"], manifest["results"]
    mechanism, released = plan["mechanism"], results["released"]
    if plan["schema"] != _PLAN_SCHEMA or not text(mechanism["reason"]):
        raise ValueError
    name = mechanism["name"]
    if name in verify_tables.NAMES:
        own = [
            (mechanism, _TABLE_MECHANISM),
            (mechanism["table"], verify_tables.TABLE),
            (mechanism["table"]["certificate"], verify_tables.CERTIFICATE),
            (released, verify_tables.RELEASED),
        ]
    elif name in verify_responses.POOLED:
        own = [
            (mechanism, _UNIT_MECHANISM),
            (mechanism["parameters"], verify_responses.PARAMETERS),
            (released, verify_responses.RELEASED),
        ]
    else:
        own = [
            (mechanism, _AGGREGATE_MECHANISM),
            (mechanism["aggregate"], verify_aggregates.PARTS[name]),
            (released, verify_aggregates.RELEASED),
        ]
    return [
        (plan, _PLAN),
        (plan["claims"], _CLAIMS),
        (plan["space"], _SPACE),
        (plan["assignment"], _ASSIGNMENT),
        (manifest["records"], _RECORDS),
        (results, _RESULTS),
        *own,
        *((effect, verify_effects.EFFECT) for effect in results["effects"]),
        *(
            (effect[name], verify_effects.INFERENCE)
            for effect in results["effects"]
            for name in verify_effects.POPULATIONS
        ),
    ]
