"""Mean speeds of buses by station and hour, from records to next month's release."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal


def month(seed: int) -> pa.Table:
    """Records of 60 buses: made up, but heavy and light buses as in a real month."""
    rng = np.random.default_rng(seed)
    bus = np.repeat(np.arange(60), rng.integers(20, 400, 60))
    station = rng.choice(["harbour", "market", "school"], len(bus), p=[0.5, 0.3, 0.2])
    hour = rng.choice([8, 12, 17], len(bus))
    speed = np.clip(rng.normal(24 + 0.2 * (bus % 7), 6, len(bus)), 0, 60)
    return pa.table(
        {
            "bus": pa.array(bus),
            "station": pa.array(station),
            "hour": pa.array(hour),
            "speed": pa.array(speed),
        }
    )


def main() -> None:
    """Count, plan, release, verify; then the next month."""
    folder = Path(tempfile.mkdtemp())
    ledger = shoal.Ledger.create(folder / "city.ledger", epsilon=4, unit="bus")
    for name, seed in (("2026-10", 1), ("2026-11", 2)):
        records = shoal.Records(
            month(seed), user="bus", value="speed", bounds=(0, 60), by=["station", "hour"]
        )
        plan = shoal.plan(records, epsilon=2)
        print(plan)  # what every cell will err, before any value is read
        release = plan.release(records, ledger=ledger, name=name)
        print(release.table().select(["station", "hour", "value", "low", "high"]).to_pylist()[0])
        release.write_manifest(folder / f"{name}.json")
        print(shoal.verify(folder / f"{name}.json", ledger=ledger))
    print(f"spent {ledger.spent.show(up=True)} of {ledger.budget.show(up=False)}")


if __name__ == "__main__":
    main()
