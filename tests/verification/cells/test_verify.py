"""The second opinion: it agrees with the planner, and finds every lie."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DocumentError
from tests.support import flights
from tests.support.verdicts import UNSHAPED, failed_claims

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A true manifest."""
    folder = tmp_path_factory.mktemp("verify")
    plan = flights.plan(weights={"EWR": 2.0})
    return plan.release(flights.records(), ledger=flights.ledger(folder)).manifest


@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform"])
@pytest.mark.parametrize("wanted", [{"epsilon": "0.7"}, {"epsilon": None, "error": 200.0}])
def test_true_manifests_hold(tmp_path: Path, method: str, wanted: dict[str, Any]) -> None:
    """G-VERIFY: every method, by epsilon or by error, from the file alone."""
    plan = flights.plan(method=method, **wanted)
    release = plan.release(flights.records(), ledger=flights.ledger(tmp_path, 5))
    release.write_manifest(tmp_path / "manifest.json")
    verdict = shoal.verify(tmp_path / "manifest.json")
    assert verdict.holds, str(verdict)
    assert str(verdict).endswith("yes, every claim that can be recomputed holds")


def _more(name: str, factor: float) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        claims = manifest["plan"]["claims"]
        claims[name] = [factor * x for x in claims[name]]

    return change


def _result(name: str, value: object) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        manifest["results"][1][name] = value

    return change


def _scale(manifest: dict[str, Any]) -> None:
    manifest["plan"]["numbers"]["relative_scale"][0] *= 0.99


