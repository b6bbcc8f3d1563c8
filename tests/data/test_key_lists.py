"""Keys without typing: what lists stand for, by what rules make of the records themselves."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.data.cell_rules import parse
from shoal.data.key_lists import key_list

TIMES = np.arange("2025-11-29T00:00", "2026-03-02T00:00", 45, dtype="M8[m]")
LISTS = {
    "timeslot(at,1h)": "2025-11-29..2026-03-01 23:00",
    "timeslot(at,1w,Asia/Kolkata)": "2025-11-24..2026-03-02",
    "date(at)": "2025-11-29..2026-03-01",
    "month(at)": "2025-11..2026-03",
    "week(at)": "2025-W48..2026-W09",
    "quarter(at)": "2025-Q4..2026-Q1",
    "year(at)": "2025..2026",
    "hour_of_day(at)": "0..23",
    "bins(x,10,5)": "-5..95",
}


@pytest.mark.parametrize("rule", LISTS)
def test_a_first_and_a_last_key_are_all_keys_of_the_records(rule: str) -> None:
    """The same cells as the public counts of records from the first to the last."""
    table = pa.table(
        {
            "who": np.arange(len(TIMES)),
            "at": TIMES.astype("M8[us]"),
            "x": np.arange(len(TIMES)) % 101,
            "v": np.zeros(len(TIMES)),
        }
    )
    known: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 1), "by": rule}
    cells = shoal.Records(table, **known, counts="public").counts().cells.column(0)
    found = key_list(LISTS[rule], parse(rule))
    assert found.equals(cells.combine_chunks())
    texts = [str(each) for each in found[:3]]
    assert key_list(texts, parse(rule)).equals(found[:3])


def test_hexagons_of_a_box_hold_every_place_in_it() -> None:
    """Also those whose middles lie outside; a polygon of the same corners has the same."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(48.1, 48.2, 4000), rng.uniform(11.5, 11.7, 4000)
    table = pa.table({"who": np.arange(4000), "lat": lat, "lon": lon, "v": np.zeros(4000)})
    rule = shoal.hexagon("lat", "lon", 7)
    known: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 1), "by": rule}
    there = shoal.Records(table, **known, counts="public").counts().cells.column(0).to_pylist()
    listed = shoal.hexagons((48.1, 11.5, 48.2, 11.7), 7)
    assert set(there) <= set(listed)
    assert len(listed) < 2 * len(there)
    assert key_list("48.1,11.5..48.2,11.7", rule).to_pylist() == listed
    corners = [(48.1, 11.5), (48.1, 11.7), (48.2, 11.7), (48.2, 11.5)]
    assert shoal.hexagons(corners, 7) == listed


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ("timeslot(at,1h)", ["2026-03-01 00:10"]),
        ("timeslot(at,1w)", ["2026-03-01"]),
        ("date(at)", ["1.3.2026"]),
        ("date(at)", "2026-03-02..2026-03-01"),
        ("month(at)", ["2026-3"]),
        ("bins(x,10,5)", [0]),
        ("branch", "North..South"),
        ("hexagon(lat,lon,7)", "48.1,x..48.2,11.7"),
    ],
)
def test_what_is_no_key_of_a_rule_is_refused(rule: str, given: Any) -> None:
    """Such cells would look like cells without records."""
    with pytest.raises(shoal.errors.InputError):
        key_list(given, parse(rule))
