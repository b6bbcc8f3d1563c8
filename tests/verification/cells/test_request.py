"""The second opinion on what was asked for: every request that no plan is made for is found."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.errors import InputError
from tests.support import flights
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Manifest = dict[str, Any]
    Change = Callable[[Manifest], object]

pytestmark = pytest.mark.unit

ASKED = "within what was asked for"


def simulated(**wanted: Any) -> Manifest:  # noqa: ANN401
    """A manifest as if its noise had been real."""
    source = flights.records()
    wanted = {"bounds": flights.BOUNDS, "epsilon": 1, "uninformative": "keep", **wanted}
    plan = shoal.plan(
        source.occupancy(), source=source.describe(), **{"method": "balanced", **wanted}
    )
    return {**plan.release(source, noise=shoal.Simulated(5)).manifest, "simulation": False}


def after(manifest: Manifest, change: Change) -> list[str]:
    """What fails after a change by somebody who signs the request anew."""
    changed = copy.deepcopy(manifest)
    change(changed)
    rekey(changed)
    return failed_claims(changed)


@pytest.fixture(scope="module")
def manifests() -> dict[str, Manifest]:
    """Plans that hold, by what they are made with."""
    found = {
        "balanced": simulated(),
        "adaptive": simulated(method="adaptive"),
        "clip_user": simulated(method="clip_user"),
        "selected": simulated(method="optimal", settings={"range": "selected"}),
        "error": simulated(epsilon=None, error=140.0),
    }
    for manifest in found.values():
        assert after(manifest, lambda _: None) == []
    return found


def wishing(**wanted: object) -> Change:
    """Other parts of a request; statistics are those of the numbers, too."""

    def change(manifest: Manifest) -> None:
        manifest["plan"]["request"].update(wanted)
        if "statistics" in wanted:
            manifest["plan"]["numbers"].update(statistics=wanted["statistics"])

    return change


SHARE = ["share_above(400)"]
SELECTED = {"method": "optimal", "settings": {"range": "selected"}}
# What a plan is made with, and the parts of a request that are refused with it.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a share in a selected range": ("selected", {**SELECTED, "statistics": SHARE}),
    "a share by a mechanism for means": (
        "adaptive", {"method": "adaptive", "statistics": SHARE}
    ),
    "an error by a mechanism for means": (
        "adaptive", {"method": "adaptive", "epsilon": None, "error": 100.0}
    ),
    "an error by suppression": (
        "clip_user", {"method": "clip_user", "epsilon": None, "error": 100.0}
    ),
    "an error in a selected range": ("selected", {**SELECTED, "epsilon": None, "error": 100.0}),
    "an error with a delta": ("error", {"epsilon": None, "error": 140.0, "delta": "1/1000000"}),
    "an error of half the range": ("error", {"epsilon": None, "error": 350.0}),
    "both limits": ("error", {"epsilon": "1", "error": 140.0}),
    "neither limit": ("error", {"epsilon": None, "error": None}),
    "a huge epsilon": ("balanced", {"epsilon": "1000001"}),
    "a large delta": ("balanced", {"delta": "1"}),
    "a delta above a hundredth": ("balanced", {"delta": "11/1000"}),
    "a delta of nothing": ("balanced", {"delta": f"1/1{'0' * 101}"}),
    "a delta by suppression": ("clip_user", {"method": "clip_user", "delta": "1/1000000"}),
    "a delta by a linear program": ("selected", {**SELECTED, "delta": "1/1000000"}),
    "weights of an equalised plan": (
        "balanced", {"method": "equalised", "weights": {"EWR": 2.0}}
    ),
    "weights of a uniform plan": ("balanced", {"method": "uniform", "weights": {"EWR": 2.0}}),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_planner_refuses_never_verifies(manifests: dict[str, Manifest], case: str) -> None:
    """G-VERIFY: parts of a request that do not go together are found."""
    kind, wanted = REFUSED[case]
    assert ASKED in after(manifests[kind], wishing(**wanted))
    source = flights.records()
    with pytest.raises(InputError):
        shoal.plan(
            source.occupancy(),
            **{"method": "balanced", "bounds": flights.BOUNDS, "epsilon": 1, **wanted},
        )


def test_rounding_of_a_variance_needs_tick_bits() -> None:
    """G-VERIFY: a variance of weighed users with few tick bits is none that a plan has."""
    manifest = simulated(method="clip_user", statistics=["variance"])
    assert after(manifest, lambda _: None) == []
    assert ASKED in after(manifest, lambda m: m["plan"].update(tick_bits=19))


@pytest.mark.parametrize(
    "wanted",
    [
        {"epsilon": "0.01"},
        {"epsilon": "0.01", "statistics": ["share_above(400)", "variance"]},
        {"epsilon": "0.01", "method": "adaptive"},
        {"epsilon": "0.01", "method": "akmv"},
        {"epsilon": "0.01", **SELECTED},
    ],
)
@pytest.mark.parametrize("rule", ["drop", "refuse"])
def test_uninformative_cells_are_released_only_if_kept(wanted: dict[str, Any], rule: str) -> None:
    """G-VERIFY: a rule about uninformative cells is the one that was followed."""
    manifest = simulated(**wanted)
    assert after(manifest, lambda _: None) == []
    assert after(manifest, wishing(uninformative=rule)) == ["public rules"]


@pytest.mark.parametrize("rule", ["drop", "refuse"])
@pytest.mark.parametrize("wanted", [{}, {"method": "adaptive"}, {"method": "akmv"}, SELECTED])
def test_useful_cells_hold_under_any_rule(wanted: dict[str, Any], rule: str) -> None:
    """G-VERIFY: where no cell is uninformative, every rule about them holds."""
    assert after(simulated(epsilon=300, uninformative=rule, **wanted), lambda _: None) == []


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31m", "\u202e", "x" * 201])
def test_columns_have_printable_names(manifests: dict[str, Manifest], name: str) -> None:
    """G-VERIFY: a name that would change what a reader sees is in no manifest and no records."""

    def change(manifest: Manifest) -> None:
        manifest["records"]["value"] = name
        manifest["plan"]["source"] = None

    assert after(manifests["balanced"], lambda m: m["plan"].update(source=None)) == []
    assert after(manifests["balanced"], change) != []
    with pytest.raises(InputError, match="no column"):
        flights.records(value=name)
    with pytest.raises(InputError, match="no column"):
        flights.records(user=name)
