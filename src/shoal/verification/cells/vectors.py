"""What the second opinion knows of users' vectors: candidates, the ball, and where they can lie.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from shoal.verification.cells.facts import Facts

# Parameters that all cells have in common.
VECTORS = ("centres", "radii", "clipped", "ball")
# And those of a first round, where there are two.
FIRST = ("first_clipped", "first_ball")
_RADII, _FINER, _LARGEST_BALL = 25, 8, 2**46
# What two users count for in a selection.
_WORTH = 2 * 2**16
# Scales have 24 bits and are rounded upwards.
_SHORT = 1e-6


def selections(parameters: dict[str, list[int]]) -> int:
    """How many private selections there are: of a centre and a radius, or none.

    Raises:
        ValueError: More radii than there are, or other numbers of parameters.
    """
    [bins], (first, end) = parameters["centres"], parameters["radii"]
    if not 0 <= first < end <= _RADII:
        # Lies must not keep the verifier busy.
        raise ValueError
    found = 2 if bins > 1 or end - first > 1 else 0
    return found + 1 if has_first_round(parameters) else found


def has_first_round(parameters: dict[str, list[int]]) -> bool:
    """Whether a first round finds the centres of cells.

    Raises:
        ValueError: Another number of balls than one.
    """
    [ball] = parameters.get(FIRST[1], [0])
    return ball != 0


def candidates_hold(told: dict[str, list[int]], facts: Facts, scales: Sequence[Fraction]) -> bool:
    """Whether candidates, rank and lattice follow from counts and epsilon, with a ball to add up.

    Intervals rest on how many users are beyond which radius, on how sharply it was selected, and on
    how finely sums are rounded.

    Args:
        told: The parameters.
        facts: Counts and noise.
        scales: Of the selections of centre and radius.
    """
    if [len(told[name]) for name in VECTORS] != [1, 2, 1, 1] or facts.epsilon is None:
        return False
    if any(len(told[name]) != 1 for name in FIRST if name in told):
        return False
    if has_first_round(told):
        return _rounds_hold(told, facts, scales)
    if FIRST[0] in told and (told[FIRST[0]] != [0] or len(scales) > 0):
        # Where centre and radius are selected there is a first round.
        return False
    [bins], radii, [clipped], [ball] = (told[name] for name in VECTORS)
    users, most = len(set(facts.member_user.tolist())), max(map(len, facts.counts))
    # Two vectors of the ball are as far apart as so many deviations of Gaussian noise.
    apart = ball / 2.0 ** (facts.bits - 1) if facts.gaussian else 0.0
    own = _expected(
        float(facts.epsilon), users, len(facts.released), len(facts.member) / users, apart
    )
    return (
        (bins, radii) == own[:2]
        and len(scales) == len(own[3])
        and all(
            math.isclose(each, _WORTH / wanted, rel_tol=_SHORT)
            for each, wanted in zip(scales, own[3], strict=True)
        )
        # A product of floating-point numbers, rounded down.
        and abs(clipped - own[2]) <= 1
        and 1 <= ball <= _LARGEST_BALL
        and _fine(facts.bits, most)
    )


def _fine(bits: int, most: int) -> bool:
    """Whether sums of so many users are rounded by hardly anything of the noise."""
    return bits >= _FINER + (most - 1).bit_length()


def _rounds_hold(told: dict[str, list[int]], facts: Facts, scales: Sequence[Fraction]) -> bool:
    """The same of two rounds: the second radius costs half of what the first one does."""
    users, cells = len(set(facts.member_user.tolist())), len(facts.released)
    epsilon, most = float(facts.epsilon or 0), max(map(len, facts.counts))
    bins, radii, _, parts = _expected(epsilon, users, cells, len(facts.member) / users, 0.0)
    if not parts or ([bins], radii) != (told["centres"], told["radii"]):
        return False
    wanted, ranks = [*parts, parts[1] / 2], []
    for name, loss in (("first_ball", parts[1]), ("ball", parts[1] / 2)):
        rate = told[name][0] / 2.0 ** (facts.bits - 1)
        if facts.gaussian:
            rate *= math.sqrt(math.pi / 2 * len(facts.member) / users)
        if not 1 <= told[name][0] <= _LARGEST_BALL:
            return False
        ranks.append(max(1, int(min(0.35 * users, max(3 * cells / rate, 10 / loss)))))
    stated = [told["first_clipped"][0], told["clipped"][0]]
    if not _shared(told["first_ball"][0], told["ball"][0], gaussian=facts.gaussian):
        return False
    return (
        len(scales) == len(wanted)
        and all(
            math.isclose(each, _WORTH / part, rel_tol=_SHORT)
            for each, part in zip(scales, wanted, strict=True)
        )
        and all(abs(one - other) <= 1 for one, other in zip(stated, ranks, strict=True))
        and _fine(facts.bits, most)
    )


def _shared(first: int, second: int, *, gaussian: bool) -> bool:
    """Whether the first ball has a fifth of all, or three tenths of the squares, rounded down."""
    if gaussian:
        squares = second**2 + first**2
        return 10 * first**2 <= 3 * (squares + 2 * second) and 3 * squares < 10 * (first + 1) ** 2
    return first == (first + second) // 5


def _expected(
    epsilon: float, users: int, cells: int, each: float, apart: float
) -> tuple[int, list[int], int, tuple[float, ...]]:
    """Bins of the centre, radii, how many users are to be beyond, and losses of both selections.

    docs/theory/user-clipped.md#parts-of-the-budget. A user has `each` cells in the mean; `apart` is
    0 with Laplace noise.
    """
    everyone = epsilon * users
    if everyone < (60 if cells == 1 else 75):
        return 1, [2, 3], 0, ()
    rate = math.sqrt(0.3 / cells)
    radius = min(0.25, max(rate / (1 + rate), 25 / everyone))
    centre = min(0.2, 40 / everyone)
    noise = epsilon * (1 - radius - centre)
    balance = 3 * cells / noise
    if apart:
        # Laplace noise of this size would cost 1.25 times as much; l1 is sqrt(each) times l2.
        balance = 3 * cells / (apart / math.sqrt(2 / math.pi)) / math.sqrt(each)
    clipped = max(1, int(min(0.35 * users, max(balance, 10 / (epsilon * radius)))))
    bins = 1 << (max(8, min(1024, int(everyone / 2))).bit_length() - 1)
    return bins, [0, _RADII], clipped, (epsilon * centre, epsilon * radius)


def can_lie(low: int, high: int, top: int, told: dict[str, list[int]]) -> bool:
    """Whether a centre is the middle of a bin, and what lies above it a radius.

    Or the ball was moved: it is what the bounds leave of a candidate.
    """
    [bins], (first, end) = told["centres"], told["radii"]
    radii = [max(1, math.isqrt(top * top // 2**step)) for step in range(first, end)]
    if has_first_round(told):
        # A first round may put a cell's centre anywhere.
        return high - low in radii and low <= top
    radius, most = high - low, (top + 1) // 2
    if (low, radius) == (top // 2, most):
        # The ball of all values.
        return True
    if not radii[-1] <= radius < most:
        return False
    if radius in radii and _middle(low, bins, top):
        return True
    # Of what is cut off at one bound, the other end tells the centre.
    ends = [(low + each, way) for each in (-radius, radius) for way in (-1, 1)]
    guesses = {end + way * each + off for end, way in ends for each in radii for off in (-1, 0, 1)}
    own = [guess for guess in guesses if _middle(guess, bins, top)]
    return any(_within(centre, each, top) == (low, radius) for centre in own for each in radii)


def _middle(centre: int, bins: int, top: int) -> bool:
    """Whether this is the middle of a bin, rounded downwards."""
    near = centre * bins // top
    return any(
        0 <= place < bins and centre == (2 * place + 1) * top // (2 * bins)
        for place in (near - 1, near, near + 1)
    )


def _within(centre: int, radius: int, top: int) -> tuple[int, int]:
    """Middle and half length of what the bounds leave, rounded downwards and upwards."""
    low, high = max(centre - radius, 0), min(centre + radius, top)
    return (low + high) // 2, (high - low + 1) // 2
