"""What the second opinion reads from a manifest: exact numbers, strictly checked.

Nothing is imported from planning, mechanisms, bounding, accounting, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import documents
from shoal.verification.strict import rational, real, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Larger numbers than shoal ever writes would only keep the verifier busy.
MOST_STEPS = 2**63
# Claims printed as floats may differ from the exact value by rounding, never by more.
TOLERANCE = 1e-9
LAPLACE, GAUSSIAN = "discrete laplace", "discrete gaussian"
# Means of users are kept in ticks over 2^FINE.
FINE = 10
_MOST_BITS, _MOST_TICK_BITS = 60, 24
# The planner refuses noise that is less than 2^-61 of a range, or of what a selection counts in.
LEAST_SCALE = Fraction(1, 2**61)
# Nothing is released in other bounds: rounding to floats would excuse any value in them.
_FARTHEST, _NARROWEST = 1e50, 1e-100
_SPACINGS, _LEAST_SPACED = 2**10, 1e-280


@dataclass(frozen=True, eq=False)
class Facts:
    """Counts, scales and bounds of a manifest.

    A `number` is the position of a cell among the released ones; a `member` is a membership in one
    of them. Scales are statistic by statistic, each in the order of the numbers. `epsilon` is what
    was asked for, if no error was.
    """

    user: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    total: NDArray[np.int64]
    released: list[int]
    statistics: list[str]
    joint: bool
    gaussian: bool
    delta: Fraction
    epsilon: Fraction | None
    scale: list[Fraction]
    bits: int
    tick_bits: int
    lo: Fraction
    width: Fraction

    @classmethod
    def of(cls, manifest: documents.Document) -> Facts:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        plan = manifest["plan"]
        occupancy, numbers = plan["occupancy"], plan["numbers"]
        lengths = documents.unpack_integers(occupancy["cells_per_user"], "cells_per_user")
        cell = documents.unpack_integers(occupancy["cell"], "cell")
        count = documents.unpack_integers(occupancy["count"], "count")
        tick_bits = whole(plan["tick_bits"], 1, _MOST_TICK_BITS)
        lo, width = _bounds(plan["bounds"], tick_bits)
        _fit_together(lengths, cell, count)
        facts = cls(
            user=np.repeat(np.arange(len(lengths)), lengths),
            cell=cell,
            count=count,
            total=np.array([int(n) for n in sum_by(cell, count, int(cell.max()) + 1)]),
            released=[whole(g, 0, int(cell.max())) for g in numbers["cell"]],
            statistics=numbers["statistics"],
            joint=numbers["joint"],
            gaussian=numbers["noise"] == GAUSSIAN,
            delta=rational(plan["request"]["delta"]),
            epsilon=_asked(plan["request"]["epsilon"]),
            scale=[Fraction(real(b)) for b in numbers["relative_scale"]],
            bits=whole(numbers["lattice_bits"], 1, _MOST_BITS),
            tick_bits=tick_bits,
            lo=lo,
            width=width,
        )
        # Cells rise within a user: none is there twice.
        rising = (np.diff(cell) > 0) | (np.diff(facts.user) > 0)
        sound = (
            bool(rising.all())
            and int(count.min()) > 0
            # No cell without members, and none more than have keys.
            and all(facts.total)
            and len(set(facts.released)) == len(facts.released)
            and len(facts.scale) == len(facts.statistics) * len(facts.released)
            and min(facts.scale) >= LEAST_SCALE
        )
        if not sound:
            raise ValueError
        return facts

    def scales(self, name: str) -> list[Fraction]:
        """Noise scales of a statistic over its range, one a number."""
        size, row = len(self.released), self.statistics.index(name)
        return self.scale[row * size : (row + 1) * size]

    @cached_property
    def member(self) -> NDArray[np.int64]:
        """Positions of the memberships in released cells."""
        return np.flatnonzero(self._place[self.cell] >= 0)

    @cached_property
    def member_number(self) -> NDArray[np.int64]:
        """Number of each member."""
        return self._place[self.cell[self.member]]

    @cached_property
    def member_user(self) -> NDArray[np.int64]:
        """User of each member."""
        return self.user[self.member]

    @cached_property
    def by_number(self) -> list[NDArray[np.int64]]:
        """The members of each number, in the order of the memberships."""
        order = np.argsort(self.member_number, kind="stable")
        ends = np.cumsum(np.bincount(self.member_number, minlength=len(self.released)))
        return np.split(order, ends[:-1])

    @cached_property
    def counts(self) -> list[list[int]]:
        """Records of the members of each number."""
        own = self.count[self.member]
        return [own[members].tolist() for members in self.by_number]

    @property
    def totals(self) -> list[int]:
        """Records of each number."""
        return [int(self.total[cell]) for cell in self.released]

    @property
    def top(self) -> int:
        """The width in ticks over 2^10, the unit of selected ranges."""
        return 1 << (self.tick_bits + FINE)

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        place = np.full(len(self.total), -1)
        place[self.released] = np.arange(len(self.released))
        return place


def _asked(stated: str | None) -> Fraction | None:
    return None if stated is None else rational(stated)


def _bounds(stated: list[object], tick_bits: int) -> tuple[Fraction, Fraction]:
    """The lower bound and the width, with ticks that are far coarser than floats near the bounds.

    All that floating-point numbers may be off by is then far less than a tick.
    """
    low, high = (real(side) for side in stated)
    width = Fraction(high) - Fraction(low)
    spacing = math.ulp(max(abs(low), abs(high), _LEAST_SPACED))
    if not max(abs(low), abs(high)) <= _FARTHEST or width < _NARROWEST:
        raise ValueError
    if width / 2**tick_bits < _SPACINGS * spacing:
        raise ValueError
    return Fraction(low), width


def _fit_together(
    lengths: NDArray[np.int64], cell: NDArray[np.int64], count: NDArray[np.int64]
) -> None:
    """Refuse columns of other lengths before anything is allocated for them."""
    if not 0 < len(lengths) <= len(cell) == len(count) or int(cell.max()) >= len(cell):
        raise ValueError
    if not 0 < int(lengths.min()) <= int(lengths.max()) <= len(cell) == int(lengths.sum()):
        raise ValueError


def sum_by(index: NDArray[np.int64], amount: NDArray[np.int64], size: int) -> NDArray[Any]:
    """Exact sums by group, as Python integers."""
    high = np.bincount(index, amount >> 26, minlength=size)
    low = np.bincount(index, amount & (2**26 - 1), minlength=size)
    whole: NDArray[Any] = high.astype(object) * 2**26 + low.astype(object)
    return whole
