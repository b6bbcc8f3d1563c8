"""Speeds: noise, aggregation, plans, trial releases and ledgers, as ratios of one run."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

import shoal
from shoal import trials
from shoal.cells.estimates.draw import to_steps
from shoal.cells.facts import program
from shoal.cells.mechanisms.cell_statistics import MEAN, cell_errors
from shoal.cells.planners.clip_user import clip_user
from shoal.cells.planners.optimal import interior
from shoal.privacy import ledger as ledgers
from shoal.privacy.budget import Budget
from shoal.privacy.noise import OperatingSystem
from shoal.theory import allocation
from shoal_studies.registry import bench, option
from shoal_studies.simulate import carry_out, peak

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
ENTRIES = [10, 10_000, 1_000_000]
PROCESSES = [1, 8, 64]
_BITS = 26
_ROUNDS = 3
# Cells of a pass, by name; those that the engine computes from times and places have fewer records.
_CELLS = {
    "cell": "cell",
    "hexagon": "hexagon(lat,lon,3)",
    "time zone": "hour_of_day(moment,America/New_York)",
}
# Run in a process of its own, with the sources of some checkout: seconds, processor time and GiB.
_SCRIPT = """
import json, resource, sys, time
job, data, cell = sys.argv[1:]
def passed(source, cell, **more):
    import shoal
    return shoal.Records(source, **{'user': 'user', 'value': 'value', 'bounds': (0, 65), **more},
                         by=cell, counts="public")
def plain():
    import duckdb
    query = 'select "user", cell, count(*), sum(value), sum(value * value) from '
    connection = duckdb.connect()
    connection.execute('set enable_progress_bar = false')
    connection.sql(f"{query} read_parquet('{data}') group by 1, 2").to_arrow_table()
def count():
    passed(data, cell, user='tailnum', value='speed', bounds=(0, 700), missing='public').counts()
if job != 'count':
    # What is loaded when first used is not compared.
    import pyarrow as pa
    passed(pa.table({'user': [1], 'cell': [1], 'value': [1.0]}), 'cell').aggregate()
