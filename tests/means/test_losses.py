"""Epsilons that no release may cost are refused by every method, in one line."""

import json
from typing import Any

import pytest

from shoal import unbiased
from shoal.errors import DocumentError, InputError
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

METHODS: dict[str, dict[str, Any]] = {
    "symmetric_mean": {"delta": "1e-6"},
    "clipped_mean": {"interval": (0, 1), "bias": 0.3},
    "clipped_plus_residual": {"delta": "1e-6", "interval": (0, 1), "publish_values": True},
}


@loop_over("epsilon", ["1e309", 10**400, 1e7, "1e-10", 0])
@loop_over("method", METHODS)
def test_losses_beyond_reason_are_refused(method: str, epsilon: Any) -> None:
    """No overflow, and no release that protects nobody."""
    wanted = METHODS[method]
    with pytest.raises(InputError, match="epsilon is"):
        unbiased.plan(method, 2000, moment=unbiased.Moment(2, 1), epsilon=epsilon, **wanted)


@pytest.mark.parametrize("epsilon", ["1e309", 1e7])
def test_recommendations_ask_for_as_little(epsilon: Any) -> None:
    """The same in what compares the methods."""
    with pytest.raises(InputError, match="epsilon is"):
        unbiased.recommend(
            2000, epsilon=epsilon, delta="1e-6", moment=unbiased.Moment(4, 1.5), interval=(0, 10)
        )


@pytest.mark.parametrize("asked", ["5", "2", "1/2"])
@pytest.mark.parametrize("interval_by", ["normal", "certified"])
def test_a_plan_that_could_not_be_verified_is_not_loaded(asked: str, interval_by: str) -> None:
    """A clipped mean spends what was asked for, or its second opinion says no."""
    wanted = {"moment": unbiased.Moment(2, 1), "epsilon": 1, **METHODS["clipped_mean"]}
    plan = unbiased.plan("clipped_mean", 2000, interval_by=interval_by, **wanted)
    document: dict[str, Any] = json.loads(json.dumps(plan.to_document()))
    assert unbiased.UnbiasedPlan.from_document(document).to_document() == document
    document["request"]["epsilon"] = asked
    with pytest.raises(DocumentError, match="changed by hand"):
        unbiased.UnbiasedPlan.from_document(document)
