"""Leaves of a document, and what a liar would write in their place."""

from __future__ import annotations

import copy
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Document = dict[str, Any]
    Way = tuple[str | int, ...]
    Changed = tuple[str, Document]

_PACKED = {"type", "length", "data"}
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")
_OTHER_TEXT = "others"
_HUGE, _TINY = 1e300, 5e-324
_LARGE = 2**40


class Missing:
    """What a leaf becomes that is left out."""


def leaves(document: object, way: Way = ()) -> Iterator[Way]:
    """The ways to all leaves: of long lists the first, the middle and the last member.

    A leaf is a text, number, truth value, null or packed column; empty lists and objects are
    leaves, too, and so is every object, to which a field may be added.
    """
    if isinstance(document, dict):
        yield way
        if not is_packed(document):
            for name, each in document.items():
                yield from leaves(each, (*way, name))
    elif isinstance(document, list):
        yield way
        for place in sorted({0, len(document) // 2, len(document) - 1} & {*range(len(document))}):
            yield from leaves(document[place], (*way, place))
    else:
        yield way


def is_packed(value: object) -> bool:
    """Whether it is a packed column."""
    return isinstance(value, dict) and value.keys() == _PACKED


def path(way: Way) -> str:
    """Names of the way, joined by dots; places in lists are left out."""
    return ".".join(each for each in way if isinstance(each, str))


def get(document: Any, way: Way) -> Any:  # noqa: ANN401
    """What is there, or `Missing`."""
    for each in way:
        try:
            document = document[each]
        except (KeyError, IndexError, TypeError):
            return Missing
    return document


def put(document: Document, way: Way, value: object) -> None:
    """Another value there, or none at all."""
    holder = get(document, way[:-1])
    if value is Missing:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value


def changes(document: Document, way: Way, donors: Sequence[object]) -> Iterator[Changed]:
    """Names of changes of one leaf, and the documents with them.

    Args:
        document: A true one; it stays as it is.
        way: To the leaf.
        donors: What other documents have in this place.
    """
    old = get(document, way)
    if not way:
        yield "a field added", {**document, "note": "epsilon is 0.01"}
        return
    named = {**_of_kind(old), "left out": Missing, "null": None, "true": True}
    named.update({f"that of another manifest ({at})": each for at, each in enumerate(donors)})
    for name, new in named.items():
        if new is Missing or type(new) is not type(old) or new != old:
            yield name, _with(document, way, new)
    for name, other in _siblings(document, way):
        mine, theirs = get(document, way), get(document, other)
        if mine != theirs:
            changed = _with(document, way, theirs)
            put(changed, other, mine)
            yield name, changed


def _with(document: Document, way: Way, new: object) -> Document:
    changed = copy.deepcopy(document)
    put(changed, way, copy.deepcopy(new) if new is not Missing else Missing)
    return changed


def _of_kind(old: object) -> Mapping[str, object]:
    if isinstance(old, bool):
        return {"the opposite": not old, "a number": int(old), "a text": str(old).lower()}
    if isinstance(old, int | float):
        return _of_number(old)
    if isinstance(old, str):
        return _of_text(old)
    if isinstance(old, dict):
        return _of_packed(old) if is_packed(old) else _of_object(old)
    if isinstance(old, list):
        return {
            "empty": [],
            "a member twice": [*old, *old[-1:]],
            "a text more": [*old, _OTHER_TEXT],
            "the other way round": old[::-1],
        }
    return {"zero": 0, "one": 1.0, "a text": _OTHER_TEXT, "a list": [], "an object": {}}


def _of_object(old: Document) -> Mapping[str, object]:
    return {"a field added": {**old, "note": "epsilon is 0.01"}, "empty": {}, "a list": [old]}


def _of_number(old: float) -> Mapping[str, object]:
    half = old // 2 if isinstance(old, int) else old / 2
    return {
        "plus 1": old + 1,
        "minus 1": old - 1,
        "twice": old * 2,
        "half": half,
        "a thousandth more": old * 1.001,
        "a thousandth less": old * 0.999,
        "negated": -old,
        "zero": type(old)(0),
        "huge": _HUGE if isinstance(old, float) else _LARGE,
        "tiny": _TINY,
        "the other kind of number": float(old) if isinstance(old, int) else int(old),
        "a text": str(old),
    }


def _of_text(old: str) -> Mapping[str, object]:
    found: dict[str, object] = {
        "more text": old + "x",
        "no text": "",
        "other text": _OTHER_TEXT,
        "without its end": old[:-1],
        "a number": 7,
        "a list": [old],
    }
    if _FRACTION.fullmatch(old):
        number = Fraction(old)
        others = {"plus 1": number + 1, "minus 1": number - 1, "twice": number * 2,
                  "half": number / 2, "negated": -number, "nothing": Fraction(0),
                  "a billionth less": number * (1 - Fraction(1, 10**9)),
                  "huge": Fraction(10**39), "tiny": Fraction(1, 10**39)}  # fmt: skip
        over = "/1" if old.endswith("/1") else ""
        for name, other in others.items():
            found[name] = f"{other}{over if other.denominator == 1 else ''}"
    if re.fullmatch("[0-9a-f]{64}", old):
        found["another digest"] = old[::-1]
    return found


def _of_packed(old: Document) -> Mapping[str, object]:
    """Numbers of a packed column changed, and packed again as shoal does."""
    values, found = documents.unpack_integers(old, "a column"), dict[str, object]()
    for place in sorted({0, len(values) // 2, len(values) - 1} & {*range(len(values))}):
        own = int(values[place])
        others = {"plus 1": own + 1, "minus 1": own - 1, "twice": 2 * own, "half": own // 2,
                  "zero": 0, "huge": _LARGE}  # fmt: skip
        for name, other in others.items():
            if other >= 0:
                changed = values.copy()
                changed[place] = other
                found[f"number {place} {name}"] = _packed(changed)
        unlike = np.flatnonzero(values != own)
        if len(unlike):
            changed = values.copy()
            at = int(unlike[np.argmin(np.abs(unlike - place))])
            changed[[place, at]] = values[[at, place]]
            found[f"numbers {place} and {at} swapped"] = _packed(changed)
    found["one number less"] = _packed(values[:-1])
    found["one number more"] = _packed(np.append(values, values[-1:]))
    found["another type"] = {**old, "type": "<u8" if old["type"] != "<u8" else "<u4"}
    found["another length"] = {**old, "length": old["length"] + 1}
    found["plain numbers"] = values.tolist()
    return found


def _packed(values: Any) -> Document:  # noqa: ANN401
    return documents.pack_integers(values)


def _siblings(document: Document, way: Way) -> Iterator[tuple[str, Way]]:
    """The same field of the next row, and the next field of a row."""
    for depth in range(len(way) - 1, -1, -1):
        place = way[depth]
        if isinstance(place, int):
            holder = get(document, way[:depth])
            for other in (place + 1, place - 1):
                found = (*way[:depth], other, *way[depth + 1 :])
                if 0 <= other < len(holder) and get(document, found) is not Missing:
                    yield f"swapped with row {other}", found
                    break
            break
    holder = get(document, way[:-1])
    if isinstance(holder, dict):
        names = sorted(holder)
        for other in names[names.index(str(way[-1])) + 1 :]:
            if type(holder[other]) is type(holder[way[-1]]):
                yield f"swapped with {other}", (*way[:-1], other)
                break
