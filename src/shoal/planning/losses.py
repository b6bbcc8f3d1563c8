"""What a mechanism costs every user, in whole lattice steps: selections, then noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.mechanisms import selection
from shoal.mechanisms.mean.design import add_by
from shoal.mechanisms.noise import LARGEST_STEPS
from shoal.theory import sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.mechanisms.mean.base import MeanMechanism
    from shoal.mechanisms.mean.design import Design


@dataclass(frozen=True, eq=False)
class Losses:
    """Exact accounting of one plan's selections and numbers, in units of 2^-bits.

    A selection costs 2 x score sensitivity / scale for every user whose values it reads; a number
    costs ceil((reach/total) 2^j / b) / 2^j for each user, whatever the values (Theory 2,
    section 1).

    Attributes:
        mechanism: Whose numbers.
        design: Reaches of the users.
        selection_scale: Of the private selections: one a number, one in all, or none.
        bits: j, the lattice bits.
    """

    mechanism: MeanMechanism
    design: Design
    selection_scale: NDArray[np.float64]
    bits: int

    def of_users(self, relative_scale: NDArray[np.float64]) -> NDArray[np.int64]:
        """Total loss of each user at these noise scales over the span.

        Raises:
            InputError: The losses do not fit exact sums.
        """
        design = self.design
        steps = sensitivity.mean_steps(
            design.reach, design.total[design.number], relative_scale[design.number], self.bits
        )
        if self.mechanism.selects == "per cell":
            steps = steps + self._selections()[design.number]
        if float(steps.sum(dtype=np.float64)) >= LARGEST_STEPS:
            raise InputError(
                "a privacy loss too large for exact accounting",
                "sums below 2^61 lattice steps",
                "ask for a smaller epsilon",
            )
        lost = add_by(design.user, steps, design.occupancy.n_users)
        if self.mechanism.selects == "for all":
            present = np.zeros(design.occupancy.n_users, dtype=np.int64)
            present[design.user] = self._selections()[0]
            lost = lost + present
        return lost

    def _selections(self) -> NDArray[np.int64]:
        mechanism = self.mechanism
        moved = mechanism.score_sensitivity(self.design)
        kinds, kind = np.unique(self.selection_scale, return_inverse=True)
        steps = [
            math.ceil(mechanism.rounds * selection.loss(moved, scale) * 2**self.bits)
            for scale in kinds.tolist()
        ]
        if max(steps) >= LARGEST_STEPS:
            raise InputError(
                "a selection too sharp for exact accounting",
                "losses below 2^61 steps",
                "lower epsilon",
            )
        return np.array(steps, dtype=np.int64)[kind]
