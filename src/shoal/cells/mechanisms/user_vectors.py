"""Clips users' whole vectors to a private ball (docs/theory/cells.md#user-clipped-mean)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from shoal.arrays import Floats, Ints, add
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans
from shoal.cells.mechanisms.ranges import MOST_USERS, USER, Range, centre_of
from shoal.cells.mechanisms.weights import Limit, Parameters, Weights
from shoal.privacy.law import LAPLACE, Law
from shoal.privacy.noise import MOST_BITS, Counted, Noise
from shoal.theory.projections import Ball
from shoal.theory.user_clipping import RADII

# The largest radius of a ball in lattice steps.
LARGEST_BALL = 1 << 46
# The most parts in which the excess of one user is counted.
MOST_PARTS = 1 << 11
# Without a selection the ball holds every vector: half of the width around its middle.
NO_SELECTION: Mapping[str, list[int]] = {"centres": [1], "radii": [2, 3], "clipped": [0]}
# A user of whom the ball cuts off more radii is far; of others at most one radius is counted.
FAR = 4
# A factor with which the rounded votes of a user add up to at most USER.
_BELOW_ONE = 1 - 2.0**-40


@dataclass(frozen=True)
class CentreAndRadius(Range):
    """Selects a centre of users' means, and a radius around it that leaves some users outside.

    Parameters: `centres` is the number of candidates of the centre, equal bins of the width U;
    `radii` has the first j of the radii U 2^(-j/2) and one past the last; `clipped` is the number
    of users who should be outside; `ball` is the radius in lattice steps; `excess` has the parts of
    a user's excess and the bits of its noise, or 0 and 0.
    """

    limits: ClassVar[Mapping[str, Limit]] = {
        "centres": Limit(1, 1, USER),
        "radii": Limit(2, 0, RADII),
        "clipped": Limit(1, 0, MOST_USERS),
        "ball": Limit(1, 1, LARGEST_BALL),
        "excess": Limit(2, 0, (MOST_PARTS, MOST_BITS)),
    }
    selects = "for all"
    of_vectors = True
    rounds = 1

    def fits(self, parameters: Parameters) -> bool:
        """Returns whether there is a radius of at most half the width, and parts have bits."""
        first, end = parameters["radii"].tolist()
        parts, bits = excess_of(parameters)
        return bool(first < end and end > 2 and (parts > 0) == (0 < bits < MOST_BITS))

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Returns 2, for centre and radius; 0 if there is one candidate of each."""
        first, end = parameters["radii"]
        return 2 if parameters["centres"][0] > 1 or end - first > 1 else 0

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """Returns the width divided by the shortest radius, rounded upwards."""
        return -(-top // radius_of(int(parameters["radii"][1]) - 1, top))

    def score_sensitivity(self, weights: Weights) -> int:
        """Returns USER, the most that one user counts for in either selection."""
        return USER


@dataclass(frozen=True)
class TwoRounds(CentreAndRadius):
    """Finds a centre for every cell by a first round, and selects one radius around all of them.

    `first_clipped` and `first_ball` belong to the first round; they are 0 if users are too few for
    selections.
    """

    limits: ClassVar[Mapping[str, Limit]] = {
        **CentreAndRadius.limits,
        "first_clipped": Limit(1, 0, MOST_USERS),
        "first_ball": Limit(1, 0, LARGEST_BALL),
    }

    def fits(self, parameters: Parameters) -> bool:
        """Returns whether there are selections and a first round, or neither."""
        selects = super().selections(parameters, 0) > 0
        first = ball_of(parameters, "first_ball") > 0
        return super().fits(parameters) and selects == first

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Returns 3: for centre and radius of the first round, and the radius of the second."""
        in_one_round = super().selections(parameters, cells)
        return in_one_round + 1 if ball_of(parameters, "first_ball") else in_one_round


def ball_of(parameters: Parameters, name: str = "ball") -> int:
    """Returns the radius of a ball of users' vectors in lattice steps; 0 if there is none."""
    return int(parameters[name][0]) if name in parameters else 0


def excess_of(parameters: Parameters) -> tuple[int, int]:
    """Returns the parts in which a user's excess is counted and the bits of its noise, or zeros."""
    parts, bits = parameters.get("excess", np.zeros(2)).tolist()
    return int(parts), int(bits)


def excess_unit(ball: int, users: int, members: int, law: Law) -> float:
    """Returns the lattice steps that count as one radius of what is cut off from a user: public.

    A user's deviations are added over all its cells. With Gaussian noise a radius is the root of
    the sum of their squares, and the sum is larger by the root of the number of cells: that of the
    average user is taken.
    """
    return ball * law.spread(members / users)


def radius_of(step: int, top: int) -> int:
    """Returns top 2^(-step/2), rounded down, at least 1: the same on every machine."""
    return max(1, math.isqrt(top * top >> step))


def moved(centre: int, radius: int, top: int) -> tuple[int, int]:
    """Returns centre and radius of the part of a ball that lies within 0 to top."""
    low = max(centre - radius, 0)
    high = min(centre + radius, top)
    return (low + high) // 2, (high - low + 1) // 2


def balls(centre: int, first: int, end: int, top: int) -> list[tuple[int, int]]:
    """Returns centre and radius of every candidate ball, each once, the largest radius first.

    Source: docs/theory/cells.md#centre-radius-and-noise.
    """
    around = [(centre, radius_of(step, top)) for step in range(first, end)]
    # A ball that reaches beyond the bounds is tried as a whole, and only its part within them.
    within = [moved(*each, top) for each in around]
    shortest = radius_of(end - 1, top)
    half_width = (top + 1) // 2
    found = [*around, *within]
    kept = {(radius, place) for place, radius in found if shortest <= radius < half_width}
    # A radius of half the width or more holds every vector: one such ball is enough.
    kept.add((half_width, top // 2))
    return [(place, radius) for radius, place in sorted(kept, reverse=True)]


def bin_scores(place: Ints, vote: Ints, bins: int) -> Ints:
    """Returns -max(below - all/2, all/2 - upto, 0) of each bin, rounded to whole numbers.

    `below` counts the votes below a bin, `upto` those below its upper edge, and `all` is the public
    number of all votes.
    """
    inside = np.bincount(place, vote, minlength=bins).astype(np.int64)
    upto = np.cumsum(inside)
    all_votes = int(vote.sum())
    # Half of all votes is rounded in the same way for all values, so no score moves by more.
    beyond = np.maximum(2 * (upto - inside) - all_votes, all_votes - 2 * upto) // 2
    return np.asarray(-np.maximum(beyond, 0))


def rank_scores(beyond: Ints, wanted: int, everyone: int) -> Ints:
    """Returns each ball's score, in units of 1/USER, by how many users are beyond it.

    With K_j users beyond ball j and k `wanted`, it is -max(K_j - k, k - min(K_i : i > j), 0), and
    at least -MOST_USERS.
    """
    # The fewest users beyond a ball or any later one.
    fewest = np.minimum.accumulate(beyond[::-1])[::-1]
    # After the last ball there is none, so that the second term is 0 at most.
    after = np.append(fewest[1:], everyone + wanted)
    distance = np.clip(np.maximum(beyond - wanted, wanted - after), 0, MOST_USERS)
    return np.asarray(-USER * distance)


@dataclass(frozen=True, eq=False)
class UserVectors:
    """Users' deviations from the centres in lattice steps (docs/theory/cells.md#user-clipped-mean).

    User l in cell g with weight w_gl and mean mu_gl has X_gl = round(w_gl (mu_gl - c)/(D step_g)),
    with centre c and radius D. Each number follows from one user's mean and public facts alone, so
    that the order of rows, the engine and threads do not change it.
    """

    private: PrivateMeans = field(repr=False)
    parameters: Parameters
    step: Floats
    law: Law = LAPLACE

    @property
    def weights(self) -> Weights:
        """Weights of the users: public."""
        return self.private.weights

    @cached_property
    def reach(self) -> Floats:
        """Weight of each member divided by its cell's lattice step: public."""
        weights = self.weights
        share = weights.weight / weights.total[weights.cell]
        return np.asarray(share / self.step[weights.cell])

    def votes(self) -> Ints:
        """Returns each member's part of its user's vote, in proportion to its reach: public.

        Votes are in units of 1/USER of a user.
        """
        reach = self.reach
        user = self.weights.user
        part = reach / np.bincount(user, reach)[user]
        return np.floor(part * (USER * _BELOW_ONE)).astype(np.int64)

    def vectors(self, centre: Ints, radius: int) -> Ints:
        """Returns every member's deviation X for centres and a radius in units of 2^-FINE ticks."""
        distance = self.private.means - centre[self.weights.cell]
        return np.rint(self.reach * (distance / radius)).astype(np.int64)

    def select(self, scale: Floats, noise: Noise) -> Interval:
        """Selects a ball, and returns for every cell the interval from its centre to its edge."""
        top = self.private.top
        bins = int(self.parameters["centres"][0])
        first, end = self.parameters["radii"].tolist()
        # Without selections there is one bin, and the first ball holds the whole width.
        selects = len(scale) > 0
        chosen_bin = 0
        if selects:
            bin_of_member = np.minimum(self.private.means * bins // top, bins - 1)
            scores = bin_scores(bin_of_member, self.votes(), bins)
            chosen_bin = noise.select(scores, float(scale[0]), 0)
        candidates = balls(centre_of(chosen_bin, bins, top), first, end, top)
        chosen_ball = 0
        if selects:
            scores = self._rank_scores([(self._all(each), radius) for each, radius in candidates])
            chosen_ball = noise.select(scores, float(scale[1]), 1)
        centre, radius = candidates[chosen_ball]
        return Interval(self._all(centre), self._all(centre + radius))

    def select_around(self, centres: Ints, scale: float, noise: Noise) -> Interval:
        """Selects a radius, and returns every cell's interval from its centre to its edge."""
        first, end = self.parameters["radii"].tolist()
        radii = [radius_of(step, self.private.top) for step in range(first, end)]
        scores = self._rank_scores([(centres, radius) for radius in radii])
        return Interval(centres, centres + radii[noise.select(scores, scale, 2)])

    def steps(self, chosen: Interval) -> tuple[list[int], Counted]:
        """Returns each cell's exact lattice number, and the excess of all users.

        The excess has what the ball cuts off below, what it cuts off above, and far users, all
        counted in parts. One user counts for at most all parts of one radius, or, if it is far, for
        all parts of the last number alone.
        """
        centre = chosen.low
        radius = int(chosen.width[0])
        weights = self.weights
        vector = self.vectors(centre, radius)
        clipped = self._ball.project(vector, weights.user, ball_of(self.parameters))
        total = add(weights.cell, clipped, weights.n_cells)
        # The centre itself, in lattice steps from the lower bound.
        start = np.rint((centre / radius) / self.step).astype(np.int64)
        return [int(x) for x in start + total], self._excess(vector, clipped)

    def _excess(self, vector: Ints, clipped: Ints) -> Counted:
        """Returns the parts of all users' excess below and above, and those of far users."""
        user = self.weights.user
        ball = ball_of(self.parameters)
        unit = excess_unit(ball, self.weights.n_users, len(user), self.law)
        parts, _ = excess_of(self.parameters)
        is_far = self._ball.norms(np.abs(vector), user) > (FAR + 1) * ball
        # These sums are in floating point, which no sum of one user's deviations overflows.
        most = (FAR + 1) * ball
        below = np.bincount(user, np.clip(clipped - vector, 0, most))
        above = np.bincount(user, np.clip(vector - clipped, 0, most))
        # One radius counts all parts, and more no more.
        parts_a_step = np.where(is_far, 0.0, parts / np.maximum(below + above, unit))
        parts_below = np.minimum(np.ceil(below * parts_a_step), parts)
        parts_above = np.minimum(np.ceil(above * parts_a_step), parts - parts_below)
        return int(parts_below.sum()), int(parts_above.sum()), parts * int(is_far.sum())

    def _all(self, centre: int) -> Ints:
        """Returns the same centre for every cell."""
        return np.full(self.weights.n_cells, centre)

    def _rank_scores(self, candidates: list[tuple[Ints, int]]) -> Ints:
        """Returns the scores of balls, (centres, radius), by how many users are beyond each."""
        # Users' norms by their centres, at which several balls may lie.
        norms: dict[bytes, Ints] = {}
        beyond = []
        for centres, radius in candidates:
            key = centres.tobytes()
            if key not in norms:
                # The norm of each user for a radius of the whole width; 0 for users in no cell.
                distance = np.abs(self.vectors(centres, self.private.top))
                norms[key] = self._ball.norms(distance, self.weights.user)
            size = ball_of(self.parameters) * radius // self.private.top
            # The slack for rounding is at most a 64th of the ball.
            is_beyond = norms[key] > size + np.minimum(self._slack, size >> 6)
            beyond.append(int(is_beyond.sum()))
        users = self.weights.n_users
        wanted = int(self.parameters["clipped"][0])
        return rank_scores(np.array(beyond, dtype=np.int64), wanted, users)

    @cached_property
    def _slack(self) -> Ints:
        """The most that rounding adds to a user's norm: users at a bound are not beyond a ball."""
        return np.bincount(self.weights.user) // 2 + 1

    @property
    def _ball(self) -> Ball:
        """The ball of the norm that belongs to the noise."""
        return self.law.ball