LIES: dict[str, tuple[Change, str]] = {
    "some delta": (lambda m: m["guarantee"].update(delta="1/2"), "guarantee in words"),
    "other neighbours": (lambda m: m["guarantee"].update(neighbours="x"), "guarantee in words"),
    "a smaller decimal": (
        lambda m: m["guarantee"].update(epsilon_at_most=0.5), "guarantee in words"
    ),
    "other noise": (lambda m: m["plan"]["numbers"].update(noise="none"), "statistics and noise"),
    "wider noise": (
        lambda m: m["plan"]["numbers"].update(noise="discrete gaussian"), "statistics and noise"
    ),
    "an approximate guarantee": (
        lambda m: m["guarantee"].update(privacy="approximate differential privacy"),
        "guarantee in words",
    ),
    "a delta in the claims": (
        lambda m: m["plan"]["claims"].update(delta="1/10"), "guarantee in words"
    ),
    "a joint release of means": (
        lambda m: m["plan"]["numbers"].update(joint=True), "statistics and noise"
    ),
    "a joint release in words": (
        lambda m: m["plan"]["numbers"].update(joint="no"), UNSHAPED
    ),
    "targets of nothing": (lambda m: m["plan"].update(targets=[1.0] * 4), "targets"),
    "more in the request": (lambda m: m["plan"]["request"].update(note=1), UNSHAPED),
    "no gap": (lambda m: m["plan"]["claims"].update(gap=None), "gap to the best plan"),
    "another key": (_result("key", ["LAX"]), "results"),
    "another statistic": (_result("statistic", "median"), "results"),
    "a huge lattice number": (_result("steps", 2**62), "results"),
    "an error not met": (
        lambda m: m["plan"]["request"].update(epsilon=None, error=1e-6),
        "within what was asked for",
    ),
    "nothing asked for": (
        lambda m: m["plan"]["request"].update(epsilon=None), "within what was asked for"
    ),
    "another method": (
        lambda m: m["plan"]["request"].update(method="equalised"), "within what was asked for"
    ),
    "no dual variables": (lambda m: m["plan"].update(duals=None), "gap to the best plan"),
    "another weight": (
        lambda m: m["plan"]["numbers"]["weight"].__setitem__(0, 1e9), "gap to the best plan"
    ),
    "a longer status": (lambda m: m["plan"]["status"].append("uninformative"), "public rules"),
    "simulation zero": (lambda m: m.update(simulation=0), UNSHAPED),
    "another column": (lambda m: m["records"].update(value="height"), "request key"),
    "a private cell": (
        lambda m: m["records"].update(value=m["records"]["user"]), "columns"
    ),
    "cells by another rule": (
        lambda m: m["records"].update(cell=["hour_of_day(origin)"]), "columns"
    ),
    "no rule of cells": (lambda m: m["records"].update(cell=[]), "columns"),
    "something added": (lambda m: m.update(epsilon=0), UNSHAPED),
    "less loss": (lambda m: m["guarantee"].update(epsilon="1/2"), "privacy loss"),
    "more loss than there is": (
        lambda m: (
            m["guarantee"].update(epsilon="1001/1000", epsilon_at_most=1.001),
            m["plan"]["claims"].update(epsilon="1001/1000"),
        ),
        "privacy loss",
    ),
    "less noise": (_scale, "privacy loss"),
    "smaller errors": (_more("worst_case_error", 0.999), "worst-case errors"),
    "smaller bias": (_more("bias_bound", 0.9), "bias bounds"),
    "higher lower bounds": (_more("lower_bound", 1.01), "lower bounds"),
    "empty lower bounds": (_more("lower_bound", 0.5), "lower bounds"),
    "smaller gap": (lambda m: m["plan"]["claims"].update(gap=0.0), "gap to the best plan"),
    "another value": (_result("value", 123.0), "results"),
    "another unclamped": (_result("unclamped", 123.0), "results"),
    "narrow interval": (_result("interval", [380.0, 381.0]), "results"),
    "another number": (_result("steps", 17), "results"),
    "another cell": (_result("cell", 3), "results"),
    "a simulation": (lambda m: m.update(simulation=True), "noise of the operating system"),
    "another name": (lambda m: m.update(name="x"), "request key"),
    "a rule broken": (lambda m: m["plan"]["request"].update(min_users=99), "public rules"),
    "less asked for": (
        lambda m: m["plan"]["request"].update(epsilon="1/3"), "within what was asked for"
    ),
    "a little less asked for": (
        lambda m: m["plan"]["request"].update(epsilon="999/1000"), "within what was asked for"
    ),
    "an unknown method": (
        lambda m: m["plan"]["request"].update(method="median"), "mechanism"
    ),
    "another mechanism": (
        lambda m: m["plan"]["mechanism"].update(name="adaptive"), "mechanism"
    ),
    "a parameter": (
        lambda m: m["plan"]["mechanism"]["parameters"].update(cap=[1] * 4), "mechanism"
    ),
    "a setting": (lambda m: m["plan"]["request"].update(settings={"cap": 3}), "mechanism"),
    "a range": (_result("range", [0, 1024]), "selected ranges"),
    "more in the claims": (
        lambda m: m["plan"]["claims"].update(certified=True), UNSHAPED
    ),
    "more in a result": (_result("exact", 1), UNSHAPED),
    "more in the guarantee": (
        lambda m: m["guarantee"].update(epsilon_of_users=0.1), UNSHAPED
    ),
    "more in the plan": (lambda m: m["plan"].update(comment="private"), UNSHAPED),
    "statistics of numbers": (
        lambda m: m["plan"]["numbers"].update(statistics=["median"]), "statistics and noise"
    ),
    "another fingerprint": (
        lambda m: m["plan"]["occupancy"].update(fingerprint="0" * 64), "counts' fingerprint"
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(manifest: dict[str, Any], lie: str) -> None:
    """G-VERIFY: each claim is recomputed; the check that fails is the one about the lie."""
    change, claim = LIES[lie]
    changed = copy.deepcopy(manifest)
    change(changed)
    if claim == UNSHAPED:
        # What is added, missing or of another type is not even looked at.
        assert failed_claims(changed) == [UNSHAPED]
        return
    verdict = shoal.verify(changed)
    assert not verdict.holds
    assert claim in [check.claim for check in verdict.checks if not check.holds]
    assert str(verdict).endswith("NO")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("plan"),
        lambda m: m.pop("results"),
        lambda m: m.update(results=[{}]),
        lambda m: m["plan"].update(bounds=[1, 0]),
        lambda m: m["plan"].update(bounds=["a", 0]),
        lambda m: m["plan"]["numbers"].update(relative_scale=[]),
        lambda m: m["plan"]["numbers"].update(relative_scale=[0] * 4),
        lambda m: m["plan"]["numbers"].update(cell=[99, 98, 97, 96]),
        lambda m: m["plan"]["occupancy"]["cell"].update(data="!"),
        lambda m: m["plan"]["occupancy"]["cell"].update(length=-1),
        lambda m: m["guarantee"].update(epsilon="0/0"),
        lambda m: m["plan"].update(claims=[]),
        lambda m: m["guarantee"].update(epsilon="1e99999999"),
        lambda m: m["guarantee"].update(epsilon=True),
        lambda m: m["plan"].update(tick_bits=10**10),
        lambda m: m["plan"]["numbers"].update(lattice_bits=10**10),
        lambda m: m["results"][0].update(value=float("nan")),
        lambda m: m["results"][0].update(steps=1e400),
        lambda m: m.update(confidence=float("nan")),
        lambda m: m["plan"]["request"].update(min_users=-5),
        lambda m: m["plan"]["request"].update(settings=[]),
        lambda m: m["plan"]["request"].update(settings=None),
        lambda m: m["plan"].pop("mechanism"),
        lambda m: m["plan"]["mechanism"].update(selection_scale=[1.0]),
        lambda m: m["results"][0].pop("range"),
        lambda m: m["results"][1].update(cell=True),
        lambda m: m["results"][0].update(range=[5, 5]),
        lambda m: m["results"][0].update(range=[0.5, 7]),
    ],
)
def test_damage_is_one_clear_error(manifest: dict[str, Any], change: Change) -> None:
    """Never another exception, whatever is missing."""
    changed = copy.deepcopy(manifest)
    change(changed)
    with pytest.raises(DocumentError, match=r"damaged|not JSON|very long"):
        shoal.verify(changed)


