"""Pictures of occupancies and plans, for people who look before they spend."""

from __future__ import annotations

import importlib
import io
import math
import os
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import checks, files
from shoal.cells.frontier.frontier import Frontier
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.release import Release
from shoal.cells.simulation.compare import Comparison
from shoal.cells.statistics.mean import Mean
from shoal.cells.typical_error import CELLS, SPREAD, typical_errors
from shoal.data.occupancy import Occupancy
from shoal.errors import InputError, MissingPartError, ShoalWarning, raise_alone
from shoal.files import outputs
from shoal.files.own import MARK
from shoal.pictures import cells, frontier, questions, trials
from shoal.pictures.names import drawn
from shoal.privacy.budget import show
from shoal.release.manifest import CONFIDENCE
from shoal.trials.forecast import TrialPlan
from shoal.trials.questions.plan_facts import QuestionsFacts
from shoal.trials.questions.result import PrivateAnswers
from shoal.trials.result import PrivateTrial

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from shoal.cells.plan import Plan

_MAKER = {"png": "Software", "svg": "Creator", "pdf": "Creator"}
_ENDINGS = tuple(f".{kind}" for kind in _MAKER)
_COLOURS = ("#1f6f8b", "#7a5195", "#2a9d8f", "#8d99ae")
_BLUE, _ORANGE, _GREY = "#1f6f8b", "#d1495b", "#8d99ae"
_BOXES = "letters that the picture's font has not are drawn as boxes"
# More cells than that have no room for their names.
_NAMED = 40


def picture(
    subject: Occupancy
    | PlanFacts
    | Release
    | Comparison
    | Frontier[Plan]
    | TrialPlan
    | PrivateTrial
    | QuestionsFacts
    | PrivateAnswers,
    path: str | os.PathLike[str],
    *,
    confidence: float | None = None,
    overwrite: bool = False,
) -> None:
    """Draw public facts: contribution counts, errors of a plan, methods compared, or a release.

    Args:
        subject: An occupancy, a plan, a release of cells, a comparison of mechanisms, a frontier of
            plans, a trial's plan, a released trial, a plan of questions, or their answers.
        path: Where to; the ending chooses PNG, SVG or PDF.
        confidence: Of the intervals of released cells, a released trial or answers; 0.95 unless
            given. Nothing else has any.
        overwrite: Replace a file that is there.

    Raises:
        InputError: Another subject or ending, or an unusable confidence.
        DocumentError: There is a file already, or the place cannot be written.
        MissingPartError: Matplotlib is not installed.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile, shoal
        >>> counts = shoal.Occupancy.from_counts(["a", "b"], [1, 1], [2, 5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     picture(counts, f"{folder}/counts.svg")
    """
    path = check_picture(path)
    released = isinstance(subject, Release | PrivateTrial | PrivateAnswers)
    if confidence is not None and not released:
        raise InputError(
            f"a confidence with a subject of type {type(subject).__name__}",
            "one with what was released, whose picture has intervals",
            "leave it out",
        )
    inputs = subject.inputs if isinstance(subject, Release | PrivateTrial | PrivateAnswers) else {}
    outputs.keep_inputs(path, {"records": _origin(subject), **inputs})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        image = _image(subject, CONFIDENCE if confidence is None else confidence, path)
    if any("missing from font" in str(each.message) for each in told):
        warnings.warn(_BOXES, ShoalWarning, stacklevel=2)
    files.write_bytes(path, image, overwrite=overwrite)


def _image(subject: object, confidence: float, path: str) -> bytes:
    """The picture, drawn with the fonts of a user's own settings, but never by LaTeX."""
    from matplotlib import rc_context

    image, kind = io.BytesIO(), Path(path).suffix[1:].lower()
    with rc_context({"text.usetex": False, "text.parse_math": True}):
        figure = _figure(subject, confidence)
        # By its mark an output is told from other pictures, which are never replaced.
        figure.savefig(image, dpi=150, format=kind, metadata={_MAKER[kind]: MARK.decode()})
    return image.getvalue()


