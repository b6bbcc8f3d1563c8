"""The largest counts that are accepted: sums of whole numbers fit, and no user loses more."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.estimates.draw import draw
from shoal.data.aggregate import Aggregate
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, ShoalError
from tests.support.loop import loop_over
from tests.support.methods import METHODS
from tests.support.tape import Tape, lost

_MOST = 2**36
_TABLES = (
    (_MOST - 4, 1, 3),
    (420_663, 1_382_501_938, 1, 497_023, 2**35, 6_034_955_485),
    (_MOST // 2, _MOST // 2 - 1, 1),
    (_MOST // 8,) * 8,
    (2**25, 420_663, 1_382_501, 1),
)
_PLAIN = {name: wanted for name, wanted in METHODS.items() if "statistics" not in wanted}


def test_more_records_than_fit_are_refused() -> None:
    """Beyond 2^36 in all, sums of counts and weights could pass 64 bits."""
    for counts in ([2**40, 1], [_MOST, 1], [_MOST // 2, _MOST // 2, 1]):
        users = list(range(len(counts)))
        with pytest.raises(DataError, match="the sum of all counts is larger than any table"):
            shoal.Counts.from_counts(users, [0] * len(users), counts)


@loop_over("bits", [1, 20])
@loop_over("name", _PLAIN)
def test_no_user_of_a_huge_table_loses_more(name: str, bits: int) -> None:
    """Any user's values may go from one bound to the other: 290 plans, in seconds."""
    tried = 0
    for counts in _TABLES:
        users = np.arange(len(counts))
        public = shoal.Counts.from_counts(users, users * 0, np.array(counts))
        with suppress(ShoalError):
            plan = shoal.plan(
                public, bounds=(0, 1), epsilon=10, tick_bits=bits, uninformative="keep",
                **{"method": "balanced", **_PLAIN[name]},
            )  # fmt: skip
            one = _tape(plan, bits, None, [])
            # Users with equal counts have equal losses.
            for changed in np.unique(counts, return_index=True)[1].tolist():
                # A second round starts from what the first one gave.
                other = _tape(plan, bits, changed, one.given)
                epsilon, _ = lost(one, other)
                assert epsilon <= float(plan.epsilon) * (1 + 1e-9)
                tried += 1
    assert tried > 0


def _tape(plan: shoal.Plan, bits: int, changed: int | None, answers: list[list[int]]) -> Tape:
    public, tape = plan.counts, Tape(answers=answers)
    count: Any = public.count.astype(object)
    half = 2 ** (bits - 1)
    sums = np.array(
        [-half * int(m) if at == changed else half * int(m) for at, m in enumerate(count)]
    )
    lattice = Lattice(Bounds(0, 1), bits)
    draw(plan, Aggregate(public.memberships, lattice, sums, np.zeros_like(sums)), tape)
    return tape
