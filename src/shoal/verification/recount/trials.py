"""Trials: the loss of one outcome, effects, their intervals, and the bound of a best table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.inference import between, normal_laplace, student, summed
from shoal.verification.recount.reading import Aggregate, Array, Responses, Table, Trial

_ONE, _TABLE = 2**32, 2**62
Effect = tuple[float, tuple[float, float], tuple[float, float]]
# An error and half an interval that are not known.
_UNKNOWN = (math.nan, math.nan)


def differences(trial: Trial) -> Iterator[str]:
    """What does not follow from the released numbers."""
    stated, loss, way = trial.epsilon - trial.clustering_epsilon, _loss(trial), trial.mechanism
    if not loss <= stated <= loss * (1 + Fraction(1, 2**40)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if isinstance(way, Table):
        yield from _table(trial, way)
    if isinstance(way, Aggregate) and not way.histogram:
        return
    effects = _of_histograms(trial, way) if isinstance(way, Aggregate) else _of_units(trial, way)
    if len(effects) != len(trial.effects):
        yield "not one effect for each arm"
        return
    for (value, *known), numbers in zip(effects, trial.effects, strict=True):
        true, halves = [value], [half for _, half in known if not math.isnan(half)]
        for error, half in known:
            true += [error, value - half, value + half]
        slack = 1e-6 * min(halves, default=float(np.ptp(trial.levels))) + 1e-12 * abs(value)
        given = np.array(numbers, dtype=np.float64)
        if not np.allclose(given, true, rtol=1e-9, atol=slack, equal_nan=True):
            yield f"an effect, its errors and intervals are {true}, not {numbers}"


def _loss(trial: Trial) -> Fraction:
    """Epsilon of one outcome (docs/theory/trials.md#what-it-costs)."""
    way = trial.mechanism
    if isinstance(way, Responses):
        # An outcome moves two bins; a response keeps it, or draws from the prior.
        extra = max(Fraction(_ONE - way.replaced, _ONE) - trial.delta, Fraction(0))
        response = noise.log_up(1 + extra / Fraction(way.replaced * way.floor, _ONE**2))
        return Fraction(2 * way.weight, 2**way.lattice_bits) + response
    if isinstance(way, Table):
        rows: list[list[int]] = way.numbers.tolist()
        return noise.log_up(max(Fraction(max(row), min(row)) for row in rows))
    steps = 2 * way.weight if way.histogram else _moved_differences(trial.sizes, way)
    return Fraction(steps, 2**way.lattice_bits)


def _table(trial: Trial, way: Table) -> Iterator[str]:
    """Whether responses have no bias, and variance and bound are those of the table."""
    shift, variances = [Fraction(each) for each in way.shift], []
    above = [Fraction(float(trial.levels[at])) - Fraction(trial.levels[0]) for at in way.kept]
    for at, level in enumerate(above):
        column: list[int] = way.numbers[:, at].tolist()
        pairs = list(zip(column, shift, strict=True))
        mean, square = (
            sum((n * each**power for n, each in pairs), Fraction(0)) / _TABLE for power in (1, 2)
        )
        if sum(column) != _TABLE or mean != level:
            yield f"responses to level {at} are not unbiased"
        variances.append(float(square - level**2))
    variance = max(variances) if way.weights is None else float(np.dot(way.weights, variances))
    if not math.isclose(way.variance, variance, rel_tol=1e-9):
        yield f"the variance of responses is {variance:.9g}, not {way.variance:.9g}"
    if way.weights not in (None, way.certificate["weight"]):
        yield "the bound is for other weights"
    bound = _table_bound(trial.levels[way.kept], way)
    if not math.isclose(way.bound, bound, rel_tol=1e-9):
        yield f"a bound of {bound:.9g} is proved, not {way.bound:.9g}"


def _table_bound(levels: Array, way: Table) -> float:
    """Least variance of unbiased responses of this loss (docs/theory/best-table.md#the-dual-bound).

    Between two roots of the h the curve R is one parabola; as far as it falls below 0, the sum of
    all totals is lowered.
    """
    w, s, t = (np.array(way.certificate[name]) for name in ("weight", "slope", "total"))
    width = float(np.ptp(levels))
    y, square = (levels - levels[0]) / width - 0.5, s**2 + 4 * w * t
    far = (s + np.copysign(np.sqrt(np.maximum(square, 0)), s)) / (2 * w)
    real = (square > 0) & (far != 0)
    roots = np.sort(np.append(far[real], -(t / w)[real] / far[real]))
    ends = np.concatenate(([-np.inf], roots, [np.inf]))
    at = np.concatenate((roots[:1] - 1, (roots[1:] + roots[:-1]) / 2, roots[-1:] + 1))[:, None]
    times = np.where(w * at**2 - s * at - t < 0, math.exp(way.asked_epsilon), 1)
    a, b, c = (times * each for each in (w, s, t))
    a, b, c = a.sum(axis=1), b.sum(axis=1), c.sum(axis=1)
    place = np.clip(b / (2 * a), ends[:-1], ends[1:])
    lowered = min(0.0, float((a * place**2 - b * place - c).min()))
    bound = float(t.sum() + lowered + s @ y - w @ y**2)
    return bound / max(1.0, float(w.sum())) * width**2


def _moved_differences(sizes: Array, way: Aggregate) -> int:
    """Most steps that one outcome moves noisy differences of clusters and their variance by."""
    f, n = (
        np.array([_factors(*each) for each in sizes.tolist()], dtype=object),
        sizes.astype(object),
    )
    moved = -(-way.weight * f // n)
    shared = (-(-way.weight * f[:, 1:] // n[:, :1])).sum(axis=1)
    moved[:, 0] = np.where(f[:, 0] == 0, shared, way.weight)
    used = (sizes > 1) & ~_joined(sizes)[:, None] & (way.spread_weight > 0)
    share = {
        (c, a): Fraction(int(sizes[c].sum()), int(sizes[c, a]))
        for c, a in zip(*(each.tolist() for each in np.nonzero(used)), strict=True)
    }
    for (c, a), each in share.items():
        most = max(x for (_, b), x in share.items() if sizes.shape[1] == 2 or b == a)
        moved[c, a] += math.ceil(way.spread_weight * (each / most) ** 2)
    return int(moved.max())


def _factors(control: int, *treated: int) -> list[int]:
    """Units whose share in the width makes a number's step (docs/theory/trials.md#aggregates)."""
    low, high = 0, max(treated)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(min(n, middle) for n in treated) <= control
        low, high = (middle, high) if fits else (low, middle - 1)
    smaller = [min(n, max(low, 1)) for n in treated]
    direct = sum(Fraction(1, k * k) for k in smaller)
    means = sum(Fraction(1, n * n) + Fraction(1, control * control) for n in treated)
    return [0, *smaller] if low and direct < means else [control, *treated]


def _joined(sizes: Array) -> Array:
    """Clusters with a group of one unit; a lone one takes the nearest of the others along."""
    alone = np.asarray(sizes.min(axis=1) == 1)
    if len(alone) > 1 and alone.sum() == 1:
        units = sizes.sum(axis=1)
        alone[np.argmin(np.abs(units - units[alone]) + np.where(alone, units.sum(), 0))] = True
    return alone & (len(alone) > 1)


def _known(
    variance: float, degrees: float, confidence: float, least: float = 0.0
) -> tuple[float, float]:
    """A standard error and half a t interval, unless the variance is that of rounding."""
    if variance <= least:
        return _UNKNOWN
    return math.sqrt(variance), student(degrees, confidence) * math.sqrt(variance)


def _of_units(trial: Trial, way: Responses | Table) -> list[Effect]:
    """Effects, and error and half an interval for these units and for their population."""
    n, weight = trial.sizes, trial.sizes.sum(axis=1) / trial.sizes.sum()
    keep, prior = 1.0, np.zeros(1)
    if isinstance(way, Table):
        y = np.array(way.shift)
    else:
        y, keep = trial.levels[way.kept] - trial.levels[0], (_ONE - way.replaced) / _ONE
        prior = way.replaced / _ONE * (way.prior @ y) / _ONE
    answer, effects = way.counts @ y / n, []
    mean = (answer - prior) / keep
    squares = (way.counts * (y - answer[:, :, None]) ** 2).sum(axis=2)
    spread = np.where(n > 1, squares / np.maximum(n - 1, 1) / keep**2, np.nan)
    pool, part = _joined(n), weight[:, None] ** 2 * spread / n
    for arm in range(1, n.shape[1]):
        pair, apart = [arm, 0], mean[:, arm] - mean[:, 0]
        scale = (1 / n[:, pair]).sum(axis=1)
        least = 1e-26 * (weight**2 @ (mean**2 + np.nan_to_num(spread))[:, pair]).sum()
        parts, degrees = part[~pool][:, pair].ravel(), (n - 1.0)[~pool][:, pair].ravel()
        if pool.any():
            variance, free = between(weight[pool], apart[pool], scale[pool])
            parts, degrees = np.append(parts, variance), np.append(degrees, free)
        here = there = _UNKNOWN
        if np.isfinite(parts).all():
            here = there = _known(*summed(parts, degrees), trial.confidence, least)
        if len(n) > 1:
            there = _known(*between(weight, apart, scale), trial.confidence, least)
        effects.append((float(weight @ apart), here, there))
    return effects


def _of_histograms(trial: Trial, way: Aggregate) -> list[Effect]:
    """The same from noisy histograms, whose means and variances have no bias."""
    n, weight = trial.sizes.astype(np.float64), trial.sizes.sum(axis=1) / trial.sizes.sum()
    y, effects = trial.levels - trial.levels.mean(), []
    h = np.array(way.numbers, dtype=np.float64).reshape(*n.shape, -1) / (way.weight * n[:, :, None])
    v = noise.laplace_variance(way.lattice_bits) * (2**way.lattice_bits / (way.weight * n)) ** 2
    mean, added, shape = h @ y, v * (y @ y), 3 * (y**4).sum() / (y @ y) ** 2
    raised = np.divide(n, n - 1, out=np.full(n.shape, np.nan), where=n > 1)
    square = (y**2).mean()
    spread = raised * (square + h @ (y**2 - square) - mean**2 + added)
    linear = v * len(y) * ((y - mean[:, :, None]) ** 2).var(axis=2)
    loose = raised**2 * (linear + (2 + shape) * added**2)
    pool, units = _joined(trial.sizes), n.sum(axis=1)
    share, alone = weight[:, None] ** 2 / n, ~pool[:, None]
    known, confidence = alone & (n > 1), trial.confidence
    most = (
        share * (units / np.maximum(units - 1, 1))[:, None] * float(np.ptp(trial.levels)) ** 2 / 4
    )
    for arm in range(1, n.shape[1]):
        chosen, apart = np.isin(np.arange(n.shape[1]), (arm, 0)), mean[:, arm] - mean[:, 0]
        used, rest = known & chosen, alone & chosen & ~known
        sampling, doubt = float(most[rest].sum()), 0.0
        if used.any():
            told = min(max(float((share * spread)[used].sum()), 0.0), float(most[used].sum()))
            sampling += told
            doubt = float(
                (share[used] ** 2 @ loose[used])
                + 2
                * sampling**2
                / share[used].sum() ** 2
                * (share[used] ** 2 / (n[used] - 1)).sum()
            )
        both = (weight[:, None] ** 2 * added)[alone & chosen]
        moved, pooled, free = float(both.sum()), 0.0, math.inf
        if pool.any():
            scale = (1 / n[pool][:, chosen]).sum(axis=1)
            pooled, free = between(weight[pool], apart[pool], scale)
        doubt += 2 * pooled**2 / free
        total, terms = sampling + moved + pooled, 3 * moved**2 / (shape * (both @ both) or 1.0)
        half = normal_laplace(confidence, sampling + pooled, moved, terms or 1.0)
        half *= student(max(1.0, 2 * total**2 / doubt) if doubt else math.inf, confidence)
        here = there = (math.sqrt(total), half / student(math.inf, confidence))
        if len(n) > 1:
            there = _known(*between(weight, apart, 1 / units), confidence)
        effects.append((float(weight @ apart), here, there))
    return effects
