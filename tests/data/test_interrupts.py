"""Ctrl-C and crashes while an engine reads: one is no fault of the records, the other is."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal.data import keys
from shoal.data.source import engine_errors
from shoal.errors import DataError, ShoalError
from shoal.trials import Space, UniformPrior

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.audit, pytest.mark.full]

CANARY = "431987"


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    """Python's own handler, which a process in the background of a shell does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_the_engine_reads() -> None:
    """It is an interrupt for whoever waits, without what the engine said."""
    import ibis

    backend = ibis.duckdb.connect()
    backend.raw_sql(
        "create view t as select i % 100 as who, i % 3 as place, sin(i) as v "
        "from range(40000000) r(i)"
    )
    records = shoal.Records(backend.table("t"), user="who", value="v", bounds=(-1, 1), cell="place")
    stop = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        records.aggregate()
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_ctrl_c_that_an_engine_swallows_is_raised() -> None:
    """What was read until then is not taken for all; the process keeps its own handler."""
    raised = pytest.raises(KeyboardInterrupt)
    with raised as caught, engine_errors("a.csv"), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_an_engine_makes_an_error_of_is_raised() -> None:
    """An error of the engine's own, without a cause or a context, is no bad record."""
    raised = pytest.raises(KeyboardInterrupt)
    with raised as caught, engine_errors("a.csv"):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError(CANARY)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("kind", ["duckdb's", "python's", "behind", "plain"])
def test_whatever_an_engine_makes_of_ctrl_c(kind: str) -> None:
    """Errors of two kinds, or one that was raised while Ctrl-C was handled."""
    import duckdb

    stop = {"duckdb's": duckdb.InterruptException("INTERRUPT Error"), "plain": KeyboardInterrupt()}
    error = stop.get(kind, RuntimeError("Query interrupted" if kind == "python's" else CANARY))
    if kind == "behind":
        error.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as caught, engine_errors("a.csv"):
        raise error
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert CANARY not in str(caught.value)


def test_other_ends_are_not_taken_for_bad_records() -> None:
    """Nor is an ordinary failure taken for Ctrl-C."""
    with pytest.raises(SystemExit), engine_errors("a.csv"):
        raise SystemExit
    failed = r"could not read 'a.csv' \(RuntimeError\)"
    with pytest.raises(DataError, match=failed), engine_errors("a.csv"):
        raise RuntimeError(CANARY)


@pytest.mark.parametrize("kind", ["date", "time"])
def test_a_crash_of_polars_is_an_error_of_ours(kind: str) -> None:
    """Of dates that no calendar has, in keys, outcomes and values."""
    import polars as pl

    far: Any = pl.Series([2**30] * 6, dtype=pl.Int32).cast(pl.Date)
    if kind == "time":
        far = pl.Series([2**62] * 6).cast(pl.Datetime("ms"))
    arms: Any = pl.Series([0, 1] * 3)
    prior, binary = UniformPrior(epsilon=1), Space.binary()
    for call in (
        lambda: keys.as_array(far, "user"),
        lambda: shoal.mean.baseline(np.ones(6), far, bounds=(0, 8), epsilon=1),
        lambda: shoal.mean.baseline(far, arms, bounds=(0, 8), epsilon=1),
        lambda: prior.privatize(far, arms, space=binary),
        lambda: prior.privatize(far, arms, space=Space.ordinal(["a", "b"])),
        lambda: prior.privatize(arms, far, space=binary),
        lambda: prior.privatize(arms, arms.clone(), unit=far, space=binary),
    ):
        with pytest.raises(ShoalError) as caught:
            call()
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_crash_while_an_engine_reads() -> None:
    """What it says stays inside."""
    import polars as pl

    with pytest.raises(DataError, match="PanicException") as caught, engine_errors("a.csv"):
        pl.Series([2**30], dtype=pl.Int32).cast(pl.Date).to_list()
    assert caught.value.__context__ is caught.value.__cause__ is None
