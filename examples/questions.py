"""An experiment with a known question: an adjusted effect in one release, regressions free."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import shoal
from shoal.trials import Experiment, Space


def main() -> None:
    """Ask, release once into a ledger, regress for nothing."""
    rng = np.random.default_rng(1)
    units = 4000
    arm, age = rng.permuted(np.arange(units) % 2), rng.integers(18, 80, units)
    spent = np.clip(rng.normal(20 + 5 * arm + 0.3 * age, 8), 0, 100)

    study = Experiment(arm, covariates={"age": age})
    asked = study.ask().effect().regression(["arm", "age"])
    plan = asked.plan(Space.bins(0, 100), epsilon=1, spread=10)  # nothing is read or spent
    print(plan)

    folder = Path(tempfile.mkdtemp())
    ledger = shoal.Ledger.create(folder / "shop.ledger", epsilon=1, unit="customer")
    release = plan.release(
        spent, study, ledger=ledger, outcome_name="spent", privacy_unit="customer"
    )
    print(release.estimate())
    print(release.regression(["arm"]))
    print(f"checked by the second opinion: {shoal.verify(release.manifest).holds}")


if __name__ == "__main__":
    main()
