"""Quantiles, deviations and shares of public counts, beside what people write by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

import shoal
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal_studies.bench_honest import worst_tenth
from shoal_studies.populations import Floats, Population, Whole, populations, unlike
from shoal_studies.registry import Losses, bench, option

_LEVELS = (0.1, 0.5, 0.9)
_QUANTILES = tuple(f"quantile({level})" for level in _LEVELS)
_THRESHOLDS = (300, 350, 400, 450, 500)
_HOUR = "origin || ' ' || hour(time_hour at time zone 'UTC')"
# By hand: caps on cells of a user and on its records in each, candidates, and fixed bins.
_CELLS = (1, 2, 4, 8, 1000)
_RECORDS = (1, 3, 10, 1000)
_CANDIDATES = 1024
# Draws of each: the least error of single draws would be luck where cells are few.
_DRAWS = 8
_BINS = 16
# What the design measured and asks for, by table, epsilon and statistic.
_BARS = {
    ("speed by destination", 1.0): {"quantiles": (44, 24, 33), "std": 8.5, "histogram": 0.115},
    ("speed by destination", 4.0): {"quantiles": (27.5, 10, 19.5)},
    ("speed by origin and hour", 1.0): {
        "quantiles": (24, 14.5, 11.5), "std": 8.0, "histogram": 0.06,
    },
    ("speed by origin and hour", 4.0): {"quantiles": (11.5, 7.8, 6.3)},
    ("delay by origin and hour", 1.0): {"quantiles": (4.2, 2.9, 25)},
    ("delay by origin and hour", 4.0): {"quantiles": (2.3, 1.8, 10)},
    ("delay by destination", 1.0): {"std": 7.5},
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """Records with columns who, cell and value, and the bounds of the values."""

    name: str
    rows: pa.Table = field(repr=False)
    bounds: tuple[float, float]

    @cached_property
    def records(self) -> shoal.Records:
        """The records, whose counts are public."""
        columns: dict[str, Any] = {"user": "who", "value": "value", "by": "cell"}
        return shoal.Records(self.rows, bounds=self.bounds, counts="public", **columns)

    @cached_property
    def sorted(self) -> list[Floats]:
        """The values of each cell, clipped and ascending, in the order of the plan's cells."""
        cell = np.array(self.rows["cell"].to_pylist(), dtype=str)
        values = np.clip(self.rows["value"].to_numpy(), *self.bounds)
        labels = self.records.counts().labels
        order = np.lexsort((values, cell))
        names, start = np.unique(cell[order], return_index=True)
        groups = dict(zip(names.tolist(), np.split(values[order], start[1:]), strict=True))
        return [groups[label] for label in labels]

    def truth(self, statistic: str) -> Floats:
        """The true statistic of each cell."""
        name, _, numbers = statistic.rstrip(")").partition("(")
        given = [float(each) for each in numbers.split(",")] if numbers else []
        functions = {
            "quantile": lambda each: np.quantile(each, given[0], method="lower"),
            "std": np.std,
            "variance": np.var,
            "share_above": lambda each: (each > given[0]).mean(),
            "share_below": lambda each: (each <= given[0]).mean(),
            "share_between": lambda each: ((each > given[0]) & (each <= given[1])).mean(),
        }
        return np.array([functions[name](each) for each in self.sorted])


class Found(NamedTuple):
    """Figures of each cell in each release, shape (releases, cells)."""

    error: Floats
    covered: Floats
    reliable: Floats


def tables() -> Iterator[Table]:
    """Flights by destination, and by origin and hour of at least 200 flights."""
    for name, value, bounds in (
        ("speed", "speed", (0.0, 700.0)),
        ("delay", "arr_delay", (-100.0, 1300.0)),
    ):
        for by, cell, least in (("destination", "dest", 1), ("origin and hour", _HOUR, 200)):
            place = files("shoal") / "datasets" / "flights_2013.parquet"
            found = duckdb.connect().sql(
                f"""select tailnum as who, {cell} as cell, {value}::double as value
                    from '{place}' where tailnum is not null and speed is not null
                    and arr_delay is not null
                    qualify count(*) over (partition by {cell}) >= {least}"""
            )
            yield Table(f"{name} by {by}", found.to_arrow_table(), bounds)


def ours(
    table: Table, statistics: Sequence[str], epsilon: float, releases: int, **options: Any
) -> dict[str, Found]:
    """Simulated releases of one plan, by the names of the rows."""
    wanted = {"epsilon": epsilon, "statistics": statistics, "min_users": 1, **options}
    plan: Any = shoal.plan(table.records, **wanted)
    figures: dict[str, list[Any]] = {}
    for turn in range(releases):
        done = plan.release(table.records, noise=Simulated(turn)).table()
        for name in done["statistic"].unique().to_pylist():
            rows = done.filter(pa.compute.equal(done["statistic"], name))
            value, low, high = (rows[each].to_numpy() for each in ("value", "low", "high"))
            true = table.truth(name)
            reliable = np.array(rows["status"].to_pylist()) == "reliable"
            covered = (low <= true + 1e-9) & (true - 1e-9 <= high)
            figures.setdefault(name, []).append((np.abs(value - true), covered, reliable))
    return {name: Found(*map(np.array, zip(*each, strict=True))) for name, each in figures.items()}


