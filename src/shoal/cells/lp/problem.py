"""Cells with a target error each, as arrays: what the optimal plan is asked for."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The constant U/2 needs neither data nor loss: a cell that may be off by half the width is free.
FREE = 0.5
_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class TargetProblem:
    """Cells with a worst-case error that each may have, over the width; the loss is to be least.

    Choose weights 0 <= w <= v and noise b >= 0 to minimise the largest loss of a user,

        max_l sum_g cost_gl w_gl / b_g   subject to   (1 - sum_l w_gl)/2 + b_g <= E_g,

    a linear program in w/b and 1/b (docs/theory/optimal.md#the-linear-program).

    Attributes:
        user: User of each entry, 0..n_users-1, shape (entries,).
        cell: Cell of each entry, 0..n_cells-1, shape (entries,).
        share: v = m/n of each entry, above 0 and together 1 in every cell, shape (entries,).
        n_users: L.
        n_cells: G.
        target: E of each cell, above 0, shape (cells,). From 1/2 on a cell needs nothing: it gets
            no weights and no noise, and costs nothing.
        cost: Loss of the entry's user at weight 1 and noise 1, above 0, shape (entries,); 1 for
            means.

    Raises:
        InputError: Arrays that do not fit together, or numbers outside their range.

    Example:
        >>> one = TargetProblem(
        ...     np.array([0, 1]), np.array([0, 0]), np.array([0.75, 0.25]), 2, 1, np.array([0.4])
        ... )
        >>> one.cost.tolist(), one.scaled(1.25).packed.n_cells
        ([1.0, 1.0], 0)
    """

    user: Ints
    cell: Ints
    share: Floats
    n_users: int
    n_cells: int
    target: Floats
    cost: Floats = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        entries = len(self.share)
        if not entries or len(self.user) != entries or len(self.cell) != entries:
            raise _unfit("entries of different lengths, or none")
        for name, index, size in (
            ("users", self.user, self.n_users),
            ("cells", self.cell, self.n_cells),
        ):
            if index.min() < 0 or index.max() >= size:
                raise _unfit(f"{name} outside 0..{size - 1}")
        total = np.bincount(self.cell, self.share, minlength=self.n_cells)
        if not (self.share > 0).all() or not (np.abs(total - 1) <= _SUM).all():
            raise _unfit("shares that are not above 0, or not 1 in sum in every cell")
        if self.target.shape != (self.n_cells,) or not (self.target > 0).all():
            raise InputError(
                "targets that are not one number above 0 for each cell",
                "a worst-case error over the width for each cell, above 0",
                "use 0.5 for cells that need nothing",
            )
        if self.cost.shape not in {(1,), (entries,)} or not self._usable(self.cost):
            raise InputError(
                "costs that are not one number above 0 for each entry",
                "the loss of each entry at weight 1 and noise 1, above 0 and finite",
                "leave them out for means",
            )
        object.__setattr__(self, "cost", np.broadcast_to(self.cost, (entries,)))

    @staticmethod
    def _usable(cost: Floats) -> bool:
        return bool(((cost > 0) & np.isfinite(cost)).all())

    def scaled(self, factor: float) -> TargetProblem:
        """The same cells with all targets times a factor above 0; shares what was sorted."""
        other = copy.copy(self)
        object.__setattr__(other, "target", self.target * factor)
        vars(other).pop("packed", None)
        return other

    @cached_property
    def sorted(self) -> Packed:
        """All cells, entries sorted by cell."""
        order = np.argsort(self.cell, kind="stable")
        cell = self.cell[order]
        return Packed(
            order=order,
            user=self.user[order],
            cell=cell,
            share=self.share[order],
            cost=self.cost[order],
            start=np.searchsorted(cell, np.arange(self.n_cells)),
            target=self.target,
            n_users=self.n_users,
        )

    @cached_property
    def packed(self) -> Packed:
        """The cells that need something, entries sorted by cell: what solvers work on."""
        return self.sorted.needing(self.target)

    def unpack(self, packed_weight: Floats) -> Floats:
        """Weights of all entries, in the problem's order, from those of `packed`."""
        weight = np.zeros(len(self.share))
        weight[self.packed.order] = packed_weight
        return weight


@dataclass(frozen=True, eq=False)
class Packed:
    """Entries sorted by cell.

    Attributes:
        order: Place of each entry in the problem.
        user: User of each entry.
        cell: Cell of each entry, rising, 0..n_cells-1.
        share: v of each entry.
        cost: Cost of each entry.
        start: First entry of each cell.
        target: E of each cell.
        n_users: L.
    """

    order: Ints
    user: Ints
    cell: Ints
    share: Floats
    cost: Floats
    start: Ints
    target: Floats
    n_users: int

    @property
    def n_cells(self) -> int:
        """Cells among these entries."""
        return len(self.target)

    def needing(self, target: Floats) -> Packed:
        """Those cells that need something at other targets, and their entries."""
        needed = target < FREE
        if needed.all():
            return replace(self, target=target)
        keep = needed[self.cell]
        size = self.size[needed]
        return Packed(
            order=self.order[keep],
            user=self.user[keep],
            cell=np.repeat(np.arange(len(size)), size),
            share=self.share[keep],
            cost=self.cost[keep],
            start=np.cumsum(size) - size,
            target=target[needed],
            n_users=self.n_users,
        )

    @cached_property
    def size(self) -> Ints:
        """Entries of each cell."""
        return np.diff(np.append(self.start, len(self.share)))

    def by_cell(self, entry: Floats) -> Floats:
        """Sum over the entries of each cell."""
        return np.add.reduceat(entry, self.start)

    def by_user(self, entry: Floats) -> Floats:
        """Sum over the entries of each user."""
        return np.bincount(self.user, entry, minlength=self.n_users).astype(np.float64, copy=False)


def _unfit(got: str) -> InputError:
    return InputError(
        got,
        "for each entry a user, a cell and a share above 0, with shares that sum to 1 in each cell",
        "divide the counts by the totals of their cells",
    )
