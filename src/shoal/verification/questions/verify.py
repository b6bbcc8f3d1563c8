"""The second opinion on questions: weights, loss, answers and intervals, with code of its own.

The weights are built anew from the public columns, the loss from whole numbers alone; nothing is
imported from mechanisms, theory or other packages.
"""

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
from shoal.verification.questions.answers import (
    answers,
    answers_by_group,
    exact_loss,
    hold,
    inverse_of,
    recovered,
)
from shoal.verification.questions.facts import Facts
from shoal.verification.questions.forms import Told, told_of
from shoal.verification.questions.weights import Entry, questions_of
from shoal.verification.questions.whole_forms import KEYS
from shoal.verification.strict import rational, rounded_up, text, unit, whole
from shoal.verification.verdict import Check, Verdict, checked

KIND = "questions"

_SCHEMA = "shoal.questions-plan/1"
_PRIVACY = "pure label differential privacy"
_NEIGHBOURS = "one unit's outcome changes; its cluster, treatment and covariates are public"
_PLAN = {"schema", "space", "columns", "questions", "spread", "epsilon", "numbers", "claims"}
_PARTS = {
    "space": {"levels", "rounding", "labels"},
    "columns": {"assignment", "covariates"},
    "numbers": {"rows", "steps", "moment_step", "lattice_bits", "groups_by"},
    "claims": {"epsilon", "delta"},
}
# Where groups were assigned whole.
_MORE = {"columns": {"assigned"}, "numbers": {"forms"}}
_ASSIGNMENT = {"clusters", "arms", "sizes", "units"}
_COVARIATE = {"name", "values", "codes"}
_QUESTION = {"kind", "by", "weights", "columns"}
_RESULTS = {"numbers", "moments", "answers"}
_ANSWER = {"question", "value", "standard_error", "interval"}
_FOLLOWS = ("numbers", "claims")
# Of epsilon, spent at least; what may be asked for.
_SPENT = Fraction(999, 1000)
# The least spread, in parts of the range.
_THIN = 1e-6 * (1 - 1e-9)
_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)
_LARGEST = 2**63

_UNVERIFIED = (
    "that outcomes were moved into the range and to the nearest of its 2^20 ticks",
    (
        "which sums of the questions are released, and by which public columns outcomes are taken "
        "to differ alike: others that cost as much are no less private"
    ),
    "that arms, clusters, covariates and assigned groups hold nothing private: all are published",
)


def verify(manifest: documents.Document) -> Verdict:
    """Recompute weights, loss, answers and intervals of a manifest of questions from it alone.

    Args:
        manifest: The document.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not such a manifest, or a part is missing or damaged.
    """
    return checked(_checks, manifest, _UNVERIFIED)


def _checks(manifest: documents.Document) -> list[Check]:
    plan, results = manifest["plan"], manifest["results"]
    facts = Facts.of(plan)
    loss = exact_loss(facts)
    stated = rational(manifest["guarantee"]["epsilon"])
    asked = {part: each for part, each in plan.items() if part not in _FOLLOWS}
    free, groups = loss is not None, facts.assigned is not None
    about = "none: variances are forms" if groups else f"steps of {facts.moment_step} squared ticks"
    checks = [
        Check("guarantee in words", *_guarantee(manifest)),
        genuine(manifest),
        request_key(manifest, asked, manifest["records"]["outcome"]),
        Check("units in public order", facts.ordered, f"{facts.units} units"),
        Check("second moments for free", free, about),
        Check("privacy loss", *_loss(loss, stated)),
        Check("within what was asked for", *_within(facts, stated)),
    ]
    entries = questions_of(facts, plan["questions"], facts.by)
    follow = all(recovered(facts, each.rows)[1] for each in entries)
    told = told_of(facts, entries, plan["questions"]) if groups else []
    names = [name for each in entries for name in each.names]
    checks += [
        Check("numbers answer the questions", follow, f"{len(names)} questions"),
        Check("numbers tell of variances", *_variances(facts, entries, told)),
    ]
    if not _numbers_fit(facts, results):
        checks.append(Check("released numbers", holds=False, found="too few or too many"))
        return checks
    claims = "answers", "standard errors", "intervals"
    one = answers_by_group(facts, results, entries, told) if groups else []
    found = hold(names, one or answers(facts, results, entries), results["answers"])
    checks += [Check(claim, *each) for claim, each in zip(claims, found, strict=True)]
    return checks + no_other_parts(manifest, _parts(manifest))


