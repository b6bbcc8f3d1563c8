"""A real experiment: who buys insurance, and what of the effect is left with private outcomes.

The households of Cai, de Janvry and Sadoulet (2015) are public data, so that releases can be
compared with what they hide. Noise is simulated: nothing here is private, no budget is spent.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree
from shoal_studies import drawing, trial_drawing
from shoal_studies import trial_lines as lines
from shoal_studies.drawing import Shown
from shoal_studies.measure import Effort, carry_out
from shoal_studies.study import Outcome, Row, Study, span
from shoal_studies.trial_insurance_releases import (
    CONFIDENCE,
    FLOOR,
    NULL,
    REAL,
    SPACE,
    Households,
    Releases,
    Task,
    carry,
    load,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPSILONS, _FEW_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 4.0)
_MOST, _SEEDS = 1000, 2**20
_POWER = 0.8
_HISTOGRAMS = (ClusterFree, ClusterDP)


def _run(effort: Effort) -> Outcome:
    drawing.check()
    both = load()
    epsilons = EPSILONS if effort.full else _FEW_EPSILONS
    each = min(effort.repetitions, _MOST)
    tasks = [
        Task(part, epsilon, each, (effort.seed * 2 + side) * _SEEDS)
        for (side, part), epsilon in product(enumerate(both), epsilons)
    ]
    done = effort.progress(carry_out(carry, tasks, min(effort.workers, len(tasks))), len(tasks))
    found = [releases for part in done for releases in part]
    return Outcome([_row(each) for each in found], _picture(found), _reading(found))


def _row(found: Releases) -> Row:
    home = found.households
    low, high = np.quantile(found.value, (0.05, 0.95))
    return {
        "treatment": home.name,
        "epsilon": found.epsilon,
        "mechanism": found.mechanism,
        "households": home.units.assignment.n,
        "villages": len(home.units.assignment.clusters),
        "villages_left_out": home.left_out,
        "non_private": round(home.plain.value, 6),
        "non_private_standard_error": round(home.plain.finite_population.standard_error, 6),
        "mean": round(float(found.value.mean()), 6),
        "estimate_5": round(float(low), 6),
        "estimate_95": round(float(high), 6),
        "rmse": round(found.rmse, 6),
        "standard_error": round(float(found.error.mean()), 6),
        "covers_non_private": round(found.covers(home.plain.value), 4),
        "told_from_0": round(found.told, 4),
        "covers_0_if_shuffled": round(found.valid, 4),
        "releases": len(found.value),
    }


def _picture(found: list[Releases]) -> Figure:
    figure, axes = drawing.canvas(
        "Buying insurance, with private outcomes (simulated noise: not private)", 3
    )
    real = [each for each in found if each.households.name == REAL]
    drawing.legend(figure, _estimates(axes[0], real))
    _errors(axes[1], real)
    _powers(axes[2], found)
    return figure


def _by_mechanism(found: list[Releases]) -> dict[str, list[Releases]]:
    return {
        name: [each for each in found if each.mechanism == name]
        for name in dict.fromkeys(each.mechanism for each in found)
    }


def _estimates(axis: Axes, found: list[Releases]) -> Shown:
    """Middle nine tenths of the estimates, beside the interval without privacy."""
    shown: Shown = {}
    plain = found[0].households.plain
    shown[lines.PLAIN] = axis.axhline(plain.value, color="#333333", linestyle=":")
    axis.axhspan(*plain.finite_population.interval, color="#333333", alpha=0.08)
    axis.axhline(0, color="#333333", linewidth=0.6)
    for at, (name, each) in enumerate(_by_mechanism(found).items()):
        epsilon = np.array([one.epsilon for one in each]) * 1.1 ** (at - 2)
        middle = np.array([one.value.mean() for one in each])
        low, high = np.array([np.quantile(one.value, (0.05, 0.95)) for one in each]).T
        colour, _, marker = trial_drawing.look(name)
        drawn = axis.errorbar(
            epsilon, middle, (middle - low, high - middle), color=colour, marker=marker,
            markersize=4, linestyle="none", elinewidth=1.4,
        )  # fmt: skip
        shown[name] = drawn.lines[0]
    _losses(axis, found)
    axis.set_ylabel("effect on the share who buy")
    axis.set_title(f"{REAL}: 90% of the estimates", fontsize=10)
    return shown


def _errors(axis: Axes, found: list[Releases]) -> None:
    """What privacy adds, beside the standard error without it."""
    plain = found[0].households.plain.finite_population
    axis.axhline(plain.standard_error, color="#333333", linestyle=":")
    for name, each in _by_mechanism(found).items():
        colour, style, marker = trial_drawing.look(name)
        axis.plot(
            [one.epsilon for one in each], [one.rmse for one in each], style, color=colour,
            marker=marker, markersize=4,
        )  # fmt: skip
    _losses(axis, found)
    axis.set(yscale="log", ylabel="root mean squared distance")
    drawing.plain_numbers(axis.yaxis)
    about = f"{REAL}: distance from the estimate without privacy\n(dotted: its standard error)"
    axis.set_title(about, fontsize=10)


def _powers(axis: Axes, found: list[Releases]) -> None:
    """How often an effect is distinguished from 0: the real one, and the null one thin."""
    for name, each in _by_mechanism(found).items():
        colour, style, marker = trial_drawing.look(name)
        for treatment, width in ((REAL, 1.6), (NULL, 0.6)):
            mine = [one for one in each if one.households.name == treatment]
            axis.plot(
                [one.epsilon for one in mine], [one.told for one in mine], style, color=colour,
                marker=marker, markersize=2.5 * width, linewidth=width,
            )  # fmt: skip
    _losses(axis, found)
    axis.set_ylabel("share of releases")
    axis.set_title(f"distinguished from 0: {REAL}, and {NULL} (thin)", fontsize=10)


def _losses(axis: Axes, found: list[Releases]) -> None:
    drawing.losses(axis, sorted({each.epsilon for each in found}))
    axis.set_xlabel("epsilon of one household's outcome")


def _reading(found: list[Releases]) -> str:
    real, null = ([each for each in found if each.households.name == name] for name in (REAL, NULL))
    return " ".join((_data(real[0].households), _data(null[0].households), _found(real, null)))


def _data(home: Households) -> str:
    plain = home.plain
    low, high = plain.finite_population.interval
    drop = f"; {home.left_out} villages where an arm has nobody are left out"
    return (
        f"{home.name}: {home.units.assignment.n:,} households in "
        f"{len(home.units.assignment.clusters)} villages{drop if home.left_out else ''}; without "
        f"privacy {plain.value:.3f}, {CONFIDENCE:.0%} interval {low:.3f} to {high:.3f}. It takes "
        f"households as assigned one by one; in {home.alike} of {home.hamlets} hamlets all have "
        "the same arm."
    )


def _found(real: list[Releases], null: list[Releases]) -> str:
    epsilon = np.unique([each.epsilon for each in real])
    every, told = [*real, *null], np.array([100 * each.told for each in null])
    valid = np.array([each.valid for each in every])
    wide = np.array([each.covers(each.households.plain.value) for each in every])
    count = len(real[0].value)
    return (
        f"{_distances(real)} Left to choose, cluster-free and Cluster-DP take the uniform prior at "
        f"{_same(real)} of {len(epsilon)} losses. {_powers_text(real)} {NULL} is detected in "
        f"{span(told, 1)}% of releases. With arms shuffled within villages, where the effect is 0, "
        f"intervals at {CONFIDENCE:.0%} cover 0 in {valid.min():.1%} to {valid.max():.1%}; those "
        f"of the real assignment hold the estimate without privacy in {wide.min():.1%} to "
        f"{wide.max():.1%}, as they also allow for the assignment. {count:,} simulated releases "
        f"for each figure; standard errors of shares up to {0.5 / count**0.5:.1%}."
    )


def _distances(found: list[Releases]) -> str:
    rmse = {
        name: np.array([one.rmse for one in each]) for name, each in _by_mechanism(found).items()
    }
    errs = ", ".join(f"{name} {each[0]:.3f} and {each[-1]:.3f}" for name, each in rmse.items())
    free, own = (span(rmse[name] / rmse[lines.UNIFORM]) for name in (lines.FREE, lines.CLUSTER))
    return (
        f"Root mean squared distance of releases from the estimate without privacy, {REAL}, at "
        f"epsilon {found[0].epsilon:g} and {found[-1].epsilon:g}: {errs}. With a floor of "
        f"{FLOOR:g} cluster-free has {free} times the error of the uniform prior, Cluster-DP {own} "
        "times."
    )


def _same(found: list[Releases]) -> int:
    """At how many losses both choose a uniform prior."""
    sizes = found[0].households.units.assignment.sizes
    return sum(
        all(kind(loss).choose(sizes, SPACE).parameters.weight == 0 for kind in _HISTOGRAMS)
        for loss in np.unique([each.epsilon for each in found]).tolist()
    )


def _powers_text(found: list[Releases]) -> str:
    parts = []
    for name, each in _by_mechanism(found).items():
        enough = [one.epsilon for one in each if one.told >= _POWER]
        parts.append(f"{name} {f'from epsilon {min(enough):g}' if enough else 'at none of these'}")
    return f"The effect of {REAL} is detected in {_POWER:.0%} of releases by {', '.join(parts)}."


STUDY = Study(
    "insurance",
    "A real experiment with private outcomes: who buys insurance",
    "our own, on the households of Cai, de Janvry and Sadoulet (2015), package causaldata",
    _run,
)
