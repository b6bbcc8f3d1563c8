"""Whether a plan from a file is the one that its request and counts lead to.

What decides the loss is accounted anew whenever a plan is loaded. Ranks, rewards and caps decide
what is released, too, without costing more: they are chosen again, and others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.planning import bounded, suppressed

if TYPE_CHECKING:
    from shoal.mechanisms.mean.base import Parameters
    from shoal.planning.facts import PlanFacts

# Another machine's logarithms: of scales, and of parameters that are rounded products of them.
_CLOSE = 1e-6
_ROUNDED = ("reward", "radius")


def is_derived(plan: PlanFacts) -> bool:
    """Whether parameters, selections and noise are those that the planner chooses.

    Of methods that share noise the loss and the certificates say all; so they do of the parts of an
    optimal plan, whose rewards follow from its noise.

    Args:
        plan: As read from a file.

    Example:
        >>> import shoal
        >>> counts = shoal.Occupancy.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
        >>> is_derived(shoal.plan(counts, bounds=(0, 10), epsilon=8, method="akmv"))
        True
    """
    if plan.request.shares:
        return True
    if plan.method == "optimal":
        if plan.mechanism.selects == "nothing":
            return True
        own = plan.design, plan.parameters, plan.epsilon, plan.relative_scale
        return _same(plan.mechanism.tune(*own), plan.parameters)
    solve = suppressed.solve if plan.method == "clip_user" else bounded.solve
    again = solve(plan.occupancy, plan.lattice, plan.request, plan.released, plan.status)
    return (
        again.lattice_bits == plan.lattice_bits
        and _same(again.parameters, plan.parameters)
        and np.allclose(again.relative_scale, plan.relative_scale, rtol=_CLOSE, atol=0)
        and np.allclose(again.selection_scale, plan.selection_scale, rtol=_CLOSE, atol=0)
    )


def _same(one: Parameters, other: Parameters) -> bool:
    return one.keys() == other.keys() and all(
        values.shape == other[name].shape
        and bool((np.abs(values - other[name]) <= (name in _ROUNDED)).all())
        for name, values in one.items()
    )
