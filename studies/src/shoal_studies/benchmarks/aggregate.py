"""A plain DuckDB query, our pass and our whole release on the same generated file, in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError
from shoal_studies.apart import apart, peak

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal import Records

_ROUNDS = 3
# What the phases load when first used: starting up is not what is compared.
_MODULES = (
    *("duckdb", "pyarrow.parquet", "opendp.prelude"),
    *("shoal.data.records", "shoal.cells.plan"),
)
_BOUNDS = (0.0, 65.0)
_COLUMNS = ("user", "cell", "value")


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
        data = place.resolve() / f"records-{rows}-{users}-{cells}-{cells_per_user}.parquet"
        if not data.exists():
            _alone(_generate, data, rows, users, cells, cells_per_user)
        _check(data, rows)
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
            "count, plan and release": _everything,
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in phases}
        for turn in range(_ROUNDS):
            for at, (name, phase) in enumerate(phases.items()):
                ledger = Path(scratch) / f"{turn}-{at}.ledger"
                found[name].append(_alone(phase, data, plan, ledger))
        plain = None
        for name, each in found.items():
            seconds = statistics.median(second for second, _ in each)
            plain = plain or seconds
            yield _line(name, seconds, seconds / plain, max(memory for _, memory in each))
        yield f"median of {_ROUNDS} turns, each in a new process"


def _line(name: str, seconds: float, ratio: float | None, memory: float) -> str:
    compared = "" if ratio is None else f"{ratio:.2f} x plain"
    return f"{name:<34}{seconds:>8.2f} s  {compared:>14}  {memory:>6.2f} GiB at the peak"


def _check(data: Path, rows: int) -> None:
    """A file that was kept is used again; another file of its name is not."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        found = parquet.ParquetFile(data)
        same = found.metadata.num_rows == rows and found.schema_arrow.names == list(_COLUMNS)
    except (OSError, pa.ArrowException):
        same = False
    if not same:
        raise InputError(
            "a file in --folder that has the name of generated records and is none",
            f"{rows} records with the columns {', '.join(_COLUMNS)}",
            "give an empty folder",
        )


def _alone(job: Callable[..., None], *arguments: object) -> tuple[float, float]:
    """Seconds and peak GiB of a job in a new process; starting and importing is not counted."""
    [(seconds, memory)] = apart(_timed, job, arguments)
    return seconds, memory


def _timed(
    job: Callable[..., None], arguments: tuple[object, ...]
) -> Iterator[tuple[float, float]]:
    for name in _MODULES:
        import_module(name)
    began = time.perf_counter()
    job(*arguments)
    yield time.perf_counter() - began, peak()


def _generate(data: Path, rows: int, users: int, cells: int, cells_per_user: int) -> None:
    import duckdb

    duckdb.connect().sql(
        f"""select (hash(i) % {users})::int as "user",
                   (((hash(i) % {users}) * 7919 + hash(i + 1000000007) % {cells_per_user}
                    * (1 + hash(i) % {users} % 17))::bigint % {cells})::int as cell,
                   (hash(3 * i + 1) % 6500) / 100.0 as value
            from range({rows}) as t(i)"""
    ).write_parquet(str(data))


def _plain(data: Path, _plan: Path, _ledger: Path) -> None:
    import duckdb

    duckdb.connect().sql(
        """select "user", cell, count(*), sum(value), sum(value * value)
            from read_parquet($place) group by 1, 2""",
        params={"place": str(data)},
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


def _everything(data: Path, _plan: Path, ledger: Path) -> None:
    import shoal

    records, book = _records(data), shoal.Ledger.create(ledger, epsilon=1)
    plan = shoal.plan(records.occupancy(), bounds=_BOUNDS, epsilon=1)
    plan.release(records, ledger=book)
