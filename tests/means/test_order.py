"""The order of rows and unbiased means: with keys one draw, without keys one distribution."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import unbiased
from shoal.means.users import UserValues, UserWeights
from tests.support.tape import Tape

pytestmark = pytest.mark.audit

MOMENTS = (unbiased.Moment(2, 1), unbiased.Moment(8, 1.8))
ASKED: dict[str, dict[str, Any]] = {
    "clipped_mean": {"interval": (-1.0, 1.0), "bias": 0.05, "epsilon": 1},
    "symmetric_mean": {"epsilon": 1, "delta": "1e-3"},
}
wide = st.floats(allow_nan=False, allow_infinity=False, width=64)


def plan(method: str, users: Any, **more: Any) -> unbiased.UnbiasedPlan:
    """A plan of one of the methods."""
    return unbiased.plan(method, users, moment=MOMENTS, **ASKED[method], **more)


def orders(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Shuffled, sorted, and sorted the other way."""
    return [np.random.default_rng(3).permutation(len(values)), *map(np.argsort, (values, -values))]


@pytest.mark.parametrize("weights", ["equal", "counts"])
@pytest.mark.parametrize("method", ASKED)
def test_with_keys_every_order_of_rows_gives_the_same_draw(method: str, weights: str) -> None:
    """Tied users with values far apart; all that reaches noise is equal to the last bit."""
    rng = np.random.default_rng(5)
    who = np.repeat(rng.permutation(600), 1 + np.arange(600) % 3)
    values = rng.normal(size=len(who)) * 10.0 ** rng.integers(-9, 9, len(who))
    user_values, tape = UserValues.of(values, who), Tape()
    found = plan(method, user_values.count, weights=weights)
    drawn = found.draw(user_values, tape)
    for order in orders(values):
        other, again = UserValues.of(values[order], pa.array(who[order], pa.int32())), Tape()
        assert np.array_equal(other.count, user_values.count)
        assert found.draw(other, again) == drawn
        assert again.asked == tape.asked


@pytest.mark.parametrize("method", ASKED)
def test_without_keys_the_law_is_that_of_any_order(method: str) -> None:
    """Rows that take their fair words along give the same integers in every order.

    Words are independent and alike, so dealing them to rows in another order changes no
    probability: the distribution of a draw is a function of the values' multiset.
    """
    found, tape = plan(method, 400), Tape(rows=np.arange(400))
    values = np.random.default_rng(6).normal(size=400)
    drawn = found.draw(UserValues.of(values), tape)
    for order in orders(values):
        again = Tape(rows=order)
        assert found.draw(UserValues.of(values[order]), again) == drawn
        assert again.asked == tape.asked


def test_users_of_equal_weight_are_mixed_evenly() -> None:
    """All orders of equal weights are as likely (chi-square, chance 1e-9), and weights stay put."""
    weights, runs = UserWeights(np.array([1, 1, 1, 1, *[2] * 50])), 4800
    seen = dict.fromkeys(itertools.permutations(range(4)), 0)
    for seed in range(runs):
        order = weights.shuffled(shoal.Simulated(seed), 9)
        seen[tuple(order[:4].tolist())] += 1
    assert (weights.number[order] == weights.number).all()
    # The quantile of 23 degrees of freedom at 1 - 1e-9; an order kept half of the time is far off.
    assert sum((count - runs / 24) ** 2 / (runs / 24) for count in seen.values()) < 90


@given(st.lists(wide, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_a_users_mean_is_the_same_in_every_order_and_odd(values: list[float], random: Any) -> None:
    """To the last bit, for any doubles, and whatever other users have."""
    shuffled = random.sample(values, len(values))

    def mean(numbers: list[float], other: float) -> float:
        return float(
            UserValues.of([*numbers, other, -other], ["a"] * len(values) + ["b"] * 2).value[0]
        )

    if len(values) < 2:
        return
    own = [UserValues.of(each, ["a"] * len(values)).value.tolist() for each in (values, shuffled)]
    assert own[0] == own[1]
    assert UserValues.of([-x for x in values], [0] * len(values)).value.tolist() == [-own[0][0]]
    assert len(values) == 2 or mean(values, 1e300) == mean(shuffled, 3.0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_a_users_mean_is_the_mean(values: list[float]) -> None:
    """Correct to roundings of the largest value; a lone value is its own mean."""
    (mean,) = UserValues.of(values, ["a"] * len(values)).value
    assert abs(mean - sum(values) / len(values)) <= max(map(abs, values)) * 2.0**-45
    assert UserValues.of(values, list(range(len(values)))).value.tolist() == values


def test_people_come_by_their_counts_and_keys() -> None:
    """One value a user, in an order of counts and keys, whatever the order of their rows."""
    one = UserValues.of([1.0, 2.0, 3.0, 4.0], ["c", "a", "b", "b"])
    assert one.value.tolist() == [2.0, 1.0, 3.5]
    assert one.count.tolist() == [1, 1, 2]
    assert "value" not in repr(one)
