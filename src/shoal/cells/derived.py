"""Whether a plan from a file is the one that its request and counts lead to.

What decides the loss is accounted anew whenever a plan is loaded. Ranks, rewards, caps and left out
cells decide what is released, too, without costing more: they are chosen again, and others are
refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from shoal.cells.allocation.base import LinearProgram
from shoal.cells.most_cells import first_ones_released
from shoal.cells.optimal.plan import remake_plan
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.planner import decide, order_of_leaving
from shoal.cells.request_rules import keeps, public_status

if TYPE_CHECKING:
    from numpy.typing import NDArray

PlanT = TypeVar("PlanT", bound=PlanFacts)
# Another machine's logarithms: of scales, and of rewards, which are rounded products of them.
_CLOSE, _OF_OPTIMAL = 1e-8, 1e-6
_ROUNDED = 1
# Copies, and what `dataclasses.replace` makes of a plan, are other plans.
_PLANNED: WeakKeyDictionary[PlanFacts, str] = WeakKeyDictionary()


def planned(plan: PlanT) -> PlanT:
    """Remember a plan that the planner has made, or that was compared with what it would make.

    Args:
        plan: Of cells.

    Returns:
        The same plan.
    """
    _PLANNED[plan] = _decided(plan)
    return plan


def is_planned(plan: PlanFacts, now: PlanFacts) -> bool:
    """Whether a plan was made or compared here, and has the numbers that it had then.

    Args:
        plan: Of cells.
        now: What its document says now: whoever has an array may have given it other strides.
    """
    return _PLANNED.get(plan) == _decided(now)


def _decided(plan: PlanFacts) -> str:
    """Digest of all that the planner decides."""
    state = hashlib.sha256(repr(_told(plan)).encode())
    arrays = {"scale": plan.relative_scale, "selection": plan.selection_scale, **plan.parameters}
    optional = {"duals": plan.duals, "targets": plan.targets}
    arrays |= {name: each for name, each in optional.items() if each is not None}
    for name in sorted(arrays):
        each = np.ascontiguousarray(arrays[name])
        state.update(f"{name} {each.dtype.str} {each.shape}".encode())
        state.update(each.tobytes())
    return state.hexdigest()


def _told(plan: PlanFacts) -> tuple[object, ...]:
    return plan.status, plan.lattice_bits, plan.joint, plan.gaussian


def follows(facts: PlanFacts) -> bool:
    """Whether cells, parameters, selections and noise are those that the planner chooses.

    Weights of optimal plans come from linear programs and are proved by dual variables; all else of
    such a plan follows from them, but for how many cells are left out as uninformative.

    Args:
        facts: As read from a file.

    Raises:
        InputError: The request gives no plan at all.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
        >>> follows(shoal.plan(counts, bounds=(0, 10), epsilon=8, method="akmv"))
        True
    """
    if not keeps(facts):
        return False
    if isinstance(facts.parts.allocation, LinearProgram):
        return _optimal_follows(facts)
    own = decide(facts.occupancy, facts.lattice, facts.request)
    return (
        own.status == tuple(facts.status)
        and own.parameters.keys() == facts.parameters.keys()
        and all(
            np.array_equal(own.parameters[name], facts.parameters[name]) for name in own.parameters
        )
        and _same_noise(own, facts, _CLOSE)
    )


def _optimal_follows(facts: PlanFacts) -> bool:
    own = remake_plan(facts)
    rewards = own.parameters.keys() == facts.parameters.keys() and all(
        values.shape == facts.parameters[name].shape
        and bool((np.abs(values - facts.parameters[name]) <= _ROUNDED).all())
        for name, values in own.parameters.items()
    )
    return (
        rewards
        and own.targets is not None
        and facts.targets is not None
        and _close(own.targets, facts.targets, _OF_OPTIMAL)
        and _same_noise(own, facts, _OF_OPTIMAL)
        and _first_ones_leave(facts)
    )


def _first_ones_leave(facts: PlanFacts) -> bool:
    """Those left out are the first of an order: where all have one error, or a largest is given."""
    status = public_status(facts.occupancy, facts.request)
    if facts.request.max_error is not None:
        return first_ones_released(facts, status)
    if facts.parts.allocation != LinearProgram("equal"):
        return True
    allowed = np.flatnonzero(status == "released")
    left = len(allowed) - len(facts.released)
    if not left:
        return True
    order = order_of_leaving(facts.occupancy, facts.lattice, facts.request, status)
    kept = np.delete(allowed, order[:left])
    return bool(np.array_equal(kept, facts.released))


def _same_noise(own: PlanFacts, facts: PlanFacts, close: float) -> bool:
    return (
        (own.lattice_bits, own.joint, own.gaussian)
        == (facts.lattice_bits, facts.joint, facts.gaussian)
        and (own.duals is None) == (facts.duals is None)
        # No search leads to what a selection costs: a formula of public numbers does.
        and _close(own.selection_scale, facts.selection_scale, _CLOSE)
        and _close(own.relative_scale, facts.relative_scale, close)
    )


def _close(mine: NDArray[np.float64], theirs: NDArray[np.float64], close: float) -> bool:
    """Equal but for what the arithmetic of another machine may differ by."""
    return mine.shape == theirs.shape and bool(np.allclose(mine, theirs, rtol=close, atol=0))
