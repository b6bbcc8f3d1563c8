"""What each step costs: processor time by rows, users and cells, beside plain DuckDB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple

import shoal
from shoal_studies.bench_system import Checkout, generated
from shoal_studies.registry import bench, option


class Size(NamedTuple):
    """A table of made-up records, and up to which step its cost is measured."""

    rows: int
    users: int
    cells: int
    cells_per_user: int
    last: str = "report"


SIZES = [
    Size(10_000_000, 100_000, 1_000, 10),
    Size(2_000_000, 632_023, 100, 2, "verify"),
    Size(100_000, 10_000, 10_000, 10),
    Size(681_430, 68_143, 68_143, 10),
    Size(2_850_000, 285_000, 285_000, 10, "print"),
]
STEPS = "plain", "count", "plan", "print", "release", "verify", "report"
# Steps that share what the first of them made share a process.
_PROCESSES = (("plain",), ("count", "plan", "print"), ("release",), ("verify",), ("report",))
# Other work that is large in something else: name, and expression of the script.
JOBS = {
    "compare, flights by origin and destination": "compare()",
    "Clip-User, a million pairs": "clip_user(1_000_000)",
    "optimal, a million counts in 1,000 cells": "optimal(1_100_000)",
    "ten questions, a million units": "questions(1_000_000)",
    "effects in 62 subgroups of 1,200 units": "subgroups(62, 1_200)",
    "noise with rounding, 200,000 numbers": "noise(200_000)",
}
# Run in a process of its own, with the sources of some checkout. Each step says what it took since
# the last, the first one with imports.
_SCRIPT = """
import json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
work, flights, data = sys.argv[1:]
place = data.removesuffix(".parquet")
taken, last = {}, 0.0

def step(name):
    global last
    now = time.process_time()
    taken[name], last = now - last, now

def plain():
    import duckdb
    query = f"select user, cell, count(*), sum(value) from read_parquet('{data}') group by all"
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    connection.sql(query).to_arrow_table()
    step("plain")

def records():
    import shoal
    known = {"bounds": (0, 65), "by": "cell", "counts": "public"}
    return shoal.Records(data, user="user", value="value", **known)

def count():
    import shoal
    made = records()
    step("imports")
    counts = made.counts()
    step("count")
    planned = shoal.plan(counts, bounds=(0, 65), epsilon=1, source=made.describe())
    step("plan")
    str(planned)
    step("print")
    planned.save(f"{place}.json", overwrite=True)

def release():
    import shoal
    ledger = shoal.Ledger.create(f"{place}.ledger", epsilon=1, privacy_unit="user", counts="public")
    done = shoal.Plan.load(f"{place}.json").release(records(), ledger=ledger)
    done.write(f"{place}.csv", overwrite=True)
    done.write_manifest(f"{place}.manifest.json", overwrite=True)
    step("release")

def verify():
    import shoal
    assert shoal.verify(f"{place}.manifest.json", ledger=f"{place}.ledger")
    step("verify")

def report():
    import shoal
    shoal.report(f"{place}.manifest.json", f"{place}.html", overwrite=True)
    step("report")

def compare():
    import shoal
    found = shoal.Records(flights, user="tailnum", value="speed", bounds=(0, 700),
                          by=["origin", "dest"], missing="public", counts="public")
    shoal.plan(found, epsilon=1, min_users=150).compare()

