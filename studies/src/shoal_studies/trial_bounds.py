"""Paper 003, experiment 5 (figure 5): what Cluster-DP adds to the variance, within its bounds.

The paper prints A(x), the second part of its bound, in three forms that differ (erratum 16). Ours
is proved anew (`shoal.theory.randomised_response.at_most`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.theory import randomised_response, trial_variance
from shoal.trials.parameters import Parameters
from shoal_studies import trial_lines as lines
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Study, short, spans, study
from shoal_studies.simulate import Effort
from shoal_studies.trial_distributions import default
from shoal_studies.trial_measure import measure
from shoal_studies.trial_setting import Mixture, Population
from shoal_studies.trial_tradeoffs import agrees

Floats: TypeAlias = "NDArray[np.float64]"

_BETAS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 4.9)
_FEW = (0.5, 2.5, 4.5)
_GAP, _FIRST, _OURS = "gap", "first term", "our bound"
_PRINTED = ("printed, theorem 3.5", "printed, table of notation", "printed, proof")


def printed(sizes: NDArray[np.int64], levels: Floats, parameters: Parameters) -> list[Floats]:
    """A(x) in the three forms of the paper: theorem 3.5, appendix A.1, and the proof.

    2K [gamma + (sigma/x)(e^(-gamma x/sigma) - e^(-x/sigma))] times three different factors.

    Example:
        >>> from shoal_studies.trial_distributions import default
        >>> found = printed(np.array([[250]]), np.arange(-5.0, 7.0), default())
        >>> [round(float(each[0, 0])) for each in found]
        [6517, 48384, 1638771]
    """
    lam, gamma, sigma, size = parameters.lam, parameters.gamma, parameters.sigma, parameters.levels
    x = sizes.astype(np.float64)
    away = sigma / x * (np.exp(-gamma * x / sigma) - np.exp(-x / sigma))
    common = 2 * size * (gamma + away)
    largest, norm = float(np.abs(levels).max() ** 2), float((levels**2).sum())
    root, kept = (lam * size**0.5 + 1) ** 2, (1 - lam) ** 2
    rest = norm * (1 - lam * (size - 1) * gamma)
    factors = (
        2 * largest + (3 * largest + root + rest) / kept,
        largest * (3 / kept + 2) + root / kept * rest,
        largest * (3 / kept + 2 + root / kept * rest),
    )
    return [np.asarray(common * factor) for factor in factors]


def bounds(population: Population, parameters: Parameters) -> dict[str, float]:
    """The first term of the bound alone, ours, and the three printed ones, squared units."""
    spread = np.column_stack([population.spread, population.spread])
    sizes, levels, lam = population.sizes, population.levels, parameters.lam
    first = trial_variance.of_effects((1 / (1 - lam) ** 2 - 1) * spread, sizes)[0]
    unit = randomised_response.at_most(
        sizes, levels, lam=lam, floor=parameters.gamma, sigma=parameters.sigma, spread=spread
    )
    found = {_FIRST: float(first), _OURS: float(trial_variance.of_effects(unit, sizes)[0])}
    for name, second in zip(_PRINTED, printed(sizes, levels, parameters), strict=True):
        found[name] = float(first + trial_variance.of_effects(second, sizes)[0])
    return found


@study(
    "003-figure-5",
    "What Cluster-DP adds to the variance, within its bounds",
    "paper 003, appendix A.7, experiment 5, figure 5",
)
def figure_5(effort: Effort) -> Study:
    """The paper calls its bound tight up to the second term, which is nearly all of it."""
    betas, given = _BETAS if effort.full else _FEW, default()
    points = []
    for beta in betas:
        points += [lines.plain(beta, Mixture(beta))]
        points += [lines.point(lines.CLUSTER, beta, Mixture(beta), given)]
    found = measure(points, effort)
    gap = found.curve(lines.CLUSTER).exact - found.curve(lines.PLAIN).exact
    drawn = found.curve(lines.CLUSTER).variance - found.curve(lines.PLAIN).variance
    every = [
        [bounds(Mixture(beta).population((effort.seed, at)), given) for beta in betas]
        for at in range(len(gap))
    ]
    shown = {
        name: np.array([[each[name] for each in row] for row in every])
        for name in (_FIRST, _OURS, *_PRINTED)
    }
    rows: list[Row] = [
        {
            "beta": beta,
            "simulated_gap": short(drawn.mean(axis=0)[at]),
            _GAP: short(gap.mean(axis=0)[at]),
            **{name: short(each.mean(axis=0)[at]) for name, each in shown.items()},
        }
        for at, beta in enumerate(betas)
    ]
    curves: list[Row] = []
    for at, row in enumerate(rows):
        for name in (_GAP, *shown):
            point: Row = {"beta": row["beta"], "line": name, "added variance": row[name]}
            if name == _GAP:
                point |= {"mark": row["simulated_gap"], "bar": float(drawn.std(axis=0)[at])}
            curves.append(point)
    chart = Chart(
        curves, "beta", "added variance", "line", log="y", marks="mark", error="bar",
        looks={
            _GAP: ("#d1495b", "-", ""), _FIRST: ("#2a9d8f", ":", ""), _OURS: ("#2a9d8f", "-", ""),
            _PRINTED[0]: ("#8d99ae", ":", ""), _PRINTED[1]: ("#8d99ae", "--", ""),
            _PRINTED[2]: ("#8d99ae", "-.", ""),
        },
    )  # fmt: skip
    findings = [
        spans("gap over the first term of the bound", (gap / shown[_FIRST]).mean(axis=0),
              "at least 1", gap >= shown[_FIRST]),
        *(
            spans(f"bound, {name}, over the gap", (shown[name] / gap).mean(axis=0), "at least 1",
                  gap <= shown[name])
            for name in _PRINTED
        ),
        spans("our bound, proved anew (erratum 16), over the gap: at least 1",
              (shown[_OURS] / gap).mean(axis=0), "-", gap <= shown[_OURS]),
        agrees(found),
    ]  # fmt: skip
    return Study(rows, [chart], findings)
