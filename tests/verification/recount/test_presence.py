"""Forged manifests of private counts are refused without a record: all is recomputed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

import shoal
from shoal.presence.plan import plan
from tests.support.visits import records, visits

DAYS = range(1, 8)


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """Means beside users and records, by branch and day."""
    source = records(visits(), by=["branch", "day"])
    keys = {"branch": ["Harbour", "North", "South"], "day": DAYS}
    names = ["users", "records", "mean", "median", "share_above(60)"]
    made = plan(source, keys=keys, users=3000, statistics=names, epsilon=2)
    return made.release(source, noise=shoal.Simulated(1)).manifest


def _answers(results: dict[str, Any]) -> None:
    values = results["answers"]["values"]
    values[0], values[1] = values[1], values[0]


def _fewer_units(found: dict[str, Any]) -> None:
    found["results"]["plan"]["rounds"]["answers"]["blocks"]["values"] //= 2


def _cap(part: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: dict[str, Any]) -> None:
        found["results"]["results"]["caps"]["records"][part] = value

    return change


def _row(part: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: dict[str, Any]) -> None:
        found["results"]["results"]["rows"][2][part][0] = value

    return change


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "units of a user": _fewer_units,
    "the position of the range": lambda found: found["results"]["results"].update(range=3),
    "parts of two cells": lambda found: _answers(found["results"]["results"]),
    "a cap": _cap("size", 2.0),
    "what a cap moved": _cap("moved", 0.0),
    "users without a cap": _cap("hull", True),
    "a value": _row("value", 99.0),
    "an end": _row("low", 74.0),
    "a status": _row("status", "outlying users"),
    "the relation": lambda found: found["guarantee"]["unit"].update(counts="public"),
    "a statistic": lambda found: found["results"]["results"]["rows"].pop(),
    "the loss": lambda found: found["guarantee"].update(epsilon="1", epsilon_at_most=1.0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_manifest_is_refused_without_its_record(
    manifest: dict[str, Any], name: str
) -> None:
    """A manifest that cannot be read is refused as well."""
    forged = copy.deepcopy(manifest)
    FORGERIES[name](forged)
    assert forged != manifest
    try:
        verdict = shoal.verify(forged)
    except shoal.errors.DocumentError:
        return
    wrong = {each.claim for each in verdict.checks if not each.holds}
    assert wrong > {"noise of the operating system"}
