"""Users' whole vectors, clipped to a private ball (docs/theory/cells.md#user-clipped-mean)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from shoal.arrays import Floats, Ints, add
from shoal.cells.mechanisms.private_sums import Interval, PrivateMeans
from shoal.cells.mechanisms.ranges import USER, Range, centre_of
from shoal.cells.mechanisms.weights import Parameters, Weights
from shoal.privacy.noise import MOST_BITS, Noise, Pair
from shoal.theory.projections import L1, L2, Ball

LARGEST_BALL = 1 << 46
# Parts in which the excesses of one user are counted, at most.
MOST_PARTS = 1 << 11
# Ranks are cut here, so that scores in 1/USER of a user stay whole 64-bit numbers.
MOST_USERS = 1 << 40
# Without a selection the ball holds every vector: half of the width around its middle.
NO_SELECTION: Mapping[str, list[int]] = {"centres": [1], "radii": [2, 3], "clipped": [0]}
# For so many cells an excess counts a radius more of one user.
_CELLS_A_RADIUS = 24
# Whole votes are rounded downwards: a user's stay at most USER in all.
_BELOW_ONE = 1 - 2.0**-40


@dataclass(frozen=True)
class CentreAndRadius(Range):
    """The centre of users' means by rank, and the rank of their vectors' norms around it.

    Parameters: `centres`, candidates of the centre, equal bins of the width U; `radii`, the first
    and one past the last j of the radii U 2^(-j/2); `clipped`, how many users should be outside;
    `ball`, the radius in lattice steps; `excess`, parts of a user's excess and bits of its noise,
    or 0 and 0.
    """

    names: ClassVar[tuple[str, ...]] = ("centres", "radii", "clipped", "ball", "excess")
    selects = "for all"
    of_vectors = True
    rounds = 1

    def fits(self, parameters: Parameters) -> bool:
        """A radius, of which the first is not half of the width or less, and parts with bits."""
        (first, end), (parts, bits) = parameters["radii"].tolist(), excess_of(parameters)
        return bool(first < end and end > 2 and (parts > 0) == (0 < bits < MOST_BITS))

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Centre and radius; none if there is one candidate of each."""
        first, end = parameters["radii"]
        return 2 if parameters["centres"][0] > 1 or end - first > 1 else 0

    def largest_zoom(self, parameters: Parameters, top: int) -> int:
        """The width over the shortest radius."""
        return -(-top // radius_of(int(parameters["radii"][1]) - 1, top))

    def score_sensitivity(self, weights: Weights) -> int:
        """One user counts for at most USER in either selection."""
        return USER


@dataclass(frozen=True)
class TwoRounds(CentreAndRadius):
    """A centre for every cell by a first round, and a rank of norms around all of them.

    `first_clipped` and `first_ball` are of the first round; 0 where users are too few for
    selections.
    """

    names = (*CentreAndRadius.names, "first_clipped", "first_ball")

    def fits(self, parameters: Parameters) -> bool:
        """There are selections and a first round, or neither."""
        selects = super().selections(parameters, 0) > 0
        first = ball_of(parameters, "first_ball") > 0
        return super().fits(parameters) and selects == first

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Centre and radius of the first round, and the radius of the second."""
        own = super().selections(parameters, cells)
        return own + 1 if ball_of(parameters, "first_ball") else own


def ball_of(parameters: Parameters, name: str = "ball") -> int:
    """Returns the radius of a ball of users' vectors in lattice steps; 0 if there is none."""
    return int(parameters[name][0]) if name in parameters else 0


def excess_of(parameters: Parameters) -> tuple[int, int]:
    """In how many parts a user's excesses are counted, and the bits of their noise; 0 if not."""
    parts, bits = parameters.get("excess", np.zeros(2)).tolist()
    return int(parts), int(bits)


def largest_excess(parameters: Parameters, radius: int, top: int, cells: int) -> int:
    """Most that is counted of one user: 6 to 24 radii, the more the more cells share the noise.

    Of narrow bounds less: a 48th of the width for each of these radii, but one radius at least.
    """
    ball = ball_of(parameters)
    radii = min(max(cells // _CELLS_A_RADIUS, 6), 24)
    return min(radii * ball, max(ball, radii * ball * top // (48 * radius)))


def radius_of(step: int, top: int) -> int:
    """Returns top 2^(-step/2), rounded down, at least 1: the same on every machine."""
    return max(1, math.isqrt(top * top >> step))


def moved(centre: int, radius: int, top: int) -> tuple[int, int]:
    """Returns centre and radius of what c - r to c + r has in common with 0 to top."""
    low, high = max(centre - radius, 0), min(centre + radius, top)
    return (low + high) // 2, (high - low + 1) // 2


def balls(centre: int, first: int, end: int, top: int) -> list[tuple[int, int]]:
    """Centre and radius of every candidate (docs/theory/cells.md#centre-radius-and-noise).

    All are different, the largest radius first.
    """
    around = [(centre, radius_of(step, top)) for step in range(first, end)]
    least = radius_of(end - 1, top)
    most = (top + 1) // 2
    found = {*around, *(moved(*each, top) for each in around)}
    kept = {each for each in found if least <= each[1] < most} | {(top // 2, most)}
    return sorted(kept, key=lambda each: (-each[1], -each[0]))


def bin_scores(place: Ints, vote: Ints, bins: int) -> Ints:
    """Returns -max(B - W/2, W/2 - A, 0) of each bin, rounded to whole numbers.

    B are the votes below a bin, A those below its upper edge, W all votes, which are public.
    """
    inside = np.bincount(place, vote, minlength=bins).astype(np.int64)
    upto = np.cumsum(inside)
    whole = int(vote.sum())
    # W/2 is rounded the same way for all values, so that nothing moves by more.
    beyond = np.maximum(2 * (upto - inside) - whole, whole - 2 * upto) // 2
    return np.asarray(-np.maximum(beyond, 0))


def rank_scores(beyond: Ints, wanted: int, everyone: int) -> Ints:
    """Returns -max(K_j - k, k - min(K_i : i > j), 0) in 1/USER, K_j users being beyond ball j."""
    least = np.minimum.accumulate(beyond[::-1])[::-1]
    after = np.append(least[1:], everyone + wanted)
    away = np.clip(np.maximum(beyond - wanted, wanted - after), 0, MOST_USERS)
    return np.asarray(-USER * away)


@dataclass(frozen=True, eq=False)
class UserVectors:
    """Users' deviations in lattice steps of the noise (docs/theory/cells.md#user-clipped-mean).

    X_gl = round(w_gl (mu_gl - c)/(D step_g)) with centre c and radius D. Each number follows from
    one user's mean and public facts alone, so that neither rows nor engines nor threads change it.
    """

    private: PrivateMeans = field(repr=False)
    parameters: Parameters
    step: Floats
    gaussian: bool = False

    @property
    def weights(self) -> Weights:
        """Weights of the users: public."""
        return self.private.weights

    @cached_property
    def reach(self) -> Floats:
        """Weight of each member over its lattice step: public."""
        weights = self.weights
        share = weights.weight / weights.total[weights.cell]
        return np.asarray(share / self.step[weights.cell])

    def votes(self) -> Ints:
        """Part of one vote of each member, in proportion to its reach, in 1/USER: public."""
        reach = self.reach
        user = self.weights.user
        part = reach / np.bincount(user, reach)[user]
        return np.floor(part * (USER * _BELOW_ONE)).astype(np.int64)

    def vectors(self, centre: Ints, radius: int) -> Ints:
        """X of every member around centres of the cells, for a radius in ticks over 2^FINE."""
        apart = self.private.means - centre[self.weights.cell]
        return np.rint(self.reach * (apart / radius)).astype(np.int64)

    def select(self, scale: Floats, noise: Noise) -> Interval:
        """From the centre c of a private ball to c + D in every cell, by two selections."""
        top = self.private.top
        bins = int(self.parameters["centres"][0])
        first, end = self.parameters["radii"].tolist()
        place = at = 0
        if len(scale):
            where = np.minimum(self.private.means * bins // top, bins - 1)
            place = noise.select(bin_scores(where, self.votes(), bins), float(scale[0]), 0)
        found = balls(centre_of(place, bins, top), first, end, top)
        if len(scale):
            around = [(self._all(each), radius) for each, radius in found]
            at = noise.select(self._rank_scores(around), float(scale[1]), 1)
        centre, radius = found[at]
        return Interval(self._all(centre), self._all(centre + radius))

    def select_around(self, centres: Ints, scale: float, noise: Noise) -> Interval:
        """From the centre c_g to c_g + D in every cell, by one selection of the radius D."""
        first, end = self.parameters["radii"].tolist()
        found = [radius_of(step, self.private.top) for step in range(first, end)]
        scores = self._rank_scores([(centres, each) for each in found])
        return Interval(centres, centres + found[noise.select(scores, scale, 2)])

    def steps(self, chosen: Interval) -> tuple[list[int], Pair]:
        """Exact lattice number of each cell, and the parts that the ball cuts off from users.

        A user counts for all parts at most, below and above together.
        """
        centre = chosen.low
        radius = int(chosen.width[0])
        weights = self.weights
        vector = self.vectors(centre, radius)
        kept = self._ball.project(vector, weights.user, ball_of(self.parameters))
        total = add(weights.cell, kept, weights.n_cells)
        start = np.rint((centre / radius) / self.step).astype(np.int64)
        most = largest_excess(self.parameters, radius, self.private.top, weights.n_cells)
        # Floating point: no sum of one user's deviations is too large for it.
        below, above = (
            np.bincount(weights.user, np.clip(each, 0, most))
            for each in (kept - vector, vector - kept)
        )
        parts = excess_of(self.parameters)[0]
        part = parts / np.maximum(below + above, most)
        first = np.minimum(np.ceil(below * part), parts)
        second = np.minimum(np.ceil(above * part), parts - first)
        return [int(x) for x in start + total], (int(first.sum()), int(second.sum()))

    def _all(self, centre: int) -> Ints:
        """One centre for every cell."""
        return np.full(self.weights.n_cells, centre)

    def _rank_scores(self, found: list[tuple[Ints, int]]) -> Ints:
        """Scores of radii around centres, by how many users are beyond each."""
        known: dict[bytes, Ints] = {}
        beyond = []
        for centres, radius in found:
            key = centres.tobytes()
            if key not in known:
                # Norm of each user for a radius of the whole width; 0 of those in no cell.
                apart = np.abs(self.vectors(centres, self.private.top))
                known[key] = self._ball.norms(apart, self.weights.user)
            size = ball_of(self.parameters) * radius // self.private.top
            beyond.append(int((known[key] > size + np.minimum(self._slack, size >> 6)).sum()))
        users = self.weights.n_users
        wanted = int(self.parameters["clipped"][0])
        return rank_scores(np.array(beyond, dtype=np.int64), wanted, users)

    @cached_property
    def _slack(self) -> Ints:
        """Most that rounding adds to a norm, a public number: users at a bound are in its ball."""
        return np.bincount(self.weights.user) // 2 + 1

    @property
    def _ball(self) -> Ball:
        return L2 if self.gaussian else L1
