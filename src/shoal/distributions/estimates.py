"""What is said of every cell, from the numbers that were drawn and public facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.arrays import Floats, Ints
from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.estimates.posterior import values_of
from shoal.cells.facts.basis import Basis
from shoal.distributions.bin_estimates import MOST_MOVED, Bins
from shoal.distributions.parts import Drawn
from shoal.distributions.request import OF_MEANS, QUANTILES, Request
from shoal.release.envelope import CONFIDENCE
from shoal.release.rows import Row
from shoal.release.statistics import Statistic


class Interval(NamedTuple):
    """The best estimate of each cell, with its interval and the number with noise alone."""

    value: Floats
    low: Floats
    high: Floats
    noisy: Floats


@dataclass(frozen=True, eq=False)
class Distributions:
    """The statistics of all cells that readers see.

    Attributes:
        request: What was asked.
        drawn: What was drawn.
        records: The records of each cell, as far as they count, in whole numbers.
        bins: The bins of these cells; None if no statistic needs any.
    """

    request: Request
    drawn: Drawn
    records: Ints
    bins: Bins | None = None

    def rows(self, confidence: float) -> Iterator[Row]:
        """Yields every statistic that was asked for, in its order, and none twice."""
        known = set[str]()
        for kind in self.request.kinds:
            for each in self.request.rows_of(kind, self.inner_edges):
                if each.name in known:
                    continue
                known.add(each.name)
                if each.kind in OF_MEANS:
                    yield self._of_means(each.kind, confidence)
                else:
                    yield self.of_bins(each, confidence)._replace(asked=kind.name)

    @property
    def inner_edges(self) -> list[float]:
        """The edges between bins, in the value's unit."""
        if self.bins is None:
            return []
        inner: list[float] = self.bins.edges[1:-1].tolist()
        return inner

    def of_bins(self, kind: Statistic, confidence: float) -> Row:
        """Returns a share or a quantile, which follows from bins."""
        bins = self.bins
        assert bins is not None
        unknown = np.full(len(bins.plain), np.nan)
        noise = unknown
        if kind.kind in QUANTILES:
            value, low, high = bins.quantile(kind.level, confidence)
            noisy = unknown
        else:
            first, last = self._edges(kind)
            value, low, high = bins.share(first, last, confidence)
            noisy = bins.plain[:, first:last].sum(axis=1)
            noise = bins.noise
        status = np.where(bins.reliable, "reliable", "too noisy").astype(object)
        status[bins.moved > MOST_MOVED] = "few users dominate"
        common = status != "reliable"
        statuses_of_cells = status.tolist()
        return Row(
            name=kind.name,
            asked=kind.name,
            value=value,
            low=low,
            high=high,
            noisy=noisy,
            noise=noise,
            status=statuses_of_cells,
            common=common,
        )

    def _edges(self, kind: Statistic) -> tuple[int, int]:
        """Returns the edges between which values count for a share."""
        assert self.bins is not None
        low, high = kind.limits
        first = 0
        last = self.bins.bins
        if low > -np.inf:
            first = self.bins.edge_of(low)
        if high < np.inf:
            last = self.bins.edge_of(high)
        return first, last

    def _of_means(self, kind: str, confidence: float) -> Row:
        """Returns a mean, a sum, a standard deviation or a variance."""
        of_mean = self.drawn.mean
        assert of_mean is not None
        judged = of_mean
        if kind in ("mean", "sum"):
            found = _means(of_mean, confidence)
            noise = spread(of_mean.basis, of_mean.noise_scale)
            if kind == "sum":
                found = Interval(*(each * self.records for each in found))
                noise = noise * self.records
        else:
            assert self.drawn.squares is not None
            judged = self.drawn.squares
            found = standard_deviation(of_mean, judged, confidence)
            if kind == "variance":
                found = Interval(*(each**2 for each in found))
            noise = np.full(len(found.value), np.nan)
        status = statuses(judged)
        common = np.array([each != "reliable" for each in status])
        return Row(
            name=kind,
            asked=kind,
            value=found.value,
            low=found.low,
            high=found.high,
            noisy=found.noisy,
            noise=noise,
            status=status,
            common=common,
        )


def spread(basis: Basis, values: Floats) -> Floats:
    """Returns numbers of planned cells for all cells that readers see, NaN for the others."""
    every = np.full(len(basis.status), np.nan)
    every[basis.planned] = values
    return every


def statuses(numbers: Estimates) -> list[str]:
    """Returns whether each cell that readers see is reliable, or why not."""
    every: list[str] = [*numbers.basis.status]
    found = intervals.statuses(numbers)
    for cell, status in zip(numbers.basis.planned.tolist(), found, strict=True):
        every[cell] = status
    return every


def _means(numbers: Estimates, confidence: float) -> Interval:
    """Returns means with their intervals."""
    of_planned = *values_of(numbers, confidence), numbers.value
    of_all = [spread(numbers.basis, each) for each in of_planned]
    return Interval(*of_all)


def standard_deviation(of_mean: Estimates, of_squares: Estimates, confidence: float) -> Interval:
    """Returns standard deviations from means and mean squares about these.

    A mean square about c is the variance plus (mean - c)^2. About as much as noise and the spread
    of cells let expect of that is taken off the value; of the interval's lower end as much as the
    interval of the mean allows. Each of both intervals misses with half of the probability.

    Source: docs/theory/cells.md#standard-deviations.
    """
    half_missing = (1 + confidence) / 2
    centre = _means(of_mean, CONFIDENCE).value
    mean = _means(of_mean, half_missing)
    square = _means(of_squares, half_missing)
    between = intervals.spread(of_mean) ** 2
    scale = spread(of_mean.basis, of_mean.noise_scale)
    noise = of_mean.basis.law.variance * scale**2
    both = np.maximum(between + noise, 1e-300)
    expected = between * noise / both
    error = np.minimum(expected, square.value / 2)
    farthest = np.maximum(centre - mean.low, mean.high - centre)
    least = np.maximum(square.low - farthest**2, 0.0)
    # No deviation of values within the bounds is larger than half of their width.
    largest = of_mean.basis.width / 2
    lowest = np.minimum(np.sqrt(least), largest)
    highest = np.minimum(np.sqrt(square.high), largest)
    variance = np.maximum(square.value - error, 0.0)
    value = np.clip(np.sqrt(variance), lowest, highest)
    noisy_square = np.maximum(square.noisy, 0.0)
    noisy = np.sqrt(noisy_square)
    return Interval(value, lowest, highest, noisy)
