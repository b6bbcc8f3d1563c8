"""What fails says nothing of what it failed on: messages, causes, contexts, logs, warnings."""

import logging
import traceback
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import mean, trials, unbiased
from shoal.data.sources import read_columns
from shoal.errors import ShoalError

CANARY = "43156789"
N = 30_000
ROWS = "".join(f"a,x,{at % 90}\n" for at in range(N))
HEAD = "who,place,speed\n"
# Files whose last line cannot be read as the first ones were.
LATE: dict[str, bytes] = {
    "text": f"{HEAD}{ROWS}a,x,fast {CANARY}\n".encode(),
    "too many fields": f"{HEAD}{ROWS}a,x,1,{CANARY}\n".encode(),
    "too few fields": f"{HEAD}{ROWS}{CANARY}\n".encode(),
    "an open quote": f'{HEAD}{ROWS}a,x,"{CANARY}\n'.encode(),
    "another encoding": f"{HEAD}{ROWS}a,x,{CANARY}\u00e9\n".encode("latin-1"),
    "utf-16": f"{HEAD}{ROWS}a,x,{CANARY}\n".encode("utf-16"),
    "a zero byte": f"{HEAD}{ROWS}a,x,{CANARY}\0\n".encode(),
    "an overflow": f"{HEAD}{ROWS}a,x,{CANARY * 60}\n".encode(),
    "a date": f"{HEAD}{ROWS}a,x,2013-05-{CANARY}\n".encode(),
    "infinite": f"{HEAD}{ROWS}a,{CANARY},inf\n".encode(),
}


def _silent(call: Callable[[], object], caplog: pytest.LogCaptureFixture) -> ShoalError | None:
    """Run what may fail; nothing of a value may be left anywhere."""
    caplog.clear()
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            call()
        except ShoalError as error:
            failed: ShoalError | None = error
        else:
            failed = None
    said = caplog.text + " ".join(str(each.message) for each in warned)
    if failed is not None:
        assert failed.__cause__ is None
        assert failed.__suppress_context__ or failed.__context__ is None
        shown = traceback.format_exception(failed)
        said += " ".join([str(failed), repr(failed), repr(failed.args), *shown])
        said += repr(getattr(failed, "__notes__", ""))
    assert CANARY not in said
    return failed


@pytest.mark.parametrize("kind", LATE)
def test_bad_files(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The engine quotes the line; neither we nor anything behind us does."""
    path = tmp_path / "late.csv"
    path.write_bytes(LATE[kind])
    records = {"user": "who", "value": "speed", "bounds": (0, 90), "by": "place"}
    study = trials.Experiment(np.arange(N + 1) % 2)
    calls: list[Callable[[], object]] = [
        lambda: shoal.Records(path, **records, counts="public").aggregate(),
        lambda: shoal.Records(path, **records, counts="public").counts(),
        lambda: study.table(trials.Domain.binary(), 1).release(
            read_columns(path, private={"outcome": "speed"}, public={}).column("speed"), study
        ),
    ]
    failed = [_silent(call, caplog) for call in calls]
    assert any(failed) or kind in {"an overflow", "a zero byte"}


@pytest.mark.parametrize(
    "values",
    [
        [1.0, CANARY],
        [1.0, f"fast {CANARY}"],
        [1.0, [float(CANARY)]],
        [1.0, {"speed": CANARY}],
        [1.0, complex(0, float(CANARY))],
        [1.0, Decimal(CANARY * 60)],
        [1, int(CANARY * 60)],
        [1.0, float("inf"), float(CANARY)],
        [float("nan"), float(CANARY)],
        [None, int(CANARY)],
        [b"\xff" + CANARY.encode(), 1],
        [np.datetime64("2013-05-01"), CANARY],
        np.array([1, CANARY], dtype=object),
        pa.array(["1", CANARY]),
        pd.Series([1, CANARY], dtype=object),
        pl.Series(["1", CANARY]),
        "".join([CANARY] * 3),
        int(CANARY),
    ],
    ids=lambda values: type(values).__name__,
)
def test_bad_columns(values: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """NumPy, Arrow and engines quote what they dislike; nobody hears it."""
    good: Any = [1, 2]
    moment = unbiased.Moment(2, 1)
    domain, study = trials.Domain.counts(0, 9), trials.Experiment(good)
    wanted: dict[str, Any] = {"bounds": (0, 9), "epsilon": 1}
    mine: dict[str, Any] = {"interval": (0, 9), "bias": 1, "moment": moment, "epsilon": 1}
    calls: list[Callable[[], object]] = [
        lambda: mean.auto(values, good, **wanted),
        lambda: mean.vector(values, good, **wanted),
        lambda: unbiased.clipped_mean(values, good, **mine),
        lambda: unbiased.clipped_mean(values, **mine),
        lambda: study.table(domain, 1).release(values, study),
        lambda: study.histogram(trials.Domain.ordinal(["a", "b"]), 1).release(values, study),
        lambda: (
            shoal.Records(
                pa.table({"who": good, "place": good, "speed": pa.array(values)}),
                user="who",
                value="speed",
                bounds=(0, 9),
                by="place",
                counts="public",
            ).aggregate()
            if _as_arrow(values)
            else None
        ),
    ]
    failed = [_silent(call, caplog) for call in calls]
    assert any(failed)
    assert list(tmp_path.iterdir()) == []


def _as_arrow(values: Any) -> bool:
    try:
        return len(pa.array(values)) == 2
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False


def test_bad_parquet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Damaged pages of a file whose texts hold the canary."""
    path = tmp_path / "a.parquet"
    table = pa.table({"who": [CANARY] * 99, "place": [1] * 99, "speed": [float(CANARY)] * 99})
    pq.write_table(table, path, compression="none")
    whole = bytearray(path.read_bytes())
    for at in range(4, len(whole) - 8, 37):
        path.write_bytes(bytes([*whole[:at], whole[at] ^ 0xFF, *whole[at + 1 :]]))
        records = shoal.Records(
            path, user="who", value="speed", bounds=(0, 9), by="place", counts="public"
        )
        _silent(records.aggregate, caplog)


def test_bad_documents(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no plan, counts, manifest or ledger may hold values."""
    path = tmp_path / "a.json"
    said = f"{{{CANARY}", f'"{CANARY}"', f'{{"schema": "{CANARY}"}}', CANARY, f"who\n{CANARY}"
    for text in said:
        path.write_text(text, encoding="utf-8")
        for read in (
            shoal.Plan.load,
            shoal.Counts.load,
            shoal.verify,
            shoal.Ledger,
            trials.Release.load,
            unbiased.UnbiasedPlan.load,
        ):
            assert _silent(lambda read=read: read(path), caplog) is not None
