"""Losses of a plan with Gaussian noise: squares rounded outwards, every number, and the delta."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import shoal
from tests.support import made_counts

_STATISTICS = ("mean", "variance", "share_above(4)")


@pytest.fixture(scope="module")
def gaussian() -> shoal.Plan:
    """Users in many cells, three statistics, a delta."""
    found = shoal.plan(
        made_counts.crowded(), method="balanced", bounds=(0, 9), epsilon=1, delta="1/1000",
        statistics=_STATISTICS,
        uninformative="keep",
    )  # fmt: skip
    assert found.gaussian
    return found


def test_sums_of_squares_are_never_too_small(gaussian: shoal.Plan) -> None:
    """Against exact sums; without the margin, floating point falls below some."""
    below = 0
    # Lattices so fine that squares of steps have more digits than floating point.
    for fine in (34, 40, 44, 50):
        terms = gaussian.numbers.member_steps(gaussian.decision.scale, fine)
        exact = [0] * gaussian.counts.n_users
        for term in terms:
            for who, steps in zip(gaussian.weights.user.tolist(), term.tolist(), strict=True):
                exact[who] += steps * steps
        cost = replace(gaussian.cost, bits=fine)
        found = cost.steps(gaussian.decision.scale)[-1].moves.tolist()
        assert all(
            low <= int(high) <= low * (1 + 1e-8) for low, high in zip(exact, found, strict=True)
        )
        plain = np.bincount(gaussian.weights.user, sum(term.astype(float) ** 2 for term in terms))
        below += sum(int(low) < true for low, true in zip(plain.tolist(), exact, strict=True))
    assert below > 0


def test_a_user_is_in_every_statistic_of_its_cells(gaussian: shoal.Plan) -> None:
    """The lattice's own delta is for all numbers that one user moves."""
    cells = int(np.bincount(gaussian.weights.user).max())
    assert gaussian.cost.most_numbers == cells * len(_STATISTICS)


def test_a_plan_states_the_delta_that_it_spends(gaussian: shoal.Plan) -> None:
    """With Gaussian noise what was granted, else nothing."""
    assert gaussian.exact_loss.delta == Fraction(1, 1000)
    assert gaussian.delta >= 1e-3
    plain = shoal.plan(
        made_counts.crowded(),
        method="balanced",
        bounds=(0, 9),
        epsilon=1,
        statistics=("mean",),
        uninformative="keep",
    )
    assert not plain.gaussian
    assert plain.exact_loss.delta == 0
    assert plain.delta == 0
