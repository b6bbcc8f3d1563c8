"""Seconds of a whole trial release beside a plain table of means, on the same units in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from shoal.data.outcome_space import Space
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.trials.mechanisms.outcomes import ClusterDP, UniformPrior

_LEVELS = 11


def run(units: int, clusters: int) -> Iterator[str]:
    """One line a mechanism: seconds, and their ratio to a plain group-by of the same columns.

    A release contains reading columns in memory, grouping, rounding, noise, responses, effects and
    the manifest; no ledger.
    """
    rng = np.random.default_rng(0)
    arm, home = rng.integers(0, 2, units), rng.integers(0, clusters, units)
    outcome = rng.normal(50 + arm, 10, units)
    space = Space.bins(0, 100, _LEVELS)

    def plain() -> object:
        names = ["cluster", "arm", "outcome"]
        table = pa.table([pa.array(home), pa.array(arm), pa.array(outcome)], names=names)
        return table.group_by(["cluster", "arm"]).aggregate([("outcome", "mean")])

    base = _seconds(plain)
    yield f"{units:,} units in {clusters:,} clusters, {_LEVELS} levels, epsilon 4"
    yield f"plain means of groups (PyArrow) {base:8.2f} s"
    for label, mechanism in (
        ("ClusterDP, chosen", ClusterDP(4)),
        ("ClusterDP, floor 0.02", ClusterDP(4, floor=0.02, histogram_scale=10, levels="all")),
        ("UniformPrior", UniformPrior(4)),
        ("NoisyHorvitzThompson", NoisyHorvitzThompson(4)),
        ("NoisyHistogram", NoisyHistogram(4)),
    ):
        release = partial(mechanism.privatize, outcome, arm, home, space=space)
        found = _seconds(release)
        yield f"{label:<31} {found:8.2f} s {found / base:8.1f} times"


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
