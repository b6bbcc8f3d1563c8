"""The second opinion: true manifests hold, and no leaf of them can be changed unnoticed."""

import copy
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import DocumentError, ShoalWarning
from shoal.trials import Experiment
from tests.support import flights, replay_trials
from tests.support.releases import releases


def _cells(folder: Path) -> Any:
    plan = flights.plan(statistics=["mean", "variance"], weights={"EWR": 2.0})
    return plan.release(flights.records(), ledger=flights.ledger(folder))


def _trial(name: str, units: int = 60) -> Any:
    """A release of the operating system's noise, as a specimen is made."""
    at, rng = np.arange(units), np.random.default_rng(6)
    public = {"sex": at // 6 % 2 > 0, "age": rng.integers(10, 20, units).astype(float)}
    study = Experiment(at % 2, at // 2 % 3, public)
    domain = replay_trials.SPACES["bins"]
    plan = replay_trials.PLANS[name](study, domain)
    return plan.release(rng.uniform(-3, 5, units), study, outcome_name="score")


def _two_columns(units: int = 90) -> Any:
    """A release of ratios in clusters and subgroups, with lifts."""
    rng = np.random.default_rng(6)
    at = np.arange(units)
    domain = replay_trials.SPACES["counts"]
    study = Experiment(at % 2, at // 2 % 3, {"sex": at // 6 % 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        plan = study.ask().effect("sex").means().plan([domain, domain], 3, lift=True)
    both = rng.integers(0, 11, (2, units)).astype(float)
    return plan.release(both, study, outcome_name="score")


MADE: dict[str, Any] = {
    "cells": _cells,
    "mean": lambda _: releases()["unbiased mean"](),
    "table": lambda _: _trial("best_table of few levels"),
    "prior": lambda _: _trial("cluster_prior, pooled"),
    "histogram": lambda _: _trial("histogram"),
    "questions": lambda _: _trial("several"),
    "ratios": lambda _: _two_columns(),
    "bounds": lambda _: _trial("bounds"),
}


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the leaves are; of a list the first and the last."""
    if isinstance(document, dict):
        for name, each in document.items():
            yield from leaves(each, (*path, name))
    elif isinstance(document, list) and document:
        for at in sorted({0, len(document) - 1}):
            yield from leaves(document[at], (*path, at))
    else:
        yield path


def changed(document: Any, path: tuple[Any, ...]) -> Any:
    """The document with one leaf a thousandth larger (1 if it was next to 0), or another text."""
    made = copy.deepcopy(document)
    place = made
    for step in path[:-1]:
        place = place[step]
    old = place[path[-1]]
    if isinstance(old, bool):
        place[path[-1]] = not old
    elif isinstance(old, int):
        noisy = {"moments", "squares"} & {*path}
        place[path[-1]] = old + (2**40 if noisy else 1 + abs(old) // 100)
    elif isinstance(old, float):
        place[path[-1]] = old * 1.001 if abs(old) > 1e-5 else 1.0
    else:
        place[path[-1]] = f"{old}1"
    return made


@pytest.mark.parametrize("family", MADE)
def test_no_leaf_of_a_record_is_changed_unnoticed(family: str, tmp_path: Path) -> None:
    """One loop a family; versions and reasons are words, and other duals may prove the same gap."""
    manifest = json.loads(json.dumps(MADE[family](tmp_path).record))
    assert shoal.verify(manifest).holds
    passed = []
    for path in leaves({**manifest, "versions": {}}):
        try:
            # A noisy count below the floor of its prior is the floor.
            if shoal.verify(changed(manifest, path)).holds and not {
                "duals",
                "salt",
                "version",
                "reason",
                "histogram",
            } & {*path}:
                passed.append(".".join(str(step) for step in path))
        except DocumentError:
            continue
    assert not passed


# Entries of a manifest that are words, that follow from single users, or that matter where users
# are clipped: the record shows whether they are right.
STATED = {
    *("name", "records", "record_sha256", "versions", "neighbours", "unit", "privacy"),
    *("users", "left_out", "reason", "warnings", "worst_case_error", "squares", "rounds"),
    *("epsilon", "request", "settings", "cells", "members", "clipped", "ball", "excess", "moved"),
    *("lead", "selects", "held", "sums", "windows", "deviation", "simulation"),
}


@pytest.mark.parametrize("wanted", [{"statistics": ["mean", "variance"]}, {}])
def test_what_a_manifest_shows_is_not_changed_unnoticed(wanted: Any, tmp_path: Path) -> None:
    """Values, intervals and statuses follow from what was drawn; with the record all does."""
    # The same noise each time: an end that the bounds cut off would hide a change.
    release = flights.plan(**wanted).release(flights.records(), noise=shoal.Simulated(1))
    release.write_record(tmp_path / "record.json")
    manifest = json.loads(json.dumps(release.manifest))
    passed, unseen = [], []
    for path in leaves(manifest):
        name = ".".join(str(step) for step in path)
        forged = changed(manifest, path)
        try:
            first, *_ = shoal.verify(forged).checks
            if first.holds:
                passed.append(name)
            checks = shoal.verify(forged, record=tmp_path / "record.json").checks
            if all(each.holds for each in checks[:2]):
                unseen.append(name)
        except DocumentError:
            continue
    assert not unseen
    assert not [name for name in passed if not STATED & {*name.split(".")}]
