"""The steps of the minimax cap of paper 002, figure 5."""

import numpy as np
import pytest
from shoal_studies import collections
from shoal_studies.minimax_cap import every_cap

from shoal.cells import caps

pytestmark = pytest.mark.study


def test_the_staircase_has_79_steps() -> None:
    """Each cap is the planner's just after its step, and the one before it just before."""
    counts = collections.itms()
    cap, start = every_cap(counts)
    assert len(cap) - 1 == 79
    assert (np.diff(cap) > 0).all()
    for at in range(1, len(cap)):
        assert caps.minimax(counts, start[at] * (1 + 1e-9)) == cap[at]
        assert caps.minimax(counts, start[at] * (1 - 1e-9)) == cap[at - 1]
