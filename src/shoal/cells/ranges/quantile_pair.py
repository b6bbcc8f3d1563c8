"""A pair of quantiles: each cell's means are clipped to private quantiles of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

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


Quantiles = Literal["fixed", "optimised"]


@dataclass(frozen=True)
class QuantilePair(RangeRule):
    """Means clipped to private quantiles of themselves (paper 002, section III-E).

    Each quantile costs a quarter of the budget (Smith's mechanism on a grid of candidates). Who is
    in two arrays moves two means, and everything is accounted for that.

    Attributes:
        quantiles: `fixed`, 1/10 and 9/10; or `optimised`, ceil(2/epsilon) means from either end.
    """

    quantiles: Quantiles = "fixed"

    title = "pair of quantiles, per cell"
    least: ClassVar[Mapping[str, int]] = {"low_rank": 0, "high_rank": 0}
    selects = "per cell"
    rounds = 2

    def parameters(
        self,
        design: Design,
        own: Parameters,
        epsilon: NDArray[np.float64],
        top: int,
    ) -> Parameters:
        """Wanted ranks of each cell, in 1/UNIT of a mean."""
        pieces = design.pieces
        if self.quantiles == "fixed":
            low = pieces * UNIT // 10
        else:
            out = np.minimum(np.ceil(2 / epsilon), pieces).astype(np.int64)
            low = np.minimum(out * UNIT, pieces * UNIT // 2)
        return {"low_rank": low, "high_rank": pieces * UNIT - low}

    def most_narrowing(self, parameters: Parameters, top: int) -> int:
        """Two candidates differ by at least one grid step."""
        return selection.CELLS

    def score_sensitivity(self, design: Design) -> int:
        """One mean moves a rank by UNIT; a user touches 1, or 2 of arrays with wrap_around."""
        return design.touched * UNIT

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """Two private quantiles of each cell's means, in order and at least a candidate apart."""
        candidates, low, high = selection.grid(means.top), [], []
        size = means.design.n_numbers
        for at, inside in enumerate(by_cell(means.group_number, size)):
            own = means.group_means[inside]
            found = sorted(
                noise.select(
                    selection.quantile_scores(own, int(parameters[rank][at]), candidates),
                    float(scale[at]),
                    2 * at + turn,
                )
                for turn, rank in enumerate(("low_rank", "high_rank"))
            )
            # A range needs a range: of two equal candidates the neighbours are taken.
            if found[0] == found[1]:
                found = [max(found[0] - 1, 0), min(found[1] + 1, len(candidates) - 1)]
            low.append(int(candidates[found[0]]))
            high.append(int(candidates[found[1]]))
        return Range(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))
