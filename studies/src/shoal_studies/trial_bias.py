"""Paper 003, experiment 6 (figure 6): errors of one release that is used again and again.

The paper fixes each mechanism's randomness for a super-population five times as large and averages
over sub-populations and assignments: what is left, it calls the conditional bias. It says that
Cluster-DP's is lower than that of the mechanisms that release aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal_studies import trial_lines as lines
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, column, listed, short, study
from shoal_studies.simulate import Effort, carry_out
from shoal_studies.trial_measure import DELTA, amounts
from shoal_studies.trial_setting import Mixture, Population
from shoal_studies.trial_simulation import (
    Draws,
    Mechanism,
    NoisyDifferences,
    NoisyHistograms,
    Randomised,
    assign,
)

Floats: TypeAlias = "NDArray[np.float64]"

_LOSSES, _FEW = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0), (0.5, 2.0, 12.0)
# Realisations of each mechanism's randomness, as in the paper.
_RANDOM = 50
_SETTING = Mixture(4.5)


@dataclass(frozen=True)
class _Task:
    losses: tuple[float, ...]
    seed: int
    number: int


def mechanisms(epsilon: float, small: Population) -> dict[str, Mechanism]:
    """All mechanisms at a claimed (as printed) or true loss."""
    levels = small.levels
    part = float(np.abs(levels).max() / (levels[-1] - levels[0]))
    found: dict[str, Mechanism] = {
        lines.DIFFERENCES: NoisyDifferences(epsilon),
        lines.HISTOGRAMS: NoisyHistograms(epsilon),
        lines.DIFFERENCES + lines.PRINTED: NoisyDifferences(epsilon, part),
        lines.HISTOGRAMS + lines.PRINTED: NoisyHistograms(epsilon, printed=True),
        lines.OURS: Randomised(lines.chosen(small, epsilon, "auto")),
    }
    for name, printed in ((lines.CLUSTER, False), (lines.CLUSTER_PRINTED, True)):
        given = lines.calibrated(
            len(levels), epsilon, floor=lines.GAMMA, sigma=lines.SIGMA, printed=printed
        )
        if given is not None:
            found[name] = Randomised(given)
    return found


def conditional(
    mechanism: Mechanism, whole: Population, small: Population, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Biases given the mechanism's randomness, and errors by the mechanism in one release.

    Aggregates: both are the noise for a sub-population's sizes. Responses: randomness is drawn once
    for both potential outcomes of every unit of the super-population, with one prior for each
    cluster and arm; the mean over sub-populations and assignments is that of the super-population.
    """
    draws = assign(small, _RANDOM, random)
    single = mechanism.draw(draws, random)[0] - draws.effect
    if not isinstance(mechanism, Randomised):
        return single, single
    # Half of twice the units: each of them once in either arm.
    both = np.stack([whole.control, whole.treated], axis=1)
    twice = Population(whole.levels, 2 * whole.control, whole.shift)
    draws = Draws(twice, np.repeat(both[None], _RANDOM, axis=0))
    return mechanism.draw(draws, random)[0] - draws.effect, single


def _simulate(task: _Task) -> list[tuple[str, float, float, float, float]]:
    """Name, claimed and true loss, mean absolute bias and error of one super-population."""
    random = np.random.default_rng((task.seed, task.number))
    whole = _SETTING.super_population(random)
    small = whole.part(np.array(_SETTING.sizes), random)
    found = []
    for epsilon in task.losses:
        for name, mechanism in mechanisms(epsilon, small).items():
            bias, single = conditional(mechanism, whole, small, random)
            loss = mechanism.loss(DELTA)
            mean = float(np.abs(bias).mean()), float(np.abs(single).mean())
            found.append((name, epsilon, loss, *mean))
    return found


@study(
    "003-figure-6",
    "Bias given a mechanism's randomness, against noisy aggregates",
    "paper 003, appendix A.8, experiment 6, figure 6",
)
def figure_6(effort: Effort) -> Study:
    """The design is kind to Cluster-DP: its responses are drawn for a super-population five times
    as large, the noise on aggregates for one sub-population.
    """
    losses = _LOSSES if effort.full else _FEW
    populations = amounts(effort)[0]
    tasks = [_Task(losses, effort.seed, number) for number in range(populations)]
    made = carry_out(_simulate, tasks, min(effort.workers, populations))
    every = list(effort.progress(made, len(tasks)))
    rows: list[Row] = []
    for at, (name, claimed, loss, _, _) in enumerate(every[0]):
        bias, single = (np.array([each[at][which] for each in every]) for which in (3, 4))
        rows.append(
            {
                "mechanism": name,
                "claimed_epsilon": claimed,
                "true_epsilon": round(loss, 6),
                "bias": short(bias.mean()),
                "deviation_between_populations": short(bias.std()),
                "error_of_one_release": short(single.mean()),
                "populations": populations,
            }
        )
    titles = {
        "bias": "bias over sub-populations, the paper's design",
        "error_of_one_release": "what the mechanism adds in one release",
    }
    labels = ("epsilon (as printed: claimed)", "mean absolute error")
    charts = [
        Chart([{**row, "panel": title} for row in rows], "claimed_epsilon", name, "mechanism",
              "panel", labels, "xy", lines.LOOKS)
        for name, title in titles.items()
    ]  # fmt: skip
    return Study(rows, charts, _findings(rows))


def _findings(rows: list[Row]) -> list[Finding]:
    """Where Cluster-DP is lower than aggregates, as printed and at the true loss."""
    findings = []
    for word, (name, after) in (("as printed", (lines.CLUSTER_PRINTED, lines.PRINTED)),
                                ("at the true loss", (lines.CLUSTER, ""))):  # fmt: skip
        for what in ("bias", "error_of_one_release") if not after else ("bias",):
            for other in (lines.DIFFERENCES, lines.HISTOGRAMS):
                mine, theirs = (
                    dict(zip(column(rows, "claimed_epsilon", mechanism=each),
                             column(rows, what, mechanism=each), strict=True))
                    for each in (name, other + after)
                )  # fmt: skip
                lower = [at for at in theirs if mine.get(at, np.inf) < theirs[at]]
                findings.append(
                    Finding(f"losses at which Cluster-DP has the lower {what.replace('_', ' ')} "
                            f"than {other}, {word}", "all" if after else "-", listed(lower),
                            len(lower) == len(theirs) if after else None)
                )  # fmt: skip
    for name in (lines.CLUSTER, lines.DIFFERENCES, lines.HISTOGRAMS):
        true = column(rows, "true_epsilon", mechanism=name + lines.PRINTED, claimed_epsilon=2.0)[0]
        findings.append(
            Finding(f"true loss of {name} as printed (errata 12, 14, 15)", "2", f"{true:.2f}",
                    bool(true <= 2))
        )  # fmt: skip
    return findings
