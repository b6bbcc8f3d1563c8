"""What a person looks at before a release, whatever a program asked of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import InputError
from tests.support.loop import loop_over

pytestmark = [pytest.mark.unit, pytest.mark.full]

VIEWS: dict[str, Callable[[shoal.Plan], object]] = {
    "text": str,
    "html": lambda plan: plan._repr_html_(),
    "table": lambda plan: plan.table(),
    "typical error": lambda plan: plan.typical_error(),
    "comparison": lambda plan: str(plan.compare(["balanced", "midpoint"], repetitions=2)),
}


def _counts() -> shoal.Counts:
    who, where = np.divmod(np.arange(640), 8)
    return shoal.Counts.from_counts(who, where, 1 + who % 5)


@loop_over("view", VIEWS)
@loop_over("method", [None, "balanced", "adaptive"])
@loop_over("epsilon", [0.1, 4, 1000])
def test_views_do_not_heed_what_numpy_was_told(
    view: str, method: str | None, epsilon: float
) -> None:
    """A program that lets NumPy raise gets its plan all the same."""
    with np.errstate(all="raise"):
        plan = shoal.plan(
            _counts(), bounds=(0, 10), epsilon=epsilon, method=method, uninformative="keep"
        )
        assert VIEWS[view](plan) is not None


@pytest.mark.parametrize("settings", [np.array([1, 2]), [1], "cap=3"])
def test_settings_of_another_kind_are_refused(settings: Any) -> None:
    """With or without a method."""
    for method in (None, "levy"):
        with pytest.raises(InputError):
            shoal.plan(_counts(), bounds=(0, 10), epsilon=1, method=method, settings=settings)


def test_parts_of_a_matrix_that_are_exchanged_are_nobodys() -> None:
    """The certified gap is of the plan's own sensitivities."""
    plan = shoal.plan(_counts(), bounds=(0, 10), epsilon=4, method="balanced")
    again = shoal.plan(_counts(), bounds=(0, 10), epsilon=4, method="balanced")
    plan.problem.by_number.data = plan.problem.by_number.data * 1.5
    assert plan.gap == again.gap
