"""Time against size for everything that a plan is made of, on made-up counts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal import Plan, Records
from shoal.cells.allocation import Problem
from shoal_studies.apart import apart, peak

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
_CELLS_PER_USER, _USERS_PER_CELL = 10, 100
_MOST_CELLS = 250
_PART = 0.8
_BOUNDS = (0.0, 100.0)
_HEAD = f"{'counts':>10} {'users':>9} {'cells':>6}  {'what':<28}{'seconds':>10}   found"


def run(counts: Sequence[int], tolerance: float, seconds: float) -> Iterator[str]:
    """Plan for made-up counts of each size, in a process of its own.

    A tenth as many users, a hundredth of them as many cells. Users are in Pareto(3/2) many cells
    up to 250, cells are popular like rank^(-4/5), counts are Pareto(6/5); beside them users who are
    in ten equally likely cells. The optimal plan may err a fifth less than `balanced` does at a
    total loss of 1; its gap is the certified one.
    """
    yield _HEAD
    for size in counts:
        yield from apart(_measure, size, tolerance, seconds)


def _measure(size: int, tolerance: float, seconds: float) -> Iterator[str]:
    made = _Counts.generate(size)
    left = f"{len(made.user):>10,} {made.n_users:>9,} {made.n_cells:>6,}  "
    asked, default = _Asked(tolerance, seconds), _Default()
    for name, job in (
        ("the default plan", default.plan),
        ("its release", default.release),
        ("the default, equal users", lambda _: _Default().plan(_Counts.equal(size))),
        ("Clip-User", _clip_user),
        ("exact accounting", _losses),
        ("balanced noise", asked.balanced),
        ("optimal, errors a fifth less", asked.optimal),
    ):
        took, found = _timed(job, made)
        yield f"{left}{name:<28}{took:>10.2f}   {found}"
    yield f"{left}peak memory {peak():.2f} GiB"


def _timed(job: Callable[[_Counts], str], made: _Counts) -> tuple[float, str]:
    began = time.perf_counter()
    found = job(made)
    return time.perf_counter() - began, found


@dataclass(frozen=True, eq=False)
class _Counts:
    user: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    n_users: int
    n_cells: int

    @classmethod
    def generate(cls, size: int) -> _Counts:
        """Every cell has a user, a few users have none."""
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
        return cls(user, cell, count, users, int(cell.max()) + 1)

    @classmethod
    def equal(cls, size: int) -> _Counts:
        """Users who are all alike."""
        users = max(1, size // _CELLS_PER_USER)
        cells = max(1, users // _USERS_PER_CELL)
        user = np.repeat(np.arange(users), _CELLS_PER_USER)
        cell = np.random.default_rng(0).integers(0, cells, len(user))
        user, cell = np.divmod(np.unique(user * cells + cell), cells)
        return cls(user, cell, np.ones_like(user), users, cells)

    @property
    def one_each(self) -> NDArray[np.int64]:
        """One record for every user and cell."""
        return np.ones_like(self.count)

    def records(self) -> Records:
        """A table in memory with one value for each user and cell."""
        import pyarrow as pa

        import shoal

        values = np.random.default_rng(1).uniform(*_BOUNDS, len(self.user))
        columns = [pa.array(each) for each in (self.user, self.cell, values)]
        table = pa.table(columns, names=["user", "cell", "value"])
        return shoal.Records(table, user="user", by=["cell"], value="value", bounds=_BOUNDS)

    def problem(self) -> Problem:
        """Means of all cells."""
        from shoal.cells.allocation import Problem

        share = self.count / np.bincount(self.cell, self.count)[self.cell]
        return Problem(self.user, self.cell, share, self.n_users, np.ones(self.n_cells))


def _clip_user(made: _Counts) -> str:
    from shoal.cells.cell_statistics import MEAN, cell_errors
    from shoal.cells.clip_user import clip_user

    kept = clip_user(made.user, made.cell, made.count, cell_errors([MEAN], 1.0))
    left = np.bincount(made.user[kept]).max()
    return f"most cells of a user {np.bincount(made.user).max()} -> {left}"


def _losses(made: _Counts) -> str:
    problem = made.problem()
    loss = float(problem.loss(problem.largest).max())
    return f"epsilon {loss:.4g} where the paper's is {problem.most_cells}"


class _Default:
    """What `shoal.plan` makes of the counts, carried out on as many values."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def plan(self, made: _Counts) -> str:
        """From counts; counting them is what `shoal bench aggregate` times."""
        import shoal

        occupancy = shoal.Counts.from_counts(made.user, made.cell, made.one_each)
        self.plans.append(shoal.plan(occupancy, bounds=_BOUNDS, epsilon=1))
        return self.plans[0].method

    def release(self, made: _Counts) -> str:
        """Of one value for each user and cell, with a ledger of its own."""
        import shoal

        with tempfile.TemporaryDirectory() as folder:
            ledger = shoal.Ledger.create(Path(folder) / "bench.ledger", epsilon=1, unit="user")
            found = self.plans[0].release(made.records(), ledger=ledger)
        return f"{found.table().num_rows} cells"


class _Asked:
    """The errors of `balanced`, for the optimal plan to be a fifth below."""

    def __init__(self, tolerance: float, seconds: float) -> None:
        self.tolerance, self.seconds = tolerance, seconds
        self.error = np.zeros(0)

    def balanced(self, made: _Counts) -> str:
        """Noise at a total loss of 1."""
        from shoal.cells import allocation

        problem = made.problem()
        found = allocation.balanced(problem)
        self.error = found.noise_scale
        middle = f"median error {np.median(self.error):.4g} at epsilon 1"
        if found.duals is None:
            return middle
        gap = allocation.balanced_gap(problem, found.noise_scale, found.duals, 1.0)
        return f"{middle}, gap {gap:.1e}"

    def optimal(self, made: _Counts) -> str:
        """The least loss at targets a fifth below."""
        from shoal.cells.optimal import interior, program

        if not program.is_small(made.user, made.n_cells):
            return "too many cells"
        share, target = made.problem().sensitivity, _PART * self.error
        columns = made.user, made.cell, share, np.ones(len(share)), target, made.n_users
        found = interior.solve(program.Program(*columns), self.tolerance, self.seconds)
        return f"epsilon {found.loss:.4g}, at least {found.lower_bound:.4g}: gap {found.gap:.2%}"
