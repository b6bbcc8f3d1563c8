"""Plans the user-clipped mean: caps, the shape of the noise, the ball and the selections."""

import math
from fractions import Fraction

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.estimates.typical_error import typical_errors
from shoal.cells.facts.accounting import Cost, ReleasedStatistics
from shoal.cells.facts.decision import Task
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.ranges import USER
from shoal.cells.mechanisms.user_vectors import LARGEST_BALL, MOST_PARTS, NO_SELECTION
from shoal.cells.mechanisms.weights import Parameters, Weights, capped, largest_counts, members
from shoal.errors import InputError
from shoal.privacy.law import GAUSSIAN, LAPLACE, Law
from shoal.privacy.noise_lattice import lattice_bits, round_scale
from shoal.theory import gaussian as gaussian_noise
from shoal.theory import user_clipping
from shoal.theory.allocation import balanced
from shoal.theory.user_clipping import RADII, Split, balancing_users, clipped_users, split

# Rounds in which caps and the shape of the noise are fitted to each other.
_ROUNDS = 4
# Lattice bits beyond those that number the users of a cell.
_FINER = 8
# The part of the noise's loss that a first round has, with Laplace noise and with Gaussian noise.
_FIRST_ROUND: dict[Law, Fraction] = {LAPLACE: Fraction(1, 5), GAUSSIAN: Fraction(3, 10)}
# The loss of selecting the second round's radius, as a part of the first radius's loss.
_SECOND_RADIUS = 0.5
# The part of epsilon that noise is planned with until the budget is split.
_NOISE_SHARE = 0.8


def user_clipped(task: Task) -> Facts:
    """Returns the plan of user-clipped means, with the noise of the smaller typical error."""
    plans = [_plan(task, law) for law in task.laws if _fits(task, law)]
    # Typical errors take long to simulate: a single plan needs no comparison.
    if len(plans) == 1:
        return plans[0]
    return min(plans, key=lambda plan: float(typical_errors(plan).mean()))


def _plan(task: Task, law: Law) -> Facts:
    """Returns the plan with one law of noise."""
    limit = task.request.epsilon
    method = task.method
    assert limit is not None
    epsilon = float(limit)
    delta = law.delta(task.delta)
    two_rounds = "first_ball" in method.range.limits
    member, _ = members(task.counts, task.cells)
    users = int(np.count_nonzero(np.bincount(task.counts.user[member])))
    budget = split(epsilon, users, len(member), len(task.cells), task.counting)
    weights, cap, shape = _weighted(task, _planned_rate(epsilon, delta), budget, law)
    bits = _bits(weights, epsilon, delta)
    selection_scale = _selection_scale(budget, epsilon, two_rounds=two_rounds)
    numbers = ReleasedStatistics(weights, task.request.kinds, law=law)
    # Without private selections there is a single round.
    has_first_round = two_rounds and budget is not None
    excess = {"excess": _excess(budget.excess * epsilon if budget else 0.0)}
    # The cost of selections needs only to know whether there is a first ball.
    provisional = excess | {"first_ball": np.array([int(has_first_round)], dtype=np.int64)}
    cost = Cost(numbers, method.range, provisional, selection_scale, bits, delta)
    ball, first_ball = _balls(cost, limit, two_rounds=has_first_round)
    balls = {"ball": ball}
    if two_rounds:
        balls["first_ball"] = first_ball
    parameters = {name: np.array([size], dtype=np.int64) for name, size in balls.items()}
    parameters |= excess | _candidates(budget, weights, epsilon, bits, balls, law)
    # A norm of 1 in units of `shape` is the radius of the ball, and a noise scale is 2^bits steps.
    scale = round_scale(shape * float(Fraction(2**bits, ball)))
    chosen = task.decide(
        scale,
        bits,
        parameters={"cap": cap, **parameters},
        selection_scale=selection_scale,
        law=law,
    )
    return Facts(task.counts, task.request, chosen)


def _excess(epsilon: float) -> Ints:
    """Returns in how many parts a user's excess is counted and the bits of its noise, or zeros.

    The loss of the excess is its parts divided by 2^bits, which is at most this epsilon.
    """
    if not epsilon:
        return np.zeros(2, dtype=np.int64)
    # With these bits there are between half of the most parts and all of them.
    bits = max(math.ceil(math.log2(MOST_PARTS / 2 / epsilon)), 1)
    parts = min(math.floor(epsilon * 2**bits), MOST_PARTS)
    return np.array([parts, bits])


def _fits(task: Task, law: Law) -> bool:
    """Returns whether the lattice that a delta needs is coarse enough for a ball on it."""
    delta = law.delta(task.delta)
    if not delta:
        return True
    epsilon = float(task.request.epsilon or 0)
    bits = lattice_bits(len(task.cells), epsilon, float(delta))
    # The diameter of the ball is at most sqrt(2 rho) deviations, and rho is below epsilon.
    return bits + math.log2(max(2 * epsilon, 1)) / 2 <= math.log2(LARGEST_BALL)


