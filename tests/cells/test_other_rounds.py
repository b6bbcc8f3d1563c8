"""What the other number of rounds would err: simulated on a plan's counts, beside the plan."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from shoal.cells import other_rounds as module
from shoal.cells.other_rounds import other_rounds
from shoal.cells.typical_error import CELLS, simulated

pytestmark = pytest.mark.unit


def _counts(users: int, cells: int, each: int = 3) -> shoal.Counts:
    rng = np.random.default_rng(3)
    where = np.concatenate([rng.choice(cells, each, replace=False) for _ in range(users)])
    who = np.repeat(np.arange(users), each)
    return shoal.Counts.from_counts(who, where, rng.geometric(0.1, len(who)))


def _plan(users: int, cells: int, rounds: int = 1, method: str = "user_clipped") -> shoal.Plan:
    settings = {"rounds": rounds} if method == "user_clipped" else None
    counts = _counts(users, cells, min(3, cells))
    return shoal.plan(counts, bounds=(0, 10), epsilon=4, method=method, settings=settings)


def test_cells_far_apart_gain_by_a_second_round() -> None:
    """Both directions name the same errors; the printed plan says who should take the other."""
    one, two = _plan(900, 12), _plan(900, 12, 2)
    more, fewer = other_rounds(one), other_rounds(two)
    assert more is not None
    assert fewer is not None
    assert (more.rounds, fewer.rounds) == (2, 1)
    assert more.apart < 0.8 < more.alike
    assert np.isclose(more.apart * fewer.apart, 1)
    assert np.isclose(more.alike * fewer.alike, 1)
    assert 'settings={"rounds": 2} (--method user_clipped --setting rounds=2) the' in str(one)
    assert "take it if cells are known to differ far more" in str(one)
    assert "two rounds: users are clipped around the values of a first one" in str(two)
    assert 'settings={"rounds": 1} (--method user_clipped --setting rounds=1) the' in str(two)


@pytest.mark.parametrize(
    ("users", "cells", "method"),
    [(400, 2, "user_clipped"), (5, 4, "user_clipped"), (400, 12, "balanced")],
    ids=["two cells", "few users", "no vectors"],
)
def test_where_there_is_nothing_to_choose_nothing_is_said(
    users: int, cells: int, method: str
) -> None:
    """Few cells, too few users for private selections, and methods without users' vectors."""
    plan = _plan(users, cells, method=method)
    assert other_rounds(plan) is None
    assert "rounds" not in str(plan)


def test_nobody_waits_for_another_plan_of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of pairs of a user and a cell."""
    monkeypatch.setattr(module, "_MOST_MEMBERS", 100)
    assert other_rounds(_plan(400, 12)) is None


def test_typical_errors_are_of_the_population_that_is_stated() -> None:
    """Three tenths of the variance between cells, unless another part is said."""
    plan = _plan(900, 12)
    assert np.array_equal(simulated(plan, 1), simulated(plan, 1, between=CELLS))
    assert not np.array_equal(simulated(plan, 1), simulated(plan, 1, between=0.9))
