"""A threshold of sums: the mechanism of Amin, Kulesza, Munoz and Vassilvitskii, for users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.contributions.base import by_cell
from shoal.cells.ranges.base import RangeRule
from shoal.cells.ranges.selected import Range
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.permute_and_flip import UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.privacy.noise import Noise


@dataclass(frozen=True)
class SumThreshold(RangeRule):
    """Sums of users clipped to [0, T], T a private estimate of the ceil(2/epsilon)-th largest sum.

    Half of the budget selects T among the multiples of U m*/4096 (paper 001, section IV).
    """

    title = "threshold of sums, per cell"
    least: ClassVar[Mapping[str, int]] = {"rank": 0, "most": 1}
    selects = "per cell"
    rounds = 1
    of_sums = True

    def parameters(
        self,
        design: Design,
        own: Parameters,
        epsilon: NDArray[np.float64],
        top: int,
    ) -> Parameters:
        """Wanted rank in 1/UNIT of a user, and the most records of a user, of each cell."""
        users = design.pieces
        beyond = np.minimum(np.ceil(2 / epsilon), users + 1).astype(np.int64)
        rank = np.maximum((users - beyond) * UNIT + UNIT // 2, 0)
        most = np.zeros(design.n_numbers, dtype=np.int64)
        np.maximum.at(most, design.number, design.count)
        return {"rank": rank.astype(np.int64), "most": most}

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Besides, no more records than the heaviest user has."""
        return super().check(parameters, largest) and bool((parameters["most"] <= largest).all())

    def widest_range(self, parameters: Parameters) -> NDArray[np.float64]:
        """T is at most U m*."""
        return parameters["most"].astype(np.float64)

    def score_sensitivity(self, design: Design) -> int:
        """One user moves a rank by UNIT."""
        return UNIT

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """T of each cell."""
        high = []
        size = means.design.n_numbers
        for at, inside in enumerate(by_cell(means.design.number, size)):
            most = int(parameters["most"][at])
            candidates = selection.grid(means.top)[1:] * most
            scores = selection.quantile_scores(
                means.sums[inside], int(parameters["rank"][at]), candidates
            )
            high.append(int(candidates[noise.select(scores, float(scale[at]), at)]))
        return Range(np.zeros(size, dtype=np.int64), np.array(high, dtype=np.int64))
