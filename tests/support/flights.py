"""A small table of made-up flights: 40 aircraft, 4 places."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal

BOUNDS = (0, 700)


@cache
def table(seed: int = 0, size: int = 2000) -> pa.Table:
    """Columns aircraft, place, speed."""
    rng = np.random.default_rng(seed)
    aircraft = rng.integers(0, 40, size)
    return pa.table(
        {
            "aircraft": [f"N{number:03}" for number in aircraft],
            "place": np.array(["EWR", "JFK", "LGA", "TEB"])[rng.integers(0, 4, size)].tolist(),
            "speed": np.round(rng.normal(380, 60, size), 1).tolist(),
        }
    )


def neighbour(original: pa.Table, user: str, value: float) -> pa.Table:
    """The same records with all values of one user replaced."""
    names = np.array(original.column("aircraft").to_pylist())
    speed = np.where(names == user, value, original.column("speed").to_numpy())
    return original.set_column(2, "speed", pa.array(speed))


def records(source: object = None, **options: Any) -> shoal.Records:
    """Records of the table."""
    options = {"user": "aircraft", "value": "speed", "bounds": BOUNDS, "by": "place", **options}
    return shoal.Records(table() if source is None else source, **options, counts="public")


def plan(source: object = None, **wanted: Any) -> shoal.Plan:
    """A plan for them."""
    made = records(source)
    return shoal.plan(
        made.counts(),
        source=made.describe(),
        **{"method": "balanced", "bounds": BOUNDS, "epsilon": 1, **wanted},
    )


def ledger(folder: Path, epsilon: object = "2") -> shoal.Ledger:
    """A new ledger."""
    return shoal.Ledger.create(
        folder / "flights.ledger", epsilon=epsilon, privacy_unit="aircraft", counts="public"
    )
