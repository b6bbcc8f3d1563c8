"""Public rules of a plan: which cells may be released, and whether a plan keeps what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation.base import LinearProgram
from shoal.cells.largest_error import within
from shoal.cells.most_cells import TOO_LARGE
from shoal.cells.noise_allocation import GUESS
from shoal.cells.objective import choose
from shoal.cells.plan_facts import weights_of
from shoal.cells.user_clipped_plan import follows_counts
from shoal.errors import InputError
from shoal.privacy.budget import MOST_EPSILON

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts

# Another machine's logarithms, where an error is compared with the largest of a released cell.
_CLOSE = 1e-9


def public_status(occupancy: Counts, request: Request) -> NDArray[np.object_]:
    """Each cell's status by counts alone: released, too few records, or too few users."""
    status = np.full(occupancy.n_cells, "released", dtype=object)
    status[occupancy.totals < request.min_records] = "too few records"
    status[occupancy.users_per_cell < request.min_users] = "too few users"
    return status


def check_labels(occupancy: Counts, request: Request) -> None:
    """Refuse weights of cells that there are not.

    Raises:
        InputError: There is one.
    """
    unknown = set(request.weights) - set(occupancy.labels) if request.weights else set()
    if unknown:
        raise InputError(
            f"a weight for the unknown cell {min(unknown)!r}",
            f"labels of the {occupancy.n_cells} cells, such as {occupancy.labels[0]!r}",
            "check the spelling",
        )


def keeps(facts: PlanFacts) -> bool:
    """Whether a plan stays within its request: loss, error, public rules, uninformative cells.

    It costs one look at every cell, so every release asks before a value is read. Whether noise
    and parameters are those of the method is `derived.follows`.

    Args:
        facts: A plan, wherever it comes from.

    Raises:
        InputError: A weight names no cell.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
        >>> keeps(shoal.plan(counts, bounds=(0, 10), epsilon=8))
        True
    """
    request = facts.request
    check_labels(facts.occupancy, request)
    return (
        len(facts.released) > 0
        and _serves(facts)
        and _rules_hold(facts)
        and (request.epsilon is None or facts.exact_epsilon <= request.epsilon)
        and facts.exact_epsilon <= MOST_EPSILON
        and (request.error is None or float(facts.worst_case_error.max()) <= request.error)
        and (request.uninformative == "keep" or bool((facts.cell_error < GUESS + _CLOSE).all()))
        and within(facts)
        and _targets_hold(facts)
        and (not facts.parts.range.of_vectors or follows_counts(facts))
    )


def _serves(facts: PlanFacts) -> bool:
    """Whether the method is the one that the objective chooses, if there is an objective."""
    request = facts.request
    if not request.objective:
        return True
    asked = request.statistics, request.epsilon, request.delta, request.range
    own = choose(request.objective, facts.occupancy, *asked)
    return own.method == request.method and dict(own.settings) == dict(request.settings)


def _rules_hold(facts: PlanFacts) -> bool:
    """Only cells that the public rules allow are released, or are left out for their errors."""
    own, stated = public_status(facts.occupancy, facts.request), np.array(facts.status, object)
    if own.shape != stated.shape:
        return False
    if facts.request.max_error is not None:
        dropped = stated == TOO_LARGE
    else:
        # Users' vectors leave no cell out for its error.
        drops = facts.request.uninformative == "drop" and not facts.parts.range.of_vectors
        dropped = (stated == "uninformative") & drops
    return bool((np.where(dropped, "released", stated) == own).all())


def _targets_hold(facts: PlanFacts) -> bool:
    """Targets are there for optimal plans only, and alike unless the setting says otherwise."""
    request, targets, how = facts.request, facts.targets, facts.parts.allocation
    if not isinstance(how, LinearProgram) or targets is None:
        return not isinstance(how, LinearProgram) and targets is None
    if how != LinearProgram("equal") and request.error is None:
        return True
    weighed = targets * weights_of(facts.occupancy, facts.released, request.weights)
    return bool(np.allclose(weighed, weighed.max(), rtol=_CLOSE, atol=0))
