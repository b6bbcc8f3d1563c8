"""Sums that are made up, and draws of a plan from sums, where no engine is on trial."""

import numpy as np
from numpy.typing import NDArray

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import Facts
from shoal.data.aggregate import Aggregate


def drawn(plan: Facts, sums: Aggregate, seed: int) -> Estimates:
    """Numbers as a release would publish them, with noise of a seed."""
    return Estimates.of(plan, *draw(plan, sums, shoal.Simulated(seed)))


def sums_of(plan: Facts, mean: NDArray[np.float64]) -> Aggregate:
    """Sums of members with these means, as parts of the width."""
    counts, bits = plan.counts, plan.lattice.bits
    ticks = np.rint(np.clip(mean, 0, 1) * counts.count * 2.0**bits).astype(np.int64)
    centred = ticks - (counts.count << (bits - 1))
    return Aggregate(counts.memberships, plan.lattice, centred, np.zeros_like(centred))
