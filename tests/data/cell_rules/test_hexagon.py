"""Latitude and longitude that have changed places are asked about, in whatever order they come."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data import one_pass
from shoal.errors import DataError, ShoalWarning

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

MEANT = r"did you mean hexagon\(lon,lat,5\)\?"


def records(lat: list[float], lon: list[float]) -> shoal.Records:
    """One record a place."""
    size = len(lat)
    table = pa.table({"who": range(size), "v": [1.0] * size, "lat": lat, "lon": lon})
    return shoal.Records(table, user="who", value="v", bounds=(0, 2), cell="hexagon(lat,lon,5)")


@pytest.mark.parametrize("turn", [1, -1])
def test_places_that_are_places_the_other_way_round_are_asked_about(turn: int) -> None:
    """If most are; if few are, the columns may be right and the rows wrong."""
    angels, nowhere = ([-118.2] * 3, [34.1] * 3), ([99.0] * 2, [40.0] * 2)
    for (lat, lon), asked in (
        (angels, True),
        ((angels[0] + [40.0] * 2, angels[1] + [1.0] * 2), True),
        ((angels[0] + [40.0] * 3, angels[1] + [1.0] * 3), False),
        ((nowhere[0] + [40.0] * 3, nowhere[1] + [1.0] * 3), False),
        (([200.0] * 3, [200.0] * 3), False),
        (([float("inf")] * 3, [2.0] * 3), False),
    ):
        with pytest.raises(DataError, match="coordinates outside the globe in lat or lon") as found:
            records(lat[::turn], lon[::turn]).occupancy()
        assert ("did you mean hexagon(lon,lat,5)?" in str(found.value)) is asked


@pytest.mark.parametrize("turn", [1, -1])
def test_most_records_near_a_pole_are_a_question(turn: int) -> None:
    """New York with its columns exchanged lies in Antarctica; what is there may be meant."""
    there, here = ([-73.9] * 3, [40.7] * 3), ([40.7] * 3, [-73.9] * 3)
    with pytest.warns(ShoalWarning, match=MEANT):
        found = records(there[0][::turn], there[1][::turn]).occupancy()
    assert found.n_cells == 1
    with pytest.warns(ShoalWarning, match=MEANT):
        records((there[0] + here[0][:2])[::turn], (there[1] + here[1][:2])[::turn]).aggregate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records(*here).occupancy()
        records(there[0] + here[0], there[1] + here[1]).occupancy()
        # Both ways round beyond the circle.
        records([-75.0] * 3, [100.0] * 3).occupancy()


def test_batches_that_stream_by_are_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is of all records, wherever a batch ends."""
    monkeypatch.setattr(one_pass, "_BATCH", 1000)
    rng = np.random.default_rng(3)
    size = 9000
    lat, lon = rng.uniform(30, 40, size), rng.uniform(95, 120, size)
    messages = set()
    for swapped in (range(5000), range(4000, 9000)):
        at = np.array(swapped)
        one, two = lat.copy(), lon.copy()
        one[at], two[at] = lon[at], lat[at]
        table = pa.table(
            {"who": range(size), "v": [1.0] * size, "lat": one.tolist(), "lon": two.tolist()}
        )
        source = tmp_path / "trips.parquet"
        pq.write_table(table, source)
        given = shoal.Records(
            source, user="who", value="v", bounds=(0, 2), cell="hexagon(lat,lon,5)"
        )
        with pytest.raises(DataError, match=MEANT) as caught:
            given.occupancy()
        messages.add(str(caught.value))
    assert len(messages) == 1
