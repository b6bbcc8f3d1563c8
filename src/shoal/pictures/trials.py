"""Draws pictures of trials: forecasts, effects, questions and their answers."""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from shoal.pictures import shapes
from shoal.pictures.shapes import GREY, MOST_NAMED
from shoal.privacy.budget import show
from shoal.release.plan import ANSWERING
from shoal.trials import Forecast, Release
from shoal.trials.forecasting import NAMES
from shoal.trials.questions.bounds import BoundsPlan
from shoal.trials.questions.plan import QuestionsPlan
from shoal.trials.questions.ratios import RatiosPlan
from shoal.trials.questions.sides import LIFT, SidesPlan

# The picture of a forecast has losses from an eighth to eight times the plan's.
_FACTORS = 2.0 ** np.arange(-3, 4)


def draw_plan(plan: Forecast) -> Figure:
    """Draws the standard error of the effect by the loss, with a curve for each mechanism."""
    epsilons = (plan.epsilon * _FACTORS).tolist()
    rows = plan.against(epsilon=[f"{epsilon:.6g}" for epsilon in epsilons]).to_pylist()
    title = f"{plan.n:,} units in {len(plan.sizes):,} clusters: what each mechanism would report"
    figure, (axis,) = shapes.new(title, (8.5, 4.6))
    for at, name in enumerate(NAMES):
        of_name = [row for row in rows if row["mechanism"] == name]
        losses = [row["epsilon"] for row in of_name]
        errors = [row["standard_error"] for row in of_name]
        style = ":" if name in ("no_privacy", "laplace_by_hand") else "-"
        shapes.curve(axis, losses, errors, name.replace("_", " "), at, style)
    axis.axvline(plan.epsilon, color=GREY, linewidth=0.8)
    shapes.logarithmic(axis, "x")
    shapes.logarithmic(axis, "y")
    axis.set(
        xlabel="epsilon of one outcome", ylabel="largest expected standard error of the effect"
    )
    shapes.legend(figure, axis, columns=3)
    return figure


def _effects(trial: Release, confidence: float, unit: str) -> Figure:
    """Draws the effect of every arm on all units, and in each cluster if there are several."""
    effects = trial.estimate(confidence)
    clusters = [str(name) for name in trial.plan.design.clusters.to_pylist()]
    names = ["all units", *(clusters if len(clusters) > 1 else [])]
    kind = "simulated, not private: " if trial.simulated else ""
    title = f"{kind}{trial.plan.mechanism.replace('_', ' ')}, epsilon {show(trial.epsilon)}"
    size = (1 + 4.6 * len(effects), 2.2 + 0.18 * min(len(names), MOST_NAMED))
    figure, axes = shapes.new(title, size, (1, len(effects)), sharey=True)
    for axis, effect in zip(axes, effects, strict=True):
        of_units = effect.finite_population
        of_clusters = effect.clusters
        # A cluster without a known error has no interval.
        quantile = NormalDist().inv_cdf((1 + of_units.confidence) / 2)
        half = quantile * np.nan_to_num(of_clusters.standard_error)
        lowest, highest = of_units.interval
        # If there is one cluster alone, it is cut off here.
        value = np.append(effect.value, of_clusters.value)[: len(names)]
        low = np.append(lowest, of_clusters.value - half)[: len(names)]
        high = np.append(highest, of_clusters.value + half)[: len(names)]
        shapes.intervals(axis, names, value, (low, high))
        axis.axvline(0, color=GREY, linewidth=0.8)
        arms = (shapes.plain_name(str(each)) for each in (effect.arm, effect.control))
        text = f"effect, in {unit} ({100 * of_units.confidence:.4g}%)"
        axis.set(title=" against ".join(arms), xlabel=text)
    return figure


def draw_widths(plan: QuestionsPlan | SidesPlan) -> Figure:
    """Draws half of each question's predicted 95% interval, with noise and without."""
    found = plan.predicted
    halves = {
        "with noise": [each.half_width for each in found],
        "without noise": [each.plain_half_width for each in found],
    }
    title = f"{plan.design.n:,} units, epsilon {show(plan.epsilon)}"
    label = "half of the predicted 95% interval, in the outcome's unit"
    return shapes.pairs(title, [each.question for each in found], label, halves)


def _answers(release: Release, confidence: float, unit: str) -> Figure:
    """Draws each answer with its interval; lifts, which have no unit, in a panel of their own."""
    found = list(release.estimate(confidence))
    kind = "simulated, not private: " if release.simulated else ""
    of = shapes.plain_name(release.said.records.outcome) or "answers"
    title = f"{kind}{of}, {release.plan.design.n:,} units, epsilon {show(release.epsilon)}"
    control = shapes.plain_name(str(release.plan.design.arm_names[0]))
    level = f"({100 * confidence:.4g}%); control arm: {control}"
    lifts = [each for each in found if each.statistic == LIFT]
    others = [each for each in found if each.statistic != LIFT]
    panels = {f"answer, in {unit} {level}": others}
    if lifts:
        panels[f"lift {level}"] = lifts
    height = 1.6 * len(panels) + 0.24 * min(len(found), MOST_NAMED)
    figure, axes = shapes.new(title, (8.5, height), (len(panels), 1))
    for axis, (label, answers) in zip(axes, panels.items(), strict=True):
        low, high = np.array([each.interval for each in answers], float).T
        value = np.array([each.value for each in answers])
        shapes.intervals(axis, [each.question for each in answers], value, (low, high))
        axis.set_xlabel(label)
        axis.axvline(0, color=GREY, linewidth=0.8)
    return figure


def draw_release(release: Release, confidence: float, label: str = "") -> Figure:
    """Draws effects, or answers to questions."""
    draw = _answers if release.plan.kind in ANSWERING else _effects
    return draw(release, confidence, shapes.plain_name(label) or "the outcome's unit")


RELEASED: dict[type, Callable[[Any, float, str], Figure]] = {Release: draw_release}
PLANNED: dict[type, Callable[[Any], Figure]] = {
    Forecast: draw_plan,
    QuestionsPlan: draw_widths,
    RatiosPlan: draw_widths,
    BoundsPlan: draw_widths,
}
