"""Paper 003, experiments 4 and 7 (figures 3, 4 and 7): is the estimate unbiased, and normal?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.trials.parameters import Parameters
from shoal_studies import drawing, trial_drawing
from shoal_studies import trial_lines as lines
from shoal_studies.measure import Effort
from shoal_studies.study import Outcome, Row, Study, short
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


def _rows(drawn: Distribution) -> list[Row]:
    normal, found = trial_drawing.normal_pairs(drawn.errors, drawn.deviation)
    return [
        {"quantile": at + 1, "normal": short(a), "error": short(b)}
        for at, (a, b) in enumerate(zip(normal.tolist(), found.tolist(), strict=True))
    ]


def _reading(drawn: Distribution, claimed: float) -> str:
    number = len(drawn.errors)
    kurtosis = drawn.moment(4)
    skew_error, kurtosis_error = (6 / number) ** 0.5, (24 / number) ** 0.5
    normal = abs(drawn.moment(3)) < _FAR * skew_error and abs(kurtosis - 3) < _FAR * kurtosis_error
    unbiased = abs(drawn.bias) < _FAR
    return (
        f"Over {number:,} realisations of assignment and mechanism in one population the mean "
        f"error is {drawn.bias:.2f} standard errors from 0: {'un' if unbiased else ''}biased, "
        f"{'as' if unbiased else 'unlike'} in the paper. The deviation is "
        f"{drawn.errors.std() / drawn.deviation:.3f} times the exact one ({drawn.deviation:.4g}), "
        f"{drawn.covered:.1%} of the errors are within 1.96 exact deviations, and third and fourth "
        f"standardised moments are {drawn.moment(3):.3f} (+- {skew_error:.3f}) and {kurtosis:.3f} "
        f"(+- {kurtosis_error:.3f}): {'hardly told from normal' if normal else 'not quite normal'},"
        f" {'as' if normal else 'unlike'} in the paper. The release truly costs epsilon "
        f"{drawn.loss:.2f} at delta 1e-4, where {claimed:.2f} is claimed (erratum 12)."
    )


def _mixture(effort: Effort, *, bars: bool) -> Outcome:
    drawing.check()
    distribution = simulate(Mixture(4.5), default(), effort)
    number = 3 if bars else 4
    figure, [axis] = drawing.canvas(f"Paper 003, figure {number}: Cluster-DP's errors", 1)
    show = trial_drawing.histogram if bars else trial_drawing.quantiles
    show(
        axis, distribution.errors, distribution.deviation, "Gaussian mixture, the paper's defaults"
    )
    return Outcome(
        _rows(distribution), figure, _reading(distribution, distribution.loss - 1 / lines.SIGMA)
    )


def _figure_3(effort: Effort) -> Outcome:
    return _mixture(effort, bars=True)


def _figure_4(effort: Effort) -> Outcome:
    return _mixture(effort, bars=False)


def _figure_7(effort: Effort) -> Outcome:
    drawing.check()
    size, sigma = 8, 5.0
    given = lines.replacing(size, lines.LAMBDA, floor=0.1 / size, sigma=sigma)
    distribution = simulate(Communities(), given, effort)
    figure, [axis] = drawing.canvas("Paper 003, figure 7: Cluster-DP's errors", 1)
    title = f"fifty communities, gamma 0.1/K, sigma {sigma:g}, lambda {lines.LAMBDA:g}"
    trial_drawing.quantiles(axis, distribution.errors, distribution.deviation, title)
    return Outcome(
        _rows(distribution), figure, _reading(distribution, distribution.loss - 1 / sigma)
    )


FIGURE_3 = Study(
    "003-figure-3",
    "Errors of Cluster-DP: a histogram",
    "paper 003, appendix A.6, experiment 4, figure 3",
    _figure_3,
)
FIGURE_4 = Study(
    "003-figure-4",
    "Errors of Cluster-DP against normal quantiles",
    "paper 003, appendix A.6, experiment 4, figure 4",
    _figure_4,
)
FIGURE_7 = Study(
    "003-figure-7",
    "Errors of Cluster-DP in fifty communities against normal quantiles",
    "paper 003, appendix A.9, experiment 7, figure 7",
    _figure_7,
)
