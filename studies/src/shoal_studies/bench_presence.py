"""Private counts beside plain Laplace noise and OpenDP, whose caps are the best in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from importlib.resources import files
from math import exp, log, nan
from typing import Annotated, Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

import shoal
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal_studies import bench_keys, data, key_rules
from shoal_studies.bench_honest import worst_tenth
from shoal_studies.populations import Floats, Whole
from shoal_studies.registry import Losses, bench, option

_STATISTICS = ("users", "records", "sum", "mean")
_CONFIDENCE = 0.95
# Caps that plain Laplace noise tries: half octaves in all, and records in each cell.
_CAPS = 2.0 ** np.arange(0, 15, 0.5)
_IN_CELL = (np.inf, 1.0, 4.0, 16.0)
# OpenDP, which is slow, tries parts of the size of the largest user.
_PARTS = (0.02, 0.1, 0.3, 1.0)
# The speed and the delay of a flight, in miles an hour and minutes.
_SPEED = ("speed", (0.0, 700.0))
_DELAY = ("arr_delay", (-60.0, 180.0))
_HOUR = "origin || ' ' || hour(time_hour at time zone 'UTC')"


@dataclass(frozen=True, eq=False)
class Table:
    """Records with columns user, cell and value; all cells in which there are any are public."""

    name: str
    rows: pa.Table = field(repr=False)
    bounds: tuple[float, float]

    @cached_property
    def cells(self) -> list[str]:
        """The public list of cells."""
        return sorted(set(self.rows.column("cell").to_pylist()))

    @cached_property
    def members(self) -> tuple[Whole, Whole, Floats, Floats]:
        """User, cell, records and sum of clipped values of each membership."""
        rows = self.rows  # noqa: F841  DuckDB finds it by its name.
        low, high = self.bounds
        found = duckdb.connect().sql(
            f"""select dense_rank() over (order by "user") - 1 as who,
                       dense_rank() over (order by cell) - 1 as place,
                       count(*)::double as records,
                       sum(least(greatest(value, {low}), {high}))::double as sum
                from rows group by "user", cell"""
        )
        user, cell, records, sums = found.fetchnumpy().values()
        return user, cell, records, sums

    @cached_property
    def records(self) -> shoal.Records:
        """The records, whose counts are private."""
        columns: dict[str, Any] = {"user": "user", "value": "value", "by": "cell"}
        return shoal.Records(self.rows, bounds=self.bounds, **columns)

    @property
    def users(self) -> int:
        """How many users there are, which plans are told."""
        return int(self.members[0].max()) + 1

    def by_cell(self, amounts: Floats) -> Floats:
        """Sums over the users of each cell, of amounts of memberships."""
        return np.bincount(self.members[1], amounts, len(self.cells))

    @cached_property
    def truth(self) -> dict[str, Floats]:
        """The true statistics of each cell."""
        user, _, records, sums = self.members
        found = {"users": np.ones(len(user)), "records": records, "sum": sums}
        truth = {name: self.by_cell(each) for name, each in found.items()}
        return truth | {"mean": truth["sum"] / truth["records"]}


class Found(NamedTuple):
    """Figures of each cell in each release, shape (releases, cells)."""

    error: Floats
    half_width: Floats
    covered: Floats
    reliable: Floats


def tables() -> Iterator[Callable[[], Table]]:
    """Makers of real and made-up tables, in their order."""
    yield lambda: _flights("flights by destination", "dest", *_SPEED)
    yield lambda: _flights("flights by origin and hour", _HOUR, *_SPEED)
    yield lambda: _flights("delays by destination", "dest", *_DELAY)
    yield _sparse
    yield _visits


def _flights(
    name: str, cell: str, value: str, bounds: tuple[float, float], month: int | None = None
) -> Table:
    place = files("shoal") / "datasets" / "flights_2013.parquet"
    found = duckdb.connect().sql(
        f"""select tailnum as "user", {cell} as cell, {value}::double as value from '{place}'
            where tailnum is not null and speed is not null and {value} is not null
            and {month or "month(time_hour)"} = month(time_hour)"""
    )
    return Table(name, found.to_arrow_table(), bounds)


def _sparse() -> Table:
    counts, centre = data.sparse_cells()
    user = np.repeat(counts.user, counts.count)
    cell = np.repeat(counts.cell, counts.count)
    values = np.random.default_rng([50223, 0]).normal(centre[cell], 10.73)
    return Table("sparse cells", _rows(user, cell, values), data.BOUNDS)


def _visits() -> Table:
    """Minutes of 5,000 people in 3 branches on 7 weekdays: most come on their own days."""
    rng = np.random.default_rng(52)
    people = 5000
    visits = rng.geometric(1 / 8, people)
    user = np.repeat(np.arange(people), visits)
    branch = np.where(rng.random(len(user)) < 0.9, (user % 7) // 3, rng.integers(0, 3, len(user)))
    days = rng.integers(0, 7, (people, 2))
    cell = 7 * branch + days[user, rng.integers(0, 2, len(user))]
    usual = rng.lognormal(3.6, 0.4, people)[user] * rng.uniform(0.7, 1.5, 21)[cell]
    return Table("visits", _rows(user, cell, usual * rng.lognormal(0, 0.4, len(user))), (0, 240))


def _rows(user: Whole, cell: Whole, value: Floats) -> pa.Table:
    names = np.array([f"{each:03}" for each in range(int(cell.max()) + 1)])
    return pa.table({"user": user, "cell": names[cell], "value": value})


def ours(table: Table, statistic: str, epsilon: float, releases: int) -> Found:
    """Releases of the default plan, which is told the cells and the number of users."""
    plan = _plan(table, statistic, epsilon)
    made = (plan.release(table.records, noise=Simulated(turn)) for turn in range(releases))
    return _figures(table, statistic, made)


def _plan(table: Table, statistic: str, epsilon: float) -> Any:
    return shoal.plan(
        table.records,
        keys={"cell": table.cells},
        users=table.users,
        statistics=[statistic],
        epsilon=epsilon,
    )


def _figures(table: Table, statistic: str, releases: Iterable[Any]) -> Found:
    truth = table.truth[statistic]
    almost = 1e-9 * np.abs(truth)
    found = []
    for release in releases:
        (row,) = release.numbers.rows(_CONFIDENCE)
        covered = (row.low - almost <= truth) & ~(row.high + almost < truth)
        reliable = np.array(row.status) == "reliable"
        # A total of which nothing is known errs by all of it.
        value = np.nan_to_num(row.value)
        found.append((abs(value - truth), (row.high - row.low) / 2, covered, reliable))
    return Found(*map(np.array, zip(*found, strict=True)))


def laplace(table: Table, statistic: str, epsilon: float, releases: int) -> float:
    """The least mean error of plain Laplace noise over a grid of caps.

    A user counts for at most so many cells of `users`; otherwise for so many records in each cell,
    and in all. What is too much is cut from all cells of the user alike, better than by chance. A
    mean is a sum of values around the middle over a number of records, with half of epsilon each.
    """
    user, _, records, sums = table.members
    low, high = table.bounds
    half = (high - low) / 2
    truth = table.truth[statistic]
    noise = np.random.default_rng([52, len(statistic)]).laplace(size=(2, releases, len(truth)))
    errors = []
    for in_cell in _IN_CELL[:1] if statistic == "users" else _IN_CELL:
        part = np.minimum(records, in_cell) / records
        many = np.ones(len(user)) if statistic == "users" else records * part
        whole = np.bincount(user, many)
        for cap in _CAPS:
            kept = np.minimum(cap / whole, 1.0)[user]
            number = table.by_cell(many * kept)
            if statistic == "mean":
                centred = table.by_cell((sums - (low + half) * records) * part * kept)
                above = centred + 2 * half * cap / epsilon * noise[0]
                number = np.maximum(number + 2 * cap / epsilon * noise[1], 1.0)
                value = np.clip(low + half + above / number, low, high)
            else:
                unit = high if statistic == "sum" else 1.0
                total = table.by_cell(sums * part * kept) if statistic == "sum" else number
                value = np.maximum(total + unit * cap / epsilon * noise[0], 0.0)
            errors.append(float(np.abs(value - truth).mean()))
    return min(errors)


def has_opendp() -> bool:
    """Whether OpenDP can read tables, for which it needs one version of Polars."""
    try:
        own = metadata.version("polars")
    except metadata.PackageNotFoundError:
        return False
    return any(each.startswith(f"polars=={own};") for each in metadata.requires("opendp") or ())


def opendp(table: Table, statistic: str, epsilon: float) -> float:
    """The least mean error of OpenDP, through its own API, over four caps with a release each."""
    user, _, records, _ = table.members
    largest = float(np.bincount(user, None if statistic == "users" else records).max())
    errors = []
    for cap in {max(round(part * largest), 1) for part in _PARTS}:
        found = _asked(table, statistic, epsilon, cap)
        errors.append(float(np.abs(found - table.truth[statistic]).mean()))
    return min(errors)


def _asked(table: Table, statistic: str, epsilon: float, cap: int) -> Floats:
    """One release of OpenDP."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame: Any = pl.from_arrow(table.rows)
    keys = pl.DataFrame({"cell": table.cells})
    most = len(table.rows)
    query = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="user"),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=[
            dp.polars.Margin(by=["cell"], max_length=most, max_groups=len(table.cells)),
            dp.polars.Margin(max_length=most),
        ],
    ).query()
    if statistic == "users":
        once = query.truncate_per_group(1, by=["cell"])
        # Its limit is exclusive.
        kept = once.truncate_num_groups(cap + 1, by=["cell"], keep="first")
    else:
        kept = query.truncate_per_group(cap)
    low, high = table.bounds
    middle = (low + high) / 2
    value = pl.col("value").fill_nan(middle).fill_null(middle)
    many = dp.len(signed=True).alias("many")
    parts = {
        "users": [many],
        "records": [many],
        "sum": [value.dp.sum((low, high)).alias("above")],
        "mean": [(value - middle).dp.sum((low - middle, high - middle)).alias("above"), many],
    }[statistic]
    released = kept.group_by("cell").agg(*parts).with_keys(keys.lazy()).release().collect()
    sorted_as_asked = keys.join(released, on="cell", how="left", maintain_order="left")
    if statistic == "mean":
        ratio = sorted_as_asked["above"] / np.maximum(sorted_as_asked["many"], 1)
        return np.clip(middle + ratio.to_numpy(), low, high)
    found = sorted_as_asked["above" if statistic == "sum" else "many"].to_numpy()
    return np.maximum(found, 0.0)


