"""Makes `src/shoal/datasets/visits.parquet`: visits of library cards in March 2026, all made up."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CARDS, SEED = 4000, 2026
BRANCHES = ["Central", "Harbour", "North", "South"]
# Of each branch: its part of the visits, and the mean minutes of a visit.
PARTS, MEANS = [0.45, 0.25, 0.2, 0.1], np.array([55, 80, 40, 30])
HOUR = 3600


def visits() -> pa.Table:
    """A row a visit; most cards go to one branch, and a few come every day."""
    rng = np.random.default_rng(SEED)
    card = np.repeat(np.arange(CARDS), np.minimum(rng.geometric(0.2, CARDS), 60))
    home = rng.choice(4, CARDS, p=PARTS)[card]
    branch = np.where(rng.random(len(card)) < 0.8, home, rng.choice(4, len(card), p=PARTS))
    opened = np.datetime64("2026-03-01T09:00", "s")
    seconds = rng.integers(0, 31, len(card)) * 24 * HOUR + rng.integers(0, 10 * 60, len(card)) * 60
    stay = rng.gamma(4, 0.25, CARDS)[card] * rng.gamma(3, 1 / 3, len(card))
    minutes = np.clip(np.rint(MEANS[branch] * stay), 1, 600)
    left_unseen = rng.random(len(card)) < 0.01
    columns = {
        "card": pa.array([f"C{each:04}" for each in card]),
        "branch": pa.array(np.array(BRANCHES)[branch]),
        "entered": pa.array(opened + seconds),
        "minutes": pa.array(minutes.astype(np.int16), mask=left_unseen),
    }
    return pa.table(columns).sort_by([("entered", "ascending"), ("card", "ascending")])


if __name__ == "__main__":
    place = Path(__file__).parents[1] / "src/shoal/datasets/visits.parquet"
    pq.write_table(visits(), place, compression="zstd", compression_level=19)
    print(f"{place.stat().st_size:,} bytes")
