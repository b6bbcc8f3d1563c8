"""The estimate of a mean as JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.means.estimators.base import Drawn
from shoal.means.estimators.normal import Squares
from shoal.means.estimators.symmetric import Symmetric
from shoal.privacy.budget import from_text, text
from shoal.release.manifest import CONFIDENCE
from shoal.release.stated import check_stated, damaged

if TYPE_CHECKING:
    from shoal import documents
    from shoal.means.plan_facts import UnbiasedFacts


def to_results(plan: UnbiasedFacts, drawn: Drawn) -> documents.Document:
    """The estimate, exactly and as a number, with its interval, and what this rests on."""
    found = {
        "exact": text(drawn.value),
        "value": float(drawn.value),
        "interval": list(plan.estimator.stated_interval(drawn, CONFIDENCE)),
        "coarse_failed": drawn.failed,
    }
    if plan.estimator.squares is None:
        return found
    return {**found, "normal": _normal(plan, drawn)}


def _normal(plan: UnbiasedFacts, drawn: Drawn) -> documents.Document | None:
    """Squares exactly, and half the interval that follows; None where the coarse step failed."""
    if drawn.squares is None:
        return None
    return {
        "about": text(drawn.squares.about),
        "squares": text(drawn.squares.total),
        "half_width": plan.estimator.normal_half(drawn, CONFIDENCE),
    }


def _squares(plan: UnbiasedFacts, results: documents.Document) -> Squares | None:
    """Of results; there are none where a coarse step failed, or none were asked for."""
    normal = results.get("normal")
    asked = plan.estimator.squares is not None
    if ("normal" in results) != asked or (normal is not None) != (
        asked and results["coarse_failed"] is not True
    ):
        raise damaged()
    return normal and Squares(from_text(normal["about"]), from_text(normal["squares"]))


def from_results(plan: UnbiasedFacts, results: documents.Document) -> Drawn:
    """The inverse of `to_results`: value and interval are those of the exact estimate.

    Args:
        plan: What was carried out.
        results: Of its manifest.

    Raises:
        DocumentError: They do not follow, or the plan's method has no coarse step that may fail.
        OverflowError: The estimate is no floating-point number.
    """
    failed = results["coarse_failed"]
    if isinstance(failed, bool) != (plan.method == Symmetric.name):
        raise damaged()
    drawn = Drawn(from_text(results["exact"]), failed, _squares(plan, results))
    check_stated([results], [to_results(plan, drawn)])
    return drawn
