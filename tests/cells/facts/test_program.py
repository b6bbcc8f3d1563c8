"""The certificate of the linear program, in fractions and by enumeration."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.cells.facts.program import certify, dual_bound, is_small
from tests.support import programs

numbers = st.integers(0, 2**32)


@given(program=programs.small(), seed=numbers)
@settings(deadline=None, max_examples=60)
def test_any_weights_become_a_plan_in_fractions(program: programs.Program, seed: int) -> None:
    """Errors <= targets and loss <= as stated, also of weights that are no weights."""
    rng = np.random.default_rng(seed)
    weight = program.share * rng.uniform(-0.5, 1.5, len(program.share))
    weight[rng.random(len(weight)) < 0.1] = np.nan
    plan = certify(program, weight, np.ones(program.n_users))
    assert ((plan.weight >= 0) & (plan.weight <= program.share)).all()
    errors = programs.exact_errors(program, plan.weight, plan.noise)
    for error, target in zip(errors, program.target.tolist(), strict=True):
        assert error <= Fraction(target) or target >= 1 / 2
    assert programs.exact_loss(program, plan.weight, plan.noise) <= Fraction(plan.loss)
    assert plan.lower_bound <= plan.loss


def test_roundings_of_many_users_are_against_us() -> None:
    """Sums over thousands of users, in fractions."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        count, ones = np.ceil(rng.pareto(1.2, 4000) * 3), np.ones(4000)
        cell = np.repeat([0, 1], 2000)
        program = programs.of_counts(
            np.arange(4000) % 2000, cell, count + ones, np.array([0.3, 0.2]), rng.random(4000) + 0.1
        )
        plan = certify(program, program.share * rng.random(4000) ** 0.2, ones[:2000])
        errors = programs.exact_errors(program, plan.weight, plan.noise)
        assert errors[0] <= Fraction(0.3)
        assert errors[1] <= Fraction(0.2)
        assert programs.exact_loss(program, plan.weight, plan.noise) <= Fraction(plan.loss)


@given(program=programs.small(), seed=numbers, sparse=st.booleans())
@settings(deadline=None, max_examples=80)
def test_any_duals_give_the_bound_of_all_vertices(
    program: programs.Program, seed: int, *, sparse: bool
) -> None:
    """Never above what the best plan costs, nor far below the enumerated minimum."""
    assume((program.target < 1 / 2).any())
    rng = np.random.default_rng(seed)
    duals = rng.lognormal(0, 3, program.n_users)
    if sparse:
        duals *= rng.random(program.n_users) < 1 / 2
    assume(duals.max() > 0)
    bound = dual_bound(program, duals)
    assert bound <= programs.by_highs(program)[0] * (1 + 1e-7)
    assert bound >= float(programs.exact_bound(program, duals)) * (1 - 1e-6)
    # All prices are raised a little, and any prices prove.
    raised = duals / duals.max() + 2.0**-36
    assert Fraction(bound) <= programs.exact_bound(program, raised)


@pytest.mark.parametrize("seed", range(6))
def test_duals_prove_the_optimum_of_degenerate_programs(seed: int) -> None:
    """Users without a price may make up 1 - 2E of a cell, which costs all the same."""
    program = programs.random(seed, degenerate=True)
    least, duals = programs.by_highs(program)
    assert least * (1 - 1e-6) <= dual_bound(program, duals) <= least * (1 + 1e-9)


def test_what_is_no_proof_proves_nothing() -> None:
    """Dual variables that are not numbers, negative or all 0; errors that no rounding keeps."""
    program = programs.random(0)
    users = program.n_users
    for duals in (np.zeros(users), -np.ones(users), np.full(users, np.nan), np.full(users, np.inf)):
        assert dual_bound(program, duals) == 0
    assert certify(program, program.share, np.zeros(users)).gap == np.inf
    assert dual_bound(program.scaled(2.0**-60), np.ones(users)) < np.inf


def test_large_programs_are_known() -> None:
    """By cells, and by pairs of cells that share a user."""
    assert is_small(np.arange(9), 2000)
    assert not is_small(np.arange(9), 2001)
    many = np.repeat(np.arange(26), 1961)
    assert is_small(many[:-1961], 1999)
    assert not is_small(np.concatenate([many, many]), 1999)
