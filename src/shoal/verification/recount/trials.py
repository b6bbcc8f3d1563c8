"""Trials: the loss of one outcome, effects, their intervals, and the bound of a best table."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Release, differs

_PART = 2**31
_TABLE = 2**62


def differences(trial: Release) -> Iterator[str]:
    """What does not follow; intervals of histograms and of assigned groups are left out."""
    stated = trial.epsilon - trial.clustering_epsilon
    loss = _loss(trial)
    if not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if trial.kind == "table":
        yield from _table(trial)
    for (value, known), (stated_value, spreads) in zip(_effects(trial), trial.effects, strict=True):
        # Priors are published as noisy histograms, and were rounded to parts of 2^-31.
        near = 1e-6 if trial.kind == "cluster_prior" else 1e-9
        slack = (near if trial.kind == "cluster_prior" else 1e-12) * float(np.ptp(trial.levels))
        yield from differs("effect", stated_value, value, near, slack)
        for name, (error, half) in known.items():
            true = [error, value - half, value + half]
            what = "error and interval of an effect"
            yield from differs(what, spreads[name], true, near, 1e-6 * half)


def _loss(trial: Release) -> Fraction:
    """Epsilon of one outcome (docs/theory/experiments.md#what-it-costs)."""
    if trial.kind == "table":
        return _of_table(trial.numbers.reshape(len(trial.above), -1), trial.delta)
    # An outcome moves two bins; a response keeps it, or draws from the prior.
    bins = Fraction(2 * trial.per_unit, 2**trial.bits)
    if trial.kind == "histogram":
        return bins
    extra = max(Fraction(_PART - trial.replaced, _PART) - trial.delta, Fraction(0))
    return bins + noise.log_up(1 + extra / Fraction(trial.replaced * trial.floor, _TABLE))


def _of_table(numbers: Array, delta: Fraction) -> Fraction:
    """The logarithm of the largest ratio; with a delta, of what is above it."""
    if delta:
        # Then no two responses may be likelier under one level than under another.
        more = numbers[:, :, None] > numbers[:, None, :]
        if int(more.sum(axis=0).max()) > 1:
            raise ValueError
    most = Fraction(1)
    for row in numbers.tolist():
        high, low = max(row) - delta * _TABLE, min(row)
        most = max(most, Fraction(high) / low)
    return noise.log_up(most)


def _table(trial: Release) -> Iterator[str]:
    """Whether responses have no bias, and variance and bound are those of the table."""
    levels = trial.levels[trial.kept]
    says = np.array(trial.above)
    columns = trial.numbers.reshape(len(says), -1).T
    width = float(np.ptp(trial.levels))
    if any(sum(each) != _TABLE for each in columns.tolist()):
        yield "the numbers of a level do not sum to 2^62"
    chance = columns / _TABLE
    away = levels - levels[0]
    off = np.abs(chance @ (says / width) - away / width).max()
    if not off <= 1e-11 * (1 + np.abs(says).max() / width):
        yield "responses are not unbiased"
    variances = (chance * (says - away[:, None]) ** 2).sum(axis=1)
    weights = None if trial.proof is None else trial.proof["mean_of"]
    variance = float(variances.max() if weights is None else np.dot(weights, variances))
    bound = None if trial.proof is None else _table_bound(trial, levels)
    true = [variance, math.nan if bound is None else bound]
    yield from differs("variance and bound of a table", trial.variance_and_bound, true, 1e-9)


def _table_bound(trial: Release, levels: Array) -> float:
    """Least variance of unbiased responses (docs/theory/experiments.md#the-best-table)."""
    w, s, t = (np.array(trial.proof[name]) for name in ("weight", "slope", "total"))
    width = float(np.ptp(levels))
    y = (levels - levels[0]) / width - 0.5
    square = s**2 + 4 * w * t
    far = (s + np.copysign(np.sqrt(np.maximum(square, 0)), s)) / (2 * w)
    real = (square > 0) & (far != 0)
    roots = np.sort(np.append(far[real], -(t / w)[real] / far[real]))
    ends = np.concatenate(([-np.inf], roots, [np.inf]))
    at = np.concatenate((roots[:1] - 1, (roots[1:] + roots[:-1]) / 2, roots[-1:] + 1))[:, None]
    # Between two roots the curve is one parabola; as far as that is below 0, totals are lowered.
    times = np.where(w * at**2 - s * at - t < 0, math.exp(trial.planned_epsilon), 1)
    a, b, c = ((times * each).sum(axis=1) for each in (w, s, t))
    place = np.clip(b / (2 * a), ends[:-1], ends[1:])
    lowered = min(0.0, float((a * place**2 - b * place - c).min()))
    bound = float(t.sum() + lowered + s @ y - w @ y**2)
    given = trial.proof["mean_of"]
    if given is not None and not np.allclose(given, w, 1e-6, 1e-6):
        raise ValueError
    return max(0.0, bound / max(1.0, float(w.sum())) * width**2)


def _effects(trial: Release) -> Iterator[tuple[float, dict[str, tuple[float, float]]]]:
    """Effects, and for populations that are recounted error and half an interval."""
    n = trial.sizes
    units = trial.sizes.sum(axis=1)
    histograms = trial.kind == "histogram"
    mean, spread = (_histograms if histograms else _responses)(trial)
    weight = units / units.sum()
    for pair in ([arm, 0] for arm in range(1, n.shape[1])):
        apart = mean[:, pair[0]] - mean[:, 0]
        known = {}
        if n.min() > 1 and not histograms and not trial.grouped:
            # A sum over groups, with Welch's degrees of freedom, less what squares overdo.
            parts = weight[:, None] ** 2 * (spread / n)[:, pair]
            degrees = 1 / ((parts / parts.sum()) ** 2 / (n[:, pair] + 1)).sum() - 2
            known = dict.fromkeys(("finite_population", "super_population"), (parts.sum(), degrees))
        if len(n) > 1:
            known["super_population"] = _between(weight, apart, (1 / n[:, pair]).sum(axis=1))
        least = 1e-26 * (weight**2 @ (mean**2 + spread)[:, pair]).sum()
        for name, (variance, degrees) in known.items():
            # A variance that is due to rounding is not known.
            error = math.sqrt(variance) if variance > least else math.nan
            known[name] = error, noise.student(degrees, trial.confidence) * error
        yield float(weight @ apart), known


def _histograms(trial: Release) -> tuple[Array, Array]:
    """Means of cells by noisy histograms, and no variances."""
    y = trial.levels - trial.levels[0]
    shape = trial.sizes.shape
    counts = np.array(trial.drawn["steps"]).reshape(*shape, -1) / trial.per_unit
    return counts @ (y - y.mean()) / trial.sizes, np.zeros(shape)


def _responses(trial: Release) -> tuple[Array, Array]:
    """Means and variances of cells by randomised responses."""
    n = trial.sizes
    counts = trial.drawn["counts"].reshape(*trial.sizes.shape, -1)
    away = trial.levels[trial.kept] - trial.levels[0]
    if trial.kind == "table":
        y = np.array(trial.above)
        keep = 1.0
        prior = np.zeros((1, 1))
    else:
        y = away
        replaced = trial.replaced / _PART
        keep = 1 - replaced
        prior = replaced * (_priors(trial) @ away)
    answer = counts @ y / n
    squares = (counts * (y - answer[:, :, None]) ** 2).sum(axis=2)
    return (answer - prior) / keep, squares / np.maximum(n - 1, 1) / keep**2


def _priors(trial: Release) -> Array:
    """Shares of levels in the prior of each cell (paper 003, Algorithm 2)."""
    sizes = trial.sizes.sum(axis=0, keepdims=True) if trial.prior["pooled"] else trial.sizes
    steps = np.array(trial.drawn["histogram"]).reshape(*sizes.shape, -1)
    low = trial.floor / _PART
    share = np.clip(steps / trial.per_unit / sizes[:, :, None], low, 1)
    total = share.sum(axis=2, keepdims=True)
    # Too much is taken in proportion to what is above the floor, too little given to what is not 1.
    room = np.where(total > 1, share - low, 1 - share)
    whole = room.sum(axis=2, keepdims=True)
    return np.asarray(
        share + (1 - total) * np.where(whole > 0, room / np.where(whole > 0, whole, 1), 0)
    )


def _between(weight: Array, value: Array, scale: Array) -> tuple[float, float]:
    """Variance of sum w D and its degrees (docs/theory/experiments.md#inference)."""
    # It is sum b (D - sum p D)^2 with p = w/sum w, b = k w^2/(1 - 2p), 1/k = 1 + sum p^2/(1 - 2p);
    # where one p is above 1/2, the others are raised to its weight.
    top = int(np.argmax(weight))
    rest = math.fsum(np.delete(weight, top))
    if weight[top] >= rest * (1 - 1e-9):
        p = weight / (2 * rest)
        b = np.zeros(len(weight))
        p[top], b[top] = 0.5, (2 * max(weight[top], rest)) ** 2
    else:
        p = weight / math.fsum(weight)
        b = weight**2 / (1 - 2 * p) / (1 + math.fsum(p**2 / (1 - 2 * p)))
    variance = math.fsum(b * (value - math.fsum(p * value)) ** 2)
    # The form is diag b and a matrix of rank two; degrees are tr(AV)^2/tr(AVAV).
    sides = np.stack([p, b])
    core = np.array([[b.sum(), -1.0], [-1.0, 0.0]])
    diagonal = ((core @ sides) * sides).sum(axis=0)
    degrees = []
    for v in (scale, np.ones(len(p))):
        gram = core @ (sides * v) @ sides.T
        square = ((b * v) ** 2 + 2 * b * v**2 * diagonal).sum() + np.trace(gram @ gram)
        degrees.append(float(((b + diagonal) * v).sum() ** 2 / square))
    return variance, max(1.0, min(degrees))
