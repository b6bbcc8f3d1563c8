"""Pictures of questions of a trial: predicted widths beside those without noise, and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.pictures.names import drawn
from shoal.privacy.budget import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from shoal.trials.questions.plan_facts import QuestionsFacts
    from shoal.trials.questions.result import PrivateAnswers

_BLUE, _ORANGE, _GREY = "#1f6f8b", "#d1495b", "#8d99ae"
# More questions than that have no room for their names.
_MOST_NAMED = 60


def draw_widths(plan: QuestionsFacts) -> Figure:
    """Half of each predicted 95% interval, with noise and without, a row a question."""
    figure, axes, place = _rows([each.question for each in plan.predicted])
    for name, colour, size, widths in (
        ("with noise", _BLUE, 6, [each.half_width for each in plan.predicted]),
        ("without noise", _GREY, 4, [each.plain_half_width for each in plan.predicted]),
    ):
        axes.plot(widths, place, "o", color=colour, markersize=size, label=name)
    for at, each in zip(place.tolist(), plan.predicted, strict=True):
        axes.plot([each.plain_half_width, each.half_width], [at, at], color=_BLUE, linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlabel("half of the predicted 95% interval, in the outcome's unit")
    axes.legend(loc="best", frameon=False, fontsize=8)
    _titled(figure, f"{plan.columns.n:,} units, epsilon {show(plan.epsilon)}")
    return figure


def draw_answers(release: PrivateAnswers, confidence: float) -> Figure:
    """Each answer with its interval, a row a question.

    Args:
        release: As delivered.
        confidence: Of every interval on its own.
    """
    found = release.estimate(confidence)
    figure, axes, place = _rows([each.question for each in found])
    for at, each in zip(place.tolist(), found, strict=True):
        axes.plot(each.interval, [at, at], color=_ORANGE, linewidth=2.0, solid_capstyle="butt")
        axes.plot(each.value, at, "D", color=_ORANGE, markersize=4)
    axes.axvline(0, color=_GREY, linewidth=0.8)
    axes.set_xlabel(f"answer, in the outcome's unit ({100 * confidence:.4g}%)")
    kind = "simulated, not private: " if release.simulated else ""
    _titled(figure, f"{kind}{release.plan.columns.n:,} units, epsilon {show(release.epsilon)}")
    return figure


def _rows(names: list[str]) -> tuple[Figure, Axes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    from matplotlib.figure import Figure

    height = 1.6 + 0.24 * min(len(names), _MOST_NAMED)
    figure = Figure(figsize=(8.5, height), layout="constrained")
    axes, place = figure.subplots(), np.arange(len(names))
    if len(names) <= _MOST_NAMED:
        axes.set_yticks(place, [drawn(name) for name in names], fontsize=8)
    axes.invert_yaxis()
    return figure, axes, place


def _titled(figure: Figure, text: str) -> None:
    figure.suptitle(text, fontsize=11, x=0.01, ha="left")