def test_other_documents_are_refused(tmp_path: Path) -> None:
    """A plan is not a manifest."""
    flights.plan().save(tmp_path / "plan.json")
    with pytest.raises(DocumentError, match=r"not of the schema shoal\.manifest/4"):
        shoal.verify(tmp_path / "plan.json")


def test_a_manifest_of_another_version_is_no_manifest(manifest: dict[str, Any]) -> None:
    """Whether it is given as a file or as a document."""
    manifest = {**manifest, "schema": "shoal.manifest/2"}
    with pytest.raises(DocumentError, match=r"not of the schema"):
        shoal.verify(manifest)


def test_small_errors_are_no_cloak(tmp_path: Path) -> None:
    """G-VERIFY: a share with an error of 1e-11 has no other value, and no point as interval."""
    rows = np.arange(200_000)
    columns = [pa.array(each) for each in (rows, rows % 7 * 1.0, np.full(len(rows), "a"))]
    table = pa.table(columns, names=["u", "v", "c"])
    records = shoal.Records(table, user="u", value="v", bounds=(0, 8), cell=["c"])
    plan = shoal.plan(
        records.occupancy(), bounds=(0, 8), epsilon=1e6, method="balanced",
        statistics=["share_above(3)"],
    )  # fmt: skip
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=10**7)
    true = plan.release(records, ledger=ledger).manifest
    assert shoal.verify(true).holds
    result = true["results"][0]
    low, high = result["interval"]
    assert 0 < high - low < 1e-9
    for changed in (
        {"value": result["value"] + 9e-10},
        {"value": result["value"] + 1e-4 * (high - low)},
        {"interval": [result["value"]] * 2},
        {"interval": [low, high + (high - low) / 100]},
    ):
        lie = copy.deepcopy(true)
        lie["results"][0].update(changed)
        assert failed_claims(lie) == ["results"]
