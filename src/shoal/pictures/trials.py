"""Pictures of trials: effects by cluster, and what each mechanism would report."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from shoal.pictures.names import drawn
from shoal.privacy.budget import show
from shoal.trials.mechanism_forecasts import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from shoal.trials.effects import Effect
    from shoal.trials.forecast import TrialPlan
    from shoal.trials.result import PrivateTrial

_BLUE, _ORANGE, _GREY = "#1f6f8b", "#d1495b", "#8d99ae"
# Lines that coincide stay visible: the later ones are thinner.
_LOOKS = {
    "no_privacy": ("#444444", ":", 1.2),
    "uniform_prior": ("#b8c0cc", "-", 5.0),
    "best_table": ("#6a4c93", "-", 3.6),
    "cluster_free": ("#e09f3e", "-", 2.6),
    "cluster_dp": ("#d1495b", "--", 1.2),
    "noisy_horvitz_thompson": ("#1f6f8b", "-", 1.4),
    "noisy_histogram": ("#2a9d8f", "--", 1.4),
    "questions": ("#111111", "-", 2.0),
    "laplace_by_hand": ("#c77dff", ":", 1.4),
}
# From an eighth to eight times the plan's loss.
_FACTORS = 2.0 ** np.arange(-3, 4)
_MOST_NAMED = 60


def draw_plan(plan: TrialPlan) -> Figure:
    """Standard error of the effect against the loss of one outcome, a line a mechanism."""
    from matplotlib.figure import Figure

    epsilons = (plan.epsilon * _FACTORS).tolist()
    table = plan.against(epsilon=[f"{epsilon:.6g}" for epsilon in epsilons]).to_pydict()
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    axes = figure.subplots()
    for name in NAMES:
        mine = [at for at, each in enumerate(table["mechanism"]) if each == name]
        colour, line, width = _LOOKS[name]
        axes.plot(
            [table["epsilon"][at] for at in mine],
            [table["standard_error"][at] for at in mine],
            color=colour,
            linestyle=line,
            linewidth=width,
            label=name.replace("_", " "),
        )
    axes.axvline(plan.epsilon, color=_GREY, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(epsilons, [f"{epsilon:.3g}" for epsilon in epsilons])
    axes.set_yscale("log")
    axes.set_xlabel("epsilon of one outcome")
    axes.set_ylabel("largest expected standard error of the effect")
    axes.set_title(
        f"{plan.n:,} units in {len(plan.sizes):,} clusters: what each mechanism would report",
        loc="left",
        fontsize=11,
    )
    figure.legend(loc="outside right center", frameon=False)
    return figure


def draw_effects(trial: PrivateTrial, confidence: float) -> Figure:
    """The effect of every arm: pooled, and cluster by cluster where there are several.

    Args:
        trial: As released.
        confidence: Of every interval.
    """
    from matplotlib.figure import Figure

    effects = trial.effects(confidence)
    rows = len(effects[0].clusters.value)
    figure = Figure(
        figsize=(1 + 4.6 * len(effects), 2.2 + 0.18 * min(rows, _MOST_NAMED)), layout="constrained"
    )
    panels = list(figure.subplots(1, len(effects), squeeze=False, sharey=True)[0])
    names = [str(name) for name in trial.assignment.clusters.to_pylist()]
    for axes, effect in zip(panels, effects, strict=True):
        _effect(axes, effect, names)
    kind = "simulated, not private: " if trial.simulated else ""
    figure.suptitle(
        f"{kind}{trial.mechanism.replace('_', ' ')}, epsilon {show(trial.epsilon)}",
        fontsize=11,
        x=0.01,
        ha="left",
    )
    return figure


def _effect(axes: Axes, effect: Effect, names: list[str]) -> None:
    clusters, here = effect.clusters, effect.finite_population
    place = np.arange(len(names)) + 1
    if len(names) > 1:
        normal = NormalDist().inv_cdf((1 + here.confidence) / 2)
        half = np.nan_to_num(normal * clusters.standard_error)
        axes.errorbar(
            clusters.value, place, xerr=half, fmt="o", markersize=3, color=_BLUE, linewidth=0.8
        )
    low, high = here.interval
    axes.plot([low, high], [0, 0], color=_ORANGE, linewidth=2.5, solid_capstyle="butt")
    axes.plot(effect.value, 0, "D", color=_ORANGE, markersize=5)
    axes.axvline(0, color=_GREY, linewidth=0.8)
    arms = drawn(str(effect.arm)), drawn(str(effect.control))
    axes.set_title(" against ".join(arms), loc="left", fontsize=10)
    axes.set_xlabel(f"effect, in the outcome's unit ({100 * here.confidence:.4g}%)")
    if len(names) <= _MOST_NAMED:
        axes.set_yticks([0, *place], ["all units", *map(drawn, names)], fontsize=7)
    axes.invert_yaxis()
