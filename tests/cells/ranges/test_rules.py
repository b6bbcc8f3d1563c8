"""Rules of ranges: their parameters follow from designs, and others are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.cells.contributions.base import largest_counts
from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.ranges.quantile_pair import QuantilePair
from shoal.cells.ranges.sum_threshold import SumThreshold
from shoal.data.occupancy import Counts
from shoal.privacy.permute_and_flip import UNIT
from tests.support import occupancies, plan_parts

if TYPE_CHECKING:
    from shoal.cells.ranges.base import RangeRule

pytestmark = pytest.mark.unit

OCCUPANCY = occupancies.sparse(3)
CELLS = np.arange(OCCUPANCY.n_cells)
LARGEST = largest_counts(OCCUPANCY, CELLS)
OWN = {"cap": np.full(len(CELLS), 4)}
ARRAYS = ClippedArrays(4, "wrap_around").design(OCCUPANCY, CELLS, OWN)
SUMS = UserSums().design(OCCUPANCY, CELLS, {})
TOP = 1 << 20


@pytest.mark.parametrize("rule", plan_parts.RANGES, ids=lambda rule: type(rule).__name__)
def test_a_rule_accepts_its_own_parameters_and_no_others(rule: RangeRule) -> None:
    """Another length, and a number below the least."""
    design = SUMS if rule.of_sums else ARRAYS
    own = rule.parameters(design, OWN, np.ones(len(CELLS)), TOP)
    assert own.keys() == rule.least.keys()
    assert rule.check(own, LARGEST)
    for name, values in own.items():
        below = values.copy()
        below[-1] = rule.least[name] - 1
        assert not rule.check(own | {name: below}, LARGEST)
        assert not rule.check(own | {name: values[:-1]}, LARGEST)


def test_what_is_selected_costs_half_or_what_finds_it() -> None:
    """Nothing for the public range, half per cell, and for one interval what its users can find."""
    assert PublicRange().selecting(ARRAYS, 1.0) == 0.0
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
        design = ClippedArrays(cap).design(counts, cells, own)
        made = LevyInterval(0.2).parameters(design, own, np.ones(1), TOP)
        tau = np.sqrt(np.log(2 * design.pieces[0] / 0.2) / (2 * cap))
        assert made["radius"][0] == min(TOP, np.ceil(1.5 * tau * TOP))
        assert made["bins"][0] == max(1, np.floor(1 / tau))
        found.append(int(made["radius"][0]))
    assert found[0] > found[1]


def test_a_threshold_is_at_most_what_the_heaviest_user_has() -> None:
    """No wider range than counts allow, and noise scales follow from it."""
    rule = SumThreshold()
    own = rule.parameters(SUMS, {}, np.ones(len(CELLS)), TOP)
    assert own["most"].tolist() == LARGEST.tolist()
    assert rule.widest_range(own).tolist() == LARGEST.tolist()
    assert not rule.check(own | {"most": LARGEST + 1}, LARGEST)
