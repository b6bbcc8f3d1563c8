"""Caps against a search over all whole numbers, in exact arithmetic."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.cells.mechanisms import caps
from shoal.errors import InputError
from shoal.theory.user_clipping import ALONE, TOGETHER

several_counts = st.lists(st.integers(1, 40), min_size=1, max_size=10)
budgets = st.one_of(st.floats(0.001, 50), st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]))


def kept(several: list[int], cap: int) -> int:
    """K(m)."""
    return sum(min(m, cap) for m in several)


def least(several: list[int], cost: Callable[[int], Fraction]) -> int:
    """The smallest whole cap, from 1 to the largest count, of least cost."""
    return min(range(1, max(several) + 1), key=cost)


@given(several=several_counts)
def test_median_is_the_upper_half(several: list[int]) -> None:
    """The ceil(L/2)-th largest; half of the users or more reach it, which halves the best gain."""
    found = caps.median(np.array(several))
    assert found == sorted(several, reverse=True)[math.ceil(len(several) / 2) - 1]
    assert Fraction(found, kept(several, found)) <= Fraction(2, len(several))


@given(several=several_counts)
@example(several=[1, 1, 10])
@example(several=[1, 3, 4])
def test_levy_over_all_whole_caps(several: list[int]) -> None:
    """Squares are rational, so that ties are ties."""
    best = least(several, lambda cap: Fraction(-(kept(several, cap) ** 2), cap))
    assert caps.levy(np.array(several)) == best
    assert best in several


@given(several=several_counts, epsilon=budgets)
@example(several=[1, 2], epsilon=2.0)
@example(several=[1, 1, 2], epsilon=1.0)
def test_minimax_over_all_whole_caps(several: list[int], epsilon: float) -> None:
    """The smallest cap of least cost is one of the counts."""
    n, dual = sum(several), Fraction(epsilon)
    best = least(
        several,
        lambda cap: Fraction(-kept(several, cap), n) + Fraction(cap, kept(several, cap)) / dual,
    )
    assert caps.minimax(np.array(several), epsilon) == best
    assert best in several


@given(several=several_counts)
@example(several=[1, 1, 10])
@example(several=[7])
@example(several=[1, 2, 2, 3])
@example(several=[1, 1, 2, 2])
def test_surrogate_over_all_whole_caps(several: list[int]) -> None:
    """The mean count, its neighbours, or a count above it."""
    n, users, high = sum(several), len(several), max(several)
    best = least(
        several,
        lambda cap: (
            Fraction(-kept(several, cap), n) + max(Fraction(cap), Fraction(n, users)) / high
        ),
    )
    assert caps.surrogate(np.array(several)) == best


def test_huge_counts_need_no_search() -> None:
    """Caps of billions, exactly."""
    counts = np.array([1, 2, 3, 10**12])
    assert caps.levy(counts) == caps.minimax(counts, 9.0) == 10**12
    assert caps.surrogate(counts) == 250_000_000_002
    assert caps.choose(10**15, counts, 1.0) == 10**12


def test_choose_by_name_and_by_number() -> None:
    """Each name is its function; numbers above the largest count act as it."""
    counts = np.array([3, 9, 4, 4, 1])
    assert caps.choose("median", counts, 1.0) == caps.median(counts) == 4
    assert caps.choose("levy", counts, 1.0) == caps.levy(counts)
    assert caps.choose("minimax", counts, 0.7) == caps.minimax(counts, 0.7)
    assert caps.choose("surrogate", counts, 1.0) == caps.surrogate(counts)
    chosen = [caps.choose(cap, counts, 1.0) for cap in (1, 2, 9, 10, 10**30)]
    assert chosen == [1, 2, 9, 9, 9]
    assert caps.choose(np.int64(5), counts, 1.0) == 5


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_minimax_needs_a_budget(epsilon: float) -> None:
    """Only numbers above 0."""
    with pytest.raises(InputError, match="epsilon is"):
        caps.choose("minimax", np.array([1, 2]), epsilon)


def expected(count: np.ndarray, cap: int, loss: float, penalty: float) -> float:
    """The error of one cell with one cap, term by term."""
    capped = np.minimum(count, cap)
    apart = capped / capped.sum() - count / count.sum()
    noise = 3.5 * (capped / capped.sum()).max() / loss
    return float(np.sqrt(noise**2 + 0.64 * (apart**2).sum()) + penalty * np.abs(apart).sum() / 2)


@given(
    count=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    loss=st.floats(0.01, 100),
    penalty=st.sampled_from([ALONE, TOGETHER]),
)
def test_no_step_has_a_smaller_error(count: list[int], loss: float, penalty: float) -> None:
    """Of the geometric steps between the least and the largest count, two cells at once."""
    counts = np.array(count)
    twice = np.concatenate([counts, counts[::-1] * 3])
    cell = np.repeat([0, 1], len(counts))
    found = caps.of_vectors(cell, twice, 2, np.array([loss, loss]), penalty=penalty, width=3.5)
    for at, each in enumerate((counts, counts * 3)):
        low, high = int(each.min()), int(each.max())
        steps = {round(low * (high / low) ** (step / 13)) for step in range(14)}
        assert int(found[at]) in steps
        least = min(expected(each, step, loss, penalty) for step in steps)
        assert expected(each, int(found[at]), loss, penalty) <= least * (1 + 1e-12)


@given(counts=st.lists(st.integers(1, 50), min_size=1, max_size=30), epsilon=st.floats(0.05, 8))
def test_exchangeable_caps_have_the_least_regret(counts: list[int], epsilon: float) -> None:
    """Of all counts as caps, over users who differ little or much; two cells at once."""
    m = np.array(counts)

    def error(cap: int, between: float) -> float:
        weight = np.minimum(m, cap) / np.minimum(m, cap).sum()
        spread = between + (1 - between) / m
        apart = math.sqrt(float(((weight - m / m.sum()) ** 2 * spread).sum()))
        noise = weight.max() * 6 * math.sqrt(float((weight * spread).sum())) / epsilon
        return noise + math.sqrt(2 / math.pi) * apart

    errors = np.array([[error(cap, part) for cap in counts] for part in (0.0, 0.1, 0.3, 0.6)])
    least = np.maximum(errors.min(axis=1, keepdims=True), 1e-300)
    regret = (errors / least).max(axis=0)
    cell, both = np.repeat([0, 1], len(m)), np.concatenate([m, m[::-1]])
    for cap in caps.exchangeable(cell, both, 2, np.full(2, epsilon)).tolist():
        assert regret[counts.index(cap)] <= regret.min() * (1 + 1e-6)
