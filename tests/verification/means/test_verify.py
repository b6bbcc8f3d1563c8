"""The second opinion: it agrees with the planner, and finds every lie."""

from __future__ import annotations

import copy
import math
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import documents, unbiased
from shoal.errors import DocumentError, InputError
from shoal.means.estimators.base import around
from shoal.privacy.budget import text
from shoal.unbiased import Moment
from shoal.verification.means.bounds import Bounds, beyond, laplace_variance
from shoal.verification.means.coarse import Coarse, binomial_tail
from shoal.verification.means.facts import Facts
from shoal.verification.means.losses import exact_loss, tail_above
from shoal.verification.verify import verify
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Document = dict[str, Any]
    Change = Callable[[Document], object]

pytestmark = pytest.mark.oracle

N = 2000
COUNTS = np.arange(N) % 3 + 1
MOMENTS = (Moment(2, 1), Moment(4, 1.4))
_CLIPPED = {"method": "clipped_mean", "epsilon": 1, "interval": (0, 10), "bias": 0.1}
_SYMMETRIC = {"method": "symmetric_mean", "epsilon": 2, "delta": "1e-6"}
WISHES: dict[str, dict[str, Any]] = {
    "clipped": {**_CLIPPED, "interval_by": "certified"},
    "normal": _CLIPPED,
    "sampled": {
        "method": "sampled_mean",
        "delta": "1/4",
        "interval": (0, 10),
        "publish_values": True,
    },
    "residual": {
        "method": "clipped_plus_residual",
        "epsilon": "1/3",
        "delta": "1/100",
        "interval": (0, 10),
        "publish_values": True,
    },
    "reused": {**_SYMMETRIC, "reuse": True, "interval_by": "certified"},
    "normal, reused": {**_SYMMETRIC, "reuse": True},
    "split": {**_SYMMETRIC, "reuse": False, "interval_by": "certified"},
    "normal, split": {**_SYMMETRIC, "reuse": False},
}


def planned(kind: str, **changes: Any) -> unbiased.UnbiasedPlan:  # noqa: ANN401
    """A plan."""
    wanted = {"counts": COUNTS, "moment": MOMENTS, **WISHES[kind], **changes}
    return unbiased.plan(**wanted)


def released(kind: str, **changes: Any) -> Document:  # noqa: ANN401
    """A true manifest of a real release."""
    plan = planned(kind, **changes)
    counts = plan.request.counts
    values = np.random.default_rng(1).normal(5, 1, int(counts.sum()))
    return plan.release(values, np.repeat(np.arange(len(counts)), counts)).manifest


@pytest.fixture(scope="module")
def true() -> dict[str, Document]:
    """A true manifest of every kind."""
    return {kind: released(kind) for kind in WISHES}


@pytest.mark.parametrize("kind", WISHES)
@pytest.mark.parametrize("weights", [{}, {"weights": "counts"}, {"weights": "counts", "cap": 2}])
def test_true_manifests_hold(kind: str, weights: Document) -> None:
    """G-VERIFY: every method and way to weigh users, from the document alone."""
    found = released(kind, source={"what": "x"}, **weights)
    verdict = verify(documents.parse(documents.canonical_bytes(found), "shoal.manifest/4", "x"))
    assert verdict.holds, str(verdict)
    assert len(verdict.checks) == 10
    said = any("as likely above their mean as below" in each for each in verdict.unverified)
    assert said == (found["plan"]["method"] == "symmetric_mean")


