"""How far one user moves what a mechanism adds up, and its scores: all small data sets."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.design import FINE
from shoal.cells.contributions.truncated_users import TruncatedUsers
from shoal.cells.presets import parts_of
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.private_means import PrivateMeans
from shoal.cells.ranges.selected import Range, ends, range_bias
from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import Counts
from shoal.data.value_lattice import Bounds, Lattice
from tests.support import plan_parts
from tests.support.loop import loop_over
from tests.support.methods import MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.mechanism import Mechanism
    from shoal.cells.plan_parts import PlanParts

pytestmark = pytest.mark.property

BITS = 1
LATTICE = Lattice(Bounds(0, 1), BITS)
TOP = 1 << (BITS + FINE)
ONE_CELL = {("a", 0): 1, ("b", 0): 2, ("c", 0): 3}
HEAVY = {("a", 0): 1, ("b", 0): 1, ("c", 0): 5}
# With a cap of 4 wrap_around puts the third user into both of the last arrays.
STRADDLING = {("a", 0): 4, ("b", 0): 3, ("c", 0): 3, ("d", 0): 2}
TWO_CELLS = {("a", 0): 1, ("b", 0): 2, ("c", 0): 3, ("a", 1): 2, ("c", 1): 1}
PARTS = {
    # Vectors of users are clipped as one: tests/cells/test_user_vectors.py.
    **{name: parts_of(name) for name in MECHANISMS if not parts_of(name).range.of_vectors},
    **{
        "-".join([name, *map(str, settings.values())]): parts_of(name, settings)
        for name, settings in (
            ("array_averaging", {"cap": 2}),
            ("array_averaging", {"cap": 2, "grouping": "wrap_around"}),
            ("levy", {"cap": 2, "grouping": "wrap_around"}),
            ("quantile", {"cap": 2, "grouping": "wrap_around", "quantiles": "optimised"}),
            ("optimal", {}),
            ("optimal", {"range": "selected"}),
        )
    },
}
WRAPPED: dict[str, str | int | float] = {"cap": 4, "grouping": "wrap_around"}
COUNTS = {"one": ONE_CELL, "heavy": HEAVY, "two": TWO_CELLS}
EVERY = [
    *(
        pytest.param(counts, parts, id=f"{label}-{name}")
        for label, counts in COUNTS.items()
        for name, parts in PARTS.items()
    ),
    *(
        pytest.param(STRADDLING, parts, id=f"straddling-{name}")
        for name, parts in (
            ("array_averaging", parts_of("array_averaging", WRAPPED)),
            # So large a gamma that levy has more than one bin.
            ("levy", parts_of("levy", {**WRAPPED, "gamma": 0.99})),
            ("quantile", parts_of("quantile", WRAPPED)),
            ("one interval", plan_parts.composed(ClippedArrays(4, "wrap_around"), OneInterval())),
        )
    ),
]


@dataclass
class Recorder:
    """Stands in for noise: keeps the scores it is shown, and chooses what it is told."""

    answer: int = 0
    scores: list[NDArray[np.int64]] = field(default_factory=list)
    simulated: bool = True

    def select(self, scores: NDArray[np.int64], scale: float, draw: int) -> int:
        """Remember, and answer."""
        assert scale > 0
        assert draw >= 0
        self.scores.append(scores)
        return min(self.answer, len(scores) - 1)

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """No noise."""
        assert lattice_bits
        return steps

    add_gaussian = add_laplace


@dataclass(frozen=True)
class Case:
    """A mechanism with its public facts on a small occupancy."""

    mechanism: Mechanism
    parameters: Parameters
    design: Design
    occupancy: Counts

    @classmethod
    def of(
        cls,
        counts: dict[tuple[str, int], int],
        parts: PlanParts,
    ) -> Case:
        """Parameters at a loss of 2 for each cell; of the optimal methods, users count in parts."""
        users, cells = zip(*counts, strict=True)
        occupancy = Counts.from_counts(users, cells, list(counts.values()))
        mechanism = parts.mechanism(LATTICE)
        every = np.arange(occupancy.n_cells)
        # At a loss of 2 the threshold is the largest count, and nothing would be clipped.
        loss = 1.0 if isinstance(parts.contributions, TruncatedUsers) else 2.0
        parameters = mechanism.parameters(occupancy, every, np.full(len(every), loss))
        if "part" in parameters:
            size = len(parameters["part"])
            parameters["part"] = (parameters["part"] * np.arange(1, size + 1)) // (size + 1)
        if "widened" in parameters:
            # Users of different weights: of equal ones nobody's interval is widened.
            parameters["cap"] = np.full(len(every), 2)
        design = mechanism.design(occupancy, every, parameters)
        parameters = mechanism.range.tune(
            design,
            parameters,
            40.0,
            np.full(len(every), 0.1),
            mechanism.range.selecting(design, 40.0),
        )
        return cls(mechanism, parameters, design, occupancy)

    def contributions(self, sums: NDArray[np.int64]) -> PrivateMeans:
        """Private means of one data set."""
        centred = sums - (self.occupancy.count << (BITS - 1))
        return PrivateMeans(
            self.design, Aggregate(self.occupancy, LATTICE, centred, np.zeros_like(centred))
        )

    def data_sets(self) -> Iterator[NDArray[np.int64]]:
        """Every vector of sums of ticks."""
        range_widths = [range((int(m) << BITS) + 1) for m in self.occupancy.count]
        for sums in itertools.product(*range_widths):
            yield np.array(sums)

    def ranges(self) -> list[Range | None]:
        """Some of the ranges that could be selected, wide and narrow; the whole if none is."""
        if self.mechanism.range.selects == "nothing":
            return [None]
        size = self.design.n_numbers
        if self.design.sums:
            return [Range(np.zeros(size, int), np.full(size, t)) for t in (TOP // 3, TOP, 2 * TOP)]
        pairs = [(0, TOP), (TOP // 4, TOP // 2), (TOP // 8 + 1, TOP // 8 + 3), (TOP - 6, TOP)]
        return [Range(np.full(size, a), np.full(size, b)) for a, b in pairs]


def groups_of(case: Case, user: int) -> dict[bytes, list[NDArray[np.int64]]]:
    """Data sets that differ in the values of one user only."""
    found: dict[bytes, list[NDArray[np.int64]]] = {}
    for sums in case.data_sets():
        rest = sums[case.occupancy.user != user].tobytes()
        found.setdefault(rest, []).append(sums)
    return found


@loop_over(
    ("counts", "parts"),
    EVERY,
)
def test_nobody_reaches_further_than_accounted(
    counts: dict[tuple[str, int], int], parts: PlanParts
) -> None:
    """Over all data sets, users and some ranges, sums move by at most reach x range."""
    case = Case.of(counts, parts)
    for chosen in case.ranges():
        range_width = np.full(case.design.n_numbers, TOP) if chosen is None else chosen.range_width
        total = {
            sums.tobytes(): np.array(case.contributions(sums).add_up(chosen))
            for sums in case.data_sets()
        }
        for user in range(case.occupancy.n_users):
            own = case.design.user == user
            contribution = np.zeros(case.design.n_numbers, dtype=np.int64)
            contribution[case.design.number[own]] = case.design.contribution[own]
            for sets in groups_of(case, user).values():
                found = np.stack([total[sums.tobytes()] for sums in sets])
                moved = found.max(axis=0) - found.min(axis=0)
                assert (moved <= contribution * range_width).all(), (
                    user,
                    chosen,
                    moved,
                    contribution * range_width,
                )


@loop_over(
    ("counts", "parts"),
    EVERY,
)
def test_no_score_moves_further_than_accounted(
    counts: dict[tuple[str, int], int], parts: PlanParts
) -> None:
    """Over all data sets and users, and with the second selection after the first."""
    case = Case.of(counts, parts)
    if case.mechanism.range.selects == "nothing":
        return
    shown = {}
    scale = np.ones(case.design.n_numbers)
    for sums in case.data_sets():
        recorder = Recorder()
        case.mechanism.range.select(case.contributions(sums), case.parameters, scale, recorder)
        shown[sums.tobytes()] = np.concatenate(recorder.scores)
        selections = case.mechanism.range.rounds
        if case.mechanism.range.selects == "per cell":
            selections *= case.design.n_numbers
        assert len(recorder.scores) == selections
    allowed = case.mechanism.range.score_sensitivity(case.design)
    for user in range(case.occupancy.n_users):
        for sets in groups_of(case, user).values():
            found = np.stack([shown[sums.tobytes()] for sums in sets])
            assert (found.max(axis=0) - found.min(axis=0)).max() <= allowed


@loop_over(
    ("counts", "parts"),
    EVERY,
)
def test_no_data_set_errs_by_more_than_the_bias_bound(
    counts: dict[tuple[str, int], int], parts: PlanParts
) -> None:
    """The estimate before noise is never further off than stated, and often as far."""
    case, slack = Case.of(counts, parts), 2.0 / TOP
    design = case.design
    for chosen in case.ranges():
        bound = design.bias + (0 if chosen is None else range_bias(design, chosen, TOP))
        worst = np.zeros(design.n_numbers)
        for sums in case.data_sets():
            contributions = case.contributions(sums)
            truth = np.array(contributions.aggregate.cell_sums()) / case.occupancy.totals / 2**BITS
            found = np.array(contributions.add_up(chosen)) / design.total / TOP
            worst = np.maximum(worst, np.abs(found - truth))
        assert (worst <= np.minimum(bound, 1) + slack).all()
        if case.mechanism.range.selects == "nothing":
            assert (worst >= bound - 0.05).all()


def test_somebody_straddles_two_arrays() -> None:
    """The counts are such that it matters: one user is in two arrays, as its contribution says."""
    for name in ("levy", "quantile"):
        design = Case.of(STRADDLING, parts_of(name, WRAPPED)).design
        assert design.groups is not None
        assert sorted(np.bincount(design.groups.member).tolist()) == [1, 1, 1, 2]
        assert sorted(np.unique(design.contribution // design.contribution.min()).tolist()) == [
            1,
            2,
        ]


@loop_over(
    "at",
    [0, 3, 50, 4000, 10**9],
)
@loop_over(
    "parts",
    PARTS.values(),
)
def test_selected_ranges_are_ranges(parts: PlanParts, at: int) -> None:
    """Whatever is selected, low is below high, means within the bounds, and ranges long enough."""
    case = Case.of(TWO_CELLS, parts)
    sums = next(case.data_sets())
    scale = np.ones(case.design.n_numbers)
    recorder = Recorder(answer=at)
    chosen = case.mechanism.range.select(case.contributions(sums), case.parameters, scale, recorder)
    if chosen is None:
        assert case.mechanism.range.selects == "nothing"
        return
    assert (chosen.low >= 0).all()
    assert (chosen.range_width >= 1).all()
    if not case.design.sums:
        assert (chosen.high <= TOP).all()
        assert (chosen.range_width * case.mechanism.most_narrowing(case.parameters) >= TOP).all()
        low, high = ends(case.design, chosen)
        contribution = case.design.weight * (high - low)
        if case.design.groups is None:
            assert (
                contribution <= case.design.contribution * chosen.range_width[case.design.number]
            ).all()
