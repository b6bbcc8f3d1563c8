"""Hand-written lies about manifests of every kind, each told wherever it is one.

Cells by every method and statistic, trials by every mechanism, unbiased means, questions of
trials: half the epsilon, one bit less noise, no gap, a phantom cell, a key twice, NaN, another
encoding, an unknown field, and so on; the lists are in `tests/evidence/lies_*.py`. Each is also
told with the request's digest made to fit. No lie may pass, but those in fields of which the
verdict itself says that a manifest cannot prove them; these are counted below.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

import shoal
from shoal import documents
from shoal.errors import ShoalError
from tests.evidence import (
    lies_cells,
    lies_common,
    lies_means,
    lies_questions,
    lies_trials,
    specimens,
)
from tests.evidence.finding import Outcome
from tests.evidence.lies_kit import NotHereError
from tests.evidence.unproven import opinion, unproven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.lies_kit import Change, Document

    Write = Callable[[Document], bytes]

NAME = "lies about manifests"
PROMISES = ("G-VERIFY", "G-INDEPENDENT")
UNIT = "lies told"
FULL, REDUCED, PARTS = 6000, 350, 2

_OF_KINDS = {
    "cells": lies_cells.LIES,
    "trial": lies_trials.LIES,
    "unbiased mean": lies_means.LIES,
    "questions": lies_questions.LIES,
}
_NOT_HERE = (NotHereError, KeyError, TypeError, IndexError, ValueError, AttributeError)


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Tell every lie about one manifest, then about another one, and so on."""
    true = {name: json.loads(text) for name, text in specimens.manifests(folder).items()}
    rng, failures, told, tried = np.random.default_rng(seed), [], set(), 0
    counts = {"refused": 0, "a claim fails": 0}
    for name, lie, write in _tellings(true, rng):
        if tried == size:
            break
        text = _lied(true[name], write)
        if text is None:
            continue
        found = _judge(true[name], text, folder)
        if found.startswith(("refused", "a claim fails", "passes: ")):
            counts[found] = counts.get(found, 0) + 1
        else:
            failures.append(f"{lie}, about {name}: {found}")
        told.add(lie)
        tried += 1
        progress(1)
    counts["different lies"] = len(told)
    if size >= REDUCED and len(told) < _LEAST_LIES:
        failures.append(f"only {len(told)} different lies could be told")
    return Outcome(tried, tuple(failures), counts=counts)


_LEAST_LIES = 200


def lies() -> list[tuple[str, str, Write]]:
    """Kind of manifest (or none for all), name, and the bytes made from a true document."""
    found = [("", name, _plain(change)) for name, change in lies_common.GUARANTEE.items()]
    found += [("", name, write) for name, write in lies_common.FILES.items()]
    for kind, changes in _OF_KINDS.items():
        for name, change in changes.items():
            found.append((kind, f"{kind}: {name}", _plain(change)))
            found.append((kind, f"{kind}: {name}", _signed(change)))
    found += [("", name, _signed(change)) for name, change in lies_common.GUARANTEE.items()]
    return found


def _tellings(
    true: dict[str, Document], rng: np.random.Generator
) -> Iterator[tuple[str, str, Write]]:
    """Name of a manifest, name of a lie, and the lie; every lie once before any comes again."""
    every = lies()
    order = {kind: rng.permutation([n for n in true if n.startswith(kind)]).tolist()
             for kind in ("", *_OF_KINDS)}  # fmt: skip
    for turn in range(len(true)):
        for number, (kind, lie, write) in enumerate(every):
            names = order[kind]
            if turn < len(names):
                yield names[(turn + number) % len(names)], lie, write


def _plain(change: Change) -> Write:
    def write(document: Document) -> bytes:
        change(document)
        return documents.canonical_bytes(document)

    return write


def _signed(change: Change) -> Write:
    """A liar who makes the request's digest fit what is asked now."""

    def write(document: Document) -> bytes:
        place = _digests(document).index(document["request"])
        change(document)
        computed = _digests(document)
        if place >= len(computed) or computed[place] == document["request"]:
            raise NotHereError
        document["request"] = computed[place]
        return documents.canonical_bytes(document)

    return write


def _digests(document: Document) -> list[str]:
    """All digests that a second opinion computes of a document, in order."""
    found, true = [], documents.digest

    def digest(contents: Document) -> str:
        found.append(true(contents))
        return found[-1]

    with patch.object(documents, "digest", digest):
        try:
            shoal.verify(document)
        except ShoalError:
            raise NotHereError from None
    return found


def _lied(document: Document, write: Write) -> bytes | None:
    """What the liar writes; None if there is nothing to lie about."""
    try:
        text = write(copy.deepcopy(document))
    except _NOT_HERE:
        return None
    return None if text == documents.canonical_bytes(document) else text


def _judge(document: Document, text: bytes, folder: Path) -> str:
    """How the lie was found out, or what is wrong."""
    path = folder / "lie.json"
    path.write_bytes(text)
    verdict = opinion(path)
    if isinstance(verdict, str):
        return verdict
    paths = specimens.changed_paths(document, json.loads(text))
    left = [each for each in paths if not unproven(verdict, each)]
    if left:
        return f"every claim holds with another {', '.join(left)}"
    return f"passes: listed as unproven, {', '.join(paths)}" if paths else "passes: says the same"
