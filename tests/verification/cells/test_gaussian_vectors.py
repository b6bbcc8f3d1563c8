"""The second opinion on users' vectors with Gaussian noise: it agrees, and finds every lie."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from tests.support.gaussian_vectors import always_gaussian
from tests.support.verdicts import DAMAGED, UNSHAPED, failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]

pytestmark = pytest.mark.property


@pytest.fixture(scope="module")
def records() -> shoal.Records:
    """120 users, each in 20 cells."""
    rng = np.random.default_rng(5)
    user, cell = np.repeat(np.arange(120), 20), np.tile(np.arange(20), 120)
    value = np.clip(rng.normal(40, 8, len(user)), 0, 100)
    columns = {"who": user, "at": cell, "value": value}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    return shoal.Records(table, user="who", value="value", bounds=(0, 100), cell="at")


@pytest.fixture(scope="module")
def manifest(records: shoal.Records) -> dict[str, Any]:
    """As if its noise had been real."""
    with always_gaussian():
        plan = shoal.plan(records.occupancy(), bounds=(0, 100), epsilon=4, delta="1e-8")
    assert (plan.method, plan.gaussian) == ("user_clipped", True)
    made = plan.release(records, noise=shoal.Simulated(5)).manifest
    return {**made, "simulation": False}


def failures_after(manifest: dict[str, Any], change: Change) -> list[str]:
    """What a lie with a request key of its own leads to."""
    changed = copy.deepcopy(manifest)
    change(changed)
    rekey(changed)
    return failed_claims(changed)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1, 8, 40])
def test_true_manifests_hold(records: shoal.Records, tmp_path: Path, epsilon: object) -> None:
    """G-VERIFY: with and without private selections; real noise and a ledger."""
    with always_gaussian():
        plan = shoal.plan(
            records.occupancy(),
            bounds=(0, 100),
            epsilon=epsilon,  # type: ignore[arg-type]
            delta="1e-8",
            method="user_clipped",
        )
    assert plan.gaussian
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=50, delta="1e-6", unit="who")
    plan.release(records, ledger=ledger).write_manifest(tmp_path / "manifest.json")
    verdict = shoal.verify(tmp_path / "manifest.json")
    assert verdict.holds, str(verdict)


def _told(name: str, factor: float) -> Change:
    def change(lie: dict[str, Any]) -> None:
        told = lie["plan"]["mechanism"]["parameters"]
        told[name] = [max(1, round(each * factor)) for each in told[name]]

    return change


def _scaled(factor: float) -> Change:
    def change(lie: dict[str, Any]) -> None:
        numbers = lie["plan"]["numbers"]
        numbers["relative_scale"] = [each * factor for each in numbers["relative_scale"]]

    return change


def _stated(**parts: str) -> Change:
    def change(lie: dict[str, Any]) -> None:
        for name, value in parts.items():
            for where in (lie["guarantee"], lie["plan"]["claims"], lie["plan"]["request"]):
                where[name] = value

    return change


LIES: dict[str, tuple[Change, str]] = {
    "a larger ball": (_told("ball", 1.01), "privacy loss"),
    "a ball of l1": (_told("ball", 20**0.5), "privacy loss"),
    "more users are clipped": (_told("clipped", 1.3), "mechanism"),
    "fewer users are clipped": (_told("clipped", 0.7), "mechanism"),
    "less noise": (_scaled(0.9), "noise scales"),
    "more noise": (_scaled(1.1), "noise scales"),
    "a smaller delta": (_stated(delta="1/1000000000"), "privacy loss"),
    "a smaller epsilon": (_stated(epsilon="7/2"), "privacy loss"),
    "Laplace noise": (
        lambda lie: lie["plan"]["numbers"].update(noise="discrete laplace"), "privacy loss",
    ),
    "coarse steps": (
        lambda lie: lie["plan"]["numbers"].update(lattice_bits=12), "capacity of the lattice",
    ),
    "sharper selections": (
        lambda lie: lie["plan"]["mechanism"].update(
            selection_scale=[each / 2 for each in lie["plan"]["mechanism"]["selection_scale"]]
        ),
        "privacy loss",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(manifest: dict[str, Any], lie: str) -> None:
    """G-VERIFY: of the ball, the noise, and what they are said to cost."""
    assert failed_claims(manifest) == []
    change, claim = LIES[lie]
    assert claim in failures_after(manifest, change)


@pytest.mark.parametrize("name", ["centres", "radii", "clipped", "ball", "cap"])
@pytest.mark.parametrize("off", [-3, 3, 2**40, 2**60])
def test_every_parameter_is_checked(manifest: dict[str, Any], name: str, off: int) -> None:
    """G-VERIFY: no number can be changed so that the manifest holds, but to a smaller ball."""

    def change(lie: dict[str, Any]) -> None:
        lie["plan"]["mechanism"]["parameters"][name][0] += off

    found = failures_after(manifest, change)
    if off == 2**60:
        assert found == [UNSHAPED]
    elif (name, off) != ("ball", -3):
        assert found or name == "cap"
        assert name != "cap" or DAMAGED in found or off == -3


def test_another_steps_number_is_another_value(manifest: dict[str, Any]) -> None:
    """G-VERIFY: values and intervals follow from lattice numbers with normal quantiles."""

    def change(lie: dict[str, Any]) -> None:
        lie["results"][3]["interval"][1] -= 0.01

    assert failures_after(manifest, change) == ["results"]
