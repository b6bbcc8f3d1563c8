"""Paper 003, experiments 2 and 3 (figures 2c and 2d): what clusters are worth.

The paper says: the ratio of the variances of Cluster-DP and cluster-free falls as clusters become
more homogeneous, more so at a smaller lambda; in communities of a social network Cluster-DP has the
better trade-off. The network is not at hand: a made-up one has the published sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.trials.parameters import calibrate
from shoal_studies import drawing, trial_drawing
from shoal_studies import trial_lines as lines
from shoal_studies.measure import Effort
from shoal_studies.study import Outcome, Study, span, verdict
from shoal_studies.trial_measure import DELTA, Measured, Point, measure
from shoal_studies.trial_setting import Communities, Mixture
from shoal_studies.trial_tradeoffs import behind, by_loss, draw_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def draw_homogeneity(axis: Axes, found: Measured) -> drawing.Shown:
    """The panel of figure 2c."""
    at = found.curve(_name(lines.CLUSTER, LAMBDAS[0])).at
    pairs = {
        f"Cluster-DP over {short}, lambda {lam:g}": ratio(found, lam, other)
        for short, other in (("cluster-free", lines.FREE), ("uniform prior", lines.UNIFORM))
        for lam in LAMBDAS
    }
    title = f"gamma {lines.GAMMA:g}, sigma {lines.SIGMA:g}"
    return trial_drawing.ratios(axis, at, pairs, title, across="beta")


def read_homogeneity(found: Measured, effort: Effort) -> str:
    """What figure 2c says."""
    free = {lam: ratio(found, lam, lines.FREE)[0] for lam in LAMBDAS}
    flat = {lam: ratio(found, lam, lines.UNIFORM)[0] for lam in LAMBDAS}
    loss = {lam: found.curve(_name(lines.CLUSTER, lam)).points[0].loss for lam in LAMBDAS}
    at = found.curve(_name(lines.CLUSTER, LAMBDAS[0])).at
    small, large = LAMBDAS
    falls = all(bool(each[-1] < each[0]) for each in free.values())
    stronger = bool(free[small][-1] < free[large][-1])
    parts = "; ".join(
        f"at lambda {lam:g} it is {free[lam][0]:.2f} at beta {at[0]:g} and {free[lam][-1]:.2f} at "
        f"{at[-1]:g}"
        for lam in LAMBDAS
    )
    costs = ", ".join(
        f"{loss[lam]:.2f} (claimed: {loss[lam] - 1 / lines.SIGMA:.2f}) at lambda {lam:g}"
        for lam in LAMBDAS
    )
    gains = ", ".join(f"{span(flat[lam])} at lambda {lam:g}" for lam in LAMBDAS)
    return (
        f"The ratio of the variances of Cluster-DP and cluster-free at equal parameters: {parts}. "
        f"That it falls with beta is {verdict(falls)}, that it falls more at the smaller lambda "
        f"{verdict(stronger)}. The true epsilon at delta {float(DELTA):g} is {costs}. Against a "
        "uniform prior with the same true loss, which the paper does not show here, Cluster-DP has "
        f"{gains} times the variance (beta from {at[0]:g} to {at[-1]:g}). {behind(found, effort)}"
    )


def by_communities(effort: Effort) -> Measured:
    """Figure 2d: variances against epsilon in fifty communities."""
    losses = _LOSSES if effort.full else _FEW_LOSSES
    grid = ((_FLOOR, _NOISE),)
    return by_loss(Communities(), effort, losses, grid, fewer=_FEWER)


def read_communities(found: Measured, effort: Effort) -> str:
    """What figure 2d says."""
    cluster, free = found.curve(lines.CLUSTER_PRINTED), found.curve(lines.FREE_PRINTED)
    true, uniform = found.curve(lines.CLUSTER), found.curve(lines.UNIFORM)
    ours, plain = found.curve(lines.OURS), found.curve(lines.PLAIN)
    at = f"{cluster.at[0]:g} to {cluster.at[-1]:g}"
    return (
        f"As printed (gamma {_FLOOR:g}/K, sigma {_NOISE:g}; every claimed epsilon is truly "
        f"{cluster.points[0].loss - cluster.at[0]:.2f} more) Cluster-DP has "
        f"{span(cluster.over(free))} times the variance of cluster-free at epsilon {at}: better by "
        f"the clusters, {verdict(bool((cluster.over(free) < 1).all()))}. At the true loss (from "
        f"{true.at[0]:g} on) it has {span(true.over(uniform), 1)} times the variance of a uniform "
        f"prior, which figure 2d of the paper leaves out, and at the claimed one "
        f"{span(cluster.over(uniform), 1)} times; our choice has {span(ours.over(uniform))} times "
        f"that variance. The non-private variance is {plain.mean()[0]:.2g}, that of our choice "
        f"{span(ours.mean() / plain.mean()[0], 0)} times as much. The network is a stochastic "
        f"block model with 50 communities, 22,179 users and a smallest one of 199. "
        f"{behind(found, effort)}"
    )


def _figure_2c(effort: Effort) -> Outcome:
    drawing.check()
    found = by_homogeneity(effort)
    figure, [axis] = drawing.canvas("Paper 003, figure 2c: what clusters are worth", 1)
    drawing.legend(figure, draw_homogeneity(axis, found))
    return Outcome(found.rows("gaussian mixture"), figure, read_homogeneity(found, effort))


def _figure_2d(effort: Effort) -> Outcome:
    drawing.check()
    found = by_communities(effort)
    figure, [axis] = drawing.canvas("Paper 003, figure 2d: fifty communities", 1)
    title = f"gamma {_FLOOR:g}/K, sigma {_NOISE:g}, delta 1e-4"
    drawing.legend(figure, draw_losses(axis, found, title))
    return Outcome(found.rows("communities"), figure, read_communities(found, effort))


FIGURE_2C = Study(
    "003-figure-2c",
    "Cluster-DP over cluster-free against the homogeneity of clusters",
    "paper 003, section 4, experiment 2, figure 2 (1.c)",
    _figure_2c,
)
FIGURE_2D = Study(
    "003-figure-2d",
    "Variance against the loss in fifty communities",
    "paper 003, section 4, experiment 3, figure 2 (1.d)",
    _figure_2d,
)
