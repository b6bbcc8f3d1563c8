"""What intervals, errors and reliable cells must reach on typical, unlike and few cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite, nan
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from shoal.cells.shown.plan_warnings import few_cell_warnings, frequent_user_warnings
from shoal.errors import InputError
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

# Of the releases, those with a cell whose coverage counts; of the cells, those ever reliable.
_OFTEN = 0.25
_SOME = 0.03
# Figures of one population at one loss, in the value's unit; nan of reliable cells without any.
# Coverage of reliable cells is over those that are in many releases; the worst tenth are the cells
# that are covered least.
Setting: TypeAlias = dict[str, Any]
# Headings of the figures, and how they are written.
_COLUMNS = {
    "name": ("population", "<42", ""), "epsilon": ("eps", ">4", "g"), "users": ("users", ">7", ""),
    "cells": ("cells", ">6", ""), "covered": ("covered", ">8", ".0%"),
    "worst_tenth": ("tenth", ">6", ".0%"), "worst_cell": ("worst", ">6", ".0%"),
    "reliable": ("reliable", ">9", ".0%"), "reliable_covered": ("covered", ">8", ".0%"),
    "reliable_worst_tenth": ("tenth", ">6", ".0%"), "error": ("error", ">9", ".3g"),
    "half_width": ("+-", ">9", ".3g"), "common": ("common", ">9", ".3g"),
    "outside": ("outside", ">8", ""),
}  # fmt: skip


class Bar(NamedTuple):
    """What a figure of some settings must reach, or must not exceed."""

    text: str
    figure: str
    reach: float
    concerns: Callable[[Setting], bool]
    at_most: bool = False

    def failure(self, setting: Setting) -> str | None:
        """The figure that does not reach it, or None."""
        if not self.concerns(setting):
            return None
        figure = float(setting[self.figure])
        if figure <= self.reach if self.at_most else figure >= self.reach:
            return None
        return f"{setting['name']} at {setting['epsilon']:g}: {figure:.3g}"


def _at_one(each: Setting) -> bool:
    return bool(each["group"] != "few" and each["epsilon"] == 1)


def _tells(each: Setting) -> bool:
    return (
        each["group"] != "few" and each["reliable"] > _SOME and isfinite(each["reliable_covered"])
    )


def _named(*names: str) -> Callable[[Setting], bool]:
    return lambda each: each["epsilon"] == 1 and each["name"] in names


def _all_at_one(each: Setting) -> bool:
    return _at_one(each) and each["name"] != _HALF


_DESTINATION = "flights by destination"
# No interval holds where one user owns half of every cell, and none of them is reliable.
_HALF = "one user half, unlike"
BARS = (
    Bar(
        "reliable cells at epsilon 1 are covered", "reliable_covered", 0.94,
        lambda each: _tells(each) and _at_one(each),
    ),
    Bar("the worst tenth of reliable cells is covered", "reliable_worst_tenth", 0.85, _tells),
    Bar(f"all cells at epsilon 1 are covered, but of {_HALF!r}", "covered", 0.94, _all_at_one),
    Bar("the worst tenth of all these cells is covered", "worst_tenth", 0.85, _all_at_one),
    Bar(
        "the worst of 12 to 25 cells at epsilon 1 is covered", "worst_cell", 0.90,
        lambda each: each["group"] == "few" and each["epsilon"] == 1,
    ),
    Bar(f"error of reliable {_DESTINATION}", "error", 14.5, _named(_DESTINATION), at_most=True),
    Bar(
        f"worst tenth of reliable {_DESTINATION}", "reliable_worst_tenth", 0.88,
        _named(_DESTINATION),
    ),
    Bar("values are inside their intervals", "outside", 0, lambda _: True, at_most=True),
    Bar(
        "few users make nothing reliable at epsilon 1", "reliable", 0.01,
        _named(
            _HALF, "one user half, alike",
            "unlike: nested hexagons, 200 users", "unlike: sorted kinds, 150 users",
        ),
        at_most=True,
    ),
    Bar(
        "cells that do not differ are not reliable at epsilon 1", "reliable", 0.08,
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
) -> Iterator[str]:
    """Cover, err and tell cells on 61 populations, and say which bars do not hold.

    Example: shoal bench honest --epsilon 1
    """
    settings: list[Setting] = []
    yield (
        f"{releases} simulated releases a figure; covered: 95% intervals, in the mean, the worst "
        "tenth and the worst cell; reliable: cells that are, and the same of those that are in a "
        "quarter of the releases or more; error, half width, error of one common number: of "
        "reliable cells; !: a bar does not hold"
    )
    yield "".join(f"{head:{width}}" for head, width, _ in _COLUMNS.values())
    for group, source in (("typical", populations), ("unlike", unlike), ("few", few)):
        for population in source():
            for loss in epsilon if only in population.name else ():
                found = _measured(population, loss, releases, delta)
                settings.append({"group": group, **found})
                failed = any(bar.failure(settings[-1]) for bar in BARS)
                yield _line(found) + " !" * failed
    if not settings:
        raise InputError(f"no population with {only!r}", "a part of a name", "leave it out")
    for bar in BARS:
        below = [failure for each in settings if (failure := bar.failure(each))]
        verdict = f"does not hold: {'; '.join(below)}" if below else "holds"
        concerned = any(map(bar.concerns, settings))
        yield f"{bar.text}: {bar.reach:.3g}: {verdict if concerned else 'not measured'}"


# Cells, most cells of a user, users, and the share of the users who differ: the most frequent ones
# in many cells, any in few.
_WARNED = (
    (40, 6, (600, 1200, 2400, 6000), 0.05, True),
    (1, 1, (400, 1000, 2000, 4000), 0.05, False),
    (1, 1, (400, 1000, 2000, 4000), 0.1, False),
    (3, 2, (400, 800, 2000, 4000), 0.05, False),
    (6, 3, (400, 800, 2000, 4000), 0.1, False),
)
# How far these users are from the others, in widths of the bounds.
_AWAY = (0.0, 0.25, 0.5)


@bench("warned")
def warned(
    releases: Annotated[int, option("Simulated releases of each.", 2, 10**7)] = 60,
) -> Iterator[str]:
    """Cover reliable cells, or all of few cells, where users are far: plans warn of some of this.

    Example: shoal bench warned
    """
    yield f"epsilon 1, {releases} releases a figure: 95% intervals that cover, by how far users are"
    yield (
        f"{'cells':>6}{'users':>7}" + "".join(f"{each:>8g}" for each in _AWAY) + "  the plan warns"
    )
    for cells, most, sizes, share, frequent in _WARNED:
        for users in sizes:
            found = []
            warns = False
            for away in _AWAY:
                population = _far(users, cells, most, share, away, frequent=frequent)
                plan = default_plan(population, 1.0, "0")
                warnings = frequent_user_warnings if frequent else few_cell_warnings
                warns = bool([*warnings(plan)])
                figures = releases_of(plan, population, releases)
                counts = figures.reliable if frequent else np.ones_like(figures.reliable)
                found.append(figures.covered[counts].mean() if counts.any() else nan)
            line = "".join(f"{each:>8.0%}" for each in found).replace("nan%", "   -")
            yield f"{cells:>6}{users:>7}{share:>6.0%}{line}  {'yes' if warns else 'no'}"


def _far(
    users: int, cells: int, most: int, share: float, away: float, *, frequent: bool
) -> Population:
    """Users of whom some are away from all others by a part of the bounds."""
    members = memberships([76, users], users, cells, most)
    rng = np.random.default_rng([77, users])
    records = np.bincount(members.user, members.records)
    rank = records if frequent else rng.random(users)
    is_far = rank >= np.quantile(rank, 1 - share)
    # Frequent users have half of the records, whatever chance gave them.
    count = members.records * np.where(frequent & is_far[members.user], 3, 1)
    center = rng.normal(20, 2, cells)[members.cell] + rng.normal(0, 2, users)[members.user]
    means = [center + rng.normal(0, 1, len(center)) + 65 * away * is_far[members.user]]
    return made("far users", members._replace(records=count), means)


def _line(found: Setting) -> str:
    line = "".join(f"{found[key]:{width}{form}}" for key, (_, width, form) in _COLUMNS.items())
    return line.replace("nan%", "   -").replace(" nan", "   -")


def _measured(population: Population, epsilon: float, releases: int, delta: str) -> Setting:
    found = releases_of(default_plan(population, epsilon, delta), population, releases)
    times = found.reliable.sum(axis=0)
    covered = found.covered.mean(axis=0)
    often = times >= _OFTEN * releases
    of_reliable = (found.covered & found.reliable).sum(axis=0)[often] / times[often]
    return {
        "name": population.name,
        "epsilon": epsilon,
        "users": population.counts.n_users,
        "cells": population.counts.n_cells,
        "covered": covered.mean(),
        "worst_tenth": worst_tenth(covered),
        "worst_cell": covered.min(),
        "reliable": found.reliable.mean(),
        "reliable_covered": of_reliable.mean() if often.any() else nan,
        "reliable_worst_tenth": worst_tenth(of_reliable),
        "error": found.of_reliable(found.error),
        "half_width": found.of_reliable(found.half_width),
        "common": found.of_reliable(found.common),
        "outside": found.outside.sum(),
    }


def worst_tenth(covered: Floats) -> float:
    """Mean coverage of the tenth of the cells that are covered least."""
    return float(np.sort(covered)[: max(1, len(covered) // 10)].mean()) if len(covered) else nan
