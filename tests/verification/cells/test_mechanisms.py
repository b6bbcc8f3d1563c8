"""The second opinion on every mean mechanism: it agrees with the planner, and finds every lie."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.verification.cells.facts import Facts
from shoal.verification.cells.vectors import candidates_hold
from tests.support import flights
from tests.support.verdicts import DAMAGED, UNSHAPED, failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]

pytestmark = pytest.mark.property

PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: (name, {})
        for name in (
            *(
                "user_clipped",
                "adaptive",
                "array_averaging",
                "opt_array_averaging",
                "worst_case_optimal",
            ),
            *("levy", "quantile", "akmv", "baseline"),
        )
    },
    "wrapped arrays": ("array_averaging", {"cap": 9, "grouping": "wrap_around"}),
    "surrogate arrays": ("opt_array_averaging", {"cap": "surrogate"}),
    "wrapped levy": ("levy", {"cap": "median", "grouping": "wrap_around", "gamma": 0.1}),
    "minimax levy": ("levy", {"cap": "minimax"}),
    "wrapped quantile": ("quantile", {"cap": 8, "grouping": "wrap_around"}),
    "optimised quantile": ("quantile", {"quantiles": "optimised", "cap": 10**9}),
}
# Parameters that may be any count of the cell: another one has another loss or bias.
FREE = {
    *(
        ("cap", plan)
        for plan in ("adaptive", "user_clipped", "opt_array_averaging", "minimax levy")
    ),
    *(("threshold", plan) for plan in ("worst_case_optimal",)),
}
SELECTING = ("adaptive", "levy", "wrapped levy", "quantile", "akmv")


def simulated(plan: str, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401
    """A manifest of simulated noise."""
    method, settings = PLANS[plan]
    made = flights.plan(method=method, settings=settings, **{"uninformative": "keep", **wanted})
    return made.release(flights.records(), noise=shoal.Simulated(5)).manifest


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, Any]]:
    """One of every plan, as if the noise had been real; with narrow ranges and little noise."""
    return {plan: {**simulated(plan, epsilon=10), "simulation": False} for plan in PLANS}


def failures(manifest: dict[str, Any]) -> list[str]:
    """The claims that do not hold."""
    return failed_claims(manifest)


def _mechanism(**parts: object) -> Change:
    return lambda manifest: manifest["plan"]["mechanism"].update(parts)


def _request(**parts: object) -> Change:
    return lambda manifest: manifest["plan"]["request"].update(parts)


def failures_after(manifest: dict[str, Any], change: Change) -> list[str]:
    """What a lie with a request key of its own leads to."""
    changed = copy.deepcopy(manifest)
    change(changed)
    rekey(changed)
    return failures(changed)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("epsilon", ["0.05", "1", "30"])
def test_simulations_differ_from_true_manifests_in_one_word(plan: str, epsilon: str) -> None:
    """G-VERIFY: every mechanism, setting and size of epsilon; only the simulation is wrong."""
    manifest = simulated(plan, epsilon=epsilon)
    assert failures(manifest) == ["noise of the operating system"]
    manifest["simulation"] = False
    assert failures(manifest) == []


@pytest.mark.parametrize("plan", PLANS)
def test_true_manifests_hold(tmp_path: Path, plan: str) -> None:
    """G-VERIFY: real noise, a ledger, and the file alone."""
    method, settings = PLANS[plan]
    made = flights.plan(method=method, settings=settings, uninformative="keep")
    release = made.release(flights.records(), ledger=flights.ledger(tmp_path))
    release.write_manifest(tmp_path / "manifest.json")
    verdict = shoal.verify(tmp_path / "manifest.json")
    assert verdict.holds, str(verdict)


def test_users_of_one_cell_are_widened() -> None:
    """G-VERIFY: the wider ranges of lighter users, where everybody is in one cell."""
    source = flights.table().append_column("all", [["here"] * 2000])
    records = flights.records(source, cell="all")
    plan = shoal.plan(records.occupancy(), bounds=flights.BOUNDS, epsilon=2, method="adaptive")
    manifest = plan.release(records, noise=shoal.Simulated(1)).manifest
    told = manifest["plan"]["mechanism"]["parameters"]
    assert told["widened"] == [1]
    assert failures(manifest) == ["noise of the operating system"]
    told["widened"] = [0]
    rekey(manifest)
    assert {"mechanism", "noise of the operating system"} <= set(failures(manifest))


@pytest.mark.parametrize("plan", PLANS)
def test_every_parameter_is_checked(manifests: dict[str, dict[str, Any]], plan: str) -> None:
    """G-VERIFY: no number of a mechanism can be changed so that the manifest still holds."""
    manifest = manifests[plan]
    told = manifest["plan"]["mechanism"]["parameters"]
    for name, at, off in (
        (name, at, off)
        for name, numbers in told.items()
        for at in range(len(numbers))
        for off in (-3, 3, 2**40, 2**60)
    ):

        def change(lie: dict[str, Any], name: str = name, at: int = at, off: int = off) -> None:
            lie["plan"]["mechanism"]["parameters"][name][at] += off

        if name == "reward" and at > 0 and abs(off) == 3:
            continue  # A reward is nobody's loss: it is checked to rise, and to be moderate.
        new = told[name][at] + off
        found, counts = failures_after(manifest, change), _counts(at)
        if new < 0 or off == 2**60:
            assert found == [UNSHAPED]
        elif name == "cap" and not 1 <= new <= max(counts):
            assert found == [DAMAGED]
        elif plan == "user_clipped":
            # How users are weighed is the planner's word, within limits. A smaller ball is a
            # smaller loss than is stated.
            assert found or (name == "cap" and abs(off) == 3) or (name, off) == ("ball", -3)
        elif new in counts and (name, plan) in FREE:
            assert {"privacy loss", "bias bounds"} & {*found}
        else:
            assert "mechanism" in found


@pytest.mark.parametrize("place", [128, 10**6, 2**39])
def test_a_centre_beyond_the_bounds_is_no_outcome(
    manifests: dict[str, dict[str, Any]], place: int
) -> None:
    """G-VERIFY: the centre is the middle of one of the bins, however well the radius fits."""

    def change(lie: dict[str, Any]) -> None:
        plan = lie["plan"]
        [bins], top = plan["mechanism"]["parameters"]["centres"], 1 << (plan["tick_bits"] + 10)
        for result in lie["results"]:
            low, high = result["range"]
            centre = (2 * place + 1) * top // (2 * bins)
            result["range"] = [centre, centre + high - low]

    assert "selected ranges" in failures_after(manifests["user_clipped"], change)


CANDIDATES: dict[str, dict[str, list[int]]] = {
    "nobody is clipped": {"clipped": [0]},
    "everybody is clipped": {"clipped": [2000]},
    "the shortest radius alone": {"radii": [24, 25]},
    "nothing is selected": {"centres": [1], "radii": [2, 3], "clipped": [0]},
    "few centres": {"centres": [8]},
    "half of the centres": {"centres": [512]},
}


@pytest.mark.parametrize("told", CANDIDATES)
def test_candidates_follow_from_counts(manifests: dict[str, dict[str, Any]], told: str) -> None:
    """G-VERIFY: intervals rest on who is clipped where; others would be as short as one likes."""

    def change(lie: dict[str, Any]) -> None:
        lie["plan"]["mechanism"]["parameters"].update(CANDIDATES[told])

    assert {"mechanism", DAMAGED} & {*failures_after(manifests["user_clipped"], change)}


def test_a_lattice_is_as_fine_as_sums_need(manifests: dict[str, dict[str, Any]]) -> None:
    """G-VERIFY: rounding vectors to few steps hides more than intervals say."""
    manifest = manifests["user_clipped"]
    facts, told = Facts.of(manifest), manifest["plan"]["mechanism"]["parameters"]
    told = {name: told[name] for name in ("centres", "radii", "clipped", "ball")}
    least = 8 + math.ceil(math.log2(max(map(len, facts.counts))))
    scales = [Fraction(each) for each in manifest["plan"]["mechanism"]["selection_scale"]]
    holds = [
        candidates_hold(told, replace(facts, bits=bits), scales) for bits in range(1, least + 3)
    ]
    assert holds == [bits >= least for bits in range(1, least + 3)]


def test_users_vectors_leave_no_cell_out_for_its_error(tmp_path: Path) -> None:
    """G-VERIFY: a published cell cannot be hidden afterwards as one that nobody needs."""
    release = flights.plan(method="user_clipped").release(
        flights.records(), ledger=flights.ledger(tmp_path)
    )
    manifest = copy.deepcopy(release.manifest)
    assert "public rules" not in failures(manifest)
    manifest["plan"]["status"][manifest["plan"]["numbers"]["cell"][0]] = "uninformative"
    rekey(manifest)
    assert "public rules" in failures(manifest)


def _counts(at: int) -> set[int]:
    """The counts of the users in a cell."""
    occupancy = flights.records().occupancy()
    return {*occupancy.count[occupancy.cell == at].tolist()}


@pytest.mark.parametrize("plan", PLANS)
def test_parameters_are_complete(manifests: dict[str, dict[str, Any]], plan: str) -> None:
    """G-VERIFY: none is missing, added, or too short."""
    told = manifests[plan]["plan"]["mechanism"]["parameters"]
    assert "mechanism" in failures_after(
        manifests[plan], lambda m: m["plan"]["mechanism"]["parameters"].update(other=[1])
    )
    for name in told:
        fewer = {other: numbers for other, numbers in told.items() if other != name}
        assert "mechanism" in failures_after(manifests[plan], _mechanism(parameters=fewer))
        for shorter in ([], told[name][:-1], [*told[name], 1]):
            changed = copy.deepcopy(manifests[plan])
            changed["plan"]["mechanism"]["parameters"][name] = shorter
            rekey(changed)
            assert {"mechanism", DAMAGED} & {*failures(changed)}


@pytest.mark.parametrize("plan", SELECTING)
def test_selections_are_charged(manifests: dict[str, dict[str, Any]], plan: str) -> None:
    """G-VERIFY: sharper selections cost more than is claimed."""

    def sharper(manifest: dict[str, Any]) -> None:
        stated = manifest["plan"]["mechanism"]
        stated["selection_scale"] = [b * 0.9 for b in stated["selection_scale"]]

    assert "privacy loss" in failures_after(manifests[plan], sharper)
    for wrong, why in (
        ([], DAMAGED),
        ([1.0] * 9, DAMAGED),
        ([2.0**-62] * len(manifests[plan]["plan"]["mechanism"]["selection_scale"]), DAMAGED),
        ([-1.0], UNSHAPED),
        ([0.0] * 4, UNSHAPED),
        (["x"], UNSHAPED),
    ):
        assert failures_after(manifests[plan], _mechanism(selection_scale=wrong)) == [why]


@pytest.mark.parametrize("grouping", ["best_fit", "wrap_around"])
@pytest.mark.parametrize("plan", ["levy", "wrapped levy", "wrapped quantile", "wrapped arrays"])
def test_a_user_in_two_arrays_pays_for_both(
    manifests: dict[str, dict[str, Any]], plan: str, grouping: str
) -> None:
    """G-VERIFY: another grouping has other weights, parameters and losses."""
    true = PLANS[plan][1].get("grouping", "best_fit") == grouping
    found = failures_after(
        manifests[plan], lambda m: m["plan"]["request"]["settings"].update(grouping=grouping)
    )
    assert ("privacy loss" in found) != true
    assert bool(found) != true


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("array_averaging", {"cap": "levy"}),
    ("array_averaging", {"cap": 3}),
    ("array_averaging", {"cap": True}),
    ("array_averaging", {"cap": 2.5}),
    ("array_averaging", {"cap": "largest"}),
    ("array_averaging", {"grouping": "random"}),
    ("array_averaging", {"gamma": 0.5}),
    ("opt_array_averaging", {"cap": 1}),
    ("levy", {"gamma": 0.3}),
    ("levy", {"gamma": 1}),
    ("levy", {"gamma": 2.0}),
    ("quantile", {"quantiles": "optimised"}),
    ("quantile", {"quantiles": "all"}),
    ("akmv", {"cap": 3}),
]


@pytest.mark.parametrize(("plan", "settings"), SETTINGS)
def test_settings_are_kept(
    manifests: dict[str, dict[str, Any]], plan: str, settings: dict[str, Any]
) -> None:
    """G-VERIFY: other settings, or ones that do not exist, are not what was carried out."""
    # A share is a number with a point, a cap one without.
    ill = {"cap": bool | float, "gamma": int}
    unshaped = any(isinstance(each, ill.get(name, list)) for name, each in settings.items())
    assert (UNSHAPED if unshaped else "mechanism") in failures_after(
        manifests[plan], lambda m: m["plan"]["request"]["settings"].update(settings)
    )


@pytest.mark.parametrize("plan", PLANS)
def test_another_method_is_found(manifests: dict[str, dict[str, Any]], plan: str) -> None:
    """G-VERIFY: a manifest holds for its own method only, and never for an unknown one."""
    method, _ = PLANS[plan]
    name = manifests[plan]["plan"]["mechanism"]["name"]
    for other in ("balanced", "unknown", "", None, *(each for each, _ in PLANS.values())):
        if other == method:
            continue
        claim = "mechanism" if other else UNSHAPED
        if (name, other) == ("baseline", "balanced"):
            # The same mechanism, with dual variables that prove how noise is shared.
            claim = "gap to the best plan"
        assert claim in failures_after(manifests[plan], _request(method=other))
    for wrong in ("median", None, 3, "levy", "quantile", "baseline", "adaptive"):
        if wrong != name:
            claim = "mechanism" if isinstance(wrong, str) else UNSHAPED
            assert claim in failures_after(manifests[plan], _mechanism(name=wrong))


def _range_of_all(ends: object) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        for result in manifest["results"]:
            result["range"] = ends

    return change


def _range_moved(by: int) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        low, high = manifest["results"][0]["range"]
        manifest["results"][0]["range"] = [low + abs(by), high + by]

    return change


@pytest.mark.parametrize("plan", SELECTING)
@pytest.mark.parametrize(
    "change",
    [
        _range_of_all(None),
        _range_of_all([3, 2**29 + 7]),
        _range_of_all([2**30, 2**31]),
        _range_moved(2),
        _range_moved(-2),
        _range_moved(1),
    ],
    ids=["none", "odd", "outside", "moved", "narrower", "shifted"],
)
def test_impossible_ranges_are_found(
    manifests: dict[str, dict[str, Any]], plan: str, change: Change
) -> None:
    """G-VERIFY: a range is an outcome of its selection, or the manifest does not hold."""
    assert "selected ranges" in failures_after(manifests[plan], change)


def test_the_adaptive_range_is_the_same_everywhere(manifests: dict[str, dict[str, Any]]) -> None:
    """G-VERIFY: one selection gives one range."""
    found = failures_after(
        manifests["adaptive"], lambda m: m["results"][0].update(range=[0, 2**30])
    )
    assert "selected ranges" in found


@pytest.mark.parametrize("plan", ["adaptive", "quantile", "akmv"])
def test_a_possible_but_other_range_is_found(
    manifests: dict[str, dict[str, Any]], plan: str
) -> None:
    """G-VERIFY: values and intervals follow from the range that is stated."""

    def change(manifest: dict[str, Any]) -> None:
        for result in manifest["results"]:
            low, high = result["range"]
            size = 2**18 if plan == "quantile" else high - low
            result["range"] = [low, high + size] if plan in {"quantile", "akmv"} else [0, 2**30]

    assert "results" in failures_after(manifests[plan], change)


def _more(name: str, factor: float) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        claims = manifest["plan"]["claims"]
        claims[name] = [factor * x for x in claims[name]]

    return change


def _less_loss(manifest: dict[str, Any]) -> None:
    manifest["guarantee"].update(epsilon="99/10", epsilon_at_most=9.9)
    manifest["plan"]["claims"].update(epsilon="99/10")


def _less_noise(manifest: dict[str, Any]) -> None:
    numbers = manifest["plan"]["numbers"]
    numbers["relative_scale"] = [0.98 * b for b in numbers["relative_scale"]]


def _fine_lattice(manifest: dict[str, Any]) -> None:
    numbers = manifest["plan"]["numbers"]
    numbers["lattice_bits"] = 62 + math.floor(math.log2(min(numbers["relative_scale"])))


def _result(name: str, change: Callable[[Any], object]) -> Change:
    def changed(manifest: dict[str, Any]) -> None:
        result = manifest["results"][1]
        result[name] = change(result[name])

    return changed


LIES: dict[str, tuple[Change, str]] = {
    "less loss": (_less_loss, "privacy loss"),
    "less noise": (_less_noise, "privacy loss"),
    "smaller bias": (_more("bias_bound", 0.999), "bias bounds"),
    "smaller errors": (_more("worst_case_error", 0.999), "worst-case errors"),
    "higher lower bounds": (_more("lower_bound", 1.01), "lower bounds"),
    "another value": (_result("value", lambda x: x + 0.001), "results"),
    "another unclamped": (_result("unclamped", lambda x: x + 0.001), "results"),
    "another number": (_result("steps", lambda x: x + 2**20), "results"),
    "a narrow interval": (_result("interval", lambda ends: [ends[0] + 0.1, ends[1]]), "results"),
    "more confidence": (lambda m: m.update(confidence=0.99), UNSHAPED),
    "a gap": (lambda m: m["plan"]["claims"].update(gap=0.0), "gap to the best plan"),
    "a weight": (
        lambda m: m["plan"]["numbers"]["weight"].__setitem__(0, 7.0), "gap to the best plan"
    ),
    "an error asked for": (
        lambda m: m["plan"]["request"].update(epsilon=None, error=1e9), "within what was asked for"
    ),
    "no room": (_fine_lattice, "capacity of the lattice"),
    "more in the mechanism": (lambda m: m["plan"]["mechanism"].update(note=1), UNSHAPED),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(manifests: dict[str, dict[str, Any]], plan: str, lie: str) -> None:
    """G-VERIFY: whatever the mechanism, the check that fails is the one about the lie."""
    change, claim = LIES[lie]
    if (plan, lie) == ("user_clipped", "less noise"):
        # Its loss is the ball's diameter in steps, whatever a step stands for.
        claim = "noise scales"
    assert claim in failures_after(manifests[plan], change)
