"""The second opinion on several statistics, Gaussian noise, Clip-User and optimal plans."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal import documents
from shoal.errors import DocumentError
from tests.support import flights
from tests.support.verdicts import UNSHAPED, failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Manifest = dict[str, Any]
    Change = Callable[[Manifest], object]

pytestmark = pytest.mark.oracle

BOTH = ["mean", "variance"]
THREE = ["share_above(400)", "mean", "variance"]
PLANS: dict[str, dict[str, Any]] = {
    "variance": {"statistics": ["variance"]},
    "share": {"statistics": ["share_above(400)", "share_above(-2.5e-07)"]},
    "joint": {"statistics": BOTH},
    "joint of three": {"statistics": THREE, "method": "equalised", "epsilon": 5},
    "uniform": {"statistics": THREE, "method": "uniform"},
    "gaussian mean": {"statistics": ["mean"], "epsilon": 2, "delta": "1e-6"},
    "gaussian variance": {
        "statistics": ["variance", "mean"], "epsilon": 2, "delta": "1e-6", "method": "uniform"
    },
    "gaussian joint": {"statistics": BOTH, "epsilon": 2, "delta": "1e-3"},
    "gaussian three": {
        "statistics": THREE, "epsilon": 2, "delta": "1e-3", "method": "equalised"
    },
    "clip user": {"statistics": ["mean"], "method": "clip_user", "epsilon": 0.5},
    "clip user, spared": {
        "statistics": THREE, "method": "clip_user", "settings": {"spare": "best"}
    },
    "clip user, balanced": {
        "statistics": BOTH, "method": "clip_user", "settings": {"noise": "balanced"}
    },
    "optimal": {"statistics": ["mean"], "method": "optimal", "weights": {"EWR": 2.0}},
    "optimal in a range": {
        "statistics": ["mean"], "method": "optimal", "settings": {"range": "selected"}
    },
    "optimal variance": {"statistics": ["variance"], "method": "optimal", "epsilon": 3},
    "optimal, direct": {"statistics": BOTH, "method": "optimal"},
    "optimal, joint": {"statistics": BOTH, "method": "optimal", "epsilon": 10},
    "optimal of three": {
        "statistics": THREE, "method": "optimal", "settings": {"targets": "balanced"}
    },
}  # fmt: skip
JOINT = ("joint", "joint of three", "gaussian joint", "optimal, joint")
OPTIMAL = tuple(plan for plan in PLANS if plan.startswith("optimal"))
CLIPPED = ("clip user", "clip user, spared")


def records(plan: str) -> shoal.Records:
    """Four cells; for Gaussian noise, which errs less if users are in many cells, 36."""
    if not plan.startswith("gaussian"):
        return flights.records()
    table = flights.table()
    table = table.append_column("hour", [[at % 9 for at in range(len(table))]])
    return flights.records(table, cell=["place", "hour"])


def make(plan: str, **wanted: Any) -> tuple[shoal.Plan, shoal.Records]:  # noqa: ANN401
    """A plan of the table, with what it is for."""
    source = records(plan)
    wanted = {
        "bounds": flights.BOUNDS,
        "epsilon": 1,
        "uninformative": "keep",
        **PLANS[plan],
        **wanted,
    }
    return shoal.plan(
        source.occupancy(), source=source.describe(), **{"method": "balanced", **wanted}
    ), source


def simulated(plan: str, **wanted: Any) -> Manifest:  # noqa: ANN401
    """A manifest of simulated noise."""
    made, source = make(plan, **wanted)
    return made.release(source, noise=shoal.Simulated(5)).manifest


@pytest.fixture(scope="module")
def manifests() -> dict[str, Manifest]:
    """One of every plan, as if the noise had been real."""
    return {plan: {**simulated(plan), "simulation": False} for plan in PLANS}


def failures_after(manifest: Manifest, change: Change) -> list[str]:
    """What a lie leads to, with a request key of its own as a careful liar would make it."""
    changed = copy.deepcopy(manifest)
    change(changed)
    rekey(changed)
    return failed_claims(changed)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("epsilon", ["0.3", "1", "30"])
def test_simulations_differ_from_true_manifests_in_one_word(plan: str, epsilon: str) -> None:
    """G-VERIFY: every statistic, noise and way of bounding; only the simulation is wrong."""
    manifest = simulated(plan, epsilon=epsilon)
    assert failures_after(manifest, lambda _: None) == ["noise of the operating system"]
    assert failures_after(manifest, lambda m: m.update(simulation=False)) == []


def test_the_table_has_every_way(manifests: dict[str, Manifest]) -> None:
    """Joint and direct, with both noises; people who are suppressed, capped, and cut in part."""
    ways = {plan: manifest["plan"]["numbers"] for plan, manifest in manifests.items()}
    assert {plan for plan, numbers in ways.items() if numbers["joint"]} >= {*JOINT}
    gaussian = {plan for plan, each in ways.items() if each["noise"] == "discrete gaussian"}
    assert gaussian == {plan for plan in PLANS if plan.startswith("gaussian")}
    assert not ways["optimal, direct"]["joint"]
    for plan in CLIPPED:
        assert 0 < _parameter(manifests[plan], "kept").mean() < 1
    for plan in ("optimal", "optimal variance", "optimal, joint"):
        part = _parameter(manifests[plan], "part")
        assert ((part > 0) & (part < 2**16)).any()


@pytest.mark.parametrize("plan", ["joint of three", "gaussian joint", "optimal"])
def test_true_manifests_hold(tmp_path: Path, plan: str) -> None:
    """G-VERIFY: real noise, a ledger, and the file alone."""
    ledger = shoal.Ledger.create(tmp_path / "book.ledger", epsilon="10", delta="0.01")
    made, source = make(plan)
    made.release(source, ledger=ledger).write_manifest(tmp_path / "manifest.json")
    verdict = shoal.verify(tmp_path / "manifest.json")
    assert verdict.holds, str(verdict)


@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform", "optimal"])
@pytest.mark.parametrize("statistic", ["mean", "variance", "share_above(400)"])
def test_an_error_can_be_asked_for(method: str, statistic: str) -> None:
    """G-VERIFY: one statistic, and an error in its unit."""
    error = {"mean": 140, "variance": 49000, "share_above(400)": 0.2}[statistic]
    made = flights.plan(method=method, statistics=[statistic], epsilon=None, error=error)
    manifest = made.release(flights.records(), noise=shoal.Simulated(5)).manifest
    assert failures_after(manifest, lambda m: m.update(simulation=False)) == []
    smaller = failures_after(manifest, lambda m: m["plan"]["request"].update(error=error * 0.99))
    assert "within what was asked for" in smaller


def _claims(name: str, factor: float, row: int) -> Change:
    """A claim of all cells changed, of the first or the last statistic."""

    def change(manifest: Manifest) -> None:
        claims, size = manifest["plan"]["claims"][name], len(manifest["plan"]["numbers"]["cell"])
        at = row % (len(claims) // size)
        claims[at * size : (at + 1) * size] = [
            factor * x for x in claims[at * size : (at + 1) * size]
        ]

    return change


def _less_noise(row: int) -> Change:
    def change(manifest: Manifest) -> None:
        numbers, size = manifest["plan"]["numbers"], len(manifest["plan"]["numbers"]["cell"])
        scale = numbers["relative_scale"]
        at = row % (len(scale) // size)
        scale[at * size : (at + 1) * size] = [0.9 * b for b in scale[at * size : (at + 1) * size]]

    return change


def _loss(factor: float) -> Change:
    def change(manifest: Manifest) -> None:
        epsilon = factor * manifest["guarantee"]["epsilon_at_most"]
        up, down = epsilon.as_integer_ratio()
        manifest["guarantee"].update(epsilon=f"{up}/{down}", epsilon_at_most=epsilon)
        manifest["plan"]["claims"].update(epsilon=f"{up}/{down}")
        manifest["plan"]["request"].update(epsilon="1000")

    return change


def _result(place: int, name: str, change: Callable[[Any], object]) -> Change:
    def changed(manifest: Manifest) -> None:
        result = manifest["results"][place]
        result[name] = change(result[name])

    return changed


def _swapped(manifest: Manifest) -> None:
    results = manifest["results"]
    results[0], results[-1] = results[-1], results[0]


LIES: dict[str, tuple[Change, str]] = {
    "less loss": (_loss(0.999), "privacy loss"),
    "more loss than there is": (_loss(1.001), "privacy loss"),
    "less noise in the first": (_less_noise(0), "privacy loss"),
    "less noise in the last": (_less_noise(-1), "privacy loss"),
    "smaller bias of the first": (_claims("bias_bound", 0.999, 0), "bias bounds"),
    "smaller bias of the last": (_claims("bias_bound", 0.999, -1), "bias bounds"),
    "larger bias of the last": (_claims("bias_bound", 1.001, -1), "bias bounds"),
    "smaller errors of the first": (_claims("worst_case_error", 0.999, 0), "worst-case errors"),
    "smaller errors of the last": (_claims("worst_case_error", 0.999, -1), "worst-case errors"),
    "fewer errors": (
        lambda m: m["plan"]["claims"]["worst_case_error"].pop(), "worst-case errors"
    ),
    "another value of the first": (_result(0, "value", lambda x: x + 0.001), "results"),
    "another value of the last": (_result(-1, "value", lambda x: x + 0.001), "results"),
    "another unclamped of the last": (_result(-1, "unclamped", lambda x: x + 0.001), "results"),
    "another number of the first": (_result(0, "steps", lambda x: x + 2**16), "results"),
    "another number of the last": (_result(-1, "steps", lambda x: x + 2**16), "results"),
    "another interval of the last": (
        _result(-1, "interval", lambda ends: [ends[0] + 0.01, ends[1]]), "results"
    ),
    "another statistic": (_result(-1, "statistic", lambda _: "median"), "results"),
    "results in another order": (_swapped, "results"),
    "a range": (_result(-1, "range", lambda _: [0, 1024]), "selected ranges"),
    "other statistics than asked for": (
        lambda m: m["plan"]["request"].update(statistics=["share_above(7)"]), "statistics and noise"
    ),
    "an unknown noise": (
        lambda m: m["plan"]["numbers"].update(noise="uniform"), "statistics and noise"
    ),
    "delta in the guarantee": (
        lambda m: m["guarantee"].update(delta="1/999"), "guarantee in words"
    ),
    "delta in the claims": (
        lambda m: m["plan"]["claims"].update(delta="1/999"), "guarantee in words"
    ),
    "another kind of privacy": (
        lambda m: m["guarantee"].update(privacy="differential privacy"), "guarantee in words"
    ),
    "no room": (lambda m: m["plan"]["numbers"].update(lattice_bits=60), "capacity of the lattice"),
    "a method for means": (
        lambda m: m["plan"]["request"].update(method="levy"), "mechanism"
    ),
    "an unknown setting": (
        lambda m: m["plan"]["request"].update(settings={"spare": "worst"}), "mechanism"
    ),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(manifests: dict[str, Manifest], plan: str, lie: str) -> None:
    """G-VERIFY: whatever is released, the check that fails is the one about the lie."""
    change, claim = LIES[lie]
    found = failures_after(manifests[plan], change)
    if lie == "a method for means":
        assert found[0] in {"mechanism", "within what was asked for"}
    elif lie == "another value of the last" and PLANS[plan]["statistics"][-1] == "variance":
        # A thousandth of a squared unit, of 122,500: still a lie.
        assert claim in found
    elif lie == "no room" and "privacy loss" in found:
        # Rounding to a finer lattice costs less.
        assert found
    else:
        assert claim in found


STATISTICS: dict[str, Any] = {
    "none": [],
    "unknown": ["median"],
    "twice": ["mean", "mean"],
    "no list": "mean",
    "no text": [1],
    "another spelling": ["share_above(400.0)"],
    "no threshold": ["share_above()"],
    "an infinite threshold": ["share_above(1e999)"],
    "too many": [f"share_above({at})" for at in range(9)],
}
# The schema itself knows lists of one to eight different texts.
BY_SCHEMA = {"none", "twice", "no list", "no text", "too many"}


@pytest.mark.parametrize("names", STATISTICS)
def test_impossible_statistics_are_found(manifests: dict[str, Manifest], names: str) -> None:
    """G-VERIFY: only statistics that exist, each once, as shoal writes them."""

    def change(manifest: Manifest) -> None:
        manifest["plan"]["request"].update(statistics=STATISTICS[names])
        manifest["plan"]["numbers"].update(statistics=STATISTICS[names])

    claim = "not of its schema" if names in BY_SCHEMA else "statistics and noise"
    assert claim in failures_after(manifests["share"], change)


@pytest.mark.parametrize("plan", ["user_clipped", "levy", "worst_case_optimal"])
def test_methods_for_means_release_means_only(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: no variance, joint release or Gaussian noise by a mean mechanism."""
    lie = failures_after(
        manifests["joint"], lambda m: m["plan"]["request"].update(method=plan, settings={})
    )
    assert lie == ["within what was asked for"]
    lie = failures_after(
        manifests["gaussian mean"], lambda m: m["plan"]["request"].update(method=plan)
    )
    assert lie == ["mechanism" if plan == "user_clipped" else "within what was asked for"]


