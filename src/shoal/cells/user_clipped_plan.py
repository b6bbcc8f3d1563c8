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
from shoal.cells.typical_error import typical_errors
from shoal.errors import InputError
from shoal.privacy.noise_lattice import lattice_bits, round_scale
from shoal.theory import gaussian as gaussian_noise
from shoal.theory import user_clipping
from shoal.theory.user_clipping import RADII, balancing_users, clipped_users, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.plan_facts import Status
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice
    from shoal.theory.user_clipping import Split

_ROUNDS, _FINER = 4, 8
# Of the noise's loss, what a first round has, with Laplace noise and with Gaussian noise.
_FIRST = Fraction(1, 5), Fraction(3, 10)
# Of the loss of the first radius, what that of the second round costs.
_AGAIN = 0.5
_BALLS = {"ball": "clipped", "first_ball": "first_clipped"}
# Radii that are projected onto exactly have fewer.
_MOST_BALL_BITS = 46
# Of epsilon, what the noise is planned with until the parts are known.
_NOISE = 0.8


def solve(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """The plan of user-clipped means for the given cells.

    With a delta the noise is Laplace or Gaussian, each of the same loss: whichever makes the
    smaller typical error.

    Raises:
        InputError: The loss leaves no room for noise on the lattice.
    """
    found = [
        _plan(occupancy, lattice, request, cells, status, gaussian=gaussian)
        for gaussian in request.parts.noise.gaussian
        if not gaussian or _fits(request, len(cells))
    ]
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda plan: float(typical_errors(plan).mean()))


def _plan(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
    *,
    gaussian: bool,
) -> PlanFacts:
    """The plan with one kind of noise."""
    limit = request.epsilon
    assert limit is not None
    delta = request.delta if gaussian else Fraction(0)
    epsilon = float(limit)
    member, _ = members(occupancy, cells)
    chosen = split(epsilon, len(np.unique(occupancy.user[member])), len(cells))
    rate = _planned_rate(epsilon, delta)
    design, parameters, shape = _weigh(occupancy, request, cells, rate, chosen, gaussian=gaussian)
    bits = _bits(design, epsilon, delta)
    mechanism = request.parts.mechanism(lattice)
    sharp = _selection_scale(chosen, epsilon, two_rounds=mechanism.range.has_first_round)
    queries = Queries(design, request.statistics, gaussian=gaussian)
    # Where nothing is selected, there is nothing to go around.
    first = int(mechanism.range.has_first_round and chosen is not None)
    ball, first = _balls(Losses(mechanism, queries, sharp, bits, delta, first_ball=first), limit)
    balls = {"ball": np.array([ball], dtype=np.int64)}
    if mechanism.range.has_first_round:
        balls["first_ball"] = np.array([first], dtype=np.int64)
    parameters |= balls
    parameters |= _candidates(chosen, design, epsilon, bits, balls, gaussian=gaussian)
    return PlanFacts(
        occupancy=occupancy,
        lattice=lattice,
        request=request,
        status=status,
        relative_scale=round_scale(shape * float(Fraction(2**bits, ball))),
        lattice_bits=bits,
        parameters=parameters,
        selection_scale=sharp,
        gaussian=gaussian,
        built=queries,
    )


def _fits(request: Request, cells: int) -> bool:
    """Whether the lattice that a delta needs leaves room for a ball; no delta is too large."""
    epsilon = float(request.epsilon or 0)
    bits = lattice_bits(cells, epsilon, float(request.delta))
    # Its diameter is at most sqrt(2 rho) deviations, and rho below epsilon.
    return bits + math.log2(max(2 * epsilon, 1)) / 2 <= _MOST_BALL_BITS


def _balls(losses: Losses, limit: Fraction) -> tuple[int, int]:
    """The largest radius of a ball, in steps, whose diameter the noise hides at a loss.

    And that of a first round, if the losses know of one, whose part is taken off; else 0.

    Raises:
        InputError: There is none.
    """
    left = limit - losses.selecting
    if left <= 0:
        raise _used_up()
    whole = 4**losses.bits if losses.gaussian else 2**losses.bits
    two_rounds, part = losses.first_ball > 0, _FIRST[losses.gaussian]
    if losses.gaussian:
        # rho = (2 T)^2 / (2 4^j).
        squares = math.floor(losses.limit(limit) * whole / 2)
        first = math.isqrt(math.floor(squares * part)) if two_rounds else 0
        ball = math.isqrt(squares - first**2)
    else:
        diameter = math.floor(left * whole / 2)
        first = math.floor(diameter * part) if two_rounds else 0
        ball = diameter - first
    if ball < 1 or (two_rounds and first < 1):
        raise _used_up()
    return ball, first


