"""How much work a study may be, processes that share it, and errors of mechanisms on one cell."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.cells.comparisons.assumptions import Distribution
from shoal.cells.comparisons.comparison import Choice
from shoal.cells.comparisons.simulation import simulate
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.progress import Progress
from shoal_studies.chart import Chart, Row

FULL = 10_000
QUICK = 60
_PART = 100
_SEEDS = 2**16

T = TypeVar("T")
R = TypeVar("R")


def silently(items: Iterable[T], total: int) -> Iterable[T]:
    """Show nothing."""
    return items


@dataclass(frozen=True)
class Effort:
    """Data sets for every point, the seed, processes (results do not depend on them), progress."""

    repetitions: int = FULL
    seed: int = 0
    workers: int = 1
    progress: Progress = silently

    @property
    def full(self) -> bool:
        """Whether everything is asked for."""
        return self.repetitions >= FULL


# Mechanisms by the name that is printed.
MECHANISMS: dict[str, Choice] = {
    "baseline": ("baseline", {}),
    "array averaging, median cap": ("array_averaging", {"cap": "median"}),
    "array averaging, Levy cap": ("array_averaging", {"cap": "levy"}),
    "array averaging, minimax cap": ("opt_array_averaging", {}),
    "Levy": ("levy", {}),
    "quantile, fixed": ("quantile", {"quantiles": "fixed"}),
    "quantile, optimised": ("quantile", {"quantiles": "optimised"}),
    "AKMV": ("akmv", {}),
    "worst-case optimal": ("worst_case_optimal", {}),
    "adaptive (ours)": ("adaptive", {}),
}


@dataclass(frozen=True, eq=False)
class Setting:
    """What is measured: one cell, values for its records, their public range, and losses."""

    name: str
    counts: Counts
    values: Distribution
    bounds: tuple[float, float]
    epsilons: tuple[float, ...]

    def rows(
        self, mechanism: str, error: NDArray[np.float64], spread: NDArray[np.float64], number: int
    ) -> list[Row]:
        """One row a loss: mean absolute errors of a mechanism and their standard errors."""
        return [
            {
                "collection": self.name,
                "mechanism": mechanism,
                "epsilon": epsilon,
                "error": round(float(error[at]), 6),
                "standard_error": round(float(spread[at]), 6),
                "repetitions": number,
            }
            for at, epsilon in enumerate(self.epsilons)
        ]


def errors(
    setting: Setting, mechanisms: Mapping[str, Choice], effort: Effort, *, stretch: float = 1.0
) -> list[Row]:
    """Mean absolute error of every mechanism at every loss."""
    parts = max(1, effort.repetitions // _PART)
    sizes = [len(part) for part in np.array_split(np.arange(effort.repetitions), parts)]
    run = partial(_part, setting, tuple(mechanisms.values()), stretch)
    tasks = [(size, effort.seed * _SEEDS + number) for number, size in enumerate(sizes)]
    found = effort.progress(carry_out(run, tasks, min(effort.workers, parts)), len(tasks))
    # Shape (parts, 2, mechanisms, losses): errors and their standard errors.
    every = np.array(list(found))
    share = np.array(sizes) / effort.repetitions
    error = np.einsum("p,pij->ij", share, every[:, 0])
    spread = np.sqrt(np.einsum("p,pij->ij", share**2, every[:, 1] ** 2))
    return [
        row
        for at, name in enumerate(mechanisms)
        for row in setting.rows(name, error[at], spread[at], effort.repetitions)
    ]


def _part(
    setting: Setting, choices: Sequence[Choice], stretch: float, task: tuple[int, int]
) -> NDArray[np.float64]:
    """Errors and standard errors of some of the repetitions, shape (2, mechanisms, losses)."""
    found = simulate(
        setting.counts,
        setting.values,
        bounds=setting.bounds,
        epsilon=[float(each * stretch) for each in setting.epsilons],
        methods=choices,
        repetitions=task[0],
        seed=task[1],
    )
    numbers = [(np.mean(np.asarray(row.noisy)), row.standard_error) for row in found.rows]
    return np.array(numbers).reshape(-1, len(choices), 2).transpose(2, 1, 0)


def against_loss(rows: Sequence[Row]) -> Chart:
    """Errors against the loss, one panel a collection."""
    return Chart(
        rows, "epsilon", "error", "mechanism", "collection",
        labels=("epsilon", "mean absolute error, km/h"), log="y",
    )  # fmt: skip


def carry_out(
    run: Callable[[T], R], tasks: Sequence[T], workers: int, *, apart: bool = False
) -> Iterator[R]:
    """What a function makes of each task, in their order; `apart` in a new process for each."""
    if workers == 1 and not apart:
        yield from map(run, tasks)
        return
    # Processes forked while threads run may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_follow, max_tasks_per_child=1 if apart else None
    )
    try:
        yield from pool.map(run, tasks)
    except (BrokenProcessPool, MemoryError) as error:
        raise InputError(
            "sizes for which this machine has not the memory", "measure something smaller"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        del pool
        # Queues are in reference cycles: their semaphores go with them, not at exit with a note.
        gc.collect()


def peak() -> float:
    """GiB that this process has held at most."""
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _follow() -> None:
    """Leave Ctrl-C to the parent, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
