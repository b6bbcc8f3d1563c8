"""Contributions, ranges, allocations and noise that go together, and what such a plan costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.allocation.balanced import Balanced
from shoal.cells.allocation.base import BalancedLosses, LinearProgram
from shoal.cells.allocation.equalised import Equalised
from shoal.cells.allocation.uniform import Uniform
from shoal.cells.contributions.capped_counts import CappedCounts
from shoal.cells.contributions.cells_left_out import CellsLeftOut
from shoal.cells.contributions.every_record import EveryRecord
from shoal.cells.contributions.parts_of_weights import PartsOfWeights
from shoal.cells.contributions.user_sums import UserSums
from shoal.cells.draw_of_plan import drawing_of
from shoal.cells.noise_rule import NoiseRule
from shoal.cells.plan_parts import PlanParts
from shoal.cells.planner import decide
from shoal.cells.presets import METHODS, parts_of
from shoal.cells.ranges.levy_interval import LevyInterval
from shoal.cells.ranges.one_interval import OneInterval
from shoal.cells.ranges.public import PublicRange
from shoal.cells.ranges.quantile_pair import QuantilePair
from shoal.cells.ranges.sum_threshold import SumThreshold
from shoal.cells.release import release_cells
from shoal.cells.shrinkage_rule import ShrinkageRule
from shoal.data.aggregate import Aggregate
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DocumentError, InputError
from tests.support import flights, occupancies, plan_parts
from tests.support.loop import loop_over
from tests.support.tape import Tape, lost

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.cells.allocation.base import AllocationRule
    from shoal.cells.contributions.base import ContributionRule
    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.ranges.base import RangeRule
    from shoal.data.occupancy import Counts

pytestmark = pytest.mark.property

LATTICE = Lattice(Bounds(0, 10), 12)
LOSSES = BalancedLosses()
# Rounding of exact numbers of lattice steps in floating point.
SLACK = 1 + 1e-9


def planned(parts: PlanParts, occupancy: Counts, epsilon: Fraction) -> PlanFacts:
    """The planner's plan of these parts, every cell kept."""
    return decide(occupancy, LATTICE, plan_parts.request(parts, epsilon))


def recorded(
    plan: PlanFacts, centred: NDArray[np.int64], part: float, like: Tape | None = None
) -> Tape:
    """What reaches noise and selections if users' centred sums are these."""
    tape = Tape(part=part, answers=[] if like is None else like.given)
    aggregate = Aggregate(plan.occupancy, plan.lattice, centred, np.zeros_like(centred))
    drawing_of(plan).draw(aggregate, tape)
    return tape


@pytest.mark.parametrize("parts", plan_parts.ALLOWED.values(), ids=plan_parts.ALLOWED)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(
    occupancy=occupancies.small,
    epsilon=st.sampled_from(["1/4", "2", "40"]),
    seed=st.integers(0, 2**32 - 1),
    part=st.sampled_from([0.0, 0.4, 0.99]),
)
def test_a_plan_of_any_parts_costs_no_more_than_it_says(
    parts: PlanParts, occupancy: Counts, epsilon: str, seed: int, part: float
) -> None:
    """Recorded on neighbours, scores and numbers differ by the user's loss at most.

    Also of parts that no method puts together; no plan is above the epsilon that was asked for.
    """
    plan = planned(parts, occupancy, Fraction(epsilon))
    assert plan.exact_epsilon <= Fraction(epsilon)
    rng = np.random.default_rng(seed)
    half = 1 << (LATTICE.bits - 1)
    # All at an end of the bounds, or anywhere between.
    level = rng.choice([-half, half], len(occupancy.user))
    level = np.where(rng.random(len(level)) < 0.5, level, rng.integers(-half, half + 1, len(level)))
    one = recorded(plan, level * occupancy.count, part)
    for user in range(occupancy.n_users):
        other = np.where(occupancy.user == user, -np.sign(level + 0.5) * half, level)
        two = recorded(plan, other.astype(np.int64) * occupancy.count, part, one)
        spent, rho = lost(one, two)
        assert rho == 0
        assert spent <= plan.user_losses[user] * SLACK


