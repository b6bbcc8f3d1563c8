"""Paper 003, experiment 6 (figure 6): errors of one release that is used again and again.

The paper fixes each mechanism's randomness for a super-population five times as large and averages
over sub-populations and assignments: what is left, it calls the conditional bias. It says that
Cluster-DP's is lower than that of the mechanisms that release aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal_studies import drawing, trial_drawing
from shoal_studies import trial_lines as lines
from shoal_studies.drawing import plain_numbers
from shoal_studies.measure import Effort, carry_out
from shoal_studies.study import Outcome, Row, Study, short, verdict
from shoal_studies.trial_measure import DELTA, amounts
from shoal_studies.trial_setting import Mixture, Population
from shoal_studies.trial_simulation import (
    Draws,
    Mechanism,
    NoisyDifferences,
    NoisyHistograms,
    Randomised,
    assign,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Floats = NDArray[np.float64]

_LOSSES, _FEW = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0), (0.5, 2.0, 12.0)
# Realisations of each mechanism's randomness, as in the paper.
_RANDOM = 50
_SETTING = Mixture(4.5)


@dataclass(frozen=True)
class _Task:
    losses: tuple[float, ...]
    seed: int
    number: int


def mechanisms(epsilon: float, small: Population) -> dict[str, Mechanism]:
    """All mechanisms at a claimed (as printed) or true loss."""
    levels = small.levels
    part = float(np.abs(levels).max() / (levels[-1] - levels[0]))
    found: dict[str, Mechanism] = {
        lines.DIFFERENCES: NoisyDifferences(epsilon),
        lines.HISTOGRAMS: NoisyHistograms(epsilon),
        lines.DIFFERENCES + lines.PRINTED: NoisyDifferences(epsilon, part),
        lines.HISTOGRAMS + lines.PRINTED: NoisyHistograms(epsilon, printed=True),
        lines.OURS: Randomised(lines.chosen(small, epsilon, "auto")),
    }
    for name, printed in ((lines.CLUSTER, False), (lines.CLUSTER_PRINTED, True)):
        given = lines.calibrated(
            len(levels), epsilon, floor=lines.GAMMA, sigma=lines.SIGMA, printed=printed
        )
        if given is not None:
            found[name] = Randomised(given)
    return found


def conditional(
    mechanism: Mechanism, whole: Population, small: Population, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Biases given the mechanism's randomness, and errors by the mechanism in one release.

    Aggregates: both are the noise for a sub-population's sizes. Responses: randomness is drawn once
    for both potential outcomes of every unit of the super-population, with one prior for each
    cluster and arm; the mean over sub-populations and assignments is that of the super-population.
    """
    draws = assign(small, _RANDOM, random)
    single = mechanism.draw(draws, random)[0] - draws.effect
    if not isinstance(mechanism, Randomised):
        return single, single
    # Half of twice the units: each of them once in either arm.
    both = np.stack([whole.control, whole.treated], axis=1)
    twice = Population(whole.levels, 2 * whole.control, whole.shift)
    draws = Draws(twice, np.repeat(both[None], _RANDOM, axis=0))
    return mechanism.draw(draws, random)[0] - draws.effect, single


def _simulate(task: _Task) -> list[tuple[str, float, float, float, float]]:
    """Name, claimed and true loss, mean absolute bias and error of one super-population."""
    random = np.random.default_rng((task.seed, task.number))
    whole = _SETTING.super_population(random)
    small = whole.part(np.array(_SETTING.sizes), random)
    found = []
    for epsilon in task.losses:
        for name, mechanism in mechanisms(epsilon, small).items():
            bias, single = conditional(mechanism, whole, small, random)
            loss = mechanism.loss(DELTA)
            mean = float(np.abs(bias).mean()), float(np.abs(single).mean())
            found.append((name, epsilon, loss, *mean))
    return found


def _figure_6(effort: Effort) -> Outcome:
    drawing.check()
    losses = _LOSSES if effort.full else _FEW
    populations = amounts(effort)[0]
    tasks = [_Task(losses, effort.seed, number) for number in range(populations)]
    made = carry_out(_simulate, tasks, min(effort.workers, populations))
    every = list(effort.progress(made, len(tasks)))
    rows: list[Row] = []
    for at, (name, claimed, loss, _, _) in enumerate(every[0]):
        bias, single = (np.array([each[at][which] for each in every]) for which in (3, 4))
        rows.append(
            {
                "mechanism": name,
                "claimed_epsilon": claimed,
                "true_epsilon": round(loss, 6),
                "bias": short(bias.mean()),
                "deviation_between_populations": short(bias.std()),
                "error_of_one_release": short(single.mean()),
                "populations": populations,
            }
        )
    return Outcome(rows, _draw(rows), _reading(rows, losses))


