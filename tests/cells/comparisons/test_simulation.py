"""Typical errors: expectations in closed form, assumptions, bad input."""

import math
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.comparisons.assumptions import NAIVE
from shoal.cells.comparisons.simulation import COMPARED
from shoal.errors import InputError
from tests.support.loop import loop_over

COUNTS = [1, 2, 3, 5, 8, 13, 40]


def public_counts(cells: int = 1) -> shoal.Counts:
    """The same few users in every cell."""
    size = len(COUNTS)
    users = np.tile(np.arange(size), cells)
    return shoal.Counts.from_counts(users, np.repeat(np.arange(cells), size), COUNTS * cells)


@pytest.mark.full
def test_simulated_errors_are_those_of_real_draws() -> None:
    """Closed-form expectations agree with 3,000 whole draws of every method."""
    counts, normal = public_counts(), shoal.Normal(20.0, 8.0, 0.3)
    found = shoal.simulate(counts, normal, bounds=(0, 65), epsilon=2, repetitions=400, seed=1)
    names = np.repeat(counts.user, counts.count)
    for row in found.table().to_pylist():
        if row["method"] in {*NAIVE, "balanced"}:
            continue
        errors = []
        for turn in range(3000 // len(COMPARED)):
            values = normal(np.random.default_rng([9, turn]), names, np.zeros_like(names))
            estimate = getattr(shoal.mean, row["method"])(
                values, names, bounds=(0, 65), epsilon=2, noise=shoal.Simulated(turn)
            )
            errors.append(abs(estimate.value - float(np.clip(values, 0, 65).mean())))
        error = float(np.std(errors)) / math.sqrt(len(errors))
        spread = 6.2 * math.hypot(error, row["standard_error"])
        assert abs(np.mean(errors) - row["noisy_error"]) <= spread + 1e-9, row["method"]


def test_comparisons_are_sorted_out() -> None:
    """One row a method; certificates where there are any; text and table agree."""
    found = shoal.compare(public_counts(3), bounds=(0, 10), epsilon="1/2", repetitions=5, seed=4)
    again = shoal.compare(public_counts(3), bounds=(0, 10), epsilon=0.5, repetitions=5, seed=4)
    assert found.table().equals(again.table())
    rows = found.table().to_pylist()
    assert sorted(row["method"] for row in rows) == sorted(COMPARED)
    typical = [row["typical_error"] for row in rows]
    assert typical == sorted(typical)
    for row in rows:
        assert row["method"] in str(found)
        assert 0 < row["typical_error"] <= 10
        assert row["spent"] is None or row["spent"] <= 0.5
        if row["certified"]:
            assert row["noisy_error"] <= row["worst_case_error"] * (1 + 1e-9)
        else:
            assert row["method"] in NAIVE or row["worst_case_error"] == 10
    assert "normal values of mean 4" in str(found)


def test_a_distribution_of_ones_own() -> None:
    """Any function of (rng, user, cell), named by its name; several losses."""

    def two_kinds(rng: np.random.Generator, user: np.ndarray, cell: np.ndarray) -> np.ndarray:
        assert len(user) == len(cell)
        return np.where(user % 2 == 0, 3.0, 7.0) + rng.normal(0, 0.1, len(user))

    found = shoal.simulate(
        public_counts(), two_kinds, bounds=(0, 10), epsilon=[1, "2"], methods=["baseline"]
    )
    once, twice = found.table().to_pylist()
    assert (once["epsilon"], twice["epsilon"]) == (1, 2)
    assert once["noisy_error"] > twice["noisy_error"]
    assert "values under two_kinds" in str(found)
    assert "0x" not in str(found)


def test_a_plan_is_compared_with_all_others() -> None:
    """Its own method first, with its settings; means alone."""
    asked: dict[str, Any] = {"bounds": (0, 9), "epsilon": 2, "uninformative": "keep"}
    plan = shoal.plan(public_counts(), method="levy", settings={"cap": "minimax"}, **asked)
    found = plan.compare(repetitions=2)
    assert found.methods == ("levy (cap=minimax)", *COMPARED)
    assert found.plan("levy (cap=minimax)", 2).decision.scale == plan.decision.scale
    other = shoal.plan(public_counts(), method="balanced", statistics=["variance"], **asked)
    with pytest.raises(InputError, match="only plans of the mean"):
        other.compare()


@loop_over(
    "wrong",
    [
        {"repetitions": 2.5},
        {"assumed": lambda rng, user, cell: rng.random(len(user) - 1)},
        {"assumed": lambda rng, user, cell: rng.random(len(cell)) * np.nan},
        {"methods": ["none"]},
        {"methods": []},
        {"methods": [("levy", 5)]},
        {"methods": [("midpoint", {"cap": 1})]},
        {"seed": -1},
        {"epsilon": None},
        {"epsilon": 0},
        {"bounds": (1, 1)},
        {"counts": 3},
    ],
)
def test_bad_comparisons_are_refused(wrong: dict[str, Any]) -> None:
    """With what to do."""
    known = {"counts": public_counts(), "bounds": (0, 5), "repetitions": 2, "methods": ["baseline"]}
    with pytest.raises(InputError, match=r"; \w"):
        shoal.compare(**{**known, **wrong})


@pytest.mark.parametrize("wrong", [(math.nan, 1, 0), (0, -1, 0), (0, 1, 2), (0, 1, -0.1)])
def test_bad_normals_are_refused(wrong: tuple[float, float, float]) -> None:
    """Deviations and parts only."""
    with pytest.raises(InputError, match="allowed"):
        shoal.Normal(*wrong)