def by_hand(table: Table, level: float, epsilon: float) -> float:
    """The mean error of a quantile by the best of simple mechanisms and caps, in hindsight.

    Users count with so many cells and records in each. A third of epsilon selects one of 1,024
    candidates in each cell, or all of it is spent on Laplace noise of 16 bins.
    """
    rng = np.random.default_rng(3)
    rows = table.rows
    who = np.unique(np.array(rows["who"].to_pylist(), dtype=str), return_inverse=True)[1]
    labels = {label: at for at, label in enumerate(table.records.counts().labels)}
    cell = np.array([labels[str(each)] for each in rows["cell"].to_pylist()])
    value = np.clip(rows["value"].to_numpy(), *table.bounds)
    truth = table.truth(f"quantile({level})")
    errors = []
    for cells in _CELLS:
        for records in _RECORDS:
            kept = _capped(who, cell, cells, records, rng)
            most_cells = min(cells, int(np.bincount(np.unique(who * 10**6 + cell) // 10**6).max()))
            most = min(records, int(np.unique(who * 10**6 + cell, return_counts=True)[1].max()))
            groups = [np.sort(value[kept][cell[kept] == at]) for at in range(len(labels))]
            for mechanism, spent in ((_selected, epsilon / 3), (_from_bins, epsilon)):
                drawn = [
                    mechanism(each, level, table.bounds, spent / most_cells, most, rng)
                    for _ in range(_DRAWS)
                    for each in groups
                ]
                found = np.reshape(drawn, (_DRAWS, len(groups)))
                errors.append(float(np.abs(found - truth).mean()))
    return min(errors)


def _capped(who: Whole, cell: Whole, cells: int, records: int, rng: Any) -> Whole:
    """Positions of records of at most so many cells of a user, and so many in each of them."""
    order = rng.permutation(len(who))
    pair = who[order] * 10**6 + cell[order]
    rank = _rank(pair)
    distinct = np.unique(pair)
    cell_rank = np.zeros(len(distinct), dtype=np.int64)
    turn = rng.permutation(len(distinct))
    cell_rank[turn] = _rank(distinct[turn] // 10**6)
    of_pair = cell_rank[np.searchsorted(distinct, pair)]
    return order[(rank < records) & (of_pair < cells)]


def _rank(groups: Whole) -> Whole:
    """The number of each entry among those of its group."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    start = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
    rank = np.arange(len(groups)) - np.repeat(start, np.diff(np.append(start, len(groups))))
    found = np.empty_like(rank)
    found[order] = rank
    return found


def _selected(
    values: Floats, level: float, bounds: Sequence[float], epsilon: float, most: int, rng: Any
) -> float:
    """One of the candidates by the exponential mechanism."""
    candidates = np.linspace(*bounds, _CANDIDATES)
    below = np.searchsorted(values, candidates, side="right")
    score = -np.abs(below - level * len(values))
    return float(candidates[(score + rng.gumbel(0, 2 * most / epsilon, _CANDIDATES)).argmax()])


def _from_bins(
    values: Floats, level: float, bounds: Sequence[float], epsilon: float, most: int, rng: Any
) -> float:
    """The quantile of a histogram with Laplace noise."""
    edges = np.linspace(*bounds, _BINS + 1)
    noisy = np.histogram(values, edges)[0] + rng.laplace(0, 2 * most / epsilon, _BINS)
    so_far = np.append(0, np.cumsum(np.maximum(noisy, 0)))
    return float(np.interp(level * so_far[-1], so_far + 1e-9 * np.arange(_BINS + 1), edges))


def pooled(table: Table, level: float) -> float:
    """The mean error of the exact quantile of all records, for every cell."""
    whole = float(np.quantile(np.concatenate(table.sorted), level))
    return float(np.abs(table.truth(f"quantile({level})") - whole).mean())


@bench("distributions")
def distributions(
    releases: Annotated[int, option("Simulated releases of each.", 1, 10**6)] = 20,
    epsilon: Losses = [1.0, 4.0],  # noqa: B006
    only: Annotated[str, option("A part of the name of the tables to take.")] = "",
) -> Iterator[str]:
    """Err with quantiles, deviations and shares, beside simple mechanisms with the best caps.

    Example: shoal bench distributions --only delay
    """
    yield (
        f"mean absolute error over cells, {releases} simulated releases a figure; hand: the best "
        "of simple mechanisms and caps in hindsight; common: the exact number of all records for "
        "every cell; covered: 95% intervals, in the mean and in the worst tenth of cells; !: above "
        "the bar, which is in brackets"
    )
    done = False
    for table in tables():
        for loss in epsilon if only in table.name else ():
            done = True
            bars: dict[str, Any] = _BARS.get((table.name, loss), {})
            yield f"{table.name}, epsilon {loss:g}"
            found = ours(table, _QUANTILES, loss, releases)
            for at, (name, level) in enumerate(zip(_QUANTILES, _LEVELS, strict=True)):
                rivals = (
                    f"hand {by_hand(table, level, loss):.3g}, common {pooled(table, level):.3g}"
                )
                bar = bars["quantiles"][at] if "quantiles" in bars else None
                yield _line(name, found[name], bar, rivals)
            found = ours(table, ["std"], loss, releases)
            today = _certified(table, ["variance"], loss, releases)["std"]
            yield _line("std", found["std"], bars.get("std"), f"certified {today:.3g}")
            if table.bounds[1] > _THRESHOLDS[-1] and table.bounds[0] == 0:
                yield from _shares(table, loss, releases, bars)
    if not done:
        raise InputError(f"no table with {only!r}", "a part of a name", "leave it out")


def _shares(table: Table, loss: float, releases: int, bars: dict[str, Any]) -> Iterator[str]:
    """A histogram, and one share, beside certified shares."""
    several = f"cdf({', '.join(map(str, _THRESHOLDS))})"
    found = ours(table, [several], loss, releases)
    joined = Found(*(np.concatenate(each, axis=1) for each in zip(*found.values(), strict=True)))
    certified = _certified(
        table, [f"share_above({each})" for each in _THRESHOLDS], loss, releases
    ).values()
    today = float(np.mean([*certified]))
    yield _line("histogram", joined, bars.get("histogram"), f"certified {today:.3g}")
    one = ours(table, ["share_above(420)"], loss, releases)["share_above(420)"]
    today = _certified(table, ["share_above(420)"], loss, releases)["share_above(420)"]
    yield _line("share_above(420)", one, 1.1 * today, f"certified {today:.3g}")


def _certified(
    table: Table, statistics: Sequence[str], epsilon: float, releases: int
) -> dict[str, float]:
    """Mean errors with certified noise, of three releases at most."""
    options: dict[str, Any] = {"objective": "worst_case", "uninformative": "keep"}
    found = ours(table, statistics, epsilon, min(releases, 3), **options)
    return {name: float(each.error.mean()) for name, each in found.items()}


def _line(name: str, found: Found, bar: float | None, rivals: str) -> str:
    error = float(found.error.mean())
    asked = "" if bar is None else f" ({bar:.3g})" + " !" * (error > bar)
    covered = found.covered.mean(axis=0)
    reliable = found.reliable.astype(bool)
    own = f", reliable {reliable.mean():.0%}"
    if reliable.any():
        own += f" with {float(found.error[reliable].mean()):.3g}"
    return (
        f"  {name:<18}{error:>7.3g}{asked}, {rivals}; covered {covered.mean():.1%}, worst tenth "
        f"{worst_tenth(covered):.0%}{own}"
    )


@bench("covered")
def covered(
    releases: Annotated[int, option("Simulated releases of each.", 2, 10**6)] = 100,
    epsilon: Losses = [1.0, 4.0],  # noqa: B006
    only: Annotated[str, option("A part of the name of the populations to take.")] = "",
) -> Iterator[str]:
    """Cover quantiles and shares on typical and unlike populations.

    Example: shoal bench covered --only heavy
    """
    yield (
        f"{releases} simulated releases a figure; 95% intervals of reliable cells, of 10%, 50% and "
        "90% quantiles and of shares below common quantiles: in the mean and in the worst tenth"
    )
    for population in [*populations(), *unlike()]:
        for loss in epsilon if only in population.name else ():
            table = of_population(population)
            every = np.concatenate(table.sorted)
            limits = sorted({float(np.quantile(every, level)) for level in (0.25, 0.5, 0.75)})
            low, high = table.bounds
            inside = [f"share_below({each!r})" for each in limits if low < each < high]
            found = ours(table, [*_QUANTILES, *inside], loss, releases)
            texts = [
                _coverage(title, [each for name, each in found.items() if name.startswith(kind)])
                for title, kind in (("quantiles", "quantile"), ("shares", "share"))
            ]
            yield f"{population.name:<42}{loss:>4g}  {'; '.join(filter(None, texts))}"


def of_population(population: Population) -> Table:
    """Records of a population: all records of a user in a cell have its first mean."""
    counts = population.counts
    value = np.repeat(population.means[0], counts.count)
    who = np.repeat(counts.user, counts.count)
    cell = np.repeat(counts.cell, counts.count)
    rows = pa.table({"who": who, "cell": [f"{each:05}" for each in cell], "value": value})
    return Table(population.name, rows, population.bounds)


def _coverage(title: str, found: list[Found]) -> str:
    """Coverage of reliable cells, of which some are reliable in a quarter of the releases."""
    if not found:
        return ""
    covered = np.concatenate([each.covered for each in found], axis=1)
    reliable = np.concatenate([each.reliable for each in found], axis=1).astype(bool)
    often = reliable.mean(axis=0) >= 0.25
    if not often.any():
        return f"{title}: none reliable"
    of_cells = (covered & reliable).sum(axis=0)[often] / reliable.sum(axis=0)[often]
    return (
        f"{title} {reliable.mean():.0%} reliable, covered {of_cells.mean():.1%}, "
        f"worst tenth {worst_tenth(of_cells):.0%}"
    )