@bench("presence")
def presence(
    releases: Annotated[int, option("Simulated releases of each.", 1, 10**6)] = 20,
    epsilon: Losses = [1.0, 4.0],  # noqa: B006
    only: Annotated[str, option("A part of the name of the tables to take.")] = "",
    keys: Annotated[bool, option("Count the keys that are found with a delta.")] = False,
    rules: Annotated[bool, option("The same, beside rules of papers.")] = False,
) -> Iterator[str]:
    """Err with private counts, beside plain Laplace noise and OpenDP with caps from hindsight.

    Ours knows the cells, the bounds and the number of users. The others are given the cap that errs
    least on this very table, which nobody knows without looking.

    Example: shoal bench presence --only sparse --epsilon 1
    """
    if keys or rules:
        compared = key_rules if rules else bench_keys
        yield from compared.lines(releases, epsilon, only)
        return
    yield (
        f"mean absolute error over cells, {releases} simulated releases a figure; Laplace, OpenDP: "
        "with the caps that err least on this very table; covered: 95% intervals of "
        "all cells, in the mean and in the worst tenth of cells; +-: half width of reliable cells"
    )
    peer = has_opendp()
    if peer:
        yield "OpenDP is slow: one release for each of four caps"
    else:
        yield "OpenDP is not compared: opendp[polars] is not installed"
    yield (
        f"{'table':<28}{'eps':>4}  {'statistic':<10}{'ours':>9}{'Laplace':>9}{'ratio':>7}"
        f"{'OpenDP':>9}{'ratio':>7}{'reliable':>9}{'error':>9}{'covered':>9}{'tenth':>7}{'+-':>9}"
    )
    ratios: dict[str, list[float]] = {}
    for made in tables():
        table = made()
        for loss in epsilon if only in table.name else ():
            for statistic in _STATISTICS:
                if statistic == "sum" and table.bounds[0] < 0:
                    continue
                found = ours(table, statistic, loss, releases)
                plain = laplace(table, statistic, loss, releases)
                other = opendp(table, statistic, loss) if peer else nan
                ratios.setdefault(statistic, []).append(float(found.error.mean()) / plain)
                yield _line(table.name, loss, statistic, found, (plain, other))
    if not ratios:
        raise InputError(f"no table with {only!r}", "a part of a name", "leave it out")
    for statistic, each in ratios.items():
        mean = exp(sum(map(log, each)) / len(each))
        yield f"{statistic}: {mean:.2f} of plain Laplace noise in the mean, {max(each):.2f} at most"


