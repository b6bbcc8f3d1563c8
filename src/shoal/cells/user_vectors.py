"""Private vectors of users: their norms around a centre, and what is left of them in a ball."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.ranges.balls import balls
from shoal.cells.ranges.centre_and_radius import bin_scores, centre_of, radii, rank_scores
from shoal.cells.ranges.one_interval import USER
from shoal.cells.ranges.selected import Range
from shoal.theory.projections import L1, L2, Ball

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.privacy.noise import Noise

# Whole votes are rounded downwards: a user's stay at most USER in all.
_BELOW_ONE = 1 - 2.0**-40


@dataclass(frozen=True, eq=False)
class UserVectors:
    """Every user's vector of weighed deviations, in lattice steps of the noise.

    X_gl = round( w_gl (mu_gl - c)/s_g ) with s_g = b_g D 2^-j: centre c, radius D, relative noise
    scale b_g, lattice bits j. Each number follows from one user's mean and public facts alone,
    operation by operation, so that neither rows nor engines nor threads change it
    (docs/theory/user-clipped.md#the-estimator).

    Attributes:
        design: Weights of the users; public.
        means: Private means of the users, in ticks over 2^FINE.
        top: The width in the same unit.
        step: b_g 2^-j: a lattice step of each number over the radius.
        gaussian: Whether the ball, like the noise that hides it, is one of the l2 norm.
    """

    design: Design
    means: NDArray[np.int64] = field(repr=False)
    top: int
    step: NDArray[np.float64]
    gaussian: bool = False

    @classmethod
    def of(
        cls,
        means: PrivateMeans,
        relative_scale: NDArray[np.float64],
        bits: int,
        *,
        gaussian: bool = False,
    ) -> UserVectors:
        """The vectors of a design's private means on a lattice of noise."""
        step = relative_scale * 2.0**-bits
        return cls(means.design, means.means, means.top, step, gaussian=gaussian)

    @property
    def reach(self) -> NDArray[np.float64]:
        """Weight of each member over its lattice step: public."""
        design = self.design
        share = design.weight / design.total[design.number]
        return np.asarray(share / self.step[design.number])

    def votes(self) -> NDArray[np.int64]:
        """Part of one vote of each member, in proportion to its reach, in 1/USER: public."""
        reach, user = self.reach, self.design.user
        part = reach / np.bincount(user, reach)[user]
        return np.floor(part * (USER * _BELOW_ONE)).astype(np.int64)

    def vectors(self, centre: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
        """X of every member around centres of the cells, for a radius in ticks over 2^FINE."""
        apart = self.means - centre[self.design.number]
        return np.rint(self.reach * (apart / radius)).astype(np.int64)

    def select(
        self, parameters: Parameters, scale: NDArray[np.float64], noise: Noise
    ) -> tuple[Range, int]:
        """The centre, and a ball around or near it, by two permute-and-flip selections.

        Returns:
            From the ball's centre c to c + D in every cell, and its radius in steps.
        """
        bins, (first, end) = int(parameters["centres"][0]), parameters["radii"].tolist()
        ball, place, at = int(parameters["ball"][0]), 0, 0
        if len(scale):
            where = np.minimum(self.means * bins // self.top, bins - 1)
            scores = bin_scores(where, self.votes(), bins)
            place = noise.select(scores, float(scale[0]), 0)
        found = balls(centre_of(place, bins, self.top), first, end, self.top)
        if len(scale):
            beyond = self._beyond([(self._all(each), radius) for each, radius in found], ball)
            scores = rank_scores(beyond, int(parameters["clipped"][0]), self._users)
            at = noise.select(scores, float(scale[1]), 1)
        centre, radius = found[at]
        centres = self._all(centre)
        return Range(centres, centres + radius), ball

    def select_around(
        self, centres: NDArray[np.int64], parameters: Parameters, scale: float, noise: Noise
    ) -> Range:
        """The radius around centres of the cells, by one permute-and-flip selection.

        Returns:
            From the centre c_g to c_g + D in every cell.
        """
        first, end = parameters["radii"].tolist()
        found = radii(first, end, self.top)
        beyond = self._beyond([(centres, each) for each in found], int(parameters["ball"][0]))
        scores = rank_scores(beyond, int(parameters["clipped"][0]), self._users)
        radius = found[noise.select(scores, scale, 2)]
        return Range(centres, centres + radius)

    def _all(self, centre: int) -> NDArray[np.int64]:
        """One centre for every cell."""
        return np.full(self.design.n_numbers, centre)

    def _beyond(self, found: list[tuple[NDArray[np.int64], int]], ball: int) -> NDArray[np.int64]:
        """How many users are beyond each radius around the centres beside it."""
        known: dict[bytes, NDArray[np.int64]] = {}
        counts = []
        for centres, radius in found:
            key = centres.tobytes()
            if key not in known:
                known[key] = self._norms(centres)
            size = ball * radius // self.top
            counts.append(int((known[key] > size + np.minimum(self._slack, size >> 6)).sum()))
        return np.array(counts, dtype=np.int64)

    def steps(self, chosen: Range, ball: int) -> list[int]:
        """Exact lattice number of each cell: the centre, and the users' vectors in the ball."""
        centre, radius = chosen.low, int(chosen.range_width[0])
        design = self.design
        vector = self.vectors(centre, radius)
        kept = self._ball.project(vector, design.user, ball)
        total = np.zeros(design.n_numbers, dtype=np.int64)
        np.add.at(total, design.number, kept)
        start = np.rint((centre / radius) / self.step).astype(np.int64)
        return [int(x) for x in start + total]

    def _norms(self, centre: NDArray[np.int64]) -> NDArray[np.int64]:
        """Norm of each user for a radius of the whole width; 0 of those in no released cell."""
        size = np.abs(self.vectors(centre, self.top))
        return self._ball.norms(size, self.design.user)

    @cached_property
    def _slack(self) -> NDArray[np.int64]:
        """What rounding adds to a norm, at most: users at a bound are in the ball that ends there.

        It is public; who is beyond a ball still follows from that user alone.
        """
        return np.bincount(self.design.user) // 2 + 1

    @cached_property
    def _users(self) -> int:
        """In released cells; public."""
        return len(np.unique(self.design.user))

    @property
    def _ball(self) -> Ball:
        return L2 if self.gaussian else L1
