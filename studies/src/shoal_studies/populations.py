"""Populations that an estimator should err little on: real flights, and made-up ones, kind or not.

Every population has public counts and private means of each user in each cell; several draws of the
made-up ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shoal.data.aggregate import Aggregate
from shoal.data.occupancy import Counts, build
from shoal.data.value_lattice import Bounds, Lattice
from shoal_studies import collections

if TYPE_CHECKING:
    Floats = NDArray[Any]

SPEEDS, _LONG = (0.0, 65.0), (0.0, 1000.0)
# Of the ITMS cell: mean, deviation of a record, and of users where they differ.
_MEAN, _DEVIATION, _BETWEEN = 20.66769, 10.73, 6.0


@dataclass(frozen=True, eq=False)
class Population:
    """Counts and several draws of the means of users in cells.

    Attributes:
        name: What it is.
        occupancy: The public counts.
        means: Of each membership in the occupancy's order, one array a draw, in the value's unit.
        bounds: Of the values.
        real: Whether it was measured.
    """

    name: str
    occupancy: Counts
    means: list[Floats] = field(repr=False)
    bounds: tuple[float, float]
    real: bool = False

    def draw(self, turn: int) -> Aggregate:
        """Sums of one of the draws."""
        lattice = Lattice(Bounds.of(self.bounds))
        width = self.bounds[1] - self.bounds[0]
        share = (np.clip(self.means[turn % len(self.means)], *self.bounds) - self.bounds[0]) / width
        sums = np.rint(share * 2.0**lattice.bits).astype(np.int64) * self.occupancy.count
        centred = sums - (self.occupancy.count << (lattice.bits - 1))
        return Aggregate(self.occupancy, lattice, centred, np.zeros_like(centred))

    def truth(self, turn: int) -> Floats:
        """Mean of the records of each cell."""
        return self.draw(turn).cell_means()


class Members(NamedTuple):
    """Users and cells of memberships, and how many records they have."""

    user: NDArray[np.int64]
    cell: NDArray[np.int64]
    records: NDArray[np.int64]


def populations() -> Iterator[Population]:
    """All of them, real ones first."""
    yield from _flights()
    yield from _one_cell()
    yield from _crowd()
    yield from _heavy()


def made(
    name: str,
    user: NDArray[np.int64],
    cell: NDArray[np.int64],
    count: NDArray[np.int64],
    means: list[Floats],
    bounds: tuple[float, float] = SPEEDS,
    region: int = 0,
) -> Population:
    """A made-up population; of cells in regions of one size the region is a label, too."""
    keys = {"region": pa.array(cell // region)} if region else {}
    cells = pa.table(keys | {"cell": pa.array(cell)})
    occupancy, order = build(pa.array(user), cells, count.astype(np.int64))
    return Population(name, occupancy, [each[order] for each in means], bounds)


def _flights() -> Iterator[Population]:
    place = str(files("shoal") / "datasets" / "flights_2013.parquet")
    table = pq.read_table(place)
    hour = pc.hour(table.column("time_hour"))
    table = table.append_column("hour", hour)
    speed, delay = (0.0, 700.0), (-100.0, 1300.0)
    for name, keys, value, bounds, least in (
        ("flights by origin", ["origin"], "speed", speed, 1),
        ("flights by destination", ["dest"], "speed", speed, 1),
        ("flights by origin and hour", ["origin", "hour"], "speed", speed, 200),
        ("flights by destination and hour", ["dest", "hour"], "speed", speed, 50),
        ("delays by destination", ["dest"], "arr_delay", delay, 1),
    ):
        if value in table.column_names:
            yield _grouped(name, table, keys, value, bounds, least)


def _grouped(
    name: str,
    table: pa.Table,
    keys: list[str],
    value: str,
    bounds: tuple[float, float],
    least: int,
) -> Population:
    whole = table.select(["tailnum", *dict.fromkeys([*keys, "speed", value])]).drop_null()
    clipped = pc.min_element_wise(pc.max_element_wise(whole.column(value), bounds[0]), bounds[1])
    whole = whole.append_column("clipped", clipped)
    aggregated: Any = whole.group_by(["tailnum", *keys]).aggregate(
        [("clipped", "mean"), ("clipped", "count")]
    )
    size = aggregated.group_by(keys).aggregate([("clipped_count", "sum")])
    kept = size.filter(pc.greater_equal(size.column("clipped_count_sum"), pa.scalar(least)))
    joined = aggregated.join(kept.select(keys), keys, join_type="inner")
    count = joined.column("clipped_count").to_numpy().astype(np.int64)
    who = joined.column("tailnum").combine_chunks()
    occupancy, order = build(who, joined.select(keys), count)
    means = joined.column("clipped_mean").to_numpy()[order]
    return Population(name, occupancy, [means], bounds, real=True)


def _one_cell() -> Iterator[Population]:
    count = collections.itms()
    user, cell = np.arange(len(count)), np.zeros(len(count), dtype=np.int64)
    alike = [
        _of_records(np.full(len(count), _MEAN), _DEVIATION, count, [1, at]) for at in range(12)
    ]
    within = (_DEVIATION**2 - _BETWEEN**2) ** 0.5
    differ = [
        _of_records(
            np.random.default_rng([2, at]).normal(_MEAN, _BETWEEN, len(count)),
            within, count, [3, at],
        )
        for at in range(12)
    ]  # fmt: skip
    yield made("ITMS cell, users alike", user, cell, count, alike)
    yield made("ITMS cell, users differ", user, cell, count, differ)
    for users, rate in ((12, 0.05), (2000, 0.02)):
        rng = np.random.default_rng([4, users])
        count = rng.geometric(rate, users)
        means = [_of_records(rng.normal(20, 5, users), 8, count, [5, at]) for at in range(6)]
        user, cell = np.arange(users), np.zeros(users, dtype=np.int64)
        yield made(f"one cell of {users} users", user, cell, count, means)


def _of_records(
    mean: Floats, deviation: float, count: NDArray[np.int64], seed: list[int]
) -> Floats:
    """Means of so many clipped normal records of each user."""
    rng = np.random.default_rng(seed)
    records = np.clip(rng.normal(np.repeat(mean, count), deviation), *SPEEDS)
    starts = np.append(0, np.cumsum(count)[:-1])
    return np.asarray(np.add.reduceat(records, starts) / count)


def memberships(
    seed: int | list[int], users: int, cells: int, most: int, rate: float = 0.05
) -> Members:
    """Users in one to a few cells of unlike popularity, with counts that have a long tail."""
    rng = np.random.default_rng(seed)
    pull = rng.lognormal(0, 0.8, cells)
    user, cell = [], []
    for who, degree in enumerate(rng.integers(1, most + 1, users).tolist()):
        cell.append(rng.choice(cells, degree, replace=False, p=pull / pull.sum()))
        user.append(np.full(degree, who))
    one, other = np.concatenate(user), np.concatenate(cell)
    busy = np.ceil(rng.lognormal(0, 0.8, users))[one]
    count = np.minimum(rng.geometric(rate, len(one)) * busy, 2000).astype(np.int64)
    return Members(one, other, count)


def _crowd() -> Iterator[Population]:
    user, cell, count = memberships(2, 1000, 30, 6)
    users, cells, size = 1000, 30, len(user)
    fixed = np.random.default_rng(4)
    near, far = fixed.normal(25, 4, cells), fixed.uniform(5, 60, cells)
    records = np.bincount(user, count, minlength=users)
    kinds: dict[str, tuple[Callable[[np.random.Generator], Floats], tuple[float, float]]] = {
        "normal users": (
            lambda r: near[cell] + r.normal(0, 5, users)[user] + r.normal(0, 10, size) / count**0.5,
            SPEEDS,
        ),
        "two kinds of users": (
            lambda r: r.choice([12.0, 50.0], users)[user] + r.normal(0, 3, size), SPEEDS,
        ),
        "all at a bound": (lambda _: np.full(size, 65.0), SPEEDS),
        "heavy tails": (
            lambda r: np.exp(r.normal(2, 1.2, users)[user] + r.normal(0, 0.5, size)), _LONG,
        ),
        "many zeros": (
            lambda r: r.binomial(1, 0.4, users)[user] * r.exponential(10, size), SPEEDS,
        ),
        "cells far apart": (
            lambda r: far[cell] + r.normal(0, 2, users)[user] + r.normal(0, 1, size), SPEEDS,
        ),
        "users at either bound": (
            lambda r: 65.0 * r.binomial(1, 0.3, users)[user], SPEEDS,
        ),
        "records at either bound": (lambda r: 65 * r.binomial(count, 0.3) / count, SPEEDS),
        "heavy users faster": (
            lambda r: 10 + 5 * np.log(records)[user] + r.normal(0, 3, users)[user], SPEEDS,
        ),
    }  # fmt: skip
    for name, (make, bounds) in kinds.items():
        means = [make(np.random.default_rng([3, at])) for at in range(3)]
        yield made(name, user, cell, count, means, bounds)


def _heavy() -> Iterator[Population]:
    user, cell, count = memberships(6, 400, 20, 5)
    total = np.bincount(cell, count, minlength=20).astype(np.int64)
    user, cell = np.append(user, np.full(20, 400)), np.append(cell, np.arange(20))
    count = np.append(count, total)
    centre = np.random.default_rng(8).normal(20, 3, 20)
    for name, own in (("one user half, unlike", 30.0), ("one user half, alike", None)):
        means = []
        for at in range(3):
            off = np.random.default_rng([7, at]).normal(0, 8, 401)
            off[400] = off[400] if own is None else own
            means.append(centre[cell] + off[user])
        yield made(name, user, cell, count, means)
