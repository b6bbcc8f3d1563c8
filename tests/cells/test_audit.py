"""Whole mechanisms, attacked: lower bounds on their privacy loss from draws on neighbours.

An adversary chooses neighbours and a set of outputs, and sees many draws of both. Exact binomial
bounds on the two probabilities give a lower bound on the loss that is wrong with probability at
most 1e-9; it must never exceed the epsilon of the plan. `make test-full` draws a million.
"""

import math
import os
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.mechanisms import ranges
from shoal.data.aggregate import Aggregate
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.noise import OperatingSystem
from tests.support import selections
from tests.support.draws import sums_of
from tests.support.tape import Tape

SIZE = 1_000_000 if os.environ.get("SHOAL_FULL") else 40_000
ALARM = 1e-9
# Losses that the draws must show, as a part of epsilon.
TIGHT = 0.9 if os.environ.get("SHOAL_FULL") else 0.75
COUNTS = [6, 2, 2, 1, 1, 1, 1, 1]
METHODS: list[tuple[str, dict[str, str | int | float]]] = [
    ("baseline", {}),
    ("array_averaging", {"cap": 2}),
    ("array_averaging", {"cap": 2, "grouping": "wrap_around"}),
    ("opt_array_averaging", {}),
    ("worst_case_optimal", {}),
    ("levy", {"cap": 2}),
    ("levy", {"cap": 2, "grouping": "wrap_around"}),
    ("quantile", {"cap": 2}),
    ("quantile", {"cap": 2, "grouping": "wrap_around"}),
    ("akmv", {}),
    ("adaptive", {}),
]
NAMES = ["-".join([name, *map(str, settings.values())]) for name, settings in METHODS]
EXACT = {"baseline", "array_averaging", "opt_array_averaging", "worst_case_optimal"}


@dataclass(frozen=True)
class Attack:
    """A plan and two neighbours: all users at one value, one user at another."""

    plan: shoal.Plan
    user: int

    def outputs(self, own: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Released values, unclamped, with the user's records all at `own`.

        Selections follow the exact probabilities of permute-and-flip, numbers are drawn by the
        operating system, for each neighbour anew and for all plans of a lattice once; each distinct
        selection is carried out once without noise.
        """
        aggregate, bits = self._aggregate(own), self.plan.decision.bits
        chosen = self._selected(aggregate, rng)
        kinds, kind = np.unique(chosen, axis=0, return_inverse=True)
        noise = _noise(bits, own)
        values = np.empty(SIZE)
        for at, answers in enumerate(kinds.tolist()):
            tape = Tape(places=tuple(answers), rise=0)
            numbers = Estimates.of(self.plan, *draw(self.plan, aggregate, tape))
            unit = float(numbers.noise_scale[0]) * 2.0**-bits
            these = kind.ravel() == at
            values[these] = numbers.unclamped[0] + unit * noise[these]
        return values

    def _aggregate(self, own: float) -> Aggregate:
        return sums_of(self.plan, np.where(self.plan.counts.user == self.user, own, 0.4))

    def _selected(self, aggregate: Aggregate, rng: np.random.Generator) -> NDArray[np.int64]:
        shown = Tape(part=0, rise=0)
        draw(self.plan, aggregate, shown)
        columns = [
            rng.choice(len(each.numbers), SIZE, p=_chances(np.array(each.numbers), each.scale))
            for each in shown.asked
            if each.kind == "select"
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((SIZE, 1), dtype=np.int64)


@cache
def _noise(bits: int, _own: float) -> NDArray[np.int64]:
    return np.array(OperatingSystem().add_laplace([2**50] * SIZE, bits)) - 2**50


def _chances(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    chance = selections.probabilities(scores, scale)
    return np.asarray(chance / chance.sum())


def lower_bound(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """A loss that the two samples prove: the best threshold is chosen on one half of the draws."""
    half = len(one) // 2
    grid = np.quantile(np.concatenate([one[:half], other[:half]]), np.linspace(0.002, 0.998, 250))
    below = [(np.searchsorted(np.sort(x[:half]), grid) + 1) / (half + 2) for x in (one, other)]
    promise = [_promise(p, q, half) for p, q in (below, [1 - below[0], 1 - below[1]])]
    side, at = np.unravel_index(int(np.argmax(promise)), (2, len(grid)))
    counts = [int((x[half:] < grid[at]).sum()) for x in (one, other)]
    first, second = counts if side == 0 else [half - count for count in counts]
    return max(_ratio(first, second, half), _ratio(second, first, half))


def _promise(p: NDArray[np.float64], q: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    error = np.sqrt((1 - p) / (p * size) + (1 - q) / (q * size))
    return np.asarray(np.abs(np.log(p / q)) - 6.5 * error)


def _ratio(many: int, few: int, size: int) -> float:
    least = stats.beta.ppf(ALARM / 4, many, size - many + 1) if many else 0.0
    most = stats.beta.ppf(1 - ALARM / 4, few + 1, size - few) if few < size else 1.0
    return math.log(least / most) if least > 0 else 0.0


def plan_of(method: str, settings: dict[str, str | int | float]) -> shoal.Plan:
    """A plan of one cell with a heavy user."""
    size = len(COUNTS)
    counts = shoal.Counts.from_counts(range(size), ["all"] * size, COUNTS)
    return shoal.plan(
        counts, bounds=(0, 1), epsilon=1, method=method, settings=settings, uninformative="keep"
    )


@pytest.mark.parametrize(("method", "settings"), METHODS, ids=NAMES)
def test_no_audit_finds_more_than_epsilon(
    method: str, settings: dict[str, str | int | float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proven loss stays below epsilon; without selections it comes close to it."""
    # Few candidates: each distinct selection is carried out once.
    monkeypatch.setattr(selection, "CELLS", 8)
    if method == "adaptive":
        # So few users would select nothing: let a selection take place all the same.
        monkeypatch.setattr(ranges, "_needed", lambda *_: 0.2)
        monkeypatch.setattr(ranges, "MOST_HALVINGS", 3)
    plan, rng = plan_of(method, settings), np.random.default_rng(7)
    assert plan.epsilon <= 1
    found = 0.0
    for user in (0, 1):
        attack = Attack(plan, user)
        found = max(found, lower_bound(attack.outputs(0.0, rng), attack.outputs(1.0, rng)))
    assert found <= plan.epsilon
    if method in EXACT:
        assert found >= TIGHT * plan.epsilon
    else:
        assert found > 0.1
