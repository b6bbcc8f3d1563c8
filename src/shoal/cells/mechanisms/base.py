"""What every mean mechanism answers: public parameters and designs, private ranges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.mechanisms.contributions import Design
    from shoal.cells.mechanisms.ranges import Contributions, Range
    from shoal.data.occupancy import Occupancy
    from shoal.data.value_lattice import Lattice
    from shoal.privacy.noise import Noise

# Parameters that are numbers of records of one user.
_COUNTS = ("cap", "threshold", "most")
Parameters = dict[str, "NDArray[np.int64]"]


@dataclass(frozen=True)
class MeanMechanism(ABC):
    """One way to bound users, to choose a range, and to average.

    A mechanism spends `selecting` of its budget on private selections and the rest on one Laplace
    draw for every cell. Selections `per cell` cost every user present in the cell; a selection
    `for all` cells costs every user once; noise costs each user its own contribution.

    Class attributes: `name`; what it `selects`; `rounds`, selections of each kind; `least`, the
    smallest value of each parameter of which every cell has one; `per_member`, parameters of which
    every member has one.

    Attributes:
        lattice: Bounds and ticks of the values.
    """

    lattice: Lattice

    name: ClassVar[str]
    selects: ClassVar[Literal["nothing", "per cell", "for all"]] = "nothing"
    rounds: ClassVar[int] = 0
    least: ClassVar[Mapping[str, int]] = {}
    per_member: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def parameters(
        self, occupancy: Occupancy, cells: NDArray[np.int64], epsilon: NDArray[np.float64]
    ) -> Parameters:
        """Public whole numbers that follow from the counts and the loss of each cell.

        Args:
            occupancy: The counts.
            cells: The cells to be released.
            epsilon: Loss that the mechanism may use in each of them.
        """

    @abstractmethod
    def design(
        self, occupancy: Occupancy, cells: NDArray[np.int64], parameters: Parameters
    ) -> Design:
        """Weights and contributions that follow from the parameters."""

    def most_narrowing(self, parameters: Parameters) -> int:  # noqa: ARG002
        """The width over the shortest range that a selection can give, rounded upwards."""
        return 1

    def widest_range(self, parameters: Parameters) -> NDArray[np.float64] | float:  # noqa: ARG002
        """The longest range over the width, of each number or of all."""
        return 1.0

    def check(self, parameters: Parameters, occupancy: Occupancy, cells: NDArray[np.int64]) -> bool:
        """Whether these could be this mechanism's parameters for these cells."""
        largest = largest_counts(occupancy, cells)
        return parameters.keys() == self.least.keys() and all(
            values.shape == largest.shape
            and int(values.min()) >= self.least[name]
            and (name not in _COUNTS or bool((values <= largest).all()))
            for name, values in parameters.items()
        )

    def selecting(self, design: Design, epsilon: float) -> float:  # noqa: ARG002
        """Part of the budget for selections, at a total loss of epsilon."""
        return 0.0 if self.selects == "nothing" else 0.5

    def score_sensitivity(self, design: Design) -> int:  # noqa: ARG002
        """Most that one user moves a score of a selection."""
        return 1

    def tune(
        self,
        design: Design,  # noqa: ARG002
        parameters: Parameters,
        epsilon: float,  # noqa: ARG002
        relative_scale: NDArray[np.float64],  # noqa: ARG002
        selecting: float,  # noqa: ARG002
    ) -> Parameters:
        """Parameters of the selection, once the noise and its own part of the loss are known."""
        return parameters

    def select(
        self,
        contributions: Contributions,  # noqa: ARG002
        parameters: Parameters,  # noqa: ARG002
        scale: NDArray[np.float64],  # noqa: ARG002
        noise: Noise,  # noqa: ARG002
    ) -> Range | None:
        """The range of every number, by private selections; None if there are none."""
        return None


def largest_counts(occupancy: Occupancy, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records of the heaviest user of each of some cells."""
    largest = np.zeros(occupancy.n_cells, dtype=np.int64)
    np.maximum.at(largest, occupancy.cell, occupancy.count)
    return np.asarray(largest[cells])


def by_cell(design_number: NDArray[np.int64], n_numbers: int) -> list[NDArray[np.int64]]:
    """Positions of the members (or groups) of each number."""
    order = np.argsort(design_number, kind="stable")
    ends = np.cumsum(np.bincount(design_number, minlength=n_numbers))
    return np.split(order, ends[:-1])
