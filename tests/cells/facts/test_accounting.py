"""Losses of several statistics in several cells, against all data sets of small counts.

Every data set is carried up to the whole lattice steps that noise is added to; neighbours differ in
all values of one user. Noise then costs a user the l1 distance (Laplace) or the l2 distance
(Gaussian) of the two vectors of steps.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import shoal
from shoal.cells.estimates.draw import fractions, to_steps
from shoal.cells.facts.accounting import Cost, ReleasedStatistics
from shoal.cells.mechanisms.cell_statistics import statistics
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.ranges import Range
from shoal.cells.mechanisms.weights import Weights
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.privacy.law import GAUSSIAN, LAPLACE
from tests.support import flights, made_counts
from tests.support.loop import loop_over

BITS, STEPS = 20, 24
LATTICE = Lattice(Bounds(0, 1), BITS)
SHARE = "share_above(0.55)"
# Quarters of the width, in centred ticks.
QUARTERS = tuple(quarter << (BITS - 2) for quarter in (-2, -1, 0, 1, 2))
ENDS = tuple(tick << (BITS - 1) for tick in (-1, 0, 1))
Sums = tuple[int, int, int]


def steps_of(
    numbers: ReleasedStatistics, aggregate: Aggregate, scales: Sequence[float], bits: int
) -> list[int]:
    """The lattice numbers before noise."""
    private = zip(fractions(numbers, aggregate), scales, strict=True)
    return [to_steps(part, whole, scale, bits) for (part, whole), scale in private]


@dataclass(frozen=True)
class Case:
    """Counts, how users are bounded, and what is released with how much noise."""

    counts: dict[tuple[str, int], int]
    names: tuple[str, ...]
    scales: tuple[float, ...]
    method: str = "baseline"
    parameters: dict[str, list[int]] = field(default_factory=dict)
    joint: bool = False
    values: tuple[int, ...] = QUARTERS
    bits: int = STEPS
    known: dict[tuple[Sums, ...], list[int]] = field(default_factory=dict)

    @cached_property
    def public_counts(self) -> Counts:
        """The counts."""
        users, cells = zip(*self.counts, strict=True)
        return Counts.from_counts(users, cells, list(self.counts.values()))

    @cached_property
    def weights(self) -> Weights:
        """Of all cells."""
        parameters = {name: np.array(each) for name, each in self.parameters.items()}
        every = np.arange(self.public_counts.n_cells)
        return method_of(self.method).weigh(self.public_counts, every, parameters)

    def numbers(self, *, gaussian: bool = False) -> ReleasedStatistics:
        """What is accounted for."""
        names = statistics(self.names)
        return ReleasedStatistics(
            self.weights, names, joint=self.joint, law=GAUSSIAN if gaussian else LAPLACE
        )

    def losses(self, *, gaussian: bool = False) -> NDArray[np.float64]:
        """What users are charged: steps, or squares of steps."""
        delta = Fraction(1, 10**6) if gaussian else Fraction(0)
        cost = Cost(self.numbers(gaussian=gaussian), Range(), {}, np.zeros(0), self.bits, delta)
        found = cost.losses(np.array(self.scales)).of_users
        return found * (2 * 4.0**self.bits if gaussian else 2.0**self.bits)

    def steps(self, sums: tuple[Sums, ...]) -> list[int]:
        """The lattice numbers of a data set before noise, by the code that releases them."""
        if sums in self.known:
            return self.known[sums]
        centred, squares, above = (np.array(each) for each in zip(*sums, strict=True))
        members = self.public_counts.memberships
        aggregate = Aggregate(members, LATTICE, centred, squares, {SHARE: above})
        self.known[sums] = steps_of(self.numbers(), aggregate, self.scales, self.bits)
        return self.known[sums]

    def memberships(self) -> list[list[Sums]]:
        """What the records of each membership can add up to."""
        return [sorted(every_sum(m, self.values)) for m in self.public_counts.count.tolist()]

    def distances(self, user: int) -> Iterator[tuple[int, float]]:
        """The l1 distance, and the square of the l2 distance, of all neighbours in one user."""
        own = self.public_counts.user == user
        choices = self.memberships()
        others = [c for c, mine in zip(choices, own, strict=True) if not mine]
        mine = [c for c, mine in zip(choices, own, strict=True) if mine]
        for rest in itertools.product(*others):
            found = []
            for these in itertools.product(*mine):
                sums, left = [(0, 0, 0)] * len(own), iter(rest)
                ours = iter(these)
                sums = [next(ours) if mine else next(left) for mine in own]
                found.append(self.steps(tuple(sums)))
            table = np.unique(np.array(found), axis=0)
            apart = np.abs(table[:, None] - table)
            yield int(apart.sum(axis=2).max()), float((apart.astype(float) ** 2).sum(axis=2).max())


def every_sum(records: int, values: tuple[int, ...]) -> set[Sums]:
    """Sums of values, of squares and of those above the threshold, of so many records."""
    edge = int(0.05 * 2**BITS)
    return {
        (sum(each), sum(y * y for y in each), sum(y > edge for y in each) << BITS)
        for each in itertools.combinations_with_replacement(values, records)
    }


TWO = {("a", 0): 1, ("b", 0): 1, ("a", 1): 1, ("b", 1): 1}
UNEVEN = {("a", 0): 2, ("b", 0): 1, ("a", 1): 1, ("b", 1): 3}
THREE = {("a", 0): 1, ("b", 0): 1, ("c", 0): 2, ("a", 1): 2, ("c", 1): 1}
ALL = ("mean", "variance", SHARE)
EIGHTHS = (0.5, 0.25, 0.125, 0.5, 0.25, 1.0)
# Second moments with half the noise (over U^2) of first moments: the worst pair is 1/2 and -1/4.
JOINT = (0.25, 0.5, 0.5, 1.0, 0.25, 0.5)
CLIPPED = {"cap": [1, 2], "kept": [1, 1, 1, 1]}
SUPPRESSED = {"cap": [9, 1], "kept": [1, 1, 0, 1, 1]}
CASES = [
    Case(TWO, ALL, EIGHTHS),
    Case(TWO, ALL, JOINT, joint=True),
    Case(UNEVEN, ALL, EIGHTHS, values=ENDS),
    Case(UNEVEN, ALL, JOINT, joint=True, values=ENDS),
    Case(UNEVEN, ("variance",), (0.7, 0.3), values=ENDS),
    Case({("a", 0): 1, ("b", 0): 2, ("b", 1): 1, ("c", 1): 1}, ("mean",), (0.3, 0.7), bits=2),
    Case({("a", 0): 3, ("b", 0): 1, ("a", 1): 1}, ("mean",), (0.9, 0.41), bits=3),
    Case(UNEVEN, ALL, EIGHTHS, "clip_user", CLIPPED, values=ENDS),
    Case(UNEVEN, ALL, JOINT, "clip_user", CLIPPED, joint=True, values=ENDS),
    Case(THREE, ("mean", "variance"), (0.3, 0.9, 0.41, 0.77), "clip_user", SUPPRESSED, values=ENDS),
    Case(TWO, ALL, EIGHTHS, "optimal", {"part": [2**15, 3 * 2**14, 2**16, 12345]}),
    Case(TWO, ALL, JOINT, "optimal", {"part": [2**15, 3 * 2**14, 2**16, 0]}, joint=True),
    Case(UNEVEN, ALL, EIGHTHS, "optimal", {"part": [7, 40000, 2**16, 50000]}, values=ENDS),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_no_user_loses_more_than_accounted(case: Case) -> None:
    """Mean, variance and share in two cells, directly and jointly, all designs."""
    laplace, gaussian = case.losses(), case.losses(gaussian=True)
    for user in range(case.public_counts.n_users):
        for steps, squares in case.distances(user):
            assert steps <= laplace[user]
            assert squares <= gaussian[user]


@pytest.mark.parametrize("case", [each for each in CASES if not each.joint and each.bits == STEPS])
def test_no_data_set_errs_by_more_than_the_bias(case: Case) -> None:
    """Every statistic of every data set against the number that noise is added to."""
    weights, scale = case.weights, np.array(case.scales)
    size, cell = weights.n_cells, case.public_counts.cell
    bound, worst = case.numbers().bias, np.zeros(len(scale))
    for sums in itertools.product(*case.memberships()):
        centred, squares, above = (
            np.bincount(cell, part, minlength=size) / case.public_counts.totals
            for part in np.array(sums, dtype=np.float64).T
        )
        mean = centred / 2**BITS
        truth = {
            "mean": mean + 1 / 2,
            "variance": 4 * (squares / 4**BITS - mean**2),
            SHARE: above / 2**BITS,
        }
        found = np.array(case.steps(sums)) / 2**STEPS * scale
        apart = found - np.concatenate([truth[name] for name in case.names])
        worst = np.maximum(worst, np.abs(apart))
    assert (worst <= bound + 2.0**-17).all()


@pytest.mark.parametrize("case", [CASES[0], CASES[1]], ids=["direct", "joint"])
def test_the_account_is_attained(case: Case) -> None:
    """Nothing is given away: some neighbours are as far apart as accounted."""
    user = 0
    steps, squares = (max(each) for each in zip(*case.distances(user), strict=True))
    accounted = case.losses()[user]
    assert accounted <= steps * (1 + 2.0**-19) + 2 * len(case.scales)
    if not case.joint:
        assert case.losses(gaussian=True)[user] <= squares * (1 + 2.0**-17)


def test_missing_mass_is_attained_too() -> None:
    """A weight 1/4 of 5/8 moves its variance most between 1/2 and -1/4."""
    one = Case(
        {("a", 0): 1, ("b", 0): 1}, ALL, (0.25, 0.5, 0.5), "optimal", {"part": [2**15, 49152]}
    )
    moved = max(steps for steps, _ in one.distances(int(one.weights.user[0])))
    accounted = one.losses()[one.weights.user[0]]
    assert moved <= accounted <= moved * (1 + 2.0**-19) + 6


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 1.0, 1.7])
def test_joint_losses_are_attained_at_every_ratio(ratio: float, *, gaussian: bool) -> None:
    """All pairs of 129 values of one record, first and second moment together."""
    ticks = tuple(int(at) for at in np.linspace(-(2 ** (BITS - 1)), 2 ** (BITS - 1), 129))
    case = Case(
        {("a", 0): 1, ("b", 0): 1}, ("mean", "variance"), (0.5, 2 * ratio), joint=True, values=ticks
    )
    rest = (0, 0, 0)
    sums = [(int(y), int(y * y), 0) for y in ticks]
    table = np.array([case.steps((each, rest)) for each in sums], dtype=np.float64)
    apart = np.abs(table[:, None] - table)
    moved = (apart**2).sum(axis=2).max() if gaussian else apart.sum(axis=2).max()
    accounted = case.losses(gaussian=gaussian)[0]
    assert moved <= accounted <= moved * 1.001


@pytest.mark.parametrize("joint", [False, True], ids=["direct", "joint"])
@pytest.mark.parametrize("bits", [0, 1, 2])
def test_rounding_to_a_coarse_lattice_is_charged(bits: int, *, joint: bool) -> None:
    """Each number is rounded on its own, by up to half of a step that is not small."""
    ticks = tuple(int(at) for at in np.linspace(-(2 ** (BITS - 1)), 2 ** (BITS - 1), 33))
    rest, extra = (0, 0, 0), 0.0
    for first, second in itertools.product((0.1, 0.13, 0.41, 0.77), repeat=2):
        case = Case(
            {("a", 0): 1, ("b", 0): 1},
            ("mean", "variance"),
            (first, second),
            joint=joint,
            values=ticks,
            bits=bits,
        )
        table = np.array([case.steps(((y, y * y, 0), rest)) for y in ticks], dtype=np.float64)
        apart = np.abs(table[:, None] - table)
        laplace, gaussian = (case.losses(gaussian=kind)[0] for kind in (False, True))
        assert apart.sum(axis=2).max() <= laplace
        assert (apart**2).sum(axis=2).max() <= gaussian
        extra = max(extra, apart.sum(axis=2).max() - (laplace - 1))
    assert bool(extra > 0) is joint


def coarse(bits: int, *, joint: bool, up: int, steps: int = STEPS) -> tuple[float, float]:
    """Steps moved and accounted when a user with 101 records is capped at 50, on coarse ticks."""
    lattice = Lattice(Bounds(0, 1), bits)
    users = ["heavy", *(f"light {at}" for at in range(150))]
    public_counts = Counts.from_counts(users, [0] * 151, [101] + [1] * 150)
    parameters = {"cap": np.array([50]), "kept": np.ones(151, dtype=np.int64)}
    weights = method_of("clip_user").weigh(public_counts, np.array([0]), parameters)
    names = ("mean", "variance") if joint else ("variance",)
    scale = np.array([0.5, 0.4] if joint else [0.5])
    numbers = ReleasedStatistics(weights, statistics(names), joint=joint)
    heavy, half = int(public_counts.count.argmax()), 2 ** (bits - 1)
    lights = np.full(151, -half)
    lights[np.flatnonzero(np.arange(151) != heavy)[:up]] = half
    found = []
    for zeros in range(102):
        for other in (-half, half, min(1 - half, 0)):
            centred, squares = lights.copy(), lights**2
            centred[heavy], squares[heavy] = (101 - zeros) * other, (101 - zeros) * other**2
            aggregate = Aggregate(public_counts.memberships, lattice, centred, squares)
            found.append(steps_of(numbers, aggregate, scale.tolist(), steps))
    table = np.array(found)
    moved = np.abs(table[:, None] - table).sum(axis=2).max()
    cost = Cost(numbers, Range(), {}, np.zeros(0), steps)
    losses = cost.losses(scale).of_users * 2.0**steps
    return float(moved), float(losses[weights.user[heavy]])


@pytest.mark.parametrize("joint", [False, True], ids=["direct", "joint"])
def test_rounded_means_of_capped_users_stay_within_the_margins(*, joint: bool) -> None:
    """With as many tick bits as a plan must have, and not with one."""
    for up, steps in itertools.product((0, 1, 2), (STEPS, 44)):
        moved, accounted = coarse(20, joint=joint, up=up, steps=steps)
        assert moved <= accounted
    assert any(
        moved > accounted for moved, accounted in (coarse(1, joint=joint, up=u) for u in (0, 1, 2))
    )


@pytest.mark.parametrize("scales", [(0.5, 0.4), (0.3, 0.37), (0.25, 0.9)])
def test_the_margin_of_two_moments_is_needed(scales: tuple[float, float]) -> None:
    """Records around the worst value, whose mean is rounded: more than without it."""
    steps, bits = 44, 20
    counts = {("heavy", 0): 101} | {(f"light {at}", 0): 1 for at in range(150)}
    parameters = {"cap": [50], "kept": [1] * 151}
    case = Case(counts, ("mean", "variance"), scales, "clip_user", parameters, True, bits=steps)
    half, heavy = 2 ** (bits - 1), int(case.public_counts.count.argmax())
    low = math.floor(-scales[1] / scales[0] / 8 * 2**bits)
    many = [(101 * low + k, (101 - k) * low**2 + k * (low + 1) ** 2, 0) for k in range(102)]
    found = []
    for own in [(101 * half, 101 * half**2, 0), *many]:
        sums = [(-half, half**2, 0)] * 151
        sums[heavy] = own
        found.append(case.steps(tuple(sums)))
    moved = np.abs(np.array(found[1:]) - found[0]).sum(axis=1).max()
    accounted = case.losses()[case.weights.user[heavy]]
    assert moved <= accounted
    assert moved > accounted / (1 + 2.0**-27)


@pytest.mark.parametrize("names", [["variance"], ["mean", "variance"]])
def test_coarse_ticks_are_refused_where_users_are_weighed(names: list[str]) -> None:
    """A variance of capped users needs 20 tick bits; where all counts in full, none."""
    public_counts = made_counts.sparse(3)
    wanted: dict[str, Any] = {"bounds": (0, 1), "epsilon": 8, "uninformative": "keep"}
    for method in ("clip_user", "optimal"):
        with pytest.raises(InputError, match="tick bits"):
            shoal.plan(public_counts, statistics=names, method=method, tick_bits=19, **wanted)
    assert (
        shoal.plan(
            public_counts, statistics=names, tick_bits=8, **{"method": "balanced", **wanted}
        ).epsilon
        <= 8
    )


def plan(names: list[str], **wanted: Any) -> shoal.Plan:
    """A plan of the made-up flights, uninformative cells included."""
    return flights.plan(statistics=names, **{"uninformative": "keep", **wanted})


@loop_over("names", [["variance"], ["share_above(400)"], ["mean", "variance"]])
@loop_over("method", ["balanced", "equalised", "uniform", "clip_user", "optimal"])
def test_epsilon_is_kept(names: list[str], method: str) -> None:
    """The exact loss, summed over the users' steps, never exceeds the epsilon."""
    made = plan(names, method=method)
    assert 0 < made.exact_epsilon <= 1
    assert made.exact_epsilon == Fraction(float(made.user_losses.max()))
    size = len(names) * len(made.planned)
    assert made.decision.scale.shape == made.worst_case_error.shape == (size,)
    assert (made.lower_bound <= made.worst_case_error).all()


@pytest.mark.parametrize("name", ["mean", "variance", "share_above(400)"])
@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform"])
def test_an_error_asked_for_is_kept(name: str, method: str) -> None:
    """In the statistic's own unit, and hardly less."""
    wanted = {"mean": 0.3 * 700, "variance": 0.3 * 700**2 / 4}.get(name, 0.2)
    made = plan([name], method=method, epsilon=None, error=wanted)
    assert wanted * 0.999 <= made.worst_case_error.max() <= wanted
