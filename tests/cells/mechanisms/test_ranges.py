"""Ranges: their parameters follow from weights, and others are refused."""

import numpy as np
import pytest

from shoal.cells.mechanisms.methods import METHODS, method_of
from shoal.cells.mechanisms.ranges import LevyInterval, OneInterval, QuantilePair, Range
from shoal.cells.mechanisms.weights import arrays
from tests.support import made_counts

COUNTS = made_counts.sparse(3)
CELLS = np.arange(COUNTS.n_cells)
ARRAYS = arrays(COUNTS, CELLS, np.full(len(CELLS), 4), "wrap_around", clipped=True)
BITS, TOP = 10, 1 << 20


@pytest.mark.parametrize("name", [each for each in METHODS if each != "user_clipped"])
def test_a_method_accepts_its_own_parameters_and_no_others(name: str) -> None:
    """Another length, a number below the least, one far above what counts allow, another name."""
    method = method_of(name)
    own = method.parameters(COUNTS, CELLS, np.ones(len(CELLS)), BITS)
    assert own.keys() == {*method.limits, *method.range.limits}
    assert method.check(own, COUNTS, CELLS, BITS)
    assert not method.check({**own, "another": np.ones(1, dtype=np.int64)}, COUNTS, CELLS, BITS)
    for parameter, values in own.items():
        below, above = values.copy(), values.copy()
        below[-1], above[-1] = -1, 1 << 61
        for wrong in (values[:-1], below, above):
            assert not method.check(own | {parameter: wrong}, COUNTS, CELLS, BITS)


def test_what_is_selected_costs_half_or_what_finds_it() -> None:
    """Nothing for the public range, half per cell, and for one interval what its users can find."""
    assert Range().selecting(ARRAYS, 1.0) == 0.0
    assert QuantilePair().selecting(ARRAYS, 1.0) == LevyInterval().selecting(ARRAYS, 1.0) == 0.5
    few, many = (OneInterval().selecting(ARRAYS, epsilon) for epsilon in (0.01, 100.0))
    assert 0 < few < 1e-5 < many <= 0.5
