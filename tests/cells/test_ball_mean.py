"""Means in the l1 ball: what one user moves, what it costs, and why the printed form leaks."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.cells.vector_mean import BallMean, ticks
from tests.support.loop import loop_over
from tests.support.tape import Tape


@given(
    st.lists(st.lists(st.floats(-5, 50), min_size=3, max_size=3), min_size=1, max_size=20),
    st.integers(1, 24),
)
def test_ticks_stay_in_the_ball(points: list[list[float]], bits: int) -> None:
    """Whole, not negative, and adding up to at most 2^bits, whatever the input."""
    found = ticks(np.array(points), 7.0, bits)
    assert (found >= 0).all()
    assert (found.sum(axis=1) <= 2**bits).all()


@loop_over("epsilon", [Fraction(each) for each in ("1/10", "1", "9/5", "13/7", "7", "50")])
@loop_over("counts", [[1, 1, 2], [3, 1, 1], [5, 2, 1, 1], [4, 1, 1, 2, 1, 1]])
def test_nobody_moves_a_vector_further_than_accounted(counts: list[int], epsilon: Fraction) -> None:
    """Over all sums of a user on a coarse lattice, in whole lattice steps of l1."""
    m = np.array(counts)
    made = BallMean.plan(m, 2, epsilon, 2)
    assert max(made.loss(k) for k in counts) <= epsilon
    assert (made.threshold == 0) == (epsilon < Fraction(4, len(counts)))
    assert not (len(counts) == 6 and 1 < epsilon < 2) or 0 < made.threshold < 4
    kinds = ([[2, 1], [1, 3], [0, 2]], [[0, 0], [4, 0], [2, 2], [1, 0]])
    rest = [np.resize(each, (len(counts), 2)) for each in kinds]
    for user, others in itertools.product(range(len(counts)), rest):
        most = counts[user] << 2
        found = []
        for own in itertools.product(range(most + 1), repeat=2):
            if sum(own) > most:
                continue
            sums = others.copy()
            sums[user] = own
            found.append(made.release(sums, Tape()))
        steps = np.array(found)
        apart = np.abs(steps[:, None, :] - steps[None, :, :]).sum(axis=2).max()
        assert Fraction(int(apart), 2**made.bits) <= made.loss(counts[user])
