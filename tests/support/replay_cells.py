"""Releases of cells to replay: every method with every setting, on users who are tied."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import shoal
from tests.support import methods
from tests.support.replay import Case, Release

# Within the bounds, at them, beyond them, and the middle that means are counted from.
_VALUES = (0.0, 100.0, 50.0, -1e9, 1e9, 60.0, 60.000001, 37.25)


class Cells:
    """Records of tied users and a plan for them."""

    forced: ClassVar[dict[int, tuple[int, int]]] = {}
    slots = None

    def __init__(
        self, wanted: Mapping[str, Any], rng: np.random.Generator, users: int = 40
    ) -> None:
        users, cells = int(rng.integers(8, users)), int(rng.integers(1, 5))
        self.table = methods.tied(int(rng.integers(2**31)), users, cells)
        # In pieces or whole: how a table lies in memory is public, and alike for both.
        self.pieces = int(rng.choice([7, len(self.table)]))
        self.table = self._in_some_order(self.table, rng)
        epsilon = float(rng.choice([0.5, 4.0, 40.0]))
        self.plan = methods.plan(self.table, wanted, epsilon=epsilon)
        self.epsilon = 0.0 if self.plan.delta else float(self.plan.exact_loss.epsilon)
        self.rho = float(getattr(self.plan, "rho", None) or 0.0)

    def base(self) -> Release:
        """Of the table as it is."""
        return self._release(self.table)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """All values of one user are another one; the rows come in another order."""
        names = self.table.column("who").to_pylist()
        user = str(names[int(rng.integers(len(names)))])
        value = float(rng.choice([*_VALUES, rng.uniform(0, 100)]))
        return self._release(self._in_some_order(methods.neighbour(self.table, user, value), rng))

    def _in_some_order(self, table: pa.Table, rng: np.random.Generator) -> pa.Table:
        every = list(methods.orders(table, int(rng.integers(2**31))).values())
        rows = every[int(rng.integers(len(every)))].combine_chunks()
        return pa.concat_tables(
            rows.slice(at, self.pieces) for at in range(0, len(rows), self.pieces)
        )

    def _release(self, table: object) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            records = methods.records(table)
            return self.plan.release(records, ledger=book, privacy_unit="person").document

        return release


CASES: dict[str, Callable[..., Case]] = {
    **{f"cells, {name}": partial(Cells, wanted) for name, wanted in methods.METHODS.items()},
    "cells, squares about means": partial(Cells, {"statistics": ("mean", "std")}),
    "cells, bins": partial(Cells, {"statistics": ("mean", "median", "share_above(60)")}),
    # Enough users for a look at fullest bins.
    "cells, bins alone": partial(Cells, {"statistics": ("median",)}, users=400),
}
