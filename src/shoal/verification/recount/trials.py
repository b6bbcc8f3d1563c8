"""Trials: the loss of one outcome, effects, their intervals, and the bound of a best table."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.inference import between, normal_laplace, student, summed
from shoal.verification.recount.reading import Array, Trial

_ONE, _TABLE = 2**32, 2**62
Effect = tuple[float, tuple[float, float], tuple[float, float]]
# An error and half an interval that are not known.
_UNKNOWN = (math.nan, math.nan)


def differences(trial: Trial) -> Iterator[str]:
    """What does not follow from the released numbers."""
    stated, loss, name = trial.epsilon - trial.clustering_epsilon, _loss(trial), trial.name
    if not loss <= stated <= loss * (1 + Fraction(1, 2**40)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if name == "best_table":
        yield from _table(trial)
    if name == "noisy_horvitz_thompson":
        return
    effects = _of_histograms(trial) if name == "noisy_histogram" else _of_units(trial)
    for (value, *known), numbers in zip(effects, trial.effects, strict=True):
        true = [value, *(x for e, half in known for x in (e, value - half, value + half))]
        half = np.nanmin([half for _, half in known] + [1e3 * float(np.ptp(trial.levels))])
        given = np.array(numbers, dtype=np.float64)
        slack = 1e-6 * half + 1e-12 * abs(value)
        if not np.allclose(given, true, rtol=1e-9, atol=slack, equal_nan=True):
            yield f"an effect, its errors and intervals are {true}, not {numbers}"


def _loss(trial: Trial) -> Fraction:
    """Epsilon of one outcome (docs/theory/trials.md#what-it-costs)."""
    p = trial.numbers
    if trial.name == "best_table":
        rows: list[list[int]] = _rows(trial).tolist()
        return noise.log_up(max(Fraction(max(row), min(row)) for row in rows))
    # An outcome moves two bins; a response keeps it, or draws from the prior.
    steps = Fraction(2 * p["weight"], 2 ** p["lattice_bits"])
    if "replaced" in p:
        extra = max(Fraction(_ONE - p["replaced"], _ONE) - trial.delta, Fraction(0))
        return steps + noise.log_up(1 + extra / Fraction(p["replaced"] * p["floor"], _ONE**2))
    if trial.name == "noisy_horvitz_thompson":
        moved = _moved_differences(trial.sizes, p["weight"], p["spread_weight"])
        return Fraction(moved, 2 ** p["lattice_bits"])
    return steps


def _rows(trial: Trial) -> Array:
    """A table in 2^-62: responses x levels."""
    rows: Array = trial.numbers["numbers"]
    return rows.reshape(len(trial.numbers["shift"]), -1)


def _table(trial: Trial) -> Iterator[str]:
    """Whether responses have no bias, and variance and bound are those of the table."""
    p, variances = trial.numbers, []
    levels, shift = trial.levels[p["kept"]], [Fraction(each) for each in p["shift"]]
    unit = max(each.denominator for each in shift)
    whole = [int(each * unit) for each in shift]
    for at, column in enumerate(_rows(trial).T.tolist()):
        level = Fraction(levels[at]) - Fraction(levels[0])
        mean = Fraction(sum(map(operator.mul, column, whole)), _TABLE * unit)
        square = Fraction(sum(n * each**2 for n, each in zip(column, whole, strict=True)), _TABLE)
        if sum(column) != _TABLE or mean != level:
            yield f"responses to level {at} are not unbiased"
        variances.append(float(square / unit**2 - level**2))
    variance = max(variances) if p["weights"] is None else float(np.dot(p["weights"], variances))
    if p["weights"] not in (None, p["certificate"]["weight"]):
        yield "the bound is for other weights"
    true = [variance, _table_bound(levels, p["certificate"], float(Fraction(p["epsilon"])))]
    if not np.allclose([p["variance"], p["bound"]], true, rtol=1e-9, atol=0):
        yield f"variance and bound are {true}, not {[p['variance'], p['bound']]}"


def _table_bound(levels: Array, certificate: dict[str, list[float]], epsilon: float) -> float:
    """Least variance of unbiased responses of this loss (docs/theory/best-table.md#the-dual-bound).

    Between two roots of the h the curve R is one parabola; as far as it falls below 0, the sum of
    all totals is lowered.
    """
    w, s, t = (np.array(certificate[name]) for name in ("weight", "slope", "total"))
    width = float(np.ptp(levels))
    y, square = (levels - levels[0]) / width - 0.5, s**2 + 4 * w * t
    far = (s + np.copysign(np.sqrt(np.maximum(square, 0)), s)) / (2 * w)
    real = (square > 0) & (far != 0)
    roots = np.sort(np.append(far[real], -(t / w)[real] / far[real]))
    ends = np.concatenate(([-np.inf], roots, [np.inf]))
    at = np.concatenate((roots[:1] - 1, (roots[1:] + roots[:-1]) / 2, roots[-1:] + 1))[:, None]
    times = np.where(w * at**2 - s * at - t < 0, math.exp(epsilon), 1)
    a, b, c = ((times * each).sum(axis=1) for each in (w, s, t))
    place = np.clip(b / (2 * a), ends[:-1], ends[1:])
    lowered = min(0.0, float((a * place**2 - b * place - c).min()))
    bound = float(t.sum() + lowered + s @ y - w @ y**2)
    return bound / max(1.0, float(w.sum())) * width**2


def _moved_differences(sizes: Array, weight: int, spread: int) -> int:
    """Most steps that one outcome moves noisy differences of clusters and their variance by."""
    f, n = (
        np.array([_factors(*each) for each in sizes.tolist()], dtype=object),
        sizes.astype(object),
    )
    moved = -(-weight * f // n)
    shared = (-(-weight * f[:, 1:] // n[:, :1])).sum(axis=1)
    moved[:, 0] = np.where(f[:, 0] == 0, shared, weight)
    used = np.argwhere((sizes > 1) & ~_joined(sizes)[:, None] & (spread > 0)).tolist()
    share = {(c, a): Fraction(int(sizes[c].sum()), int(sizes[c, a])) for c, a in used}
    for (c, a), each in share.items():
        most = max(x for (_, b), x in share.items() if sizes.shape[1] == 2 or b == a)
        moved[c, a] += math.ceil(spread * (each / most) ** 2)
    return int(moved.max())


def _factors(control: int, *treated: int) -> list[int]:
    """Units whose share in the width makes a number's step (docs/theory/trials.md#aggregates)."""
    sizes = range(max(treated) + 1)
    most = bisect_right(sizes, control, key=lambda k: sum(min(n, k) for n in treated)) - 1
    smaller = [min(n, max(most, 1)) for n in treated]
    direct = sum(Fraction(1, k * k) for k in smaller)
    means = sum(Fraction(1, n * n) + Fraction(1, control * control) for n in treated)
    return [0, *smaller] if most and direct < means else [control, *treated]


def _joined(sizes: Array) -> Array:
    """Clusters with a group of one unit; a lone one takes the nearest of the others along."""
    alone, units = np.asarray(sizes.min(axis=1) == 1), sizes.sum(axis=1)
    if len(alone) > 1 and alone.sum() == 1:
        alone[np.argmin(np.abs(units - units[alone]) + np.where(alone, units.sum(), 0))] = True
    return alone & (len(alone) > 1)


def _known(spread: tuple[float, float], confidence: float, least: float) -> tuple[float, float]:
    """Error and half a t interval from variance and degrees, unless that is due to rounding."""
    error = math.sqrt(spread[0]) if spread[0] > least else math.nan
    return error, student(spread[1], confidence) * error


def _of_units(trial: Trial) -> list[Effect]:
    """Effects, and error and half an interval for these units and for their population."""
    n, p, confidence = trial.sizes, trial.numbers, trial.confidence
    weight, counts = n.sum(axis=1) / n.sum(), p["released"]["counts"].reshape(*n.shape, -1)
    if trial.name == "best_table":
        y, keep, prior = np.array(p["shift"]), 1.0, np.zeros(1)
    else:
        y, keep = trial.levels[p["kept"]] - trial.levels[0], (_ONE - p["replaced"]) / _ONE
        shares = p["released"]["prior"].reshape(-1, *counts.shape[1:]) / _ONE
        prior = p["replaced"] / _ONE * (shares @ y)
    answer, effects = counts @ y / n, []
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
            variance, free = between(weight[pool], apart[pool], scale[pool])
            parts, degrees = np.append(parts, variance), np.append(degrees, free)
        here = there = _UNKNOWN
        if np.isfinite(parts).all():
            here = there = _known(summed(parts, degrees), confidence, least)
        if len(n) > 1:
            there = _known(between(weight, apart, scale), confidence, least)
        effects.append((float(weight @ apart), here, there))
    return effects


def _of_histograms(trial: Trial) -> list[Effect]:
    """The same from noisy histograms, whose means and variances have no bias."""
    n, p, confidence = trial.sizes.astype(np.float64), trial.numbers, trial.confidence
    y, units, step = trial.levels - trial.levels.mean(), n.sum(axis=1), p["weight"] * n
    h = np.array(p["released"]["numbers"], dtype=float).reshape(*n.shape, -1) / step[:, :, None]
    v = noise.laplace_variance(p["lattice_bits"]) * (2 ** p["lattice_bits"] / step) ** 2
    mean, added, shape = h @ y, v * (y @ y), 3 * (y**4).sum() / (y @ y) ** 2
    raised, square = np.where(n > 1, n / np.maximum(n - 1, 1), np.nan), (y**2).mean()
    spread = raised * (square + h @ (y**2 - square) - mean**2 + added)
    linear = v * len(y) * ((y - mean[:, :, None]) ** 2).var(axis=2)
    loose = raised**2 * (linear + (2 + shape) * added**2)
    pool, weight, effects = _joined(trial.sizes), units / units.sum(), []
    share, known = weight[:, None] ** 2 / n, ~pool[:, None] & (n > 1)
    most = share * (units / np.maximum(units - 1, 1))[:, None] * np.ptp(trial.levels) ** 2 / 4
    for arm in range(1, n.shape[1]):
        pair, apart = np.isin(np.arange(n.shape[1]), (arm, 0)), mean[:, arm] - mean[:, 0]
        used, rest = known & pair, ~pool[:, None] & pair & ~known
        part, both = share[used], (weight[:, None] ** 2 * added)[~pool[:, None] & pair]
        sampling = float(most[rest].sum() + np.clip(part @ spread[used], 0, most[used].sum()))
        doubt, moved, pooled, free = part**2 @ loose[used], float(both.sum()), 0.0, math.inf
        if used.any():
            doubt += 2 * (sampling / part.sum()) ** 2 * (part**2 / (n[used] - 1)).sum()
        if pool.any():
            pooled, free = between(weight[pool], apart[pool], (1 / n[pool][:, pair]).sum(axis=1))
        doubt += 2 * pooled**2 / free
        total, terms = sampling + moved + pooled, 3 * moved**2 / (shape * (both @ both) or 1.0)
        half = normal_laplace(confidence, sampling + pooled, moved, terms or 1.0)
        half *= student(max(1.0, 2 * total**2 / doubt) if doubt else math.inf, confidence)
        here = there = (math.sqrt(total), half / student(math.inf, confidence))
        if len(n) > 1:
            there = _known(between(weight, apart, 1 / units), confidence, 0.0)
        effects.append((float(weight @ apart), here, there))
    return effects
