"""A private centre for every cell: the values of a first round of users' vectors.

One centre and one radius for all cells charge a user for how far cells are apart. A first round,
for a part of the noise's loss, says about where every cell lies; users are clipped around that with
a radius of their own (docs/theory/user-clipped.md#two-rounds).
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
    same `centres` and `radii`, are `first_clipped` and `first_ball`.
    """

    title = "centres of cells by a first round, and a radius of users' vectors"
    twice = True
    least: ClassVar[Mapping[str, int]] = {
        **CentreAndRadius.least, "first_clipped": 1, "first_ball": 1,
    }  # fmt: skip

    def check(self, parameters: Parameters, largest: NDArray[np.int64]) -> bool:
        """Two rounds of candidates that there can be, with private selections."""
        own = {name: parameters[name] for name in CentreAndRadius.least}
        first = own | {
            "clipped": parameters["first_clipped"], "ball": parameters["first_ball"],
        }  # fmt: skip
        return (
            super().check(own, largest)
            and super().check(first, largest)
            and super().selections(own, 0) > 0
        )

    def selections(self, parameters: Parameters, cells: int) -> int:  # noqa: ARG002
        """Centre and radius of the first round, and the radius of the second."""
        return 3

    def first_ball(self, parameters: Parameters) -> int:
        """Radius of the ball of the first round, in lattice steps."""
        return int(parameters["first_ball"][0])