@pytest.mark.parametrize("plan", PLANS)
def test_joint_or_direct_is_no_matter_of_taste(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: the same numbers with the other release have other losses, values and errors."""
    joint = manifests[plan]["plan"]["numbers"]["joint"]
    found = failures_after(manifests[plan], lambda m: m["plan"]["numbers"].update(joint=not joint))
    if {*BOTH} <= {*PLANS[plan]["statistics"]}:
        assert {"privacy loss", "worst-case errors", "results"} <= {*found}
    else:
        assert found == ["statistics and noise"]


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan.startswith("gaussian")])
def test_gaussian_noise_needs_its_delta(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: a smaller delta, or none, is not what this noise gives; nor is a larger one."""
    manifest = manifests[plan]

    def with_delta(delta: str) -> list[str]:
        def change(lie: Manifest) -> None:
            lie["plan"]["request"].update(delta=delta)
            lie["plan"]["claims"].update(delta=delta)
            lie["guarantee"].update(delta=delta)

        return failures_after(manifest, change)

    assert with_delta(manifest["guarantee"]["delta"]) == []
    assert "privacy loss" in with_delta("1/10000000000")
    assert "privacy loss" in with_delta("1/300")
    assert with_delta("0") == ["statistics and noise"]
    assert with_delta("1/2") == ["within what was asked for"]
    assert with_delta("-1/2")
    assert with_delta("1e-999999999")
    laplace = failures_after(
        manifest, lambda m: m["plan"]["numbers"].update(noise="discrete laplace")
    )
    assert {"privacy loss", "guarantee in words", "worst-case errors", "lower bounds"} <= {*laplace}
    bounds = failures_after(manifest, lambda m: m["plan"]["claims"].update(lower_bound=[0.0]))
    assert bounds == ["lower bounds"]


@pytest.mark.parametrize("plan", [plan for plan in PLANS if not plan.startswith("gaussian")])
def test_lower_bounds_are_the_truth(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: neither higher, nor empty, nor missing with Laplace noise."""
    for change in (
        _claims("lower_bound", 1.01, 0),
        _claims("lower_bound", 0.99, -1),
    ):
        assert failures_after(manifests[plan], change) == ["lower bounds"]
    assert "lower bounds" in failures_after(
        manifests[plan], lambda m: m["plan"]["claims"].update(lower_bound=None)
    )


@pytest.mark.parametrize("plan", JOINT)
def test_a_variance_follows_from_both_moments(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: another noisy mean, consistent in itself, has another variance."""

    def change(manifest: Manifest) -> None:
        numbers = manifest["plan"]["numbers"]
        size, first = len(numbers["cell"]), numbers["statistics"].index("mean")
        result = manifest["results"][first * size]
        step = numbers["relative_scale"][first * size] * 700 / 2 ** numbers["lattice_bits"]
        result["steps"] += 2**10
        for name in ("unclamped", "value"):
            result[name] += 2**10 * step
        result["interval"] = [end + 2**10 * step for end in result["interval"]]

    assert failures_after(manifests[plan], change) == ["results"]


def _parameter(manifest: Manifest, name: str) -> np.ndarray:
    packed = manifest["plan"]["mechanism"]["parameters"][name]
    return documents.unpack_integers(packed, name)


def _changed(name: str, change: Callable[[np.ndarray], object]) -> Change:
    def changed(manifest: Manifest) -> None:
        values = _parameter(manifest, name)
        found = change(values)
        values = found if isinstance(found, np.ndarray) else values
        told = manifest["plan"]["mechanism"]["parameters"]
        told[name] = documents.pack_integers(values)

    return changed


def _moved(name: str, at: int, off: int | None) -> Change:
    """One number moved, or turned from 0 to 1 or back."""

    def change(values: np.ndarray) -> None:
        values[at] = 1 - values[at] if off is None else values[at] + off

    return _changed(name, change)


@pytest.mark.parametrize("plan", CLIPPED)
def test_suppression_is_checked(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: who is kept, and the caps, make losses and biases; no cell is empty."""
    manifest = manifests[plan]
    members = len(_parameter(manifest, "kept"))
    for at in range(0, members, 7):
        assert "bias bounds" in failures_after(manifest, _moved("kept", at, None))
    for lie in (
        _changed("kept", lambda kept: kept.__setitem__(3, 2)),
        _changed("kept", lambda kept: kept.fill(0)),
        _changed("kept", lambda kept: kept.fill(2**40)),
    ):
        assert failures_after(manifest, lie) == ["mechanism"]
    for at in range(4):
        for off in (-1, 1, 40):

            def change(lie: Manifest, at: int = at, off: int = off) -> None:
                lie["plan"]["mechanism"]["parameters"]["cap"][at] += off

            try:
                assert failures_after(manifest, change)
            except DocumentError:
                assert off == 40


@pytest.mark.parametrize("plan", OPTIMAL)
def test_parts_are_checked(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: what every user reaches makes losses and biases; none more than its share."""
    manifest = manifests[plan]
    part = _parameter(manifest, "part")
    # Where a range is selected the bound before it is the width, and intervals say more.
    where = "results" if plan.endswith("range") else "bias bounds"
    for at in range(0, len(part), 7):
        for off in (-40, 40):
            if 0 <= part[at] + off <= 2**16:
                assert where in failures_after(manifest, _moved("part", at, off))
    above = _changed("part", lambda p: p.__setitem__(0, 2**16 + 1))
    assert failures_after(manifest, above) == ["mechanism"]
    full = _changed("part", lambda p: p.fill(2**16))
    assert {"privacy loss", where} <= {*failures_after(manifest, full)}


@pytest.mark.parametrize("plan", ["clip user", "optimal"])
def test_parameters_of_members_are_packed_and_complete(
    manifests: dict[str, Manifest], plan: str
) -> None:
    """G-VERIFY: none is missing, added, too short or a plain list."""
    manifest = manifests[plan]
    name = "kept" if plan == "clip user" else "part"
    for damage in (
        _changed(name, lambda values: values[:-1]),
        _changed(name, lambda values: np.append(values, 1)),
        lambda m: m["plan"]["mechanism"]["parameters"].update({name: [1, 2, 3]}),
    ):
        assert failures_after(manifest, damage)
    for lie in (
        lambda m: m["plan"]["mechanism"]["parameters"].pop(name),
        lambda m: m["plan"]["mechanism"]["parameters"].update(other=[1]),
    ):
        assert failures_after(manifest, lie) == ["mechanism"]


def _gap(factor: float, less: float = 0.0) -> Change:
    def change(manifest: Manifest) -> None:
        manifest["plan"]["claims"]["gap"] = manifest["plan"]["claims"]["gap"] * factor - less

    return change


@pytest.mark.parametrize("plan", OPTIMAL)
def test_optimal_plans_prove_their_gap(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: a smaller gap does not follow from the dual variables; a larger one says less."""
    manifest = manifests[plan]
    claim = ["gap to the best plan"]
    assert manifest["plan"]["claims"]["gap"] > 1e-6
    assert failures_after(manifest, _gap(1 - 1e-5)) == claim
    assert failures_after(manifest, _gap(0)) == claim
    assert failures_after(manifest, _gap(0, 1)) == [UNSHAPED]
    assert failures_after(manifest, _gap(1.1)) == []
    assert claim == failures_after(manifest, lambda m: m["plan"]["claims"].update(gap=None))
    assert claim == failures_after(manifest, lambda m: m["plan"].update(duals=None))

    def dual(change: Callable[[float], float]) -> list[str]:
        def changed(lie: Manifest) -> None:
            lie["plan"]["duals"]["dual"] = [change(x) for x in lie["plan"]["duals"]["dual"]]

        return failures_after(manifest, changed)

    assert dual(lambda x: 8 * x) == []
    assert dual(lambda x: x**3) == claim
    for nothing in (0.0, -1.0):
        assert dual(lambda x, by=nothing: by * x)  # type: ignore[misc]


@pytest.mark.parametrize("plan", OPTIMAL)
def test_targets_are_those_of_the_setting(manifests: dict[str, Manifest], plan: str) -> None:
    """G-VERIFY: equal ones are in proportion to one over the weight; balanced ones compare."""
    manifest = manifests[plan]
    equal = PLANS[plan].get("settings", {}).get("targets") != "balanced"

    def other(change: Callable[[list[float]], Any]) -> list[str]:
        return failures_after(
            manifest, lambda m: m["plan"].update(targets=change(m["plan"]["targets"]))
        )

    assert ("targets" in other(lambda targets: [3 * x for x in targets])) == equal
    assert ("targets" in other(lambda targets: [1.01 * targets[0], *targets[1:]])) == equal
    wrong: list[Callable[[list[float]], Any]] = [
        lambda targets: [*targets[:-1], 5 * targets[-1]] if equal else [],
        lambda targets: targets[:-1],
        lambda targets: [0.0, *targets[1:]],
        lambda targets: [-1.0, *targets[1:]],
        lambda _: None,
        lambda _: "equal",
    ]
    for change in wrong:
        try:
            assert other(change)
        except DocumentError:
            assert change is not wrong[0] or not equal


def test_other_plans_have_no_targets(manifests: dict[str, Manifest]) -> None:
    """G-VERIFY: targets mean nothing elsewhere."""
    lie = failures_after(manifests["joint"], lambda m: m["plan"].update(targets=[1.0] * 4))
    assert lie == ["targets"]
