"""Differences between two cells: noise of both, what clipping hides in either, refusals."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

import shoal
from shoal.cells import plan as cells
from shoal.cells.estimates import differences, intervals
from shoal.data import keys
from shoal.errors import InputError
from shoal.privacy.law import GAUSSIAN, LAPLACE
from tests.support.draws import drawn, sums_of

_PAIR = np.array([1, 8])


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("scale", [(1.0, 3.0), (2.0, 2.0)])
def test_a_bias_at_either_end_is_missed_as_often_as_allowed(
    gaussian: bool, scale: tuple[float, float]
) -> None:
    """The chance of a miss, by quadrature; a bias in between is missed less often."""
    law = stats.norm if gaussian else stats.laplace
    noise = GAUSSIAN if gaussian else LAPLACE

    def tail(q: float) -> float:
        """P[first - second > q], given the second, in pieces with smooth densities."""
        far = 60 * max(scale)

        def density(x: float) -> float:
            return float(law.pdf(x, scale=scale[1]) * law.sf(q + x, scale=scale[0]))

        ends = [-far, *sorted((0.0, -q)), far]
        return sum(
            float(integrate.quad(density, *piece, limit=200)[0])
            for piece in itertools.pairwise(ends)
        )

    for room in (0.0, 0.5, 20.0):
        found = differences._quantile(noise, np.array(scale), room, 0.05)
        assert tail(found) + tail(found + room) == pytest.approx(0.05, rel=1e-5)
        assert 2 * tail(found + room / 2) <= 0.05 * (1 + 1e-5)


def users_in_cells(cells: int = 12) -> shoal.Counts:
    """900 users in three cells each, with fewer of them in some cells."""
    who = np.repeat(np.arange(900), 3)
    step = np.tile([0, 1, 3], 900)
    where = (np.sqrt(who) * 7 + step).astype(np.int64) % cells
    return shoal.Counts.from_counts(who, where, 1 + (who * 7 + where) % 4)


@pytest.mark.parametrize("method", ["user_clipped", "balanced"])
def test_differences_by_hand(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias below the first cell, or above the second, lowers the difference, and no other."""
    plan = shoal.plan(users_in_cells(), bounds=(0, 100), epsilon=2, method=method)
    mean = np.random.default_rng(1).normal(0.4, 0.1, len(plan.counts.user))
    numbers = drawn(plan, sums_of(plan, mean), 3)
    scale = numbers.noise_scale
    room = intervals.Ends(np.linspace(1, 2, 12), np.linspace(0, 0.1, 12))
    monkeypatch.setattr(intervals, "rooms", lambda _: room)
    found = differences.difference_of(numbers, ("a", "b"), (1, 8), 0.9)
    first, second = _PAIR
    below, above, either = 0.0, 0.0, numbers.bias_bound[_PAIR].sum()
    if method == "user_clipped":
        below = room.low[first] * scale[first] + room.high[second] * scale[second]
        above = room.high[first] * scale[first] + room.low[second] * scale[second]
        either = intervals.of_heavy_users(numbers)[_PAIR].sum()
    half = differences._quantile(LAPLACE, scale[_PAIR], below + above, 0.1) + either
    centre = numbers.unclamped[first] - numbers.unclamped[second]
    step = scale[_PAIR].sum() * 2.0**-plan.decision.bits
    assert found.low == pytest.approx(centre - half - below - step)
    assert found.high == pytest.approx(centre + half + above + step)
    # Both intervals of the table together say less.
    alone = numbers.half_widths(0.9)[_PAIR].sum()
    assert method != "balanced" or half < alone


@cache
def released() -> cells.Release:
    """A release of twelve cells, and of two with one user each."""
    counts = users_in_cells()
    user = np.r_[counts.user, [900, 901]]
    cell = np.r_[counts.cell, [12, 13]]
    table = pa.table({"who": user, "at": cell % 7, "half": cell // 7, "value": 40.0 + cell})
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 100), by=["at", "half"], counts="public"
    )
    plan = shoal.plan(records.counts(), bounds=(0, 100), epsilon=4, min_users=1, max_error=5)
    return plan.release(records, noise=shoal.Simulated(1))


def test_far_users_leave_only_the_bounds() -> None:
    """No interval allows for them, so a difference is anything that bounds allow."""
    numbers = replace(released().numbers, excess=(0, 0, 10**6))
    found = differences.difference_of(numbers, ("a", "b"), (0, 1), 0.95)
    assert (found.low, found.high, found.status) == (-100, 100, "outlying users")


def test_cells_are_named_as_in_the_table() -> None:
    """By keys or by a text; what has no number of its own is refused."""
    release = released()
    found = release.difference((4, 0), "0, 1")
    assert str(found).startswith("4 · 0 minus 0 · 1: ")
    values = {(row["at"], row["half"]): row["value"] for row in release.table(all=True).to_pylist()}
    assert found.value == values[4, 0] - values[0, 1]
    assert found.low < -3 < found.high < 3
    for wrong in ("9, 9", "0 · 1", "0\n, 1"):
        with pytest.raises(InputError, match="no cell is"):
            release.difference(wrong, "0, 1")
    # Keys are compared one by one, not as one text.
    alike = pa.table({"a": ["x", "x · y"], "b": ["y · z", "z"]})
    assert [keys.position(alike, each) for each in (("x", "y · z"), "x · y, z")] == [0, 1]
    with pytest.raises(InputError, match="the same"):
        release.difference("0, 0", (0, 0))
    with pytest.raises(InputError, match="left out"):
        release.difference("0, 0", "5, 1")