def pairs(many, cells):
    import numpy as np
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(many // 12), 12)
    far = (rng.pareto(1.2, len(user)) * 8).astype(np.int64) * 37
    cell = (rng.integers(0, cells, many // 12)[user] + far) % cells
    key, found = np.unique(user * cells + cell, return_counts=True)
    return key // cells, key % cells, found * rng.geometric(0.2, len(key))

def clip_user(many):
    import shoal
    counts = shoal.Counts.from_counts(*pairs(many, 1000))
    shoal.plan(counts, bounds=(0, 1), epsilon=1, method="clip_user")

def optimal(many):
    import shoal
    counts = shoal.Counts.from_counts(*pairs(many, 1000))
    plan = shoal.plan(counts, bounds=(0, 1), epsilon=1, method="optimal",
                      uninformative="keep")
    taken["gap"] = plan.gap

def units(many, levels):
    import numpy as np
    from shoal import trials
    rng, at = np.random.default_rng(0), np.arange(many)
    names = {"group": at // 2 % levels, "age": rng.integers(0, 8, many)}
    covariates = {name: each.astype(str) for name, each in names.items()}
    outcome = (rng.random(many) < 0.3 + 0.1 * (at % 2)).astype(float)
    return trials.Experiment(at % 2, None, covariates), outcome

def questions(many):
    from shoal import trials
    from shoal.privacy.noise import Simulated
    study, outcome = units(many, 20)
    # The effect, that of eight ages, and the mean of an arm that does not follow from them.
    plan = study.ask().effect().effect(by="age").means().plan(trials.Domain.binary(), epsilon=1)
    str(plan.release(outcome, study, noise=Simulated(1)))

def subgroups(many, each):
    from shoal import trials
    study, outcome = units(many * each, many)
    str(study.ask().effect().effect(by="group").plan(trials.Domain.binary(), epsilon=1))

def noise(numbers):
    import numpy as np
    from shoal.cells.estimates.draw import to_steps
    from shoal.privacy.noise import OperatingSystem
    rng = np.random.default_rng(1)
    sums, scales = rng.integers(0, 2**40, numbers).tolist(), rng.uniform(0.01, 1, numbers).tolist()
    step("imports")
    OperatingSystem().add_laplace([to_steps(x, 2**40, b, 26) for x, b in zip(sums, scales)], 26)

eval(work if "(" in work else f"{work}()")
if "(" in work:
    step("all")
taken["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps(taken))
"""


@bench("cost")
def cost(
    only: Annotated[
        list[str] | None, option("Sizes by their cells, or other work by its first word; repeat.")
    ] = None,
    against: Checkout = None,
) -> Iterator[str]:
    """Print what each step costs in seconds of processor time, by rows, users and cells.

    Plain DuckDB adds up the same file. A release is from a plan's file, with imports, as are the
    steps after it. Records are made up; cells have ten records or more, and fewer users.

    Example: shoal bench cost --only 10000
    """
    checkouts = {"": Path(shoal.__file__).parents[1]}
    if against is not None:
        checkouts["older"] = against.resolve() / "src"
    wanted = {each.replace(",", "") for each in only or ()}
    yield f"{'rows':>10}{'users':>9}{'cells':>9}{'each':>5} " + "".join(f"{x:>9}" for x in STEPS)
    with tempfile.TemporaryDirectory() as scratch:
        for size in SIZES:
            if not wanted or str(size.cells) in wanted:
                data = generated(Path(scratch), *size[:4])
                for label, paths in checkouts.items():
                    yield _line(size, _steps(paths, data, size.last), label)
        for name, job in JOBS.items():
            if not wanted or name.split(",")[0].split()[0] in wanted:
                found = [_taken(paths, job, Path(scratch)) for paths in checkouts.values()]
                yield (
                    f"{name:<46}"
                    + "".join(f"{each['all']:>9.2f} s {each['GiB']:>5.2f} GiB" for each in found)
                    + "".join(f"   gap {each['gap']:.2%}" for each in found if "gap" in each)
                )


def _steps(paths: Path, data: Path, last: str) -> dict[str, float]:
    """Seconds of all steps up to the last one, and the largest peak of memory."""
    found: dict[str, float] = {"GiB": 0.0}
    for steps in _PROCESSES:
        if STEPS.index(steps[0]) > STEPS.index(last):
            break
        taken = _taken(paths, steps[0], data)
        found |= taken | {"GiB": max(found["GiB"], taken["GiB"])}
    for used in ("ledger", "json", "manifest.json", "csv", "html"):
        data.with_suffix(f".{used}").unlink(missing_ok=True)
    return found


def _line(size: Size, found: dict[str, float], label: str) -> str:
    steps = "".join(f"{found[each]:>9.2f}" if each in found else f"{'-':>9}" for each in STEPS)
    head = f"{size.rows:>10,}{size.users:>9,}{size.cells:>9,}{size.cells_per_user:>5} "
    return f"{head}{steps} {found['GiB']:>6.2f} GiB {label}"


def _taken(paths: Path, work: str, data: Path) -> dict[str, float]:
    """Seconds of processor time by step, and GiB at the peak, of a process of its own."""
    flights = str(files("shoal") / "datasets" / "flights_2013.parquet")
    command = [sys.executable, "-W", "ignore", "-c", _SCRIPT, work, flights, str(data)]
    settings = {**os.environ, "PYTHONPATH": str(paths)}
    done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True, check=True)
    taken: dict[str, float] = json.loads(done.stdout)
    return taken
