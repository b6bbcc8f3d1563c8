"""The cells of public counts that readers see: all but those that a public rule leaves out."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from shoal.arrays import Ints
from shoal.cells.facts.decision import BY_RULE, Status
from shoal.data.counts import Counts


class ShownCells:
    """What has counts and a status of each cell."""

    counts: Counts

    @property
    def status(self) -> tuple[Status, ...]:
        """The status of each cell: planned, or why it is left out."""
        raise NotImplementedError

    @cached_property
    def shown(self) -> Ints:
        """Positions of the cells that readers see."""
        return np.flatnonzero([status not in BY_RULE for status in self.status])

    @cached_property
    def shown_labels(self) -> list[str]:
        """Labels of the cells that readers see."""
        return [self.counts.labels[at] for at in self.shown.tolist()]

    @cached_property
    def shown_status(self) -> tuple[Status, ...]:
        """The status of each cell that readers see: planned, or why it is left out."""
        return tuple(self.status[at] for at in self.shown.tolist())

    @property
    def left_out(self) -> dict[str, int]:
        """How many cells each public rule leaves out."""
        return {rule: self.status.count(rule) for rule in BY_RULE if rule in self.status}

    @cached_property
    def shown_cells(self) -> pa.Table:
        """The keys of the cells that readers see."""
        return self.counts.cells.take(self.shown)
