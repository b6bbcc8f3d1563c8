"""The picture of a public object: chosen by its kind, written by the ending of its name."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal import checks, files
from shoal.cells.frontier.frontier import Frontier
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.release import Release
from shoal.cells.simulation.compare import Comparison
from shoal.data.occupancy import Counts
from shoal.errors import InputError, MissingPartError, ShoalWarning
from shoal.pictures import cells, trials
from shoal.release.manifest import CONFIDENCE
from shoal.trials.forecast import TrialPlan
from shoal.trials.questions.plan_facts import QuestionsFacts
from shoal.trials.questions.result import PrivateAnswers
from shoal.trials.result import PrivateTrial

_ENDINGS = (".png", ".svg", ".pdf")
_RELEASED: dict[type, Callable[[Any, float], Any]] = {
    Release: cells.draw_release,
    PrivateTrial: trials.draw_effects,
    PrivateAnswers: trials.draw_answers,
}
_PLANNED: dict[type, Callable[[Any], Any]] = {
    Counts: cells.draw_occupancy,
    PlanFacts: cells.draw_plan,
    Comparison: cells.draw_comparison,
    Frontier: cells.draw_frontier,
    TrialPlan: trials.draw_plan,
    QuestionsFacts: trials.draw_widths,
}


def picture(
    subject: object,
    path: str | os.PathLike[str],
    *,
    confidence: float | None = None,
    overwrite: bool = False,
) -> None:
    """Draw public facts: counts, errors of a plan, methods compared, or a release.

    Args:
        subject: Counts, a plan, a release of cells, a comparison of mechanisms, a frontier of
            plans, a trial's plan, a released trial, a plan of questions, or their answers.
            Released cells that are hexagons are drawn as a map.
        path: Where to; the ending chooses PNG, SVG or PDF.
        confidence: Of the intervals of what was released; 0.95 unless given.
        overwrite: Replace a file that is there.

    Raises:
        InputError: Another subject or ending, or an unusable confidence.
        DocumentError: There is a file already, or the place cannot be written.
        MissingPartError: Matplotlib is not installed.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile, shoal
        >>> counts = shoal.Counts.from_counts(["a", "b"], [1, 1], [2, 5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     picture(counts, f"{folder}/counts.svg")
    """
    kind = next((each for each in (*_RELEASED, *_PLANNED) if isinstance(subject, each)), None)
    if kind is None:
        raise InputError(
            f"a subject of type {type(subject).__name__}",
            "counts, a plan, a release, a comparison, a frontier, a trial, or questions",
            "give one",
        )
    if confidence is not None and kind not in _RELEASED:
        raise InputError(
            f"a confidence with a subject of type {type(subject).__name__}",
            "one with what was released, whose picture has intervals",
            "leave it out",
        )
    place = check_picture(path)
    from matplotlib import rc_context

    image = io.BytesIO()
    # With the fonts of a user's own settings, but never by LaTeX.
    with (
        warnings.catch_warnings(record=True) as caught,
        rc_context({"text.usetex": False, "text.parse_math": True}),
    ):
        warnings.simplefilter("always")
        if kind in _RELEASED:
            figure = _RELEASED[kind](subject, CONFIDENCE if confidence is None else confidence)
        else:
            figure = _PLANNED[kind](subject)
        figure.savefig(image, dpi=150, format=Path(place).suffix[1:].lower())
    if any("missing from font" in str(each.message) for each in caught):
        boxes = "letters that the picture's font has not are drawn as boxes"
        warnings.warn(boxes, ShoalWarning, stacklevel=2)
    files.write_bytes(place, image.getvalue(), overwrite=overwrite)


def check_picture(path: str | os.PathLike[str]) -> str:
    """The path of a picture, refused before the work that it takes if it cannot be drawn."""
    place = checks.path(path)
    if Path(place).suffix.lower() not in _ENDINGS:
        raise InputError(
            f"a picture named {checks.shown(place, 300)}",
            f"a name that ends in {', '.join(_ENDINGS)}",
            "choose one of these",
        )
    try:
        import matplotlib.figure  # noqa: F401
    except Exception as error:
        raise MissingPartError(
            f"no pictures without matplotlib ({type(error).__name__} when it is imported)",
            "a matplotlib that can be imported",
            'run pip install "shoal[pictures]", or look at its settings',
        ) from None
    return place
