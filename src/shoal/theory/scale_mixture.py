"""Noisy estimates around predictions: a scale mixture of normals is the prior.

    theta_g = prediction_g + sum_j pi_j N(0, t_j^2),   y_g = theta_g + noise

The noise is Laplace with the scale b_g, or normal with the deviation b_g.

A few cells are always unlike the rest: a mixture lets them be, where a single normal would pull
them in or let go of all.
Source: docs/theory/cells.md#values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import special

from shoal.arrays import Floats, Ints

# Of a residual of each cell by each normal: the probability to stay below, and the density.
Posterior: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]

_NORMALS = 8
_ROUNDS = 30
_PSEUDO = 0.3
# Part of the reach to which a quantile is found.
_PRECISION = 2.0**-44
_MOST_STEPS = 100
_ROOT = float(np.log(2 * np.pi) / 2)
_PEAK = (2 / np.pi) ** 0.5
# Of more cells, so many say what all have in common.
_SOME = 5_000
_WIDEST = 8.0  # root mean squares of what the predictions miss


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted prior of the residuals, and how much each of its normals explains of each cell.

    Attributes:
        deviation: t_j, shape (normals,), in the value's unit.
        share: Posterior probability of normal j for cell g, shape (cells, normals).
        likelihood: Logarithm of the marginal likelihood of the estimates that are fitted.
    """

    deviation: Floats
    share: Floats
    likelihood: float


def some_cells(many: int) -> Ints:
    """At most 5,000 of so many cells, always the same: they say what all have in common."""
    if many <= _SOME:
        return np.arange(many)
    return np.sort(np.random.default_rng(0).permutation(many)[:_SOME])


def fit_mixture(
    estimate: Floats, scale: Floats, prediction: Floats, width: float, *, normal: bool = False
) -> Mixture:
    """Probabilities of normals with t_j = z/2^(j - 1/2), j = 1..8, by expectation-maximisation.

    z is eight root mean squares of what the predictions miss, at most the width. 0.3 cells of
    each normal are added, so that none disappears. Of more than 5,000 cells some are fitted.
    """
    apart = estimate - prediction
    missed = max(float((apart**2).mean()) ** 0.5, float(scale.min()) * 2.0**-20)
    widest = min(_WIDEST * missed, width)
    deviation = widest / 2.0 ** (np.arange(1, _NORMALS + 1) - 0.5)
    density = log_density(apart[:, None], scale[:, None], deviation, normal=normal)
    some = density[some_cells(len(estimate))]
    probability = np.full(_NORMALS, 1 / _NORMALS)
    # Of each cell the likeliest normal has the density 1.
    relative = np.exp(some - some.max(axis=1, keepdims=True))
    for _ in range(_ROUNDS):
        explained = probability * ((1 / (relative @ probability)) @ relative)
        probability = (explained + _PSEUDO) / (len(some) + _NORMALS * _PSEUDO)
    joint = np.log(probability) + density
    likelihood = float(special.logsumexp(np.log(probability) + some, axis=1).sum())
    return Mixture(deviation, special.softmax(joint, axis=1), likelihood)


def log_density(apart: Floats, scale: Floats, deviation: Floats, *, normal: bool = False) -> Floats:
    """Logarithm of the density of a normal variable of deviation t plus noise of scale b.

    With s = t/b: e^(s^2/2)/(2b) (e^(-d/b) Phi(d/t - s) + e^(d/b) Phi(-d/t - s)), which is
    e^(-d^2/(2t^2))/(4b) (E(s - d/t) + E(s + d/t)) with E(z) = erfcx(z/sqrt 2); with normal noise
    that of N(0, t^2 + b^2).
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
    """The value that theta stays below with the given posterior probability."""
    apart = estimate - prediction
    reach = np.abs(apart) + 40 * np.minimum(scale, mixture.deviation.max())
    posterior = _normal_posterior if normal else _posterior
    known = posterior(apart[:, None], scale[:, None], mixture.deviation)
    return prediction + _level(known, mixture.share, level, reach)


@np.errstate(all="ignore")
def _level(posterior: Posterior, share: Floats, level: float, reach: Floats) -> Floats:
    """Where posteriors within a reach of 0 pass a level: by Newton's steps, or else by halving."""
    place = np.zeros_like(reach)
    low = -reach
    high = reach
    step = 2 * reach
    for _ in range(_MOST_STEPS):
        below, density = ((share * each).sum(axis=1) for each in posterior(place[:, None]))
        low = np.where(below < level, place, low)
        high = np.where(below < level, high, place)
        newton = place - (below - level) / density
        fast = (low <= newton) & (newton <= high) & (np.abs(newton - place) <= step / 2)
        following = np.where(fast, newton, (low + high) / 2)
        # What was found stays, whatever the others need.
        following = np.where(step > _PRECISION * reach, following, place)
        step = np.abs(following - place)
        place = following
        if not (step > _PRECISION * reach).any():
            break
    return place


def _posterior(d: Floats, b: Floats, t: Floats) -> Posterior:
    """Posterior probability that a residual stays below a value, and its density.

    `d` is how far a cell is apart, `b` the scale of its noise, `t` deviations of the normals.

    Given a normal, the density is that of N(t^2/b, t^2) below y and of N(-t^2/b, t^2) above.
    """
    # What does not depend on the residual is computed once for all its places.
    whole = (d / t) ** 2 / 2 - _sides(d, b, t)
    ratio = t / b

    def posterior(x: Floats) -> tuple[Floats, Floats]:
        upper = x > d
        density = whole - np.abs(x - d) / b - (x / t) ** 2 / 2
        # The mass below a place below y, or above one above y.
        mass = np.exp(density + _log_erfcx(ratio + np.where(upper, x, -x) / t))
        return np.where(upper, 1 - mass, mass), np.exp(density) * _PEAK / t

    return posterior


def _normal_posterior(d: Floats, b: Floats, t: Floats) -> Posterior:
    """The same with normal noise: given a normal, N(k d, k b^2) with k = t^2/(t^2 + b^2)."""
    kept = (t / np.hypot(t, b)) ** 2
    own = b * np.sqrt(kept)

    def posterior(residual: Floats) -> tuple[Floats, Floats]:
        x = (residual - kept * d) / own
        return special.ndtr(x), np.exp(-(x**2) / 2 - _ROOT) / own

    return posterior


def _sides(apart: Floats, scale: Floats, deviation: Floats) -> Floats:
    """Logarithm of the masses below and above y, without e^(-d^2/(2t^2) - s^2/2)/2."""
    d = apart / deviation
    ratio = deviation / scale
    return np.logaddexp(_log_erfcx(ratio - d), _log_erfcx(ratio + d))


def _log_erfcx(z: Floats) -> Floats:
    """Logarithm of erfcx(z/sqrt 2) = 2 e^(z^2/2) Phi(-z), in all places for large z."""
    x = z / 2**0.5
    negative = np.minimum(x, 0.0)
    small = negative**2 + np.log(special.erfc(negative))
    return np.where(x > 0, np.log(special.erfcx(np.maximum(x, 0.0))), small)