def _used_up() -> InputError:
    return InputError(
        "a loss that private selections use up", "a larger epsilon", "ask for a larger one"
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
    balls = {name: plan.parameters[name] for name in plan.parameters if name in _BALLS}
    bits, gaussian = plan.lattice_bits, plan.gaussian
    own = _candidates(chosen, plan.design, float(limit), bits, balls, gaussian=gaussian)
    sharp = _selection_scale(chosen, float(limit), two_rounds=plan.mechanism.range.has_first_round)
    return (
        all(np.array_equal(plan.parameters[name], values) for name, values in own.items())
        and plan.lattice_bits == _bits(plan.design, float(limit), plan.exact_delta)
        and plan.selection_scale.shape == sharp.shape
        and bool(np.allclose(plan.selection_scale, sharp, rtol=1e-9, atol=0))
    )


def _bits(design: Design, epsilon: float, delta: Fraction) -> int:
    """Lattice bits: vectors are moved after rounding, so that rounding costs no privacy.

    All users of a cell together are rounded by less than 2^-9 of the noise scale; what a lattice
    adds to delta is a millionth of it.
    """
    users = int(np.bincount(design.number).max())
    fine = max(lattice_bits(1, epsilon), _FINER + math.ceil(math.log2(users)))
    if not delta:
        return fine
    return max(fine, lattice_bits(int(np.bincount(design.user).max()), epsilon, float(delta)))


def _planned_rate(epsilon: float, delta: Fraction) -> float:
    """Loss of Laplace noise with the mean size that noise will have: planned with until known."""
    if not delta:
        return _NOISE * epsilon
    rho = gaussian_noise.rho_of(_NOISE * epsilon, float(delta))
    return math.sqrt(math.pi * rho)


def _weigh(
    occupancy: Counts,
    request: Request,
    cells: NDArray[np.int64],
    rate: float,
    chosen: Split | None,
    *,
    gaussian: bool,
) -> tuple[Design, Parameters, NDArray[np.float64]]:
    """Caps and the shape of the noise, each for the other, in turn: design, caps and shape."""
    who, cap = request.parts.contributions, largest_counts(occupancy, cells)
    penalty = user_clipping.ALONE if len(cells) == 1 else user_clipping.TOGETHER
    width = user_clipping.WHOLE_WIDTH if chosen is None else user_clipping.PRIVATE_RADIUS
    for _ in range(_ROUNDS):
        design = who.design(occupancy, cells, {"cap": cap})
        shape = _balance(design, request, gaussian=gaussian)
        loss = rate * design.largest / shape
        before, cap = (
            cap,
            user_clipping.best_caps(
                design.number, design.count, len(cells), loss, penalty=penalty, width=width
            ),
        )
        if np.array_equal(before, cap):
            return design, {"cap": cap}, shape
    design = who.design(occupancy, cells, {"cap": cap})
    return design, {"cap": cap}, _balance(design, request, gaussian=gaussian)


def _balance(design: Design, request: Request, *, gaussian: bool) -> NDArray[np.float64]:
    """Shape b of the noise with the norm of w/b over a user's cells at most 1."""
    weight = weights_of(design.occupancy, design.cells, request.weights)
    queries = Queries(design, request.statistics, gaussian=gaussian)
    scale = balanced.solve(queries.problem(weight, np.ones(len(weight)))).noise_scale
    return np.sqrt(scale) if gaussian else scale


def _selection_scale(
    chosen: Split | None, epsilon: float, *, two_rounds: bool
) -> NDArray[np.float64]:
    """Of the centre and of the radii: each costs two users' worth of score over it."""
    if chosen is None:
        return np.zeros(0)
    parts = [chosen.centre, chosen.radius, *([chosen.radius * _AGAIN] if two_rounds else [])]
    return round_scale(2 * USER / (epsilon * np.array(parts)))


def _candidates(
    chosen: Split | None,
    design: Design,
    epsilon: float,
    bits: int,
    balls: Parameters,
    *,
    gaussian: bool,
) -> Parameters:
    """Candidates, and how many users should be beyond each ball."""
    told = dict(MIDDLE) | ({_BALLS["first_ball"]: [0]} if "first_ball" in balls else {})
    if chosen is not None:
        told = {"centres": [chosen.bins], "radii": [0, RADII], "clipped": [chosen.clipped]}
        users, two_rounds = len(np.unique(design.user)), len(balls) > 1
        for name, ball in balls.items() if two_rounds or gaussian else ():
            diameter = int(ball[0]) * 2.0 ** (1 - bits)
            wanted = 3 * design.n_numbers / diameter
            if gaussian:
                wanted = balancing_users(diameter, design.n_numbers, len(design.user) / users)
            again = _AGAIN if two_rounds and name == "ball" else 1.0
            selecting = chosen.radius * epsilon * again
            told[_BALLS[name]] = [clipped_users(wanted, users, selecting)]
    return {name: np.array(values, dtype=np.int64) for name, values in told.items()}
