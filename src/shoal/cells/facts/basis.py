"""Holds the public numbers from which readers compute the values and intervals of a release."""

from typing import Any

import numpy as np
from pydantic import Field

from shoal.arrays import Floats
from shoal.cells.facts import coarse
from shoal.cells.facts.asked import Asked, Chosen
from shoal.cells.facts.decision import Status
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.methods import method_of
from shoal.cells.mechanisms.private_sums import Interval, ends
from shoal.cells.mechanisms.ranges import range_bias
from shoal.cells.mechanisms.user_vectors import ball_of, excess_of
from shoal.cells.mechanisms.weights import FINE, Weights
from shoal.data.value_lattice import Lattice
from shoal.documents.model import Model, Numbers, is_none
from shoal.privacy.law import Law, NameOfLaw, law_of
from shoal.release.envelope import FEWEST_ALIKE, Keys, Text


class Basis(Asked, Model):
    """Public numbers of a release and of its cells, none of which is about a single user.

    Arrays have an entry for each planned cell, or for each number, which is a statistic of a
    planned cell. Parts and deviations are divided by the bounds' width. Of a cell's heaviest user
    readers learn only the effect on the cell's interval.

    Attributes:
        status: The status of each cell that readers see.
        cells: The keys of these cells.
        users: How many users have records in planned cells.
        members: How many pairs of a user and a planned cell have records.
        selects: Whether ranges or a radius were selected privately.
        clipped: How many users should be clipped to the radius; 0 without one.
        ball: The radius in lattice steps.
        excess: The number of parts in which clipped users' excess is counted, and its lattice bits.
        scale: The noise scale of each number, as a part of its range.
        held: Whether estimates lie in the selected ranges.
        sums: Whether sums of users were clipped.
        windows: Whether users' means were clipped to a window of the range.
        missing: The mass of each cell that windows leave in the middle.
        moved: The part of each cell's weight that caps took from its heaviest users.
        lead: How far the heaviest user of each cell widens its interval, from 1 to 2.
        deviation: The standard deviation of each mean's error from weighting users, if they are
            exchangeable.
        bias_bound: The largest bias of each number in any data set, in its unit.
        worst_case_error: The certified error of each number, in its unit.
        squares: For each cell left out for its error, the sum of its users' squared shares.
        most: The largest value that can occur, if it is known to be below the upper bound.
    """

    request: Request
    method: Text
    settings: dict[str, str | int | float]
    noise: NameOfLaw
    joint: bool
    bits: int
    rounds: int
    status: tuple[Status, ...]
    cells: Keys
    users: int
    members: int
    selects: bool
    clipped: int
    ball: int
    excess: tuple[int, int]
    scale: Numbers
    held: bool
    sums: bool
    windows: bool
    missing: Numbers
    moved: Numbers
    lead: Numbers
    deviation: Numbers
    bias_bound: Numbers
    worst_case_error: Numbers
    squares: Numbers
    most: float | None = Field(default=None, exclude_if=is_none)

    @property
    def highest(self) -> float:
        """The largest value that can occur."""
        return self.bounds.hi if self.most is None else self.most

    @property
    def _chosen(self) -> Chosen:
        return Chosen(self.request, method_of(self.method, self.settings), self.status)

    @property
    def law(self) -> Law:
        """The law of the noise."""
        return law_of(self.noise)

    @property
    def top(self) -> int:
        """The width of the bounds in units of 2^-FINE ticks."""
        return 1 << (self.lattice.bits + FINE)


