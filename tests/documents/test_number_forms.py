"""Ten is 10 where a whole number belongs and 10.0 where any number does: one text a value."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.evidence import specimens

import shoal
from shoal import documents
from shoal.errors import DocumentError
from tests.support import flights

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Way = tuple[str | int, ...]

pytestmark = pytest.mark.audit

KINDS = (
    *("cells", "trial", "mean", "questions"),
    *("shoal.plan/3", "shoal.unbiased-plan/1", "shoal.questions-plan/1"),
)


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """True documents of every kind."""
    manifests = specimens.manifests(tmp_path_factory.mktemp("true"))
    return [json.loads(text) for text in (*manifests.values(), *specimens.plans().values())]


def _numbers(part: object, way: Way = ()) -> Iterator[tuple[Way, float]]:
    items: Any = ()
    if isinstance(part, dict):
        items = part.items()
    elif isinstance(part, list):
        items = enumerate(part)
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield way, part
    for key, each in items:
        yield from _numbers(each, (*way, key))


def _changed(document: dict[str, Any], way: Way, value: float) -> dict[str, Any]:
    found = copy.deepcopy(document)
    holder: Any = found
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = value
    return found


def test_no_number_of_a_document_has_two_texts(true: list[dict[str, Any]]) -> None:
    """Another form of a number is refused, wherever it is, before it is looked at."""
    seen: dict[str, set[Way]] = {kind: set() for kind in KINDS}
    for document in true:
        schema = document["schema"]
        kind = document.get("kind", schema)
        assert documents.check_schema(document, (schema,), "document") is document
        for way, value in _numbers(document):
            where = tuple(key for key in way if isinstance(key, str))
            if where in seen[kind]:
                continue
            seen[kind].add(where)
            other = int(value) if isinstance(value, float) else float(value)
            with pytest.raises(DocumentError, match="not of its schema"):
                documents.check_schema(_changed(document, way, other), (schema,), "document")
    assert all(len(ways) > 5 for ways in seen.values())


WHOLE: dict[str, dict[str, Any]] = {
    "bounds": {"bounds": (0, 700)},
    "bounds of NumPy": {"bounds": (np.int64(0), np.float32(700))},
    "weights": {"weights": {"EWR": 2}},
    "an error": {"epsilon": None, "error": 200},
    "a cap": {"method": "levy", "settings": {"cap": 5}},
}


@pytest.mark.parametrize("wanted", WHOLE)
def test_whole_numbers_are_written_as_any_number(wanted: str, tmp_path: Path) -> None:
    """What a caller gives as 200 is written as 200.0, and is read again."""
    plan = flights.plan(**WHOLE[wanted])
    plan.save(tmp_path / "plan.json")
    loaded = shoal.Plan.load(tmp_path / "plan.json")
    assert documents.canonical_bytes(loaded.to_document()) == (tmp_path / "plan.json").read_bytes()
