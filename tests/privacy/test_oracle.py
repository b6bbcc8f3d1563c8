"""The exact sum against Google's privacy loss distributions."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import shoal
from tests.support import occupancies


@pytest.mark.parametrize("seed", range(3))
def test_the_account_is_never_below_the_loss_distribution(seed: int) -> None:
    """PLD composition at a tiny delta agrees for the largest loss, from below."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events: Any = import_module("dp_accounting")
        pld: Any = import_module("dp_accounting.pld")
    occupancy = occupancies.sparse(seed, users=12, cells=4)
    plan = shoal.plan(occupancy, method="balanced", bounds=(0, 9), epsilon=1, uninformative="keep")
    user = int(plan.user_losses.argmax())
    mine = occupancy.user == user
    cells = occupancy.cell[mine]
    share = occupancy.count[mine] / occupancy.totals[cells]
    accountant = pld.PLDAccountant()
    for scale in (plan.decision.scale[cells] / share).tolist():
        accountant.compose(events.LaplaceDpEvent(noise_multiplier=scale))
    found = float(np.asarray(accountant.get_epsilon(1e-12)))
    assert found <= plan.epsilon * (1 + 1e-3)
    assert found >= plan.epsilon * 0.95
