"""Per-user accounting, exactly: all data sets, all neighbours, all outcomes of a small lattice.

The noise has P[Z = z] proportional to a^|z|; with scale 2^j, a = exp(-2^-j), a loss of s steps is
a probability ratio of a^-s. Ratios are computed as these powers, without rounding.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.cells.accounting import Cost, ReleasedStatistics
from shoal.cells.cell_statistics import Mean
from shoal.cells.draw import to_steps
from shoal.cells.ranges import Range
from shoal.cells.weights import every_record
from shoal.data.occupancy import Counts

TICK_BITS = 1


@dataclass(frozen=True)
class Small:
    """A small occupancy with its scales."""

    counts: dict[tuple[str, int], int]
    scales: tuple[float, ...]
    bits: int

    @cached_property
    def occupancy(self) -> Counts:
        """The counts as an occupancy."""
        users, cells = zip(*self.counts, strict=True)
        return Counts.from_counts(users, cells, list(self.counts.values()))

    def steps(self, sums: tuple[int, ...]) -> tuple[int, ...]:
        """The released statistics before noise, from each cell's sum of ticks."""
        totals = self.occupancy.totals.tolist()
        return tuple(
            to_steps(s, n << TICK_BITS, b, self.bits)
            for s, n, b in zip(sums, totals, self.scales, strict=True)
        )


CASES = [
    Small({("a", 0): 1, ("b", 0): 1}, (0.5,), 2),
    Small({("a", 0): 2, ("b", 0): 1, ("a", 1): 1, ("b", 1): 1}, (0.25, 0.5), 1),
    Small({("a", 0): 1, ("b", 0): 2, ("b", 1): 1, ("c", 1): 1}, (0.3, 0.7), 2),
    Small({("a", 0): 3, ("b", 0): 1, ("a", 1): 1}, (0.9, 0.41), 3),
]


def user_ticks(case: Small, user: str) -> list[tuple[int, ...]]:
    """Every vector of sums of ticks that one user can add to the cells."""
    cells = range(len(case.scales))
    range_widths = [range((case.counts.get((user, g), 0) << TICK_BITS) + 1) for g in cells]
    return list(itertools.product(*range_widths))


def loss_in_steps(case: Small, user: str) -> int:
    """Largest loss over all data sets, values of the user and outcomes, in steps."""
    names = sorted({name for name, _ in case.counts})
    rest = [
        tuple(map(sum, zip(*parts, strict=True)))
        for parts in itertools.product(*(user_ticks(case, n) for n in names if n != user))
    ]
    own, worst = user_ticks(case, user), 0
    for others in set(rest):
        centres = {case.steps(tuple(map(sum, zip(others, mine, strict=True)))) for mine in own}
        ends = zip(*centres, strict=True)
        outcomes = np.array(list(itertools.product(*(range(min(x) - 1, max(x) + 2) for x in ends))))
        # An outcome has the probability a^power, but for what is common to all.
        power = np.abs(outcomes[:, None] - np.array(list(centres))).sum(axis=2)
        worst = max(worst, int(np.ptp(power, axis=1).max()))
    return worst


def accounted_steps(case: Small) -> NDArray[np.int64]:
    """What the planner charges every user."""
    weights = every_record(case.occupancy, np.arange(len(case.scales)))
    cost = Cost(ReleasedStatistics(weights, (Mean(),)), Range(), {}, np.zeros(0), case.bits)
    lost = cost.losses(np.array(case.scales)).of_users * 2**case.bits
    return np.asarray(lost, dtype=np.int64)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_no_user_loses_more_than_accounted(case: Small) -> None:
    """The exact ratio never exceeds exp of the accounted loss, for every user."""
    accounted = sorted(accounted_steps(case).tolist())
    true = sorted(loss_in_steps(case, user) for user in {name for name, _ in case.counts})
    assert all(t <= a for t, a in zip(true, accounted, strict=True))


def test_the_accounted_loss_is_attained() -> None:
    """With dyadic scales and shares nothing is given away: the bound is the truth."""
    case = Small({("a", 0): 1, ("b", 0): 3, ("a", 1): 1, ("b", 1): 1}, (0.125, 0.25), 2)
    # One outward unit of the last place may add a step to each of the two cells.
    lost = accounted_steps(case)
    exact = {"a": 8 + 8, "b": 24 + 8}
    for user, steps in exact.items():
        assert loss_in_steps(case, user) == steps
    assert np.all(np.sort(lost) - np.sort(list(exact.values())) <= 2)
