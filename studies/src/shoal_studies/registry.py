"""All studies by name."""

from __future__ import annotations

from shoal.errors import InputError
from shoal_studies import (
    bounding,
    composition_studies,
    flights_variance,
    grouping,
    minimax_cap,
    speeds_cell,
    trial_insurance,
    trial_studies,
    unbiased_studies,
)
from shoal_studies.study import Study

STUDIES: tuple[Study, ...] = (
    *composition_studies.FIGURES,
    bounding.FIGURE_2,
    bounding.FIGURE_3,
    grouping.FIGURE_1,
    speeds_cell.FIGURE_2,
    speeds_cell.FIGURE_3,
    speeds_cell.FIGURE_4,
    minimax_cap.FIGURE_5,
    flights_variance.STUDY,
    *trial_studies.FIGURES,
    trial_insurance.STUDY,
    *unbiased_studies.FIGURES,
)
ALL = "all"


def find(name: str) -> tuple[Study, ...]:
    """The study of a name, or all of them.

    Example:
        >>> [study.title for study in find("002-figure-5")]
        ['The minimax cap against the loss']
    """
    found = STUDIES if name == ALL else tuple(each for each in STUDIES if each.name == name)
    if not found:
        raise InputError(
            f"a study named {name[:40]!r}",
            f"{', '.join(each.name for each in STUDIES)}, or {ALL}",
            "see `shoal study list`",
        )
    return found
