"""Optimal plans, from the request to the certificate, and noise of either kind."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal.cells.facts.variance_programs import largest_factor
from shoal.cells.facts.weighted import WeightedPlan
from shoal.cells.mechanisms.weights import PART
from shoal.cells.planners.optimal import plan as planner
from shoal.cells.planners.optimal.interior import solve
from shoal.data.counts import Counts
from shoal.errors import InputError
from tests.support import made_counts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from shoal.cells.facts.program import Program, Solution


STATISTICS = [["mean"], ["variance"], ["mean", "variance"], ["share_above(4)", "mean"]]


def plan(seed: int, statistics: Sequence[str] = ("mean",), **wanted: Any) -> shoal.Plan:
    """A plan that keeps all cells of a sparse counts."""
    wanted = {"epsilon": 6, "method": "optimal", "uninformative": "keep", **wanted}
    return shoal.plan(
        made_counts.sparse(seed),
        bounds=(0, 9),
        statistics=statistics,
        **{"method": "balanced", **wanted},
    )


def errors(made: shoal.Plan) -> np.ndarray:
    """Sum over the statistics of the relative error, of each cell."""
    return np.asarray(made.numbers.per_statistic(made.relative_error).sum(axis=0))


@pytest.mark.parametrize("statistics", STATISTICS, ids="+".join)
@pytest.mark.parametrize("seed", range(2))
def test_no_other_weights_do_better_than_certified(statistics: list[str], seed: int) -> None:
    """Cells err alike, less than equalised ones; random weights stay above the bound."""
    made = plan(seed, statistics)
    assert made.gap is not None
    assert made.gap < (0.01 if "variance" not in statistics else 0.5)
    assert np.ptp(errors(made)) <= 1e-4 * errors(made).max()
    assert errors(made).max() < errors(plan(seed, statistics, method="equalised")).max()
    bound = _factor(made) / (1 + made.gap)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        part = made.parameters["part"] + rng.integers(-(2**14), 2**14, len(made.weights.member))
        kept = {"part": np.clip(part, 0, 1 << PART)}
        other = replace(made, decision=replace(made.decision, parameters=kept))
        lost = other.losses.of_users.max()
        # With noise for the same loss.
        scale = other.decision.scale * lost / made.epsilon
        same = replace(other, decision=replace(other.decision, scale=scale))
        assert _factor(same) >= bound * (1 - 1e-6)


def test_an_error_is_kept_at_less_loss_than_equalised() -> None:
    """The least epsilon for an error of every cell, weighed by importance."""
    made = plan(0, epsilon=None, error=1.5, weights={"0": 2.0})
    assert (made.worst_case_error <= 1.5).all()
    assert made.worst_case_error[0] <= 0.75
    assert made.epsilon < plan(0, epsilon=None, error=1.5, method="equalised").epsilon
    with pytest.raises(InputError, match="one statistic"):
        plan(0, ["mean", "variance"], epsilon=None, error=1.5)


@pytest.mark.parametrize(
    ("error", "first"), [(1e-2, 1.0), (1e-3, 1.0), (2e-5, 1.0), (0.9, 1e5), (1.0, 1e4), (9e-2, 1e4)]
)
def test_small_errors_are_met(tmp_path: Path, error: float, first: float) -> None:
    """Weights are whole numbers of parts, and what that leaves out is no larger error."""
    made = plan(0, epsilon=None, error=error, weights={"0": first}, uninformative="drop")
    assert (made.worst_case_error <= error).all()
    assert made.worst_case_error[0] <= error / first * (1 + 1e-3) + 9 * 2.0**-20
    made.save(tmp_path / "plan.json")
    assert shoal.Plan.load(tmp_path / "plan.json").epsilon == made.epsilon
    # The cell with the smallest error alone costs about as much.
    assert made.epsilon <= 9 * first / error * 1.5


def test_weights_a_hair_below_the_shares_meet_small_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As interior points leave them; rounded down to parts they would have no room for noise."""

    def short(program: Program, *_: float) -> Solution:
        best = solve(program)
        return replace(best, weight=best.weight * (1 - 1e-6))

    monkeypatch.setattr(planner, "solve", short)
    made = plan(0, epsilon=None, error=2e-5)
    assert (made.worst_case_error <= 2e-5).all()
    assert made.epsilon <= plan(0, epsilon=None, error=2e-5, method="equalised").epsilon * 1.01


@pytest.mark.parametrize("statistic", ["mean", "share_above(3)"])
@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
def test_an_error_is_kept_whatever_the_ticks(bits: int, statistic: str) -> None:
    """Means of users are rounded more the fewer tick bits there are."""
    statistic_range = 9 if statistic == "mean" else 1
    for part in (0.3, 0.03, 1.5 * 2.0**-bits):
        made = plan(0, [statistic], epsilon=None, error=part * statistic_range, tick_bits=bits)
        assert (made.worst_case_error <= part * statistic_range).all()


@pytest.mark.parametrize("error", [9 * 2.0**-22, 1e-9, 4.5])
def test_errors_that_no_plan_can_have_are_refused(error: float) -> None:
    """Below half a tick, or half the range."""
    with pytest.raises(InputError, match="more than a tick"):
        plan(0, epsilon=None, error=error)


def test_balanced_targets_improve_every_cell_alike() -> None:
    """With targets in proportion to the balanced plan no cell is worse off than there."""
    balanced = plan(1, method="balanced", epsilon=1)
    made = plan(1, settings={"targets": "balanced"}, epsilon=1)
    ratio = errors(made) / errors(balanced)
    assert ratio.max() < 0.99
    # Where even a constant does no worse nobody counts.
    assert np.ptp(ratio[errors(made) < 0.499]) < 1e-3


def test_uninformative_cells_are_left_out_first() -> None:
    """Optimal plans leave out fewer cells than equalised ones."""
    made = plan(2, epsilon=0.4, uninformative="drop")
    quick = plan(2, epsilon=0.4, uninformative="drop", method="equalised")
    assert len(quick.planned) < len(made.planned) < len(made.status)
    assert (made.cell_error < 1 / 2).all()
    with pytest.raises(InputError, match="the plan would have no cell"):
        plan(2, epsilon=0.01, uninformative="drop")


def test_selected_ranges_and_optimal_weights_go_together() -> None:
    """Selection and noise stay within epsilon, and the plan comes back from its file."""
    made = plan(5, settings={"range": "selected"}, epsilon="2")
    assert made.decision.method.mechanism == "optimal_in_range"
    assert made.cost.selecting > 0
    assert made.exact_epsilon <= Fraction(2)
    assert made.epsilon > 1.99
    with pytest.raises(InputError, match="only for plans of the mean"):
        plan(5, ["variance"], settings={"range": "selected"})


def test_more_cells_than_a_program_solves_are_refused() -> None:
    """With a method that plans them, which is what the best certified plan then is."""
    counts = Counts.from_counts([*range(4002)], [*range(2001)] * 2, [1] * 4002)
    asked: dict[str, Any] = {
        "bounds": (0, 9),
        "epsilon": 4,
        "uninformative": "keep",
        "min_users": 1,
    }
    with pytest.raises(InputError, match='method="balanced"'):
        shoal.plan(counts, method="optimal", **asked)
    assert shoal.plan(counts, objective="worst_case", **asked).method == "balanced"


def _factor(plan: shoal.Plan) -> float:
    """The largest error of a plan over its target."""
    assert plan.decision.targets is not None
    return largest_factor(WeightedPlan(plan.numbers, plan.decision.targets), plan.decision.scale)
