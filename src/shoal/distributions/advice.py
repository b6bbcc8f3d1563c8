"""Advises which changes would make more cells reliable, of means and of what follows from bins."""

from __future__ import annotations

from typing import Any

from shoal.cells.comparisons.advice import Advice, Alternative, best_of, choices_of
from shoal.cells.estimates import typical_error
from shoal.data.counts import Counts
from shoal.distributions.expected import expected_reliable, has_ranks
from shoal.distributions.parts import Parts, plans_of, units_of
from shoal.distributions.request import OF_MEANS
from shoal.errors import InputError
from shoal.privacy.budget import show
from shoal.progress import Progress


def advise(plan: Parts, progress: Progress | None) -> Advice:
    """Returns how many cells are reliable at other losses, with fewer records, by coarser labels.

    A cell counts if it is reliable for all parts of which that can be said.
    """
    if not _reliable(plan):
        raise InputError(
            f"nobody can say before how many cells of {', '.join(plan.request.statistics)} will "
            "be reliable, with given thresholds or so few users",
            "compare the typical errors of plans by other epsilons or cells",
        )

    def tried(change: str, counts: Counts, changed: dict[str, Any]) -> Alternative:
        """Returns what a change makes of the plan."""
        request = plan.request.model_copy(update=changed)
        planned = plans_of(counts, request)
        units = units_of(counts, request)
        return _alternative(change, Parts(counts, request, planned, units))

    choices = choices_of(plan.counts, plan.request.epsilon)
    return best_of(_alternative("this plan", plan), choices, tried, progress)


def unreliable(plan: Parts) -> list[str]:
    """Returns the statistics of which likely no cell will be reliable, as far as is known."""
    facts = plan.planned.get("mean")
    means = facts is None or typical_error.some_reliable(facts)
    units = plan.units
    bins = units is None or not has_ranks(plan) or expected_reliable(units) > 0
    return [
        kind.name for kind in plan.request.kinds if not (means if kind.kind in OF_MEANS else bins)
    ]


def _alternative(change: str, plan: Parts) -> Alternative:
    """Returns the numbers of cells of a changed plan."""
    epsilon = show(plan.request.epsilon)
    fewest = min(_reliable(plan), default=0)
    return Alternative(change, epsilon, len(plan.shown), fewest)


def _reliable(plan: Parts) -> list[int]:
    """Returns in how many cells each part will be reliable, of which that can be said."""
    found = []
    if "mean" in plan.planned:
        found.append(typical_error.expected_reliable(plan.planned["mean"]))
    if plan.units is not None and has_ranks(plan):
        found.append(expected_reliable(plan.units))
    return found
