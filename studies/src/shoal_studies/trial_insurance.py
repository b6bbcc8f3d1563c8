"""A real experiment: who buys insurance, and what of the effect is left with private outcomes.

The households of Cai, de Janvry and Sadoulet (2015) are public data, so that releases can be
compared with what they hide. Noise is simulated: nothing here is private, no budget is spent.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree
from shoal_studies import trial_lines as lines
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, column, spans, study
from shoal_studies.simulate import Effort, carry_out
from shoal_studies.trial_insurance_releases import (
    CONFIDENCE,
    FLOOR,
    NULL,
    REAL,
    SPACE,
    Households,
    Releases,
    Task,
    carry,
    load,
)

EPSILONS, _FEW_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 4.0)
_MOST, _SEEDS = 1000, 2**20
_POWER = 0.8
_HISTOGRAMS = (ClusterFree, ClusterDP)


@study(
    "insurance",
    "A real experiment with private outcomes: who buys insurance (simulated noise: not private)",
    "our own, on the households of Cai, de Janvry and Sadoulet (2015), package causaldata",
)
def insurance(effort: Effort) -> Study:
    """Households are taken as assigned one by one."""
    both = load()
    epsilons = EPSILONS if effort.full else _FEW_EPSILONS
    each = min(effort.repetitions, _MOST)
    tasks = [
        Task(part, epsilon, each, (effort.seed * 2 + side) * _SEEDS)
        for (side, part), epsilon in product(enumerate(both), epsilons)
    ]
    done = effort.progress(carry_out(carry, tasks, min(effort.workers, len(tasks))), len(tasks))
    found = [releases for part in done for releases in part]
    rows = [_row(each) for each in found]
    real = [row for row in rows if row["treatment"] == REAL]
    across = "epsilon of one household's outcome"
    charts = [
        Chart([{**row, "panel": f"{REAL}: 90% of the estimates"} for row in real],
              "epsilon", "mean", "mechanism", "panel",
              (across, "effect on the share who buy"), "x", lines.LOOKS,
              band=("estimate_5", "estimate_95")),
        Chart([{**row, "panel": f"{REAL}: distance from the estimate without privacy"}
               for row in real], "epsilon", "rmse", "mechanism", "panel",
              (across, "root mean squared distance"), "xy", lines.LOOKS),
        Chart([{**row, "panel": f"distinguished from 0: {row['treatment']}"} for row in rows],
              "epsilon", "told_from_0", "mechanism", "panel", (across, "share of releases"), "x",
              lines.LOOKS),
    ]  # fmt: skip
    return Study(rows, charts, [*_data(both), *_findings(rows, both[0])])


def _row(found: Releases) -> Row:
    home = found.households
    low, high = np.quantile(found.value, (0.05, 0.95))
    return {
        "treatment": home.name,
        "epsilon": found.epsilon,
        "mechanism": found.mechanism,
        "households": home.units.assignment.n,
        "villages": len(home.units.assignment.clusters),
        "villages_left_out": home.left_out,
        "non_private": round(home.plain.value, 6),
        "non_private_standard_error": round(home.plain.finite_population.standard_error, 6),
        "mean": round(float(found.value.mean()), 6),
        "estimate_5": round(float(low), 6),
        "estimate_95": round(float(high), 6),
        "rmse": round(found.rmse, 6),
        "standard_error": round(float(found.error.mean()), 6),
        "covers_non_private": round(found.covers(home.plain.value), 4),
        "told_from_0": round(found.told, 4),
        "covers_0_if_shuffled": round(found.valid, 4),
        "releases": len(found.value),
    }


def _data(both: tuple[Households, Households]) -> list[Finding]:
    return [
        Finding(
            f"{home.name}: effect without privacy, {CONFIDENCE:.0%} interval", "-",
            "{:.3f}, {:.3f} to {:.3f}".format(home.plain.value,
                                              *home.plain.finite_population.interval),
        )
        for home in both
    ] + [
        Finding(f"{home.name}: hamlets of which all households have the same arm", "-",
                f"{home.alike} of {home.hamlets}")
        for home in both
    ]  # fmt: skip


def _findings(rows: list[Row], home: Households) -> list[Finding]:
    names = list(dict.fromkeys(str(row["mechanism"]) for row in rows))
    rmse = {name: column(rows, "rmse", treatment=REAL, mechanism=name) for name in names}
    epsilon = column(rows, "epsilon", treatment=REAL, mechanism=names[0])
    enough = {
        name: epsilon[column(rows, "told_from_0", treatment=REAL, mechanism=name) >= _POWER]
        for name in names
    }
    sizes = home.units.assignment.sizes
    same = sum(
        all(kind(loss).choose(sizes, SPACE).parameters.weight == 0 for kind in _HISTOGRAMS)
        for loss in epsilon.tolist()
    )
    return [
        Finding(f"{REAL}: distance from the estimate without privacy, least and largest epsilon",
                "-", "; ".join(f"{name} {each[0]:.3f} and {each[-1]:.3f}"
                               for name, each in rmse.items())),
        *(
            spans(f"{name} with a floor of {FLOOR:g} over the uniform prior",
                  rmse[name] / rmse[lines.UNIFORM])
            for name in (lines.FREE, lines.CLUSTER)
        ),
        Finding("losses at which cluster-free and Cluster-DP, left to choose, take the uniform "
                "prior", "-", f"{same} of {len(epsilon)}"),
        Finding(f"{REAL}: detected in {_POWER:.0%} of releases from epsilon", "-",
                "; ".join(f"{name} {at[0]:g}" for name, at in enough.items() if len(at))),
        spans(f"{NULL}: part of releases that detect it",
              column(rows, "told_from_0", treatment=NULL)),
        spans(f"{CONFIDENCE:.0%} intervals that cover 0 where arms are shuffled",
              column(rows, "covers_0_if_shuffled")),
        spans("intervals that hold the estimate without privacy",
              column(rows, "covers_non_private")),
    ]  # fmt: skip
