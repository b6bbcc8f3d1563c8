"""Writes and reads strict JSON, which has one byte string for every content.

A document that may be written in several ways can say two things at once: a key may be there twice,
one reader may round a number that another does not, a text may have another encoding. So only the
canonical bytes are accepted: sorted keys, no spaces, the shortest form of every number, UTF-8.
"""

import json
import re
from typing import Any

import numpy as np

from shoal.errors import DocumentError

Document = dict[str, Any]

# The most levels of objects and lists in a document.
_DEPTH = 32
# The most digits of a whole number in a document.
_DIGITS = 40
# The most bytes of a document.
MOST_BYTES = 2**30
# Matches a text. One that is never closed goes on to the end, as a search from every quote in it
# would take hours.
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_MINUS_ZERO = re.compile(rb"-0\.0(?![0-9])")
_LONG = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1))


def canonical_bytes(document: Document) -> bytes:
    """Returns the one byte string of a document: sorted keys, no spaces, no NaN, UTF-8.

    Raises:
        DocumentError: Contents that JSON cannot hold.

    Example:
        >>> canonical_bytes({"b": 1, "a": [True, None]})
        b'{"a":[true,null],"b":1}'
    """
    try:
        return _written(document)
    except (TypeError, ValueError, RecursionError):
        raise DocumentError(
            "the document has contents that JSON cannot hold",
            "give only text, finite numbers, true, false, null, and lists and objects of these",
        ) from None


def strict(text: bytes, what: str) -> object:
    """Returns the content of canonical JSON; `what` names it in the message of a DocumentError.

    JSON that shoal does not write is refused: a key twice, NaN, an overflowing or very long number,
    more than 32 levels, or spaces.

    Example:
        >>> strict(b'{"a":1}', "a plan")
        {'a': 1}
        >>> strict(b'{"a":1,"a":2}', "a plan")
        Traceback (most recent call last):
        shoal.errors.DocumentError: a plan is not written as shoal writes it: it may have been ...
    """
    _bounded(text, what)
    try:
        found = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise _refused(f"{what} is not JSON", "a document in UTF-8 without NaN") from None
    try:
        same = _written(found) == text
    except (ValueError, RecursionError):
        # There is half of a surrogate pair, or a number beyond the largest float.
        same = False
    if not same:
        raise _refused(
            f"{what} is not written as shoal writes it: it may have been changed",
            "canonical JSON: sorted keys, each once, no spaces, every number in its shortest form",
        )
    return found


def plain(document: object, what: str) -> object:
    """Returns a copy of an object in memory as lists, objects, texts and finite numbers alone.

    Raises:
        DocumentError: It holds something else.

    Example:
        >>> plain({"a": (1, 2)}, "a plan")
        {'a': [1, 2]}
    """
    try:
        text = _written(document)
    except (TypeError, ValueError, RecursionError):
        text = b""
    return strict(text, what)


def _written(document: object) -> bytes:
    """Returns canonical bytes; the errors of json for what it cannot hold."""
    text = _dumped(document)
    return _dumped(_one_zero(document)) if _MINUS_ZERO.search(text) else text


def _dumped(document: object) -> bytes:
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    ).encode()


def _one_zero(part: object) -> object:
    """Returns a part with 0.0 for -0.0, which is the same number in another spelling."""
    if isinstance(part, float):
        return part + 0.0
    if isinstance(part, dict):
        return {name: _one_zero(each) for name, each in part.items()}
    return [_one_zero(each) for each in part] if isinstance(part, list | tuple) else part


def _bounded(text: bytes, what: str) -> None:
    """Refuse JSON that is too large, deep or long-numbered to be parsed; texts are not counted."""
    if len(text) > MOST_BYTES:
        raise _refused(f"{what} has {len(text)} bytes", f"at most {MOST_BYTES}")
    bare = _TEXT.sub(b"", text)
    code = np.frombuffer(bare, dtype=np.uint8)
    opened = np.isin(code, list(b"[{")).astype(np.int8)
    depth = np.cumsum(opened - np.isin(code, list(b"]}")), dtype=np.int64)
    if int(depth.max(initial=0)) > _DEPTH:
        raise _refused(f"{what} is nested deeply", f"at most {_DEPTH} levels")
    if _LONG.search(bare):
        raise _refused(f"{what} holds a very long number", f"at most {_DIGITS} digits")


def _refused(got: str, allowed: str) -> DocumentError:
    return DocumentError(got, allowed, "fetch the file again, or write it again with shoal")
