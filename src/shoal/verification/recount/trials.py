"""Trials: the loss of one outcome, effects, their intervals, and the bound of a best table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Release

_ONE, _TABLE = 2**32, 2**62
Spread = tuple[float, float] | None


def differences(trial: Release) -> Iterator[str]:
    """What does not follow; of noisy Horvitz-Thompson aggregates nothing is recounted."""
    if trial.name == "noisy_horvitz_thompson":
        return
    stated, loss = trial.epsilon - trial.clustering_epsilon, _loss(trial)
    if not loss <= stated <= loss * (1 + Fraction(1, 2**40)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if trial.name == "best_table":
        yield from _table(trial)
    effects = _of_histograms(trial) if trial.name == "noisy_histogram" else _of_responses(trial)
    for (value, *spreads), (given, *intervals) in zip(effects, trial.effects, strict=True):
        if not math.isclose(value, given, rel_tol=1e-9, abs_tol=1e-12 * np.ptp(trial.levels)):
            yield f"an effect is {value}, not {given}"
        for spread, interval in zip(spreads, intervals, strict=True):
            if spread is None:
                continue
            error, half = spread
            true, slack = [error, value - half, value + half], 1e-6 * half + 1e-12 * abs(value)
            near = np.abs(np.array(interval, dtype=np.float64) - true) <= slack
            if not (near.all() or (math.isnan(half) and interval[0] is None)):
                yield f"the error and interval of an effect are {true}, not {interval}"


def _loss(trial: Release) -> Fraction:
    """Epsilon of one outcome (docs/theory/trials.md#what-it-costs)."""
    if trial.name == "best_table":
        rows: list[list[int]] = trial.numbers.reshape(len(trial.shift), -1).tolist()
        return noise.log_up(max(Fraction(max(row), min(row)) for row in rows))
    # An outcome moves two bins; a response keeps it, or draws from the prior.
    bins = Fraction(2 * trial.weight, 2**trial.lattice_bits)
    if trial.name == "noisy_histogram":
        return bins
    extra = max(Fraction(_ONE - trial.replaced, _ONE) - trial.delta, Fraction(0))
    return bins + noise.log_up(1 + extra / Fraction(trial.replaced * trial.floor, _ONE**2))


def _table(trial: Release) -> Iterator[str]:
    """Whether responses have no bias, and variance and bound are those of the table."""
    levels, shift = trial.levels[trial.kept], [Fraction(each) for each in trial.shift]
    columns, variances = trial.numbers.reshape(len(shift), -1).T.tolist(), []
    for level, column in zip(levels.tolist(), columns, strict=True):
        above = Fraction(level) - Fraction(levels[0])
        mean = Fraction(sum(n * each for n, each in zip(column, shift, strict=True)), _TABLE)
        square = Fraction(sum(n * each**2 for n, each in zip(column, shift, strict=True)), _TABLE)
        if sum(column) != _TABLE or mean != above:
            yield f"responses to the level {level} are not unbiased"
        variances.append(float(square - above**2))
    weights, certificate = trial.weights, trial.certificate
    if weights not in (None, certificate["weight"]):
        yield "the bound is for other weights"
    variance = max(variances) if weights is None else float(np.dot(weights, variances))
    true = [variance, _table_bound(levels, certificate, trial.chosen_epsilon)]
    if not np.allclose([trial.variance, trial.bound], true, rtol=1e-9, atol=0):
        yield f"variance and bound are {true}, not {[trial.variance, trial.bound]}"


def _table_bound(levels: Array, certificate: dict[str, list[float]], epsilon: float) -> float:
    """Least variance of unbiased responses of this loss (docs/theory/best-table.md#the-dual-bound)."""
    w, s, t = (np.array(certificate[name]) for name in ("weight", "slope", "total"))
    width = float(np.ptp(levels))
    y, square = (levels - levels[0]) / width - 0.5, s**2 + 4 * w * t
    far = (s + np.copysign(np.sqrt(np.maximum(square, 0)), s)) / (2 * w)
    real = (square > 0) & (far != 0)
    roots = np.sort(np.append(far[real], -(t / w)[real] / far[real]))
    ends = np.concatenate(([-np.inf], roots, [np.inf]))
    at = np.concatenate((roots[:1] - 1, (roots[1:] + roots[:-1]) / 2, roots[-1:] + 1))[:, None]
    # Between two roots the curve is one parabola; as far as that is below 0, totals are lowered.
    times = np.where(w * at**2 - s * at - t < 0, math.exp(epsilon), 1)
    a, b, c = ((times * each).sum(axis=1) for each in (w, s, t))
    place = np.clip(b / (2 * a), ends[:-1], ends[1:])
    lowered = min(0.0, float((a * place**2 - b * place - c).min()))
    bound = float(t.sum() + lowered + s @ y - w @ y**2)
    return bound / max(1.0, float(w.sum())) * width**2


def _of_responses(trial: Release) -> list[tuple[float, Spread, Spread]]:
    """Effects with error and half an interval for these units, and for their population."""
    n, confidence, counts = trial.sizes, trial.confidence, trial.released["counts"]
    weight, counts, effects = n.sum(axis=1) / n.sum(), counts.reshape(*n.shape, -1), []
    if trial.name == "best_table":
        y, keep, prior = np.array(trial.shift), 1.0, np.zeros(1)
    else:
        y, replaced = trial.levels[trial.kept] - trial.levels[0], trial.replaced / _ONE
        shares = trial.released["prior"].reshape(-1, *counts.shape[1:]) / _ONE
        keep, prior = 1 - replaced, replaced * (shares @ y)
    answer = counts @ y / n
    mean = (answer - prior) / keep
    squares = (counts * (y - answer[:, :, None]) ** 2).sum(axis=2) / keep**2
    spread = np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)
    pool, part = _joined(n), weight[:, None] ** 2 * spread / n
    for arm in range(1, n.shape[1]):
        pair, apart = [arm, 0], mean[:, arm] - mean[:, 0]
        scale = (1 / n[:, pair]).sum(axis=1)
        least = 1e-26 * (weight**2 @ (mean**2 + np.nan_to_num(spread))[:, pair]).sum()
        parts, degrees = part[~pool][:, pair].ravel(), (n - 1.0)[~pool][:, pair].ravel()
        if pool.any():
            variance, free = _between(weight[pool], apart[pool], scale[pool])
            parts, degrees = np.append(parts, variance), np.append(degrees, free)
        # Welch's degrees of freedom, less what squares overdo.
        total = math.fsum(parts)
        free = 1 / math.fsum((parts / total) ** 2 / (degrees + 2)) - 2
        here = there = _known(total, free, confidence, least)
        if len(n) > 1:
            there = _known(*_between(weight, apart, scale), confidence, least)
        effects.append((float(weight @ apart), here, there))
    return effects


