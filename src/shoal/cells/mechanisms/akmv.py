"""The mechanism of Amin, Kulesza, Munoz and Vassilvitskii, for users instead of records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.cells.mechanisms.base import MeanMechanism, Parameters, by_cell
from shoal.cells.mechanisms.contributions import Design, add_by, linear, members
from shoal.cells.mechanisms.ranges import Range
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.permute_and_flip import UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.mechanisms.ranges import Contributions
    from shoal.data.occupancy import Occupancy
    from shoal.privacy.noise import Noise


@dataclass(frozen=True)
class Akmv(MeanMechanism):
    """Sums of users clipped to [0, T], T a private estimate of the ceil(2/epsilon)-th largest sum.

    Half of the budget selects T among the multiples of U m*/4096 (paper 001, section IV).
    """

    name = "akmv"
    least: ClassVar[Mapping[str, int]] = {"rank": 0, "most": 1}
    selects = "per cell"
    rounds = 1

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """Wanted rank in 1/UNIT of a user, and the most records of a user, of each cell."""
        member, number = members(occupancy, cells)
        users = np.bincount(number, minlength=len(cells))
        beyond = np.minimum(np.ceil(2 / epsilon), users + 1).astype(np.int64)
        rank = np.maximum((users - beyond) * UNIT + UNIT // 2, 0)
        most = np.zeros(len(cells), dtype=np.int64)
        np.maximum.at(most, number, occupancy.count[member])
        return {"rank": rank.astype(np.int64), "most": most}

    def design(
        self,
        occupancy: Occupancy,
        cells: NDArray[np.int64],
        parameters: Parameters,  # noqa: ARG002
    ) -> Design:
        """Every user's sum reaches the whole range T."""
        member, number = members(occupancy, cells)
        one = np.ones(len(member), dtype=np.int64)
        total = add_by(number, occupancy.count[member], len(cells))
        return replace(linear(occupancy, cells, one, total), sums=True)

    def widest_range(self, parameters: Parameters) -> NDArray[np.float64]:
        """T is at most U m*."""
        return parameters["most"].astype(np.float64)

    def score_sensitivity(self, design: Design) -> int:  # noqa: ARG002
        """One user moves a rank by UNIT."""
        return UNIT

    def select(
        self,
        contributions: Contributions,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """T of each cell."""
        high = []
        size = contributions.design.n_numbers
        for at, inside in enumerate(by_cell(contributions.design.number, size)):
            most = int(parameters["most"][at])
            candidates = selection.grid(contributions.top)[1:] * most
            scores = selection.quantile_scores(
                contributions.sums[inside], int(parameters["rank"][at]), candidates
            )
            high.append(int(candidates[noise.select(scores, float(scale[at]), at)]))
        return Range(np.zeros(size, dtype=np.int64), np.array(high, dtype=np.int64))
