"""Strict JSON: one byte string for every content, and nothing else is read."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.documents.strict_json import strict
from shoal.errors import DocumentError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)
TRUE = b'{"a":{"b":[1,2.5,"x"]},"schema":"x/1"}'
GAMES = {
    "a key twice": b'{"a":1,"a":2,"schema":"x/1"}',
    "a key twice, escaped once": b'{"\\u0061":1,"a":2,"schema":"x/1"}',
    "not a number": b'{"a":NaN,"schema":"x/1"}',
    "beyond the largest float": b'{"a":1e999,"schema":"x/1"}',
    "another way to write a float": b'{"a":2.50,"schema":"x/1"}',
    "a negative nothing": b'{"a":-0,"schema":"x/1"}',
    "more digits than a float has": b'{"a":0.1000000000000000055511151231257827,"schema":"x/1"}',
    "domains": b'{"a": 1,"schema":"x/1"}',
    "a line's end": TRUE + b"\n",
    "something after the end": TRUE + b"{}",
    "keys in another order": b'{"schema":"x/1","a":1}',
    "an escaped letter": b'{"a":"\\u0041","schema":"x/1"}',
    "a byte order mark": b"\xef\xbb\xbf" + TRUE,
    "another encoding": TRUE.decode().encode("utf-16"),
    "Latin letters": '{"a":"\u00e9","schema":"x/1"}'.encode("latin-1"),
    "overlong UTF-8": b'{"a":"\xc0\xaf","schema":"x/1"}',
    "a comment": b'{"a":1,"schema":"x/1"/**/}',
    "half a document": TRUE[:-2],
    "nothing": b"",
    "very deep": b"[" * 10**6,
}


@pytest.mark.parametrize("game", GAMES)
def test_what_can_be_read_in_two_ways_is_not_read(game: str) -> None:
    """Duplicate keys, NaN, other encodings, domains and overflow are refused."""
    with pytest.raises(DocumentError) as error:
        strict(GAMES[game], "document")
    assert error.value.__cause__ is None
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_true_documents_are_read() -> None:
    """The example that the games play with is read."""
    assert strict(TRUE, "document") == json.loads(TRUE)


@given(PLAIN)
def test_canonical_bytes_are_read_back(content: object) -> None:
    """Whatever is written is read, and only as it was written."""
    data = documents.canonical_bytes({"schema": "x/1", "content": content})
    found: Any = strict(data, "document")
    assert documents.canonical_bytes(found) == data
    for other in (data + b" ", data.replace(b":", b": ", 1)):
        with pytest.raises(DocumentError):
            strict(other, "document")


@given(PLAIN, st.data())
def test_no_changed_byte_goes_unseen(content: object, data: Any) -> None:
    """Changed bytes are refused, or have another content."""
    true = bytearray(documents.canonical_bytes({"schema": "x/1", "content": content}))
    at = data.draw(st.integers(0, len(true) - 1))
    changed = bytearray(true)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found: Any = strict(bytes(changed), "document")
    except DocumentError:
        return
    assert documents.canonical_bytes(found) == bytes(changed) != bytes(true)


@pytest.mark.parametrize(
    "content",
    [
        {"schema": "x/1", "a": float("nan")},
        {"schema": "x/1", "a": float("inf")},
        {"schema": "x/1", "a": {1: 2, "1": 3}},
        {"schema": "x/1", "a": {1, 2}},
        {"schema": "x/1", "a": "\ud800"},
        {"schema": "x/1", "\ud800": 1},
        {"schema": "x/1", 5: 1, "5": 1},
        {"schema": "x/1", "a": b"bytes"},
        {"schema": "x/1", "a": np.int64(3)},
        {"schema": "x/1", "a": 10**50},
        {"schema": "x/1", "a": 10**5000},
    ],
)
def test_objects_in_memory_are_held_to_the_same(content: dict[Any, Any]) -> None:
    """Whatever is not plain JSON is one clear error."""
    with pytest.raises(DocumentError):
        documents.plain(content, "document")


def test_endless_objects_are_refused() -> None:
    """An object inside itself, or a thousand levels, end in one clear error."""
    endless: dict[str, Any] = {"schema": "x/1"}
    endless["a"] = endless
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for content in (endless, {"schema": "x/1", "a": deep}):
        with pytest.raises(DocumentError):
            documents.plain(content, "document")
        with pytest.raises(DocumentError):
            documents.canonical_bytes(content)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "missing", "link to a fifo"])
def test_only_regular_files_are_read(kind: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to does not hang; a device does not fill the memory."""
    path = tmp_path / "x"
    if "fifo" in kind:
        os.mkfifo(path)
    if kind == "folder":
        path.mkdir()
    if kind == "device":
        path.symlink_to("/dev/zero")
    if kind == "link to a fifo":
        (tmp_path / "y").symlink_to(path)
        path = tmp_path / "y"
    before = _open_files()
    for call in (
        shoal.verify,
        shoal.Plan.load,
        shoal.Counts.load,
        shoal.trials.Release.load,
        shoal.unbiased.UnbiasedPlan.load,
    ):
        with pytest.raises(DocumentError, match="cannot be read"):
            call(path)
    assert _open_files() == before


@pytest.mark.parametrize("path", [5, None, 2.5, "a\0b", b"\xff", ["x"], True])
def test_what_is_no_path_is_one_clear_error(path: Any) -> None:
    """TypeError and UnicodeEncodeError stay inside; standard input is not read."""
    with pytest.raises(DocumentError):
        shoal.Plan.load(path)
    with pytest.raises(DocumentError):
        shoal.verify(path)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    """The size is looked at first."""
    path = tmp_path / "x"
    with path.open("wb") as stream:
        stream.truncate(2**40)
    assert stat.S_ISREG(path.stat().st_mode)
    with pytest.raises(DocumentError, match="too large"):
        documents.read_bytes(path, "document")
