"""Draws pictures of public facts, by the kind of the subject and the ending of a file's name."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal import checks, files
from shoal.errors import InputError, MissingPartError
from shoal.release.envelope import CONFIDENCE
from shoal.release.plan import Plan

_ENDINGS = (".png", ".svg", ".pdf")


def picture(
    subject: object,
    path: str | os.PathLike[str],
    *,
    confidence: float | None = None,
    overwrite: bool = False,
) -> None:
    """Draw public facts: counts, errors of a plan, methods compared, or a release.

    Args:
        subject: Counts, a plan of means, a release of cells, a comparison of mechanisms, a frontier
            of plans, a trial's plan, a released trial, a plan of questions, or their answers.
            Released cells that are hexagons are drawn as a map.
        path: The file to write; its ending chooses PNG, SVG or PDF.
        confidence: Confidence of a release's intervals; 0.95 unless given.
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
    place = check_picture(path)
    drawn = image(subject, Path(place).suffix[1:].lower(), confidence)
    files.write_bytes(place, drawn, overwrite=overwrite)


def image(subject: object, form: str, confidence: float | None = None, *, label: str = "") -> bytes:
    """Returns the picture's bytes as `png`, `svg` or `pdf`; `label` names released values."""
    from matplotlib import rc_context

    draw, is_released = _drawing(subject)
    if confidence is not None and not is_released:
        raise InputError(
            f"a picture of {type(subject).__name__} takes no confidence",
            "leave it out: only pictures of what was released have intervals",
        )
    drawn = io.BytesIO()
    # The fonts are those of a user's settings, but text is never set by LaTeX.
    with rc_context({"text.usetex": False, "text.parse_math": True}):
        if is_released:
            level = CONFIDENCE if confidence is None else confidence
            figure = draw(subject, level, label)
        else:
            figure = draw(subject)
        figure.savefig(drawn, dpi=150, format=form)
    return drawn.getvalue()


def check_subject(subject: object) -> None:
    """Refuses, before any file is written, what has no picture."""
    _drawing(subject)


def _drawing(subject: object) -> tuple[Callable[..., Any], bool]:
    """Returns what draws a subject, and whether it is a release; InputError without a picture."""
    from shoal.pictures import cells, trials

    for drawings, is_released in (
        (cells.RELEASED | trials.RELEASED, True),
        (cells.PLANNED | trials.PLANNED, False),
    ):
        for kind, draw in drawings.items():
            if isinstance(subject, kind):
                return draw, is_released
    if isinstance(subject, Plan):
        raise InputError(
            "of plans of cells only those of means alone, or of certified errors, have a picture",
            "print the plan, or draw its release",
        )
    raise InputError(
        f"an object of the type {type(subject).__name__} cannot be drawn",
        "give counts, a plan, a release, a comparison, a frontier, a trial, or questions",
    )


def check_picture(path: str | os.PathLike[str]) -> str:
    """Returns the path of a picture, or refuses before any work if it cannot be drawn."""
    place = checks.path(path)
    if Path(place).suffix.lower() not in _ENDINGS:
        raise InputError(
            f"a picture is named {checks.shown(place, 300)}",
            f"choose a name that ends in {', '.join(_ENDINGS)}",
        )
    try:
        import matplotlib.figure  # noqa: F401
    except Exception as error:
        raise MissingPartError(
            f"pictures need matplotlib, which cannot be imported ({type(error).__name__})",
            'run pip install "shoal[pictures]", or check the settings of matplotlib',
        ) from None
    return place
