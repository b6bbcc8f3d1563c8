"""The order of rows and unbiased means: with keys one draw, without keys one distribution."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import unbiased
from shoal.means.one_value_per_user import UserValues
from tests.support.tape import Tape

pytestmark = pytest.mark.audit

MOMENTS = (unbiased.Moment(2, 1), unbiased.Moment(8, 1.8))
RANGE = {"interval": (-1.0, 1.0)}
BOTH = {"epsilon": 1, "delta": "1e-3"}
WISHES: dict[str, tuple[str, dict[str, Any]]] = {
    "clipped": ("clipped_mean", {**RANGE, "bias": 0.05, "epsilon": 1}),
    "sampled": ("sampled_mean", {**RANGE, "delta": "1/2", "publish_values": True}),
    "residual": ("clipped_plus_residual", {**RANGE, **BOTH, "publish_values": True}),
    "reused": ("symmetric_mean", {**BOTH, "reuse": True}),
    "split": ("symmetric_mean", {**BOTH, "reuse": False}),
}
wide = st.floats(allow_nan=False, allow_infinity=False, width=64)


def plan(name: str, users: Any, **more: Any) -> unbiased.UnbiasedPlan:
    """A plan of one of the methods."""
    method, wanted = WISHES[name]
    return unbiased.plan(method, users, moment=MOMENTS, **wanted, **more)


def orders(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Shuffled, sorted, sorted the other way, and by a hash."""
    rng = np.random.default_rng(3)
    by_hash = np.argsort(np.modf(np.abs(values) * 7919.1)[0])
    return [rng.permutation(len(values)), np.argsort(values), np.argsort(-values), by_hash]


@pytest.mark.parametrize("weights", ["equal", "counts"])
@pytest.mark.parametrize("name", WISHES)
def test_with_keys_every_order_of_rows_gives_the_same_draw(name: str, weights: str) -> None:
    """Tied users with values far apart; all that reaches noise is equal to the last bit."""
    rng = np.random.default_rng(5)
    who = np.repeat(rng.permutation(600), 1 + np.arange(600) % 3)
    values = rng.normal(size=len(who)) * 10.0 ** rng.integers(-9, 9, len(who))
    found = plan(name, UserValues.of(values, who).count, weights=weights)
    user_values, tape = UserValues.of(values, who), Tape()
    drawn = found.estimator.release(user_values.value, tape)
    for order in orders(values):
        other, again = UserValues.of(values[order], pa.array(who[order], pa.int32())), Tape()
        assert np.array_equal(other.value, user_values.value)
        assert np.array_equal(other.count, user_values.count)
        assert found.estimator.release(other.value, again) == drawn
        assert again.asked == tape.asked


@pytest.mark.parametrize("name", WISHES)
def test_without_keys_the_law_is_that_of_any_order(name: str) -> None:
    """Rows that take their fair words along give the same integers in every order.

    Words are independent and alike, so dealing them to rows in another order changes no
    probability: the distribution of a draw is a function of the values' multiset, whatever their
        order.
    """
    found = plan(name, 400)
    values = np.random.default_rng(6).normal(size=400)
    tape = Tape(rows=np.arange(400))
    drawn = found.estimator.release(UserValues.of(values).value, tape)
    for order in orders(values):
        again = Tape(rows=order)
        assert found.estimator.release(UserValues.of(values[order]).value, again) == drawn
        assert again.asked == tape.asked


@given(st.lists(wide, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_a_users_mean_is_the_same_in_every_order_and_odd(values: list[float], random: Any) -> None:
    """To the last bit, for any doubles; and mirrored values have the mirrored mean."""
    shuffled = random.sample(values, len(values))
    (mean,) = UserValues.of(values, [0] * len(values)).value
    assert UserValues.of(shuffled, [0] * len(values)).value.tolist() == [mean]
    assert UserValues.of([-x for x in values], [0] * len(values)).value.tolist() == [-mean]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_a_users_mean_is_the_mean(values: list[float]) -> None:
    """Correct to roundings of the largest value; a lone value is its own mean."""
    (mean,) = UserValues.of(values, ["a"] * len(values)).value
    largest = max(abs(x) for x in values)
    assert abs(mean - sum(values) / len(values)) <= largest * 2.0**-45
    assert UserValues.of(values, list(range(len(values)))).value.tolist() == values


def test_values_that_cancel_leave_no_trace_of_their_order() -> None:
    """2^500, 1 and -2^500 add up to 0 or 1 by order in floating point."""
    found = {
        float(UserValues.of([2.0**500, -(2.0**500), 1.0][at:] + [2.0**500, -(2.0**500), 1.0][:at],
                        ["a"] * 3).value[0])
        for at in range(3)
    }  # fmt: skip
    assert len(found) == 1


def test_people_of_equal_counts_come_by_their_keys() -> None:
    """Not in the order in which their rows appear."""
    one = UserValues.of([1.0, 2.0, 3.0, 4.0], ["c", "a", "b", "b"])
    assert one.value.tolist() == [2.0, 1.0, 3.5]
    assert one.count.tolist() == [1, 1, 2]


def test_a_release_is_the_same_from_every_order() -> None:
    """The whole manifest, from a simulation on shuffled records."""
    rng = np.random.default_rng(9)
    who, values = rng.integers(0, 300, 1000), rng.normal(size=1000)
    found = plan("split", UserValues.of(values, who).count)
    noise = shoal.Simulated(4)
    one = found.release(values, who, noise=noise)
    for order in orders(values):
        assert found.release(values[order], who[order], noise=noise).document == one.document
