"""Paper 003, experiments 4 and 7 (figures 3, 4 and 7): is the estimate unbiased, and normal?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from shoal.trials.parameters import Parameters
from shoal_studies import trial_lines as lines
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, short, study
from shoal_studies.simulate import Effort
from shoal_studies.trial_measure import DELTA
from shoal_studies.trial_setting import Communities, Mixture, Setting
from shoal_studies.trial_simulation import Randomised, assign

# The paper's number of realisations, drawn at a time.
_PART = 500
_NORMAL = 1.959964
# Distances of an estimate from what is claimed, in standard errors, that chance hardly explains.
_FAR = 4.0


@dataclass(frozen=True, eq=False)
class Distribution:
    """Errors of an estimate in one population.

    Attributes:
        errors: Estimate less effect, of every realisation.
        deviation: Exact: the root of the assignment's variance plus the mechanism's mean one.
        loss: True epsilon.
    """

    errors: NDArray[np.float64] = field(repr=False)
    deviation: float
    loss: float

    @property
    def bias(self) -> float:
        """Mean error in its standard errors."""
        return float(self.errors.mean() / self.deviation * len(self.errors) ** 0.5)

    @property
    def covered(self) -> float:
        """Share of errors within 1.96 exact deviations."""
        return float((np.abs(self.errors) <= _NORMAL * self.deviation).mean())

    def moment(self, order: int) -> float:
        """Of the standardised errors."""
        return float(np.mean((self.errors / self.deviation) ** order))


def simulate(setting: Setting, parameters: Parameters, effort: Effort) -> Distribution:
    """Errors of Cluster-DP in one population, at least 500 of them."""
    population = setting.population((effort.seed, 0))
    mechanism = Randomised(parameters)
    parts = -(-effort.repetitions // _PART)
    errors, added = np.empty((2, parts, _PART))
    for at in effort.progress(range(parts), parts):
        random = np.random.default_rng((effort.seed, 3, at))
        draws = assign(population, _PART, random)
        estimate, added[at] = mechanism.draw(draws, random)
        errors[at] = estimate - population.effect
    deviation = float((draws.variance + added.mean()) ** 0.5)
    return Distribution(errors.ravel(), deviation, mechanism.loss(DELTA))


def default() -> Parameters:
    """The paper's gamma, sigma and lambda, on 12 levels."""
    return lines.replacing(12, lines.LAMBDA, floor=lines.GAMMA, sigma=lines.SIGMA)


def _quantiles(drawn: Distribution) -> list[Row]:
    """Sorted errors beside normal quantiles of the exact deviation."""
    places = (np.arange(len(drawn.errors)) + 0.5) / len(drawn.errors)
    pairs = zip((drawn.deviation * ndtri(places)).tolist(), np.sort(drawn.errors), strict=True)
    return [
        {"quantile": at + 1, "normal": short(a), "error": short(b)}
        for at, (a, b) in enumerate(pairs)
    ]


def _bars(drawn: Distribution) -> list[Row]:
    """Densities of the errors in 40 bars, and of a normal variable of the exact deviation."""
    density, edges = np.histogram(drawn.errors, bins=40, density=True)
    middle = (edges[1:] + edges[:-1]) / 2
    normal = np.exp(-((middle / drawn.deviation) ** 2) / 2) / drawn.deviation / (2 * np.pi) ** 0.5
    both = {"errors": density.tolist(), "normal": normal.tolist()}
    return [
        {"error": at, "density": each, "line": name}
        for name, numbers in both.items()
        for at, each in zip(middle.tolist(), numbers, strict=True)
    ]


def _findings(drawn: Distribution, claimed: float) -> list[Finding]:
    number = len(drawn.errors)
    third, fourth = drawn.moment(3), drawn.moment(4)
    normal = abs(third) < _FAR * (6 / number) ** 0.5, abs(fourth - 3) < _FAR * (24 / number) ** 0.5
    return [
        Finding(f"mean of {number:,} errors, in standard errors", f"0 (here: within {_FAR:g})",
                f"{drawn.bias:.2f}", abs(drawn.bias) < _FAR),
        Finding("third standardised moment", "0, as of a normal variable",
                f"{third:.3f} +- {(6 / number) ** 0.5:.3f}", normal[0]),
        Finding("fourth standardised moment", "3, as of a normal variable",
                f"{fourth:.3f} +- {(24 / number) ** 0.5:.3f}", normal[1]),
        Finding("deviation over the exact one", "-", f"{drawn.errors.std() / drawn.deviation:.3f}"),
        Finding("errors within 1.96 exact deviations", "-", f"{drawn.covered:.1%}"),
        Finding("true epsilon at delta 1e-4 (erratum 12)", f"{claimed:.2f}", f"{drawn.loss:.2f}",
                drawn.loss <= claimed),
    ]  # fmt: skip


def _study(drawn: Distribution, sigma: float, *, bars: bool = False) -> Study:
    rows = _quantiles(drawn)
    if bars:
        looks = {"errors": ("#d1495b", "", "_"), "normal": ("#333333", "-", "")}
        labels = ("estimate less effect", "density")
        chart = Chart(_bars(drawn), "error", "density", "line", labels=labels, looks=looks)
    else:
        ends: list[Row] = [{"normal": rows[at]["normal"], "error": rows[at]["normal"],
                            "line": "normal"} for at in (0, -1)]  # fmt: skip
        chart = Chart(
            [{**row, "line": "errors"} for row in rows] + ends, "normal", "error", "line",
            labels=("normal quantiles", "estimate less effect"),
            looks={"errors": ("#d1495b", "", "."), "normal": ("#333333", "-", "")},
        )  # fmt: skip
    return Study(rows, [chart], _findings(drawn, drawn.loss - 1 / sigma))


@study(
    "003-figure-3",
    "Errors of Cluster-DP: a histogram",
    "paper 003, appendix A.6, experiment 4, figure 3",
)
def figure_3(effort: Effort) -> Study:
    """Gaussian mixture, the paper's defaults."""
    return _study(simulate(Mixture(4.5), default(), effort), lines.SIGMA, bars=True)


@study(
    "003-figure-4",
    "Errors of Cluster-DP against normal quantiles",
    "paper 003, appendix A.6, experiment 4, figure 4",
)
def figure_4(effort: Effort) -> Study:
    """Gaussian mixture, the paper's defaults."""
    return _study(simulate(Mixture(4.5), default(), effort), lines.SIGMA)


@study(
    "003-figure-7",
    "Errors of Cluster-DP in fifty communities against normal quantiles",
    "paper 003, appendix A.9, experiment 7, figure 7",
)
def figure_7(effort: Effort) -> Study:
    """Gamma 0.1/K, sigma 5, lambda as by default."""
    size, sigma = 8, 5.0
    given = lines.replacing(size, lines.LAMBDA, floor=0.1 / size, sigma=sigma)
    return _study(simulate(Communities(), given, effort), sigma)
