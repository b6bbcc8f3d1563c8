"""Every number and text of manifests of every kind changed, one after the other, in many ways.

Of cells by every method, statistic and noise, trials by every mechanism, and unbiased means: one
more, one less, twice, half, negated, nothing, huge, tiny, of another type, null, left out, swapped
with another row's, taken from another manifest; numbers of packed columns, too. Each change is told
plainly, with all digests made to fit, and with the same change wherever the same was said. The
document must be refused, a claim must fail, or the verdict itself must say, in a sentence named
below, that it cannot verify this very field.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import numpy as np

import shoal
from shoal.errors import DocumentError
from tests.evidence import leaves_kit, specimens
from tests.evidence.finding import Outcome
from tests.evidence.leaves_admitted import left_over
from tests.evidence.leaves_signing import agreed, signed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.leaves_kit import Document, Way

NAME = "changed leaves of manifests"
PROMISES = ("G-VERIFY", "G-INDEPENDENT")
UNIT = "leaves"
FULL, REDUCED, PARTS = 9600, 30, 4

_MOST_DONORS = 3
_UNSHAPED = "refused by the schema"
# Of the seed of a part: which part it is.
_RUNS = 10_000


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Change the leaves of all manifests, in an order of their own; every part takes others."""
    true = {name: json.loads(text) for name, text in specimens.manifests(folder).items()}
    failures = [f"{name}: a true manifest does not hold"
                for name, each in true.items() if not shoal.verify(each).holds]  # fmt: skip
    every = [(name, way) for name, each in true.items() for way in leaves_kit.leaves(each)]
    order = np.random.default_rng(seed // _RUNS).permutation(len(every))
    if size * PARTS >= FULL and len(every) > FULL:
        failures.append(f"{len(every)} leaves are more than a full run changes")
    begin, counts = seed % _RUNS * size, dict[str, int]()
    for number in range(begin, begin + size):
        name, way = every[order[number % len(every)]]
        for change, found in _found(true, name, way):
            counts["changes"] = counts.get("changes", 0) + 1
            counts[found] = counts.get(found, 0) + 1
            if found.startswith("BROKEN"):
                failures.append(f"{name}, {way}, {change}: {found}")
        progress(1)
    return Outcome(size, tuple(failures), counts=counts)


def _found(true: dict[str, Document], name: str, way: Way) -> Iterator[tuple[str, str]]:
    """Each change of a leaf, and how it was found out."""
    document = true[name]
    for change, changed in leaves_kit.changes(document, way, _donors(true, name, way)):
        plain = _judge(document, changed, way)
        yield change, plain
        if plain == _UNSHAPED:
            # No other field makes it one of its schema.
            continue
        told = [changed]
        for how, lie in (
            ("signed", signed(copy.deepcopy(changed))),
            ("agreed", agreed(document, copy.deepcopy(changed), way)),
        ):
            if lie not in told:
                told.append(lie)
                yield f"{change}, {how}", _judge(document, lie, way)


def _donors(true: dict[str, Document], name: str, way: Way) -> list[object]:
    """Different values of the same field in other manifests of the kind; of objects none."""
    kind, found = name.partition(",")[0], list[object]()
    old = leaves_kit.get(true[name], way)
    if isinstance(old, dict) and not leaves_kit.is_packed(old):
        return []
    for other, document in true.items():
        value = leaves_kit.get(document, way)
        if other != name and other.startswith(kind) and value is not leaves_kit.Missing:
            if value != old and value not in found:
                found.append(value)
            if len(found) == _MOST_DONORS:
                break
    return found


def _judge(document: Document, changed: Document, way: Way) -> str:
    """How the change was found out, or what is wrong."""
    if json.dumps(document, sort_keys=True) == json.dumps(changed, sort_keys=True):
        return "nothing is changed"
    try:
        verdict = shoal.verify(changed)
    except DocumentError as error:
        return _UNSHAPED if "schema" in str(error) else "refused as damaged"
    except Exception as error:  # noqa: BLE001
        return f"BROKEN: {type(error).__name__} instead of an error of shoal"
    if not verdict.holds:
        failed = [check.claim for check in verdict.checks if not check.holds]
        return f"a claim fails: {failed[0]}" if len(failed) == 1 else "several claims fail"
    paths = specimens.changed_paths(document, changed)
    left = left_over(verdict, document, changed, paths)
    if left:
        return f"BROKEN: every claim holds with another {', '.join(left)}"
    return f"holds: {leaves_kit.path(way)}"
