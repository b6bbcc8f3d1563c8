"""Lies that a second opinion once believed, each by the promise that it broke."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal import documents
from shoal.errors import DocumentError
from shoal.verification.verdict import ALWAYS
from tests.support import flights
from tests.support.verdicts import rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Manifest = dict[str, Any]
    Change = Callable[[Manifest], object]

pytestmark = pytest.mark.audit


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """A true manifest of a balanced plan."""
    folder = tmp_path_factory.mktemp("strict")
    return flights.plan().release(flights.records(), ledger=flights.ledger(folder)).manifest


def believed(manifest: Manifest, change: Change) -> bool:
    """Whether a lie with fingerprint and request key of its own passes."""
    lie = copy.deepcopy(manifest)
    change(lie)
    occupancy = lie["plan"]["occupancy"]
    occupancy["fingerprint"] = fingerprint(occupancy)
    rekey(lie)
    try:
        return shoal.verify(lie).holds
    except DocumentError:
        return False


def fingerprint(occupancy: documents.Document) -> str:
    """Of counts as they are stated."""
    import hashlib

    state = hashlib.sha256(documents.canonical_bytes(occupancy["cells"]))
    lengths, cell, count = (
        documents.unpack_integers(occupancy[name], name)
        for name in ("cells_per_user", "cell", "count")
    )
    for column in (np.repeat(np.arange(len(lengths)), lengths), cell, count):
        state.update(column.astype("<i8").tobytes())
    return state.hexdigest()


def _duals(change: Callable[[float], float]) -> Change:
    def lie(manifest: Manifest) -> None:
        told = manifest["plan"]["duals"]
        told["dual"] = [change(x) for x in told["dual"]]
        manifest["plan"]["claims"]["gap"] = 0.0

    return lie


def _columns(manifest: Manifest) -> list[Any]:
    found: list[Any] = manifest["plan"]["occupancy"]["cells"]["columns"]
    return found


def _phantom(manifest: Manifest) -> None:
    _columns(manifest)[0]["values"].append("ZZZ")
    manifest["plan"]["status"].append("uninformative")


def _equal_keys(manifest: Manifest) -> None:
    values = _columns(manifest)[0]["values"]
    values[1] = values[0]
    for result in manifest["results"]:
        result["key"] = [values[result["cell"]]]


def _fraction(text: str) -> Change:
    def lie(manifest: Manifest) -> None:
        manifest["guarantee"]["epsilon"] = manifest["plan"]["claims"]["epsilon"] = text

    return lie


LIES: dict[str, Change] = {
    "dual variables beyond what sums hold": _duals(lambda _: 1e308),
    "tiny dual variables": _duals(lambda _: 5e-324),
    "a phantom cell": _phantom,
    "equal keys": _equal_keys,
    "a column's type": lambda m: _columns(m)[0].update(type="int64"),
    "a column of bytes": lambda m: _columns(m)[0].update(type="binary"),
    "two columns of one name": lambda m: _columns(m).append(_columns(m)[0]),
    "a note beside the cells": lambda m: m["plan"]["occupancy"]["cells"].update(note="epsilon 0"),
    "a note in a column": lambda m: _columns(m)[0].update(note="epsilon 0"),
    "a note beside the records": lambda m: m["records"].update(epsilon="0.1"),
    "a note in the versions": lambda m: m["versions"].update(epsilon="0.1"),
    "a version that claims": lambda m: m["versions"].update(shoal="epsilon is 0.1"),
    "a long fraction": _fraction("6/6"),
    "a padded fraction": _fraction("01"),
    "a fraction over one": _fraction("1/1"),
    "digits of another script": _fraction("\u0661"),
    "another confidence": lambda m: m.update(confidence=0.5),
    "a name of control characters": lambda m: m.update(name="\x1b[2K"),
    "a cell too small that is not": (
        lambda m: m["plan"]["status"].__setitem__(0, "too few users")
    ),
    "a rule in words": lambda m: m["plan"]["request"].update(uninformative="all are fine"),
    "weights that are not asked for": (
        lambda m: m["plan"]["numbers"].update(weight=[2.0] * len(m["plan"]["numbers"]["weight"]))
    ),
    "a weight of no cell": lambda m: m["plan"]["request"].update(weights={"nowhere": 3.0}),
    "numbers in words": (
        lambda m: m["plan"]["claims"].update(
            bias_bound=[str(x) for x in m["plan"]["claims"]["bias_bound"]]
        )
    ),
    "true for one": lambda m: m["plan"]["request"].update(min_users=True),
    "a point in a whole number": lambda m: m["plan"].update(tick_bits=20.0),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_no_lie_of_the_list_is_believed(manifest: Manifest, lie: str) -> None:
    """G-VERIFY: also where all keys and fingerprints were made to fit."""
    assert believed(manifest, lambda _: None)
    assert not believed(manifest, LIES[lie])


@pytest.mark.parametrize("huge", [1e308, -1e308, 5e-324, 1e-300, -0.0])
def test_huge_and_tiny_numbers_never_help(manifest: Manifest, huge: float) -> None:
    """G-VERIFY: a NaN in the second opinion's own arithmetic is a failure, in every place."""
    for path in numbers(manifest):
        lie = copy.deepcopy(manifest)
        at: Any = lie
        for step in path[:-1]:
            at = at[step]
        # Dual variables are a proof, not a claim: others may prove the same.
        if ("duals" in path and abs(huge) < 1) or math.isclose(at[path[-1]], huge, abs_tol=1e-9):
            continue
        at[path[-1]] = huge
        assert not believed(lie, lambda _: None), path


def numbers(document: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every floating-point number is."""
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    elif isinstance(document, float):
        return [path]
    return [found for key, value in items for found in numbers(value, (*path, key))]


def test_the_verdict_says_what_it_cannot_tell(manifest: Manifest) -> None:
    """G-VERIFY: what no manifest can prove is in the verdict, one sentence a line."""
    verdict = shoal.verify(manifest)
    assert verdict.unverified[: len(ALWAYS)] == ALWAYS
    for each in verdict.unverified:
        assert f"not verifiable: {each}" in str(verdict)
    assert any("operating system" in each for each in verdict.unverified)
