"""What intervals, errors and told cells must reach on typical, unlike and few cells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, isfinite, log
from pathlib import Path
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.told import intervals, statuses
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal_studies.bench_cells import EPSILONS, default_plan, releases_of
from shoal_studies.populations import (
    Floats,
    Population,
    few,
    made,
    memberships,
    populations,
    unlike,
)
from shoal_studies.registry import Losses, bench, option

# Of the releases, those that tell a cell whose coverage counts; of the cells, those told at all.
_OFTEN, _SOME = 0.25, 0.03
# Cells, and the part of them that is told, where a single setting must not err more than before.
_MANY_CELLS, _MANY_TOLD, _MEAN_RATIO, _LARGEST_RATIO = 20, 0.2, 1.03, 1.10
_TIMED_CELLS, _SECONDS, _TURNS = 1000, 0.1, 3


@dataclass(frozen=True)
class Setting:
    """Figures of one population at one loss, in the value's unit; nan of told cells without any.

    Coverage of told cells is over those that many releases tell; the worst tenth are the cells that
    are covered least. The lists have a number for each cell.
    """

    name: str
    group: str
    epsilon: float
    users: int
    cells: int
    covered: float
    worst_tenth: float
    worst_cell: float
    told: float
    told_covered: float
    told_worst_tenth: float
    error: float
    half_width: float
    common: float
    outside: int
    times_told: list[int]
    cell_errors: list[float]
    cell_half_widths: list[float]

    @property
    def key(self) -> tuple[str, float]:
        """Name and loss."""
        return self.name, self.epsilon


class Bar(NamedTuple):
    """What a figure of some settings must reach, or must not exceed; with known exceptions."""

    text: str
    figure: str
    reach: float
    concerns: Callable[[Setting], bool]
    exceptions: Mapping[tuple[str, float], float] = {}
    at_most: bool = False

    def failure(self, setting: Setting) -> str | None:
        """The figure that does not reach it, or None."""
        if not self.concerns(setting):
            return None
        figure = float(getattr(setting, self.figure))
        reach = self.exceptions.get(setting.key, self.reach)
        if figure <= reach if self.at_most else figure >= reach:
            return None
        return f"{setting.name} at {setting.epsilon:g}: {_short(figure)} for {_short(reach)}"


def _large(setting: Setting) -> bool:
    return setting.group != "few"


def _at_one(setting: Setting) -> bool:
    return _large(setting) and setting.epsilon == 1


def _tells(setting: Setting) -> bool:
    return _large(setting) and setting.told > _SOME and isfinite(setting.told_covered)


def _named(*names: str) -> Callable[[Setting], bool]:
    return lambda setting: setting.epsilon == 1 and setting.name in names


_DESTINATION = "flights by destination"
_UNLIKE_HALF = "one user half, unlike", 1.0
BARS = (
    Bar(
        "told cells at epsilon 1 are covered", "told_covered", 0.94,
        lambda each: _tells(each) and each.epsilon == 1,
    ),
    Bar(
        "the worst tenth of told cells is covered", "told_worst_tenth", 0.85, _tells, {
            (f"{_DESTINATION} and hour", 1.0): 0.82, (_DESTINATION, 4.0): 0.83,
            ("many zeros", 4.0): 0.76, ("unlike: heavy different", 0.5): 0.65,
        },
    ),
    Bar("all cells at epsilon 1 are covered", "covered", 0.94, _at_one, {_UNLIKE_HALF: 0.0}),
    Bar(
        "the worst tenth of all cells at epsilon 1 is covered", "worst_tenth", 0.85, _at_one,
        {_UNLIKE_HALF: 0.0, ("heavy tails", 1.0): 0.82},
    ),
    Bar(
        "the worst of 12 to 25 cells at epsilon 1 is covered", "worst_cell", 0.90,
        lambda each: each.group == "few" and each.epsilon == 1,
    ),
    Bar(f"error of told {_DESTINATION}", "error", 14.5, _named(_DESTINATION), at_most=True),
    Bar(f"worst tenth of told {_DESTINATION}", "told_worst_tenth", 0.88, _named(_DESTINATION)),
    Bar("values are inside their intervals", "outside", 0, lambda _: True, at_most=True),
    Bar(
        "few users tell nothing at epsilon 1", "told", 0.01,
        _named(
            "one user half, unlike", "one user half, alike",
            "unlike: nested hexagons, 200 users", "unlike: sorted kinds, 150 users",
        ),
        at_most=True,
    ),
    Bar(
        "cells that do not differ are not told at epsilon 1", "told", 0.08,
        _named(
            "two kinds of users", "all at a bound",
            "users at either bound", "records at either bound",
        ),
        at_most=True,
    ),
)  # fmt: skip


@bench("honest")
def honest(
    releases: Annotated[int, option("Simulated releases of each.", 2, 10**7)] = 100,
    epsilon: Losses = EPSILONS,
    only: Annotated[str, option("A part of the name of the populations to take.")] = "",
    delta: Annotated[str, option("Of (epsilon, delta)-DP.")] = "0",
    output: Annotated[Path | None, option("Write all figures as JSON, for --against.")] = None,
    against: Annotated[
        Path | None, option("What --output wrote at another commit: ratios to its errors.")
    ] = None,
) -> Iterator[str]:
    """Cover, err and tell cells on 61 populations, and say which bars do not hold.

    Example: shoal bench honest --epsilon 1
    """
    before = _read(against) if against else {}
    settings: list[Setting] = []
    yield (
        f"{releases} simulated releases a figure; covered: 95% intervals, in the mean, the worst "
        "tenth and the worst cell; told: cells that are told, and the same of those told in a "
        "quarter of the releases or more; error, half width, error of one common number: of told "
        "cells; !: a bar does not hold"
    )
    yield (
        f"{'population':<42}{'eps':>4}{'users':>7}{'cells':>6}{'covered':>16}{'told':>6}"
        f"{'covered':>11}{'error':>9}{'+-':>9}{'common':>9}{'outside':>8}"
        + (f"{'ratios':>14}" if before else "")
    )
    for group, population in _populations(only):
        for loss in epsilon:
            settings.append(_measured(population, group, loss, releases, delta))
            yield _line(settings[-1], before)
    if not settings:
        raise InputError(f"no population with {only!r}", "a part of a name", "leave it out")
    if output:
        output.write_text(json.dumps([asdict(each) for each in settings]), encoding="utf-8")
    for bar in BARS:
        concerned = sum(map(bar.concerns, settings))
        below = [failure for each in settings if (failure := bar.failure(each))]
        yield _judged(f"{bar.text}: {_short(bar.reach)}", concerned, below)
    yield from _errors_against(settings, before)
    taken = _seconds(delta)
    yield _judged(
        f"statuses and intervals of {_TIMED_CELLS:,} cells take {taken:.3f} s: {_SECONDS:g}", 1,
        [] if taken < _SECONDS else ["they take longer"],
    )  # fmt: skip


def _populations(only: str) -> Iterator[tuple[str, Population]]:
    for group, source in (("typical", populations), ("unlike", unlike), ("few", few)):
        for each in source():
            if only in each.name:
                yield group, each


def _measured(
    population: Population, group: str, epsilon: float, releases: int, delta: str
) -> Setting:
    plan = default_plan(population, epsilon, delta)
    found = releases_of(plan, population, releases)
    times = found.told.sum(axis=0)
    often = times >= _OFTEN * releases
    covered = found.covered.mean(axis=0)
    told_covered = (found.covered & found.told).sum(axis=0)[often] / times[often]
    return Setting(
        population.name,
        group,
        epsilon,
        population.occupancy.n_users,
        population.occupancy.n_cells,
        float(covered.mean()),
        _worst_tenth(covered),
        float(covered.min()),
        float(found.told.sum() / releases / population.occupancy.n_cells),
        float(told_covered.mean()) if often.any() else float("nan"),
        _worst_tenth(told_covered),
        found.of_told(found.error),
        found.of_told(found.half_width),
        found.of_told(found.common),
        int(found.outside.sum()),
        times.tolist(),
        found.error.mean(axis=0).tolist(),
        found.half_width.mean(axis=0).tolist(),
    )


def _worst_tenth(covered: Floats) -> float:
    """Mean coverage of the tenth of the cells that are covered least."""
    return float(np.sort(covered)[: max(1, len(covered) // 10)].mean()) if len(covered) else np.nan


def _line(setting: Setting, before: Mapping[tuple[str, float], Setting]) -> str:
    ratios = _ratios(setting, before)
    return (
        f"{setting.name:<42}{setting.epsilon:>4g}{setting.users:>7}{setting.cells:>6}"
        f"{setting.covered:>6.0%}{setting.worst_tenth:>5.0%}{setting.worst_cell:>5.0%}"
        f"{setting.told:>6.0%}{_part(setting.told_covered):>6}{_part(setting.told_worst_tenth):>5}"
        f"{_short(setting.error):>9}{_short(setting.half_width):>9}{_short(setting.common):>9}"
        f"{setting.outside:>8}"
        + (f"{ratios[0]:>7.2f}{ratios[1]:>7.2f}" if ratios else " " * 14 * bool(before))
        + (" !" if any(bar.failure(setting) for bar in BARS) else "")
    )


def _part(share: float) -> str:
    return f"{share:.0%}" if isfinite(share) else "-"


def _short(figure: float) -> str:
    return f"{figure:.3g}" if isfinite(figure) else "-"


def _judged(text: str, concerned: int, below: Sequence[str]) -> str:
    if not concerned:
        return f"{text}: not measured"
    return f"{text}: " + (f"does not hold: {'; '.join(below)}" if below else "holds")


def _ratios(
    setting: Setting, before: Mapping[tuple[str, float], Setting]
) -> tuple[float, float] | None:
    """Error and half width of told cells over those of the same cells in another run."""
    other = before.get(setting.key)
    if other is None or setting.told <= _SOME or len(other.times_told) != len(setting.times_told):
        return None
    error = np.average(other.cell_errors, weights=setting.times_told)
    half_width = np.average(other.cell_half_widths, weights=setting.times_told)
    # Where all values are at a bound nothing errs.
    if min(error, setting.error) <= 0:
        return None
    return setting.error / float(error), setting.half_width / float(half_width)


def _errors_against(
    settings: Sequence[Setting], before: Mapping[tuple[str, float], Setting]
) -> Iterator[str]:
    pairs = [(each, _ratios(each, before)) for each in settings if _large(each)]
    both = [(each, ratios) for each, ratios in pairs if ratios]
    for epsilon in sorted({each.epsilon for each, _ in both}):
        error, half_width = (
            exp(fmean(log(ratios[at]) for each, ratios in both if each.epsilon == epsilon))
            for at in (0, 1)
        )
        yield _judged(
            f"errors at {epsilon:g} over those of the other run, geometric mean {error:.3f} "
            f"(half widths {half_width:.2f}): {_MEAN_RATIO:g}",
            1, ["they are larger"] if error > _MEAN_RATIO else [],
        )  # fmt: skip
    large = [
        (each, ratios[0])
        for each, ratios in both
        if each.cells >= _MANY_CELLS and each.told >= _MANY_TOLD
    ]
    yield _judged(
        f"the largest such error of {_MANY_CELLS} cells or more: {_LARGEST_RATIO:g}", len(large),
        [f"{each.name} at {each.epsilon:g}: {x:.2f}" for each, x in large if x > _LARGEST_RATIO],
    )  # fmt: skip


def _read(place: Path) -> dict[tuple[str, float], Setting]:
    try:
        found = [Setting(**each) for each in json.loads(place.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{place.name}, which cannot be read", "a file that --output wrote", "see the path"
        ) from error
    return {each.key: each for each in found}


def _seconds(delta: str) -> float:
    """Of the statuses and intervals after a release of many cells: the least of a few."""
    members = memberships(1, 20_000, _TIMED_CELLS, 5)
    mean = np.random.default_rng(2).normal(30, 10, _TIMED_CELLS)[members.cell]
    population = made("many cells", *members, [mean])
    plan = default_plan(population, 1, delta)
    taken = []
    for turn in range(_TURNS):
        numbers = Estimates(plan, *draw(plan, population.draw(0), Simulated(turn)))
        # The numbers themselves are worked out once, when they are first asked for.
        numbers.unclamped.sum()
        began = time.perf_counter()
        statuses(numbers)
        intervals(numbers, 0.95)
        taken.append(time.perf_counter() - began)
    return min(taken)
