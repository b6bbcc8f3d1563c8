"""A private centre for all cells, and a private radius around it for users' whole vectors.

Every user's vector of weighed deviations from the centre, in units of the noise of each cell, is
moved into an l1 ball. The noise hides what is in the ball, wherever a vector points, so that nobody
pays for standing at the edge of a range in all of its cells at once (docs/theory/user-clipped.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.ranges.balls import balls, radius_of
from shoal.cells.ranges.base import RangeRule
from shoal.cells.ranges.one_interval import USER
from shoal.theory.user_clipping import RADII

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design

_LARGEST_BALL = 1 << 46
# The step of half of the width, which is the radius of the ball of all values.
_HALF = 2
# Ranks are cut here, so that scores in 1/USER of a user stay whole 64-bit numbers.
_MOST_USERS = 1 << 40
# Without a selection the ball holds every vector: half of the width around its middle.
MIDDLE: Mapping[str, list[int]] = {"centres": [1], "radii": [2, 3], "clipped": [0]}


@dataclass(frozen=True)
class CentreAndRadius(RangeRule):
    """The centre of users' means by rank, and the rank of their vectors' norms around it.

    Parameters: `centres`, candidates of the centre, equal bins of the width U; `radii`, the first
    and one past the last j of the radii U 2^(-j/2); `clipped`, how many users should be outside;
    `ball`, the radius in lattice steps.
    """

    title = "a centre and a radius of users' vectors"
    selects = "for all"
    of_vectors = True
    rounds = 1
    least: ClassVar[Mapping[str, int]] = {"centres": 1, "radii": 0, "clipped": 0, "ball": 1}

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Candidates that there can be, and a ball that leaves room for sums."""
        bins, radii, clipped, ball = (parameters[name] for name in CentreAndRadius.least)
        shapes = [each.shape for each in (bins, radii, clipped, ball)]
        return bool(
            shapes == [(1,), (2,), (1,), (1,)]
            and 1 <= bins[0] <= USER
            and 0 <= radii[0] < radii[1] <= RADII
            and radii[1] > _HALF
            and 0 <= clipped[0] <= _MOST_USERS
            and 1 <= ball[0] <= _LARGEST_BALL
        )

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Centre and radius; none if there is one candidate of each."""
        first, end = parameters["radii"]
        return 2 if parameters["centres"][0] > 1 or end - first > 1 else 0

    def ball(self, parameters: Parameters) -> int:
        """Radius of the l1 ball of users' vectors, in lattice steps."""
        return int(parameters["ball"][0])

    def most_narrowing(self, parameters: Parameters, top: int) -> int:
        """The width over the shortest radius."""
        return -(-top // radius_of(int(parameters["radii"][1]) - 1, top))

    def score_sensitivity(self, design: Design) -> int:
        """One user counts for at most USER in either selection."""
        return USER


def centre_of(place: int, bins: int, top: int) -> int:
    """The middle of a bin of [0, top].

    Example:
        >>> [centre_of(place, 4, 64) for place in range(4)]
        [8, 24, 40, 56]
    """
    return (2 * place + 1) * top // (2 * bins)


def can_be(low: int, high: int, parameters: Parameters, top: int) -> bool:
    """Whether a ball's centre and what lies a radius above it are those of a candidate.

    Args:
        low: The centre, in ticks over 2^FINE.
        high: A radius above it.
        parameters: Of the rule.
        top: The width in the same unit.
    """
    bins, (first, end) = int(parameters["centres"][0]), parameters["radii"].tolist()
    return any(
        (low, high - low) in balls(centre, first, end, top)
        for centre in _centres_of(low, high, bins, radii(first, end, top), top)
    )


def _centres_of(low: int, high: int, bins: int, radii: list[int], top: int) -> set[int]:
    """Centres that the ball may have been moved from: a radius from one end of it, or its own."""
    away = [high - low - radius + off for radius in radii for off in (-1, 0, 1)]
    guesses = {low, *(low + each for each in away), *(low - each for each in away)}
    near = {guess * bins // top + off for guess in guesses for off in (-1, 0, 1)}
    middles = {centre_of(place, bins, top) for place in near if 0 <= place < bins}
    # Any centre has the ball of all values among its candidates.
    return (middles & guesses) | {centre_of(0, bins, top)}


def radii(first: int, end: int, top: int) -> list[int]:
    """The radii of a first round and around the centres of cells, the largest first."""
    return [radius_of(step, top) for step in range(first, end)]


def radius_can_be(low: int, high: int, parameters: Parameters, top: int) -> bool:
    """Whether what lies above a place of the range is a candidate of the radius.

    Args:
        low: The place, in ticks over 2^FINE.
        high: A radius above it.
        parameters: Of the rule.
        top: The width in the same unit.
    """
    first, end = parameters["radii"].tolist()
    return low <= top and high - low in radii(first, end, top)


def bin_scores(place: NDArray[np.int64], vote: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """-max(B - W/2, W/2 - A, 0) of each bin, rounded to whole numbers.

    B are the votes below a bin, A those below its upper edge, W all votes, which are public. One
    user moves A, B and so the score by at most its own votes.

    Example:
        >>> bin_scores(np.array([0, 1, 1]), np.array([4, 4, 4]), 3).tolist()
        [-2, 0, -6]
    """
    inside = np.bincount(place, vote, minlength=bins).astype(np.int64)
    upto = np.cumsum(inside)
    whole = int(vote.sum())
    # W/2 is rounded the same way for all values, so that nothing moves by more.
    beyond = np.maximum(2 * (upto - inside) - whole, whole - 2 * upto) // 2
    return np.asarray(-np.maximum(beyond, 0))


def rank_scores(beyond: NDArray[np.int64], wanted: int, everyone: int) -> NDArray[np.int64]:
    """-max(K_j - k, k - min(K_i : i > j), 0) in 1/USER, with no end behind the last ball.

    K_j users are beyond ball j; one user moves each K_j, and so a least one, by at most 1. If all
    values are equal the smallest ball wins.

    Example:
        >>> (rank_scores(np.array([0, 1, 5]), 2, 9) // USER).tolist()
        [-1, 0, -3]
    """
    least = np.minimum.accumulate(beyond[::-1])[::-1]
    after = np.append(least[1:], everyone + wanted)
    away = np.clip(np.maximum(beyond - wanted, wanted - after), 0, _MOST_USERS)
    return np.asarray(-USER * away)