@pytest.mark.parametrize("kind", WISHES)
@pytest.mark.parametrize("counts", [40, 300, 10**5])
@pytest.mark.parametrize("moment", [Moment(2, 1e-9), (Moment(3, 50), Moment(20, 90))])
def test_true_plans_hold_at_all_sizes(kind: str, counts: int, moment: object) -> None:
    """G-VERIFY: few and many users, small and large values."""
    changes: Document = {"counts": counts, "moment": moment}
    if kind in {"clipped", "normal"}:
        changes["bias"] = 1e-4
    if kind == "residual":
        changes["interval"] = (0, 1)
    plan = planned(kind, **changes)
    facts = Facts.of(plan.to_document())
    found = Bounds.of(facts)
    assert plan.exact_epsilon * (1 - Fraction(1, 10**9)) <= exact_loss(facts)[0]
    assert exact_loss(facts)[0] <= plan.exact_epsilon
    assert plan.exact_delta * Fraction(99, 100) <= exact_loss(facts)[1] <= plan.exact_delta
    assert plan.noise_scale == pytest.approx(found.noise_scale, rel=1e-12, abs=0)
    assert plan.bias_bound == pytest.approx(found.bias, rel=1e-10, abs=0)
    error = math.sqrt(found.variance)
    assert plan.standard_error >= error * (1 - 1e-11)
    # Binomial tails are exact here, and not all splits are alike.
    assert plan.standard_error <= error * (1 + 1e-10 if plan.method != "symmetric_mean" else 1e9)
    if counts == 10**5:
        assert plan.standard_error == pytest.approx(error, rel=1e-2, abs=0)
    manifest = plan.release(np.full(counts, 0.3)).manifest
    assert verify(manifest).holds, str(verify(manifest))


@given(
    kind=st.sampled_from(sorted(WISHES)),
    order=st.floats(2, 1000),
    size=st.floats(1e-6, 1e6),
    epsilon=st.fractions(Fraction(1, 50), 20),
    users=st.integers(2, 500),
)
@settings(max_examples=500 if os.environ.get("SHOAL_PROVE") else 12, deadline=None)
def test_the_planner_never_understates(
    kind: str, order: float, size: float, epsilon: Fraction, users: int
) -> None:
    """G-VERIFY: claims against other formulas, for random public facts."""
    changes: Document = {"moment": Moment(order, size), "counts": users}
    if kind != "sampled":
        changes["epsilon"] = epsilon
    if WISHES[kind]["method"] == "symmetric_mean":
        changes["delta"] = "1/1000"
    if kind in {"clipped", "normal"}:
        changes["bias"] = size / 30
    try:
        document = planned(kind, **changes).to_document()
    except shoal.ShoalError:
        return
    found, claims = Bounds.of(Facts.of(document)), document["claims"]
    assert claims["bias_bound"] >= found.bias * (1 - 1e-9)
    assert claims["standard_error"] >= math.sqrt(found.variance) * (1 - 1e-9)


def keyed(manifest: Document) -> Document:
    """The manifest with the request's key that belongs to its plan."""
    rekey(manifest)
    return manifest


def part(*path: str, to: object) -> Change:
    """Another value at a place."""

    def change(manifest: Document) -> None:
        at = manifest
        for name in path[:-1]:
            at = at[name]
        old = at[path[-1]]
        at[path[-1]] = to(old) if callable(to) else to

    return change


def both(name: str, to: str, shown: float) -> Change:
    """A smaller loss in claims and guarantee alike."""

    def change(manifest: Document) -> None:
        manifest["plan"]["claims"][name] = to
        manifest["guarantee"].update({name: to, f"{name}_at_most": shown})

    return change


def moved(by: float) -> Change:
    """Another value, and its interval."""

    def change(manifest: Document) -> None:
        result = manifest["results"]
        result["value"] += by
        result["interval"] = [end + by for end in result["interval"]]
        result["exact"] = text(Fraction(result["value"]))

    return change


def narrower(factor: float) -> Change:
    """Smaller errors and the interval that follows from them."""

    def change(manifest: Document) -> None:
        claims, result = manifest["plan"]["claims"], manifest["results"]
        claims["standard_error"] *= factor
        claims["rmse_bound"] = math.hypot(claims["bias_bound"], claims["standard_error"])
        half = claims["bias_bound"] + claims["standard_error"] / math.sqrt(0.05)
        result["interval"] = [result["value"] - half, result["value"] + half]

    return change


