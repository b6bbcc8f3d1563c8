"""Hours, days and months between the first and the last that have no record."""

import numpy as np
import pyarrow as pa
import pytest

import shoal

# An hour before clocks in Berlin leave out 02:00, and hours after it, in universal time.
SPRING = ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T04:00"]


def gaps(times: list[str], by: str | list[str]) -> list[str]:
    """What counts of one record a user say of these times."""
    many = range(len(times))
    table = pa.table({"who": [*many], "at": np.array(times, "M8[s]"), "v": [1.0] * len(times)})
    records = shoal.Records(table, user="who", value="v", bounds=(0, 2), by=by, counts="public")
    counts = records.counts()
    lines = [" ".join(each.split()) for each in str(counts).split("\n")]
    for each in counts.gaps:
        assert each in " ".join(lines)
    return [*counts.gaps]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("timeslot(at,1h)", "2 of 5 hours in at_1h have no record: 2026-03-29 02:00, 03:00"),
        # 01:30 and 03:30 follow one another, as nothing is at 02:30.
        (
            "timeslot(at,1h,Europe/Berlin)",
            "2 of 5 hours in at_1h have no record: 2026-03-29 04:00, 05:00",
        ),
        (
            "timeslot(at,30min)",
            "5 of 8 slots in at_30min have no record: 2026-03-29 01:00, 02:00, 02:30, ...",
        ),
        (
            "timeslot(at,1s)",
            "more than 10,000 of 12,601 slots in at_1s have no record: "
            "2026-03-29 00:30:01, 00:30:02, 00:30:03, ...",
        ),
    ],
)
def test_hours_without_a_record_are_named(by: str, said: str) -> None:
    """Those that clocks show."""
    assert gaps(SPRING, by) == [said]


def test_days_weeks_and_months_have_names_of_their_own() -> None:
    """Each rule of time has its sentence; weekdays and places have none."""
    rules = ["month(at)", "weekday(at)", "date(at)", "timeslot(at,1w)"]
    assert gaps(["2026-01-05", "2026-03-05", "2026-03-06"], rules) == [
        "1 of 3 months in at_month has no record: 2026-02",
        "58 of 61 days in at_date have no record: 2026-01-06, 2026-01-07, 2026-01-08, ...",
        "7 of 9 weeks in at_1w have no record: 2026-01-12, 2026-01-19, 2026-01-26, ...",
    ]
    # Samoa went from the 29th to the 31st, and all of its days have a record.
    assert gaps(["2011-12-29T12:00", "2011-12-30T12:00"], "date(at,Pacific/Apia)") == []
    assert shoal.Counts.from_counts(["a"], ["2026-01-05"], [1]).gaps == ()
