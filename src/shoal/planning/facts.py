"""A plan: which numbers are released, with how much noise, and what that costs and promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.accounting.rational import round_up
from shoal.errors import InputError
from shoal.mechanisms.mean.catalogue import make_mechanism
from shoal.mechanisms.mean.design import FINE
from shoal.mechanisms.noise import LARGEST_STEPS, MOST_BITS
from shoal.planning.losses import Losses
from shoal.planning.problem import Problem
from shoal.theory import laplace, limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.mechanisms.mean.base import MeanMechanism, Parameters
    from shoal.mechanisms.mean.design import Design
    from shoal.planning.request import Request
    from shoal.records.lattice import Bounds, Lattice
    from shoal.records.occupancy import Occupancy

Status = Literal["released", "worthless", "too few users", "too few records"]
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """Everything public about a release before it happens; a pure function of public facts.

    Errors, biases and scales are in the value's unit unless a name says `relative`.

    Attributes:
        occupancy: The counts the plan is made for.
        lattice: Bounds and ticks of the values.
        request: What was asked for.
        status: Of each cell: released, or why it is left out.
        relative_scale: b over the span of the range of each released cell, in the order of the
            cells; the span is the width U where no range is selected.
        lattice_bits: j; the noise of a number has the scale of 2^j steps.
        prices: Proof of near-optimality of a balanced plan, one number a user, or None.
        source: Public description of the records (columns and cell rules), if known.
        parameters: Whole numbers of the mean mechanism, such as the cap of each cell.
        selection_scale: Scale of the private selections: one a released cell, one in all, or none.
    """

    occupancy: Occupancy
    lattice: Lattice
    request: Request
    status: tuple[Status, ...]
    relative_scale: NDArray[np.float64]
    lattice_bits: int
    prices: NDArray[np.float64] | None = None
    source: Mapping[str, Any] | None = None
    parameters: Parameters = field(default_factory=dict)
    selection_scale: NDArray[np.float64] = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        check_counts(self.occupancy, self.lattice)
        # Without room on the lattice the noise would have to look at the number it hides.
        finest = float(self.relative_scale.min(initial=np.inf))
        finest /= self.mechanism.most_spans(self.parameters)
        if self.lattice_bits >= MOST_BITS or 2.0**self.lattice_bits > LARGEST_STEPS * finest:
            raise InputError(
                f"noise on a lattice of {self.lattice_bits} bits that does not fit 61",
                "numbers and noise below 2^61 steps",
                "ask for a smaller epsilon",
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
        """How the noise is shared among the cells, or the mean mechanism."""
        return self.request.method

    @cached_property
    def released(self) -> NDArray[np.int64]:
        """Positions of the released cells."""
        return np.flatnonzero([status == "released" for status in self.status])

    @cached_property
    def mechanism(self) -> MeanMechanism:
        """What releases the numbers."""
        return mechanism_of(self.request, self.lattice)

    @cached_property
    def design(self) -> Design:
        """What every user contributes to every released cell."""
        return self.mechanism.design(self.occupancy, self.released, self.parameters)

    @cached_property
    def losses(self) -> Losses:
        """What every selection and every number costs every user."""
        return Losses(self.mechanism, self.design, self.selection_scale, self.lattice_bits)

    @cached_property
    def steps_lost(self) -> NDArray[np.int64]:
        """Exact loss of each user in units of 2^-lattice_bits."""
        return self.losses.of_users(self.relative_scale)

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
    def certified(self) -> bool:
        """Whether errors are bounded in every data set: nothing is clipped to a selected range."""
        return self.mechanism.selects == "nothing"

    @property
    def noise_scale(self) -> NDArray[np.float64]:
        """Scale of each released cell: the noise is Laplace with it on the cell's lattice.

        Where a range is selected: at most this, in proportion to the range.
        """
        return self.relative_scale * self.mechanism.longest_span(self.parameters) * self.width

    @cached_property
    def bias_bound(self) -> NDArray[np.float64]:
        """Most that the estimate without noise is off in any data set.

        Rounding, what the bounding of users leaves out, and the whole width where a range is
        selected: no data set is then excluded in which the range misses every value.
        """
        if not self.certified:
            return np.full(len(self.released), self.width)
        return (self.rounding + self.design.bias) * self.width

    @property
    def rounding(self) -> NDArray[np.float64]:
        """Most that ticks, means of users and lattice steps move an estimate, over the width."""
        ticks = float(self.lattice.rounding)
        if not self.request.shares:
            ticks += 2.0 ** -(self.lattice.bits + FINE)
        longest = self.mechanism.longest_span(self.parameters)
        return ticks + self.relative_scale * longest * 2.0 ** -(self.lattice_bits + 1)

    @cached_property
    def worst_case_error(self) -> NDArray[np.float64]:
        """Bias bound plus mean absolute noise of each released cell: holds for every data set.

        Where a range is selected it is the width: estimates and means stay within the bounds.
        """
        if not self.certified:
            return self.bias_bound
        return self.bias_bound + self.noise_scale * self._mean_noise

    @property
    def _mean_noise(self) -> float:
        return laplace.mean_absolute(2.0**self.lattice_bits) / 2.0**self.lattice_bits

    @property
    def relative_error(self) -> NDArray[np.float64]:
        """Worst-case error over the width; 1/2 is no better than guessing the midpoint.

        Where a range is selected: mean absolute noise over that range's span.
        """
        if not self.certified:
            longest = self.mechanism.longest_span(self.parameters)
            return self.relative_scale * longest * self._mean_noise
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
        return problem_of(self.design, self.request.weights)


def check_counts(occupancy: Occupancy, lattice: Lattice) -> None:
    """Refuse counts with which sums of ticks, or keys of memberships, would not fit 64 bits.

    Raises:
        InputError: A user has too many records in one cell.
    """
    most = int(occupancy.count.max())
    if most << (lattice.bits + FINE + 1) >= 2**63 or (most + 1) * occupancy.n_cells >= 2**62:
        raise InputError(
            f"{most:,} records of one user in one cell",
            f"fewer than 2^{62 - lattice.bits - FINE} at {lattice.bits} tick bits",
            "use fewer tick bits or smaller cells",
        )


def mechanism_of(request: Request, lattice: Lattice) -> MeanMechanism:
    """The mean mechanism that a request names; methods of sharing release baseline means."""
    return make_mechanism(
        "baseline" if request.shares else request.method, lattice, request.settings
    )


def problem_of(design: Design, weights: Mapping[str, float]) -> Problem:
    """The sparse sensitivities of a design, one number a cell."""
    return Problem(
        user=design.user,
        number=design.number,
        sensitivity=design.sensitivity,
        n_users=design.occupancy.n_users,
        weight=weights_of(design.occupancy, design.cells, weights),
    )


def weights_of(
    occupancy: Occupancy, cells: NDArray[np.int64], weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Importance of some of the cells, 1 where none was given."""
    if not weights:
        return np.ones(len(cells))
    labels = occupancy.labels
    return np.array([weights.get(labels[g], 1.0) for g in cells.tolist()])
