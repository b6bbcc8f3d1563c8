"""Made-up visits of cards to branches, whose counts are private."""

from typing import Any

import numpy as np
import pyarrow as pa

import shoal

BRANCHES = ["Harbour", "North", "South"]


def visits(cards: int = 3000, seed: int = 0) -> pa.Table:
    """A row a visit: card, branch, day and minutes; half of the visits are to the harbour."""
    rng = np.random.default_rng(seed)
    many = rng.poisson(4, cards) + 1
    who = np.repeat(np.arange(cards), many)
    branch = rng.choice(3, len(who), p=[0.5, 0.3, 0.2])
    minutes = np.clip(rng.gamma(3, 12, len(who)) + 40 * (branch == 0), 0, 240)
    return pa.table(
        {
            "card": [f"c{each:05}" for each in who],
            "branch": np.array(BRANCHES)[branch].tolist(),
            "day": rng.integers(1, 8, len(who)),
            "minutes": np.round(minutes, 1),
        }
    )


def records(source: object, **more: Any) -> shoal.Records:
    """The records of such a table, by branch."""
    known: dict[str, Any] = {"value": "minutes", "bounds": (0, 240), "by": "branch"}
    return shoal.Records(source, user="card", **{**known, **more})
