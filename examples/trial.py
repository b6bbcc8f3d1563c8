"""An experiment in 30 shops: did a new shelf change who bought? No purchase is told."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import shoal
from shoal import trials


def main() -> None:
    """Forecast, plan, release private outcomes, estimate."""
    rng = np.random.default_rng(1)
    units = 6000
    arm, shop = rng.permuted(np.arange(units) % 2), np.arange(units) // 200
    bought = rng.random(units) < 0.2 + 0.1 * arm

    space, study = trials.Space.binary(), trials.Experiment(arm, shop, unit=np.arange(units))
    print(study.forecast(space, epsilon=2, effect=0.1))  # nothing is spent

    folder = Path(tempfile.mkdtemp())
    ledger = shoal.Ledger.create(folder / "shops.ledger", epsilon=2, unit="customer")
    plan = study.table(space, epsilon=2)
    trial = plan.release(
        bought, study, ledger=ledger, privacy_unit="customer", outcome_name="bought"
    )
    print(trial.estimate())

    table = trial.table()  # its column `debiased` goes into any regression
    shown = {arm: table["debiased"].to_numpy()[table["arm"].to_numpy() == arm].mean()
             for arm in (0, 1)}  # fmt: skip
    print(f"mean outcomes by arm: {shown[0]:.3f} and {shown[1]:.3f}")


if __name__ == "__main__":
    main()
