"""The second opinion on two rounds of users' vectors: it agrees, and finds every lie."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DocumentError
from tests.support.gaussian_vectors import always_gaussian
from tests.support.verdicts import DAMAGED, failed_claims, rekey

pytestmark = pytest.mark.property


@pytest.fixture(scope="module", params=[False, True], ids=["laplace", "gaussian"])
def manifest(request: pytest.FixtureRequest) -> dict[str, Any]:
    """As if its noise had been real."""
    rng = np.random.default_rng(5)
    user, cell = np.repeat(np.arange(300), 5), rng.integers(0, 8, 1500)
    columns = {"who": user, "at": cell, "value": np.clip(rng.normal(40, 8, 1500), 0, 100)}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    records = shoal.Records(table, user="who", value="value", bounds=(0, 100), cell="at")
    wanted: dict[str, Any] = {"method": "user_clipped", "settings": {"rounds": 2}}
    if request.param:
        with always_gaussian():
            plan = shoal.plan(
                records.occupancy(), bounds=(0, 100), epsilon=4, delta="1e-8", **wanted
            )
    else:
        plan = shoal.plan(records.occupancy(), bounds=(0, 100), epsilon=4, **wanted)
    assert (plan.rounds, plan.gaussian) == (2, request.param)
    made = plan.release(records, noise=shoal.Simulated(5)).manifest
    return {**made, "simulation": False}


def test_the_shares_of_both_rounds_are_recomputed(manifest: dict[str, Any]) -> None:
    """G-VERIFY: more for the second round would state less noise than the planner's."""
    assert failed_claims(manifest) == []
    told = manifest["plan"]["mechanism"]["parameters"]
    for change in (-2, 2):
        lie = copy.deepcopy(manifest)
        parts = lie["plan"]["mechanism"]["parameters"]
        parts["first_ball"] = [told["first_ball"][0] + change]
        rekey(lie)
        assert {"mechanism", DAMAGED} & {*failed_claims(lie)}


@pytest.mark.parametrize("ball", [[], [1, 2]])
def test_another_number_of_balls_is_damage(manifest: dict[str, Any], ball: list[int]) -> None:
    """G-FUZZ: one of our errors, whatever stands there."""
    lie = copy.deepcopy(manifest)
    lie["plan"]["mechanism"]["parameters"]["first_ball"] = ball
    rekey(lie)
    with pytest.raises(DocumentError, match="damaged"):
        shoal.verify(lie)
