"""Simulated errors and comparisons: expectations in closed form, assumptions, bad input."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

import shoal
from shoal.cells.simulation.naive import NAIVE
from shoal.cells.simulation.simulate import METHODS
from shoal.errors import InputError
from shoal.theory import exchangeable_users as typical
from shoal.theory import laplace
from tests.support.loop import loop_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.statistics

COUNTS = [1, 2, 3, 5, 8, 13, 40]


def occupancy(cells: int = 1) -> shoal.Counts:
    """The same few users in every cell."""
    size = len(COUNTS)
    users = np.tile(np.arange(size), cells)
    return shoal.Counts.from_counts(users, np.repeat(np.arange(cells), size), COUNTS * cells)


@given(st.floats(-1, 2), st.floats(0.05, 2), st.floats(-0.5, 1.5), st.floats(0, 0.4))
def test_the_expected_error_is_the_integral(
    centre: float, scale: float, truth: float, low: float
) -> None:
    """Against quadrature of |clip(c + z) - f| times the Laplace density."""
    high = low + 0.5

    def weighed(z: float) -> float:
        clipped = min(max(centre + z, low), high)
        return abs(clipped - truth) * math.exp(-abs(z) / scale) / (2 * scale)

    kinks = sorted({0.0, low - centre, high - centre, min(max(truth, low), high) - centre})
    ends = [kinks[0] - 60 * scale, *kinks, kinks[-1] + 60 * scale]
    exact = sum(integrate.quad(weighed, a, b)[0] for a, b in itertools.pairwise(ends))
    one = np.ones(1)
    found = laplace.clamped_error(centre * one, scale * one, truth * one, low * one, high * one)
    assert math.isclose(float(found[0]), exact, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.full
def test_simulated_errors_are_those_of_real_draws() -> None:
    """Closed-form expectations agree with 3,000 whole draws of every method.

    Each mean of 3,000 absolute errors is within 6.2 standard errors of the expectation.
    """
    counts = occupancy()
    normal = shoal.Normal(20.0, 8.0, 0.3)
    found = shoal.simulate(counts, normal, bounds=(0, 65), epsilon=2, repetitions=400, seed=1)
    users = np.repeat(np.arange(len(COUNTS)), COUNTS)
    names = np.repeat(counts.user, counts.count)
    for row in found.rows:
        if row.method in {*NAIVE, "balanced"}:
            continue
        errors = []
        for turn in range(3000 // len(METHODS)):
            values = normal(np.random.default_rng([9, turn]), names, np.zeros_like(names))
            estimate = getattr(shoal.mean, row.method)(
                values, names, bounds=(0, 65), epsilon=2, noise=shoal.Simulated(turn)
            )
            errors.append(abs(estimate.value - float(np.clip(values, 0, 65).mean())))
        error = float(np.std(errors)) / math.sqrt(len(errors))
        spread = 6.2 * math.hypot(error, row.standard_error)
        assert abs(float(np.mean(errors)) - row.mean_error) <= spread + 1e-9, row.method
    assert len(users) == len(names)


def test_comparisons_are_sorted_out() -> None:
    """One row a method; certificates where there are any; text, table and picture agree."""
    found = shoal.compare(occupancy(3), bounds=(0, 10), epsilon=2, repetitions=5)
    rows = found.table().to_pylist()
    assert sorted(row["method"] for row in rows) == sorted(METHODS)
    typical = [row["typical_error"] for row in rows]
    assert typical == sorted(typical)
    for row in rows:
        assert row["method"] in str(found)
        assert 0 < row["typical_error"] <= 10
        if row["certified"]:
            assert row["plain_error"] <= row["worst_case_error"] * (1 + 1e-9)
        else:
            assert row["method"] in NAIVE or row["worst_case_error"] == 10
    assert "normal values of mean 4" in str(found)


def test_a_comparison_costs_and_reads_nothing() -> None:
    """The same counts give the same comparison, with a seed."""
    one, other = (
        shoal.compare(occupancy(), bounds=(0, 1), repetitions=3, seed=4).table() for _ in range(2)
    )
    assert one.equals(other)


@pytest.mark.parametrize("epsilon", ["1/3", "0.5", 2])
def test_epsilons_as_everywhere(epsilon: str | int) -> None:
    """Fractions and decimals as text."""
    found = shoal.compare(
        occupancy(), bounds=(0, 1), epsilon=epsilon, methods=["baseline"], repetitions=2
    )
    assert found.simulation.rows[0].plan is not None
    assert found.simulation.rows[0].plan.epsilon <= found.simulation.rows[0].epsilon * (1 + 1e-12)


def test_a_comparison_names_the_function_that_draws() -> None:
    """What values are, and that those written by hand have the bounds as given."""

    def tails(rng: np.random.Generator, user: np.ndarray, cell: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(rng.normal(0, 1, user.max() + 1))[user] + 0 * cell)

    found = str(
        shoal.compare(
            occupancy(), bounds=(0, 1), methods=["baseline"], assumed=tails, repetitions=2
        )
    )
    assert "under tails;" in found
    assert "0x" not in found
    assert "by hand, with the bounds as\ngiven" in found


@pytest.mark.parametrize("wrong", [{"repetitions": 0}, {"occupancy": 3}])
def test_bad_comparisons_are_refused(wrong: dict[str, Any]) -> None:
    """With what is allowed."""
    arguments: dict[str, Any] = {"occupancy": occupancy(), "bounds": (0, 1), **wrong}
    with pytest.raises(InputError, match="allowed"):
        shoal.compare(arguments.pop("occupancy"), **arguments)


def test_a_distribution_of_ones_own() -> None:
    """Any function of (rng, user, cell)."""

    def two_kinds(
        rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        assert len(user) == len(cell)
        return np.where(user % 2 == 0, 3.0, 7.0) + rng.normal(0, 0.1, len(user))

    found = shoal.simulate(
        occupancy(), two_kinds, bounds=(0, 10), epsilon=[1, "2"], methods=["baseline"]
    )
    assert [row.epsilon for row in found.rows] == [1, 2]
    assert found.rows[0].mean_error > found.rows[1].mean_error


def short(
    rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
) -> NDArray[np.float64]:
    """One number too few."""
    return rng.random(len(user) - 1 + 0 * len(cell))


def broken(
    rng: np.random.Generator, user: NDArray[np.int64], cell: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Numbers that are none."""
    return rng.random(len(user)) * np.nan * len(cell)


