"""Populations that an estimator should err little on: real flights, and made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts, build
from shoal.data.value_lattice import Bounds, Lattice
from shoal_studies import data

Floats: TypeAlias = "NDArray[Any]"
Whole: TypeAlias = "NDArray[np.int64]"
Draw: TypeAlias = "Callable[[np.random.Generator], Floats]"
Kind: TypeAlias = tuple[str, Draw, tuple[float, float]]

SPEEDS = (0.0, 65.0)
_LONG = (0.0, 1000.0)
_SHORT = (0.0, 40.0)
_LOW = (0.0, 60.0)
_YES_OR_NO = (0.0, 1.0)
# Cells and users.
_FEW = ((12, 1500), (18, 3000), (25, 1500), (25, 5000))
# Of a record of the ITMS cell.
_DEVIATION = 10.73
# Keys, value, bounds and the fewest flights of a cell.
_SPEED = ("speed", (0.0, 700.0))
_DELAY = ("arr_delay", (-100.0, 1300.0))
_FLIGHTS = {
    "flights by origin": ("origin", *_SPEED, 1),
    "flights by destination": ("dest", *_SPEED, 1),
    "flights by origin and hour": ("origin, hour", *_SPEED, 200),
    "flights by destination and hour": ("dest, hour", *_SPEED, 50),
    "delays by destination": ("dest", *_DELAY, 1),
}


@dataclass(frozen=True, eq=False)
class Population:
    """Public counts, and means of their memberships in the value's unit, one array a draw."""

    name: str
    counts: Counts
    means: list[Floats] = field(repr=False)
    bounds: tuple[float, float]

    def draw(self, turn: int) -> Aggregate:
        """Sums of one of the draws."""
        lattice = Lattice(Bounds.of(self.bounds))
        low, high = self.bounds
        share = (np.clip(self.means[turn % len(self.means)], low, high) - low) / (high - low)
        sums = np.rint(share * 2.0**lattice.bits).astype(np.int64) * self.counts.count
        centred = sums - (self.counts.count << (lattice.bits - 1))
        return Aggregate(self.counts.memberships, lattice, centred, np.zeros_like(centred))


class Members(NamedTuple):
    """Users and cells of memberships, and how many records they have."""

    user: Whole
    cell: Whole
    records: Whole


def populations() -> Iterator[Population]:
    """All of them, real ones first."""
    yield from _flights()
    yield from _one_cell()
    yield from _crowd()
    yield from _heavy()