def _figure(subject: object, confidence: float) -> Figure:
    known: list[tuple[type, Callable[[Any], Figure]]] = [
        (Occupancy, _occupancy),
        (PlanFacts, _plan),
        (Comparison, _comparison),
        (Frontier, frontier.draw),
        (TrialPlan, trials.draw_plan),
        (QuestionsFacts, questions.draw_widths),
        (Release, partial(cells.draw_release, confidence=confidence)),
        (PrivateTrial, partial(trials.draw_effects, confidence=confidence)),
        (PrivateAnswers, partial(questions.draw_answers, confidence=confidence)),
    ]
    for kind, draw in known:
        if isinstance(subject, kind):
            return draw(subject)
    raise InputError(
        f"a subject of type {type(subject).__name__}",
        "an occupancy, a plan, a release, a comparison, a frontier, a trial, or questions",
        "give one",
    )


def _origin(subject: object) -> str | None:
    """The file that was counted for it, as far as it knows."""
    if isinstance(subject, Frontier):
        subject = next((each.plan for each in subject.points), None)
    if isinstance(subject, Comparison):
        subject = next((row.plan for row in subject.simulation.rows), None)
    occupancy = subject.occupancy if isinstance(subject, PlanFacts) else subject
    return occupancy.origin if isinstance(occupancy, Occupancy) else None


def check_picture(path: str | os.PathLike[str]) -> str:
    """Refuse a picture before the work that it takes, not after it.

    Args:
        path: Where a picture is to go.

    Raises:
        InputError: Another ending, or no such folder.
        MissingPartError: Matplotlib is not installed.
    """
    path = checks.path(path)
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InputError(
            f"a picture named {checks.shown(path, 300)}",
            f"a name that ends in {', '.join(_ENDINGS)}",
            "choose one of these",
        )
    if not os.path.isdir(Path(path).parent):
        raise InputError(
            f"a picture in {checks.shown(str(Path(path).parent), 300)}, which cannot be written",
            "a folder that is there",
            "make it, or choose another",
        )
    check_matplotlib()
    return path


def check_matplotlib() -> None:
    """Refuse a Matplotlib that is not there, or that fails as it is imported.

    Raises:
        MissingPartError: It cannot draw.
    """
    try:
        importlib.import_module("matplotlib.figure")
    except Exception as error:
        there = find_spec("matplotlib") is not None
        got = f"importing it fails with {type(error).__name__}" if there else "it is not installed"
        raise_alone(
            MissingPartError(
                f"no pictures without matplotlib: {got}",
                "a matplotlib that can be imported",
                'run pip install "shoal[pictures]", or look at its settings',
            )
        )


