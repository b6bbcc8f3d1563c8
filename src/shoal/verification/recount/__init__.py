"""The recount: losses, values, errors, intervals and bounds of manifests, by code of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.errors import DocumentError
from shoal.verification.recount import questions, trials
from shoal.verification.recount.bounding import Bounding
from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.cells_values import Values
from shoal.verification.recount.gaps import Gaps
from shoal.verification.recount.means import Means
from shoal.verification.recount.reading import Cells, Document, Questions, Release, Trial, read


def recount(document: Document) -> list[str]:
    """What a manifest states and its published integers do not give, in words.

    Args:
        document: A manifest as a JSON object of the form that shoal writes.

    Returns:
        One sentence for each difference; an empty list if all agrees.

    Raises:
        DocumentError: Not a manifest, or its parts do not fit each other.
    """
    try:
        with np.errstate(all="ignore"):
            return list(_differences(document))
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise DocumentError(
            f"a manifest that cannot be recounted ({type(error).__name__})",
            "a manifest as shoal writes it",
            "fetch it again",
        ) from None


def _differences(document: Document) -> Iterator[str]:
    parts = read(document)
    yield from _guarantee(parts)
    if isinstance(parts, Cells):
        bounding = Bounding.of(parts)
        losses, values = Losses(parts, bounding), Values(parts, bounding)
        for each in (losses, values, Gaps(losses, values)):
            yield from each.differences()
    elif isinstance(parts, Trial):
        yield from trials.differences(parts)
    elif isinstance(parts, Questions):
        yield from questions.differences(parts)
    else:
        yield from Means(parts).differences()


def _guarantee(release: Release) -> Iterator[str]:
    """Whether the loss for display is the exact one, rounded upwards to a double."""
    exact = (release.epsilon, release.delta)
    if exact != release.claims:
        yield "the plan claims another loss than the guarantee states"
    for name, number, shown in zip(("epsilon", "delta"), exact, release.shown, strict=True):
        if not Fraction(math.nextafter(shown, -math.inf)) < number <= Fraction(shown):
            yield f"{name} is shown as {shown}, which is not its exact value rounded upwards"
