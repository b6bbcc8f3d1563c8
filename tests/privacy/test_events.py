"""Plans as events of dp-accounting say neither less nor much more than they cost."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import shoal
from tests.support import made_counts


def accountants() -> tuple[Any, Any, Any]:
    """The packages, whose imports warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ("dp_accounting", "dp_accounting.pld", "dp_accounting.rdp")
        core, pld, rdp = (import_module(name) for name in names)
    return core, pld, rdp


@pytest.mark.parametrize("epsilon", ["0.1", "1", "6"])
def test_pure_plans_are_events_of_the_same_loss(epsilon: str) -> None:
    """At a tiny delta the event's epsilon is the plan's, from above."""
    core, pld, _ = accountants()
    plan = shoal.plan(
        made_counts.sparse(1),
        method="balanced",
        bounds=(0, 9),
        epsilon=epsilon,
        uninformative="keep",
    )
    accountant = pld.PLDAccountant(core.NeighboringRelation.REPLACE_ONE)
    accountant.compose(plan.to_dp_event())
    found = float(np.asarray(accountant.get_epsilon(1e-12)))
    assert plan.epsilon * (1 - 1e-6) <= found <= plan.epsilon * (1 + 1e-3) + 1e-4


def test_gaussian_plans_are_events_of_their_rho() -> None:
    """Renyi accounting of the event is no better than the plan's conversion."""
    core, _, rdp = accountants()
    plan = shoal.plan(
        made_counts.crowded(),
        method="balanced",
        bounds=(0, 9),
        epsilon=1,
        delta=1e-6,
        uninformative="keep",
    )
    assert plan.gaussian
    assert plan.rho is not None
    accountant = rdp.RdpAccountant(neighboring_relation=core.NeighboringRelation.REPLACE_ONE)
    accountant.compose(plan.to_dp_event())
    found = float(np.asarray(accountant.get_epsilon(1e-6)))
    assert plan.epsilon <= found <= 1.2 * plan.epsilon