def _new(title: str, columns: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, list(axes)


def _occupancy(occupancy: Occupancy) -> Figure:
    facts = occupancy.summary()
    figure, (counts, cells, users) = _new(
        f"{facts.users:,} users, {facts.cells:,} cells, {facts.records:,} records", 3
    )
    _ranked(counts, occupancy.count, "records of a user in a cell", "memberships, by size")
    _ranked(cells, occupancy.cells_per_user, "cells of a user", "users, by cells")
    _ranked(users, occupancy.users_per_cell, "users of a cell", "cells, by users")
    return figure


def _ranked(axis: Axes, values: np.ndarray, label: str, rank: str) -> None:
    ordered = np.sort(values)[::-1]
    axis.step(np.arange(1, len(ordered) + 1), ordered, where="mid", color=_BLUE)
    axis.set(yscale="log", xscale="log", xlabel=rank, ylabel=label)


def _plan(plan: PlanFacts) -> Figure:
    if not plan.certified:
        return _selecting(plan)
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: worst-case error of each cell"
    figure, (axis,) = _new(title, 1)
    figure.set_size_inches(7, 4)
    # Several statistics have several units: then errors are over their ranges.
    several = len(plan.statistics) > 1
    unit = plan.statistic_range if several else np.ones(len(plan.statistic_range))
    for at, statistic in enumerate(plan.statistics):
        rows = slice(at * len(plan.released), (at + 1) * len(plan.released))
        error, bound = (plan.worst_case_error / unit)[rows], (plan.lower_bound / unit)[rows]
        order, what = np.argsort(error), f"{statistic.name}: " if several else ""
        place, color = np.arange(1, len(order) + 1), _COLOURS[at % len(_COLOURS)]
        axis.plot(place, error[order], ".", color=color, label=f"{what}this plan")
        if not plan.gaussian:
            label = f"{what}no plan does better in this cell"
            axis.plot(place, bound[order], "_", color=color, alpha=0.5, label=label)
    guess = 1 / 2 if several else float(plan.statistic_range[0]) / 2
    axis.axhline(guess, color=_ORANGE, label="guessing the middle")
    name = plan.statistics[0].name
    label = "error over the range" if several else f"error of the {name}, in its unit"
    axis.set(yscale="log", xlabel="cells, best first", ylabel=label)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _selecting(plan: PlanFacts) -> Figure:
    if plan.statistics == (Mean(),):
        return _typical(plan)
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: noise of each cell"
    figure, (axis,) = _new(title, 1)
    figure.set_size_inches(7, 4)
    noise = np.sort(plan.relative_error)
    axis.plot(np.arange(1, len(noise) + 1), noise, ".", color=_BLUE, label="this plan")
    axis.axhline(1 / 2, color=_ORANGE, label="guessing the middle of the range")
    axis.set(yscale="log", xlabel="cells, best first", ylabel="mean noise over the selected range")
    axis.legend(frameon=False, fontsize=9)
    return figure


def _typical(plan: PlanFacts) -> Figure:
    """Errors to expect, each beside what one number for all cells would err."""
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: typical error of each cell"
    figure, (axis,) = _new(title, 1)
    figure.set_size_inches(7, 4)
    deviation = plan.width * SPREAD
    error = typical_errors(plan) * deviation
    order, place = np.argsort(error, kind="stable"), np.arange(1, len(error) + 1)
    axis.plot(place, error[order], ".", color=_BLUE, label="this plan")
    common = deviation * math.sqrt(2 * CELLS / math.pi)
    axis.axhline(common, color=_ORANGE, label="one number for all cells")
    axis.set(yscale="log", xlabel="cells, best first")
    axis.set_ylabel(
        f"mean absolute error, if the standard\ndeviation of the values is {deviation:.3g}"
    )
    if len(order) <= _NAMED:
        labels = plan.occupancy.labels
        names = [drawn(labels[int(plan.released[at])]) for at in order]
        axis.set_xticks(place, names, rotation=60, ha="right", fontsize=8)
    axis.legend(frameon=False, fontsize=9)
    return figure


def _comparison(found: Comparison) -> Figure:
    rows = sorted(found.table().to_pylist(), key=lambda row: -row["typical_error"])
    figure, (axis,) = _new(f"error of every method at epsilon {rows[0]['epsilon']:g}", 1)
    figure.set_size_inches(7.5, 0.5 * len(rows) + 1.6)
    place = np.arange(len(rows))
    sure = [at for at in place.tolist() if rows[at]["certified"]]
    expected = np.array([row["typical_error"] for row in rows])
    worst = np.array([row["worst_case_error"] or np.nan for row in rows])
    axis.hlines(sure, expected[sure], worst[sure], color=_GREY, linewidth=1)
    axis.plot(expected, place, "o", color=_BLUE, label="typical")
    axis.plot(worst[sure], sure, "D", color=_ORANGE, label="worst case, certified")
    axis.set_yticks(place, [row["method"].replace("_", " ") for row in rows])
    axis.set(xscale="log", xlabel="absolute error in the value's unit")
    axis.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure
