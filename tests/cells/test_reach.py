"""How far one user moves what a mechanism adds up, and its scores: all small data sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.cells.mechanisms.methods import Method, method_of
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, ends
from shoal.cells.mechanisms.ranges import range_bias
from shoal.cells.mechanisms.weights import FINE, Parameters, Weights
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds, Lattice
from tests.support.loop import loop_over
from tests.support.tape import Tape

BITS = 1
LATTICE = Lattice(Bounds(0, 1), BITS)
TOP = 1 << (BITS + FINE)
# With a cap of 4 wrap_around puts the third user into both of the last arrays.
STRADDLING = {("a", 0): 4, ("b", 0): 3, ("c", 0): 3, ("d", 0): 2}
COUNTS = {
    "one": {("a", 0): 1, ("b", 0): 2, ("c", 0): 3},
    "heavy": {("a", 0): 1, ("b", 0): 1, ("c", 0): 5},
    "two": {("a", 0): 1, ("b", 0): 2, ("a", 1): 1, ("c", 1): 1},
}
WRAPPED: dict[str, str | int | float] = {"cap": 4, "grouping": "wrap_around"}
TWO: dict[str, str | int | float] = {"cap": 2}
# Every row of the table of methods but users' vectors, which are clipped as one
# (tests.cells.mechanisms.test_user_vectors.py), with settings that change weights or range.
METHODS = {
    "baseline": method_of("baseline"),
    "clip_user": method_of("clip_user"),
    "optimal": method_of("optimal"),
    "optimal-selected": method_of("optimal", {"range": "selected"}),
    "array_averaging": method_of("array_averaging", TWO),
    "array_averaging-wrapped": method_of("array_averaging", {**TWO, "grouping": "wrap_around"}),
    "worst_case_optimal": method_of("worst_case_optimal"),
    "levy": method_of("levy", {**TWO, "grouping": "wrap_around"}),
    "quantile": method_of("quantile", {**TWO, "quantiles": "optimised"}),
    "akmv": method_of("akmv"),
    "adaptive": method_of("adaptive"),
}
EVERY = [
    *((counts, method) for counts in COUNTS.values() for method in METHODS.values()),
    (STRADDLING, method_of("array_averaging", WRAPPED)),
    # So large a gamma that levy has more than one bin.
    (STRADDLING, method_of("levy", {**WRAPPED, "gamma": 0.99})),
    (STRADDLING, method_of("quantile", WRAPPED)),
]


@dataclass(frozen=True)
class Case:
    """A method with its public facts on small counts."""

    method: Method
    parameters: Parameters
    weights: Weights
    counts: Counts

    @classmethod
    def of(cls, records: dict[tuple[str, int], int], method: Method) -> Case:
        """Parameters at a loss of 2 for each cell; of the optimal methods, users count in parts."""
        users, cells = zip(*records, strict=True)
        counts = Counts.from_counts(users, cells, list(records.values()))
        every = np.arange(counts.n_cells)
        # At a loss of 2 the threshold is the largest count, and nothing would be clipped.
        loss = 1.0 if method.name == "worst_case_optimal" else 2.0
        parameters = method.parameters(counts, every, np.full(len(every), loss), BITS)
        if "part" in parameters:
            size = len(parameters["part"])
            parameters["part"] = (parameters["part"] * np.arange(1, size + 1)) // (size + 1)
        if "kept" in parameters:
            # The lightest user of the first cell is left out.
            parameters["kept"][int(counts.count[counts.cell == 0].argmin())] = 0
        if "widened" in parameters:
            # Users of different weights: of equal ones nobody's interval is widened.
            parameters["cap"] = np.full(len(every), 2)
        weights = method.weigh(counts, every, parameters)
        part = method.range.selecting(weights, 40.0)
        scale = np.full(len(every), 0.1)
        parameters = method.range.tune(weights, parameters, 40.0, scale, part)
        return cls(method, parameters, weights, counts)

    def contributions(self, sums: NDArray[np.int64]) -> PrivateMeans:
        """Private means of one data set."""
        centred = sums - (self.counts.count << (BITS - 1))
        members = self.counts.memberships
        return PrivateMeans(
            self.weights, Aggregate(members, LATTICE, centred, np.zeros_like(centred))
        )

    def data_sets(self) -> Iterator[NDArray[np.int64]]:
        """Every vector of sums of ticks; of four users every second sum, with both ends."""
        step = 1 if self.counts.n_users < 4 else 2
        range_widths = [range(0, (int(m) << BITS) + 1, step) for m in self.counts.count]
        for sums in itertools.product(*range_widths):
            yield np.array(sums)

    def ranges(self) -> list[Interval | None]:
        """Some of the ranges that could be selected, wide and narrow; the whole if none is."""
        if self.method.range.selects == "nothing":
            return [None]
        size = self.weights.n_cells
        if self.weights.sums:
            return [
                Interval(np.zeros(size, int), np.full(size, t)) for t in (TOP // 3, TOP, 2 * TOP)
            ]
        pairs = [(0, TOP), (TOP // 4, TOP // 2), (TOP // 8 + 1, TOP // 8 + 3), (TOP - 6, TOP)]
        return [Interval(np.full(size, a), np.full(size, b)) for a, b in pairs]


def groups_of(case: Case, user: int) -> dict[bytes, list[NDArray[np.int64]]]:
    """Data sets that differ in the values of one user only."""
    found: dict[bytes, list[NDArray[np.int64]]] = {}
    for sums in case.data_sets():
        rest = sums[case.counts.user != user].tobytes()
        found.setdefault(rest, []).append(sums)
    return found


@loop_over(("counts", "method"), EVERY)
def test_nobody_reaches_further_than_accounted(
    counts: dict[tuple[str, int], int], method: Method
) -> None:
    """Over all data sets, users and some ranges, sums move by at most reach x range."""
    case = Case.of(counts, method)
    for chosen in case.ranges():
        range_width = np.full(case.weights.n_cells, TOP) if chosen is None else chosen.width
        total = {
            sums.tobytes(): np.array(case.contributions(sums).add_up(chosen))
            for sums in case.data_sets()
        }
        for user in range(case.counts.n_users):
            own = case.weights.user == user
            contribution = np.zeros(case.weights.n_cells, dtype=np.int64)
            contribution[case.weights.cell[own]] = case.weights.reach[own]
            for sets in groups_of(case, user).values():
                found = np.stack([total[sums.tobytes()] for sums in sets])
                moved = found.max(axis=0) - found.min(axis=0)
                assert (moved <= contribution * range_width).all(), (
                    user,
                    chosen,
                    moved,
                    contribution * range_width,
                )


@loop_over(("counts", "method"), EVERY)
def test_no_score_moves_further_than_accounted(
    counts: dict[tuple[str, int], int], method: Method
) -> None:
    """Over all data sets and users, and with the second selection after the first."""
    case = Case.of(counts, method)
    if case.method.range.selects == "nothing":
        return
    shown = {}
    scale = np.ones(case.weights.n_cells)
    for sums in case.data_sets():
        recorder = Tape(part=0, rise=0)
        case.method.range.select(case.contributions(sums), case.parameters, scale, recorder)
        shown[sums.tobytes()] = np.concatenate(recorder.scores)
        selections = case.method.range.rounds
        if case.method.range.selects == "per cell":
            selections *= case.weights.n_cells
        assert len(recorder.scores) == selections
    allowed = case.method.range.score_sensitivity(case.weights)
    for user in range(case.counts.n_users):
        for sets in groups_of(case, user).values():
            found = np.stack([shown[sums.tobytes()] for sums in sets])
            assert (found.max(axis=0) - found.min(axis=0)).max() <= allowed


@loop_over(("counts", "method"), EVERY)
def test_no_data_set_errs_by_more_than_the_bias_bound(
    counts: dict[tuple[str, int], int], method: Method
) -> None:
    """The estimate before noise is never further off than stated, and often as far."""
    case, slack = Case.of(counts, method), 2.0 / TOP
    design = case.weights
    for chosen in case.ranges():
        bound = design.bias + (0 if chosen is None else range_bias(design, chosen, TOP))
        worst = np.zeros(design.n_cells)
        for sums in case.data_sets():
            contributions = case.contributions(sums)
            truth = np.array(contributions.aggregate.cell_sums()) / case.counts.totals / 2**BITS
            found = np.array(contributions.add_up(chosen)) / design.total / TOP
            worst = np.maximum(worst, np.abs(found - truth))
        assert (worst <= np.minimum(bound, 1) + slack).all()
        if case.method.range.selects == "nothing":
            assert (worst >= bound - 0.05).all()


@loop_over("at", [0, 3, 50, 4000, 10**9])
@loop_over("method", METHODS.values())
def test_selected_ranges_are_ranges(method: Method, at: int) -> None:
    """Whatever is selected, low is below high, means within the bounds, and ranges long enough."""
    case = Case.of(COUNTS["two"], method)
    sums = next(case.data_sets())
    scale = np.ones(case.weights.n_cells)
    recorder = Tape(places=(at,), rise=0)
    chosen = case.method.range.select(case.contributions(sums), case.parameters, scale, recorder)
    if chosen is None:
        assert case.method.range.selects == "nothing"
        return
    assert (chosen.low >= 0).all()
    assert (chosen.width >= 1).all()
    if not case.weights.sums:
        assert (chosen.high <= TOP).all()
        assert (chosen.width * case.method.range.largest_zoom(case.parameters, TOP) >= TOP).all()
        low, high = ends(case.weights, case.weights.cell, chosen)
        contribution = case.weights.weight * (high - low)
        if case.weights.groups is None:
            assert (contribution <= case.weights.reach * chosen.width[case.weights.cell]).all()
