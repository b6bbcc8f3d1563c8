"""A plain DuckDB query, our pass and our whole release on the same generated file, in one run."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from shoal import Records

_ROUNDS = 3
# What the phases load when first used: starting up is not what is compared.
_MODULES = (
    *("duckdb", "ibis", "ibis.backends.duckdb", "opendp.prelude"),
    *("shoal.data.records", "shoal.cells.plan"),
)
_BOUNDS = (0.0, 65.0)


def run(
    rows: int, users: int, cells: int, cells_per_user: int, folder: Path | None
) -> Iterator[str]:
    """Generate the records, then time each phase in a process of its own, in turn.

    Every phase reads the same Parquet file, warmed once; the plan is made before, as it would be;
    memory is the peak of the phase's process.
    """
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        data = place / f"records-{rows}-{users}-{cells}-{cells_per_user}.parquet"
        if not data.exists():
            _alone(_generate, data, rows, users, cells, cells_per_user)
        size = data.stat().st_size / 1e9
        yield (
            f"{rows:,} records, {users:,} users, {cells:,} cells, "
            f"at most {cells_per_user} of them a user; {size:.2f} GB of Parquet"
        )
        plan = Path(scratch) / "plan.json"
        planned, memory = _alone(_plan, data, plan)
        yield _line("count and plan (beforehand)", planned, None, memory)
        phases: dict[str, Callable[..., None]] = {
            "plain DuckDB GROUP BY user, cell": _plain,
            "our pass": _pass,
            "our whole release": _release,
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in phases}
        for turn in range(_ROUNDS):
            for name, phase in phases.items():
                found[name].append(_alone(phase, data, plan, Path(scratch) / f"{turn}.ledger"))
        plain = None
        for name, each in found.items():
            seconds = statistics.median(second for second, _ in each)
            plain = plain or seconds
            yield _line(name, seconds, seconds / plain, max(memory for _, memory in each))
        yield f"median of {_ROUNDS} turns, each in a new process"


def _line(name: str, seconds: float, ratio: float | None, memory: float) -> str:
    compared = "" if ratio is None else f"{ratio:.2f} x plain"
    return f"{name:<34}{seconds:>8.2f} s  {compared:>14}  {memory:>6.2f} GiB at the peak"


def _alone(job: Callable[..., None], *arguments: object) -> tuple[float, float]:
    """Seconds and peak GiB of a job in a new process; starting and importing is not counted."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_timed, args=(send, job, arguments))
    process.start()
    send.close()
    try:
        seconds, memory = receive.recv()
    finally:
        process.join()
    return seconds, memory


def _timed(send: Connection, job: Callable[..., None], arguments: tuple[object, ...]) -> None:
    for name in _MODULES:
        import_module(name)
    began = time.perf_counter()
    job(*arguments)
    seconds = time.perf_counter() - began
    unit = 2**30 if sys.platform == "darwin" else 2**20
    send.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit))


def _generate(data: Path, rows: int, users: int, cells: int, cells_per_user: int) -> None:
    import duckdb

    duckdb.connect().execute(
        f"""copy (
            select (hash(i) % {users})::int as "user",
                   (((hash(i) % {users}) * 7919 + hash(i + 1000000007) % {cells_per_user}
                    * (1 + hash(i) % {users} % 17))::bigint % {cells})::int as cell,
                   (hash(3 * i + 1) % 6500) / 100.0 as value
            from range({rows}) as t(i)
        ) to '{data}' (format parquet)"""
    )


def _plain(data: Path, _plan: Path, _ledger: Path) -> None:
    import duckdb

    duckdb.connect().sql(
        f"""select "user", cell, count(*), sum(value), sum(value * value)
            from '{data}' group by 1, 2"""
    ).to_arrow_table()


def _records(data: Path) -> Records:
    import shoal

    return shoal.Records(data, user="user", value="value", bounds=_BOUNDS, cell="cell")


def _pass(data: Path, _plan: Path, _ledger: Path) -> None:
    _records(data).aggregate()


def _plan(data: Path, plan: Path) -> None:
    import shoal

    occupancy = _records(data).occupancy()
    shoal.plan(occupancy, bounds=_BOUNDS, epsilon=1).save(plan)


def _release(data: Path, plan: Path, ledger: Path) -> None:
    import shoal

    book = shoal.Ledger.create(ledger, epsilon=1)
    shoal.Plan.load(plan).release(_records(data), ledger=book)
