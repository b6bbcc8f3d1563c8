"""Plans of the user-clipped mean: caps, the shape of the noise, the ball and what it may cost."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation import balanced
from shoal.cells.contributions.base import largest_counts
from shoal.cells.contributions.design import members
from shoal.cells.plan_facts import PlanFacts, weights_of
from shoal.cells.privacy_loss import Losses
from shoal.cells.queries import Queries
from shoal.cells.ranges.centre_and_radius import MIDDLE
from shoal.cells.ranges.one_interval import USER
from shoal.errors import InputError
from shoal.privacy.noise_lattice import lattice_bits, round_scale
from shoal.theory import user_clipping
from shoal.theory.user_clipping import RADII, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.plan_facts import Status
    from shoal.cells.request import Request
    from shoal.data.occupancy import Occupancy
    from shoal.data.value_lattice import Lattice
    from shoal.theory.user_clipping import Split

_ROUNDS, _FINER = 4, 8
# Of epsilon, what the noise is planned with until the parts are known.
_NOISE = 0.8


def solve(
    occupancy: Occupancy,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """The plan of user-clipped means for the given cells.

    Raises:
        InputError: The loss leaves no room for noise on the lattice.
    """
    limit = request.epsilon
    assert limit is not None  # noqa: S101  an error goes with other parts
    epsilon = float(limit)
    member, _ = members(occupancy, cells)
    chosen = split(epsilon, len(np.unique(occupancy.user[member])), len(cells))
    design, parameters, shape = _weigh(occupancy, request, cells, epsilon, chosen)
    bits = _bits(design, epsilon)
    sharp = np.zeros(0) if chosen is None else _selection_scale(chosen, epsilon)
    parameters |= _candidates(chosen)
    mechanism, queries = request.parts.mechanism(lattice), Queries(design, request.statistics)
    selecting = Losses(mechanism, queries, sharp, bits).selecting
    ball = math.floor((limit - selecting) * 2**bits / 2)
    if ball < 1:
        raise InputError(
            "a loss that private selections use up", "a larger epsilon", "ask for a larger one"
        )
    return PlanFacts(
        occupancy=occupancy,
        lattice=lattice,
        request=request,
        status=status,
        relative_scale=round_scale(shape * float(Fraction(2**bits, ball))),
        lattice_bits=bits,
        parameters=parameters | {"ball": np.array([ball], dtype=np.int64)},
        selection_scale=sharp,
        built=queries,
    )


def follows_counts(plan: PlanFacts) -> bool:
    """Whether candidates, ranks and lattice are those that counts and epsilon lead to.

    Intervals rest on them: with others they would be as short as whoever wrote the plan likes.

    Args:
        plan: Of users' vectors.
    """
    limit = plan.request.epsilon
    if limit is None:
        return False
    users = len(np.unique(plan.design.user))
    chosen = split(float(limit), users, len(plan.released))
    own = _candidates(chosen)
    sharp = np.zeros(0) if chosen is None else _selection_scale(chosen, float(limit))
    return (
        all(np.array_equal(plan.parameters[name], values) for name, values in own.items())
        and plan.lattice_bits == _bits(plan.design, float(limit))
        and plan.selection_scale.shape == sharp.shape
        and bool(np.allclose(plan.selection_scale, sharp, rtol=1e-9, atol=0))
    )


def _bits(design: Design, epsilon: float) -> int:
    """Lattice bits: vectors are moved after rounding, so that rounding costs no privacy.

    All users of a cell together are rounded by less than 2^-9 of the noise scale.
    """
    users = int(np.bincount(design.number).max())
    return max(lattice_bits(1, epsilon), _FINER + math.ceil(math.log2(users)))


def _weigh(
    occupancy: Occupancy,
    request: Request,
    cells: NDArray[np.int64],
    epsilon: float,
    chosen: Split | None,
) -> tuple[Design, Parameters, NDArray[np.float64]]:
    """Caps and the shape of the noise, each for the other, in turn: design, caps and shape."""
    who, cap = request.parts.contributions, largest_counts(occupancy, cells)
    penalty = user_clipping.ALONE if len(cells) == 1 else user_clipping.TOGETHER
    width = user_clipping.WHOLE_WIDTH if chosen is None else user_clipping.PRIVATE_RADIUS
    for _ in range(_ROUNDS):
        design = who.design(occupancy, cells, {"cap": cap})
        shape = _balance(design, request)
        loss = _NOISE * epsilon * design.largest / shape
        before, cap = (
            cap,
            user_clipping.best_caps(
                design.number, design.count, len(cells), loss, penalty=penalty, width=width
            ),
        )
        if np.array_equal(before, cap):
            return design, {"cap": cap}, shape
    design = who.design(occupancy, cells, {"cap": cap})
    return design, {"cap": cap}, _balance(design, request)


def _balance(design: Design, request: Request) -> NDArray[np.float64]:
    """Shape b of the noise with the sum over a user's cells of w/b at most 1."""
    weight = weights_of(design.occupancy, design.cells, request.weights)
    problem = Queries(design, request.statistics).problem(weight, np.ones(len(weight)))
    return balanced.solve(problem).noise_scale


def _selection_scale(chosen: Split, epsilon: float) -> NDArray[np.float64]:
    """Of the centre and of the radius: each costs two users' worth of score over it."""
    return round_scale(2 * USER / (epsilon * np.array([chosen.centre, chosen.radius])))


def _candidates(chosen: Split | None) -> Parameters:
    told = dict(MIDDLE)
    if chosen is not None:
        told = {"centres": [chosen.bins], "radii": [0, RADII], "clipped": [chosen.clipped]}
    return {name: np.array(values, dtype=np.int64) for name, values in told.items()}
