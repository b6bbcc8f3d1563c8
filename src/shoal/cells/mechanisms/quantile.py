"""The quantile mechanism: array means clipped to a pair of private quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from shoal.cells.mechanisms.array_averaging import Grouping, array_clipping, choose_caps
from shoal.cells.mechanisms.base import MeanMechanism, Parameters, by_cell
from shoal.cells.mechanisms.contributions import SHARE
from shoal.cells.mechanisms.ranges import Range
from shoal.privacy import permute_and_flip as selection
from shoal.privacy.permute_and_flip import UNIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.mechanisms.contributions import Design
    from shoal.cells.mechanisms.ranges import Contributions
    from shoal.data.occupancy import Occupancy
    from shoal.privacy.noise import Noise


@dataclass(frozen=True)
class Quantile(MeanMechanism):
    """Array means clipped to private quantiles of themselves (paper 002, section III-E).

    Each quantile costs a quarter of the budget (Smith's mechanism on a grid of candidates). With
    `wrap_around` a user moves two arrays, and everything is accounted for that.

    Attributes:
        lattice: Bounds and ticks of the values.
        quantiles: `fixed`, 1/10 and 9/10; or `optimised`, ceil(2/epsilon) arrays from either end.
        cap: `levy`, `median`, `minimax`, `surrogate`, or a whole number.
        grouping: `best_fit` or `wrap_around`.
    """

    quantiles: Literal["fixed", "optimised"] = "fixed"
    cap: str | int = "levy"
    grouping: Grouping = "best_fit"
    name = "quantile"
    least: ClassVar[Mapping[str, int]] = {"cap": 1, "low_rank": 0, "high_rank": 0}
    selects = "per cell"
    rounds = 2

    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """Cap and wanted ranks, in 1/UNIT of an array, of each cell."""
        cap = choose_caps(occupancy, cells, epsilon, self.cap)
        arrays = array_clipping(occupancy, cells, cap, self.grouping).total >> SHARE
        if self.quantiles == "fixed":
            low = arrays * UNIT // 10
        else:
            out = np.minimum(np.ceil(2 / epsilon), arrays).astype(np.int64)
            low = np.minimum(out * UNIT, arrays * UNIT // 2)
        return {"cap": cap, "low_rank": low, "high_rank": arrays * UNIT - low}

    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Array means, each of which reaches the whole range."""
        return array_clipping(occupancy, cells, parameters["cap"], self.grouping)

    def most_narrowing(self, parameters: Parameters) -> int:  # noqa: ARG002
        """Two candidates differ by at least one grid step."""
        return selection.CELLS

    def score_sensitivity(self, design: Design) -> int:
        """One array moves a rank by UNIT; a user touches 1 or 2 arrays."""
        return int((design.contribution >> SHARE).max()) * UNIT

    def select(
        self,
        contributions: Contributions,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range:
        """Two private quantiles of each cell's arrays, in order and at least a candidate apart."""
        candidates, low, high = selection.grid(contributions.top), [], []
        size = contributions.design.n_numbers
        for at, inside in enumerate(by_cell(contributions.group_number, size)):
            means = contributions.group_means[inside]
            found = sorted(
                noise.select(
                    selection.quantile_scores(means, int(parameters[rank][at]), candidates),
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
