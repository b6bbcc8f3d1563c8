"""Plans in which every record counts: noise of the better kind is allocated among cells."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation.base import SharedNoise
from shoal.cells.largest_error import within
from shoal.cells.plan_facts import PlanFacts, weights_of
from shoal.cells.privacy_loss import Losses
from shoal.cells.queries import PAIR, Queries
from shoal.errors import InputError
from shoal.privacy.noise_lattice import fit, lattice_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.allocation_problem import Allocation
    from shoal.cells.plan_facts import Status
    from shoal.cells.request import Request
    from shoal.cells.statistics.base import Statistic
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice

GUESS = 0.5


def solve(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """The plan of the request's method for the given cells.

    Mean and variance are released directly or jointly, and with a delta the noise is Laplace or
    Gaussian, both at the same true loss: whichever has the smallest error, as the method judges.
    """
    design = request.parts.contributions.design(occupancy, cells, {})
    found = [
        _plan(Queries(design, request.statistics, joint=joint, gaussian=gaussian), lattice, request,
              status)
        for joint in ways(request)
        for gaussian in request.parts.noise.gaussian
    ]  # fmt: skip
    # Cells stay in with whichever noise keeps their errors: a larger delta then takes none away.
    return min(found, key=lambda each: (not within(each), judge(each)))


def ways(request: Request) -> tuple[bool, ...]:
    """Whether statistics may be released jointly: not, or both ways."""
    return (False, True) if set(PAIR) <= set(request.statistics) else (False,)


def judge(plan: PlanFacts) -> float:
    """What a method wants small: the largest error, or the weighted mean of its logarithm."""
    rows = plan.queries.per_statistic(plan.relative_error)
    if plan.parts.allocation.levels:
        return float(rows.sum(axis=0).max())
    weight = weights_of(plan.occupancy, plan.released, plan.request.weights)
    return float(np.log(rows).mean(axis=0) @ weight / weight.sum())


def _plan(
    queries: Queries, lattice: Lattice, request: Request, status: tuple[Status, ...]
) -> PlanFacts:
    design = queries.design
    weight = weights_of(design.occupancy, design.cells, request.weights)
    rule = request.parts.allocation
    assert isinstance(rule, SharedNoise)
    shape = queries.shape(least_sum=rule.levels)
    problem = queries.problem(weight, shape)
    allocation = rule.solve(problem)
    if request.delta and request.parts.overcounts and not queries.gaussian:
        # Gaussian noise is charged by the true loss, and kinds of noise are compared at one loss.
        spent = float(problem.loss(allocation.noise_scale).max())
        allocation = replace(allocation, noise_scale=allocation.noise_scale * spent)
    epsilon = request.epsilon or _least_epsilon(allocation, queries, lattice, request)
    scale = (queries.per_statistic(shape) * _unit(allocation, queries)).ravel()
    return finish(
        queries, lattice, request, status, epsilon, scale / float(epsilon),
        duals=allocation.duals,
    )  # fmt: skip


def finish(
    queries: Queries,
    lattice: Lattice,
    request: Request,
    status: tuple[Status, ...],
    epsilon: Fraction,
    scale: NDArray[np.float64],
    *,
    selection_scale: NDArray[np.float64] | None = None,
    **others: object,
) -> PlanFacts:
    """The plan with these noise scales, made to fit the lattice and the loss.

    Args:
        queries: What is released of every cell.
        lattice: Of the values.
        request: What was asked for.
        status: Of every cell.
        epsilon: The largest total loss.
        scale: Noise scales over the range; with Gaussian noise only their ratios matter.
        selection_scale: Of private selections, if there are any.
        **others: Fields of the plan.
    """
    design, delta = queries.design, request.delta if queries.gaussian else Fraction(0)
    mechanism = request.parts.mechanism(lattice)
    sharp = np.zeros(0) if selection_scale is None else selection_scale
    most = len(queries.statistics) * int(np.bincount(design.user).max())
    bits = lattice_bits(most, float(epsilon), float(delta))
    losses = Losses(mechanism, queries, sharp, bits, delta)
    if queries.gaussian:
        squares = np.bincount(design.user, queries.member_losses(scale))
        scale = scale * float(squares.max() / (2 * float(losses.limit(epsilon)))) ** 0.5
    return PlanFacts(
        design.occupancy, lattice, request, status,
        relative_scale=fit(scale, bits, epsilon, losses), lattice_bits=bits,
        selection_scale=sharp, joint=queries.joint, gaussian=queries.gaussian, built=queries,
        **others,  # type: ignore[arg-type]
    )  # fmt: skip


def _unit(allocation: Allocation, queries: Queries) -> NDArray[np.float64]:
    scale = allocation.noise_scale
    return np.sqrt(scale) if queries.gaussian else scale


def _least_epsilon(
    allocation: Allocation, queries: Queries, lattice: Lattice, request: Request
) -> Fraction:
    statistic = queries.statistics[0]
    statistic_range = float(statistic.statistic_range(lattice.bounds)[1])
    wanted = (request.error or 0.0) / statistic_range
    # Rounding to ticks, then a margin for lattice steps and for scales rounded upwards.
    noise = (wanted - statistic.rounding(float(lattice.rounding), 0.0)) / (1 + 2.0**-19)
    if noise <= 0 or wanted >= GUESS:
        raise bad_error(request.error or 0.0, statistic, lattice)
    return Fraction(float(allocation.noise_scale.max()) / noise)


def bad_error(error: float, statistic: Statistic, lattice: Lattice) -> InputError:
    """For an error that no plan can have, or that needs none."""
    statistic_range = float(statistic.statistic_range(lattice.bounds)[1])
    return InputError(
        f"a worst-case error of {error:g}",
        f"above a tick and below half the range ({statistic_range / 2:g})",
        "ask for another error; half the range needs no data at all",
    )
