"""What every rule of ranges answers: what it selects, with which parameters, and at what cost.

A selection `per cell` costs every user present in the cell; a selection `for all` cells costs every
user once. A rule knows a design, not the rule that made it: it asks which pieces are clipped one by
one, and how many of them a user touches.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.contributions.design import Design
    from shoal.cells.ranges.private_means import PrivateMeans
    from shoal.cells.ranges.selected import Range
    from shoal.privacy.noise import Noise


@dataclass(frozen=True)
class RangeRule(ABC):
    """One way to choose the range of the values.

    Class attributes: `title`, what it is called in tables; what it `selects`; `rounds`, selections
    of each kind; `least`, the smallest value of each of its parameters; `of_sums`, whether it is a
    range of sums of users instead of means; `of_vectors`, whether all cells of a user are clipped
    together instead of one by one; `has_first_round`, whether a first round says around what.
    """

    title: ClassVar[str]
    selects: ClassVar[Literal["nothing", "per cell", "for all"]] = "nothing"
    rounds: ClassVar[int] = 0
    least: ClassVar[Mapping[str, int]] = {}
    of_sums: ClassVar[bool] = False
    of_vectors: ClassVar[bool] = False
    has_first_round: ClassVar[bool] = False

    def parameters(
        self,
        design: Design,
        own: Parameters,
        epsilon: NDArray[np.float64],
        top: int,
    ) -> Parameters:
        """Public whole numbers that follow from a design and the loss of each cell.

        Args:
            design: What users contribute.
            own: The parameters that led to it.
            epsilon: Loss that may be used in each cell.
            top: The width in ticks over 2^FINE.
        """
        return {}

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Whether these, which have the names in `least`, could be parameters for these cells.

        Args:
            parameters: Whole numbers by name.
            largest: Records of the heaviest user of each cell.
        """
        return all(
            values.shape == largest.shape and int(values.min()) >= self.least[name]
            for name, values in parameters.items()
        )

    def selections(self, parameters: Parameters, cells: int) -> int:
        """How many private selections there are in so many cells."""
        return {"nothing": 0, "per cell": cells, "for all": 1}[self.selects]

    def ball(self, parameters: Parameters) -> int:
        """Radius of the l1 ball of users' vectors, in lattice steps; 0 if cells are clipped."""
        return 0

    def first_ball(self, parameters: Parameters) -> int:
        """Radius of the ball of a first round, in lattice steps; 0 if there is none."""
        return 0

    def most_narrowing(self, parameters: Parameters, top: int) -> int:
        """The width over the shortest range that a selection can give, rounded upwards."""
        return 1

    def widest_range(self, parameters: Parameters) -> NDArray[np.float64] | float:
        """The longest range over the width, of each number or of all."""
        return 1.0

    def selecting(self, design: Design, epsilon: float) -> float:
        """Part of the budget for selections, at a total loss of epsilon."""
        return 0.0 if self.selects == "nothing" else 0.5

    def score_sensitivity(self, design: Design) -> int:
        """Most that one user moves a score of a selection."""
        return 1

    def tune(
        self,
        design: Design,
        parameters: Parameters,
        epsilon: float,
        relative_scale: NDArray[np.float64],
        selecting: float,
    ) -> Parameters:
        """Parameters of the selection, once the noise and its own part of the loss are known."""
        return parameters

    def select(
        self,
        means: PrivateMeans,
        parameters: Parameters,
        scale: NDArray[np.float64],
        noise: Noise,
    ) -> Range | None:
        """The range of every number, by private selections; None if there are none."""
        return None
