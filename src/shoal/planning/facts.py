"""A plan: which numbers are released, with how much noise, and what that costs and promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.accounting.rational import round_up
from shoal.errors import InputError
from shoal.mechanisms.mean.baseline import BaselineMean
from shoal.mechanisms.noise import LARGEST_STEPS, MOST_BITS
from shoal.planning.problem import Problem
from shoal.theory import laplace, limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.planning.request import Request
    from shoal.records.lattice import Bounds, Lattice
    from shoal.records.occupancy import Occupancy

Status = Literal["released", "worthless", "too few users", "too few records"]


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """Everything public about a release before it happens; a pure function of public facts.

    Errors, biases and scales are in the value's unit unless a name says `relative`.

    Attributes:
        occupancy: The counts the plan is made for.
        lattice: Bounds and ticks of the values.
        request: What was asked for.
        status: Of each cell: released, or why it is left out.
        relative_scale: b over U of each released cell, in the order of the cells.
        lattice_bits: j; the noise of a number has the scale of 2^j steps.
        prices: Proof of near-optimality of a balanced plan, one number a user, or None.
        source: Public description of the records (columns and cell rules), if known.
    """

    occupancy: Occupancy
    lattice: Lattice
    request: Request
    status: tuple[Status, ...]
    relative_scale: NDArray[np.float64]
    lattice_bits: int
    prices: NDArray[np.float64] | None = None
    source: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # Without room on the lattice the noise would have to look at the number it hides.
        finest = float(self.relative_scale.min(initial=np.inf))
        if self.lattice_bits >= MOST_BITS or 2.0**self.lattice_bits > LARGEST_STEPS * finest:
            raise InputError(
                f"noise on a lattice of {self.lattice_bits} bits that does not fit 61",
                "numbers and noise below 2^61 steps",
                "make the plan again",
            )

    @property
    def bounds(self) -> Bounds:
        """The public range of the values."""
        return self.lattice.bounds

    @property
    def width(self) -> float:
        """U, in the value's unit."""
        return float(self.bounds.width)

    @property
    def method(self) -> str:
        """How the noise is shared among the cells."""
        return self.request.method

    @cached_property
    def released(self) -> NDArray[np.int64]:
        """Positions of the released cells."""
        return np.flatnonzero([status == "released" for status in self.status])

    @cached_property
    def mechanism(self) -> BaselineMean:
        """What releases the numbers."""
        return BaselineMean(self.lattice)

    @cached_property
    def steps_lost(self) -> NDArray[np.int64]:
        """Exact loss of each user in units of 2^-lattice_bits."""
        return steps_lost(
            self.mechanism, self.occupancy, self.released, self.relative_scale, self.lattice_bits
        )

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The total privacy loss, exactly: the largest over users (Theory 2, section 1)."""
        return Fraction(int(self.steps_lost.max()), 2**self.lattice_bits)

    @property
    def epsilon(self) -> float:
        """The total privacy loss, rounded upwards."""
        return round_up(self.exact_epsilon)

    @property
    def user_losses(self) -> NDArray[np.float64]:
        """Loss of each user, by the occupancy's anonymous rows."""
        return self.steps_lost / 2.0**self.lattice_bits

    @cached_property
    def paper_epsilon(self) -> float:
        """What the same noise costs by the paper's accounting: max_l of the sum of eps_g.

        Every user present pays for the heaviest user of each cell (paper 000, Corollary II.1).
        """
        cell_loss = self.problem.largest / self.relative_scale
        present = Problem(
            self.problem.user,
            self.problem.number,
            np.ones(len(self.problem.user)),
            self.problem.n_users,
            self.problem.weight,
        )
        return float(present.loss(1 / cell_loss).max())

    @property
    def noise_scale(self) -> NDArray[np.float64]:
        """B of each released cell: the noise is Laplace with this scale on the cell's lattice."""
        return self.relative_scale * self.width

    @cached_property
    def bias_bound(self) -> NDArray[np.float64]:
        """Most that the estimate without noise is off in any data set: rounding only."""
        return self.mechanism.bias_bound(self.relative_scale, self.lattice_bits) * self.width

    @cached_property
    def worst_case_error(self) -> NDArray[np.float64]:
        """Bias bound plus mean absolute noise of each released cell: holds for every data set."""
        steps = laplace.mean_absolute(2.0**self.lattice_bits)
        return self.bias_bound + self.noise_scale * (steps / 2.0**self.lattice_bits)

    @property
    def relative_error(self) -> NDArray[np.float64]:
        """Worst-case error over the width; 1/2 is no better than guessing the midpoint."""
        return self.worst_case_error / self.width

    @cached_property
    def lower_bound(self) -> NDArray[np.float64]:
        """Error that no plan of this loss beats, however it bounds users, for each released cell.

        Each bound holds for its cell alone: no plan reaches all of them at once.
        """
        least = limits.least_mean_error(
            self.occupancy.cell, self.occupancy.count, self.occupancy.n_cells, self.epsilon
        )
        return least[self.released] * self.width

    @cached_property
    def gap(self) -> float | None:
        """How far a balanced plan can be from the best one, per cell; None for other methods."""
        if self.prices is None:
            return None
        from shoal.planning.methods import balanced

        return balanced.gap(self.problem, self.relative_scale, self.prices, self.epsilon)

    @cached_property
    def problem(self) -> Problem:
        """Sensitivities of the released cells."""
        return make_problem(self.mechanism, self.occupancy, self.released, self.request.weights)


def make_problem(
    mechanism: BaselineMean,
    occupancy: Occupancy,
    cells: NDArray[np.int64],
    weights: Mapping[str, float],
) -> Problem:
    """The sparse sensitivities of some of the cells, one number a cell."""
    place = np.full(occupancy.n_cells, -1)
    place[cells] = np.arange(len(cells))
    number = place[occupancy.cell]
    inside = number >= 0
    return Problem(
        user=occupancy.user[inside],
        number=number[inside],
        sensitivity=mechanism.plan(occupancy)[inside],
        n_users=occupancy.n_users,
        weight=weights_of(occupancy, cells, weights),
    )


def weights_of(
    occupancy: Occupancy, cells: NDArray[np.int64], weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Importance of some of the cells, 1 where none was given."""
    if not weights:
        return np.ones(len(cells))
    labels = occupancy.labels
    return np.array([weights.get(labels[g], 1.0) for g in cells.tolist()])


def steps_lost(
    mechanism: BaselineMean,
    occupancy: Occupancy,
    cells: NDArray[np.int64],
    relative_scale: NDArray[np.float64],
    lattice_bits: int,
) -> NDArray[np.int64]:
    """Exact loss of each user when the named cells get these scales, in units of 2^-bits."""
    scale = np.full(occupancy.n_cells, np.inf)
    scale[cells] = relative_scale
    steps = mechanism.loss(occupancy, scale, lattice_bits)
    if float(steps.sum(dtype=np.float64)) >= LARGEST_STEPS:
        raise InputError(
            "a privacy loss too large for exact accounting",
            "sums below 2^61 lattice steps",
            "ask for a smaller epsilon",
        )
    loss = np.zeros(occupancy.n_users, dtype=np.int64)
    np.add.at(loss, occupancy.user, steps)
    return loss
