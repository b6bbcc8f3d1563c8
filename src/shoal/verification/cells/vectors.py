"""What the second opinion knows of users' vectors: candidates, the ball, and where they can lie.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.verification.cells.facts import Facts

# Parameters that all cells have in common.
VECTORS = ("centres", "radii", "clipped", "ball")
_RADII, _MOST_BINS, _LARGEST_BALL = 25, 2**16, 2**46


def selections(parameters: dict[str, list[int]]) -> int:
    """How many private selections there are: of a centre and a radius, or none.

    Raises:
        ValueError: More radii than there are, or other numbers of parameters.
    """
    [bins], (first, end) = parameters["centres"], parameters["radii"]
    if not 0 <= first < end <= _RADII:
        # Lies must not keep the verifier busy.
        raise ValueError
    return 2 if bins > 1 or end - first > 1 else 0


def candidates_hold(told: dict[str, list[int]], facts: Facts) -> bool:
    """Whether there are candidates, a rank that users can have, and a ball that sums allow."""
    if [len(told[name]) for name in VECTORS] != [1, 2, 1, 1]:
        return False
    [bins], (first, end), [clipped], [ball] = (told[name] for name in VECTORS)
    users = len(set(facts.member_user.tolist()))
    return (
        1 <= bins <= _MOST_BINS
        and 0 <= first < end <= _RADII
        and clipped <= users
        and 1 <= ball <= _LARGEST_BALL
    )


def can_lie(low: int, high: int, top: int, told: dict[str, list[int]]) -> bool:
    """Whether a centre is the middle of a bin, and what lies above it a radius."""
    [bins], (first, end) = told["centres"], told["radii"]
    radii = {max(1, math.isqrt(top * top // 2**step)) for step in range(first, end)}
    near = low * bins // top
    middles = {
        (2 * place + 1) * top // (2 * bins) for place in (near - 1, near) if 0 <= place < bins
    }
    return high - low in radii and low in middles
