"""What a careful liar does last: all that must agree with a changed number agrees with it."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import documents
from shoal.errors import ShoalError
from tests.evidence import leaves_kit
from tests.support.verdicts import rekey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.evidence.leaves_kit import Document, Way

_DAMAGED = (ShoalError, KeyError, TypeError, ValueError, AttributeError, IndexError)


def signed(document: Document) -> Document:
    """With the fingerprint of its counts and the digest of its request; in place."""
    with suppress(*_DAMAGED):
        _fingerprint(document["plan"]["occupancy"])
    with suppress(*_DAMAGED):
        rekey(document)
    return document


def agreed(true: Document, changed: Document, way: Way) -> Document:
    """The same change wherever the same was said, the numbers shown with it, and signed."""
    old, new = leaves_kit.get(true, way), leaves_kit.get(changed, way)
    if new is leaves_kit.Missing:
        return signed(changed)
    for other in _places(true):
        name = leaves_kit.path(other).rpartition(".")[2]
        same = leaves_kit.get(true, other)
        # Numbers must have the same name, too: many are equal by chance.
        alike = isinstance(old, str) or name == leaves_kit.path(way).rpartition(".")[2]
        if alike and type(same) is type(old) and same == old:
            with suppress(*_DAMAGED):
                leaves_kit.put(changed, other, new)
    for name in ("epsilon", "delta"):
        with suppress(*_DAMAGED, OverflowError, ZeroDivisionError):
            guarantee = changed["guarantee"]
            if f"{name}_at_most" in guarantee:
                guarantee[f"{name}_at_most"] = _up(Fraction(guarantee[name]))
    return signed(changed)


def _places(document: Any, way: Way = ()) -> Iterator[Way]:  # noqa: ANN401
    """The ways to all texts and numbers."""
    members: Any = ()
    if isinstance(document, dict):
        members = document.items()
    elif isinstance(document, list):
        members = enumerate(document)
    elif way:
        yield way
    for name, each in members:
        yield from _places(each, (*way, name))


def _up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _fingerprint(occupancy: Document) -> None:
    columns = [
        documents.unpack_integers(occupancy[name], name)
        for name in ("cells_per_user", "cell", "count")
    ]
    columns[0] = np.repeat(np.arange(len(columns[0])), np.minimum(columns[0], 10**6))
    state = hashlib.sha256(documents.canonical_bytes(occupancy["cells"]))
    for column in columns:
        state.update(column.astype("<i8").tobytes())
    occupancy["fingerprint"] = state.hexdigest()
