"""The estimate of a mean as JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.means.estimators.base import Drawn
from shoal.means.estimators.symmetric import Symmetric
from shoal.privacy.budget import from_text, text
from shoal.release.manifest import CONFIDENCE
from shoal.release.stated import check_stated, damaged

if TYPE_CHECKING:
    from shoal import documents
    from shoal.means.plan_facts import UnbiasedFacts


def to_results(plan: UnbiasedFacts, drawn: Drawn) -> documents.Document:
    """The estimate, exactly and as a number, with its interval."""
    return {
        "exact": text(drawn.value),
        "value": float(drawn.value),
        "interval": list(plan.estimator.interval_around(drawn.value, CONFIDENCE)),
        "coarse_failed": drawn.failed,
    }


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
    drawn = Drawn(from_text(results["exact"]), failed)
    check_stated([results], [to_results(plan, drawn)])
    return drawn