def _loss(loss: Fraction | None, stated: Fraction) -> tuple[bool, str]:
    """Whether the stated loss of one outcome is the true one, rounded up."""
    if loss is None:
        return False, "none"
    return rounded_up(stated, loss), f"{float(loss):.9g}"


def _variances(facts: Facts, entries: list[Entry], told: list[Told]) -> tuple[bool, str]:
    """Whether variances follow: from forms of assigned groups, or from predictions."""
    if told:
        clipped = sum(len(each.limits) > 0 for each in facts.forms)
        warned = f", {clipped} of clipped sums: intervals are too short where these are larger"
        said = f"{len(told)} forms by assigned group{warned if clipped else ''}"
        return all(each.holds for each in told), said
    known = all(recovered(facts, inverse_of(each))[1] for each in entries)
    return known, f"by arm{''.join(f', {each}' for each in facts.by)}"


def _guarantee(manifest: documents.Document) -> tuple[bool, str]:
    guarantee, claims = manifest["guarantee"], manifest["plan"]["claims"]
    holds = guarantee_holds(manifest, Words(_PRIVACY, _NEIGHBOURS)) and all(
        guarantee[name] == claims[name] for name in ("epsilon", "delta")
    )
    pure = rational(guarantee["delta"]) == 0
    said = f"{guarantee['privacy']}, {unit(guarantee['unit'])}, {shown(manifest)}"
    return holds and pure, said


def _within(facts: Facts, stated: Fraction) -> tuple[bool, str]:
    possible = _LEAST <= facts.asked <= _MOST and _THIN <= facts.spread / facts.width <= 1
    holds = possible and facts.asked * _SPENT <= stated <= facts.asked
    return holds, f"epsilon {float(facts.asked):.6g}"


def _numbers_fit(facts: Facts, results: documents.Document) -> bool:
    numbers, moments = results["numbers"], results["moments"]
    forms = results.get("forms", ())
    for each in (*numbers, *moments, *forms):
        whole(each, -_LARGEST, _LARGEST)
    many = 0 if facts.forms else int(facts.groups(facts.by, arms=True).max()) + 1
    lengths = len(numbers), len(moments), len(forms)
    return lengths == (len(facts.steps), many, len(facts.forms))


def _parts(manifest: documents.Document) -> list[tuple[documents.Document, set[str]]]:
    plan, results = manifest["plan"], manifest["results"]
    if plan["schema"] != _SCHEMA or not _space(plan["space"]):
        raise ValueError
    groups = "assigned" in plan["columns"]
    more = _MORE if groups else {}
    return [
        (plan, _PLAN),
        *((plan[name], keys | more.get(name, set())) for name, keys in _PARTS.items()),
        *((each, KEYS) for each in plan["numbers"].get("forms", ())),
        (plan["columns"]["assignment"], _ASSIGNMENT),
        *((each, _COVARIATE) for each in plan["columns"]["covariates"]),
        *((each, _QUESTION) for each in plan["questions"]),
        (manifest["records"], {"outcome"}),
        (results, _RESULTS | ({"forms"} if groups else set())),
        *((each, _ANSWER) for each in results["answers"]),
    ]


def _space(space: documents.Document) -> bool:
    labels = space["labels"]
    named = labels is None or (
        all(map(text, labels)) and len(set(labels)) == len(labels) == len(space["levels"])
    )
    return named and space["rounding"] in ("random", "nearest")