@bench("monthly")
def monthly(
    releases: Annotated[int, option("Simulated releases of each.", 1, 10**6)] = 20,
    epsilon: Losses = [1.0, 4.0],  # noqa: B006
) -> Iterator[str]:
    """Err with last month's release as a guide, beside a release of its own.

    Flights of February and July 2013, after those of the month before. Each release has another one
    of that month as its guide.

    Example: shoal bench monthly --releases 5 --epsilon 1
    """
    yield (
        f"mean absolute error over cells, {releases} simulated releases a figure; covered: 95% "
        "intervals of all cells, in the mean and in the worst tenth of cells"
    )
    ratios = []
    for name, cell in (("destination", "dest"), ("origin and hour", _HOUR)):
        for month in (2, 7):
            now = _flights(f"speed by {name}, month {month}", cell, *_SPEED, month)
            last = _flights(name, cell, *_SPEED, month - 1)
            for loss in epsilon:
                for statistic in ("mean", "median"):
                    alone, guided = _with_guide(last, now, statistic, loss, releases)
                    ratios.append(guided.error.mean() / alone.error.mean())
                    covered = guided.covered.mean(axis=0)
                    yield (
                        f"{now.name:<34}{loss:>4g}  {statistic:<8}{alone.error.mean():>7.3g}"
                        f" -> {guided.error.mean():>6.3g}, {ratios[-1]:.2f}; covered "
                        f"{covered.mean():.1%}, worst tenth {worst_tenth(covered):.0%}"
                    )
    yield f"{exp(float(np.log(ratios).mean())):.2f} in the mean, {max(ratios):.2f} at most"


