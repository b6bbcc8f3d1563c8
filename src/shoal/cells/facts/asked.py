"""Derives what follows from a request, a method and the statuses of cells alone."""

from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.facts.accounting import MEAN_AND_VARIANCE
from shoal.cells.facts.decision import Status
from shoal.cells.facts.remembered import Remembering
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.cell_statistics import Statistic
from shoal.cells.mechanisms.methods import Method
from shoal.data.value_lattice import Bounds, Lattice


class Chosen(NamedTuple):
    """The request, the method that serves it, and the status of each cell."""

    request: Request
    method: Method
    status: tuple[Status, ...]


class Asked(Remembering):
    """The numbers that a request asks for.

    There is a number for each statistic of each planned cell: statistic by statistic, each in the
    order of the cells.
    """

    @property
    def _chosen(self) -> Chosen:
        """The request, the method that serves it, and the status of each cell."""
        raise NotImplementedError

    @property
    def of_vectors(self) -> bool:
        """Whether users' whole vectors are clipped to a ball."""
        return self._chosen.method.range.of_vectors

    @property
    def certified(self) -> bool:
        """Whether errors are bounded in every data set: nothing is clipped to a selected range."""
        return not self._chosen.method.selects

    @property
    def lattice(self) -> Lattice:
        """Bounds and ticks of the values."""
        return self._chosen.request.lattice

    @property
    def bounds(self) -> Bounds:
        """The public range of the values."""
        return self.lattice.bounds

    @cached_property
    def width(self) -> float:
        """The width U of the bounds, in the value's unit."""
        return float(self.bounds.width)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is released of every cell."""
        return self._chosen.request.kinds

    @cached_property
    def planned(self) -> Ints:
        """Positions of the cells that get noise, shape (planned cells,)."""
        return np.flatnonzero([status == "planned" for status in self._chosen.status])

    @cached_property
    def statistic_ranges(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Lower end and length of the range of each statistic, as the bounds allow."""
        return tuple(each.statistic_range(self.bounds) for each in self.statistics)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Both ends of the range of each number's statistic, shape (numbers,), in its unit."""
        ends = [(float(low), float(low + length)) for low, length in self.statistic_ranges]
        low, high = np.repeat(ends, len(self.planned), axis=0).T
        return low, high

    @cached_property
    def statistic_range(self) -> Floats:
        """Range of each number's statistic, shape (numbers,), in its unit: U, U^2/4 or 1."""
        return np.repeat([float(length) for _, length in self.statistic_ranges], len(self.planned))

    def per_statistic(self, numbers: Floats) -> Floats:
        """Returns the same numbers, with one row for each statistic."""
        return numbers.reshape(-1, len(self.planned))

    @cached_property
    def pair(self) -> tuple[int, int]:
        """Positions of mean and variance among the statistics."""
        first, second = (self.statistics.index(each) for each in MEAN_AND_VARIANCE)
        return first, second
