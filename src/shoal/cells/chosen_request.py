"""The request that an objective leads to: its method is chosen from public counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal import checks
from shoal.cells.objective import RANGES, choose
from shoal.cells.presets import parts_of
from shoal.cells.request import make_request
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.privacy.budget import Amount


def chosen_request(
    occupancy: Counts,
    asked: dict[str, Any],
    objective: str | None,
    settings: Mapping[str, str | int | float] | None,
    delta: Amount,
    known: str | None = None,
) -> Request:
    """The request whose method serves an objective.

    Args:
        occupancy: The counts.
        asked: What `make_request` takes besides.
        objective: `typical` or `worst_case`; the first if there is none.
        settings: None, as they belong to a method.
        delta: The delta of (epsilon, delta)-DP.
        known: What is known of the bounds: `tight`, `loose`, or None.

    Raises:
        InputError: Any of them is not usable.
    """
    if settings is not None and checks.mapping(settings, "settings"):
        raise InputError("settings without a method", "settings of a named method", "name it")
    goal = "typical" if objective is None else objective
    # Every plan can be asked for with noise alone, so that this refuses what no plan could meet.
    any_plan = make_request(method="balanced", delta=delta, **asked)
    if known is not None and (goal != "typical" or any_plan.epsilon is None):
        raise InputError(
            "a range with an error, or with the objective worst_case",
            "range with epsilon and the typical objective: certified errors hold in any range",
            "leave range out",
        )
    say = checks.optional(known, checks.choice, RANGES, "range") or ""
    found = choose(goal, occupancy, any_plan.statistics, any_plan.epsilon, any_plan.delta, say)
    # What nothing is known to serve better is certified: it is for the worst case, and says so.
    aim = goal if parts_of(found.method).selects else "worst_case"
    own: dict[str, Any] = {
        "method": found.method,
        "settings": found.settings,
        "objective": aim,
        "range": say,
    }
    # Others draw Laplace noise, which needs none of the delta that was granted.
    needed = delta if parts_of(found.method).takes_delta else 0
    return make_request(delta=needed, **own, **asked)