def _curve(rows: list[Row], name: str, column: str) -> tuple[Floats, Floats]:
    these = [row for row in rows if row["mechanism"] == name]
    return (
        np.array([float(row["claimed_epsilon"]) for row in these]),
        np.array([float(row[column]) for row in these]),
    )


def _draw(rows: list[Row]) -> Figure:
    figure, axes = drawing.canvas("Paper 003, figure 6: errors given the randomness", 2)
    titles = {
        "bias": "bias over sub-populations, the paper's design",
        "error_of_one_release": "what the mechanism adds in one release",
    }
    shown: drawing.Shown = {}
    for axis, (column, title) in zip(axes, titles.items(), strict=True):
        for name in dict.fromkeys(str(row["mechanism"]) for row in rows):
            colour, style, marker = trial_drawing.look(name)
            [shown[name]] = axis.plot(
                *_curve(rows, name, column), style, color=colour, marker=marker, markersize=4
            )
        axis.set(yscale="log", xlabel="epsilon (as printed: claimed)")
        axis.set_title(title, fontsize=10)
        drawing.losses(axis, sorted({float(row["claimed_epsilon"]) for row in rows}))
        plain_numbers(axis.yaxis)
    axes[0].set_ylabel("mean absolute error")
    drawing.legend(figure, shown)
    return figure


def _lower(rows: list[Row], losses: tuple[float, ...], name: str, other: str, column: str) -> str:
    """Losses at which one mechanism has the smaller number."""
    mine, theirs = (dict(zip(*_curve(rows, each, column), strict=True)) for each in (name, other))
    these = [at for at in losses if mine.get(at, np.inf) < theirs[at]]
    return ", ".join(f"{each:g}" for each in these) or "none"


def _reading(rows: list[Row], losses: tuple[float, ...]) -> str:
    named = f"epsilon {', '.join(f'{each:g}' for each in losses)}"
    printed = {
        other: _lower(rows, losses, lines.CLUSTER_PRINTED, other + lines.PRINTED, "bias")
        for other in (lines.DIFFERENCES, lines.HISTOGRAMS)
    }
    true, single = (
        {
            other: _lower(rows, losses, lines.CLUSTER, other, column)
            for other in (lines.DIFFERENCES, lines.HISTOGRAMS)
        }
        for column in ("bias", "error_of_one_release")
    )
    holds = set(printed.values()) == {", ".join(f"{each:g}" for each in losses)}
    middle = 2.0
    numbers = ", ".join(
        f"{_at(rows, name, middle, 'bias'):.2g} ({name})"
        for name in (lines.CLUSTER, lines.OURS, lines.DIFFERENCES, lines.HISTOGRAMS)
    )
    true_losses = ", ".join(
        f"{name}{lines.PRINTED} {_at(rows, name + lines.PRINTED, middle, 'true_epsilon'):.2f}"
        for name in (lines.CLUSTER, lines.DIFFERENCES, lines.HISTOGRAMS)
    )
    return (
        f"Of {named}, all as printed, Cluster-DP (gamma {lines.GAMMA:g}, sigma {lines.SIGMA:g}) "
        "has the lower conditional bias than noisy Horvitz-Thompson at "
        f"{printed[lines.DIFFERENCES]} and than the noisy histogram at "
        f"{printed[lines.HISTOGRAMS]}: lower at every loss is {verdict(holds)}. At the true loss "
        f"it has at {true[lines.DIFFERENCES]} and {true[lines.HISTOGRAMS]}; at {middle:g} the "
        f"biases are {numbers}. The design is kind to "
        "Cluster-DP: its responses are drawn for a super-population five times as large, the noise "
        "on aggregates for one sub-population. What each adds in one release is lower for "
        f"Cluster-DP at {single[lines.DIFFERENCES]} and {single[lines.HISTOGRAMS]}. At a claimed "
        f"{middle:g} the true losses are: {true_losses} (errata 12, 14 and 15). Every mechanism is "
        f"unbiased over its own randomness. {rows[0]['populations']} super-populations, "
        f"{_RANDOM} realisations each."
    )


def _at(rows: list[Row], name: str, epsilon: float, column: str) -> float:
    at, found = _curve(rows, name, column)
    return float(found[np.flatnonzero(at == epsilon)[0]])


FIGURE_6 = Study(
    "003-figure-6",
    "Bias given a mechanism's randomness, against noisy aggregates",
    "paper 003, appendix A.8, experiment 6, figure 6",
    _figure_6,
)
