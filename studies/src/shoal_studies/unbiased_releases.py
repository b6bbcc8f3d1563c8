"""Releases that are averaged: bias stays, variance goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.means.estimators import ClippedPlan
from shoal.theory.clipping import Moment
from shoal_studies.chart import Chart, Row
from shoal_studies.known_distributions import Distribution, Normal, mirrored
from shoal_studies.paper_004_estimators import CLIPPED, COMBINED, Asked, Part, Sampled
from shoal_studies.registry import Finding, Study, listed, short, study
from shoal_studies.simulate import Effort
from shoal_studies.unbiased_exact import Exact, exact, worst
from shoal_studies.unbiased_measure import Job, Measured, simulate

USERS, EPSILON, DELTA = 4000, 1.0, 1e-5
_UNIT = (Moment(8, 1.0),)
# A Gaussian of deviation 1 has an eighth moment of 105.
_GAUSSIAN = (Moment(2, 1.0), Moment(8, 105**0.125))
_BUDGETS = (0.1, 0.03, 0.01, 0.001)
_RELEASES = tuple(10**k for k in range(6))
# Averages behind a figure, at least, and for a comparison with what is exact.
_GROUPS, _MANY = 10, 400
# No more releases than this are of interest.
_MOST = 10**9
_WORST, _NORMAL = "adversarial", "Gaussian"


@dataclass(frozen=True, eq=False)
class Curve:
    """One estimator on one distribution, over the number of releases."""

    data: str
    name: str
    method: str
    exact: Exact
    simulated: Measured

    @property
    def groups(self) -> list[int]:
        """Numbers of releases of which there are enough averages."""
        most = len(self.simulated.error) // _GROUPS
        return [each for each in _RELEASES if each <= max(most, 1)]

    @property
    def rows(self) -> list[Row]:
        """One a number of releases."""
        seen = self.groups
        return [
            {
                "data": self.data,
                "estimator": self.name,
                "releases": each,
                "rmse": short(self.exact.average(each)),
                "simulated": short(self.simulated.average(each)) if each in seen else "",
                "averages": len(self.simulated.error) // each if each in seen else "",
            }
            for each in _RELEASES
        ]


@dataclass(frozen=True, eq=False)
class _Line:
    data: str
    name: str
    part: Part
    distribution: Distribution
    exact: Exact | None


def _asked(data: str) -> Asked:
    return Asked(USERS, _GAUSSIAN if data == _NORMAL else _UNIT, EPSILON, DELTA)


def lines(data: str) -> list[_Line]:
    """Estimators, each on its own worst two points, or all on Gaussian values.

    Example:
        >>> [line.name for line in lines("Gaussian")][:2]
        ['clipped, bias 0.1', 'clipped, bias 0.03']
    """
    gaussian = data == _NORMAL
    asked = _asked(data)
    parts: dict[str, ClippedPlan | Sampled] = {
        f"clipped, bias {each:g}": asked.clipped(each) for each in _BUDGETS
    }
    found = []
    for name, part in {**parts, "combined": asked.combined()}.items():
        distribution: Distribution = Normal()
        known = exact(part, Normal(), 1.0)
        if not gaussian:
            distribution, known = worst(part, _RELEASES[-1])
        found.append(_Line(data, name, part, distribution, known))
    distribution = Normal() if gaussian else mirrored(_UNIT, 1.0)
    return [*found, _Line(data, "symmetric", asked.symmetric(), distribution, None)]


@study(
    "004-releases",
    "The error of averages of many releases",
    "paper 004, chapter 1: why bias matters",
)
def releases(effort: Effort) -> Study:
    """Adversarial values are two points that are worst after all releases (+-1: symmetric mean).

    Errors are exact but for the symmetric mean's, whose variance is simulated.
    """
    every = [line for data in (_WORST, _NORMAL) for line in lines(data)]
    runs = max(20, effort.repetitions // 2)
    jobs = [Job(line.part, line.distribution, 1.0, runs) for line in every]
    curves = [
        Curve(line.data, line.name, line.part.method, _known(line, found), found)
        for line, found in zip(every, simulate(jobs, effort), strict=True)
    ]
    rows = [row for curve in curves for row in curve.rows]
    shown = [{**row, "panel": f"{row['data']} values"} for row in rows]
    for data in (_WORST, _NORMAL):
        shown += [
            {"panel": f"{data} values", "estimator": "clipped, budget for so many: certificate",
             "releases": each, "rmse": chosen(_asked(data), each)}
            for each in _RELEASES
        ]  # fmt: skip
    chart = Chart(shown, "releases", "rmse", "estimator", "panel",
                  ("releases", "RMSE of the average"), "xy", marks="simulated")  # fmt: skip
    return Study(rows, [chart], _findings(curves))


def _known(line: _Line, found: Measured) -> Exact:
    """The symmetric mean has no bias; its variance is the simulated one."""
    return line.exact or Exact(0.0, found.rmse**2)


def chosen(asked: Asked, releases: int) -> float:
    """Certificate of the average of clipped means whose budget is chosen for their number."""
    parts = [asked.clipped(float(each)) for each in np.geomspace(1e-9, 0.1, 33)]
    return min(math.sqrt(each.bias_bound**2 + each.standard_error**2 / releases) for each in parts)


def _findings(curves: Sequence[Curve]) -> list[Finding]:
    found = []
    last, unit = _RELEASES[-1], USERS**0.5
    for data in (_WORST, _NORMAL):
        these = [curve for curve in curves if curve.data == data]
        combined = next(curve for curve in these if curve.method == COMBINED)
        biased = [curve for curve in these if curve.method == CLIPPED]
        ahead = "; ".join(f"{each.name}: {_crossing(each, combined)}" for each in biased)
        over = [each.exact.average(last) / combined.exact.average(last) for each in biased]
        one = "; ".join(f"{each.name} {each.exact.rmse * unit:.3g}" for each in these)
        share = chosen(_asked(data), last) / _asked(data).combined().rmse_bound * last**0.5
        found += [
            Finding(f"{data} values: errors of one release in units of 1/sqrt(n)", "-", one),
            Finding(f"{data} values: averages of the combined mean err less from so many releases",
                    "-", ahead),
            Finding(f"{data} values: clipped over combined mean after {last:,} releases",
                    "above 1: bias stays", listed(over), min(over) > 1),
            Finding(f"{data} values: the same of certificates, with a budget for {last:,}", "-",
                    f"{share:.2f}"),
        ]  # fmt: skip
    off = _agreement(curves)
    return [*found, Finding("simulated averages off the exact errors, where there are many", "-",
                            f"at most {off:.1%}")]  # fmt: skip


def _crossing(biased: Curve, other: Curve) -> str:
    """From how many releases on the other one has a smaller error.

    b^2 + v/R > w/R where R > (w - v)/b^2.
    """
    gain, square = other.exact.variance - biased.exact.variance, biased.exact.bias**2
    if gain > square * _MOST:
        return "no number of"
    return f"{max(1, math.ceil(gain / square)):,}"


def _agreement(curves: Sequence[Curve]) -> float:
    """Largest relative difference between simulated and exact errors of many averages."""
    return max(
        (
            abs(curve.simulated.average(each) / curve.exact.average(each) - 1)
            for curve in curves
            for each in curve.groups
            if len(curve.simulated.error) // each >= _MANY
        ),
        default=0.0,
    )
