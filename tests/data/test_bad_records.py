"""Bad records: one clear line each, and never a value in it."""

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.data.records import check_size
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DataError, InputError
from tests.support.loop import loop_over

CANARY = "987654.321"
GOOD: dict[str, list[Any]] = {
    "who": ["a", "b", "b"],
    "place": ["x", "x", "y"],
    "speed": [1.0, 2.0, 987654.321],
}


def read(source: object = None, **options: Any) -> shoal.Counts:
    """Aggregate the records, so that values are read."""
    options = {"user": "who", "value": "speed", "bounds": (0, 10), "by": "place", **options}
    records = shoal.Records(
        pa.table(GOOD) if source is None else source, **options, counts="public"
    )
    return records.aggregate()[0]


def changed(**columns: Any) -> pa.Table:
    """The good table with other columns."""
    return pa.table({**GOOD, **columns})


@loop_over(
    ("options", "message"),
    [
        (
            {"user": "whom"},
            r"no column 'whom' in the pyarrow table \(did you mean 'who'\?\); give one of pl",
        ),
        ({"by": ["place", "timeslot(when,1h)"]}, "no column 'when'"),
        ({"by": 3}, "cell rule has the type int"),
        ({"by": "nonsense(place)"}, "no column 'nonsense\\(place\\)' .* or a cell rule: timeslot"),
        ({"by": "timeslot(place,1h)"}, "'place' holds varchar; convert it to times or dates"),
        ({"by": ["place", "place"]}, "two cell columns share a name: place, place"),
        ({"by": "speed"}, "the value column 'speed' is also given as cell"),
        ({"user": "speed"}, "the value column 'speed' is also given as user"),
        ({"bounds": (0, float("nan"))}, "the upper bound is nan"),
        ({"missing": "maybe"}, "missing is 'maybe'; allowed: one of refuse, public"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    """Got, allowed, next step."""
    with pytest.raises((DataError, InputError), match=message) as caught:
        read(**options)
    assert "\n" not in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (changed(speed=[1.0, None, 2.0]), "column 'speed' has null, NaN or infinite"),
        (changed(speed=[1.0, float("nan"), 2.0]), "column 'speed' has null, NaN or infinite"),
        (changed(speed=[1.0, float("inf"), 2.0]), "column 'speed' has null, NaN or infinite"),
        (changed(speed=["1", CANARY, "3"]), "'speed' holds varchar; convert it to numbers"),
        (changed(who=["a", None, "b"]), "column 'who' has null"),
        (changed(place=["a", None, "b"]), r"column 'place' has null.*\(--missing public\)"),
        (changed(who=[1.5, 2.5, 3.5]), "'who' holds double; convert it to text, integers"),
        (changed(place=[1.5, 2.5, 3.5]), "'place' holds double; convert it to text, integers"),
        (changed(place=[["a"], ["b"], ["c"]]), "'place' holds list<item: string>"),
        (changed(place=pa.array([1, 2, 3], pa.timestamp("s"))), "by timeslot"),
        (pa.table(GOOD).slice(0, 0), "no records"),
    ],
)
def test_bad_tables(table: pa.Table, message: str, caplog: pytest.LogCaptureFixture) -> None:
    """The message names the column; no value, not even how many are missing."""
    with caplog.at_level(logging.DEBUG), pytest.raises(DataError, match=message) as caught:
        read(table)
    shown = str(caught.value) + caplog.text
    assert CANARY not in shown
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_nothing_left_after_dropping() -> None:
    """All values missing: no records."""
    with pytest.raises(DataError, match="no records"):
        read(changed(speed=pa.array([None, None, None], pa.float64())), missing="public")


def test_reprs_hold_no_values(tmp_path: Path) -> None:
    """Nothing that prints itself shows a value."""
    pq.write_table(pa.table(GOOD), tmp_path / "r.parquet")
    for source in (pa.table(GOOD), tmp_path / "r.parquet"):
        records = shoal.Records(
            source, user="who", value="speed", bounds=(0, 10), by="place", counts="public"
        )
        _, aggregate = records.aggregate()
        texts = [repr(records), repr(aggregate), str(aggregate), repr(records.counts())]
        assert all("98765" not in text and str(2**20) not in text for text in texts)


@pytest.mark.parametrize("bits", [1, 8, 20, 24])
def test_sums_that_may_not_fit_64_bits_are_refused(bits: int) -> None:
    """The largest sum of squares is below 2^63, and no count less is refused."""
    lattice, most = Lattice(Bounds(0, 1), bits), 2 ** (63 - 2 * (bits - 1)) - 1
    assert most * 4 ** (bits - 1) < 2**63 <= (most + 1) * 4 ** (bits - 1)
    check_size(most, lattice)
    with pytest.raises(DataError, match="64-bit sums"):
        check_size(most + 1, lattice)


@pytest.mark.parametrize("name", ["measure", "key", "tick", "user", "Status", "lower_bound"])
@pytest.mark.parametrize("texts", [True, False])
def test_cells_may_have_any_name(tmp_path: Path, name: str, *, texts: bool) -> None:
    """A column is never taken for a sum of its own pass; names of results get a line behind."""
    cells = ["a", "b", "a"] if texts else [1, 2, 1]
    source = pa.table({"who": [1, 2, 3], name: cells, "v": [1.0, 2.0, 3.0]})
    records = shoal.Records(
        source, user="who", value="v", bounds=(0, 9), by=[name], counts="public"
    )
    plan = shoal.plan(
        records.counts(), method="balanced", bounds=(0, 9), epsilon=1, statistics=("mean",
        "share_above(4)"),
        uninformative="keep", min_users=1,
    )  # fmt: skip
    book = shoal.Ledger.create(
        tmp_path / "a.ledger", epsilon=1, privacy_unit=records.user, counts="public"
    )
    found = plan.release(records, ledger=book).table()
    shown = f"{name}_" if name in {"user", "Status", "lower_bound"} else name
    assert set(found.column(shown).to_pylist()) == set(cells)
    assert len(set(found.column_names)) == len(found.column_names)
