"""Exact weighted moments against plain fractions over individual values."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.cells.mechanisms.cell_statistics import ShareAbove
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.private_sums import WeightedMoments
from shoal.cells.mechanisms.weights import FINE, PART, Parameters, Weights
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.records import check_size
from shoal.data.value_lattice import Bounds, Lattice

BITS = 20
LATTICE = Lattice(Bounds(0, 1), BITS)
SHARE = ShareAbove(0.5)
Values = list[list[int]]


@dataclass(frozen=True)
class Case:
    """Ticks of every membership of counts, and how users are weighed."""

    public: Counts
    values: Values
    name: str
    parameters: Parameters

    @property
    def weights(self) -> Weights:
        """Of all cells."""
        cells = np.arange(self.public.n_cells)
        return method_of(self.name, {}).weigh(self.public, cells, self.parameters)

    def moments(self, *, linear: bool = True) -> WeightedMoments:
        """The class under test."""
        middle = 1 << (BITS - 1)
        each = [np.array(ticks) - middle for ticks in self.values]
        centred = np.array([int(y.sum()) for y in each])
        squares = np.array([int((y**2).sum()) for y in each])
        above = [int((y > 0).sum()) << BITS for y in each]
        measures = {SHARE.name: np.array(above)}
        aggregate = Aggregate(self.public.memberships, LATTICE, centred, squares, measures)
        return WeightedMoments(self.weights, aggregate, linear=linear)

    def members(self, cell: int) -> list[tuple[Fraction, Fraction, list[Fraction]]]:
        """Weight, part of it that reaches, and values y of each user of a cell."""
        count, found = self.public.count.tolist(), []
        whole = Fraction(int(self.public.totals[cell]))
        for at in np.flatnonzero(self.public.cell == cell).tolist():
            weight, part = Fraction(count[at]), Fraction(1)
            if self.name == "clip_user":
                capped = min(count[at], int(self.parameters["cap"][cell]))
                weight = Fraction(capped * int(self.parameters["kept"][at]))
            if self.name == "optimal":
                part = Fraction(int(self.parameters["part"][at]), 2**PART)
            values = [Fraction(t, 2**BITS) - Fraction(1, 2) for t in self.values[at]]
            found.append((weight, part, values))
        if self.name == "clip_user":
            whole = sum((weight for weight, _, _ in found), Fraction(0))
        return [(weight / whole, part, values) for weight, part, values in found]


def average(values: list[Fraction]) -> Fraction:
    """The mean."""
    return sum(values, Fraction(0)) / len(values)


def truth(case: Case, cell: int) -> tuple[Fraction, Fraction, Fraction]:
    """Mean of y and of y^2, and four times the variance with its middle, from single values."""
    members = case.members(cell)
    first = sum((w * part * average(y) for w, part, y in members), Fraction(0))
    second = sum((w * part * average([x * x for x in y]) for w, part, y in members), Fraction(0))
    missing = 1 - sum((w * part for w, part, _ in members), Fraction(0))
    added = missing * (1 - missing)
    if 2 * missing > 1:
        added = Fraction(1, 2) - added
    return first, second, 4 * (second - first**2) + added


def clipped_mean(case: Case, cell: int, *, above: bool) -> Fraction:
    """Means of users within the middle -+ part/2, weighed by their shares."""
    found = Fraction(0)
    for weight, part, values in case.members(cell):
        each = (
            [Fraction(int(y > 0)) for y in values]
            if above
            else [y + Fraction(1, 2) for y in values]
        )
        near = part / 2 if case.name == "optimal" else Fraction(1, 2)
        middle = Fraction(1, 2)
        found += weight * min(max(average(each), middle - near), middle + near)
    return found


def fraction(pair: tuple[int, int]) -> Fraction:
    """Of whole numbers."""
    return Fraction(*pair)


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    """Up to five users in up to three cells, with up to nine records each."""
    keys = st.tuples(st.integers(0, 4), st.integers(0, 2))
    counts = draw(st.dictionaries(keys, st.integers(1, 9), min_size=1))
    users, cells = zip(*counts, strict=True)
    public = Counts.from_counts(users, cells, list(counts.values()))
    ends = st.sampled_from([0, 1, 2 ** (BITS - 1), 2**BITS - 1, 2**BITS])
    tick = st.one_of(st.integers(0, 2**BITS), ends)
    values = [draw(st.lists(tick, min_size=m, max_size=m)) for m in public.count.tolist()]
    size, parameters = len(public.count), {}
    if name == "clip_user":
        cap = draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
        kept = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
        # Somebody is left in every cell.
        kept[np.unique(public.cell, return_index=True)[1]] = 1
        parameters = {"cap": np.array(cap[: public.n_cells]), "kept": kept}
    if name == "optimal":
        parts = st.one_of(st.integers(0, 2**PART), st.sampled_from([0, 1, 2**PART]))
        parameters = {"part": np.array(draw(st.lists(parts, min_size=size, max_size=size)))}
    return Case(public, values, name, parameters)


@pytest.mark.parametrize("name", ["baseline", "optimal"])
@given(data=st.data())
def test_moments_are_exact(name: str, data: st.DataObject) -> None:
    """Mean, second moment and variance, to the last digit, where weights divide the counts."""
    case = data.draw(cases(name))
    moments = case.moments()
    found = zip(moments.mean(""), moments.second_moment(), moments.variance(), strict=True)
    for cell, (mean, second, variance) in enumerate(found):
        first, square, spread = truth(case, cell)
        assert fraction(mean) == first + Fraction(1, 2)
        assert fraction(second) == 4 * square
        assert fraction(variance) == spread


@given(case=cases("clip_user"))
def test_capped_moments_are_off_by_their_rounding(case: Case) -> None:
    """Means of users are kept with 31 bits, mean squares with 41, and the bounds hold them."""
    moments = case.moments()
    found = zip(moments.mean(""), moments.second_moment(), moments.variance(), strict=True)
    mean_off, square_off = Fraction(1, 2 ** (BITS + FINE + 1)), Fraction(1, 2 ** (2 * BITS + 1))
    for cell, (mean, second, variance) in enumerate(found):
        first, square, spread = truth(case, cell)
        assert abs(fraction(mean) - first - Fraction(1, 2)) <= mean_off
        assert abs(fraction(second) - 4 * square) <= 4 * square_off
        most = 4 * (square_off + mean_off * (1 + mean_off))
        assert abs(fraction(variance) - spread) <= most
        assert most <= 4 * 2.0 ** -(BITS + FINE)
        assert 0 <= fraction(variance) <= 1


@pytest.mark.parametrize("name", ["baseline", "clip_user", "optimal"])
@given(data=st.data())
def test_means_and_shares_are_clipped_means_of_users(name: str, data: st.DataObject) -> None:
    """Within the rounding of means; shares also where moments are released together."""
    case = data.draw(cases(name))
    direct, joint = (case.moments(linear=linear) for linear in (False, True))
    for found, above in (
        (direct.mean(""), False), (direct.mean(SHARE.name), True), (joint.mean(SHARE.name), True),
    ):  # fmt: skip
        for cell, mean in enumerate(found):
            wanted = clipped_mean(case, cell, above=above)
            assert abs(fraction(mean) - wanted) <= 2.0 ** -(BITS + FINE)


def full(users: int, count: int, ticks: NDArray[np.int64]) -> tuple[Counts, Aggregate]:
    """Users with equally many records in one cell, all at one tick each."""
    public = Counts.from_counts(np.arange(users), np.zeros(users, int), [count] * users)
    centred = ticks - 2 ** (BITS - 1)
    return public, Aggregate(public.memberships, LATTICE, centred * count, centred**2 * count)


@pytest.mark.parametrize("up", [0, 1, 4, 8])
@pytest.mark.parametrize("name", ["baseline", "clip_user", "optimal"])
def test_the_largest_counts_do_not_overflow(name: str, up: int) -> None:
    """As many records of a user as the pass over the records allows, all at the bounds."""
    count, users = 2**25 - 1, 8
    check_size(count, LATTICE)
    public, aggregate = full(users, count, np.where(np.arange(users) < up, 2**BITS, 0))
    parameters: Parameters = {}
    if name == "clip_user":
        parameters = {"cap": np.array([count - 1]), "kept": np.ones(users, dtype=np.int64)}
    if name == "optimal":
        parameters = {"part": np.full(users, 2**PART - 1)}
    weights = method_of(name, {}).weigh(public, np.array([0]), parameters)
    moments = WeightedMoments(weights, aggregate, linear=True)
    share = Fraction(up, users)
    part = 1 - Fraction(1, 2**PART) if name == "optimal" else Fraction(1)
    centre = part * (share - Fraction(1, 2))
    added = (1 - part) * part
    assert fraction(moments.mean("")[0]) == centre + Fraction(1, 2)
    assert fraction(moments.second_moment()[0]) == part
    assert fraction(moments.variance()[0]) == part - 4 * centre**2 + added
    direct = WeightedMoments(weights, aggregate).mean("")[0]
    assert fraction(direct) == centre + Fraction(1, 2)


def test_nothing_private_is_shown() -> None:
    """Moments print their public weights only."""
    case = Case(Counts.from_counts(["a"], [0], [1]), [[777_777]], "baseline", {})
    assert str(777_777 - 2 ** (BITS - 1)) not in repr(case.moments())
