"""The Levy mechanism: array means clipped to a private interval of public length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.mechanisms.array_averaging import Grouping, array_clipping, choose_caps
from shoal.cells.mechanisms.base import MeanMechanism, Parameters, by_cell
from shoal.cells.mechanisms.contributions import FINE, SHARE
from shoal.cells.mechanisms.ranges import Range
from shoal.privacy import permute_and_flip as selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.mechanisms.contributions import Design
    from shoal.cells.mechanisms.ranges import Contributions
    from shoal.data.occupancy import Occupancy
    from shoal.privacy.noise import Noise

_MOST_BINS = 1 << 21


@dataclass(frozen=True)
class Levy(MeanMechanism):
    """Array means clipped to mu -+ 1.5 tau, mu a private middle of them (paper 002, section III-D).

    tau = U sqrt(ln(2K/gamma)/(2 m_UB)) with K arrays of length m_UB; mu is the midpoint of one of
    max(1, floor(U/tau)) bins, selected with half of the budget. With `wrap_around` a user moves
    two arrays, and both halves are accounted for that (errata 7 and 8).

    Attributes:
        lattice: Bounds and ticks of the values.
        cap: `levy`, `median`, `minimax`, `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
        gamma: Chance that independent records leave tau, in (0, 1).
    """

    cap: str | int = "levy"
    grouping: Grouping = "best_fit"
    gamma: float = 0.2
    name = "levy"
    least: ClassVar[Mapping[str, int]] = {"cap": 1, "bins": 1, "radius": 1}
    selects = "per cell"
    rounds = 1

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """Cap, number of bins, and 1.5 tau in ticks over 2^FINE, of each cell."""
        cap = choose_caps(occupancy, cells, epsilon, self.cap)
        arrays = (array_clipping(occupancy, cells, cap, self.grouping).total >> SHARE).tolist()
        tau = np.array(
            [
                math.sqrt(math.log(2 * k / self.gamma) / (2 * m))
                for k, m in zip(arrays, cap.tolist(), strict=True)
            ]
        )
        top = 1 << (self.lattice.bits + FINE)
        return {
            "cap": cap,
            "bins": np.clip(np.floor(1 / tau), 1, _MOST_BINS).astype(np.int64),
            "radius": np.minimum(top, np.ceil(1.5 * tau * top)).astype(np.int64),
        }

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Array means, each of which reaches the whole range."""
        return array_clipping(occupancy, cells, parameters["cap"], self.grouping)

    def most_narrowing(self, parameters: Parameters) -> int:
        """A range is at least the radius."""
        top = 1 << (self.lattice.bits + FINE)
        return -(-top // int(parameters["radius"].min()))

    def check(self, parameters: Parameters, occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
        """Besides, a number of bins that can be counted."""
        return super().check(parameters, occupancy, cells) and bool(
            (parameters["bins"] <= _MOST_BINS).all()
        )

    def score_sensitivity(self, design: Design) -> int:
        """Arrays that one user touches: 1 with best_fit, 2 with wrap_around."""
        return int((design.contribution >> SHARE).max())

    def select(
        self,
        contributions: Contributions,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """The private middle of each cell's arrays, and 1.5 tau around it."""
        top, middles = contributions.top, []
        size = contributions.design.n_numbers
        for at, inside in enumerate(by_cell(contributions.group_number, size)):
            bins = int(parameters["bins"][at])
            scores = selection.middle_scores(contributions.group_means[inside], bins, top)
            where = noise.select(scores, float(scale[at]), at)
            middles.append((2 * where + 1) * top // (2 * bins))
        middle, radius = np.array(middles, dtype=np.int64), parameters["radius"]
        return Range(np.maximum(middle - radius, 0), np.minimum(middle + radius, top))
