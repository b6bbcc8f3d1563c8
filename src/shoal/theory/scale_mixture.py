"""Fits a scale mixture of normals to noisy estimates around predictions, and finds posteriors.

    theta_g = prediction_g + sum_j pi_j N(0, t_j^2),   y_g = theta_g + noise

The noise is Laplace with the scale b_g, or normal with the deviation b_g.

A few cells are always unlike the rest. A mixture leaves these where they are, while a single normal
would draw them towards their predictions, or hardly draw any cell.
Source: docs/theory/cells.md#values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import special

from shoal.arrays import Floats, Ints

# A posterior takes residuals of the cells. For each cell and normal it returns the probability of a
# smaller residual, and the density.
Posterior: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]

# The number of normals in a mixture.
_NORMALS = 8
# Rounds of expectation-maximisation.
_ROUNDS = 30
# The cells that are added to each normal.
_PSEUDO = 0.3
# The error of a quantile, as a part of the reach.
_PRECISION = 2.0**-44
# The most steps towards a quantile.
_MOST_STEPS = 100
_ROOT = float(np.log(2 * np.pi) / 2)
_PEAK = (2 / np.pi) ** 0.5
# The most cells to which a mixture is fitted.
_SOME = 5_000
# The z of `fit_mixture` is this many root mean squares of the residuals.
_WIDEST = 8.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted prior of the residuals, and the posterior probabilities of its normals.

    Attributes:
        deviation: t_j, shape (normals,), in the value's unit.
        share: Posterior probability of normal j for cell g, shape (cells, normals).
        likelihood: Logarithm of the marginal likelihood of the estimates to which it is fitted.
    """

    deviation: Floats
    share: Floats
    likelihood: float


def some_cells(many: int) -> Ints:
    """Returns at most 5,000 of `many` cells, always the same ones, to which models are fitted."""
    if many <= _SOME:
        return np.arange(many)
    return np.sort(np.random.default_rng(0).permutation(many)[:_SOME])


def fit_mixture(
    estimate: Floats, scale: Floats, prediction: Floats, width: float, *, normal: bool = False
) -> Mixture:
    """Fits the probabilities of eight normals by expectation-maximisation.

    Their deviations are t_j = z/2^(j - 1/2) for j = 1 to 8, where z is eight root mean squares of
    the residuals, at most the width. 0.3 cells are added to each normal, so that none disappears.
    With more than 5,000 cells only some are used.
    """
    residual = estimate - prediction
    # Residuals of 0 must not make all deviations 0.
    root_mean_square = max(float((residual**2).mean()) ** 0.5, float(scale.min()) * 2.0**-20)
    z = min(_WIDEST * root_mean_square, width)
    deviation = z / 2.0 ** (np.arange(1, _NORMALS + 1) - 0.5)
    # One row for each cell, one column for each normal.
    log_densities = log_density(residual[:, None], scale[:, None], deviation, normal=normal)
    some = log_densities[some_cells(len(estimate))]
    probability = np.full(_NORMALS, 1 / _NORMALS)
    # Densities are divided by the largest of each cell, which becomes 1.
    relative = np.exp(some - some.max(axis=1, keepdims=True))
    for _ in range(_ROUNDS):
        # How many cells each normal explains: the sum of its posterior probabilities.
        explained = probability * ((1 / (relative @ probability)) @ relative)
        probability = (explained + _PSEUDO) / (len(some) + _NORMALS * _PSEUDO)
    joint = np.log(probability) + log_densities
    likelihood = float(special.logsumexp(np.log(probability) + some, axis=1).sum())
    return Mixture(deviation, special.softmax(joint, axis=1), likelihood)


def log_density(apart: Floats, scale: Floats, deviation: Floats, *, normal: bool = False) -> Floats:
    """Returns the logarithm of the density of a normal variable plus noise, at `apart`.

    Let d be `apart`, b the `scale`, t the `deviation` and s = t/b. With Laplace noise the density
    is e^(s^2/2)/(2b) (e^(-d/b) Phi(d/t - s) + e^(d/b) Phi(-d/t - s)), which is
    e^(-d^2/(2t^2))/(4b) (E(s - d/t) + E(s + d/t)) with E(z) = erfcx(z/sqrt 2). With normal noise it
    is the density of N(0, t^2 + b^2).
    """
    if normal:
        both = np.hypot(deviation, scale)
        return -((apart / both) ** 2) / 2 - np.log(both) - _ROOT
    sides = _sides(apart, scale, deviation)
    return -((apart / deviation) ** 2) / 2 - np.log(4 * scale) + sides


