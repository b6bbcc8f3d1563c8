"""Errors of several mechanisms at several losses, the repetitions shared among processes.

Repetitions are cut into parts with seeds of their own, whatever the number of processes: the
same seed gives the same figures on any machine with the same NumPy.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.cells.assumptions import Distribution
from shoal.cells.simulation import simulate
from shoal.cli.progress import Progress
from shoal.data.occupancy import Counts
from shoal.errors import InputError
from shoal_studies.lines import Line

FULL, QUICK = 10_000, 60
_PART = 100
_SEEDS = 2**16

T = TypeVar("T")
R = TypeVar("R")


def silently(items: Iterable[T], total: int) -> Iterable[T]:
    """Show nothing."""
    return items


@dataclass(frozen=True)
class Effort:
    """How much work a study may be.

    Attributes:
        repetitions: Data sets drawn for every point.
        seed: Of the simulation, from 0.
        workers: Processes; results do not depend on them.
        progress: Wraps the parts of the work.
    """

    repetitions: int = FULL
    seed: int = 0
    workers: int = 1
    progress: Progress = silently

    def __post_init__(self) -> None:
        if self.repetitions < 1 or self.seed < 0 or self.workers < 1:
            raise InputError(
                f"{self.repetitions} repetitions, seed {self.seed}, {self.workers} workers",
                "at least one repetition and worker, and a seed from 0",
                "give for example repetitions=100",
            )

    @property
    def full(self) -> bool:
        """Whether everything is asked for."""
        return self.repetitions >= FULL


@dataclass(frozen=True)
class Setting:
    """What is measured: counts, values, losses.

    Attributes:
        occupancy: One cell.
        values: Draws a value for every record.
        bounds: Public range.
        epsilons: Losses, rising.
    """

    occupancy: Counts
    values: Distribution
    bounds: tuple[float, float]
    epsilons: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean absolute errors of one mechanism.

    Attributes:
        line: The mechanism.
        epsilon: Losses, shape (points,).
        error: Mean absolute errors, same shape.
        standard_error: Of these means.
        repetitions: Behind each point.
    """

    line: Line
    epsilon: NDArray[np.float64]
    error: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    repetitions: int

    def at(self, epsilon: float) -> float:
        """The error at one of the losses."""
        return float(self.error[np.flatnonzero(np.isclose(self.epsilon, epsilon))[0]])

    def over(self, other: Curve) -> NDArray[np.float64]:
        """Its errors as parts of the errors of another one."""
        return self.error / other.error

    def rows(self, collection: str) -> list[dict[str, str | float | int]]:
        """One row a point, for a table."""
        points = zip(
            self.epsilon.tolist(), self.error.tolist(), self.standard_error.tolist(), strict=True
        )
        return [
            {
                "collection": collection,
                "mechanism": self.line.label,
                "epsilon": epsilon,
                "error": round(error, 6),
                "standard_error": round(spread, 6),
                "repetitions": self.repetitions,
            }
            for epsilon, error, spread in points
        ]


def measure(setting: Setting, lines: Sequence[Line], effort: Effort) -> list[Curve]:
    """Mean absolute error of every line at every loss.

    All lines see the same data sets. Expectations over Laplace noise are in closed form, so that
    standard errors come from the values and from private selections only.

    Example:
        >>> from shoal_studies import collections, lines, values
        >>> cell = collections.one_cell(collections.itms())
        >>> setting = Setting(cell, values.speeds(), (0, 65), (1.0,))
        >>> [curve] = measure(setting, [lines.BASELINE], Effort(repetitions=2))
        >>> round(curve.at(1.0), 3)
        1.579
    """
    parts = max(1, effort.repetitions // _PART)
    sizes = [len(part) for part in np.array_split(np.arange(effort.repetitions), parts)]
    tasks = [
        _Task(setting, tuple(lines), size, effort.seed * _SEEDS + number)
        for number, size in enumerate(sizes)
    ]
    found = list(effort.progress(carry_out(_part, tasks, min(effort.workers, parts)), len(tasks)))
    # Shape (parts, 2, lines, losses): errors and their standard errors.
    every, share = np.array(found), np.array(sizes) / effort.repetitions
    error = np.einsum("p,pij->ij", share, every[:, 0])
    spread = np.sqrt(np.einsum("p,pij->ij", share**2, every[:, 1] ** 2))
    epsilon = np.array(setting.epsilons)
    return [
        Curve(line, epsilon, error[at], spread[at], effort.repetitions)
        for at, line in enumerate(lines)
    ]


@dataclass(frozen=True)
class _Task:
    """Some of the repetitions."""

    setting: Setting
    lines: tuple[Line, ...]
    repetitions: int
    seed: int


def carry_out(run: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """What a function makes of each task, in their order, by some processes."""
    if workers == 1:
        yield from map(run, tasks)
        return
    # Processes forked while threads run may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_follow)
    try:
        yield from pool.map(run, tasks)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        del pool
        # Queues are in reference cycles: their semaphores go with them, not at exit with a note.
        gc.collect()


def _follow() -> None:
    """Leave Ctrl-C to the parent, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _part(task: _Task) -> NDArray[np.float64]:
    """Errors and standard errors, shape (2, lines, losses)."""
    made = np.empty((2, len(task.lines), len(task.setting.epsilons)))
    stretches = np.array([line.stretch for line in task.lines])
    for stretch in np.unique(stretches):
        these = np.flatnonzero(stretches == stretch)
        found = simulate(
            task.setting.occupancy,
            task.setting.values,
            bounds=task.setting.bounds,
            epsilon=[float(each * stretch) for each in task.setting.epsilons],
            methods=[(task.lines[at].method, task.lines[at].settings) for at in these.tolist()],
            repetitions=task.repetitions,
            seed=task.seed,
        )
        numbers = [(np.mean(np.asarray(row.plain)), row.standard_error) for row in found.rows]
        made[:, these] = np.array(numbers).reshape(-1, len(these), 2).transpose(2, 1, 0)
    return made