def _balls(cost: Cost, limit: Fraction, *, two_rounds: bool) -> tuple[int, int]:
    """Returns the radii, in lattice steps, of the largest balls that noise hides.

    The ball of the only or second round comes first, then that of a first round, 0 without one.
    """
    law = cost.released.law
    part_of_first = _FIRST_ROUND[law] if two_rounds else Fraction(0)
    # A ball of radius T has the loss 2 T/2^bits, or rho = (2 T)^2/(2 4^bits): these powers of both
    # radii are shared.
    powers = math.floor(cost.allowed(limit) * 2 ** (law.power * cost.bits) / 2)
    first = law.whole_root(math.floor(powers * part_of_first))
    ball = law.whole_root(powers - first**law.power)
    if ball < 1 or (two_rounds and first < 1):
        raise InputError("finding a private range uses up epsilon", "ask for a larger epsilon")
    return ball, first


def _bits(weights: Weights, epsilon: float, delta: Fraction) -> int:
    """Returns lattice bits at which rounding is far below the noise and hardly adds to delta."""
    users = int(np.bincount(weights.cell).max())
    fine = max(lattice_bits(1, epsilon), _FINER + math.ceil(math.log2(users)))
    if not delta:
        return fine
    return max(fine, lattice_bits(int(np.bincount(weights.user).max()), epsilon, float(delta)))


def _planned_rate(epsilon: float, delta: Fraction) -> float:
    """Returns the epsilon of Laplace noise of about the same mean size as the plan's noise.

    The plan's noise is Laplace noise itself or, with a delta, Gaussian.
    """
    if not delta:
        return _NOISE_SHARE * epsilon
    rho = gaussian_noise.rho_of(_NOISE_SHARE * epsilon, float(delta))
    return math.sqrt(math.pi * rho)


def _weighted(
    task: Task, rate: float, budget: Split | None, law: Law
) -> tuple[Weights, Ints, Floats]:
    """Returns weights, caps and the shape of the noise; caps and shape are fitted to each other.

    `rate` is the loss of Laplace noise as large as the noise will be.
    """
    # The first round caps nobody.
    cap = largest_counts(task.counts, task.cells)
    penalty = user_clipping.ALONE if len(task.cells) == 1 else user_clipping.TOGETHER
    width = user_clipping.WHOLE_WIDTH if budget is None else user_clipping.PRIVATE_RADIUS
    for _ in range(_ROUNDS):
        weights = capped(task.counts, task.cells, cap)
        shape = _balanced(task, weights, law)
        loss = rate * weights.largest / shape
        before = cap
        cap = caps.of_vectors(
            weights.cell, weights.count, len(task.cells), loss, penalty=penalty, width=width
        )
        if np.array_equal(before, cap):
            return weights, cap, shape
    weights = capped(task.counts, task.cells, cap)
    return weights, cap, _balanced(task, weights, law)


def _balanced(task: Task, weights: Weights, law: Law) -> Floats:
    """Returns noise scales with which the norm of weight/scale over a user's cells is at most 1."""
    numbers = ReleasedStatistics(weights, task.request.kinds, law=law)
    problem = numbers.problem(task.importance, np.ones(len(task.cells)))
    return law.root(balanced(problem).noise_scale)


def _selection_scale(budget: Split | None, epsilon: float, *, two_rounds: bool) -> Floats:
    """Returns the noise scales of the selections of centre and radii.

    A selection with scale s has the loss 2 USER/s.
    """
    if budget is None:
        return np.zeros(0)
    parts = [budget.centre, budget.radius]
    if two_rounds:
        parts.append(budget.radius * _SECOND_RADIUS)
    return round_scale(2 * USER / (epsilon * np.array(parts)))


def _candidates(
    budget: Split | None,
    weights: Weights,
    epsilon: float,
    bits: int,
    balls: dict[str, int],
    law: Law,
) -> Parameters:
    """Returns the candidates of the selections, and how many users should be beyond each ball."""
    two_rounds = len(balls) > 1
    candidates = dict(NO_SELECTION)
    if two_rounds:
        candidates["first_clipped"] = [0]
    if budget is not None:
        candidates |= {"centres": [budget.bins], "radii": [0, RADII], "clipped": [budget.clipped]}
    # The budget's number is for one round of Laplace noise.
    is_gaussian = law is GAUSSIAN
    if budget is not None and (two_rounds or is_gaussian):
        names = {"ball": "clipped", "first_ball": "first_clipped"}
        users = weights.n_users
        for name, radius in balls.items():
            # In noise scales.
            diameter = radius * 2.0 ** (1 - bits)
            wanted = 3 * weights.n_cells / diameter
            if is_gaussian:
                wanted = balancing_users(diameter, weights.n_cells, len(weights.user) / users)
            selecting = budget.radius * epsilon
            if two_rounds and name == "ball":
                selecting *= _SECOND_RADIUS
            beyond = clipped_users(wanted, users, selecting, epsilon * users)
            candidates[names[name]] = [beyond]
    return {name: np.array(values, dtype=np.int64) for name, values in candidates.items()}
