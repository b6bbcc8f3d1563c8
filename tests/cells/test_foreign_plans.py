"""Plans that were put together by hand: drawn from only if they are what their request leads to."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import shoal
from shoal.cells.derived import is_planned
from shoal.cells.user_clipped_plan import follows_counts
from shoal.errors import DocumentError, ShoalError
from tests.support import methods

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.unit, pytest.mark.full]


@pytest.fixture
def records() -> shoal.Records:
    """Three cells with 60 users each."""
    return methods.records(methods.tied(3, 60, 3))


@pytest.mark.parametrize("shape", [[1.0, 2.0, 3.0], [1.0, 1.0, 1.5]])
def test_noise_of_another_shape_is_not_drawn(
    records: shoal.Records, shape: list[float], tmp_path: Path
) -> None:
    """Intervals rest on how noise is shared, which costs no other epsilon."""
    plan = shoal.plan(records.counts(), bounds=methods.BOUNDS, epsilon=1)
    assert plan.method == "user_clipped"
    other = replace(plan, relative_scale=plan.relative_scale * shape)
    assert other.exact_epsilon == plan.exact_epsilon
    assert follows_counts(other)
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=5, unit="who")
    with pytest.raises(DocumentError, match="changed by hand"):
        other.release(records, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("method", ["user_clipped", "balanced", "optimal", "levy"])
def test_copies_of_a_plan_are_drawn_from(records: shoal.Records, method: str) -> None:
    """A copy is another plan, and has all that its request leads to."""
    plan = shoal.plan(records.counts(), bounds=methods.BOUNDS, epsilon=1, method=method)
    for other in (replace(plan, built=None), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert not is_planned(other, other)
        assert other.release(records, noise=shoal.Simulated(1)).simulated


def test_plans_of_the_planner_and_of_files_are_known(
    records: shoal.Records, tmp_path: Path
) -> None:
    """They were compared once: a release does not plan them again."""
    plan = shoal.plan(records.counts(), bounds=methods.BOUNDS, epsilon=1)
    plan.save(tmp_path / "plan.json")
    assert is_planned(plan, plan)
    loaded = shoal.Plan.load(tmp_path / "plan.json")
    assert is_planned(loaded, loaded)
    assert not is_planned(plan, replace(plan, gaussian=not plan.gaussian, built=None))


def test_a_plan_whose_numbers_are_seen_otherwise_is_not_drawn(tmp_path: Path) -> None:
    """NumPy lets anybody give a read-only array other strides."""
    records = methods.records(methods.tied(3, 60, 3))
    weights = {label: 1.0 + at for at, label in enumerate(records.counts().labels)}
    plan = shoal.plan(records.counts(), bounds=methods.BOUNDS, epsilon=1, weights=weights)
    assert len(set(plan.relative_scale.tolist())) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan.relative_scale.strides = (0,)
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=5, unit="who")
    with pytest.raises(ShoalError):
        plan.release(records, ledger=ledger)
    assert ledger.spent.epsilon == 0
