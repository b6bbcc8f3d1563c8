"""Recounts losses, values, errors, intervals and bounds of manifests, by code of its own."""

import math
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.errors import DocumentError
from shoal.verification.recount import (
    distributions,
    means,
    presence,
    questions,
    reading,
    sides,
    trials,
)
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.cells_values import CellValues
from shoal.verification.recount.reading import Document, Release

# A manifest of another form leads to one of these errors.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error)


def recount(document: Document) -> list[str]:
    """Returns a sentence for each number of a manifest that does not follow from it."""
    try:
        with np.errstate(all="ignore"):
            entries_of, differences = KINDS[document["kind"]]
            release = reading.read(document, entries_of)
            return [*_guarantee(release), *differences(release)]
    except _DAMAGED as error:
        raise DocumentError(
            f"the manifest's claims cannot be recomputed ({type(error).__name__})",
            "fetch it again: it is not as shoal writes it",
        ) from None


def _guarantee(release: Release) -> Iterator[str]:
    """Yields a sentence unless the displayed loss is the exact one, rounded upwards."""
    exact = [release.epsilon, release.delta]
    if exact != release.claimed:
        yield "the loss in the plan differs from that in the guarantee"
    for name, number, shown in zip(("epsilon", "delta"), exact, release.shown, strict=True):
        if not Fraction(math.nextafter(shown, -math.inf)) < number <= Fraction(shown):
            yield f"{name} is shown as {shown}, which is not its exact value rounded upwards"


# For each kind of release, the function that reads its entries, and the one that compares them.
KINDS: dict[str, tuple[Callable[[Any, Any], Document], Callable[[Any], Iterator[str]]]] = {
    "cells": (reading.of_cells, lambda cells: CellValues(cells, Losses.of(cells)).differences()),
    "distributions": (distributions.entries_of, distributions.differences),
    "questions": (reading.of_questions, questions.differences),
    "bounds": (reading.of_bounds, sides.differences),
    "ratios": (reading.of_ratios, sides.differences),
    "presence": (reading.of_presence, presence.differences),
    "mean": (reading.of_mean, means.differences),
    **dict.fromkeys(
        ("table", "cluster_prior", "histogram"), (reading.of_trial, trials.differences)
    ),
}
