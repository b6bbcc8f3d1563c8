"""What the second opinion computes by itself, against the theory and against the planner."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.cells.bounding import caps
from shoal.verification.cells import caps as verify_caps
from shoal.verification.cells import mechanism as verify_mechanism
from shoal.verification.cells.design import Design
from shoal.verification.cells.errors import Errors
from shoal.verification.cells.facts import Facts
from shoal.verification.cells.grouping import SHARE, group
from shoal.verification.cells.losses import Losses
from tests.support import occupancies

pytestmark = pytest.mark.property

CELL = st.lists(st.integers(1, 12), min_size=1, max_size=14)


def of_plan(plan: shoal.Plan) -> Design:
    """The second opinion's design of a plan."""
    document = plan.to_document()
    facts = Facts.of({"plan": document})
    mechanism = verify_mechanism.read(document, facts)
    return Design.of(facts, mechanism, verify_mechanism.arrays_of(mechanism, facts))


# A user whose records fill no array pays for selections in three cells, and for nothing else.
SELECTIONS_ALONE = shoal.Occupancy.from_counts(
    [0, 1, 2, 2, 2, 3], [1, 2, 0, 1, 2, 0], [2, 2, 1, 1, 1, 2]
)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        *(
            (name, {})
            for name in ("balanced", "user_clipped", "worst_case_optimal", "levy", "akmv")
        ),
        *(
            (name, {"grouping": "wrap_around", "cap": cap})
            for name in ("array_averaging", "quantile")
            for cap in (2, "surrogate")
        ),
    ],
)
@given(occupancy=occupancies.small)
@example(occupancy=SELECTIONS_ALONE)
def test_designs_agree_with_the_planner(
    method: str, settings: dict[str, Any], occupancy: shoal.Occupancy
) -> None:
    """G-INDEPENDENT: two ways to the same weights, contributions, and nearly the same loss."""
    plan = shoal.plan(
        occupancy, bounds=(0, 1), epsilon=1, method=method, settings=settings, uninformative="keep"
    )
    own = of_plan(plan)
    assert own.weight.tolist() == plan.design.weight.tolist()
    assert own.contribution.tolist() == plan.design.contribution.tolist()
    assert own.total == plan.design.total.tolist()
    steps = Fraction(2 * occupancy.n_cells + 1, 2**plan.lattice_bits)
    assert 0 <= plan.exact_epsilon - Losses(own).largest <= steps
    np.testing.assert_allclose(Errors(own).bias_bounds(), plan.bias_bound, rtol=1e-12)


def test_arrays_by_hand() -> None:
    """docs/theory/grouping.md#arrays: the fullest array that holds a user, and full arrays only."""
    fitted = group([1, 1, 10], 4, "best_fit")
    assert (fitted.number, fitted.touched) == (2, [1, 1, 1])
    assert fitted.share == [2**SHARE // 2, 2**SHARE // 2, 2**SHARE]
    # Rows of 4, 3 and 2 records make two full arrays of 4; the second user of [3, 3, 2] straddles.
    wrapped = group([2, 3, 4], 4, "wrap_around")
    assert (wrapped.number, wrapped.touched) == (2, [1, 1, 1])
    assert wrapped.share == [2**SHARE // 4, 3 * 2**SHARE // 4, 2**SHARE]
    assert group([3, 3, 2], 4, "wrap_around").touched == [1, 2, 1]
    assert group([3, 3, 1], 4, "wrap_around").touched == [1, 1, 0]


@given(CELL, st.integers(1, 12), st.sampled_from(["best_fit", "wrap_around"]))
def test_arrays_hold_everybody_or_are_full(counts: list[int], cap: int, grouping: str) -> None:
    """Shares add up to the number of arrays, and nobody is in more arrays than there can be."""
    arrays = group(counts, min(cap, max(counts)), grouping)
    pieces = sum(arrays.touched)
    assert arrays.number * 2**SHARE - pieces <= sum(arrays.share) <= arrays.number * 2**SHARE
    assert max(arrays.touched) <= (1 if grouping == "best_fit" else 2)
    assert grouping == "wrap_around" or min(arrays.touched) == 1


@given(CELL)
def test_caps_by_trying_every_number(counts: list[int]) -> None:
    """The smallest best of all whole caps, for each objective (docs/theory/grouping.md#caps)."""
    most, total, users = max(counts), sum(counts), len(counts)
    every = range(min(counts), most + 1)
    kept = {m: sum(min(each, m) for each in counts) for m in every}
    levy = min(every, key=lambda m: (-Fraction(kept[m] ** 2, m), m))
    surrogate = min(
        every,
        key=lambda m: (
            1 - Fraction(kept[m], total) + max(Fraction(m), Fraction(total, users)) / most,
            m,
        ),
    )
    assert verify_caps.allowed(counts, "levy") == {levy}
    assert verify_caps.allowed(counts, "surrogate") == {surrogate}
    assert verify_caps.allowed(counts, "median") == {
        sorted(counts, reverse=True)[math.ceil(users / 2) - 1]
    }
    assert verify_caps.allowed(counts, 5) == {min(5, most)}
    assert verify_caps.allowed(counts, "largest") == set()


@given(CELL, st.sampled_from(["median", "levy", "minimax", "surrogate"]))
def test_caps_of_the_planner_are_allowed(counts: list[int], name: str) -> None:
    """G-INDEPENDENT: whatever the planner chooses, for several losses."""
    for epsilon in (0.1, 1.0, 20.0):
        assert caps.choose(name, np.array(counts), epsilon) in verify_caps.allowed(counts, name)
