"""Our pass, that of an older checkout, and plain DuckDB on the same generated file, in one run."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Measured = tuple[float, float, float]

_ROUNDS = 3
# Cells of a pass, by name; those that the engine computes from times and places have fewer records.
_CELLS = {
    "cell": "cell",
    "hexagon": "hexagon(lat,lon,3)",
    "time zone": "hour_of_day(moment,America/New_York)",
}
# Run in a process of its own, with the sources of some checkout: seconds, processor time and GiB.
_SCRIPT = """
import inspect, json, resource, sys, time
import pyarrow as pa
job, data, cell = sys.argv[1:]
def passed(source, cell):
    import shoal
    named = {'by' if 'by' in inspect.signature(shoal.Records).parameters else 'cell': cell}
    return shoal.Records(source, user='user', value='value', bounds=(0, 65), **named)
def plain():
    import duckdb
    query = 'select "user", cell, count(*), sum(value), sum(value * value) from '
    connection = duckdb.connect()
    connection.execute('set enable_progress_bar = false')
    connection.sql(f"{query} read_parquet('{data}') group by 1, 2").to_arrow_table()
# What is loaded when first used is not compared.
passed(pa.table({'user': [1], 'cell': [1], 'value': [1.0]}), 'cell').aggregate()
jobs = {'plain': plain, 'pass': lambda: passed(data, cell).aggregate()}
start, used = time.perf_counter(), time.process_time()
jobs[job]()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print('\\n' + json.dumps([time.perf_counter() - start, time.process_time() - used, memory]))
"""
_COLD = """
import inspect, shoal, sys
named = {'by' if 'by' in inspect.signature(shoal.Records).parameters else 'cell': 'dest'}
records = shoal.Records(sys.argv[1], user='tailnum', value='speed', bounds=(0, 700),
                        missing='public', **named)
getattr(records, 'counts' if hasattr(records, 'counts') else 'occupancy')()
"""


def run(
    rows: int,
    users: int,
    cells: int,
    cells_per_user: int,
    folder: Path | None,
    against: Path | None,
) -> Iterator[str]:
    """Generate the records, then measure each job in a process of its own, in turn.

    Every job reads the same Parquet file; memory is the peak of its process. Hexagons and time
    zones have a tenth of the records.
    """
    import shoal

    checkouts = {"this": Path(shoal.__file__).parents[1]}
    if against is not None:
        checkouts["older"] = against.resolve() / "src"
    with tempfile.TemporaryDirectory() as scratch:
        place = (folder or Path(scratch)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        paths = [
            _generated(place, many, users, cells, cells_per_user) for many in (rows, rows // 10)
        ]
        size = paths[0].stat().st_size / 1e9
        yield f"{rows:,} records, {users:,} users, {cells:,} cells; {size:.2f} GB of Parquet"
        jobs = {("plain DuckDB", "this"): ("plain", paths[0], "cell")}
        for name in checkouts:
            jobs[f"pass, {name} checkout", name] = ("pass", paths[0], "cell")
            for kind in ("hexagon", "time zone"):
                jobs[f"{kind}, {name}", name] = ("pass", paths[1], _CELLS[kind])
        found: dict[str, list[Measured]] = {label: [] for label, _ in jobs}
        for _ in range(_ROUNDS):
            for (label, name), (job, data, cell) in jobs.items():
                found[label].append(_measured(checkouts[name], job, str(data), cell))
        plain = statistics.median(seconds for seconds, _, _ in found["plain DuckDB"])
        for label, each in found.items():
            seconds, used, memory = (
                statistics.median(column) for column in zip(*each, strict=True)
            )
            yield (
                f"{label:<34}{seconds:>8.2f} s  {seconds / plain:>5.2f} x plain {used:>8.2f} s of "
                f"processor time  {memory:>6.2f} GiB at the peak"
            )
        for name, checkout in checkouts.items():
            times = [_cold(checkout) for _ in range(_ROUNDS)]
            used = statistics.median(times)
            yield f"{f'first count, {name} checkout':<34}{used:>8.2f} s of processor time"
        yield f"medians of {_ROUNDS} turns, each in a new process"


def _measured(checkout: Path, job: str, data: str, cell: str) -> Measured:
    done = _python(checkout, _SCRIPT, job, data, cell)
    # Older checkouts let DuckDB write its progress before it.
    seconds, used, memory = json.loads(done.splitlines()[-1])
    return seconds, used, memory


def _cold(checkout: Path) -> float:
    """Processor time of a whole process that counts once."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python(checkout, _COLD, str(files("shoal") / "datasets" / "flights_2013.parquet"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _python(checkout: Path, script: str, *arguments: str) -> str:
    settings = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout


def _generated(place: Path, rows: int, users: int, cells: int, cells_per_user: int) -> Path:
    """A file of records, which is used again if it is there."""
    import duckdb

    data = place / f"records-{rows}-{users}-{cells}-{cells_per_user}.parquet"
    if not data.exists():
        duckdb.connect().sql(
            f"""select (hash(i) % {users})::int as "user",
                       (((hash(i) % {users}) * 7919 + hash(i + 1000000007) % {cells_per_user}
                        * (1 + hash(i) % {users} % 17))::bigint % {cells})::int as cell,
                       (hash(3 * i + 1) % 6500) / 100.0 as value,
                       to_timestamp(1356998400 + (hash(5 * i) % 31536000)::bigint) as moment,
                       30 + (hash(7 * i) % 20000)::double / 1000 as lat,
                       (hash(11 * i) % 40000)::double / 1000 - 100 as lon
                from range({rows}) as t(i)"""
        ).write_parquet(str(data))
    return data
