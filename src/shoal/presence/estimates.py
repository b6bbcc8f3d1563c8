"""What is said of every cell: all statistics of a release, from the whole numbers that were drawn.

Nothing else is used, so everybody who has the manifest computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from shoal.arrays import Floats
from shoal.presence.draw import Drawn, pieces_of
from shoal.presence.look import Look, look_of, ranges_of
from shoal.presence.request import PIECES, Request
from shoal.presence.rounds import Round
from shoal.presence.totals import Total
from shoal.presence.values import FEWEST_CELLS, Values
from shoal.release.rows import WHOLE, Row
from shoal.release.statistics import Statistic

# The reasons why a cell is not reliable, each with a remedy.
WHY = {
    "too noisy": "one number for all cells should be more accurate: merge cells or raise epsilon",
    "few users": "too few for private caps and ranges: give records_per_user, or raise epsilon",
    "few users dominate": "a cap would take too much from heavy users: give records_per_user",
    "below min_users": "the noisy number of users is below the limit that was asked for",
    "outlying users": "its values may lie beyond the private range: merge cells or raise epsilon",
}
# Epsilon times users below which looks are mostly noise.
FEW_USERS = 200


@dataclass(frozen=True, eq=False)
class Estimates:
    """The statistics of all cells.

    Attributes:
        request: What was asked.
        rounds: The draws, and what they cost.
        drawn: What was drawn.
    """

    request: Request
    rounds: Mapping[str, Round]
    drawn: Drawn

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.request.keys.num_rows

    @cached_property
    def look(self) -> Look:
        """Caps and priorities, which follow from the looks."""
        drawn = self.drawn
        if not self.cells:
            return Look(np.ones(0), float(self.request.users), {})
        noisy_cells = None
        if drawn.cells is not None:
            noisy_cells = np.array(drawn.cells) / self.rounds["cells"].whole
        seen = {
            name: np.array(each) / self.rounds["sizes"].blocks[name]
            for name, each in drawn.sizes.items()
        }
        return look_of(self.request, self.rounds, noisy_cells, seen)

    def _in_users(self, block: str) -> Floats:
        """Answers of a block in users."""
        units = self.rounds["answers"].blocks[block]
        return np.array(self.drawn.answers[block], dtype=np.float64) / units

    @cached_property
    def totals(self) -> dict[str, Total]:
        """Users, records and sums, as far as they are asked for."""
        answers = self.rounds["answers"]
        return {
            name: Total(
                self._in_users(name),
                answers.scale(name),
                self.look.caps[name],
                self.request.bounds[1] if name == "sum" else 1.0,
            )
            for name in self.request.totals
            if self.cells
        }

    @cached_property
    def values(self) -> Values:
        """The parts of all cells, from which statistics of values follow."""
        answers = self.rounds["answers"]
        lattice = self.request.lattice
        top = 1 << lattice.bits
        position = self.drawn.range
        assert position is not None, "no statistic of values was asked for"
        low, high = (int(each[position]) for each in ranges_of(top))
        pieces = pieces_of(self.request, (low, high))[1:-1]
        ends = np.array([pieces[0].low, *(each.low + each.width for each in pieces)])
        bounds = lattice.bounds
        moved = self.look.caps["values"].moved
        # Whether heavy users have more of the records than those of the guide, nothing sees.
        unseen = 0.0 if self.request.guide is None else moved
        return Values(
            self._in_users("values").reshape(len(ends), self.cells).T,
            answers.scale("values"),
            bounds.lo + ends / top * (bounds.hi - bounds.lo),
            (bounds.lo, bounds.hi),
            moved,
            self._in_users("tails"),
            answers.scale("tails"),
            unseen,
            self.look.priority,
            max(self.noisy_users, 1.0) / self.cells,
        )

    @property
    def noisy_users(self) -> float:
        """About how many users have a record that counts.

        Each user has one size in each block of the second look, so that it is a mean of all of
        them, in any order; without any look the number that was said holds.
        """
        if self.drawn.cells is None and self.drawn.sizes:
            units = self.rounds["sizes"].blocks
            users = [sum(seen) / units[name] for name, seen in self.drawn.sizes.items()]
            return math.fsum(users) / len(users)
        return self.look.users

    @property
    def few_users(self) -> bool:
        """Whether there are so few users that looks are mostly noise, as far as one tells."""
        return float(self.request.epsilon) * self.noisy_users < FEW_USERS

    def rows(self, confidence: float) -> Iterator[Row]:
        """Yields every statistic that was asked for, in its order; of small cells as such."""
        if not self.cells:
            # None was found.
            yield from (_of_no_cell(kind.name) for kind in self.request.kinds)
            return
        for row in self._of_any_cells(confidence):
            yield self._marked(row)

    def _marked(self, row: Row) -> Row:
        """A row of which cells with a noisy number of users below the limit are marked."""
        if self.request.min_users is None:
            return row
        users = np.nan_to_num(self.totals["users"].value)
        is_below = np.rint(users) < self.request.min_users
        status = np.where(is_below, "below min_users", np.array(row.status, dtype=object))
        return row._replace(status=status.tolist())

    def _of_any_cells(self, confidence: float) -> Iterator[Row]:
        """Yields every statistic, whatever number of users cells have."""
        for kind in self.request.kinds:
            if kind.name in self.totals:
                yield self._total(kind.name, confidence)
            elif kind.kind == "histogram":
                for bin_of_values in self.bins:
                    yield self.of_values(bin_of_values, confidence)
            else:
                yield self.of_values(kind, confidence)

    @property
    def bins(self) -> list[Statistic]:
        """The shares of a histogram: of pieces of the range, the outer ones up to the bounds.

        A bin of two pieces surely has what is at the knot between them.
        """
        pieces = self.request.pieces
        of_a_bin = 1
        if pieces > PIECES and pieces % 2 == 0:
            of_a_bin = 2
        ends = self.values.knots[::of_a_bin].copy()
        ends[0], ends[-1] = self.request.bounds
        return [
            Statistic(f"share_between({low:g}, {high:g})", "bin", (low, high))
            for low, high in pairwise(ends.tolist())
        ]

    def _total(self, name: str, confidence: float) -> Row:
        """A total of all cells."""
        total = self.totals[name]
        status = total.status
        if self.few_users and name in self.drawn.sizes and not total.cap.hull:
            status = "few users"
        low, high = total.interval(confidence)
        value = total.value
        if name in WHOLE:
            low, value, high = np.floor(low), np.rint(value), np.ceil(high)
        common = status == "too noisy" and self.cells >= FEWEST_CELLS
        return Row(
            name,
            name,
            value,
            low,
            high,
            total.number,
            np.full(self.cells, total.noise_scale),
            [status] * self.cells,
            np.full(self.cells, common),
        )

    def of_values(self, kind: Statistic, confidence: float) -> Row:
        """A statistic of the values of all cells."""
        found = self.values
        clear = found.above_noise
        status = np.where(clear, "reliable", "too noisy").astype(object)
        status[clear & found.outlying] = "outlying users"
        if kind.kind == "mean":
            value = found.mean
            low, high = found.mean_interval(confidence)
            if found.is_range_wrong:
                status[clear] = "outlying users"
        elif kind.kind in ("median", "quantile"):
            value = found.quantile(kind.level)
            low, high = found.quantile_interval(kind.level, confidence)
        else:
            limits = kind.limits
            value = found.share(*limits)
            low, high = found.share_interval(*limits, confidence)
            if kind.kind != "bin" and any(map(found.is_beyond, limits)):
                status[clear] = "outlying users"
        if self.few_users:
            status[:] = "few users"
        unknown = np.full(self.cells, np.nan)
        return Row(
            kind.name,
            "histogram" if kind.kind == "bin" else kind.name,
            value,
            np.minimum(low, value),
            np.maximum(high, value),
            value,
            unknown,
            status.tolist(),
            ~clear,
        )


def _of_no_cell(name: str) -> Row:
    """A statistic if no cell was found."""
    nothing = np.zeros(0)
    return Row(
        name=name,
        asked=name,
        value=nothing,
        low=nothing,
        high=nothing,
        noisy=nothing,
        noise=nothing,
        status=[],
        common=np.zeros(0, dtype=bool),
    )