def basis_of(plan: Facts, chosen: Interval | None) -> Basis:
    """Returns the public numbers of a plan and of its selected ranges `chosen`, not yet rounded."""
    decision = plan.decision
    parameters = plan.parameters
    weights = plan.weights
    clipped = parameters.get("clipped", np.zeros(1, dtype=np.int64))
    top = 1 << (plan.lattice.bits + FINE)
    return Basis(
        request=plan.shown_request,
        method=decision.method.name,
        settings=dict(decision.method.settings),
        noise=plan.law.name,
        joint=decision.joint,
        bits=decision.bits,
        rounds=plan.rounds,
        status=plan.shown_status,
        cells=plan.shown_cells,
        users=weights.n_users,
        members=len(weights.user),
        selects=len(decision.selection_scale) > 0,
        clipped=int(clipped[0]),
        ball=ball_of(parameters),
        excess=excess_of(parameters),
        scale=decision.scale,
        held=not (weights.sums or weights.widened or plan.of_vectors),
        sums=weights.sums,
        windows=weights.window is not None,
        missing=weights.missing,
        moved=plan.moved,
        lead=plan.lead,
        deviation=_deviation(weights, chosen, top),
        bias_bound=_bias_bound(plan, chosen, top),
        worst_case_error=plan.worst_case_error,
        squares=plan.squares,
    )


def _bias_bound(plan: Facts, chosen: Interval | None, top: int) -> Floats:
    """Returns the largest bias of each number, once selected ranges are known."""
    if chosen is None or plan.of_vectors:
        return plan.bias_bound
    weights = plan.weights
    decision = plan.decision
    rounding = mean_rounding(plan.lattice, decision.scale, decision.bits, chosen.width / top)
    bias = weights.bias + range_bias(weights, chosen, top)
    return np.minimum(rounding + bias, 1.0) * plan.width


def for_readers(plan: Facts, basis: Basis) -> Basis:
    """Returns the basis for readers: numbers that tell of a cell's users are rounded upwards."""
    few = plan.counts.users_per_cell < FEWEST_ALIKE
    few_planned = few[plan.planned]
    bias = basis.bias_bound
    bound = coarse.bounds_upwards(bias, np.tile(few_planned, len(plan.statistics)))
    # No bound is larger than the whole range.
    bound = np.minimum(bound, np.maximum(bias, basis.statistic_range))
    rounded = {
        "moved": coarse.parts_upwards(basis.moved, few_planned),
        "lead": coarse.halves_upwards(basis.lead),
        "deviation": coarse.upwards(basis.deviation, few_planned),
        "squares": coarse.upwards(basis.squares, few[plan.shown_left_out]),
        "bias_bound": bound,
        "worst_case_error": basis.worst_case_error - bias + bound,
    }
    return basis.model_copy(update=rounded)


def mean_rounding(lattice: Lattice, scale: Floats, bits: int, width: Floats | float) -> Floats:
    """Returns the most that rounding to ticks, parts of ticks and lattice steps moves means.

    `width` is the width of each mean's range, and the result a part of the bounds' width.
    """
    means = 2.0 ** -(lattice.bits + FINE)
    steps = scale * width * 2.0 ** -(bits + 1)
    return np.asarray(float(lattice.rounding) + means + steps)


def _deviation(weights: Weights, chosen: Interval | None, top: int) -> Floats:
    """Returns each mean's standard deviation from weighting exchangeable users, in widths.

    In a cell of L users it is the root of L/(L - 1) times the sum of (w - v)^2 r^2, where a user
    has the weight w, the share v of the records, and r as half the width of its range.
    """
    if weights.sums:
        return np.zeros(weights.n_cells)
    cell = weights.cell
    cells = weights.n_cells
    weight = weights.weight
    if weights.window is not None:
        weight = weights.reach
    # A cell of which windows leave out everything has no part to divide.
    not_missing = np.maximum(1 - weights.missing, 1e-9)
    part = weight / (weights.total * not_missing)[cell]
    difference = (part - weights.share) * _half_ranges(weights, chosen, top)
    users = np.bincount(cell, minlength=cells)
    squares = np.bincount(cell, difference**2, minlength=cells)
    # A cell with a single user has no difference.
    others = np.maximum(users - 1, 1)
    deviation: Floats = np.sqrt(squares * users / others)
    return deviation


def _half_ranges(weights: Weights, chosen: Interval | None, top: int) -> Any:
    """Returns half the width of each member's range, as a part of the bounds' width."""
    if chosen is None:
        return np.full(len(weights.cell), 0.5)
    if weights.window is not None:
        return (chosen.width / (2 * top))[weights.cell]
    low, high = ends(weights, weights.cell, chosen)
    return np.minimum((high - low) / (2 * top), 0.5)
