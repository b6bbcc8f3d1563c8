"""The second opinion: true manifests hold, and no leaf of them can be changed unnoticed."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import DocumentError
from tests.support import flights, replay_questions
from tests.support.releases import releases

pytestmark = pytest.mark.audit


def _cells(folder: Path) -> Any:
    plan = flights.plan(statistics=["mean", "variance"], weights={"EWR": 2.0})
    return plan.release(flights.records(), ledger=flights.ledger(folder)).manifest


def _questions(_: Path) -> Any:
    space = replay_questions.SPACES["amounts"]
    columns = replay_questions.Columns.drawn(np.random.default_rng(6), space, 60)
    made = columns.plan("subgroups", space)
    return made.release(
        columns.outcome, columns.arm, columns.cluster, columns.covariates,
        outcome_name="score", privacy_unit="person",
    ).manifest  # fmt: skip


MADE: dict[str, Any] = {
    "cells": _cells,
    "trial": lambda _: releases()["trial"]().manifest,
    "mean": lambda _: releases()["unbiased mean"]().manifest,
    "questions": _questions,
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
    """The document with one leaf a thousandth larger (1 if it was next to 0), or another text.

    Noisy squares, which may be less than nothing, are much larger.
    """
    made = copy.deepcopy(document)
    place = made
    for step in path[:-1]:
        place = place[step]
    old = place[path[-1]]
    if isinstance(old, bool):
        place[path[-1]] = not old
    elif isinstance(old, int):
        place[path[-1]] = old + (2**40 if "moments" in path else 1 + abs(old) // 100)
    elif isinstance(old, float):
        place[path[-1]] = old * 1.001 if abs(old) > 1e-5 else 1.0
    else:
        place[path[-1]] = f"{old}1"
    return made


@pytest.mark.parametrize("family", MADE)
def test_no_leaf_of_a_manifest_is_changed_unnoticed(family: str, tmp_path: Path) -> None:
    """One loop a family; versions and reasons are words, and other duals may prove the same gap."""
    manifest = json.loads(json.dumps(MADE[family](tmp_path)))
    assert shoal.verify(manifest).holds
    passed = []
    for path in leaves({**manifest, "versions": {}}):
        try:
            if shoal.verify(changed(manifest, path)).holds and not {
                "duals",
                "version",
                "reason",
            } & {*path}:
                passed.append(".".join(str(step) for step in path))
        except DocumentError:
            continue
    assert not passed
