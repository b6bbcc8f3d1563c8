"""Trials: the loss of one outcome, effects, their intervals, and the bound of a best table."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Release, differs

_ONE, _TABLE = 2**32, 2**62


def differences(trial: Release) -> Iterator[str]:
    """What does not follow; of noisy Horvitz-Thompson aggregates nothing is recounted."""
    if trial.name == "noisy_horvitz_thompson":
        return
    stated, loss = trial.epsilon - trial.clustering_epsilon, _loss(trial)
    if not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if trial.name == "best_table":
        yield from _table(trial)
    for (value, known), (stated, spreads) in zip(_effects(trial), trial.effects, strict=True):
        yield from differs("effect", stated, value, 1e-9, 1e-12 * float(np.ptp(trial.levels)))
        for name, (error, half) in known.items():
            true, what = [error, value - half, value + half], "error and interval of an effect"
            yield from differs(what, spreads[name], true, 1e-9, 1e-6 * half)


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
    levels, shift, variances = trial.levels[trial.kept], list(map(Fraction, trial.shift)), []
    one = max(each.denominator for each in shift)
    says, columns = [int(each * one) for each in shift], trial.numbers.reshape(len(shift), -1).T
    for level, column in zip(levels.tolist(), columns.tolist(), strict=True):
        above, pairs = Fraction(level) - Fraction(levels[0]), list(zip(column, says, strict=True))
        mean = Fraction(sum(n * each for n, each in pairs), _TABLE * one)
        square = Fraction(sum(n * each**2 for n, each in pairs), _TABLE * one**2)
        if sum(column) != _TABLE or mean != above:
            yield f"responses to the level {level} are not unbiased"
        variances.append(float(square - above**2))
    weights, certificate = trial.weights, trial.certificate
    if weights not in (None, certificate["weight"]):
        yield "the bound is for other weights"
    variance = max(variances) if weights is None else float(np.dot(weights, variances))
    true = [variance, _table_bound(levels, certificate, trial.chosen_epsilon)]
    yield from differs("variance and bound of a table", [trial.variance, trial.bound], true, 1e-9)


def _table_bound(levels: Array, certificate: dict[str, list[float]], epsilon: float) -> float:
    """Least variance of unbiased responses of this loss (docs/theory/best-table.md)."""
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


def _effects(trial: Release) -> Iterator[tuple[float, dict[str, tuple[float, float]]]]:
    """Effects, and for populations that are recounted error and half an interval."""
    n, units, histograms = trial.sizes, trial.sizes.sum(axis=1), trial.name == "noisy_histogram"
    mean, spread = (_histograms if histograms else _responses)(trial)
    weight = units / units.sum()
    for pair in ([arm, 0] for arm in range(1, n.shape[1])):
        apart, known = mean[:, pair[0]] - mean[:, 0], {}
        if n.min() > 1 and not histograms:
            # A sum over groups, with Welch's degrees of freedom, less what squares overdo.
            parts = weight[:, None] ** 2 * (spread / n)[:, pair]
            degrees = 1 / ((parts / parts.sum()) ** 2 / (n[:, pair] + 1)).sum() - 2
            known = dict.fromkeys(("finite_population", "super_population"), (parts.sum(), degrees))
        if len(n) > 1:
            scale = 1 / units if histograms else (1 / n[:, pair]).sum(axis=1)
            known["super_population"] = _between(weight, apart, scale)
        least = 1e-26 * (weight**2 @ (mean**2 + spread)[:, pair]).sum()
        for name, (variance, degrees) in known.items():
            # A variance that is due to rounding is not known.
            error = math.sqrt(variance) if variance > least else math.nan
            known[name] = error, noise.student(degrees, trial.confidence) * error
        yield float(weight @ apart), known


def _histograms(trial: Release) -> tuple[Array, Array]:
    """Means of groups by noisy histograms, and no variances."""
    y, shape = trial.levels - trial.levels[0], trial.sizes.shape
    counts = np.array(trial.released["numbers"]).reshape(*shape, -1) / trial.weight
    return counts @ (y - y.mean()) / trial.sizes, np.zeros(shape)


def _responses(trial: Release) -> tuple[Array, Array]:
    """Means and variances of groups by randomised responses."""
    n, counts = trial.sizes, trial.released["counts"].reshape(*trial.sizes.shape, -1)
    if trial.name == "best_table":
        y, keep, prior = np.array(trial.shift), 1.0, 0.0
    else:
        y, replaced = trial.levels[trial.kept] - trial.levels[0], trial.replaced / _ONE
        shares = trial.released["prior"].reshape(-1, *counts.shape[1:]) / _ONE
        keep, prior = 1 - replaced, replaced * (shares @ y)
    answer = counts @ y / n
    squares = (counts * (y - answer[:, :, None]) ** 2).sum(axis=2)
    return (answer - prior) / keep, squares / np.maximum(n - 1, 1) / keep**2


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