jobs = {'plain': plain, 'pass': lambda: passed(data, cell).aggregate(), 'count': count}
start, used = time.perf_counter(), time.process_time() if job != 'count' else 0
jobs[job]()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([time.perf_counter() - start, time.process_time() - used, memory]))
"""
_CELLS_PER_USER = 10
_USERS_PER_CELL = 100
_MOST_CELLS = 250
_BOUNDS = (0.0, 100.0)
_UNIT = "person"
_CHARGE = Budget.of("1/1000")
_DOCUMENT = b"412.7 " * 50
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")
Checkout = Annotated[Path | None, option("Another checkout, which is measured beside this one.")]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _table(**columns: Any) -> pa.Table:
    return pa.table({name: pa.array(each) for name, each in columns.items()})


@bench("noise")
def noise(numbers: Annotated[int, option("Numbers to draw.", 1, 10**8)] = 200_000) -> Iterator[str]:
    """Draw exact noise with another scale for every number, and print numbers per second.

    Example: shoal bench noise --numbers 200000
    """
    source = OperatingSystem()
    length = Fraction(700, 1 << _BITS)
    source.add_laplace([0], _BITS)
    rng = np.random.default_rng(1)
    scales = rng.uniform(0.01, 1, numbers).tolist()
    sums = rng.integers(0, 2**40, numbers).tolist()

    def release() -> list[float]:
        exact = [to_steps(x, 2**40, b, _BITS) for x, b in zip(sums, scales, strict=True)]
        noisy = source.add_laplace(exact, _BITS)
        return [float(length * Fraction(b) * x) for x, b in zip(noisy, scales, strict=True)]

    alone = _seconds(lambda: source.add_laplace([0] * numbers, _BITS))
    yield f"noise alone            {numbers / alone:>12,.0f} numbers a second"
    whole = _seconds(release)
    yield f"rounding, noise, value {numbers / whole:>12,.0f} numbers a second"
    yield f"ratio                  {whole / alone:>12.2f}"


@bench("aggregate")
def aggregate(
    rows: Annotated[int, option("Records to generate.", 1000, 10**10)] = 10_000_000,
    users: Annotated[int, option("Users.", 1, 10**9)] = 100_000,
    cells: Annotated[int, option("Cells.", 1, 10**7)] = 1000,
    cells_per_user: Annotated[int, option("Most cells of a user.", 1, 10**6)] = 20,
    folder: Annotated[
        Path | None, option("Keep the generated files here; temporary ones if not given.")
    ] = None,
    against: Checkout = None,
) -> Iterator[str]:
    """Compare a plain DuckDB query, our pass and our whole release on the same file.

    Every job reads the same Parquet file in a process of its own, whose peak is its memory.
    Hexagons and time zones have a tenth of the records.

    Example: shoal bench aggregate --rows 100000000
    """
    checkouts = {"this": Path(shoal.__file__).parents[1]}
    if against is not None:
        checkouts["older"] = against.resolve() / "src"
    flights = Path(str(files("shoal") / "datasets" / "flights_2013.parquet"))
    with tempfile.TemporaryDirectory() as scratch:
        place = (folder or Path(scratch)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        paths = [
            generated(place, many, users, cells, cells_per_user) for many in (rows, rows // 10)
        ]
        size = paths[0].stat().st_size / 1e9
        yield f"{rows:,} records, {users:,} users, {cells:,} cells; {size:.2f} GB of Parquet"
        jobs = {("plain DuckDB", "this"): ("plain", paths[0], "cell")}
        for name in checkouts:
            jobs[f"pass, {name} checkout", name] = ("pass", paths[0], "cell")
            for kind in ("hexagon", "time zone"):
                jobs[f"{kind}, {name}", name] = ("pass", paths[1], _CELLS[kind])
            jobs[f"first count, {name} checkout", name] = ("count", flights, "dest")
        found: dict[str, list[list[float]]] = {label: [] for label, _ in jobs}
        for _ in range(_ROUNDS):
            for (label, name), (job, data, cell) in jobs.items():
                done = _python(checkouts[name], _SCRIPT, job, str(data), cell)
                found[label].append(json.loads(done))
        plain = median(seconds for seconds, _, _ in found["plain DuckDB"])
        for label, each in found.items():
            seconds, used, memory = (median(column) for column in zip(*each, strict=True))
            yield (
                f"{label:<34}{seconds:>8.2f} s  {seconds / plain:>5.2f} x plain {used:>8.2f} s of "
                f"processor time  {memory:>6.2f} GiB at the peak"
            )
        yield f"medians of {_ROUNDS} turns, each in a new process"


def _python(paths: Path | str, script: str, *arguments: str) -> str:
    settings = {**os.environ, "PYTHONPATH": str(paths)}
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout


def beside(checkout: Path, lines: Sequence[str], *words: str) -> Iterator[str]:
    """Lines of a bench again, with x and the ratio where a number differs from another checkout."""
    script = "import sys; from shoal.cli.main import main; sys.exit(main(sys.argv[1:]))"
    paths = f"{checkout / 'src'}{os.pathsep}{checkout / 'studies' / 'src'}"
    yield "over those of the other checkout"
    before = _python(paths, script, "bench", *words).splitlines()
    for line, older in zip(lines, before, strict=False):
        numbers = iter(_NUMBER.findall(older))
        yield _NUMBER.sub(partial(_ratio, numbers), line)


def _ratio(older: Iterator[str], number: re.Match[str]) -> str:
    now, before = (float(each.replace(",", "")) for each in (number[0], next(older, number[0])))
    text = number[0] if before in (now, 0) else f"x{now / before:.3f}"
    return text.rjust(len(number[0]))


def generated(place: Path, rows: int, users: int, cells: int, cells_per_user: int) -> Path:
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


@bench("plan")
def plan(
    counts: Annotated[list[int], option("Users in cells, about; repeat.", 100, 10**9)] = SIZES,
    tolerance: Annotated[float, option("Gap at which the optimal plan stops.", 1e-6, 10)] = 0.05,
) -> Iterator[str]:
    """Plan for counts of some sizes, each in a process of its own.

    A tenth as many users, a hundredth of them as many cells. Users are in Pareto(3/2) many cells
    up to 250, cells are popular like rank^(-4/5), counts are Pareto(6/5). The optimal plan may err
    a fifth less than `balanced` does at a total loss of 1; its gap is the certified one.

    Example: shoal bench plan --counts 10000 --counts 100000
    """
    yield f"{'counts':>10} {'users':>9} {'cells':>6}  {'what':<28}{'seconds':>10}   found"
    for lines in carry_out(partial(_planned, tolerance), counts, 1, apart=True):
        yield from lines


def _planned(tolerance: float, size: int) -> list[str]:
    """Lines of one size: what is done, how long it takes, and what it finds."""
    user, cell, count, users, cells = _columns(size)
    problem = allocation.Problem(
        user, cell, count / np.bincount(cell, count)[cell], users, np.ones(cells)
    )
    values = np.random.default_rng(1).uniform(*_BOUNDS, len(user))
    table = _table(user=user, cell=cell, value=values)
    records = shoal.Records(
        table, user="user", by=["cell"], value="value", bounds=_BOUNDS, counts="public"
    )
    lines = []
    began = time.perf_counter()

    def done(what: str, found: str) -> None:
        nonlocal began
        taken = time.perf_counter() - began
        left = f"{len(user):>10,} {users:>9,} {cells:>6,}  "
        lines.append(f"{left}{what:<28}{taken:>10.2f}   {found}")
        began = time.perf_counter()

    # From counts: counting is what `shoal bench aggregate` times.
    counts = shoal.Counts.from_counts(user, cell, np.ones_like(user))
    plan = shoal.plan(counts, bounds=_BOUNDS, epsilon=1)
    done("the default plan", plan.method)
    with tempfile.TemporaryDirectory() as folder:
        ledger = shoal.Ledger.create(
            Path(folder) / "bench.ledger", epsilon=1, privacy_unit="user", counts="public"
        )
        done("its release", f"{plan.release(records, ledger=ledger).table().num_rows} cells")
    kept = clip_user(user, cell, count, cell_errors([MEAN], 1.0))
    most = np.bincount(user).max()
    left = np.bincount(user[kept]).max()
    done("Clip-User", f"most cells of a user {most} -> {left}")
    loss = float(problem.loss(problem.largest).max())
    done("exact accounting", f"epsilon {loss:.4g} where the paper's is {problem.most_cells}")
    fair = allocation.balanced(problem)
    found = f"median error {np.median(fair.noise_scale):.4g} at epsilon 1"
    if fair.duals is not None:
        gap = allocation.balanced_gap(problem, fair.noise_scale, fair.duals, 1.0)
        found += f", gap {gap:.1e}"
    done("balanced noise", found)
    found = "too many cells"
    if program.is_small(user, cells):
        target = 0.8 * fair.noise_scale
        share = problem.sensitivity
        columns = user, cell, share, np.ones(len(share)), target, users
        best = interior.solve(program.Program(*columns), tolerance)
        found = f"epsilon {best.loss:.4g}, at least {best.lower_bound:.4g}: gap {best.gap:.2%}"
    done("optimal, errors a fifth less", found)
    done(f"peak memory {peak():.2f} GiB", "")
    return lines


def _columns(size: int) -> tuple[Any, Any, Any, int, int]:
    """User, cell and count of each membership, users and cells: a few users have none."""
    users = max(1, size // _CELLS_PER_USER)
    cells = max(1, users // _USERS_PER_CELL)
    rng = np.random.default_rng(0)
    # Pareto(3/2) has a mean of 3; a sixth more, for places that are drawn twice.
    wanted = (rng.pareto(1.5, users) + 1) * _CELLS_PER_USER / 3 * 7 / 6
    degree = np.clip(wanted, 1, max(1, min(_MOST_CELLS, cells // 4))).astype(np.int64)
    popular = np.cumsum((np.arange(cells) + 10.0) ** -0.8)
    user = np.repeat(np.arange(users), degree)
    cell = np.searchsorted(popular / popular[-1], rng.random(len(user)))
    user, cell = np.divmod(np.unique(user * cells + cell), cells)
    cell = np.unique(cell, return_inverse=True)[1]
    count = np.clip(np.ceil(5 * rng.pareto(1.2, len(user))), 1, 1e5).astype(np.int64)
    return user, cell, count, users, int(cell.max()) + 1


@bench("privatize")
def privatize(
    units: Annotated[int, option("Units to generate.", 1000, 10**9)] = 10_000_000,
    clusters: Annotated[int, option("Clusters.", 1, 10**6)] = 1000,
) -> Iterator[str]:
    """Time whole trial releases beside a plain table of means on the same units in memory.

    A release contains reading columns, grouping, planning, rounding, noise, responses, effects and
    the manifest; no ledger.

    Example: shoal bench privatize --units 1000000
    """
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, units)
    home = rng.integers(0, clusters, units)
    outcome = rng.normal(50 + arm, 10, units)
    domain = trials.Domain.bins(0, 100, 11)

    def plain() -> object:
        table = _table(cluster=home, arm=arm, outcome=outcome)
        return table.group_by(["cluster", "arm"]).aggregate([("outcome", "mean")])

    def released(planned: Callable[[trials.Experiment], trials.Plan]) -> object:
        study = trials.Experiment(arm, home)
        return planned(study).release(outcome, study)

    base = _seconds(plain)
    yield f"{units:,} units in {clusters:,} clusters, 11 levels, epsilon 4"
    yield f"plain means of groups (PyArrow) {base:8.2f} s"
    prior = trials.ClusterPrior(floor=0.02, noise=10)
    plans: dict[str, Callable[[trials.Experiment], trials.Plan]] = {
        "best table": lambda study: study.table(domain, 4),
        "uniform prior": lambda study: study.table(domain, 4, mechanism="uniform_prior"),
        "Cluster-DP, floor 0.02": lambda study: study.table(domain, 4, mechanism=prior),
        "noisy histogram": lambda study: study.histogram(domain, 4),
        "effect, asked beforehand": lambda study: study.ask().effect().plan(domain, 4),
        "effects by cluster, asked": lambda study: study.ask().effect("cluster").plan(domain, 4),
    }
    for label, planned in plans.items():
        found = _seconds(partial(released, planned))
        yield f"{label:<31} {found:8.2f} s {found / base:8.1f} times"


@bench("ledger")
def ledger(
    entries: Annotated[list[int], option("Histories; repeat.", 1, 10**8)] = ENTRIES,
    processes: Annotated[list[int], option("Crowds; repeat.", 1, 1024)] = PROCESSES,
    charges: Annotated[int, option("Of each history.", 1, 10**7)] = 1000,
    seconds: Annotated[float, option("Of each crowd, in a round.", 0.01, 3600)] = 5,
    rounds: Annotated[int, option("Of the crowds; figures are medians.", 1, 10**7)] = 5,
    against: Checkout = None,
) -> Iterator[str]:
    """Time durable charges after long histories, and by many processes at one ledger.

    Example: shoal bench ledger --processes 1 --processes 8
    """
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for line in itertools.chain(
            _histories(folder, entries, charges), _crowds(folder, processes, seconds, rounds)
        ):
            lines.append(line)
            yield line
    if against is not None:
        words = [f"--entries={each}" for each in entries]
        words += [f"--processes={each}" for each in processes]
        words += [f"--charges={charges}", f"--seconds={seconds}", f"--rounds={rounds}"]
        yield from beside(against, lines, "ledger", *words)


def _fill(book: ledgers.Ledger, entries: int) -> None:
    """Write a history at once: the entries that as many charges would have made."""
    state = book.state()
    hashed = hashlib.sha256(_DOCUMENT).hexdigest()
    head = state.head
    spent = state.spent
    at = "2026-01-01T00:00:00+00:00"
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for number in range(state.entries + 1, state.entries + 1 + entries):
            spent = spent.plus(_CHARGE)
            amounts = [
                str(each) for pair in (_CHARGE, spent) for each in (pair.epsilon, pair.delta)
            ]
            facts = (number, _digest(f"history {number}"), "bench", "cells", *amounts, at, hashed)
            head = ledgers._hash(head, facts)
            marks = ", ".join("?" * (len(facts) + 2))
            connection.execute(f"INSERT INTO entry VALUES ({marks})", (*facts, head, _DOCUMENT))
        connection.execute("COMMIT")


def _charge(book: ledgers.Ledger, what: str) -> None:
    epsilon = _CHARGE.epsilon
    book.record(_digest(what), unit=_UNIT, epsilon=epsilon, document=_DOCUMENT, name="bench")


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()


def _new(path: Path) -> ledgers.Ledger:
    return ledgers.Ledger.create(
        path, epsilon=_CHARGE.epsilon * 10**12, privacy_unit=_UNIT, counts="public"
    )


def _histories(folder: Path, entries: Sequence[int], charges: int) -> Iterator[str]:
    books = {}
    seconds = {size: list[float]() for size in entries}
    for size in entries:
        books[size] = _new(folder / f"{size}.ledger")
        _fill(books[size], size)
    for turn in range(charges):
        # In turn, so that whatever else the machine does slows all of them alike.
        for size, book in books.items():
            seconds[size].append(_seconds(partial(_charge, book, f"charge {turn}")))
    first = median(seconds[entries[0]])
    for size in entries:
        middle = median(seconds[size])
        yield (
            f"{size:>9,} entries: {1000 * middle:8.2f} ms a charge, {1 / middle:6.0f} a second; "
            f"{middle / first:.2f} times {entries[0]:,}"
        )


def _crowds(folder: Path, processes: Sequence[int], seconds: float, rounds: int) -> Iterator[str]:
    for crowd in processes:
        books = (_new(folder / f"{turn} {crowd}.ledger") for turn in range(rounds))
        rate = median(_together(book, crowd, seconds) for book in books)
        yield f"{crowd:>9} processes: {rate:6.0f} charges a second together"


def _together(book: ledgers.Ledger, crowd: int, seconds: float) -> float:
    context: Any = multiprocessing.get_context("fork")
    gate = context.Barrier(crowd)
    answers = context.SimpleQueue()
    for number in range(crowd):
        shared = str(book.path), gate, answers, seconds, number
        context.Process(target=_work, args=shared).start()
    began, ended, charged = zip(*(answers.get() for _ in range(crowd)), strict=True)
    return float(sum(charged) / (max(ended) - min(began)))


def _work(path: str, gate: Any, answers: Any, seconds: float, number: int) -> None:
    book = ledgers.Ledger(path)
    charged = 0
    _charge(book, f"{number} first")
    gate.wait()
    began = time.time()
    while time.time() < began + seconds:
        _charge(book, f"{number} {charged}")
        charged += 1
    answers.put((began, time.time(), charged))
