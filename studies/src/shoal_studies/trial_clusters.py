"""Paper 003, experiments 2 and 3 (figures 2c, 2d), and figure 8: what clusters are worth.

The paper says: the ratio of the variances of Cluster-DP and cluster-free falls as clusters become
more homogeneous, more so at a smaller lambda; in communities of a social network Cluster-DP has the
better trade-off. The network is not at hand: a made-up one has the published sizes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.trials.parameters import calibrate
from shoal_studies import trial_lines as lines
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, spans, study
from shoal_studies.simulate import Effort
from shoal_studies.trial_measure import DELTA, Measured, Point, measure
from shoal_studies.trial_setting import Communities, Mixture
from shoal_studies.trial_tradeoffs import (
    ACROSS,
    agrees,
    by_floor,
    by_loss,
    floor_findings,
    loss_findings,
    mixture_losses,
)  # fmt: skip

LAMBDAS = (0.5, 0.8)
_BETAS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 4.9)
_FEW_BETAS = (0.5, 2.5, 4.5)
_LOSSES, _FEW_LOSSES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0), (0.5, 2.0, 4.0)
# gamma K and sigma of experiment 3.
_FLOOR, _NOISE = 0.1, 5.0
_FEWER = 5
Ratio = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


def by_homogeneity(effort: Effort) -> Measured:
    """Figure 2c: Cluster-DP, cluster-free, and a uniform prior at the same true loss."""
    points: list[Point] = []
    for beta in _BETAS if effort.full else _FEW_BETAS:
        setting = Mixture(beta)
        size = setting.population((effort.seed, 0)).space.size
        for lam in LAMBDAS:
            given = lines.replacing(size, lam, floor=lines.GAMMA, sigma=lines.SIGMA)
            flat = calibrate(range(size), epsilon=given.epsilon(DELTA), delta=DELTA)
            for name, parameters in (
                (lines.CLUSTER, given),
                (lines.FREE, given),
                (lines.UNIFORM, flat),
            ):
                made = lines.point(name, beta, setting, parameters)
                points.append(_of(made, lam))
    return measure(points, effort)


def _of(point: Point, lam: float) -> Point:
    return replace(point, line=_name(point.line, lam))


def _name(line: str, lam: float) -> str:
    return f"{line}, lambda {lam:g}"


def ratio(found: Measured, lam: float, other: str) -> Ratio:
    """Exact variance of Cluster-DP over another one's: of means, and its spread."""
    ours, theirs = (found.curve(_name(line, lam)) for line in (lines.CLUSTER, other))
    single = ours.exact / theirs.exact
    return ours.mean() / theirs.mean(), np.asarray(single.std(axis=0))


def homogeneity_chart(found: Measured) -> Chart:
    """The panel of figure 2c."""
    at = found.curve(_name(lines.CLUSTER, LAMBDAS[0])).at
    rows: list[Row] = [
        {"beta": beta, "line": f"Cluster-DP over {other}, lambda {lam:g}", "ratio": each,
         "deviation": error, "panel": "c: Gaussian mixture"}
        for other in (lines.FREE, lines.UNIFORM)
        for lam in LAMBDAS
        for beta, each, error in zip(at.tolist(), *map(np.ndarray.tolist, ratio(found, lam, other)),
                                     strict=True)
    ]  # fmt: skip
    labels = ("beta", "ratio of variances")
    return Chart(rows, "beta", "ratio", "line", "panel", labels, "y", error="deviation")


def homogeneity_findings(found: Measured) -> list[Finding]:
    """What figure 2c says; the paper does not show a uniform prior here."""
    free = {lam: ratio(found, lam, lines.FREE)[0] for lam in LAMBDAS}
    small, large = LAMBDAS
    findings = [
        Finding(
            f"Cluster-DP over cluster-free, lambda {lam:g}", "falls with beta",
            f"{each[0]:.2f}, falling to {each[-1]:.2f}", bool(each[-1] < each[0]),
        )
        for lam, each in free.items()
    ]  # fmt: skip
    for lam in LAMBDAS:
        loss = found.curve(_name(lines.CLUSTER, lam)).points[0].loss
        flat = ratio(found, lam, lines.UNIFORM)[0]
        findings.append(spans(f"Cluster-DP over a uniform prior of the same true loss {loss:.2f}",
                              flat))  # fmt: skip
    return [
        *findings,
        Finding("it falls more at the smaller lambda", "yes",
                f"{free[small][-1]:.2f} and {free[large][-1]:.2f} at the largest beta",
                bool(free[small][-1] < free[large][-1])),
        agrees(found),
    ]  # fmt: skip


