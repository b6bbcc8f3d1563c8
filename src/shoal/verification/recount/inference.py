"""Variances and quantiles of intervals of experiments (docs/theory/inference.md)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, erf, erfinv

from shoal.verification.recount.reading import Array

# What a noisy variance is raised by, in parts of its noise, at 95%: by b2/b1^2.
_KNOTS = np.log((0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0))
_RAISED = (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80)


def student(degrees: float, confidence: float) -> float:
    """Half the width of a t interval: t^2/(t^2 + f) has a beta distribution."""
    if degrees > 1e9:
        return math.sqrt(2) * float(erfinv(confidence))
    part = float(betaincinv(0.5, degrees / 2, confidence))
    return math.sqrt(degrees * part / (1 - part))


def normal_laplace(confidence: float, normal: float, laplace: float, terms: float) -> float:
    """Half the width for normal and Laplace noise together, of these variances.

    Laplace variables are normal with gamma variances: a mean over the logarithm of that.
    """
    if laplace <= 0:
        return math.sqrt(normal) * student(math.inf, confidence)
    far = 10 / math.sqrt(terms)
    logs = np.linspace(-far - 45 / terms, far + math.log1p(45 / terms), 4001)
    chance = np.exp(terms * (logs - np.expm1(logs)))
    size = np.sqrt((normal + laplace) / (normal + laplace * np.exp(logs)) / 2)

    def excess(x: float) -> float:
        return float(chance @ erf(x * size) / chance.sum()) - confidence

    return math.sqrt(normal + laplace) * float(brentq(excess, 0.0, 64.0, xtol=1e-13, rtol=1e-13))


def sampling(
    variance: float, noise: float, doubt: float, degrees: float, confidence: float
) -> float:
    """A noisy variance, raised for its own noise and for few degrees of freedom.

    The squared scale of the estimate's noise decides by how much (docs/theory/questions.md).
    """
    raised = np.interp(math.log(max(doubt / noise, 0.03)), _KNOTS, _RAISED)
    few = (student(degrees, confidence) / student(math.inf, confidence)) ** 2
    return max(few, 1.0) * (max(variance, 0.0) + float(raised) * doubt)


def summed(parts: Array, degrees: Array) -> tuple[float, float]:
    """Sum of estimated variances, and Welch's degrees of freedom less what squares overdo."""
    total = math.fsum(parts)
    if not total:
        return total, math.inf
    return total, 1 / math.fsum((parts / total) ** 2 / (degrees + 2)) - 2


def between(weight: Array, value: Array, scale: Array) -> tuple[float, float]:
    """Variance of sum w D from how D differ, and its degrees (docs/theory/inference.md).

    sum b (D - sum p D)^2 with p = w/sum w, b = k w^2/(1 - 2p), 1/k = 1 + sum p^2/(1 - 2p); where
    one p is above 1/2, the others are raised to its weight.
    """
    top = int(np.argmax(weight))
    rest = math.fsum(np.delete(weight, top))
    if weight[top] >= rest * (1 - 1e-9):
        p, b = weight / (2 * rest), np.zeros(len(weight))
        p[top], b[top] = 0.5, (2 * max(weight[top], rest)) ** 2
    else:
        p = weight / math.fsum(weight)
        b = weight**2 / (1 - 2 * p) / (1 + math.fsum(p**2 / (1 - 2 * p)))
    # The form is diag b and a matrix of rank two; degrees are tr(AV)^2/tr(AVAV).
    sides, core = np.stack([p, b]), np.array([[b.sum(), -1.0], [-1.0, 0.0]])
    diagonal, degrees = ((core @ sides) * sides).sum(axis=0), [math.inf]
    for v in (scale, np.ones(len(p))):
        gram = core @ (sides * v) @ sides.T
        square = ((b * v) ** 2 + 2 * b * v**2 * diagonal).sum() + np.trace(gram @ gram)
        degrees.append(float(((b + diagonal) * v).sum() ** 2 / square))
    return math.fsum(b * (value - math.fsum(p * value)) ** 2), max(1.0, min(degrees))
