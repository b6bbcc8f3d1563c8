"""Levy's interval: a private middle of each cell's means, and a public length around it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import by_cell
from shoal.cells.ranges.base import RangeRule
from shoal.cells.ranges.selected import Range
from shoal.privacy import permute_and_flip as selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.privacy.noise import Noise

_MOST_BINS = 1 << 21


@dataclass(frozen=True)
class LevyInterval(RangeRule):
    """Means clipped to mu -+ 1.5 tau, mu a private middle of them (paper 002, section III-D).

    tau = U sqrt(ln(2K/gamma)/(2 m)) with K means, each of a cap of m records; mu is the midpoint of
    one of max(1, floor(U/tau)) bins, selected with half of the budget. Who is in two arrays moves
    two means, and both halves are accounted for that (errata 7 and 8).

    Attributes:
        gamma: Chance that means of m independent records leave tau, in (0, 1).
    """

    gamma: float = 0.2

    title = "Levy's interval, per cell"
    least: ClassVar[Mapping[str, int]] = {"bins": 1, "radius": 1}
    selects = "per cell"
    rounds = 1

    def parameters(
        self,
        design: Design,
        own: Parameters,
        epsilon: NDArray[np.float64],
        top: int,
    ) -> Parameters:
        """Number of bins, and 1.5 tau in ticks over 2^FINE, of each cell."""
        tau = np.array(
            [
                math.sqrt(math.log(2 * k / self.gamma) / (2 * m))
                for k, m in zip(design.pieces.tolist(), own["cap"].tolist(), strict=True)
            ]
        )
        return {
            "bins": np.clip(np.floor(1 / tau), 1, _MOST_BINS).astype(np.int64),
            "radius": np.minimum(top, np.ceil(1.5 * tau * top)).astype(np.int64),
        }

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Besides, a number of bins that can be counted."""
        return super().check(parameters, largest) and bool((parameters["bins"] <= _MOST_BINS).all())

    def most_narrowing(self, parameters: Parameters, top: int) -> int:
        """A range is at least the radius."""
        return -(-top // int(parameters["radius"].min()))

    def score_sensitivity(self, design: Design) -> int:
        """Pieces that one user touches: 1, or 2 of arrays with wrap_around."""
        return design.touched

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """The private middle of each cell's means, and 1.5 tau around it."""
        top, middles = means.top, []
        size = means.design.n_numbers
        for at, inside in enumerate(by_cell(means.group_number, size)):
            bins = int(parameters["bins"][at])
            scores = selection.middle_scores(means.group_means[inside], bins, top)
            where = noise.select(scores, float(scale[at]), at)
            middles.append((2 * where + 1) * top // (2 * bins))
        middle, radius = np.array(middles, dtype=np.int64), parameters["radius"]
        return Range(np.maximum(middle - radius, 0), np.minimum(middle + radius, top))
