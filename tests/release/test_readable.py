"""What is charged can be read: odd public inputs are refused, or read back and verified."""

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials, unbiased
from shoal.data.keys import as_table
from shoal.documents import canonical_bytes
from shoal.errors import DataError, InputError

_TOTAL = 1000
_ROWS, _UNITS = 40, 60


def _digits(number: int) -> Fraction:
    return Fraction(10 ** (number - 1) + 1, 10 ** (number - 1))


def _ledger(folder: Path) -> shoal.Ledger:
    return shoal.Ledger.create(
        folder / "a.ledger", epsilon=_TOTAL, delta="1/2", privacy_unit="who", counts="public"
    )


def _judge(book: shoal.Ledger, release: Callable[[], Any], folder: Path) -> str:
    """`refused` at no cost, or `read` in every way that there is."""
    try:
        found = release()
    except (InputError, DataError):
        assert book.state().left.epsilon == _TOTAL
        return "refused"
    assert book.state().left.epsilon < _TOTAL
    assert str(found)
    manifest = folder / "manifest.json"
    found.write_record(manifest)
    if isinstance(found, shoal.Release):
        assert found.table().num_rows
        assert str(found.plan)
        (folder / "plan.json").write_bytes(canonical_bytes(found.record["plan"]))
        shoal.Plan.load(folder / "plan.json")
    elif isinstance(found, trials.Release):
        assert trials.Release.load(manifest).table().num_rows
        assert found.estimate()
    assert shoal.verify(manifest, ledger=book).holds
    assert str(release().document) == str(found.document)
    return "read"