def made(
    name: str,
    members: Members,
    means: list[Floats],
    bounds: tuple[float, float] = SPEEDS,
    region: int = 0,
) -> Population:
    """A made-up population; of cells in regions of one size the region is a label, too."""
    user, cell, count = members
    keys = {"region": pa.array(cell // region)} if region else {}
    cells = pa.table(keys | {"cell": pa.array(cell)})
    counts, order = build(pa.array(user), cells, count.astype(np.int64))
    return Population(name, counts, [each[order] for each in means], bounds)


def drawn(
    members: Members, kind: Kind, seed: list[int], draws: int, prefix: str = "", region: int = 0
) -> Population:
    """Draws of a kind of values."""
    name, draw, bounds = kind
    means = [draw(np.random.default_rng([*seed, turn])) for turn in range(draws)]
    return made(f"{prefix}{name}", members, means, bounds, region)


def _flights() -> Iterator[Population]:
    place = files("shoal") / "datasets" / "flights_2013.parquet"
    for name, (keys, value, (low, high), least) in _FLIGHTS.items():
        query = f"""select tailnum, {keys}, count(*) as flights,
                       avg(least(greatest({value}, {low}), {high})) as mean
                from (select *, hour(time_hour at time zone 'UTC') as hour from '{place}')
                where tailnum is not null and speed is not null and {value} is not null
                group by tailnum, {keys}
                qualify sum(count(*)) over (partition by {keys}) >= {least}"""
        table = duckdb.connect().sql(query).to_arrow_table()
        count, mean = (table.column(each).to_numpy() for each in ("flights", "mean"))
        cells = table.drop_columns(["tailnum", "flights", "mean"])
        counts, order = build(table.column("tailnum").combine_chunks(), cells, count)
        yield Population(name, counts, [mean[order]], (low, high))


def _alone(count: Whole) -> Members:
    return Members(np.arange(len(count)), np.zeros(len(count), dtype=np.int64), count)


def _one_cell() -> Iterator[Population]:
    itms = _alone(data.itms())
    users = len(itms.user)
    mean = data.MEAN
    alike = [_of_records(np.full(users, mean), _DEVIATION, itms, [1, at]) for at in range(12)]
    within = (_DEVIATION**2 - data.BETWEEN**2) ** 0.5
    centres = [np.random.default_rng([2, at]).normal(mean, data.BETWEEN, users) for at in range(12)]
    differ = [_of_records(each, within, itms, [3, at]) for at, each in enumerate(centres)]
    yield made("ITMS cell, users alike", itms, alike)
    yield made("ITMS cell, users differ", itms, differ)
    for users, rate in ((12, 0.05), (2000, 0.02)):
        rng = np.random.default_rng([4, users])
        members = _alone(rng.geometric(rate, users))
        means = [_of_records(rng.normal(20, 5, users), 8, members, [5, at]) for at in range(6)]
        yield made(f"one cell of {users} users", members, means)


def _of_records(mean: Floats, deviation: float, members: Members, seed: list[int]) -> Floats:
    """Means of so many clipped normal records of each user."""
    rng = np.random.default_rng(seed)
    count = members.records
    records = np.clip(rng.normal(np.repeat(mean, count), deviation), *SPEEDS)
    return np.asarray(np.add.reduceat(records, np.append(0, np.cumsum(count)[:-1])) / count)


def memberships(
    seed: int | list[int],
    users: int,
    cells: int,
    most: int,
    rate: float = 0.05,
    *,
    poisson: bool = False,
) -> Members:
    """Users in about, or at most, so many cells of unlike popularity, with long-tailed counts."""
    rng = np.random.default_rng(seed)
    pull = rng.lognormal(0, 0.8, cells)
    degree = rng.poisson(most, users) if poisson else rng.integers(1, most + 1, users)
    degree = np.clip(degree, 1, cells)
    cell = [rng.choice(cells, size, replace=False, p=pull / pull.sum()) for size in degree]
    user = np.repeat(np.arange(users), degree)
    busy = np.ceil(rng.lognormal(0, 0.8, users))[user]
    count = np.minimum(rng.geometric(rate, len(user)) * busy, 2000).astype(np.int64)
    return Members(user, np.concatenate(cell), count)


def _crowd() -> Iterator[Population]:
    members = user, cell, count = memberships(2, 1000, 30, 6)
    users = 1000
    cells = 30
    size = len(user)
    fixed = np.random.default_rng(4)
    near = fixed.normal(25, 4, cells)
    far = fixed.uniform(5, 60, cells)
    heavy = 5 * np.log(np.bincount(user, count, minlength=users))
    kinds: tuple[Kind, ...] = (
        (
            "normal users",
            lambda r: near[cell] + r.normal(0, 5, users)[user] + r.normal(0, 10, size) / count**0.5,
            SPEEDS,
        ),
        (
            "two kinds of users",
            lambda r: r.choice([12.0, 50.0], users)[user] + r.normal(0, 3, size), SPEEDS,
        ),
        ("all at a bound", lambda _: np.full(size, 65.0), SPEEDS),
        (
            "heavy tails",
            lambda r: np.exp(r.normal(2, 1.2, users)[user] + r.normal(0, 0.5, size)), _LONG,
        ),
        (
            "many zeros",
            lambda r: r.binomial(1, 0.4, users)[user] * r.exponential(10, size), SPEEDS,
        ),
        (
            "cells far apart",
            lambda r: far[cell] + r.normal(0, 2, users)[user] + r.normal(0, 1, size), SPEEDS,
        ),
        ("users at either bound", lambda r: 65.0 * r.binomial(1, 0.3, users)[user], SPEEDS),
        ("records at either bound", lambda r: 65 * r.binomial(count, 0.3) / count, SPEEDS),
        ("heavy users faster", lambda r: 10 + heavy[user] + r.normal(0, 3, users)[user], SPEEDS),
    )  # fmt: skip
    for kind in kinds:
        yield drawn(members, kind, [3], 3)


def _heavy() -> Iterator[Population]:
    user, cell, count = memberships(6, 400, 20, 5)
    total = np.bincount(cell, count, minlength=20).astype(np.int64)
    user = np.append(user, np.full(20, 400))
    cell = np.append(cell, np.arange(20))
    members = Members(user, cell, np.append(count, total))
    centre = np.random.default_rng(8).normal(20, 3, 20)
    off = [np.random.default_rng([7, at]).normal(0, 8, 401) for at in range(3)]
    unlike = [np.append(each[:-1], 30.0) for each in off]
    for name, each in (("one user half, unlike", unlike), ("one user half, alike", off)):
        yield made(name, members, [centre[cell] + one[user] for one in each])


def unlike() -> Iterator[Population]:
    """Users of two kinds, of long tails or at zero, and cells that few users tell apart."""
    members = memberships(71, 1500, 40, 6)
    chance = np.random.default_rng(76).uniform(0.2, 0.8, 40)[members.cell]
    few_cells = memberships(80, 3000, 5, 3, 0.1)
    many = memberships(81, 20_000, 300, 5, 0.2)
    rising = 3.0 * few_cells.cell
    middle = np.random.default_rng(82).normal(30, 6, 300)[many.cell]
    for kind in _kinds(members, 72):
        yield _unlike(members, *kind)
    yield _unlike(
        members, "yes or no of users",
        lambda r: (r.random(1500)[members.user] < chance).astype(float), _YES_OR_NO,
    )  # fmt: skip
    yield _trend(1200, 60)
    yield _hexagons(200, 0.3)
    yield _hexagons(2000, 0.2)
    yield _sorted_kinds(150, 50)
    yield _sorted_kinds(3000, 100)
    yield _unlike(
        few_cells, "5 cells, Pareto",
        lambda r: (5 + rising) * r.pareto(2.2, 3000)[few_cells.user], _LONG,
    )  # fmt: skip
    yield _unlike(
        few_cells, "5 cells, two kinds",
        lambda r: _kind(r, 3000, 0.05, 50, 10)[few_cells.user] + rising,
    )  # fmt: skip
    yield _unlike(
        many, "300 cells, two kinds",
        lambda r: middle + _kind(r, 20_000, 0.1, 30, -3)[many.user] + r.normal(0, 3, len(middle)),
    )  # fmt: skip
    yield _half_at_zero(300)
    yield _half_at_zero(3000)


def few() -> Iterator[Population]:
    """Six kinds of values in each of four sizes, with 12 to 25 cells."""
    for cells, users in _FEW:
        members = memberships([73, cells, users], users, cells, 5)
        for name, draw, bounds in _kinds(members, [74, cells, users]):
            name = f"{name}, {cells} cells, {users} users"
            yield drawn(members, (name, draw, bounds), [75, len(name)], 1, "few: ")


def _unlike(
    members: Members,
    name: str,
    draw: Draw,
    bounds: tuple[float, float] = SPEEDS,
    region: int = 0,
) -> Population:
    return drawn(members, (name, draw, bounds), [75, len(name)], 2, "unlike: ", region)


def _kinds(members: Members, seed: int | list[int]) -> tuple[Kind, ...]:
    """Values of six kinds that clipping of users may bias in some cells more than in others."""
    user, cell, count = members
    users = int(user.max()) + 1
    cells = int(cell.max()) + 1
    size = len(user)
    fixed = np.random.default_rng(seed)
    records = np.bincount(user, count)
    heavy = np.where(records >= np.quantile(records, 0.9), 25, 0)[user]
    middle = fixed.normal(25, 6, cells)[cell]
    outlier = np.where(np.arange(cells) % 10 == 3, 55, fixed.normal(15, 2, cells))[cell]
    often = fixed.uniform(0.02, 0.4, cells)[cell]
    logarithm = fixed.normal(2.5, 0.6, cells)[cell]
    rarely = np.exp(fixed.uniform(np.log(0.005), np.log(0.15), cells))[cell]

    def rare(rng: np.random.Generator) -> Floats:
        chance = rarely * np.exp(rng.normal(0, 1, users))[user]
        return np.asarray(rng.binomial(count, np.minimum(chance, 1)) / count)

    return (
        (
            "two kinds",
            lambda r: middle + _kind(r, users, 0.1, 30, -3)[user] + r.normal(0, 3, size), SPEEDS,
        ),
        ("heavy different", lambda r: middle + heavy + r.normal(0, 3, size), SPEEDS),
        (
            "outlier cells",
            lambda r: outlier + r.normal(0, 3, users)[user] + r.normal(0, 2, size), SPEEDS,
        ),
        (
            "zero-inflated",
            lambda r: (r.random(size) < often) * r.exponential(30, users)[user], (0.0, 300.0),
        ),
        (
            "lognormal",
            lambda r: np.exp(logarithm + r.normal(0, 1, users)[user] + r.normal(0, 0.5, size)),
            (0.0, 500.0),
        ),
        ("rare yes or no", rare, _YES_OR_NO),
    )  # fmt: skip


def _kind(rng: np.random.Generator, users: int, part: float, one: float, other: float) -> Floats:
    """One value for a random part of the users, another one for the rest."""
    return np.where(rng.random(users) < part, one, other)


def _trend(users: int, periods: int) -> Population:
    """Each user has a run of periods."""
    rng = np.random.default_rng(77)
    start = rng.integers(0, periods - 4, users)
    length = rng.integers(1, 10, users)
    user = np.repeat(np.arange(users), length)
    first = np.repeat(np.cumsum(length) - length, length)
    cell = (start[user] + np.arange(len(user)) - first) % periods
    members = Members(user, cell, _counts(rng, user, 0.1, 0.8))
    return _unlike(
        members, "growing trend",
        lambda r: 8 + 0.7 * cell + r.normal(0, 4, users)[user] + r.normal(0, 2, len(user)),
    )  # fmt: skip


def _counts(rng: np.random.Generator, user: Whole, rate: float, deviation: float) -> Whole:
    """Geometric counts, times how busy a user is."""
    busy = np.ceil(rng.lognormal(0, deviation, int(user.max()) + 1))[user]
    return (rng.geometric(rate, len(user)) * busy).astype(np.int64)


def _hexagons(users: int, fast: float) -> Population:
    """Eight regions of eight cells: a user stays in one, fast ones in the two main cells of it."""
    rng = np.random.default_rng([78, users])
    place = rng.integers(0, 8, users)
    is_fast = rng.random(users) < fast
    main = np.arange(8) < 2
    pull = np.where(is_fast[:, None], np.where(main, 6.0, 0.5), 1.0)
    # With Gumbel noise added the largest ones are drawn in proportion to the pull.
    order = np.argsort(-np.log(pull) - rng.gumbel(size=pull.shape), axis=1)
    user, rank = np.nonzero(np.arange(8) < rng.integers(1, 8, users)[:, None])
    cell = place[user] * 8 + order[user, rank]
    members = Members(user, cell, _counts(rng, user, 0.03, 0.8))
    own = rng.normal(0, 2, 64)[cell] + rng.normal(0, 3, 8)[cell // 8]
    speed = np.where(is_fast, 24, 6)[user] * np.where(main, 1, 0.5)[cell % 8] + own
    return _unlike(
        members, f"nested hexagons, {users} users",
        lambda r: np.maximum(speed + r.normal(0, 2, users)[user], 0), _LOW, 8,
    )  # fmt: skip


def _sorted_kinds(users: int, cells: int) -> Population:
    """A fifth of the users is nearly alone in a fifth of the cells, and unlike the others."""
    rng = np.random.default_rng([79, users])
    kind = rng.random(users) < 0.2
    fifth = cells // 5
    user = np.repeat(np.arange(users), rng.integers(1, 9, users))
    inside = kind[user] & (rng.random(len(user)) < 0.85)
    cell = np.where(
        inside, rng.integers(0, fifth, len(user)), rng.integers(fifth, cells, len(user))
    )
    user, cell = np.unique([user, cell], axis=1)
    members = Members(user, cell, _counts(rng, user, 0.03, 1.0))
    level = np.where(kind, 20, 4)
    return _unlike(
        members, f"sorted kinds, {users} users",
        lambda r: (level + r.normal(0, 3, users))[user] + r.normal(0, 2, len(user)), _LOW,
    )  # fmt: skip


def _half_at_zero(users: int) -> Population:
    members = memberships([83, users], users, 50, 6)
    moves = (np.random.default_rng([84, users]).random(users) < 0.45)[members.user]
    height = 9 * np.random.default_rng(85).uniform(0.3, 1.5, 50)[members.cell]
    return _unlike(
        members, f"half at zero, {users} users",
        lambda r: np.where(moves, height + r.normal(0, 2, users)[members.user], 0.0), _SHORT,
    )  # fmt: skip
