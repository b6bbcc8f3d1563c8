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
from shoal.verification.recount.reading import Cells, Document, Questions, Trial, read


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
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as e:
        raise DocumentError(
            f"a manifest that cannot be recounted ({type(e).__name__})",
            "a manifest as shoal writes it",
            "fetch it again",
        ) from None


def _differences(document: Document) -> Iterator[str]:
    release = read(document)
    exact = (release.epsilon, release.delta)
    below = [Fraction(math.nextafter(each, -math.inf)) for each in release.shown]
    shown = zip(below, exact, release.shown, strict=True)
    if exact != release.claims or not all(less < x <= Fraction(most) for less, x, most in shown):
        yield "the loss is not claimed by the plan, or not rounded upwards where it is shown"
    if isinstance(release, Cells):
        bounding = Bounding.of(release)
        losses, values = Losses(release, bounding), Values(release, bounding)
        for each in (losses, values, Gaps(losses, values)):
            yield from each.differences()
    elif isinstance(release, Trial):
        yield from trials.differences(release)
    elif isinstance(release, Questions):
        yield from questions.differences(release)
    else:
        yield from Means(release).differences()