@loop_over(
    "wrong",
    [
        {"repetitions": 0},
        {"repetitions": 2.5},
        {"repetitions": True},
        {"distribution": short},
        {"distribution": broken},
        {"methods": ["none"]},
        {"methods": "auto"},
        {"methods": None},
        {"methods": []},
        {"methods": [("levy",)]},
        {"methods": [("levy", 5)]},
        {"seed": -1},
        {"seed": "a"},
        {"epsilon": None},
        {"methods": [("levy", {"cap": 0})]},
        {"epsilon": 0},
        {"bounds": (1, 1)},
    ],
)
def test_bad_simulations_are_refused(wrong: dict[str, Any]) -> None:
    """With what is allowed."""
    arguments = {
        "distribution": shoal.Normal(1, 1),
        "bounds": (0, 5),
        "repetitions": 2,
        "methods": ["baseline"],
        **wrong,
    }
    distribution = arguments.pop("distribution")
    with pytest.raises(InputError, match=r"allowed|give"):
        shoal.simulate(occupancy(), distribution, **arguments)


@pytest.mark.parametrize("wrong", [(math.nan, 1, 0), (0, -1, 0), (0, 1, 2), (0, 1, -0.1)])
def test_bad_normals_are_refused(wrong: tuple[float, float, float]) -> None:
    """Deviations and parts only."""
    with pytest.raises(InputError, match="allowed"):
        shoal.Normal(*wrong)


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=40),
    st.floats(0.05, 8),
    st.sampled_from([0.0, 0.1, 0.6, 1.0]),
)
def test_errors_of_all_caps_at_once(counts: list[int], epsilon: float, between: float) -> None:
    """`typical.capped_errors` against its formula, cap by cap."""
    m = np.sort(np.array(counts))
    ranked = typical.Ranked.of(np.zeros(len(m), dtype=np.int64), m, 1)
    found = typical.capped_errors(ranked, np.array([epsilon]), between)
    for cap, error in zip(m.tolist(), found.tolist(), strict=True):
        weight = np.minimum(m, cap) / np.minimum(m, cap).sum()
        spread = between + (1 - between) / m
        apart = math.sqrt(float(((weight - m / m.sum()) ** 2 * spread).sum()))
        noise = weight.max() * typical.SPAN * math.sqrt(float((weight * spread).sum())) / epsilon
        # Close counts: the largest of equal ranks stands for all of them.
        if cap == m[np.searchsorted(m, cap, side="right") - 1]:
            expected = noise + math.sqrt(2 / math.pi) * apart
            assert math.isclose(error, expected, rel_tol=1e-6, abs_tol=1e-6)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.floats(0.05, 8))
def test_the_best_cap_has_the_least_regret(counts: list[int], epsilon: float) -> None:
    """Brute force over all counts as caps."""
    m = np.array(counts)
    cell = np.zeros(len(m), dtype=np.int64)
    ranked = typical.Ranked.of(cell, m, 1)
    errors = np.stack(
        [typical.capped_errors(ranked, np.array([epsilon]), part) for part in typical.BETWEEN]
    )
    regret = (errors / np.maximum(errors.min(axis=1, keepdims=True), 1e-300)).max(axis=0)
    cap = int(typical.best_caps(cell, m, 1, np.array([epsilon]))[0])
    assert cap in counts
    chosen = regret[ranked.count == cap]
    assert chosen.min() <= regret.min() * (1 + 1e-9)
