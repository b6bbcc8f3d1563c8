"""Ranges: their parameters follow from weights, and others are refused."""

import numpy as np
import pytest

from shoal.cells.methods import METHODS, method_of
from shoal.cells.ranges import LevyInterval, OneInterval, QuantilePair, Range, SumThreshold
from shoal.cells.weights import arrays, largest_counts, user_sums
from shoal.data.occupancy import Counts
from shoal.privacy.permute_and_flip import UNIT
from tests.support import occupancies

OCCUPANCY = occupancies.sparse(3)
CELLS = np.arange(OCCUPANCY.n_cells)
ARRAYS = arrays(OCCUPANCY, CELLS, np.full(len(CELLS), 4), "wrap_around", clipped=True)
SUMS = user_sums(OCCUPANCY, CELLS)
BITS, TOP = 10, 1 << 20


@pytest.mark.parametrize("name", [each for each in METHODS if each != "user_clipped"])
def test_a_method_accepts_its_own_parameters_and_no_others(name: str) -> None:
    """Another length, a number below the least, one far above what counts allow, another name."""
    method = method_of(name)
    own = method.parameters(OCCUPANCY, CELLS, np.ones(len(CELLS)), BITS)
    assert own.keys() == {*method.own, *method.range.names}
    assert method.check(own, OCCUPANCY, CELLS, BITS)
    assert not method.check({**own, "another": np.ones(1, dtype=np.int64)}, OCCUPANCY, CELLS, BITS)
    for parameter, values in own.items():
        below, above = values.copy(), values.copy()
        below[-1], above[-1] = -1, 1 << 61
        for wrong in (values[:-1], below, above):
            assert not method.check(own | {parameter: wrong}, OCCUPANCY, CELLS, BITS)


def test_what_is_selected_costs_half_or_what_finds_it() -> None:
    """Nothing for the public range, half per cell, and for one interval what its users can find."""
    assert Range().selecting(ARRAYS, 1.0) == 0.0
    assert QuantilePair().selecting(ARRAYS, 1.0) == LevyInterval().selecting(ARRAYS, 1.0) == 0.5
    few, many = (OneInterval().selecting(ARRAYS, epsilon) for epsilon in (0.01, 100.0))
    assert 0 < few < 1e-5 < many <= 0.5


def test_who_is_in_two_arrays_moves_two_means() -> None:
    """Errata 7 and 8; one threshold of sums has one sum a user."""
    assert ARRAYS.touched == 2
    assert LevyInterval().score_sensitivity(ARRAYS) == 2
    assert QuantilePair().score_sensitivity(ARRAYS) == 2 * UNIT
    assert SumThreshold().score_sensitivity(SUMS) == UNIT


def test_levys_interval_is_longer_where_means_are_of_fewer_records() -> None:
    """1.5 tau in ticks, tau = sqrt(ln(2K/gamma)/(2m)), by hand."""
    counts = Counts.from_counts(range(8), [0] * 8, [8] * 8)
    cells = np.array([0])
    found = []
    for cap in (2, 8):
        own = {"cap": np.array([cap])}
        made_of = arrays(counts, cells, own["cap"], "best_fit", clipped=True)
        made = LevyInterval(0.2).parameters(made_of, own, np.ones(1), TOP)
        tau = np.sqrt(np.log(2 * made_of.pieces[0] / 0.2) / (2 * cap))
        assert made["radius"][0] == min(TOP, np.ceil(1.5 * tau * TOP))
        assert made["bins"][0] == max(1, np.floor(1 / tau))
        found.append(int(made["radius"][0]))
    assert found[0] > found[1]


def test_a_threshold_is_at_most_what_the_heaviest_user_has() -> None:
    """No wider range than counts allow, and noise scales follow from it."""
    own = SumThreshold().parameters(SUMS, {}, np.ones(len(CELLS)), TOP)
    assert own["most"].tolist() == largest_counts(OCCUPANCY, CELLS).tolist()
    assert SumThreshold().widest(own).tolist() == own["most"].tolist()
