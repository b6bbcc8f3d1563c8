"""Variances of the speeds of flights by destination: certificates against the truth.

The bundled flights are public, so that what a release would show can be compared with what it
hides. Noise is simulated: nothing here is private, and no budget is spent.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import duckdb
import numpy as np

from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.request import Request
from shoal.cells.planners.planner import make_plan
from shoal.data.aggregate import Aggregate
from shoal.data.counts import Counts
from shoal.data.records import Records
from shoal.privacy.noise import Simulated
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, column, span, spans, study
from shoal_studies.simulate import Effort

# Airliners: public knowledge. One flight in a thousand or so is outside and clipped.
BOUNDS = (100, 600)
MIN_RECORDS = 200
_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_FEW_EPSILONS = (1.0, 8.0)
_SHOWN = 8.0
_FULLEST = 30
_CONFIDENCE = 0.95
_DRAWS = 200
_FEW_DRAWS = 20
_CERTIFIED = "certificate, before any value is read"
_MEASURED = "mean absolute error, measured"
_TRUE = "the true variance itself"
_RELEASED = "one simulated release, 95% interval"


@study(
    "flights-variance",
    "Variances of speeds by destination (simulated noise: not private)",
    "our own, on the bundled flights of 2013",
)
def flights_variance(effort: Effort) -> Study:
    """The user is the aircraft, the method is balanced, the bounds are in miles per hour."""
    with as_file(files("shoal") / "datasets" / "flights_2013.parquet") as path:
        records = Records(
            path,
            user="tailnum",
            value="speed",
            bounds=BOUNDS,
            by="dest",
            missing="public",
            counts="public",
        )
        counts, aggregate = records.aggregate()
        truth = _truth(path)
    epsilons, draws = (_EPSILONS, _DRAWS) if effort.full else (_FEW_EPSILONS, _FEW_DRAWS)
    rows = [
        row
        for epsilon in effort.progress(epsilons, len(epsilons))
        for row in _rows(counts, aggregate, truth, epsilon, draws, effort.seed)
    ]
    middle = {
        epsilon: [
            float(np.median(column(rows, name, epsilon=epsilon)))
            for name in ("certificate", "mean_error", "true_variance", "covered")
        ]
        for epsilon in epsilons
    }
    curves: list[Row] = [
        {"epsilon": epsilon, "what": what, "error": number, "panel": "the median destination"}
        for epsilon, numbers in middle.items()
        for what, number in zip((_CERTIFIED, _MEASURED, _TRUE), numbers, strict=False)
    ]
    charts = [
        Chart(_spreads(rows), "destination", "variance", "what", "panel",
              labels=("destinations with most flights", "variance, (mph)^2"), marks="middle",
              error="half"),
        Chart(curves, "epsilon", "error", "what", "panel",
              labels=("epsilon in total", "error of the variance, (mph)^2"), log="xy"),
    ]  # fmt: skip
    value = column(rows, "simulated_variance")
    covered = column(rows, "covered")
    over = column(rows, "mean_error") / column(rows, "certificate")
    useful = [epsilon for epsilon, each in middle.items() if each[0] < each[2]]
    findings = [
        spans("true variances, (mph)^2", column(rows, "true_variance")),
        Finding("certificate of the median destination by epsilon", "-",
                "; ".join(f"{each[0]:.4g} at {epsilon:g}" for epsilon, each in middle.items())),
        Finding("it is below the median variance from this epsilon on", "-",
                f"{useful[0]:g}" if useful else "none"),
        Finding("measured error over certificate: mean, least to largest", "mean at most 1",
                f"{over.mean():.2g}, {span(over)}", bool(over.mean() <= 1)),
        Finding(f"coverage of {_CONFIDENCE:.0%} intervals, by epsilon", f"{_CONFIDENCE:.0%}",
                span(np.array([column(rows, "covered", epsilon=each).mean() for each in epsilons])),
                bool(covered.mean() >= _CONFIDENCE)),
        Finding("values", "from 0 to U^2/4", span(value),
                bool(value.min() >= 0 and value.max() <= (BOUNDS[1] - BOUNDS[0]) ** 2 / 4)),
    ]  # fmt: skip
    return Study(rows, charts, findings)


def _truth(path: Path) -> dict[str, float]:
    """The variance of the clipped speeds by destination."""
    low, high = BOUNDS
    rows = duckdb.execute(
        f"select dest, var_pop(least(greatest(speed, {low}), {high})) from '{path}' "
        "where tailnum is not null and speed is not null group by dest"
    )
    return dict(rows.fetchall())


def _rows(
    counts: Counts,
    aggregate: Aggregate,
    truth: dict[str, float],
    epsilon: float,
    draws: int,
    seed: int,
) -> list[Row]:
    """One destination each: the truth, a release, and errors over all releases."""
    request = Request.of(
        method="balanced", bounds=aggregate.lattice.bounds, tick_bits=aggregate.lattice.bits,
        epsilon=epsilon, statistics=["variance"], uninformative="keep", min_users=1,
        min_records=MIN_RECORDS,
    )  # fmt: skip
    plan = make_plan(counts, request)
    found = []
    for turn in range(draws):
        numbers = Estimates.of(plan, *draw(plan, aggregate, Simulated(seed * _DRAWS + turn)))
        found.append((numbers.value, *numbers.intervals(_CONFIDENCE)))
    names = [plan.counts.labels[at] for at in plan.planned.tolist()]
    true = np.array([truth[name] for name in names])
    value, low, high = (np.array(each) for each in zip(*found, strict=True))
    error = np.abs(value - true).mean(axis=0)
    covered = ((low <= true) & (true <= high)).mean(axis=0)
    return [
        {
            "epsilon": float(plan.request.epsilon or 0),
            "destination": name,
            "flights": int(plan.counts.totals[plan.planned[at]]),
            "aircraft": int(plan.counts.users_per_cell[plan.planned[at]]),
            "true_variance": round(float(true[at]), 3),
            "simulated_variance": round(float(value[0, at]), 3),
            "low": round(float(low[0, at]), 3),
            "high": round(float(high[0, at]), 3),
            "certificate": round(float(plan.worst_case_error[at]), 3),
            "mean_error": round(float(error[at]), 3),
            "covered": round(float(covered[at]), 4),
            "draws": draws,
        }
        for at, name in enumerate(names)
    ]


def _spreads(rows: list[Row]) -> list[Row]:
    """The fullest destinations at one loss: true, and as one draw shows them."""
    these = sorted(
        (row for row in rows if row["epsilon"] == _SHOWN), key=lambda row: -float(row["flights"])
    )
    found: list[Row] = []
    for row in these[:_FULLEST]:
        same: Row = {"destination": row["destination"], "panel": f"epsilon {_SHOWN:g} in total"}
        low, high = float(row["low"]), float(row["high"])
        ends: Row = {"middle": (low + high) / 2, "half": (high - low) / 2}
        found.append({**same, **ends, "what": _RELEASED, "variance": row["simulated_variance"]})
        found.append({**same, "what": "truth", "variance": row["true_variance"]})
    return found
