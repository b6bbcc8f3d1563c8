"""A private centre for every cell: the values of a first round of users' vectors.

One centre and one radius for all cells charge a user for how far cells are apart. A first round,
for a part of the noise's loss, says about where every cell lies; users are clipped around that with
a radius of their own (docs/theory/user-clipped.md#two-rounds). Where there are too few users for
private selections there is no first round, and one round without selections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoal.cells.ranges.centre_and_radius import CentreAndRadius

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters


@dataclass(frozen=True)
class CentresOfCells(CentreAndRadius):
    """A centre for every cell by a first round, and a rank of norms around all of them.

    Parameters of the second round are those of `CentreAndRadius`; those of the first, which has the
    same `centres` and `radii`, are `first_clipped` and `first_ball`, 0 without a first round.
    """

    title = "centres of cells by a first round, and a radius of users' vectors"
    has_first_round = True
    least: ClassVar[Mapping[str, int]] = {
        **CentreAndRadius.least, "first_clipped": 0, "first_ball": 0,
    }  # fmt: skip

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Candidates that there can be in both rounds, or no first round and no selections."""
        clipped, ball = parameters["first_clipped"], parameters["first_ball"]
        if not super().check(parameters, largest) or ball.shape != (1,):
            return False
        selects = super().selections(parameters, 0) > 0
        if not selects or not ball[0]:
            return not selects and clipped.tolist() == [0] == ball.tolist()
        return super().check({**parameters, "clipped": clipped, "ball": ball}, largest)

    def selections(self, parameters: Parameters, cells: int) -> int:
        """Centre and radius of the first round, and the radius of the second."""
        own = super().selections(parameters, cells)
        return own + 1 if self.first_ball(parameters) else own

    def first_ball(self, parameters: Parameters) -> int:
        """Radius of the ball of the first round, in lattice steps."""
        return int(parameters["first_ball"][0])