def less(factor: float) -> Callable[[float], float]:
    """So many times the number."""
    return lambda old: type(old)(old * factor)


def more(steps: int) -> Callable[[int], int]:
    """Another whole number."""
    return lambda old: old + steps


PARAMETERS, CLAIMS, WISH = ("plan", "parameters"), ("plan", "claims"), ("plan", "request")


def halved(factor: float) -> Change:
    """A narrower normal interval, with half of its width as it is then."""

    def change(manifest: Document) -> None:
        result = manifest["results"]
        half = result["normal"]["half_width"] * factor
        result["normal"]["half_width"] = half
        exact = Fraction(result["exact"])
        result["interval"] = list(around(exact, Fraction(half)))

    return change


NORMAL = ("results", "normal")
LIES: dict[str, tuple[str, Change, str]] = {
    "a narrower normal interval": ("normal", halved(0.999), "interval"),
    "a narrower normal interval of a guess": ("normal, split", halved(0.999), "interval"),
    "a normal interval an ulp narrower": (
        "normal", part("results", "interval", to=lambda x: [math.nextafter(x[0], 9e9), x[1]]),
        "interval",
    ),
    "half a width that is not the interval's": (
        "normal, reused", part(*NORMAL, "half_width", to=less(0.999)), "interval"
    ),
    "fewer squares": (
        "normal", part(*NORMAL, "squares", to=lambda x: text(Fraction(x) * Fraction(9, 10))),
        "interval",
    ),
    "squares that are no steps": (
        "normal, split", part(*NORMAL, "squares", to=lambda x: text(Fraction(x) / 2**40)), "result"
    ),
    "squares about another place": (
        "normal", part(*NORMAL, "about", to=lambda x: text(Fraction(x) + 1)), "result"
    ),
    "squares about a place no guess has": (
        "normal, reused", part(*NORMAL, "about", to=lambda x: text(Fraction(x) * 2)), "result"
    ),
    "no squares": ("normal", part(*NORMAL, to=None), "result"),
    "no squares of a guess": ("normal, split", part(*NORMAL, to=None), "result"),
    "squares of a failed step": (
        "normal, split", part("results", "coarse_failed", to=True), "result"
    ),
    "less noise on squares": (
        "normal", part(*PARAMETERS, "square_step", to=less(0.8)), "privacy loss"
    ),
    "half of the noise on squares": (
        "normal, split", part(*PARAMETERS, "square_bits", to=more(-1)), "privacy loss"
    ),
    "a hair less noise on squares": (
        "normal, reused", part(*PARAMETERS, "square_step", to=less(0.99)), "privacy loss"
    ),
    "squares without steps": ("normal", part(*PARAMETERS, "square_step", to=0), "parameters"),
    "a narrower forecast": (
        "normal", part(*CLAIMS, "half_width", to=less(0.999)), "errors"
    ),
    "a smaller epsilon": ("clipped", both("epsilon", "9/10", 0.9), "privacy loss"),
    "no delta": ("residual", both("delta", "0", 0.0), "privacy loss"),
    "a smaller delta": ("split", both("delta", "1/2000000", 5e-7), "privacy loss"),
    "delta of one step of two": ("reused", both("delta", "1/2000000", 5e-7), "privacy loss"),
    "epsilon of one step of two": ("reused", both("epsilon", "1", 1.0), "privacy loss"),
    "less noise": ("clipped", part(*PARAMETERS, "lattice_bits", to=more(-1)), "privacy loss"),
    "dearer ticks": ("residual", part(*PARAMETERS, "per_unit", to=more(9)), "privacy loss"),
    "a wider grid": ("clipped", part(*PARAMETERS, "high", to=more(9)), "privacy loss"),
    "a narrower grid": ("clipped", part(*PARAMETERS, "high", to=more(-99999)), "bias bound"),
    "a finer tick": ("residual", part(*PARAMETERS, "tick_exponent", to=more(-1)), "parameters"),
    "a coarser tick": ("clipped", part(*PARAMETERS, "tick_exponent", to=more(1)), "errors"),
    "steps beyond the sampler": (
        "clipped", part(*PARAMETERS, "per_unit", to=2**50), "parameters"
    ),
    "sampling more often": (
        "sampled", part(*PARAMETERS, "sampling_words", to=str(2**63)), "privacy loss"
    ),
    "sampling less often": (
        "sampled", part(*PARAMETERS, "sampling_words", to=str(2**60)), "errors"
    ),
    "sampling more than all": (
        "sampled", part(*PARAMETERS, "sampling_words", to=str(2**65)), "parameters"
    ),
    "a lower threshold": (
        "split", part(*PARAMETERS, "coarse_threshold", to=more(-(2**19))), "parameters"
    ),
    "a threshold below one user": (
        "reused", part(*PARAMETERS, "coarse_threshold", to=1), "parameters"
    ),
    "a smaller delta of the coarse step": (
        "split", part(*PARAMETERS, "coarse_delta", to="1/2000000"), "parameters"
    ),
    "users worth more": ("split", part(*PARAMETERS, "coarse_per_user", to=less(2)), "parameters"),
    "fewer users in the coarse step": (
        "split", part(*PARAMETERS, "coarse_users", to=more(-40)), "errors"
    ),
    "all users in a split": ("split", part(*PARAMETERS, "coarse_users", to=N), "parameters"),
    "a split called reuse": ("split", part(*PARAMETERS, "reuse", to=1), "parameters"),
    "reuse called a split": ("reused", part(*PARAMETERS, "reuse", to=0), "parameters"),
    "reuse where a split was asked for": (
        "reused", part(*WISH, "reuse", to=False), "parameters"
    ),
    "a wider second step": ("split", part(*PARAMETERS, "half", to=more(1000)), "privacy loss"),
    "narrow bins": ("reused", part(*PARAMETERS, "coarse_exponent", to=more(-1)), "errors"),
    "less bias": ("clipped", part(*CLAIMS, "bias_bound", to=less(0.999)), "bias bound"),
    "smaller errors": ("clipped", narrower(0.999), "errors"),
    "smaller errors of a sample": ("sampled", narrower(0.999), "errors"),
    "smaller errors with residuals": ("residual", narrower(0.999), "errors"),
    "smaller errors of a split": ("split", narrower(0.99), "errors"),
    "smaller errors of reuse": ("reused", narrower(0.99), "errors"),
    "an rmse without bias": (
        "clipped", lambda m: m["plan"]["claims"].update(
            rmse_bound=m["plan"]["claims"]["standard_error"]
        ), "errors",
    ),
    "a smaller noise scale": ("clipped", part(*CLAIMS, "noise_scale", to=less(0.5)), "errors"),
    "smaller moments": ("clipped", part(*WISH, "moments", to=[[2.0, 1.5], [4.0, 1.9]]), "errors"),
    "heavier users": ("residual", part(*WISH, "weights", to="counts"), "privacy loss"),
    "a wider interval of means": (
        "clipped", part(*WISH, "interval", to=[-5.0, 15.0]), "parameters"
    ),
    "an interval that costs bias": (
        "clipped", part(*WISH, "interval", to=[-0.5, 10.5]), "bias bound"
    ),
    "a mean that may be farther": ("sampled", part(*WISH, "interval", to=[0.0, 12.0]), "errors"),
    "a smaller bias asked for": (
        "clipped", part(*WISH, "bias", to=0.05), "within what was asked for"
    ),
    "a smaller epsilon asked for": (
        "split", part(*WISH, "epsilon", to="1"), "within what was asked for"
    ),
    "more asked for than is spent": (
        "clipped", part(*WISH, "epsilon", to="101/100"), "within what was asked for"
    ),
    "a smaller delta asked for": (
        "split", part(*WISH, "delta", to="1/9000000"), "within what was asked for"
    ),
    "a delta of more than 1 asked for": (
        "split", part(*WISH, "delta", to="10001/10000"), "within what was asked for"
    ),
    "counts in another order": (
        "clipped",
        lambda m: m["plan"].update(counts=documents.pack_integers(COUNTS)),
        "parameters",
    ),
    "other counts": (
        "split", lambda m: m["plan"].update(counts=documents.pack_integers(np.sort(COUNTS)[9:])),
        "errors",
    ),
    "a mean beyond all bins": (
        "split", part(*WISH, "farthest", to=2.0**299), "parameters"
    ),
    "no values published": (
        "sampled", part("guarantee", "publishes_values", to=False), "guarantee in words"
    ),
    "not a word of publishing": (
        "residual", part("guarantee", "privacy", to="approximate differential privacy"),
        "guarantee in words",
    ),
    "pure in words": (
        "split", part("guarantee", "privacy", to="pure differential privacy"), "guarantee in words"
    ),
    "another unit": (
        "clipped", part("guarantee", "unit", "records", to="one"), "guarantee in words"
    ),
    "other neighbours": (
        "clipped", part("guarantee", "neighbours", to="presence"), "guarantee in words"
    ),
    "epsilon rounded down": (
        "residual",
        part("guarantee", "epsilon_at_most", to=lambda x: math.nextafter(x, 0)),
        "guarantee in words",
    ),
    "delta rounded down": (
        "split",
        part("guarantee", "delta_at_most", to=lambda x: math.nextafter(x, 0)),
        "guarantee in words",
    ),
    "another guarantee than the claims": (
        "clipped", part("guarantee", "epsilon", to="1/2"), "guarantee in words"
    ),
    "a simulation": ("clipped", part("simulation", to=True), "noise of the operating system"),
    "a coarse step that was none": (
        "clipped", part("results", "coarse_failed", to=False), "result"
    ),
    "no word of the coarse step": ("split", part("results", "coarse_failed", to=None), "result"),
    "another value": ("split", part("results", "value", to=less(1.01)), "result"),
    "a narrower interval": (
        "sampled", part("results", "interval", to=lambda ends: [ends[0], ends[1] - 0.01]),
        "interval",
    ),
    "more confidence": ("clipped", part("confidence", to=0.99), "no other parts"),
    "sure": ("clipped", part("confidence", to=1.0), "no other parts"),
    "another method": ("clipped", part("plan", "method", to="mean"), "method"),
    "another plan's schema": (
        "clipped", part("plan", "schema", to="shoal.plan/3"), "no other parts"
    ),
    "rows for users of several records": (
        "clipped",
        part("guarantee", "unit", to={"name": "each row", "relation": "values", "records": "one"}),
        "guarantee in words",
    ),
    "a source of other users": (
        "clipped", part("plan", "source", to={"user": "another"}), "guarantee in words"
    ),
    "a source of other values": (
        "clipped", part("plan", "source", to={"value": "another"}), "guarantee in words"
    ),
    "values over two lines": ("clipped", part("records", "value", to="a\nb"), "request key"),
    "values in colours": ("clipped", part("records", "value", to="\x1b[31m"), "request key"),
    "values from right to left": ("clipped", part("records", "value", to="\u202e"), "request key"),
    "more parts": ("clipped", lambda m: m["results"].update(more=1), "no other parts"),
    "no version": ("clipped", lambda m: m["versions"].pop("opendp"), "no other parts"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_lies_are_found(true: dict[str, Document], name: str) -> None:
    """G-VERIFY: the check that must find it does, with the request's key of the lie."""
    kind, change, claim = LIES[name]
    lie = copy.deepcopy(true[kind])
    change(lie)
    try:
        verdict = verify(keyed(lie))
    except DocumentError:
        # What is added, missing or of another type is not even looked at.
        assert claim in {"no other parts", "method"}
        return
    assert claim in {check.claim for check in verdict.checks if not check.holds}, str(verdict)
    assert not verdict.holds
    assert str(verdict).endswith("NO")


@pytest.mark.parametrize("kind", WISHES)
def test_another_request_key_is_found(true: dict[str, Document], kind: str) -> None:
    """G-VERIFY: plan, name and key belong together."""
    for change in (
        part("request", to="0" * 64),
        part("name", to="other"),
        part("plan", "source", to={}),
    ):
        lie = copy.deepcopy(true[kind])
        change(lie)
        failed = [check.claim for check in verify(lie).checks if not check.holds]
        assert failed == ["request key"]


def test_values_lie_on_the_lattice_of_the_noise() -> None:
    """G-VERIFY: with few users a value between two steps is told from one on a step."""
    manifest = released("clipped", counts=3)
    assert verify(manifest).holds
    found = set()
    for by in (2.0**-47, 3 * 2.0**-47, 5 * 2.0**-47):
        lie = copy.deepcopy(manifest)
        moved(by)(lie)
        found |= {check.claim for check in verify(lie).checks if not check.holds}
    assert found == {"result"}


@pytest.mark.parametrize("source", [{"value": "weight"}, {"user": "family"}])
def test_a_source_names_what_is_released(source: Document) -> None:
    """G-VERIFY: a description of other users or values is refused before anything is drawn."""
    with pytest.raises(InputError, match="a source whose"):
        released("clipped", source=source)
    plan = planned("clipped", source={"user": "person", "value": "height"})
    users = np.repeat(np.arange(len(COUNTS)), COUNTS)
    values = np.full(int(COUNTS.sum()), 5.0)
    made = plan.release(values, users, values_name="height", privacy_unit="person")
    assert verify(made.manifest).holds


def test_a_delta_of_one_protects_nobody() -> None:
    """A release of everything is refused when it is planned."""
    with pytest.raises(InputError, match="a delta of 1 or more"):
        released("sampled", delta=1)


def leaves(document: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where everything is that is not empty."""
    items: Any = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    return [path, *(found for key, value in items for found in leaves(value, (*path, key)))]


@pytest.mark.parametrize("kind", WISHES)
def test_damage_is_refused_or_found(true: dict[str, Document], kind: str) -> None:
    """G-FUZZ: any part replaced or removed is a lie or damage, never an accident."""
    # Nobody but who drew knows whether a coarse step failed.
    harmless = {
        ("results", "coarse_failed"),
        ("versions", "shoal"),
        ("versions", "opendp"),
        ("versions", "python"),
    }
    junk: tuple[Any, ...] = (
        None,
        True,
        -1,
        2**70,
        1e308,
        "",
        "x",
        "1/3",
        [],
        {},
        [1, 2],
        float("nan"),
    )
    for path in leaves(true[kind])[1:]:
        for found in junk:
            lie = copy.deepcopy(true[kind])
            at = lie
            for key in path[:-1]:
                at = at[key]
            if at[path[-1]] == found and type(at[path[-1]]) is type(found):
                continue
            at[path[-1]] = found
            try:
                holds = verify(lie).holds
            except DocumentError:
                continue
            assert not holds or path in harmless or path[:2] == CLAIMS, (path, found)
    for path in leaves(true[kind])[1:]:
        lie = copy.deepcopy(true[kind])
        at = lie
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        try:
            assert not verify(lie).holds, path
        except DocumentError:
            continue


@pytest.mark.parametrize(
    "damage",
    [
        part("plan", to=None),
        part("plan", "counts", "data", to="!"),
        part("plan", "counts", "length", to=3),
        part(*WISH, "epsilon", to="1/1"),
        part(*WISH, "epsilon", to="2/2"),
        part(*WISH, "epsilon", to="-1/2"),
        part(*WISH, "moments", to=[]),
        part(*WISH, "moments", to=[[1.0, 1.0]]),
        part(*WISH, "interval", to=None),
        part(*WISH, "interval", to=[2, 1]),
        part(*WISH, "cap", to=3),
        part(*WISH, "farthest", to=3.0),
        part(*PARAMETERS, "low", to=1.5),
        part(*PARAMETERS, "low", to="1"),
        part(*CLAIMS, "bias_bound", to=float("inf")),
        part("results", "value", to="5"),
        part("guarantee", to=[]),
    ],
)
def test_damage_raises(true: dict[str, Document], damage: Change) -> None:
    """What cannot be read is an error of the document."""
    lie = copy.deepcopy(true["clipped"])
    damage(lie)
    with pytest.raises(DocumentError, match=r"damaged|is not JSON"):
        verify(lie)


@pytest.mark.parametrize("document", [{}, {"schema": "shoal.manifest/3"}, {"schema": None}])
def test_other_documents_are_refused(document: Document) -> None:
    """Another schema."""
    with pytest.raises(DocumentError, match="schema"):
        verify(document)


@pytest.mark.parametrize(("steps", "bits"), [(0, 0), (1, 0), (7, 3), (14 * 2**20, 20), (99, 54)])
def test_tails_of_the_noise_are_outward(steps: int, bits: int) -> None:
    """Against mpmath: not below, and hardly above."""
    exact = cast("Any", mpmath.mp).clone()
    exact.dps = 80
    q = exact.exp(-exact.mpf(1) / 2**bits)
    truth = q**steps / (1 + q)
    found = tail_above(steps, bits)
    ratio = exact.mpf(found.numerator) / found.denominator / truth
    assert 1 < ratio < 1 + exact.mpf(10) ** -45


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_tails_of_one_and_two_noises_against_sums(scale: float) -> None:
    """By adding up the probabilities."""
    coarse = Coarse(9, 1.0, 1, 1, scale, 5)
    q, z = math.exp(-1 / scale), np.arange(-400, 401)
    one = (1 - q) / (1 + q) * q ** np.abs(z)
    two = np.convolve(one, one)
    for k in (-5, -1, 0, 1, 2, 9):
        tail = coarse._tail(np.array([float(k)]))[0]
        assert tail == pytest.approx(one[z >= k].sum(), rel=1e-12)
    for k in (1, 2, 9):
        tail = coarse._difference(np.array([float(k)]))[0]
        assert tail == pytest.approx(two[np.arange(-800, 801) >= k].sum(), rel=1e-10)
    assert laplace_variance(scale) == pytest.approx(float((one * z**2).sum()), rel=1e-12)


@pytest.mark.parametrize("chance", [0.01, 0.3, 1.0])
def test_binomial_tails_against_sums(chance: float) -> None:
    """By adding up the probabilities."""
    for n in (0, 1, 2, 30):
        least = np.arange(1, n + 2)
        pmf = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
        truth = [sum(pmf[k:]) for k in least]
        assert binomial_tail(n, least, chance).tolist() == pytest.approx(truth, abs=1e-14)


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("power", [1, 2])
def test_worst_distributions_against_a_linear_program(margin: float, power: int) -> None:
    """No distribution on a grid loses more, and one loses as much."""
    from scipy.optimize import linprog

    moments = ((3.0, 1.0), (6.0, 1.2))
    grid = np.linspace(0, 20, 4001)
    gain = np.maximum(grid - margin, 0) ** power
    for order, size in moments:
        found = linprog(
            -gain, A_ub=[grid**order], b_ub=[size**order], A_eq=[np.ones_like(grid)], b_eq=[1]
        )
        truth = beyond(((order, size),), margin, power)
        lost = -float(found.fun or 0)
        assert truth * (1 - 1e-4) <= lost <= truth * (1 + 1e-7)
    assert beyond(moments, margin, power) == min(beyond((m,), margin, power) for m in moments)


def far_release(method: str, place: float, size: float) -> unbiased.UnbiasedEstimate:
    """A release of values far from 0, whose interval may be narrower than floats are apart."""
    sampled = {"delta": "1/2", "interval": (place, place + 2 * math.ulp(place))}
    wanted: dict[str, dict[str, Any]] = {
        "sampled_mean": {**sampled, "publish_values": True},
        "symmetric_mean": {"epsilon": 1, "delta": "1e-3"},
    }
    plan = unbiased.plan(method, N, moment=Moment(2, size), **wanted[method])
    values = place + np.round(np.random.default_rng(0).normal(0, 3, N)) * math.ulp(place)
    return plan.release(values)


@pytest.mark.parametrize("method", ["sampled_mean", "symmetric_mean"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("place", "size"), [(2.0**60, 2.0), (2.0**60, 200.0), (2.0**59, 900.0), (2.0**90, 1e-9)]
)
def test_intervals_far_from_0_are_no_narrower_than_their_errors(
    method: str, sign: int, place: float, size: float
) -> None:
    """G-VERIFY: an interval that floats cannot hold is rounded outwards, and no other verifies."""
    found = far_release(method, sign * place, size)
    manifest = found.manifest
    assert failed_claims(manifest) == []
    exact, (low, high) = found.released.value, found.interval
    half = Fraction(found.bias_bound) + Fraction(found.standard_error) * Fraction(447, 100)
    if method == "symmetric_mean":
        half = Fraction(manifest["results"]["normal"]["half_width"])
    assert Fraction(low) <= exact - half
    assert exact + half <= Fraction(high)
    assert manifest["results"]["interval"] == [low, high]
    value, inward = found.value, math.nextafter(low, math.inf)
    for lie in (
        [value, value],
        [inward, high],
        [low, math.nextafter(high, -math.inf)],
        [math.nextafter(low, -math.inf), high],
        [low, math.nextafter(high, math.inf)],
        [high, low],
    ):
        manifest["results"]["interval"] = lie
        assert failed_claims(manifest) == ["interval"]


@pytest.mark.parametrize("kind", WISHES)
def test_intervals_near_0_contain_the_exact_one(true: dict[str, Document], kind: str) -> None:
    """G-VERIFY: ends are on the safe side of exact -+ (bias + k errors), in exact arithmetic."""
    claims, results = true[kind]["plan"]["claims"], true[kind]["results"]
    exact, miss = Fraction(results["exact"]), Fraction(1, 20)
    low, high = map(Fraction, results["interval"])
    for side in (exact - low, high - exact):
        rest = side - Fraction(claims["bias_bound"])
        assert rest > 0
        if "normal" in kind:
            assert side >= Fraction(results["normal"]["half_width"])
        else:
            assert rest**2 * miss >= Fraction(claims["standard_error"]) ** 2
    changed = copy.deepcopy(true[kind])
    for factor in (1 - 1e-9, 1 + 1e-8):
        half = (high - low) / 2 * Fraction(factor)
        changed["results"]["interval"] = [float(exact - half), float(exact + half)]
        assert failed_claims(changed) == ["interval"]


def test_a_bias_that_floating_point_may_not_hold_verifies() -> None:
    """G-READABLE: a budget of 1e-314 is kept, and other formulas find 0."""
    drawn = unbiased.clipped_mean(
        np.full(1000, 0.5), interval=(0, 1), bias=1e-314, moment=unbiased.Moment(8, 1e-9),
        epsilon=1, noise=shoal.Simulated(1),
    )  # fmt: skip
    failed = [each.claim for each in shoal.verify(drawn.manifest).checks if not each.holds]
    assert failed == ["noise of the operating system"]
