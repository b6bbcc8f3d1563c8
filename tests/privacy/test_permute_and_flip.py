"""Private selections: scores by brute force, probabilities by enumeration, draws by statistics."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cells.mechanisms import ranges as private_ranges
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans, ends
from shoal.data.aggregate import Aggregate
from shoal.data.value_lattice import Bounds, Lattice
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.noise import OperatingSystem
from tests.support import selections

TOP = 8


def middle_by_hand(values: list[int], bins: int, top: int) -> list[int]:
    """Score of each bin, by counting."""
    middles = [(2 * b + 1) * top / (2 * bins) for b in range(bins)]
    where = [min(range(bins), key=lambda b: abs(v - middles[b])) for v in values]
    return [-max(sum(w < b for w in where), sum(w > b for w in where)) for b in range(bins)]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(1, 7))
def test_middle_scores_count_on_both_sides(values: list[int], bins: int) -> None:
    """Against a count by hand, away from the borders of bins, where both midpoints are nearest."""
    values = [v for v in values if (v * bins) % 1000 or v in (0, 1000)] or [1]
    found = selection.middle_scores(np.array(values), bins, 1000)
    assert found.tolist() == middle_by_hand(values, bins, 1000)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(0, 9))
def test_quantile_scores_are_distances_of_ranks(values: list[int], rank: int) -> None:
    """0 between #{y < t} and #{y <= t}, else how far away the rank is."""
    candidates = np.arange(10)
    found = selection.quantile_scores(np.array(values), rank * selection.UNIT, candidates)
    for t in range(10):
        below, upto = sum(v < t for v in values), sum(v <= t for v in values)
        assert found[t] == -selection.UNIT * max(below - rank, rank - upto, 0)


def scores_of(kind: str, values: tuple[int, ...]) -> np.ndarray:
    """Scores of one kind for the values of single users."""
    numbers = np.array(values)
    if kind == "middle":
        return selection.middle_scores(numbers, 3, TOP) * selection.UNIT
    rank = 2 * selection.UNIT + 100
    return selection.quantile_scores(numbers, rank, np.arange(TOP + 1))


@pytest.mark.parametrize("kind", ["middle", "quantile"])
def test_one_value_moves_no_score_by_more_than_one(kind: str) -> None:
    """Over all data sets of 4 values and all changes of one, and 1 is attained."""
    most = 0
    for rest in itertools.product(range(0, TOP + 1, 2), repeat=3):
        found = [scores_of(kind, (*rest, own)) for own in range(TOP + 1)]
        most = max(most, *(int(np.abs(a - b).max()) for a, b in itertools.pairwise(found)))
        stacked = np.stack(found)
        most = max(most, int((stacked.max(axis=0) - stacked.min(axis=0)).max()))
    assert most == selection.UNIT


@given(
    st.lists(st.integers(-4, 0), min_size=2, max_size=5),
    st.lists(st.integers(-1, 1), min_size=5, max_size=5),
    st.floats(0.5, 8),
)
def test_a_selection_costs_no_more_than_accounted(
    scores: list[int], moves: list[int], scale: float
) -> None:
    """Exact probabilities of scores 1 apart differ by at most exp(2/scale)."""
    one = np.array(scores)
    other = one + np.array(moves[: len(scores)])
    ratio = selections.by_permutations(one, scale) / selections.by_permutations(other, scale)
    accounted = float(selection.loss(1, scale))
    assert ratio.max() <= math.exp(accounted) * (1 + 1e-9)


def test_the_accounted_loss_of_a_selection_is_nearly_attained() -> None:
    """A candidate that rises while all its rivals fall gains exp(2/scale)."""
    one, other = np.array([-6, *[0] * 50]), np.array([-5, *[-1] * 50])
    first = selections.probabilities(one, 2.0)[0]
    second = selections.probabilities(other, 2.0)[0]
    assert math.isclose(math.log(second / first), float(selection.loss(1, 2.0)), rel_tol=1e-9)


def test_draws_of_the_operating_system_follow_permute_and_flip() -> None:
    """2,000 draws over 4 candidates: within 6.2 standard errors, which 2 wrong scales are not."""
    scores, scale, size = np.array([0, -2, -3, -7]), 2.0, 2_000
    draws = [OperatingSystem().select(scores, scale, 0) for _ in range(size)]
    found = np.bincount(draws, minlength=4) / size

    def apart(wrong: float) -> float:
        truth = selections.by_permutations(scores, scale * wrong)
        return float((np.abs(found - truth) / np.sqrt(truth * (1 - truth) / size)).max())

    assert apart(1) < 6.2
    assert apart(1.5) > 6.2
    assert apart(1 / 1.5) > 6.2


def test_simulated_draws_follow_permute_and_flip() -> None:
    """As above, from NumPy's generator."""
    scores, size = np.array([0, -1, -3]), 5_000
    draws = [shoal.Simulated(seed).select(scores, 2.0, 3) for seed in range(size)]
    truth = selections.by_permutations(scores, 2.0)
    error = np.sqrt(truth * (1 - truth) / size)
    assert (np.abs(np.bincount(draws, minlength=3) / size - truth) < 6.2 * error).all()


@pytest.mark.parametrize("halvings", [0, 1, 4, 10])
def test_candidates_cover_the_range_at_every_width(halvings: int) -> None:
    """Whole-number ends inside 0..top, even spans, and every point within a quarter of a centre."""
    top = 1 << 20
    low, high, steps = selection.intervals(halvings, top)
    assert low.min() == 0
    assert high.max() == top
    assert ((high - low) % 2 == 0).all()
    for step in range(2 * halvings + 1):
        here = steps == step
        span = int((high - low)[here][0])
        assert math.isclose(span / top, 2 ** (-step / 2), rel_tol=0.01)
        assert np.diff(low[here]).max(initial=0) <= span // 4 + 1


@pytest.mark.parametrize("cells", [1, 2], ids=["widened", "plain"])
@pytest.mark.parametrize("bits", [1, 3, 20])
def test_adaptive_scores_count_weight_inside(cells: int, bits: int) -> None:
    """Against a loop over candidates and users, also where widths coincide on a coarse lattice."""
    rng = np.random.default_rng(bits)
    size = 12
    users = np.tile(np.arange(size), cells)
    counts = rng.integers(1, 9, size * cells)
    public = shoal.Counts.from_counts(users, np.repeat(np.arange(cells), size), counts)
    method, every = method_of("adaptive"), np.arange(cells)
    parameters = method.parameters(public, every, np.full(cells, 20.0), bits)
    design = method.weigh(public, every, parameters)
    assert design.widened == (cells == 1)
    sums = rng.integers(0, (public.count << bits) + 1)
    centred = sums - (public.count << (bits - 1))
    lattice = Lattice(Bounds(0, 1), bits)
    sums_of_users = Aggregate(public.memberships, lattice, centred, np.zeros_like(centred))
    contributions = PrivateMeans(design, sums_of_users)
    low, high, steps = selection.intervals(10, contributions.top)
    found = private_ranges._votes_inside(contributions, low, high, steps)
    say = private_ranges._votes(design)
    for at in rng.choice(len(low), 300).tolist():
        lows, highs = ends(design, design.cell, Interval(low[[at] * cells], high[[at] * cells]))
        inside = (contributions.means >= lows) & (contributions.means <= highs)
        assert found[at] == say[inside].sum()
