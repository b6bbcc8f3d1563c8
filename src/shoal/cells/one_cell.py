"""Estimates the mean of one cell in a single call, from values in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from shoal import checks
from shoal.arrays import Floats
from shoal.cells.estimates import intervals
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.request import Request
from shoal.cells.planners.objective import choose
from shoal.cells.planners.planner import make_plan
from shoal.cells.shown.plan_warnings import (
    few_cell_warnings,
    frequent_user_warnings,
    private_range_warnings,
)
from shoal.checks import check_confidence
from shoal.data.aggregate import Aggregate
from shoal.data.columns_in_memory import Users, column_of_numbers, paired, user_codes
from shoal.data.counts import Counts, build
from shoal.data.value_lattice import Bounds, Lattice
from shoal.privacy.budget import Amount, show
from shoal.privacy.noise import Simulated, source_of


@dataclass(frozen=True)
class Estimate:
    """A private mean with its error bar; everything in the value's unit, and public.

    Source: docs/theory/cells.md#linear-estimators;
    docs/theory/cells.md#adaptive-mean.

    Attributes:
        value: The estimate, within the bounds, in the value's unit.
        interval: Covers the mean of the records, clipped to the bounds, with the given confidence
            in every data set, in the value's unit. It reaches as far as the bias bound plus a
            quantile of the noise. It is wide where a range was selected, because a data set could
            have values far outside of that range.
        typical_interval: An interval that is never wider, in the value's unit, under two
            assumptions: users are exchangeable (how many records a user has says nothing about its
            values), and what a private range cuts off balances or is small. It may miss where
            values have long tails or outliers, are yes or no, or are amounts that are mostly 0.
        noise_scale: Scale b of the Laplace noise: its mean absolute value, in the value's unit.
        bias_bound: The most that the estimate without noise is off in any data set with this range,
            in the value's unit.
        epsilon: Privacy loss of every user, rounded upwards.
        confidence: Probability with which the interval covers.
        range: The range to which means of users (sums, for akmv) were clipped, in the value's unit;
            None if none was selected.
        mechanism: Name of the mechanism.
        parameters: Public whole numbers of the mechanism, such as the cap.
        simulated: Whether the randomness was repeatable: then nobody is protected.
        warnings: Sentences on what speaks against the typical interval.

    Guarantees: G-COVERAGE.

    Example:
        >>> from shoal import mean
        >>> found = mean.baseline([3.0, 4.0] * 500, range(1000), bounds=(0, 10), epsilon=5)
        >>> found.bias_bound < 1e-3, found.interval[0] < found.value < found.interval[1]
        (True, True)
    """

    value: float
    interval: tuple[float, float]
    typical_interval: tuple[float, float]
    noise_scale: float
    bias_bound: float
    epsilon: float
    confidence: float
    range: tuple[float, float] | None
    mechanism: str
    parameters: Mapping[str, tuple[int, ...]]
    simulated: bool
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line, and the warnings."""
        low, high = self.typical_interval
        selected = ""
        if self.range is not None:
            range_low, range_high = self.range
            selected = f", range [{range_low:.4g}, {range_high:.4g}]"
        kind = "simulated " if self.simulated else ""
        line = (
            f"{kind}{self.mechanism}: {self.value:.6g}, typically in "
            f"[{low:.6g}, {high:.6g}] ({self.confidence:.0%}), noise "
            f"{self.noise_scale:.3g}, bias at most {self.bias_bound:.3g}{selected}, "
            f"epsilon {show(self.epsilon)}"
        )
        return "\n".join([line, *(f"warning: {sentence}" for sentence in self.warnings)])


@np.errstate(all="ignore")
def one_estimate(
    method: str | None,
    asked: Mapping[str, Any],
    values: ArrayLike,
    users: Users,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount,
    confidence: float = 0.95,
    tick_bits: int = 20,
    noise: Simulated | None = None,
    **unknown: Any,
) -> Estimate:
    """Returns the estimate of one cell by a method with settings, or for an objective."""
    checks.keywords(unknown, ("bounds", "epsilon", "confidence", "tick_bits", "noise"), "a mean")
    confidence = check_confidence(confidence)
    source = source_of(noise)
    given: dict[str, Any] = {"method": method, "settings": asked} if method else {**asked}
    given |= {"bounds": bounds, "tick_bits": tick_bits, "epsilon": epsilon}
    request = Request.of(uninformative="keep", min_users=1, **given)
    counts, private = aggregate_of(values, users, request.lattice)
    if request.method is None:
        request = request.model_copy(
            update={"method": _method_for(request, counts), "objective": None, "range": None}
        )
    plan = make_plan(counts, request)
    numbers = Estimates.of(plan, *draw(plan, private, source))
    typical_intervals = intervals.intervals if numbers.of_vectors else Estimates.typical_intervals
    return Estimate(
        value=float(numbers.value[0]),
        interval=_first(numbers.intervals(confidence)),
        typical_interval=_first(typical_intervals(numbers, confidence)),
        noise_scale=float(numbers.noise_scale[0]),
        bias_bound=float(numbers.bias_bound[0]),
        epsilon=plan.epsilon,
        confidence=confidence,
        range=numbers.clipped_to(0),
        mechanism=plan.decision.method.mechanism or plan.method,
        parameters={name: tuple(each.tolist()) for name, each in plan.parameters.items()},
        simulated=noise is not None,
        warnings=(
            *few_cell_warnings(plan),
            *frequent_user_warnings(plan),
            *private_range_warnings(numbers),
        ),
    )


def _method_for(request: Request, counts: Counts) -> str:
    """Returns the name of the method that serves the request's objective in one cell."""
    if request.objective == "worst_case":
        # No bounding of one cell has a smaller error (docs/theory/cells.md#limits-of-means).
        return "worst_case_optimal"
    method, _ = choose(request, counts)
    return method.name


def _first(ends: tuple[Floats, Floats]) -> tuple[float, float]:
    """Returns the interval of the only cell."""
    low, high = ends
    return float(low[0]), float(high[0])


def aggregate_of(values: ArrayLike, users: Users, lattice: Lattice) -> tuple[Counts, Aggregate]:
    """Returns counts and sums of one cell, from a finite number and a key for each record."""
    paired({"value": values}, {"user": users})
    numbers = column_of_numbers(values)
    who = user_codes(users, len(numbers))
    order = np.argsort(who, kind="stable")
    records = np.bincount(who)
    first_record = np.cumsum(records) - records
    sums = np.add.reduceat(lattice.ticks(numbers)[order], first_record)
    cells = pa.table({"cell": pa.array(["all"] * len(records))})
    # The counts have users in the order of `rows`.
    counts, rows = build(pa.array(np.arange(len(records))), cells, records.astype(np.int64))
    centred = sums[rows] - (counts.count << (lattice.bits - 1))
    # Squares are used only for the variance, which these mechanisms do not release.
    return counts, Aggregate(counts.memberships, lattice, centred, np.zeros_like(centred))
