"""Which balls a private radius chooses from: around the centre, and moved to within the bounds.

A user whose means are all alike is beyond c +- r if they are beyond what of that lies within the
bounds. Where the bounds cut something off, the ball around the middle of the rest is smaller and
leaves no such user out (docs/theory/user-clipped.md#balls-at-the-bounds).
"""

from __future__ import annotations

import math


def radius_of(step: int, top: int) -> int:
    """Top 2^(-step/2), rounded down, at least 1: the same on every machine.

    Example:
        >>> [radius_of(step, 64) for step in range(4)]
        [64, 45, 32, 22]
    """
    return max(1, math.isqrt(top * top >> step))


def moved(centre: int, radius: int, top: int) -> tuple[int, int]:
    """Centre and radius of what c - r to c + r has in common with 0 to top.

    Example:
        >>> moved(8, 24, 64), moved(60, 10, 64), moved(32, 10, 64)
        ((16, 16), (57, 7), (32, 10))
    """
    low, high = max(centre - radius, 0), min(centre + radius, top)
    return (low + high) // 2, (high - low + 1) // 2


def balls(centre: int, first: int, end: int, top: int) -> list[tuple[int, int]]:
    """Centre and radius of every candidate, all different, the largest radius first.

    The ball of all values; each shorter radius around the centre, and moved, down to the last one.

    Args:
        centre: Within the bounds, in ticks over 2^FINE.
        first: The first step of the radii.
        end: One past the last, at least 3: two steps halve a radius.
        top: The width in the same unit.

    Example:
        >>> balls(8, 0, 4, 64)
        [(32, 32), (26, 27), (8, 22)]
    """
    around = [(centre, radius_of(step, top)) for step in range(first, end)]
    within = [moved(*each, top) for each in around]
    least, most = radius_of(end - 1, top), (top + 1) // 2
    kept = {each for each in (*around, *within) if least <= each[1] < most}
    kept.add((top // 2, most))
    return sorted(kept, key=lambda each: (-each[1], -each[0]))


def holds_all(centre: int, radius: int, top: int) -> bool:
    """Whether no vector of any values lies beyond a ball.

    Example:
        >>> holds_all(32, 32, 64), holds_all(20, 32, 64)
        (True, False)
    """
    return centre - radius <= 0 and centre + radius >= top


def before_moving(centre: int, radius: int, top: int) -> int:
    """The largest radius that a ball can have had before it was moved.

    Example:
        >>> before_moving(16, 16, 64), before_moving(57, 7, 64), before_moving(16, 10, 64)
        (32, 14, 10)
    """
    at_bound = min(abs(centre - radius), abs(centre + radius - top)) <= 1
    return 2 * radius if at_bound else radius
