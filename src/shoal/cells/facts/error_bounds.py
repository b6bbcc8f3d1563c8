"""Bounds the biases and errors of a plan's numbers, such as the error of a cell's mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import Floats
from shoal.cells.facts.accounting import ReleasedStatistics
from shoal.cells.facts.asked import Asked, Chosen
from shoal.cells.facts.decision import Decision, Status
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.weights import FINE, Parameters, Weights
from shoal.data.counts import Counts
from shoal.privacy.law import GAUSSIAN, Law


@dataclass(frozen=True, eq=False)
class ErrorBounds(Asked):
    """The numbers of a plan with their noise scales, and bounds on their biases and errors."""

    counts: Counts
    request: Request
    decision: Decision

    @property
    def _chosen(self) -> Chosen:
        return Chosen(self.request, self.decision.method, self.status)

    @property
    def status(self) -> tuple[Status, ...]:
        """The status of each cell: planned, or why it is left out."""
        return self.decision.status

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.law is GAUSSIAN

    @property
    def law(self) -> Law:
        """The law of the noise."""
        return self.decision.law

    @property
    def parameters(self) -> Parameters:
        """Whole numbers of the method, such as the cap of each cell."""
        return self.decision.parameters

    @cached_property
    def weights(self) -> Weights:
        """The weights of users in the planned cells."""
        return self.decision.method.weigh(self.counts, self.planned, self.parameters)

    @cached_property
    def numbers(self) -> ReleasedStatistics:
        """The numbers to release: every statistic of every planned cell."""
        chosen = self.decision
        return ReleasedStatistics(self.weights, self.statistics, joint=chosen.joint, law=chosen.law)

    @property
    def widest(self) -> Floats | float:
        """The longest range that can be selected for each cell, or for all, in widths."""
        return self.decision.method.range.widest(self.parameters)

    @property
    def noise_scale(self) -> Floats:
        """Scale of the noise of each number, shape (numbers,), in the statistic's unit.

        Where a range is selected it is an upper bound: noise is proportional to the selected range.
        For a variance that is released jointly it is the scale of the second moment's noise.
        """
        return self.decision.scale * self.widest * self.statistic_range

    @cached_property
    def bias_bound(self) -> Floats:
        """The most that an estimate without noise is off, (numbers,), in the statistic's unit.

        It adds up rounding and the bias from bounding users. Where a range is selected it is the
        whole width, as some data set may have every value outside of that range.
        """
        if not self.certified:
            return np.full(len(self.planned), self.width)
        return (self.rounding + self.numbers.bias) * self.statistic_range

    @property
    def rounding(self) -> Floats:
        """The most that rounding moves an estimate, shape (numbers,), as a part of its range.

        Values are rounded to ticks, means of users to parts of ticks, and numbers to lattice steps.
        """
        decision = self.decision
        lattice = self.lattice
        # With shared noise every record counts, and means of users are not rounded.
        of_means = 0.0
        if decision.method.planner != "shared":
            of_means = 2.0 ** -(lattice.bits + FINE)
        of_values = float(lattice.rounding)
        of_statistics = [each.rounding(of_values, of_means) for each in self.statistics]
        half_steps = decision.scale * self.widest * 2.0 ** -(decision.bits + 1)
        if decision.joint:
            rows = self.per_statistic(half_steps)
            first, second = self.pair
            # The square of the first moment moves by less than its lattice step.
            rows[second] += 4 * rows[first] * (1 + rows[first])
        return np.repeat(of_statistics, len(self.planned)) + half_steps

    @cached_property
    def worst_case_error(self) -> Floats:
        """Bias bound plus mean absolute noise; shape (numbers,), in the statistic's unit.

        It holds for every data set. Where a range is selected it is the width, since estimates and
        means lie within the bounds.
        """
        if not self.certified:
            return self.bias_bound
        return self.bias_bound + self.mean_noise * self.statistic_range

    @cached_property
    def mean_noise(self) -> Floats:
        """Mean absolute noise, or a bound if joint; shape (numbers,), as a part of the range."""
        noise = self.decision.scale * self._noise_ratio
        if self.decision.joint:
            rows = self.per_statistic(noise)
            first, second = self.pair
            b1 = self.per_statistic(self.decision.scale)[first]
            # With the noise z1 of the centred first moment s1, the variance is further off by four
            # times 2 s1 z1, which is at most |z1|, and z1^2 less its expectation.
            rows[second] += 4 * rows[first] + 4 * self.law.square_noise * b1**2
        return noise

    @property
    def _noise_ratio(self) -> float:
        """Mean absolute noise of a number, in noise scales."""
        steps = 2.0**self.decision.bits
        return self.law.mean_absolute(steps) / steps

    @property
    def relative_error(self) -> Floats:
        """Worst-case error, shape (numbers,), as a part of the range; guessing has 1/2.

        Where a range is selected it has only the mean absolute noise and the mass that windows
        leave out, as a part of the selected range.
        """
        if not self.certified:
            return self.decision.scale * self.widest * self._noise_ratio + self.weights.missing / 2
        return self.worst_case_error / self.statistic_range

    @property
    def cell_error(self) -> Floats:
        """The largest relative error of each cell's statistics, shape (planned cells,).

        It is 0 where users' vectors are clipped to a private radius, as that radius is not known.
        """
        if self.of_vectors:
            return np.zeros(len(self.planned))
        rows = self.per_statistic(self.relative_error)
        error: Floats = rows.max(axis=0)
        return error
