"""The second opinion on trials: true manifests hold, every lie is found, damage is one error."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import itertools
import math
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError
from shoal.privacy.displayed_loss import round_up
from shoal.privacy.noise import Simulated
from shoal.trials.inference import effects
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree, UniformPrior
from shoal.trials.mechanisms.table import BestTable
from shoal.verification import verify
from shoal.verification.trials import privacy as verify_privacy
from shoal.verification.trials.effects import rounding_of
from shoal.verification.trials.facts import Facts
from tests.support.verdicts import DAMAGED, UNSHAPED, failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Manifest = dict[str, Any]
    Change = Callable[[Manifest], object]

pytestmark = pytest.mark.unit

ONE = verify_privacy.ONE
COUNTS = Space.counts(0, 10)
MECHANISMS: dict[str, Any] = {
    "cluster_dp": ClusterDP(epsilon=2),
    "cluster_dp with a histogram": ClusterDP(epsilon=3, floor=0.02, histogram_scale=4.0),
    "cluster_dp with a delta": ClusterDP(epsilon="1/2", delta="1e-5", levels=3),
    "cluster_dp with a large delta": ClusterDP(epsilon=1, delta="0.3", levels="all"),
    "cluster_free": ClusterFree(epsilon=2, floor=0.01, histogram_scale=20.0, levels=3),
    "uniform_prior": UniformPrior(epsilon=1),
    "uniform_prior on all levels": UniformPrior(epsilon="1/3", delta="1/100", levels="all"),
    "best_table": BestTable(epsilon=2),
    "noisy_horvitz_thompson": NoisyHorvitzThompson(epsilon=1),
    "noisy_horvitz_thompson, no spread": NoisyHorvitzThompson(epsilon=1, spread_share=0),
    "noisy_histogram": NoisyHistogram(epsilon="3/2"),
}
DESIGNS = {
    "one cluster": [[30, 40]],
    "three arms": [[30, 20, 10], [9, 30, 12], [25, 5, 5]],
    "single units": [[1, 5], [7, 4], [3, 3], [2, 9]],
    "one cluster, a single unit": [[1, 5]],
    "only single units": [[1, 1, 1], [1, 1, 1]],
    "many clusters": np.random.default_rng(5).integers(2, 20, (40, 2)).tolist(),
}
VARIANTS: dict[str, tuple[Space, dict[str, Any]]] = {
    "plain": (COUNTS, {}),
    "named": (Space.ordinal(["low", "mid", "high"], [-1, 0, 4]), {"unit": True}),
    "nearest": (Space.bins(-3, 5, 33, "nearest"), {"clustering_epsilon": "1/3", "name": "x"}),
    "far from 0": (Space.bins(1e6, 1e6 + 2, 5), {"missing": "public"}),
}


def _release(mechanism: Any, sizes: list[list[int]], variant: str, **more: Any) -> Manifest:  # noqa: ANN401
    space, options = VARIANTS[variant]
    options = {**options, **more}
    given = np.array(sizes)
    group = np.repeat(np.arange(given.size), given.ravel())
    arm, cluster = group % given.shape[1], group // given.shape[1]
    rng = np.random.default_rng(len(group))
    outcomes: Any = rng.uniform(space.levels[0], space.levels[-1], len(group))
    if space.labels:
        outcomes = np.array(space.labels)[rng.integers(0, space.size, len(group))]
    if options.get("unit"):
        options["unit"] = rng.permuted([f"u{i}" for i in range(len(group))])
    found: Manifest = mechanism.privatize(outcomes, arm, cluster, space=space, **options).manifest
    return found


CASES = list(itertools.product(MECHANISMS, DESIGNS, VARIANTS))
# Every third case has each mechanism with each design, and with each variant.
TRIED = CASES if os.environ.get("SHOAL_PROVE") else CASES[::3]


@pytest.mark.parametrize(("name", "design", "variant"), TRIED)
def test_true_manifests_hold(name: str, design: str, variant: str) -> None:
    """G-VERIFY: every mechanism, from the document alone."""
    verdict = verify.verify(_release(MECHANISMS[name], DESIGNS[design], variant))
    assert verdict.holds, str(verdict)


@pytest.mark.parametrize("name", MECHANISMS)
def test_simulations_never_hold(name: str) -> None:
    """G-VERIFY: all else may be right, repeatable noise is not private."""
    manifest = _release(MECHANISMS[name], DESIGNS["three arms"], "plain", noise=Simulated(3))
    failed = [check.claim for check in verify.verify(manifest).checks if not check.holds]
    assert failed == ["noise of the operating system"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_keys_of_every_kind_hold(name: str) -> None:
    """G-VERIFY: booleans, texts and whole numbers; another control; clusters left out."""
    rng = np.random.default_rng(2)
    arm, cluster = rng.integers(0, 2, 90), rng.permuted(np.arange(90) % 6)
    arm[cluster == 4] = 1
    for keys in ([False, True], ["b", "a"], [7, -7]):
        found = MECHANISMS[name].privatize(
            rng.integers(0, 11, 90),
            [keys[each] for each in arm],
            [f"shop {each}" for each in cluster],
            space=COUNTS,
            unit=rng.permutation(90),
            control=keys[1],
            single_arm="drop",
        )
        verdict = verify.verify(found.manifest)
        assert verdict.holds, str(verdict)


@pytest.mark.parametrize(
    "clusters",
    [
        ["2013-01-02", "20130102"],
        ["2013-01-02", "2013-01-02T00:00:00"],
        ["2013-01-02", "nonsense"],
        ["2013-01-03", "2013-01-02"],
    ],
)
def test_days_have_one_text_and_an_order(clusters: list[str]) -> None:
    """G-VERIFY: two texts of one day are not two clusters."""
    days = [dt.date(2013, 1, 2), dt.date(2013, 1, 3)]
    arm, cluster = np.arange(80) % 2, np.arange(80) // 2 % 2
    manifest = (
        MECHANISMS["uniform_prior"]
        .privatize(arm + 1, arm, [days[each] for each in cluster], space=COUNTS)
        .manifest
    )
    assert verify.verify(manifest).holds
    column = manifest["plan"]["assignment"]["clusters"]["columns"][0]
    column["values"] = clusters
    rekey(manifest)
    try:
        assert not verify.verify(manifest).holds
    except DocumentError as error:
        assert "damaged" in str(error)  # noqa: PT017


def _true(mechanism: Any, design: str, variant: str) -> Manifest:  # noqa: ANN401
    """A manifest that is the same in every run."""
    found = _release(mechanism, DESIGNS[design], variant, noise=Simulated(1))
    return {**found, "simulation": False}


@pytest.fixture(scope="module")
def true() -> dict[str, Manifest]:
    """Manifests to lie about, by the kind of release."""
    drawn = ClusterDP(epsilon=3, delta="1/1000", floor=0.02, histogram_scale=4.0)
    return {
        "units": _true(drawn, "three arms", "named"),
        "nameless": _true(ClusterDP(epsilon=4, levels=3), "three arms", "plain"),
        "charged": _true(drawn, "three arms", "nearest"),
        "means": _true(NoisyHorvitzThompson(epsilon=1, spread_share=0.25), "three arms", "plain"),
        "bins": _true(NoisyHistogram(epsilon=1), "one cluster", "plain"),
    }


def _signed(change: Change) -> Change:
    """A liar who makes the request key fit."""

    def both(manifest: Manifest) -> None:
        change(manifest)
        rekey(manifest)

    return both


def _at(manifest: Manifest, path: str) -> tuple[Any, Any]:
    *way, last = [int(part) if part.strip("-").isdigit() else part for part in path.split("/")]
    inner: Any = manifest
    for part in way:
        inner = inner[part]
    return inner, last


def _put(path: str, value: object) -> Change:
    """Another value; a function makes it of the true one."""

    def change(manifest: Manifest) -> None:
        inner, last = _at(manifest, path)
        old = inner.get(last) if isinstance(inner, dict) else inner[last]
        inner[last] = value(old) if callable(value) else value

    return _signed(change) if path.startswith(("plan", "records")) else change


def _packed(path: str, edit: Callable[[NDArray[np.int64]], object]) -> Change:
    """Other whole numbers in a packed array."""

    def repack(old: Manifest) -> Manifest:
        values = documents.unpack_integers(old, "x").copy()
        edit(values)
        return documents.pack_integers(values)

    return _put(path, repack)


def _drop(path: str) -> Change:
    def change(manifest: Manifest) -> None:
        inner, last = _at(manifest, path)
        del inner[last]

    return change


def _all(*changes: Change) -> Change:
    return lambda manifest: [change(manifest) for change in changes]


def _epsilon(factor: Fraction) -> Change:
    def change(manifest: Manifest) -> None:
        found = Fraction(manifest["guarantee"]["epsilon"]) * factor
        shown = float(found)
        shown = shown if Fraction(shown) >= found else math.nextafter(shown, math.inf)
        manifest["guarantee"].update(epsilon=str(found), epsilon_at_most=shown)
        manifest["plan"]["claims"]["epsilon"] = str(found)

    return _signed(change)


def _both(name: str, value: str) -> Change:
    """The same exact loss wherever it is stated, and the number that is shown for it."""
    return _all(
        _put(f"guarantee/{name}", value),
        _put(f"guarantee/{name}_at_most", round_up(Fraction(value))),
        _put(f"plan/claims/{name}", value),
    )


def _swap(path: str, one: int, other: int) -> Change:
    def swapped(old: list[Any]) -> list[Any]:
        found = list(old)
        found[one], found[other] = found[other], found[one]
        return found

    return _put(path, swapped)


def _exchange(one: int, other: int, length: int = 1) -> Callable[[NDArray[np.int64]], object]:
    def edit(values: NDArray[np.int64]) -> None:
        first, second = slice(one, one + length), slice(other, other + length)
        values[first], values[second] = values[second].copy(), values[first].copy()

    return edit


def _move(one: int, other: int, amount: int = 1) -> Callable[[NDArray[np.int64]], object]:
    def edit(values: NDArray[np.int64]) -> None:
        values[one] -= amount
        values[other] += amount

    return edit


def _lower(values: NDArray[np.int64]) -> None:
    # The floor of 0.02 is the least share; what is taken goes to the next level.
    values[:3] = [ONE // 100, ONE // 100, ONE - 2 * (ONE // 100)]


def _add(amount: int) -> Callable[[int], int]:
    return lambda old: old + amount


def _times(factor: float) -> Callable[[float], float]:
    return lambda old: old * factor


def _narrow(old: list[float]) -> list[float]:
    return [old[0] + 1e-4 * (old[1] - old[0]), old[1]]


PARAMETERS, AGGREGATE = "plan/mechanism/parameters", "plan/mechanism/aggregate"
OUT = "results/released"
FINITE, SUPER = "results/effects/0/finite_population", "results/effects/1/super_population"
LIES: dict[str, tuple[str, Change, str]] = {
    "less loss": ("units", _epsilon(1 - Fraction(1, 10**12)), "privacy loss"),
    "more loss": ("units", _epsilon(1 + Fraction(1, 10**9)), "privacy loss"),
    "less loss of means": ("means", _epsilon(1 - Fraction(1, 10**30)), "privacy loss"),
    "more loss of means": ("means", _epsilon(1 + Fraction(1, 10**30)), "privacy loss"),
    "less loss of bins": ("bins", _epsilon(Fraction(1, 2)), "privacy loss"),
    "no delta": (
        "units",
        _all(
            _both("delta", "0"),
            _put("guarantee/privacy", "pure label differential privacy"),
        ),
        "privacy loss",
    ),
    "a larger delta": ("units", _both("delta", "1/100"), "privacy loss"),
    "a delta of means": (
        "means",
        _all(
            _both("delta", "1/100"),
            _put("guarantee/privacy", "approximate label differential privacy"),
        ),
        "mechanism",
    ),
    "an impossible delta asked for": (
        "units", _put("plan/mechanism/asked/delta", "1"), "within what was asked for"
    ),
    "an endless epsilon asked for": (
        "units", _put("plan/mechanism/asked/epsilon", "1000001"), "within what was asked for"
    ),
    "a sure failure": ("units", _both("delta", "1"), "guarantee in words"),
    "dearer clusters": ("charged", _put("plan/clustering_epsilon", "1/2"), "privacy loss"),
    "cheaper clusters": ("charged", _put("plan/clustering_epsilon", "0"), "privacy loss"),
    "other clusters' price": (
        "charged", _put("plan/clustering_epsilon", "1/4"), "privacy loss"
    ),
    "another epsilon asked": ("units", _put("plan/claims/epsilon", "1"), "guarantee in words"),
    "another delta asked": ("units", _put("plan/claims/delta", "0"), "guarantee in words"),
    "a smaller decimal": (
        "units",
        _put("guarantee/epsilon_at_most", lambda old: math.nextafter(old, 0.0)),
        "guarantee in words",
    ),
    "a larger decimal": (
        "units",
        _put("guarantee/epsilon_at_most", lambda old: math.nextafter(old, 9.0)),
        "guarantee in words",
    ),
    "pure in words": (
        "units", _put("guarantee/privacy", "pure label differential privacy"), "guarantee in words"
    ),
    "another unit": ("units", _put("guarantee/unit/name", "a person"), "request key"),
    "other neighbours": ("units", _put("guarantee/neighbours", "any"), "guarantee in words"),
    "a simulation": ("units", _put("simulation", value=True), "noise of the operating system"),
    "simulation zero": ("units", _put("simulation", 0), UNSHAPED),
    "another key": ("units", _put("request", "0" * 64), "request key"),
    "another name": ("units", lambda m: m.update(name="y"), "request key"),
    "a long name": ("units", _put("name", "y" * 201), UNSHAPED),
    "fewer replaced": ("units", _put(f"{PARAMETERS}/replaced", _add(-1000)), "privacy loss"),
    "more replaced": ("units", _put(f"{PARAMETERS}/replaced", _add(10**6)), "effects"),
    "a higher floor": ("units", _put(f"{PARAMETERS}/floor", _add(1)), "privacy loss"),
    "a much higher floor": ("units", _put(f"{PARAMETERS}/floor", ONE // 3), "priors"),
    "a floor above all": ("units", _put(f"{PARAMETERS}/floor", ONE // 2), "mechanism"),
    "more weight": ("units", _put(f"{PARAMETERS}/weight", _add(1)), "privacy loss"),
    "no weight": ("units", _put(f"{PARAMETERS}/weight", 0), "mechanism"),
    "a steep histogram": ("units", _put(f"{PARAMETERS}/weight", 2**27), "mechanism"),
    "wider noise": ("units", _put(f"{PARAMETERS}/lattice_bits", 21), "privacy loss"),
    "other levels": ("nameless", _put(f"{PARAMETERS}/kept", [0, 4, 10]), "effects"),
    "unsorted levels": ("units", _put(f"{PARAMETERS}/kept", [0, 2, 2]), "mechanism"),
    "no outer level": ("nameless", _put(f"{PARAMETERS}/kept", [0, 5, 9]), "mechanism"),
    "an unknown mechanism": ("units", _put("plan/mechanism/name", "magic"), UNSHAPED),
    "another mechanism": ("units", _put("plan/mechanism/name", "cluster_free"), "mechanism"),
    "a uniform prior": ("units", _put("plan/mechanism/name", "uniform_prior"), "mechanism"),
    "swapped priors": ("units", _packed(f"{OUT}/prior", _exchange(0, 3, 3)), "effects"),
    "a prior above 1": ("units", _packed(f"{OUT}/prior", _move(0, 3)), "priors"),
    "a prior below the floor": ("units", _packed(f"{OUT}/prior", _lower), "priors"),
    "a leaning uniform prior": ("nameless", _packed(f"{OUT}/prior", _exchange(0, 1)), "priors"),
    "counts moved": ("units", _packed(f"{OUT}/counts", _move(0, 1)), "responses"),
    "counts moved, nameless": ("nameless", _packed(f"{OUT}/counts", _move(1, 2)), "effects"),
    "counts of other groups": ("nameless", _packed(f"{OUT}/counts", _move(1, 4)), "responses"),
    "a response": (
        "units",
        _packed(f"{OUT}/responses", lambda x: x.__setitem__(0, (x[0] + 1) % 3)),
        "responses",
    ),
    "an unknown response": (
        "units", _packed(f"{OUT}/responses", lambda x: x.__setitem__(0, 9)), "responses"
    ),
    "other sizes": ("nameless", _packed("plan/assignment/sizes", _move(0, 1)), "responses"),
    "arms in another order": (
        "nameless", _swap("plan/assignment/arms/columns/0/values", 1, 2), "groups"
    ),
    "another control": (
        "nameless", _swap("plan/assignment/arms/columns/0/values", 0, 1), "effects"
    ),
    "clusters in another order": (
        "nameless", _swap("plan/assignment/clusters/columns/0/values", 0, 1), "groups"
    ),
    "units in another order": (
        "units", _swap("plan/assignment/units/columns/0/values", 0, 1), "groups"
    ),
    "an unknown rounding": ("units", _put("plan/space/rounding", "up"), UNSHAPED),
    "a label too few": ("units", _put("plan/space/labels", ["a", "b"]), "outcome space"),
    "equal labels": ("units", _put("plan/space/labels", ["a"] * 3), UNSHAPED),
    "shifted levels": (
        "nameless", _put("plan/space/levels", lambda old: [0.5, *old[1:]]), "effects"
    ),
    "an unknown rule": ("units", _put("records/missing", "guess"), UNSHAPED),
    "another rule": ("units", _put("records/single_arm", "keep"), UNSHAPED),
    "clusters left out": ("units", _put("records/clusters_left_out", 2), "public rules"),
    "an effect": ("units", _put("results/effects/0/value", _times(1 + 1e-7)), "effects"),
    "an effect of means": ("means", _put("results/effects/1/value", _times(1 + 1e-7)), "effects"),
    "an effect of bins": ("bins", _put("results/effects/0/value", _times(1 + 1e-7)), "effects"),
    "an effect's arm": ("units", _put("results/effects/0/arm", 2), "effects"),
    "an effect's control": ("units", _put("results/effects/0/control", value=False), "effects"),
    "an effect too few": ("units", lambda m: m["results"]["effects"].pop(), "effects"),
    "effects swapped": ("units", lambda m: m["results"]["effects"].reverse(), "effects"),
    **{
        f"another {name} asked for": (
            kind, _put(f"plan/mechanism/asked/{name}", value), "parameters as asked for"
        )
        for kind, name, value in (
            ("units", "floor", "0.3"), ("units", "histogram_scale", "0.1"),
            ("units", "levels", 2), ("means", "spread_share", "1/7"),
        )
    },
    "what another mechanism is asked": (
        "means", _put("plan/mechanism/asked", {"epsilon": "9", "delta": "0"}),
        "parameters as asked for",
    ),
    "a sentence of another mechanism": (
        "means", _put("plan/mechanism/reason", "Histograms of groups, with noise."),
        "parameters as asked for",
    ),
    "a smaller error": (
        "units", _put(f"{FINITE}/standard_error", _times(1 - 1e-6)), "standard errors"
    ),
    "a smaller error of means": (
        "means", _put(f"{FINITE}/standard_error", _times(1 - 1e-6)), "standard errors"
    ),
    "a smaller error elsewhere": (
        "units", _put(f"{SUPER}/standard_error", _times(1 - 1e-6)), "standard errors"
    ),
    "no error": ("units", _put(f"{FINITE}/standard_error", None), "standard errors"),
    "a narrow interval": ("units", _put(f"{FINITE}/interval", _narrow), "intervals"),
    "a narrow interval elsewhere": ("units", _put(f"{SUPER}/interval", _narrow), "intervals"),
    "a narrow interval of means": ("means", _put(f"{FINITE}/interval", _narrow), "intervals"),
    "a narrow interval of bins": ("bins", _put(f"{FINITE}/interval", _narrow), "intervals"),
    "half an interval": (
        "units", _put(f"{FINITE}/interval", lambda old: [None, old[1]]), "intervals"
    ),
    "another confidence": ("units", _put("confidence", 0.99), UNSHAPED),
    "more weight of means": ("means", _put(f"{AGGREGATE}/weight", _add(1)), "privacy loss"),
    "more spread": ("means", _put(f"{AGGREGATE}/spread_weight", _add(1)), "privacy loss"),
    "no spread": ("means", _put(f"{AGGREGATE}/spread_weight", 0), "released numbers"),
    "wider noise of means": ("means", _put(f"{AGGREGATE}/lattice_bits", _add(1)), "privacy loss"),
    "less weight of bins": ("bins", _put(f"{AGGREGATE}/weight", _add(-1)), "privacy loss"),
    "groups of another trial": (
        "means", _packed(f"{AGGREGATE}/sizes", _exchange(0, 1)), "mechanism"
    ),
    "levels of another trial": (
        "means", _put(f"{AGGREGATE}/levels", lambda old: [*old[:-1], 11.0]), "mechanism"
    ),
    "arms of another trial": ("means", _put(f"{AGGREGATE}/arms", 9), "mechanism"),
    "a number": ("means", _put(f"{OUT}/numbers/0", _add(2**10)), "effects"),
    "a number of the spread": (
        "means", _put(f"{OUT}/numbers/-1", _add(2**24)), "standard errors"
    ),
    "a number of bins": ("bins", _put(f"{OUT}/numbers/0", _add(2**10)), "effects"),
    "a number too many": (
        "bins", lambda m: m["results"]["released"]["numbers"].append(0), "released numbers"
    ),
    **{
        f"an outcome called {name!r}": (
            "units", _signed(_put("records/outcome", name)), "request key"
        )
        for name in ("two\nlines", "\x1b[31m", "\u202e")
    },
    **{
        f"more in {path or 'all'}": (
            kind, _put(f"{path}/note" if path else "note", "private"), UNSHAPED
        )
        for kind, path in (
            ("units", ""), ("units", "plan"), ("units", "guarantee"), ("units", OUT),
            ("units", "versions"), ("units", "plan/space"), ("units", "records"),
            ("units", "plan/assignment"), ("units", "plan/mechanism"),
            ("units", PARAMETERS), ("units", "results/effects/1"), ("units", SUPER),
            ("means", AGGREGATE), ("bins", OUT),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(true: dict[str, Manifest], lie: str) -> None:
    """G-VERIFY: each claim is recomputed; the check that fails is the one about the lie."""
    kind, change, claim = LIES[lie]
    changed = copy.deepcopy(true[kind])
    change(changed)
    if claim == UNSHAPED:
        # What is added, missing or of another type is not even looked at.
        assert failed_claims(changed) == [UNSHAPED]
        return
    verdict = verify.verify(changed)
    assert not verdict.holds
    assert claim in [check.claim for check in verdict.checks if not check.holds], str(verdict)


@pytest.mark.parametrize("kind", ["units", "nameless", "charged", "means", "bins"])
def test_what_lies_are_made_of_is_true(true: dict[str, Manifest], kind: str) -> None:
    """The manifests themselves hold, so that it is the lies that are found."""
    verdict = verify.verify(true[kind])
    assert verdict.holds, str(verdict)


DAMAGE: dict[str, tuple[str, Change]] = {
    **{
        f"no {path}": ("units", _drop(path))
        for path in (
            *("plan", "results", OUT, "results/effects", "guarantee", "confidence"), "versions",
            *("plan/space", "records", "plan/assignment/units"),
            *("guarantee/delta", f"{OUT}/prior", f"{OUT}/responses", f"{PARAMETERS}/kept"),
            *("results/effects/0/super_population", f"{FINITE}/interval", "plan/mechanism/reason"),
        )
    },
    "a pooled shape": ("units", _put("plan/mechanism/pooled", value=True)),
    "pooled one": ("units", _put("plan/mechanism/pooled", 1)),
    "a negative epsilon": ("units", _put("guarantee/epsilon", "-1")),
    "an endless epsilon": ("units", _put("guarantee/epsilon", "1e99999999")),
    "a broken fraction": ("units", _put("guarantee/epsilon", "1/0")),
    "a fraction not in lowest terms": ("units", _put("guarantee/epsilon", "2/4")),
    "a number for a fraction": ("units", _put("guarantee/epsilon", 1)),
    "a decimal of text": ("units", _put("guarantee/epsilon_at_most", "1")),
    "another kind": ("units", _put(f"{OUT}/kind", "clusters")),
    "another kind of numbers": ("means", _put(f"{OUT}/kind", "units")),
    "no responses": ("units", _put(f"{OUT}/responses", None)),
    "responses of nobody": (
        "nameless",
        _put(f"{OUT}/responses", documents.pack_integers(np.zeros(3, dtype=np.int64))),
    ),
    "a broken floor": ("units", _put(f"{PARAMETERS}/floor", 0.05)),
    "nothing kept": ("units", _put(f"{PARAMETERS}/replaced", 0)),
    "no levels in use": ("units", _put(f"{PARAMETERS}/kept", [])),
    "a huge lattice": ("units", _put(f"{PARAMETERS}/lattice_bits", 10**10)),
    "falling levels": ("units", _put("plan/space/levels", [1.0, 0.0, 2.0])),
    "a level of text": ("units", _put("plan/space/levels", ["a", 0.0, 2.0])),
    "levels without end": (
        "units", lambda m: m["plan"]["space"].update(levels=[0.0, 1.0, math.inf])
    ),
    "equal arms": ("units", _put("plan/assignment/arms/columns/0/values", [0, 0, 1])),
    "mixed arms": ("units", _put("plan/assignment/arms/columns/0/values", [0, "1", 2])),
    "an arm of nobody": ("nameless", _packed("plan/assignment/sizes", _move(0, 1, 30))),
    "units named twice": (
        "units", _put("plan/assignment/units/columns/0/values/1", lambda _: "u0")
    ),
    "packed with more": ("units", _put(f"{OUT}/prior/note", 1)),
    "packed badly": ("units", _put(f"{OUT}/prior/data", "!")),
    "packed too short": ("units", _put(f"{OUT}/prior/length", 1)),
    "an effect of text": ("units", _put("results/effects/0/value", "1")),
    "an interval of one end": ("units", _put(f"{FINITE}/interval", [1.0])),
    "an error that is no number": ("units", _put(f"{FINITE}/standard_error", float("nan"))),
    "a confidence of 1": ("units", _put("confidence", 1)),
    "a confidence that is no number": ("units", _put("confidence", float("nan"))),
    "a broken number": ("means", _put(f"{OUT}/numbers/0", 1.5)),
    "an endless number": ("means", _put(f"{OUT}/numbers/0", 2**70)),
    "no weight of means": ("means", _put(f"{AGGREGATE}/weight", 0)),
    "versions of numbers": ("units", _put("versions/shoal", 1)),
    "no mechanism": ("units", _put("plan/mechanism", None)),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_clear_error(true: dict[str, Manifest], damage: str) -> None:
    """G-VERIFY: never another exception, whatever is missing."""
    kind, change = DAMAGE[damage]
    changed = copy.deepcopy(true[kind])
    change(changed)
    with pytest.raises(DocumentError, match=r"the manifest is damaged|is not JSON"):
        verify.verify(changed)


def test_other_documents_are_refused(true: dict[str, Manifest]) -> None:
    """Another schema is another document."""
    with pytest.raises(DocumentError, match=r"not of the schema shoal\.manifest/4"):
        verify.verify({**true["units"], "schema": "shoal.manifest/5"})


@pytest.mark.parametrize(
    "levels",
    [[2.0**50, 2.0**50 + 1], [1e9, 1e9 + 0.99], [0.0, 0.99e-50], [0.0, 1e-13, 1.0], [0.0, 1.01e50]],
)
@pytest.mark.parametrize("kind", ["noisy_horvitz_thompson", "noisy_histogram", "uniform_prior"])
def test_levels_that_nothing_is_released_of_are_refused(kind: str, levels: list[float]) -> None:
    """G-VERIFY: where levels differ by their last digits, rounding would excuse any effect."""
    with pytest.raises(InputError):
        Space(tuple(levels))
    manifest = _release(MECHANISMS[kind], DESIGNS["three arms"], "plain")
    manifest["plan"]["space"]["levels"] = levels
    aggregate = manifest["plan"]["mechanism"].get("aggregate", {})
    if "levels" in aggregate:
        aggregate["levels"] = levels
    for effect in manifest["results"]["effects"]:
        effect["value"] = 9.0
        for population in ("finite_population", "super_population"):
            effect[population] = {"interval": [9.0, 9.0], "standard_error": 1e-9}
    rekey(manifest)
    assert failed_claims(manifest) == [DAMAGED]


@pytest.mark.parametrize("levels", [[1e9, 1e9 + 2], [0.0, 1e-50], [0.0, 1e-12, 1.0], [0.0, 1e50]])
@pytest.mark.parametrize("kind", ["noisy_horvitz_thompson", "noisy_histogram", "uniform_prior"])
def test_levels_at_the_limits_hold(kind: str, levels: list[float]) -> None:
    """G-VERIFY: all that a space may be, the second opinion reads."""
    space = Space(tuple(levels))
    arm = np.arange(400) % 2
    outcomes = np.array(levels)[np.arange(400) // 7 % len(levels)]
    trial = MECHANISMS[kind].privatize(outcomes, arm, np.arange(400) // 100, space=space)
    assert failed_claims(trial.manifest) == []


@pytest.mark.parametrize("kind", ["noisy_horvitz_thompson", "noisy_histogram", "uniform_prior"])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e6, 1e9])
def test_rounding_excuses_little_of_what_outcomes_err_by(kind: str, far: float) -> None:
    """G-VERIFY: with many units and levels far from 0 too, an effect moved by errors is found."""
    manifest = _release(MECHANISMS[kind], DESIGNS["three arms"], "plain")
    for part in (manifest["plan"]["space"], manifest["plan"]["mechanism"].get("aggregate", {})):
        if "levels" in part:
            part["levels"] = [far, *np.linspace(far + 1, far + 3, len(part["levels"]) - 1)]
    for units in (10, 10**8, 2**50):
        sizes = np.array([[units, 3, 4], [5, 6, 7]])
        facts = dataclasses.replace(Facts.of(manifest), sizes=sizes)
        assert facts.width == 3
        assert rounding_of(facts) <= min(3 / math.sqrt(facts.units) / 16, 3.1e-14)
        assert rounding_of(facts) >= min(3 / math.sqrt(facts.units) / 17, 2.9e-14)


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [("noisy_horvitz_thompson", 10_000), ("noisy_histogram", 10_000), ("uniform_prior", 20)],
)
@pytest.mark.parametrize("far", [0.0, 9e8])
def test_small_errors_are_no_cloak(kind: str, epsilon: int, far: float) -> None:
    """G-VERIFY: rare outcomes, little noise, levels far from 0: no other value, no point."""
    outcomes, space = np.full(20_000, far), Space((far, far + 1))
    outcomes[:2] += 1
    mechanism = type(MECHANISMS[kind])(epsilon=epsilon)
    arm = np.arange(20_000) % 2
    trial = mechanism.privatize(outcomes, arm, space=space)
    assert failed_claims(trial.manifest) == []
    [effect] = trial.manifest["results"]["effects"]
    low, high = effect["finite_population"]["interval"]
    assert 0 < high - low < 1e-2
    for moved in ((high - low) / 100, -(high - low)):
        lie = copy.deepcopy(trial.manifest)
        lie["results"]["effects"][0]["value"] += moved
        lie["results"]["effects"][0]["finite_population"]["interval"] = [low + moved, high + moved]
        assert "effects" in failed_claims(lie)
    point = copy.deepcopy(trial.manifest)
    point["results"]["effects"][0]["finite_population"]["interval"] = [effect["value"]] * 2
    assert "intervals" in failed_claims(point)


@pytest.mark.parametrize("kind", ["uniform_prior", "cluster_dp", "cluster_free"])
def test_levels_close_together_beside_one_far_are_no_cloak(kind: str) -> None:
    """G-VERIFY: rounding of the range is a tenth of an interval here, and excuses none of it."""
    at = np.arange(200)
    outcomes, space = np.where(at % 3 == 0, 1e-12, 0.0), Space((0, 1e-12, 1))
    mechanism = type(MECHANISMS[kind])(epsilon=20, levels="all")
    # In one of a million releases some unit answers the far level, and the interval is wide.
    trials = (mechanism.privatize(outcomes, at % 2, space=space) for _ in range(5))
    trial = next(each for each in trials if not each.released.counts[:, :, 2].any())
    assert failed_claims(trial.manifest) == []
    [effect] = trial.manifest["results"]["effects"]
    low, high = effect["finite_population"]["interval"]
    facts = Facts.of(trial.manifest)
    for moved in ((high - low) / 100, -(high - low) / 50):
        assert 0 < abs(moved) < rounding_of(facts)
        lie = copy.deepcopy(trial.manifest)
        lie["results"]["effects"][0]["value"] += moved
        lie["results"]["effects"][0]["finite_population"]["interval"] = [low + moved, high + moved]
        assert failed_claims(lie) == ["effects", "intervals"]


@pytest.mark.parametrize("gap", [1e-9, 1e-7, 1e-6])
def test_a_large_effect_is_no_cloak(gap: float) -> None:
    """G-VERIFY: the last digits of an effect are a part of its interval, and excuse none of it."""
    at = np.arange(400)
    outcomes = np.where(at % 2 == 0, 0.0, np.where(at % 3 == 0, 1.0, 1 + gap))
    space = Space((0.0, 1.0, 1 + gap))
    trial = type(MECHANISMS["uniform_prior"])(epsilon=20).privatize(outcomes, at % 2, space=space)
    assert failed_claims(trial.manifest) == []
    [effect] = trial.manifest["results"]["effects"]
    low, high = effect["finite_population"]["interval"]
    for factor, moved, claims in (
        (0.0, 0.0, ["intervals"]),
        (0.9, 0.0, ["intervals"]),
        (1.0, 0.05, ["effects", "intervals"]),
        (1.0, 5.0, ["effects", "intervals"]),
    ):
        lie = copy.deepcopy(trial.manifest)
        told, value = lie["results"]["effects"][0], effect["value"] + moved * (high - low)
        told["value"] = value
        for population in ("finite_population", "super_population"):
            ends = told[population]["interval"]
            told[population]["interval"] = [
                value + factor * (end - effect["value"]) for end in ends
            ]
        assert failed_claims(lie) == claims


def test_responses_that_say_little_hide_no_interval() -> None:
    """G-VERIFY: clusters that differ by a little, far levels, a stretch of 200: no other error."""
    clusters, units = 10, 10
    at = np.arange(2 * clusters * units)
    space = Space.bins(9e8, 9e8 + 1, 2)
    mechanism = ClusterDP(epsilon="1/100", levels="all", floor=0.2, histogram_scale=1e4)
    outcomes, cluster = 9e8 + (at % 3 == 0), at // (2 * units)
    manifest = mechanism.privatize(outcomes, at % 2, cluster, space=space).manifest
    assert failed_claims(manifest) == []
    counts = np.zeros((clusters, 2, 2), np.int64)
    counts[:, :, 0] = units
    prior = np.full((clusters, 2, 2), 2**31)
    prior[:, 1, 0] -= 12_000 * np.arange(clusters)
    prior[:, 1, 1] += 12_000 * np.arange(clusters)
    released = manifest["results"]["released"]
    released["counts"] = documents.pack_integers(counts.ravel())
    released["prior"] = documents.pack_integers(prior.ravel())
    keep = 1 - manifest["plan"]["mechanism"]["parameters"]["replaced"] / 2**32
    guess = prior @ np.array([0.0, 1.0]) / 2**32
    mean = guess - guess / keep
    (found,) = effects(np.full((clusters, 2), units), mean, np.zeros((clusters, 2)))
    told = manifest["results"]["effects"][0]
    told["value"] = found.value
    for name in ("finite_population", "super_population"):
        known = getattr(found, name)
        numbers = [known.standard_error, *known.interval]
        error, low, high = (None if math.isnan(each) else float(each) for each in numbers)
        told[name] = {"standard_error": error, "interval": [low, high]}
    assert failed_claims(manifest) == []
    true = copy.deepcopy(told["super_population"])
    for factor in (0.0, 0.1, 0.999, 2.0):
        ends = [found.value + factor * (end - found.value) for end in true["interval"]]
        told["super_population"] = {
            "standard_error": factor * true["standard_error"],
            "interval": ends,
        }
        assert failed_claims(manifest) == ["standard errors", "intervals"]
    told["super_population"], told["value"] = true, found.value + true["standard_error"] / 1000
    assert "effects" in failed_claims(manifest)
