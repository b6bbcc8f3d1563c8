"""What a study is, what it leaves, and the words that its readings share."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import files
from shoal.errors import InputError
from shoal.files import check_outputs
from shoal_studies.measure import Curve, Effort

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPERS = {
    "000": (
        'V. A. Rameshwar and A. Tandon, "On Improving the Composition Privacy Loss in Differential '
        'Privacy for Fixed Estimation Error"'
    ),
    "001": (
        'V. A. Rameshwar and A. Tandon, "Bounding User Contributions for User-Level '
        'Differentially Private Mean Estimation"'
    ),
    "002": (
        'V. A. Rameshwar, A. Tandon, P. Gupta, A. V. Singh, N. Chakraborty and A. Sharma, "Mean '
        'Estimation with User-Level Privacy for Spatio-Temporal IoT Datasets"'
    ),
    "003": (
        'A. Javanmard, V. Mirrokni and J. Pouget-Abadie, "Improving the Variance of '
        'Differentially Private Randomized Experiments through Clustering"'
    ),
    "004": (
        'G. Kamath, A. Mouzakis, M. Regehr, V. Singhal, T. Steinke and J. Ullman, "A '
        'Bias-Variance-Privacy Trilemma for Statistical Estimation"'
    ),
}
Row = dict[str, str | float | int]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a study found.

    Attributes:
        rows: The table.
        figure: The picture.
        reading: One paragraph, every figure of which comes from the run.
    """

    rows: list[Row] = field(repr=False)
    figure: Figure = field(repr=False)
    reading: str


@dataclass(frozen=True)
class Study:
    """A study by name.

    Attributes:
        name: Paper (see `PAPERS`) and figure, or what it is about.
        title: What is compared.
        source: Where the paper shows it.
        run: Does the work.
    """

    name: str
    title: str
    source: str
    run: Callable[[Effort], Outcome]


def places(study: Study, folder: Path) -> tuple[Path, Path, Path]:
    """Where table, picture and reading go."""
    table, drawing, text = (folder / f"{study.name}.{end}" for end in ("csv", "png", "md"))
    return table, drawing, text


def prepare(studies: Sequence[Study], folder: Path, *, overwrite: bool) -> None:
    """Make the folder and refuse places that cannot be written, before the work is done."""
    reason = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise InputError(
            f"a folder {os.fspath(folder)!r} that cannot be made ({reason})",
            "a writable folder",
            "choose another folder",
        )
    outputs = {place.name: place for each in studies for place in places(each, folder)}
    check_outputs(outputs, {}, overwrite=overwrite)


def write(
    study: Study, outcome: Outcome, folder: Path, *, overwrite: bool = False
) -> tuple[Path, Path, Path]:
    """Write NAME.csv, NAME.png and NAME.md into a folder, which is made if missing."""
    prepare([study], folder, overwrite=overwrite)
    table, drawing, text = places(study, folder)
    rows, picture = io.StringIO(newline=""), io.BytesIO()
    writer = csv.DictWriter(rows, ["study", *outcome.rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"study": study.name, **row} for row in outcome.rows)
    outcome.figure.savefig(picture, dpi=150)
    paper = PAPERS.get(study.name[:3])
    reading = (
        f"# {study.title}\n\nSource: {study.source}{f': {paper}' if paper else ''}.\n\n"
        f"{outcome.reading}\n\n"
        f"![{study.title}]({drawing.name})\n"
    )
    written = (rows.getvalue().encode(), picture.getvalue(), reading.encode())
    for place, data in zip((table, drawing, text), written, strict=True):
        files.write_bytes(place, data, overwrite=overwrite)
    return table, drawing, text


def rows_of(collections: Mapping[str, list[Curve]]) -> list[Row]:
    """The table of all curves."""
    return [
        row for name, curves in collections.items() for each in curves for row in each.rows(name)
    ]


def short(number: float, digits: int = 6) -> float:
    """A figure of a table, with significant digits.

    Example:
        >>> short(1234567.8), short(0.00123456, 4)
        (1234570.0, 0.001235)
    """
    return float(f"{number:.{digits}g}")


def span(numbers: NDArray[np.float64], digits: int = 2) -> str:
    """From the least to the largest of some numbers.

    Example:
        >>> import numpy as np
        >>> span(np.array([1.234, 1.0, 2.0])), span(np.array([1.0, 1.001]))
        ('1.00 to 2.00', '1.00')
    """
    low, high = f"{numbers.min():.{digits}f}", f"{numbers.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def verdict(holds: bool) -> str:
    """Whether a statement of a paper was found.

    Example:
        >>> verdict(True)
        'as in the paper'
    """
    return "as in the paper" if holds else "unlike the paper"


def behind(curves: list[Curve]) -> str:
    """How sure the figures are."""
    worst = max(float((each.standard_error / each.error).max()) for each in curves)
    return f"{curves[0].repetitions:,} data sets a point; standard errors up to {worst:.1%}."