def _of_histograms(trial: Release) -> list[tuple[float, Spread, Spread]]:
    """The same by noisy histograms; what they tell of the variance of units is not recounted."""
    units, y, effects = trial.sizes.sum(axis=1), trial.levels - trial.levels.mean(), []
    histograms = np.array(trial.released["numbers"]).reshape(*trial.sizes.shape, -1)
    mean, weight = histograms @ y / trial.weight / trial.sizes, units / units.sum()
    for apart in (mean[:, 1:] - mean[:, :1]).T:
        spread = _between(weight, apart, 1 / units) if len(units) > 1 else None
        there = spread and _known(*spread, trial.confidence, 0.0)
        effects.append((float(weight @ apart), None, there))
    return effects


def _known(variance: float, degrees: float, confidence: float, least: float) -> Spread:
    """Error and half a t interval, unless the variance is due to rounding."""
    error = math.sqrt(variance) if variance > least else math.nan
    return error, noise.student(degrees, confidence) * error


def _joined(sizes: Array) -> Array:
    """Clusters with a group of one unit; a lone one takes the nearest of the others along."""
    alone, units = np.asarray(sizes.min(axis=1) == 1), sizes.sum(axis=1)
    if len(alone) > 1 and alone.sum() == 1:
        alone[np.argmin(np.abs(units - units[alone]) + np.where(alone, units.sum(), 0))] = True
    return alone & (len(alone) > 1)


def _between(weight: Array, value: Array, scale: Array) -> tuple[float, float]:
    """Variance of sum w D from how D differ, and its degrees (docs/theory/inference.md)."""
    # It is sum b (D - sum p D)^2 with p = w/sum w, b = k w^2/(1 - 2p), 1/k = 1 + sum p^2/(1 - 2p);
    # where one p is above 1/2, the others are raised to its weight.
    top = int(np.argmax(weight))
    rest = math.fsum(np.delete(weight, top))
    if weight[top] >= rest * (1 - 1e-9):
        p, b = weight / (2 * rest), np.zeros(len(weight))
        p[top], b[top] = 0.5, (2 * max(weight[top], rest)) ** 2
    else:
        p = weight / math.fsum(weight)
        b = weight**2 / (1 - 2 * p) / (1 + math.fsum(p**2 / (1 - 2 * p)))
    variance = math.fsum(b * (value - math.fsum(p * value)) ** 2)
    # The form is diag b and a matrix of rank two; degrees are tr(AV)^2/tr(AVAV).
    sides, core = np.stack([p, b]), np.array([[b.sum(), -1.0], [-1.0, 0.0]])
    diagonal, degrees = ((core @ sides) * sides).sum(axis=0), []
    for v in (scale, np.ones(len(p))):
        gram = core @ (sides * v) @ sides.T
        square = ((b * v) ** 2 + 2 * b * v**2 * diagonal).sum() + np.trace(gram @ gram)
        degrees.append(float(((b + diagonal) * v).sum() ** 2 / square))
    return variance, max(1.0, min(degrees))
