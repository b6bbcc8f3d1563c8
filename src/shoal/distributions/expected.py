"""Says before a value is read how long intervals of quantiles will be, and how many cells reliable.

Edges that are found lie at known ranks of the common distribution; where given thresholds lie in
it nobody knows, so that nothing is said of plans with any.

Source: docs/theory/cells.md#values-of-bins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from shoal.arrays import Floats
from shoal.cells.estimates.typical_error import ALIKE, CELLS, USERS
from shoal.distributions.bin_estimates import MOST_MOVED, Bins, less_than_spread
from shoal.distributions.parts import Parts
from shoal.distributions.units import BITS, Units, ranks_of
from shoal.privacy.noise import Simulated
from shoal.release.envelope import CONFIDENCE

# The places at which a normal variable stands for all of its values.
_PLACES = 500
# The simulated cells of which intervals are averaged.
_DRAWS = 200


class Ends(NamedTuple):
    """The ends of an interval of a quantile, as ranks of the common distribution."""

    low: float
    high: float


def has_ranks(plan: Parts) -> bool:
    """Returns whether all edges will lie at known ranks of the common distribution."""
    return plan.units is not None and plan.units.rounds > 0 and not plan.request.thresholds


def typical_interval(units: Units, level: float) -> Ends:
    """Returns the interval of a quantile of a cell with the median noise and moved weight."""
    noise = float(np.median(units.noise))
    moved = float(np.median(units.moved_for_readers))
    return interval_of_ranks(units.bins, noise, moved, level)


def interval_of_ranks(bins: int, noise: float, moved: float, level: float) -> Ends:
    """Returns the interval of a quantile of a cell that is like the common distribution.

    Its ends are means over simulated noise.
    """
    edges = np.array([0.0, *ranks_of(bins), 1.0])
    drawn = Simulated(0).add_sum_zero([[0] * bins] * _DRAWS, BITS, 0)
    plain = np.diff(edges) + noise * np.array(drawn) / 2.0**BITS
    same = np.ones(_DRAWS)
    cells = Bins(plain, noise * same, moved * same, edges, 0.0, None)
    _, low, high = cells.quantile(level, CONFIDENCE)
    return Ends(float(low.mean()), float(high.mean()))


def forecast(units: Units) -> dict[float, int]:
    """Returns how many cells are likely to be reliable for each part of the variance between."""
    return {between: expected_reliable(units, between) for between in (CELLS, *ALIKE)}


def expected_reliable(units: Units, between: float = CELLS) -> int:
    """Returns how many cells are likely to be reliable.

    Values are normal, as in forecasts of means: `between` of their variance lies between cells, and
    other parts between users and between a user's records.
    """
    edges = ndtri(np.array(ranks_of(units.bins)))
    size = len(units.cells)
    weight = units.units / np.maximum(units.total, 1)[units.cell]
    # What users, and records, have in common with their cell is more than that of one of them.
    of_user = np.bincount(units.cell, weight**2, size)
    record = weight**2 / units.counts.count[units.member]
    of_record = np.bincount(units.cell, record, size)
    users = between + (1 - between) / (1 - CELLS) * USERS
    of_cells = _spread_of_shares(edges, between)
    with_users = _spread_of_shares(edges, users)
    with_records = _spread_of_shares(edges, 1.0)
    squares = np.full(size, of_cells)
    squares += of_user * (with_users - of_cells)
    squares += of_record * (with_records - with_users)
    reliable = less_than_spread(units.bins, units.noise, units.moved, squares)
    return int((reliable & (units.moved <= MOST_MOVED)).sum())


def _spread_of_shares(edges: Floats, part: float) -> float:
    """Returns the variance of shares below edges where so much of the values' variance is known.

    The mean over the edges, of values with mean 0 and variance 1.
    """
    ranks = (np.arange(_PLACES) + 0.5) / _PLACES
    middle = ndtri(ranks) * part**0.5
    deviation = max(1 - part, 1e-12) ** 0.5
    shares = ndtr((edges - middle[:, None]) / deviation)
    return float(shares.var(axis=0).mean())
