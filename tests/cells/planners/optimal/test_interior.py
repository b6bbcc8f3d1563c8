"""Interior points against HiGHS."""

import numpy as np
import pytest
from hypothesis import given, settings

from shoal.cells.planners.optimal.interior import solve
from tests.support import programs


@given(program=programs.small())
@settings(deadline=None, max_examples=60)
def test_small_programs_are_solved(program: programs.Program) -> None:
    """Free cells, single users, any costs: a gap of 1e-6 proves the plan best."""
    best = solve(program, 1e-6)
    assert best.gap <= 1e-6
    assert best.loss == pytest.approx(programs.by_highs(program)[0], rel=1e-5)
    assert not best.weight[program.target[program.cell] >= 1 / 2].any()


@pytest.mark.parametrize("degenerate", [False, True])
def test_heavy_users_are_solved(*, degenerate: bool) -> None:
    """Costs, free cells and degenerate targets."""
    for seed in range(6):
        program = programs.random(seed, degenerate=degenerate)
        best = solve(program, 1e-6)
        assert best.gap <= 1e-6
        assert best.loss == pytest.approx(programs.by_highs(program)[0], rel=2e-6)


def test_what_few_steps_find_is_certified() -> None:
    """After a single step: a plan and a bound. Steps are counted: time differs on busy days."""
    program = programs.random(0)
    stopped, best = solve(program, 1e-6, iter(range(1))), solve(program, 1e-6)
    assert 0 < stopped.lower_bound < best.loss < stopped.loss < np.inf
