"""The estimate of a mean as JSON, and back."""

from shoal import documents
from shoal.means.estimators.base import Drawn
from shoal.means.estimators.normal import Squares
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.plan_facts import UnbiasedFacts
from shoal.privacy.budget import from_text
from shoal.release.manifest import CONFIDENCE
from shoal.release.release import damaged


def to_results(plan: UnbiasedFacts, drawn: Drawn) -> documents.Document:
    """The estimate, exactly and as a number, with its interval, and what this rests on."""
    found = {
        "exact": str(drawn.value),
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
        "about": str(drawn.squares.about),
        "squares": str(drawn.squares.total),
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
    """The inverse of `to_results`, from the exact estimate; `shoal.verify` compares the rest.

    Args:
        plan: What was carried out.
        results: Of its manifest.

    Raises:
        DocumentError: Parts that the plan's method does not have.
    """
    failed = results["coarse_failed"]
    if isinstance(failed, bool) != (plan.method == Symmetric.name):
        raise damaged()
    return Drawn(from_text(results["exact"]), failed, _squares(plan, results))