def test_new_parts_are_planned_as_well_as_old_ones() -> None:
    """Averaged arrays within one interval, capped counts within Levy's, and more."""
    names = set(plan_parts.NEW)
    assert {
        "arrays averaged within one interval for all cells",
        "capped counts within Levy's interval, per cell",
        "every record within one interval for all cells",
    } <= names
    occupancy = occupancies.sparse(2, users=300)
    for parts in plan_parts.NEW.values():
        plan = planned(parts, occupancy, Fraction(4))
        # Nearly all of the loss is used; steps of selections are rounded upwards.
        assert Fraction(399, 100) <= plan.exact_epsilon <= 4
        assert plan.certified == (parts.range == PublicRange())


REFUSED: list[tuple[ContributionRule, RangeRule, AllocationRule]] = [
    (EveryRecord(), SumThreshold(), LOSSES),
    (UserSums(), PublicRange(), LOSSES),
    (UserSums(), OneInterval(), LOSSES),
    (UserSums(), QuantilePair(), LOSSES),
    (EveryRecord(), LevyInterval(), LOSSES),
    (CappedCounts(), PublicRange(), LOSSES),
    (CellsLeftOut(), PublicRange(), LOSSES),
    (CellsLeftOut(), OneInterval(), Uniform()),
    (CellsLeftOut(), PublicRange(), Equalised()),
    (PartsOfWeights(), PublicRange(), LOSSES),
    (PartsOfWeights(), PublicRange(), Balanced()),
    (PartsOfWeights(), QuantilePair(), LinearProgram()),
    (EveryRecord(), PublicRange(), LinearProgram()),
    (EveryRecord(), OneInterval(), Balanced()),
    (CappedCounts(widens=False), PublicRange(), Uniform()),
]


@loop_over(
    ("who", "where", "how"),
    REFUSED,
)
def test_parts_that_nothing_proves_together_are_refused(
    who: ContributionRule, where: RangeRule, how: AllocationRule
) -> None:
    """One place refuses them, in words."""
    shrinkage = ShrinkageRule(weighed=not isinstance(who, UserSums))
    with pytest.raises(InputError, match="together"):
        PlanParts("mine", who, where, how, shrinkage=shrinkage)


def test_gaussian_noise_needs_shared_noise_or_users_vectors() -> None:
    """Other selections and mean mechanisms are accounted for Laplace noise alone."""
    noise = NoiseRule(Fraction(1, 10**6))
    for method in METHODS:
        parts = parts_of(method)
        if parts.shares or method == "user_clipped":
            assert replace(parts, noise=noise).noise.gaussian == (False, True)
            continue
        with pytest.raises(InputError, match="Gaussian"):
            replace(parts, noise=noise)


def test_sums_leave_no_deviation_to_shrink_by() -> None:
    """Nobody is weighed where sums are clipped."""
    with pytest.raises(InputError, match="shrinkage"):
        PlanParts("mine", UserSums(), SumThreshold(), LOSSES)


@pytest.mark.parametrize("name", ["baseline", "made_up", "one of mine"])
def test_parts_without_a_name_are_not_released(name: str, tmp_path: Path) -> None:
    """A manifest could not say what was done, so nothing is drawn or charged."""
    records = flights.records()
    parts = replace(plan_parts.NEW["every record within one interval for all cells"], name=name)
    plan = decide(records.counts(), records.lattice, plan_parts.request(parts, Fraction(1)))
    ledger = shoal.Ledger.create(tmp_path / "one.ledger", epsilon=1, unit="user")
    with pytest.raises(DocumentError, match="changed"):
        release_cells(plan, records, ledger=ledger, name="", noise=None, privacy_unit="user")
    assert ledger.spent.epsilon == 0