def _cells(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    user, value, cell = odd.pop("user", "who"), odd.pop("value", "value"), odd.pop("cell", "place")
    keys, columns = odd.pop("keys", ["x", "y"] * (_ROWS // 2)), odd.pop("columns", 1)
    rule = odd.pop("rule", None)
    names = [cell] if columns == 1 else [f"{cell}{at}" for at in range(columns)]
    table = pa.table(
        {
            user: [f"u{at // 2}" for at in range(_ROWS)],
            **dict.fromkeys(names, keys),
            value: [0.0, 50.0] * (_ROWS // 2),
        }
    )

    def release() -> Any:
        records = shoal.Records(
            table, user=user, value=value, by=rule or names, bounds=(0, 100), counts="public"
        )
        wanted = {"epsilon": 1, "uninformative": "keep", **odd}
        plan = shoal.plan(records.counts(), bounds=(0, 100), **{"method": "balanced", **wanted})
        return plan.release(records, ledger=book, name="n", privacy_unit="who")

    return release


_HOURS = pa.array([1_577_836_800 + 3600 * (at % 5) for at in range(_ROWS)], pa.timestamp("s"))
_FAR = pa.array([-800_000, 19_000] * (_ROWS // 2), pa.int32()).cast(pa.date32())
_LAST_TIMES = pa.array([253_402_300_799, 10**9] * (_ROWS // 2), pa.timestamp("s"))
_FAR_TIMES = pa.array([316 * 10**9, 10**9] * (_ROWS // 2), pa.timestamp("s"))
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing odd": ("read", {}),
    "a cell column of 201 letters": ("refused", {"cell": "c" * 201}),
    "a cell column on two lines": ("refused", {"cell": "a\nb"}),
    "65 cell columns": ("refused", {"columns": 65}),
    "a slot's name of 201 letters": (
        "refused",
        {"cell": "t" * 198, "keys": _HOURS, "rule": shoal.timeslot("t" * 198, "1h")},
    ),
    "epsilon of 401 digits": ("refused", {"epsilon": _digits(401)}),
    "days before year 1": ("refused", {"keys": _FAR}),
    "slots on the last day": (
        "read",
        {"keys": _LAST_TIMES, "rule": shoal.timeslot("place", "90min")},
    ),
    "slots after year 9999": (
        "refused",
        {"keys": _FAR_TIMES, "rule": shoal.timeslot("place", "1h")},
    ),
    "a key on two lines": ("read", {"keys": ["x\ny", "z"] * (_ROWS // 2)}),
    "blanks in a value column": ("read", {"value": " the  größe "}),
}


@pytest.mark.parametrize("odd", CELLS)
def test_cells_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No release of cells is charged that cannot be read and verified."""
    wanted, options = CELLS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _cells(book, **options), tmp_path) == wanted


def _trial(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    def release() -> Any:
        given = {"arm": np.arange(_UNITS) % 2, "cluster": np.arange(_UNITS) // 2 % 3, **odd}
        loss = {"epsilon": given.pop("epsilon", 1), "delta": given.pop("delta", 0)}
        study = trials.Experiment(**given)
        plan = study.table(trials.Domain.binary(), **loss, mechanism="uniform_prior")
        usual: dict[str, Any] = {"outcome_name": " the  größe ", "privacy_unit": "who", "name": "n"}
        return plan.release(np.arange(_UNITS) % 2, study, ledger=book, **usual)

    return release


_LIMA = pa.timestamp("s", "America/Lima")
_FINE = np.array(["2020-01-01T00:00:00.123456789", "2021-01-01"], "M8[ns]")
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing odd": ("read", {}),
    "clusters in nanoseconds": ("refused", {"cluster": np.repeat(_FINE, 30)}),
    "units in microseconds": ("read", {"unit": np.arange(_UNITS).astype("M8[us]")}),
    "clusters after year 9999": (
        "refused",
        {"cluster": pa.array([0] * 30 + [10**12] * 30, pa.timestamp("s"))},
    ),
    "clusters on the first and last day": (
        "read",
        {"cluster": [dt.date.min] * 30 + [dt.date.max] * 30},
    ),
    "a local time on the first day": (
        "refused",
        {
            "cluster": pa.array([0] * 30 + [-62_135_596_800] * 30, _LIMA)
        },
    ),
    "epsilon of 390 digits": ("read", {"epsilon": _digits(390)}),
    "epsilon of 401 digits": ("refused", {"epsilon": _digits(401)}),
    "clusters that cost 390 digits, and epsilon as well": (
        "refused",
        {"epsilon": _digits(389), "clustering_epsilon": Fraction(10**389 + 1, 3**800)},
    ),
    "delta of 401 digits": ("refused", {"delta": _digits(395) / 10**6}),
}  # fmt: skip


@pytest.mark.parametrize("odd", TRIALS)
def test_trials_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No trial is charged that cannot be read and verified."""
    wanted, options = TRIALS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _trial(book, **options), tmp_path) == wanted


def _mean(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    def release() -> Any:
        wanted: dict[str, Any] = {"epsilon": 4, "delta": "1/4", **odd}
        moment = wanted.pop("moment", unbiased.Moment(2, 1.0))
        plan = unbiased.plan("symmetric_mean", 300, moment=moment, **wanted)
        values = np.arange(300) / 300
        return plan.release(
            values, ledger=book, name="n", values_name=" the  größe ", privacy_unit="who"
        )

    return release


MEANS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing odd": ("read", {}),
    "delta of 3,990 digits": ("refused", {"delta": _digits(3990) / 4}),
    "21 moments": (
        "refused",
        {"moment": [unbiased.Moment(2 + at / 10, 1 + at / 100) for at in range(21)]},
    ),
}


@pytest.mark.parametrize("odd", MEANS)
def test_means_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No unbiased mean is charged that cannot be read and verified."""
    wanted, options = MEANS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _mean(book, **options), tmp_path) == wanted


@pytest.mark.parametrize("name", ["", "a\nb", "a\u202eb", "c" * 201])
def test_columns_of_a_table_have_names_that_manifests_hold(name: str) -> None:
    """So do cells that are given as a table, not as columns of records."""
    with pytest.raises(DataError):
        as_table({name: [1, 2]})
    assert as_table({"c" * 200: [1, 2]}).num_rows


def test_keys_are_shown_on_their_line(tmp_path: Path) -> None:
    """No key of a cell or cluster moves the cursor of who reads a plan or release."""
    odd = ["x\ny\x1b[2J", "\u202ez"]
    book = _ledger(tmp_path)
    release = _cells(book, keys=odd * (_ROWS // 2))()
    for text in (str(release.plan), str(release)):
        assert all(line.isprintable() for line in text.split("\n"))
    assert "x\\ny\\x1b[2J" in str(release.plan)
    assert len(str(release.plan).split("\n")) == len(str(release.plan).splitlines())
    arms = ["a\u202e", "b\n"] * (_UNITS // 2)
    released = _trial(book, cluster=[odd[at // 2 % 2] for at in range(_UNITS)], arm=arms)()
    (effect,) = released.estimate()
    for text, lines in ((str(effect), 2 + bool(effect.warning)), (str(effect.clusters), 2)):
        assert all(line.isprintable() for line in text.split("\n"))
        assert len(text.split("\n")) == lines
