"""Releases of cells to replay: every method with every setting, on users who are tied."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tests.support import methods

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    import shoal
    from tests.evidence.replay_watch import Release

# Within the bounds, at them, beyond them, and the middle that means are counted from.
_VALUES = (0.0, 100.0, 50.0, -1e9, 1e9, 60.0, 60.000001, 37.25)


class Cells:
    """Records of tied users and a plan for them."""

    forced: ClassVar[dict[int, tuple[int, int]]] = {}
    slots = None

    def __init__(self, wishes: Mapping[str, Any], rng: np.random.Generator) -> None:
        users, cells = int(rng.integers(8, 40)), int(rng.integers(1, 5))
        self.table = methods.tied(int(rng.integers(2**31)), users, cells)
        self.table = _in_some_order(self.table, rng)
        epsilon = float(rng.choice([0.5, 4.0, 40.0]))
        self.plan = methods.plan(self.table, wishes, epsilon=epsilon)
        self.epsilon = 0.0 if self.plan.gaussian else float(self.plan.exact_epsilon)
        self.rho = float(self.plan.rho or 0.0)

    def base(self) -> Release:
        """Of the table as it is."""
        return self._release(self.table)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """All values of one user are another one; the rows come in another order."""
        names = self.table.column("who").to_pylist()
        user = names[int(rng.integers(len(names)))]
        value = float(rng.choice([*_VALUES, rng.uniform(0, 100)]))
        return self._release(_in_some_order(methods.neighbour(self.table, user, value), rng))

    def _release(self, table: pa.Table) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            return self.plan.release(methods.records(table), ledger=book).document

        return release


def _in_some_order(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    every = list(methods.orders(table, int(rng.integers(2**31))).values())
    return every[int(rng.integers(len(every)))]


CASES: dict[str, Callable[[np.random.Generator], Cells]] = {
    f"cells, {name}": partial(Cells, wishes) for name, wishes in methods.METHODS.items()
}