def posterior_quantile(
    estimate: Floats,
    scale: Floats,
    prediction: Floats,
    mixture: Mixture,
    level: float,
    *,
    normal: bool = False,
) -> Floats:
    """Returns the value that theta is below with the given posterior probability."""
    residual = estimate - prediction
    # No quantile that is asked for is further from 0.
    reach = np.abs(residual) + 40 * np.minimum(scale, mixture.deviation.max())
    posterior_of = _normal_posterior if normal else _posterior
    posterior = posterior_of(residual[:, None], scale[:, None], mixture.deviation)
    return prediction + _level(posterior, mixture.share, level, reach)


@np.errstate(all="ignore")
def _level(posterior: Posterior, share: Floats, level: float, reach: Floats) -> Floats:
    """Returns where posteriors pass a level, within a reach of 0: by Newton's steps or halving."""
    place = np.zeros_like(reach)
    low = -reach
    high = reach
    step = 2 * reach
    for _ in range(_MOST_STEPS):
        # The probability below each cell's place and the density there: means over the normals.
        below, density = ((share * each).sum(axis=1) for each in posterior(place[:, None]))
        low = np.where(below < level, place, low)
        high = np.where(below < level, high, place)
        newton = place - (below - level) / density
        # Newton's step is taken if it stays inside and is at most half as long as the last one.
        within = (low <= newton) & (newton <= high)
        use_newton = within & (np.abs(newton - place) <= step / 2)
        next_place = np.where(use_newton, newton, (low + high) / 2)
        # A cell that is precise enough stays, whatever steps the others need.
        next_place = np.where(step > _PRECISION * reach, next_place, place)
        step = np.abs(next_place - place)
        place = next_place
        if not (step > _PRECISION * reach).any():
            break
    return place


def _posterior(d: Floats, b: Floats, t: Floats) -> Posterior:
    """Returns the posterior of true residuals with Laplace noise.

    `d` are the noisy residuals, `b` the scales of their noise, `t` the deviations of the normals.
    Given a normal, the density is that of N(t^2/b, t^2) below d and of N(-t^2/b, t^2) above,
    up to factors.
    """
    # This does not depend on the argument of the posterior, and is computed once.
    constant = (d / t) ** 2 / 2 - _sides(d, b, t)
    ratio = t / b

    def posterior(x: Floats) -> tuple[Floats, Floats]:
        upper = x > d
        density = constant - np.abs(x - d) / b - (x / t) ** 2 / 2
        # The mass below x if x is below d, and else the mass above x.
        mass = np.exp(density + _log_erfcx(ratio + np.where(upper, x, -x) / t))
        return np.where(upper, 1 - mass, mass), np.exp(density) * _PEAK / t

    return posterior


def _normal_posterior(d: Floats, b: Floats, t: Floats) -> Posterior:
    """Returns the posterior of true residuals with normal noise, with arguments as `_posterior`.

    Given a normal, it is N(k d, k b^2) with k = t^2/(t^2 + b^2).
    """
    k = (t / np.hypot(t, b)) ** 2
    deviation = b * np.sqrt(k)

    def posterior(residual: Floats) -> tuple[Floats, Floats]:
        x = (residual - k * d) / deviation
        return special.ndtr(x), np.exp(-(x**2) / 2 - _ROOT) / deviation

    return posterior


def _sides(apart: Floats, scale: Floats, deviation: Floats) -> Floats:
    """Returns the logarithm of E(s - d/t) + E(s + d/t) in `log_density`."""
    d = apart / deviation
    ratio = deviation / scale
    return np.logaddexp(_log_erfcx(ratio - d), _log_erfcx(ratio + d))


def _log_erfcx(z: Floats) -> Floats:
    """Returns the logarithm of erfcx(z/sqrt 2) = 2 e^(z^2/2) Phi(-z), accurate also for large z."""
    x = z / 2**0.5
    negative = np.minimum(x, 0.0)
    small = negative**2 + np.log(special.erfc(negative))
    return np.where(x > 0, np.log(special.erfcx(np.maximum(x, 0.0))), small)
