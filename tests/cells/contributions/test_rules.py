"""Rules of contributions: their parameters, what they check, and the pieces of their designs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.clipped_arrays import ClippedArrays
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.parts_of_weights import PART, PartsOfWeights, capped_parts
from shoal.cells.contributions.truncated_users import TruncatedUsers
from shoal.data.occupancy import Counts
from tests.support import occupancies, plan_parts

if TYPE_CHECKING:
    from shoal.cells.contributions.base import ContributionRule

pytestmark = pytest.mark.unit

OCCUPANCY = occupancies.sparse(3)
CELLS = np.arange(OCCUPANCY.n_cells)
EPSILON = np.full(len(CELLS), 1.0)
EVERY = {f"{type(rule).__name__}-{at}": rule for at, rule in enumerate(plan_parts.CONTRIBUTIONS)}


@pytest.mark.parametrize("rule", EVERY.values(), ids=EVERY)
def test_a_rule_accepts_its_own_parameters_and_no_others(rule: ContributionRule) -> None:
    """Another length, a number below the least, one above what counts allow."""
    own = rule.parameters(OCCUPANCY, CELLS, EPSILON)
    assert own.keys() == rule.least.keys()
    assert rule.check(own, OCCUPANCY, CELLS)
    most = int(OCCUPANCY.count.max()) + (1 << PART)
    for name, values in own.items():
        below = values.copy()
        below[-1] = rule.least[name] - 1
        above = values.copy()
        above[-1] = most
        for wrong in (values[:-1], below, above):
            assert not rule.check(own | {name: wrong}, OCCUPANCY, CELLS)


@pytest.mark.parametrize("rule", EVERY.values(), ids=EVERY)
def test_a_design_weighs_the_released_cells_alone(rule: ContributionRule) -> None:
    """Members of the cells that are released, whole weights, contributions of at most the total."""
    cells = CELLS[1:4]
    own = rule.parameters(OCCUPANCY, cells, EPSILON[1:4])
    design = rule.design(OCCUPANCY, cells, own)
    assert set(OCCUPANCY.cell[design.member].tolist()) == {1, 2, 3}
    assert (design.weight >= 0).all()
    assert (design.contribution <= design.total[design.number] * design.touched).all()
    assert design.pieces.shape == (3,)
    assert (design.pieces >= 1).all()


def test_pieces_are_what_is_clipped_one_by_one() -> None:
    """Users, or arrays; a user may be in two of these."""
    counts = Counts.from_counts(["a", "b", "c", "d"], [0] * 4, [4, 3, 3, 2])
    cells, own = np.array([0]), {"cap": np.array([4])}
    plain = EveryRecord().design(counts, cells, {})
    assert (plain.pieces.tolist(), plain.touched) == ([4], 1)
    for grouping, touched in (("best_fit", 1), ("wrap_around", 2)):
        design = ClippedArrays(4, grouping).design(counts, cells, own)  # type: ignore[arg-type]
        assert design.groups is not None
        assert design.pieces.tolist() == [len(design.groups.number)]
        assert design.touched == touched


def test_caps_leave_parts_of_weights() -> None:
    """Nobody counts beyond the cap; whoever is below it counts in full."""
    rule, parts = CappedCounts(), capped_parts(OCCUPANCY, CELLS, EPSILON)
    cap = rule.parameters(OCCUPANCY, CELLS, EPSILON)["cap"][OCCUPANCY.cell]
    below = OCCUPANCY.count <= cap
    assert (parts[below] == 1 << PART).all()
    assert (~below).any()
    counted = parts[~below] * OCCUPANCY.count[~below]
    assert (counted <= cap[~below] << PART).all()
    assert PartsOfWeights().check({"part": parts}, OCCUPANCY, CELLS)


def test_only_what_may_widen_is_widened() -> None:
    """Users of one cell each: lighter ones have wider ranges, unless the range is public."""
    alone = Counts.from_counts(range(6), [0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6])
    cells, epsilon = np.arange(2), np.ones(2)
    for widens in (True, False):
        rule = CappedCounts(widens)
        own = rule.parameters(alone, cells, epsilon)
        assert own["widened"].tolist() == [int(widens)]
        assert rule.design(alone, cells, own).widened == widens
        assert rule.check(own | {"widened": np.array([1])}, alone, cells) == widens


def test_a_threshold_truncates_the_heavy() -> None:
    """Each user reaches min(m, T) of its records."""
    counts = Counts.from_counts(["a", "b"], [0, 0], [2, 9])
    design = TruncatedUsers().design(counts, np.array([0]), {"threshold": np.array([3])})
    assert sorted(design.contribution.tolist()) == [2, 3]
    assert design.total.tolist() == [11]