def by_communities(effort: Effort) -> Measured:
    """Figure 2d: variances against epsilon in fifty communities."""
    losses = _LOSSES if effort.full else _FEW_LOSSES
    grid = ((_FLOOR, _NOISE),)
    return by_loss(Communities(), effort, losses, grid, fewer=_FEWER)


def community_findings(found: Measured) -> list[Finding]:
    """What figure 2d says; the paper leaves the uniform prior out."""
    cluster, free = found.curve(lines.CLUSTER_PRINTED), found.curve(lines.FREE_PRINTED)
    true, uniform = found.curve(lines.CLUSTER), found.curve(lines.UNIFORM)
    ours, plain = found.curve(lines.OURS), found.curve(lines.PLAIN)
    more = cluster.points[0].loss - cluster.at[0]
    return [
        spans("Cluster-DP over cluster-free, as printed", cluster.over(free), "below 1",
              cluster.over(free) < 1),
        Finding("true loss less the claimed one, as printed (erratum 12)", "0", f"{more:.2f}",
                bool(more <= 0)),
        spans("Cluster-DP over a uniform prior, at the claimed loss", cluster.over(uniform)),
        spans(f"Cluster-DP over a uniform prior, at the true loss, from {true.at[0]:g} on",
              true.over(uniform)),
        spans("our choice over a uniform prior", ours.over(uniform)),
        spans("our choice over the non-private variance", ours.mean() / plain.mean()[0]),
        agrees(found),
    ]  # fmt: skip


@study(
    "003-figure-2c",
    "Cluster-DP over cluster-free against the homogeneity of clusters",
    "paper 003, section 4, experiment 2, figure 2 (1.c)",
)
def figure_2c(effort: Effort) -> Study:
    """At equal parameters, and beside a uniform prior of the same loss."""
    found = by_homogeneity(effort)
    rows = found.rows("gaussian mixture")
    return Study(rows, [homogeneity_chart(found)], homogeneity_findings(found))


@study(
    "003-figure-2d",
    "Variance against the loss in fifty communities",
    "paper 003, section 4, experiment 3, figure 2 (1.d)",
)
def figure_2d(effort: Effort) -> Study:
    """A stochastic block model with 22,179 users, 199 in the smallest community."""
    found = by_communities(effort)
    rows = found.rows("communities")
    return Study(rows, [lines.variances(rows, ACROSS, "xy")], community_findings(found))


@study(
    "003-figure-8",
    "Experiments 1 to 3 side by side",
    "paper 003, appendix A.10, figure 8",
)
def figure_8(effort: Effort) -> Study:
    """All of figures 2a to 2d from one run."""
    floors = by_floor(effort)
    losses = mixture_losses(effort)
    clusters = by_homogeneity(effort)
    communities = by_communities(effort)
    a = [row for part, found in floors.items() for row in found.rows(f"a: {part}")]
    b, c, d = losses.rows("b"), clusters.rows("c"), communities.rows("d")
    charts = [
        lines.variances([row for row in a if row["panel"] == "a: equal loss"], "gamma K"),
        *(lines.variances(rows, ACROSS, "xy") for rows in (b, d)),
        homogeneity_chart(clusters),
    ]
    parts = {
        "a": floor_findings(floors),
        "b": loss_findings(losses),
        "c": homogeneity_findings(clusters),
        "d": community_findings(communities),
    }
    findings = [
        replace(each, claim=f"({part}) {each.claim}") for part, of in parts.items() for each in of
    ]
    return Study([*a, *b, *c, *d], charts, findings)
