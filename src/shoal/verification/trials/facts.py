"""What the second opinion on a trial reads from a manifest: strictly checked public facts.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.documents.key_texts import key_of
from shoal.verification.strict import integers, rational, real, text

# Python turns whole numbers of up to 4300 digits into text and back.
# Of every manifest: other intervals cost nothing, and are nobody's claim.
_CONFIDENCE = 0.95
_COLUMN = {"name", "type", "values"}
_FEWEST, _MOST_LEVELS, _MOST_ARMS = 2, 256, 64
# Nothing is released of other levels: rounding to floats would excuse any effect of theirs.
_LARGEST, _SMALLEST, _NARROWEST, _CLOSEST = 1e50, 1e-50, 1e-9, 1e-12
# What a key may be in JSON, by the start of its type; dates and times are texts.
_KINDS = (("string", str), ("int", int), ("uint", int), ("bool", bool))


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts of a trial.

    Attributes:
        levels: Of the outcome, in its unit.
        sizes: Units, clusters x arms, control first.
        arms: The arms' keys.
        rising: Whether clusters, arms but the control, and named units of a group are in order.
        named: Whether units have names.
        mechanism: The mechanism's name.
        delta: The delta of (epsilon, delta)-DP.
        loss: Stated loss of one outcome without that of the clusters.
        confidence: Of the intervals.
    """

    levels: NDArray[np.float64]
    sizes: NDArray[np.int64]
    arms: list[object]
    rising: bool
    named: bool
    mechanism: str
    delta: Fraction
    loss: Fraction
    confidence: float

    @classmethod
    def of(cls, manifest: documents.Document) -> Facts:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        plan, guarantee = manifest["plan"], manifest["guarantee"]
        assignment = plan["assignment"]
        clusters, places = keys_of_column(assignment["clusters"], "cluster")
        arms, order = keys_of_column(assignment["arms"], "arm")
        if not _FEWEST <= len(arms) <= _MOST_ARMS or not clusters:
            raise ValueError
        sizes = integers(assignment["sizes"], "sizes", len(clusters) * len(arms))
        rising = all(_steps(places)) and all(_steps(order[1:]))
        if int(sizes.min()) < 1 or int(sizes.astype(object).sum()) >= 2**53:
            raise ValueError
        if assignment["units"] is not None:
            rising &= _units_rise(assignment["units"], sizes)
        confidence = real(manifest["confidence"])
        if confidence != _CONFIDENCE:
            raise ValueError
        return cls(
            levels=levels_of(plan["space"]),
            sizes=sizes.reshape(len(clusters), len(arms)),
            arms=arms,
            rising=rising,
            named=assignment["units"] is not None,
            mechanism=text(plan["mechanism"]["name"]),
            delta=rational(guarantee["delta"]),
            loss=rational(guarantee["epsilon"]) - rational(plan["clustering_epsilon"]),
            confidence=confidence,
        )

    @property
    def units(self) -> int:
        """All units."""
        return int(self.sizes.sum())

    @property
    def weight(self) -> NDArray[np.float64]:
        """Each cluster's part of all units."""
        return np.asarray(self.sizes.sum(axis=1) / self.units)

    @property
    def width(self) -> float:
        """From the lowest level to the highest."""
        return float(self.levels[-1] - self.levels[0])


def levels_of(space: documents.Document) -> NDArray[np.float64]:
    """Levels of an outcome, rising and within what shoal reads, or ValueError."""
    levels = [real(level) for level in space["levels"]]
    rising = all(low < high for low, high in itertools.pairwise(levels))
    if not _FEWEST <= len(levels) <= _MOST_LEVELS or not rising:
        raise ValueError
    largest, width = max(map(abs, levels)), levels[-1] - levels[0]
    closest = min(high - low for low, high in itertools.pairwise(levels))
    apart = width >= max(_SMALLEST, _NARROWEST * largest) and closest >= _CLOSEST * largest
    if not (largest <= _LARGEST and apart):
        raise ValueError
    return np.array(levels)


def keys_of_column(document: documents.Document, name: str) -> tuple[list[object], list[Any]]:
    """The different keys of one column, and what they are ordered by."""
    (column,) = document["columns"]
    values, kind = column["values"], text(column["type"])
    # Two texts of one moment would be two clusters.
    read = [key_of(kind, value) for value in values]
    sound = (
        document.keys() == {"columns"}
        and column.keys() == _COLUMN
        and column["name"] == name
        and isinstance(values, list)
        and None not in read
        and len(set(read)) == len(read)
    )
    if not sound:
        raise ValueError
    return values, read


def _kind(name: str) -> type:
    return next(kind for start, kind in _KINDS if name.startswith(start))


def _steps(values: Sequence[Any]) -> Iterator[bool]:
    return map(operator.lt, values, values[1:])


def _numbers_rise(document: documents.Document, sizes: NDArray[np.int64]) -> bool:
    """The same of names that are whole numbers, which are packed."""
    numbers = integers(document["numbers"], "units", int(sizes.sum()))
    if _kind(text(document["type"])) is not int or len(np.unique(numbers)) != len(numbers):
        raise ValueError
    up = np.diff(numbers) > 0
    up[np.cumsum(sizes)[:-1] - 1] = True
    return bool(up.all())


def _units_rise(document: documents.Document, sizes: NDArray[np.int64]) -> bool:
    """Whether the names of every group are in order, which then says nothing."""
    if document.keys() == {"type", "numbers"}:
        return _numbers_rise(document, sizes)
    _, names = keys_of_column(document, "unit")
    if len(names) != int(sizes.sum()):
        raise ValueError
    up = np.fromiter(_steps(names), dtype=np.bool_, count=len(names) - 1)
    # The first of a group follows the last of another: their names may be in any order.
    up[np.cumsum(sizes)[:-1] - 1] = True
    return bool(up.all())
