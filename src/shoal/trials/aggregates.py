"""Effects from released aggregates: every part of their variance, and valid intervals."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.trials import normal_laplace, spread, student
from shoal.trials.aggregate_lattice import pooled, popoviciu

# Fewer degrees of freedom than one have no useful quantile.
_LEAST_DEGREES = 1.0


@dataclass(frozen=True)
class Sampling:
    """What a mechanism tells of Neyman's variance of a contrast.

    Attributes:
        known: An estimate of the sum of (n_c/n)^2 s2/n over groups with two units or more in
            clusters that are not pooled, in squared units; None if nothing is released.
        noise: Variance of that estimate by the mechanism.
    """

    known: float | None
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Contrast:
    """An arm against the control: sum_c (n_c/n) difference_c, and its variance in four parts.

    `sampling` is Neyman's sum_c (n_c/n)^2 (s2_1/n_1 + s2_0/n_0) over clusters that are not pooled,
    too large by the spread of effects within clusters only; `noise` is the mechanism's part there,
    known exactly; `pool` covers assignment and mechanism in the pooled clusters.

    Attributes:
        arm: Number of the arm, from 1.
        value: The estimate, in the outcome's unit.
        difference: Of each cluster, in the outcome's unit.
        weight: n_c/n.
        noise_variance: Of each cluster's difference, by the mechanism.
        cluster_error: Standard error of each cluster's difference; NaN where it is not known.
        sampling: In squared units, at least 0.
        sampling_noise: Variance of `sampling` by the mechanism; 0 if nothing had to be drawn.
        sampling_degrees: Degrees of freedom of `sampling` without that noise.
        noise: In squared units.
        terms: How many Laplace variables of one scale have the shape of the noise.
        pool: In squared units; 0 if no cluster is pooled.
        pool_degrees: Degrees of freedom of `pool`.
    """

    arm: int
    value: float
    difference: NDArray[np.float64] = field(repr=False)
    weight: NDArray[np.float64] = field(repr=False)
    noise_variance: NDArray[np.float64] = field(repr=False)
    cluster_error: NDArray[np.float64] = field(repr=False)
    sampling: float
    sampling_noise: float
    sampling_degrees: float
    noise: float
    terms: float
    pool: float
    pool_degrees: float

    @property
    def variance(self) -> float:
        """Of the estimate, over assignment and mechanism, in squared units."""
        return self.sampling + self.noise + self.pool

    @property
    def degrees_of_freedom(self) -> float:
        """Satterthwaite's 2 variance^2 / Var(variance), at least 1.

        Var(variance) adds 2 part^2/degrees of each part and the noise on `sampling`.
        """
        loose = self.sampling_noise + 2 * self.sampling**2 / self.sampling_degrees
        loose += 2 * self.pool**2 / self.pool_degrees
        return max(_LEAST_DEGREES, 2 * self.variance**2 / loose) if loose > 0 else math.inf

    @property
    def standard_error(self) -> float:
        """The root of the variance."""
        return math.sqrt(self.variance)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """For these units: the quantile of normal sampling plus Laplace noise on either side.

        It is widened by Student's quantile over the normal one, as the variance is estimated.

        Raises:
            InputError: The confidence is not strictly between 0 and 1.
        """
        half = normal_laplace.quantile(
            confidence, self.sampling + self.pool, self.noise, self.terms
        )
        wide = student.quantile(self.degrees_of_freedom, confidence)
        normal = student.quantile(math.inf, confidence)
        half *= wide / normal
        return self.value - half, self.value + half


def contrast(
    arm: int,
    *,
    sizes: NDArray[np.int64],
    width: float,
    difference: NDArray[np.float64],
    noise_variance: NDArray[np.float64],
    fourth: NDArray[np.float64],
    sampling: Sampling,
    cluster_error: NDArray[np.float64] | None = None,
) -> Contrast:
    """The contrast of an arm from the differences of clusters, with the parts of its variance.

    The sampling variance is held between 0 and its public bound, Popoviciu's. The bound also stands
    for groups of one unit in clusters that are not pooled, and for all if nothing was released.

    Args:
        arm: From 1.
        sizes: Clusters x arms.
        width: Of the outcome's levels.
        difference: Estimated difference of each cluster.
        noise_variance: Of the differences, by the mechanism.
        fourth: Fourth cumulants of the differences' noise.
        sampling: What is known of the sampling variance.
        cluster_error: Standard errors of the differences; NaN unless given.
    """
    pool, pair = pooled(sizes), sizes[:, [arm, 0]]
    weight = sizes.sum(axis=1) / sizes.sum()
    alone = weight[~pool]
    size, noisy = pair[~pool], noise_variance[~pool]
    part, loose, degrees = _sampling(
        alone[:, None] ** 2 / size, popoviciu(sizes, width)[~pool][:, [arm, 0]], size, sampling
    )
    noise, fourths = float(alone**2 @ noisy), float(alone**4 @ fourth[~pool])
    between = spread.Spread(0.0, math.inf)
    if pool.any():
        scale = (1 / pair[pool]).sum(axis=1)
        between = spread.between(weight[pool], difference[pool], scale)
    unknown = np.full(len(weight), math.nan)
    return Contrast(
        arm=arm,
        value=float(weight @ difference),
        difference=difference,
        weight=weight,
        noise_variance=noise_variance,
        cluster_error=unknown if cluster_error is None else cluster_error,
        sampling=part,
        sampling_noise=loose,
        sampling_degrees=degrees,
        noise=noise,
        terms=3 * noise**2 / fourths if fourths > 0 else 1.0,
        pool=between.variance,
        pool_degrees=between.degrees,
    )


def _sampling(
    share: NDArray[np.float64],
    most: NDArray[np.float64],
    size: NDArray[np.int64],
    sampling: Sampling,
) -> tuple[float, float, float]:
    """The sampling variance of groups, its variance by the mechanism, its degrees of freedom."""
    bound, enough = share * most, size > 1
    if sampling.known is None or not enough.any():
        return float(bound.sum()), 0.0, math.inf
    known = min(max(sampling.known, 0.0), float(bound[enough].sum()))
    degrees = share[enough].sum() ** 2 / (share[enough] ** 2 / (size[enough] - 1)).sum()
    return known + float(bound[~enough].sum()), sampling.noise, float(degrees)