def _with_guide(
    last: Table, now: Table, statistic: str, epsilon: float, releases: int
) -> tuple[Found, Found]:
    """Figures without and with a guide; the cells are those of this month."""
    if statistic == "median":
        cell = np.array(now.rows["cell"].to_pylist())
        value = now.rows["value"].to_numpy()
        now.truth[statistic] = np.array(
            [np.quantile(value[cell == each], 0.5, method="lower") for each in now.cells]
        )
    plan = _plan(now, statistic, epsilon)
    before = _plan(last, statistic, epsilon)
    guides = [before.release(last.records, noise=Simulated(turn)) for turn in range(releases)]
    guided = (
        plan.like(guide).release(now.records, noise=Simulated(releases + turn))
        for turn, guide in enumerate(guides)
    )
    alone = ours(now, statistic, epsilon, releases)
    return alone, _figures(now, statistic, guided)


def _line(name: str, epsilon: float, statistic: str, found: Found, rivals: Sequence[float]) -> str:
    error = float(found.error.mean())
    beside = "".join(f"{each:>9.3g}{error / each:>7.2f}" for each in rivals)
    reliable = found.reliable.any()
    of_reliable = [
        float(each[found.reliable].mean()) if reliable else nan
        for each in (found.error, found.half_width)
    ]
    line = (
        f"{name:<28}{epsilon:>4g}  {statistic:<10}{error:>9.3g}{beside}"
        f"{found.reliable.mean():>9.0%}{of_reliable[0]:>9.3g}{found.covered.mean():>9.1%}"
        f"{worst_tenth(found.covered.mean(axis=0)):>7.0%}{of_reliable[1]:>9.3g}"
    )
    return line.replace("nan", "  -")
