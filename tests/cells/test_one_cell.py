"""`shoal.mean`: one cell, one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal import mean
from shoal.errors import DataError, InputError, ShoalError
from tests.support.loop import loop_over
from tests.support.methods import MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Callable


NAMES = [*MECHANISMS, "auto"]
CALLS: dict[str, Callable[..., mean.Estimate]] = {name: getattr(mean, name) for name in NAMES}
COUNTS = np.random.default_rng(0).geometric(0.1, 300)
USERS = np.repeat(np.arange(300), COUNTS)
VALUES = np.random.default_rng(1).normal(20, 8, len(USERS))
TRUTH = float(np.clip(VALUES, 0, 65).mean())


@pytest.mark.parametrize("name", NAMES)
def test_with_a_large_epsilon_the_estimate_is_the_mean(name: str) -> None:
    """Every mechanism finds the mean of its bounded contributions, up to what bounding costs."""
    found = CALLS[name](VALUES, USERS, bounds=(0, 65), epsilon=1000, confidence=1 - 1e-10)
    assert abs(found.value - TRUTH) < 1.5
    assert found.epsilon <= 1000
    assert found.interval[0] <= TRUTH <= found.interval[1]
    assert not found.simulated
    assert found.mechanism in {name, "user_clipped"}
    assert name.replace("auto", "user_clipped") in str(found)


def test_auto_for_the_worst_case() -> None:
    """The other objective is the mechanism with the least certificate."""
    found = mean.auto(VALUES, USERS, bounds=(0, 65), epsilon=1, objective="worst_case")
    assert found.mechanism == "worst_case_optimal"
    assert found.range is None


BAD: list[tuple[dict[str, Any], str]] = [
    ({"values": VALUES[:-1]}, "one value and one user"),
    ({"values": np.where(np.arange(len(VALUES)) == 3, np.nan, VALUES)}, "missing or infinite"),
    ({"values": np.where(np.arange(len(VALUES)) == 3, np.inf, VALUES)}, "missing or infinite"),
    ({"values": ["secret"] * len(VALUES)}, "not real numbers"),
    ({"values": np.ma.masked_less(VALUES, np.median(VALUES))}, "masked ones"),
    ({"values": [], "users": []}, "there are none"),
    ({"users": [None, *USERS[1:].tolist()]}, "null"),
    ({"bounds": (65, 0)}, "lower one first"),
    ({"epsilon": 0}, "epsilon"),
    ({"confidence": 1}, "confidence"),
    ({"tick_bits": 99}, "tick bits"),
    ({"noise": 3}, "noise has the type int"),
]


@loop_over(("wrong", "words"), BAD)
@loop_over("name", ["baseline", "auto"])
def test_bad_input_is_refused_in_one_line(name: str, wrong: dict[str, Any], words: str) -> None:
    """With what is allowed and without any value."""
    arguments = {"values": VALUES, "users": USERS, "bounds": (0, 65), "epsilon": 1, **wrong}
    values, users = arguments.pop("values"), arguments.pop("users")
    with pytest.raises(ShoalError, match=words) as raised:
        CALLS[name](values, users, **arguments)
    text = str(raised.value)
    assert "secret" not in text
    assert "\n" not in text
    assert raised.value.__cause__ is None


@loop_over("name", NAMES)
@loop_over(
    ("values", "users"),
    [([3.0], [1]), ([3.0] * 50, list(range(50))), ([0.0, 65.0], [1, 1]), ([1e300, -1e300], [1, 2])],
)
@loop_over("epsilon", ["1e-9", "1e6"])
def test_edges(name: str, values: list[float], users: list[int], epsilon: str) -> None:
    """Tiny data and extreme epsilons give an estimate within the bounds, or a plain refusal."""
    try:
        found = CALLS[name](values, users, bounds=(0, 65), epsilon=epsilon)
    except InputError as error:
        assert "lattice" in str(error)  # noqa: PT017
        return
    assert 0 <= found.value <= 65
    assert found.epsilon <= float(epsilon)
    assert 0 <= found.interval[0] <= found.interval[1] <= 65


def test_vectors_of_the_ball() -> None:
    """The mean of vectors with |x|_1 <= 1, up to the stated error; epsilon is never exceeded."""
    rng = np.random.default_rng(4)
    points = rng.dirichlet([1, 2, 3], len(USERS)) * rng.random((len(USERS), 1))
    truth = points.mean(axis=0)
    for epsilon in (0.5, 3.0, 100.0):
        errors = []
        for seed in range(20):
            found = mean.vector(
                points, USERS, bounds=(0, 1), epsilon=epsilon, noise=shoal.Simulated(seed)
            )
            errors.append(float(np.abs(np.array(found.value) - truth).sum()))
            assert found.epsilon <= epsilon
        # The mean of 20 l1 norms of noise is within half of its expectation.
        assert np.mean(errors) <= 1.5 * found.worst_case_error
    assert np.mean(errors) < 0.05


def test_vectors_in_a_box_are_numbers_one_by_one() -> None:
    """Each with its part of epsilon."""
    points = np.stack([VALUES, 65 - VALUES], axis=1)
    found = mean.vector(points, USERS, bounds=(0, 65), epsilon=4, domain="box")
    assert found.epsilon <= 4
    assert abs(found.value[0] - TRUTH) < 6
    assert len(found.low) == len(found.high) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": VALUES}, "2 or more columns"),
        ({"values": np.full((len(USERS), 2), np.nan)}, "missing"),
        ({"values": [["secret", 1]] * len(USERS)}, "not real numbers"),
        ({"values": np.ones((3, 2))}, "one user for each record"),
        ({"bounds": (1, 2)}, "ball"),
        ({"domain": "sphere"}, "ball, box"),
    ],
)
def test_bad_vectors_are_refused(wrong: dict[str, Any], words: str) -> None:
    """In one line, without a value."""
    points = np.stack([VALUES, VALUES], axis=1)
    arguments = {"values": points, "bounds": (0, 65), "epsilon": 1, **wrong}
    values = arguments.pop("values")
    with pytest.raises((InputError, DataError), match=words) as raised:
        mean.vector(values, USERS, **arguments)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("far", [1e308, -1e308, 5e-324, 1e200, 0.0])
def test_no_vector_however_far_outside_moves_more_than_its_share(far: float) -> None:
    """One record of any size moves the estimate by no more than the sensitivity."""
    points, users = np.full((1000, 2), 0.25), np.arange(1000)
    noise = shoal.Simulated(1)
    one = mean.vector(points, users, bounds=(0, 0.5), epsilon=1.0, noise=noise)
    points[0] = [far, far]
    other = mean.vector(points, users, bounds=(0, 0.5), epsilon=1.0, noise=noise)
    moved = sum(abs(a - b) for a, b in zip(one.value, other.value, strict=True))
    assert moved <= 2 * 0.5 / 1000 * (1 + 1e-3)
    if far > 1:
        # Scaled to the ball, such a record is half in each number.
        assert moved < 1e-5


@pytest.mark.parametrize("tick_bits", [1, 8, 20])
@pytest.mark.parametrize("name", ["baseline", "adaptive", "array_averaging"])
def test_typical_intervals_know_about_rounding(name: str, tick_bits: int) -> None:
    """With hardly any noise, what ticks and steps round is inside."""
    users = np.repeat(np.arange(100), 5)
    for seed in range(8):
        values = np.full(500, 10 * np.random.default_rng(seed).random())
        asked = {"epsilon": 1e6, "tick_bits": tick_bits, "noise": shoal.Simulated(seed)}
        found = CALLS[name](values, users, bounds=(0, 10), **asked)
        assert found.typical_interval[0] <= values[0] <= found.typical_interval[1]


def test_counts_beyond_64_bits_are_refused() -> None:
    """Sums of ticks that could wrap are never planned, with any mechanism."""
    counts = shoal.Counts.from_counts([1, 2, 3], ["a"] * 3, [2**33, 1, 1])
    for name in [*MECHANISMS, "balanced", "equalised"]:
        with pytest.raises(InputError, match=r"a user has .* records in one cell"):
            shoal.plan(counts, bounds=(0, 1), epsilon=1, method=name, uninformative="keep")
    few = shoal.plan(
        counts, method="balanced", bounds=(0, 1), epsilon=1, tick_bits=8, uninformative="keep"
    )
    assert few.epsilon <= 1


@loop_over("epsilon", ["1e400", "5e-324", 1e13, 0, "x"])
@loop_over("domain", ["ball", "box"])
def test_absurd_epsilons_for_vectors_are_refused(epsilon: Any, domain: Any) -> None:
    """As for numbers."""
    with pytest.raises(InputError, match="epsilon"):
        mean.vector(np.full((10, 2), 0.1), range(10), bounds=(0, 1), epsilon=epsilon, domain=domain)


def test_the_threshold_of_sums_counts_as_noise() -> None:
    """Akmv's noise may be as wide as the bounds; such a cell is left out."""
    counts = shoal.Counts.from_counts([0, 1], ["a", "a"], [100, 100])
    with pytest.raises(InputError, match="the plan would have no cell"):
        shoal.plan(counts, bounds=(0, 10), epsilon=1, method="akmv", min_users=1)


def test_a_typical_interval_is_never_a_point_at_the_bounds() -> None:
    """An estimate far outside the bounds has the certified interval, not an end."""
    values = np.full(40, 48.0)
    asked: dict[str, Any] = {"bounds": (0, 100), "epsilon": 0.02}
    found = [
        mean.baseline(values, np.arange(40), **asked, noise=shoal.Simulated(seed))
        for seed in range(200)
    ]
    wide = [each.typical_interval[1] - each.typical_interval[0] for each in found]
    assert min(wide) > 0
    covered = [each.typical_interval[0] <= 48 <= each.typical_interval[1] for each in found]
    # 166 of 200 or fewer have a chance below 1e-9 if each has 95%.
    assert sum(covered) > 166
