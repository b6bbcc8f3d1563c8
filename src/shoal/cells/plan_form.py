"""Whether the parts of a plan could be a plan's: kinds, types, shapes and sizes of its facts.

A plan can be changed by `dataclasses.replace`. What is computed from its facts, its loss before
all, must not depend on how an array happens to be stored, and every number that can be drawn from
it must be one that can be written down: an error after a draw would cost nothing, and could depend
on the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shoal.cells.queries import PAIR
from shoal.cells.request import Request
from shoal.data.occupancy import Counts
from shoal.data.value_lattice import Lattice
from shoal.errors import InputError
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.mechanism import Mechanism

STATUS = ("released", "uninformative", "error too large", "too few users", "too few records")
# Numbers have up to 2^63 lattice steps of this much of a range of 1e100; of means, their squares.
MOST_SCALE = 2.0**100
_MOST_PARAMETER, _MOST_DUAL = 2**62, 2.0**400
# Sums of weights are of floating-point numbers.
_FULL = 1 + 2.0**-20


class Facts(Protocol):
    """A plan, as far as its form goes."""

    @property
    def occupancy(self) -> Counts:
        """The counts."""

    @property
    def lattice(self) -> Lattice:
        """Bounds and ticks."""

    @property
    def request(self) -> Request:
        """What was asked for."""

    @property
    def status(self) -> tuple[str, ...]:
        """Of each cell."""

    @property
    def relative_scale(self) -> NDArray[np.float64]:
        """Of each number."""

    @property
    def lattice_bits(self) -> int:
        """Of the noise."""

    @property
    def duals(self) -> NDArray[np.float64] | None:
        """Dual variables."""

    @property
    def source(self) -> Mapping[str, Any] | None:
        """Description of the records."""

    @property
    def parameters(self) -> Parameters:
        """Of the mechanism."""

    @property
    def selection_scale(self) -> NDArray[np.float64]:
        """Of private selections."""

    @property
    def targets(self) -> NDArray[np.float64] | None:
        """Of an optimal plan."""

    @property
    def joint(self) -> bool:
        """Whether moments are released together."""

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""

    @property
    def released(self) -> NDArray[np.int64]:
        """Positions of released cells."""

    @property
    def mechanism(self) -> Mechanism:
        """What releases the numbers."""


def in_form(facts: Facts) -> dict[str, Any]:
    """The arrays of a plan, of one type each, if all parts have the kinds and sizes of a plan's.

    Args:
        facts: A plan, wherever it comes from.

    Raises:
        InputError: A part is of another kind, type or shape, or a number is not positive or beyond
            what a plan has.
    """
    _check_kinds(facts)
    cells = facts.status.count("released")
    numbers = len(facts.request.statistics) * cells
    shapes = {
        "relative_scale": (numbers,),
        "duals": (facts.occupancy.n_users,),
        "targets": (cells,),
    }
    found: dict[str, Any] = {
        "relative_scale": np.asarray(facts.relative_scale, np.float64),
        "selection_scale": np.asarray(facts.selection_scale, np.float64),
        "parameters": {name: np.asarray(each, np.int64) for name, each in facts.parameters.items()},
    }
    if facts.duals is not None:
        found["duals"] = np.asarray(facts.duals, np.float64)
    if facts.targets is not None:
        found["targets"] = np.asarray(facts.targets, np.float64)
    scales = [
        found[name] for name in ("relative_scale", "selection_scale", "targets") if name in found
    ]
    small = all(bool(((each > 0) & (each <= MOST_SCALE)).all()) for each in scales)
    duals = found.get("duals", np.ones(1))
    whole = all(
        int(each.min(initial=0)) >= 0 and int(each.max(initial=0)) < _MOST_PARAMETER
        for each in found["parameters"].values()
    )
    formed = all(
        found[name].shape == shapes.get(name, found[name].shape[:1])
        for name in found
        if name != "parameters"
    )
    if (
        not formed
        or not small
        or not whole
        or not duals.min() >= 0
        or not 0 < duals.max() <= _MOST_DUAL
    ):
        raise _unlike("scales, dual variables or parameters")
    return found


def check_capacity(facts: Facts) -> None:
    """Refuse parameters that are not the mechanism's, and noise that does not fit the lattice.

    Without room on the lattice the noise would have to look at the number it hides.

    Raises:
        InputError: There are such.
    """
    mechanism, cells = facts.mechanism, len(facts.released)
    sound = mechanism.check(facts.parameters, facts.occupancy, facts.released)
    if not sound or facts.selection_scale.shape != (
        mechanism.range.selections(facts.parameters, cells),
    ):
        raise _unlike("parameters or selection_scale")
    if mechanism.range.of_vectors and not _in_the_ball(facts):
        raise _unlike("noise")
    finest = float(facts.relative_scale.min()) / mechanism.most_narrowing(facts.parameters)
    if facts.lattice_bits >= MOST_BITS or 2.0**facts.lattice_bits > LARGEST_STEPS * finest:
        raise InputError(
            f"noise on a lattice of {facts.lattice_bits} bits that does not fit 61",
            "numbers and noise below 2^61 steps",
            "ask for a smaller epsilon",
        )


def _in_the_ball(facts: Facts) -> bool:
    """Whether nobody's weights over the noise leave the ball: then no sum of a vector overflows."""
    design = facts.mechanism.design(facts.occupancy, facts.released, facts.parameters)
    step = facts.relative_scale[design.number] * 2.0**-facts.lattice_bits
    power = 2 if facts.gaussian else 1
    reach = design.weight / design.total[design.number] / step
    norm = np.bincount(design.user, reach**power) ** (1 / power)
    return float(norm.max()) <= facts.mechanism.range.ball(facts.parameters) * _FULL


def _check_kinds(facts: Facts) -> None:
    """Kinds of the parts that are no arrays."""
    status = facts.status
    sound = (
        isinstance(facts.occupancy, Counts)
        and isinstance(facts.lattice, Lattice)
        and isinstance(facts.request, Request)
        and type(status) is tuple
        and all(type(each) is str and each in STATUS for each in status)
        and len(status) == facts.occupancy.n_cells
        and "released" in status
        and type(facts.lattice_bits) is int
        and facts.lattice_bits >= 0
        and type(facts.joint) is bool
        and (not facts.joint or set(PAIR) <= set(facts.request.statistics))
        and (facts.duals is not None or not facts.request.parts.allocation.proved)
        and type(facts.gaussian) is bool
        and isinstance(facts.parameters, Mapping)
        and (facts.source is None or isinstance(facts.source, Mapping))
    )
    if not sound:
        raise _unlike("parts")


def _unlike(what: str) -> InputError:
    return InputError(
        f"a plan with {what} that no plan has",
        "a plan as shoal.plan makes it",
        "make the plan again, and leave its parts as they are",
    )
