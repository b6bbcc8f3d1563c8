"""Holds the task of a planner and its decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.methods import Method
from shoal.cells.mechanisms.weights import FINE, PART, Parameters
from shoal.data.counts import Counts
from shoal.errors import InputError
from shoal.privacy.law import GAUSSIAN, LAPLACE, Law

Status = Literal["planned", "uninformative", "error too large", "too few users", "too few records"]
STATUS: tuple[Status, ...] = get_args(Status)
# The statuses of cells that a public rule leaves out: readers see none of these cells.
BY_RULE: tuple[Status, ...] = ("too few users", "too few records")
# The fewest tick bits with which means and mean squares of weighted users are precise enough.
_FEWEST_BITS = 20
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Decision:
    """The planner's choices; with the request and the counts they determine the plan.

    Attributes:
        scale: Noise scale b (sigma if Gaussian) of each number, as a part of its range or of its
            selected range.
        bits: The noise of a number has the scale of 2^bits lattice steps.
        selection_scale: Noise scales of the private selections: one for each planned cell, one or a
            few for all cells, or none.
        joint: Whether mean and variance come from one release of first and second moments.
        targets: The relative error of each planned cell up to a common factor, in an optimal plan.
        duals: Proof of near-optimality, one number for each user, or None.
        reason: Why an objective chose this method; empty if the request named it.
    """

    method: Method
    status: tuple[Status, ...]
    scale: Floats
    bits: int
    parameters: Parameters = field(default_factory=dict)
    selection_scale: Floats = field(default_factory=lambda: _NONE)
    joint: bool = False
    law: Law = LAPLACE
    targets: Floats | None = None
    duals: Floats | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Task:
    """The task of a planner: to plan the cells with the status `planned` by a method.

    Attributes:
        counting: How many times the usual part of epsilon counts users far from the others.
    """

    counts: Counts
    request: Request
    method: Method
    status: tuple[Status, ...]
    reason: str = ""
    counting: float = 1.0

    @cached_property
    def cells(self) -> Ints:
        """Positions of the planned cells."""
        return np.flatnonzero([status == "planned" for status in self.status])

    @property
    def delta(self) -> Fraction:
        """The delta that the method may use."""
        return self.request.delta if self.method.takes_delta else Fraction(0)

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws of noise to plan with."""
        return (LAPLACE, GAUSSIAN) if self.delta else (LAPLACE,)

    @property
    def importance(self) -> Floats:
        """Public weight of each cell, 1 where none was asked for."""
        return importance(self.counts, self.cells, self.request.weights)

    def with_status(self, status: np.ndarray) -> Task:
        """Returns the same task with other statuses of its cells."""
        return replace(self, status=tuple(status.tolist()))

    def decide(self, scale: Floats, bits: int, **others: Any) -> Decision:
        """Returns the decision with these scales, bits and other fields."""
        return Decision(self.method, self.status, scale, bits, reason=self.reason, **others)


def importance(counts: Counts, cells: Ints, weights: Mapping[str, float]) -> Floats:
    """Returns the importance of some of the cells, 1 where none was given."""
    if not weights:
        return np.ones(len(cells))
    return np.array([weights.get(counts.labels[g], 1.0) for g in cells.tolist()])


class PublicRules(Protocol):
    """What says which cells are left out by their counts alone."""

    @property
    def min_users(self) -> int:
        """The fewest users of a planned cell."""

    @property
    def min_records(self) -> int:
        """The fewest records of a planned cell."""


def public_status(counts: Counts, request: PublicRules) -> np.ndarray:
    """Returns each cell's status by counts alone: planned, too few records, or too few users."""
    status = np.full(counts.n_cells, "planned", dtype=object)
    status[counts.records < request.min_records] = "too few records"
    status[counts.users_per_cell < request.min_users] = "too few users"
    return status


def check_counts(counts: Counts, request: Request, method: Method) -> None:
    """Refuses counts whose sums would not fit 64 bits, and weights for cells that do not exist."""
    most_of_user = int(counts.count.max())
    # A user's sum of values is below 2^62 in units of 2^-FINE ticks.
    bits = 62 - request.tick_bits - FINE
    if most_of_user >= 1 << bits or (most_of_user + 1) * counts.n_cells >= 2**62:
        raise InputError(
            f"a user has {most_of_user:,} records in one cell, too many for {request.tick_bits} "
            "tick bits",
            f"use smaller cells or fewer tick bits: fewer than 2^{bits} records fit",
        )
    # An optimal plan counts each record in up to 2^PART parts.
    bits = 62 - request.tick_bits - PART
    most_of_cell = int(counts.totals.max())
    too_many = most_of_user >= 1 << bits or most_of_cell >= 1 << (62 - PART)
    if method.planner == "optimal" and too_many:
        raise InputError(
            f"{most_of_user:,} records of a user in a cell, or {most_of_cell:,} of a cell, are too "
            "many",
            f"use smaller cells, fewer tick bits or another method: 2^{bits} and 2^{62 - PART} fit",
        )
    weighs = method.planner in ("optimal", "clip user") and "variance" in request.statistics
    if weighs and request.tick_bits < _FEWEST_BITS:
        # Rounding would exceed the margins in the sensitivity of a variance.
        raise InputError(
            f"{request.tick_bits} tick bits are too few for a variance with {method.name}",
            f"give tick_bits={_FEWEST_BITS} or more",
        )
    unknown = set(request.weights) - set(counts.labels) if request.weights else set()
    if unknown:
        raise InputError(
            f"a weight is given for the cell {min(unknown)!r}, which does not exist",
            f"give labels of the {counts.n_cells} cells, such as {counts.labels[0]!r}",
        )
