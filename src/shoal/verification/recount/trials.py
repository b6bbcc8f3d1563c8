"""Recounts trials: the loss of an outcome, effects, intervals, and the bound of a best table.

Answers to questions are recounted in `questions`.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Release, differs

# Shares of a prior are whole numbers divided by this.
_PART = 2**31
# Probabilities in a table are whole numbers divided by this.
_TABLE = 2**62


def differences(trial: Release) -> Iterator[str]:
    """Yields what does not follow, except intervals of histograms and of assigned groups."""
    stated = trial.epsilon - trial.clustering_epsilon
    loss = _loss(trial)
    if not loss <= stated <= loss * (1 + Fraction(1, 10**11)):
        yield f"the privacy loss is {float(loss):.12g}, not {float(stated):.12g}"
    if trial.kind == "table":
        yield from _table(trial)
    part = 1e-9
    slack = 1e-12 * float(np.ptp(trial.levels))
    if trial.kind == "cluster_prior":
        # The release used priors that were rounded to parts of 2^-31; here they are computed from
        # the published histograms without that, so that results may differ by more.
        part = 1e-6
        slack = 1e-6 * float(np.ptp(trial.levels))
    effects = zip(_effects(trial), trial.effects, strict=True)
    for (value, recounted), (stated_value, spreads) in effects:
        yield from differs("effect", stated_value, value, part, slack)
        for name, (error, half) in recounted.items():
            true = [error, value - half, value + half]
            what = "error and interval of an effect"
            yield from differs(what, spreads[name], true, part, 1e-6 * half)


def _loss(trial: Release) -> Fraction:
    """Returns the epsilon of one outcome (docs/theory/experiments.md#what-it-costs)."""
    if trial.kind == "table":
        return _of_table(trial.numbers.reshape(len(trial.above), -1), trial.delta)
    # An outcome moves two bins; a response keeps the outcome, or draws from the prior.
    bins = Fraction(2 * trial.per_unit, 2**trial.bits)
    if trial.kind == "histogram":
        return bins
    extra = max(Fraction(_PART - trial.replaced, _PART) - trial.delta, Fraction(0))
    return bins + noise.log_up(1 + extra / Fraction(trial.replaced * trial.floor, _TABLE))


def _of_table(numbers: Array, delta: Fraction) -> Fraction:
    """Returns the largest log((p - delta)/q) of a response that two levels give with p and q."""
    if delta:
        # Delta covers a single response that is likelier under one level than under another.
        more = numbers[:, :, None] > numbers[:, None, :]
        if int(more.sum(axis=0).max()) > 1:
            raise ValueError("two responses are likelier under one level than under another")
    largest = Fraction(1)
    for row in numbers.tolist():
        high = max(row) - delta * _TABLE
        largest = max(largest, Fraction(high) / min(row))
    return noise.log_up(largest)


def _table(trial: Release) -> Iterator[str]:
    """Yields a sentence if responses are biased, or if variance or bound are not the table's."""
    levels = trial.levels[trial.kept]
    responses = np.array(trial.above)
    columns = trial.numbers.reshape(len(responses), -1).T
    width = float(np.ptp(trial.levels))
    if any(sum(each) != _TABLE for each in columns.tolist()):
        yield "the numbers of a level do not sum to 2^62"
    chance = columns / _TABLE
    outcomes = levels - levels[0]
    bias = np.abs(chance @ (responses / width) - outcomes / width).max()
    if not bias <= 1e-11 * (1 + np.abs(responses).max() / width):
        yield "responses are not unbiased"
    variances = (chance * (responses - outcomes[:, None]) ** 2).sum(axis=1)
    variance = float(variances.max())
    # A table without a proof has no bound.
    bound = math.nan
    if trial.proof is not None:
        bound = _table_bound(trial, levels)
        if trial.proof["mean_of"] is not None:
            variance = float(np.dot(trial.proof["mean_of"], variances))
    true = [variance, bound]
    yield from differs("variance and bound of a table", trial.variance_and_bound, true, 1e-9)


def _table_bound(trial: Release, levels: Array) -> float:
    """Returns a lower bound of the variance (docs/theory/experiments.md#the-dual-bound)."""
    # Weight, slope and total have the letters pi, beta and alpha there.
    w, s, t = (np.array(trial.proof[name]) for name in ("weight", "slope", "total"))
    width = float(np.ptp(levels))
    y = (levels - levels[0]) / width - 0.5
    # Each level has the parabola w o^2 - s o - t of the output o. The curve, which must be nowhere
    # below 0, is their sum, in which those below 0 count e^epsilon times.
    discriminant = s**2 + 4 * w * t
    # The root further from 0 loses no digits; the product of both roots is -t/w.
    far = (s + np.copysign(np.sqrt(np.maximum(discriminant, 0)), s)) / (2 * w)
    real = (discriminant > 0) & (far != 0)
    roots = np.sort(np.append(far[real], -(t / w)[real] / far[real]))
    ends = np.concatenate(([-np.inf], roots, [np.inf]))
    # One point inside each piece between roots.
    between = (roots[1:] + roots[:-1]) / 2
    inside = np.concatenate((roots[:1] - 1, between, roots[-1:] + 1))[:, None]
    # Within a piece the curve is one parabola: totals are lowered by as much as it is below 0.
    times = np.where(w * inside**2 - s * inside - t < 0, math.exp(trial.planned_epsilon), 1)
    a, b, c = ((times * each).sum(axis=1) for each in (w, s, t))
    lowest = np.clip(b / (2 * a), ends[:-1], ends[1:])
    lowered = min(0.0, float((a * lowest**2 - b * lowest - c).min()))
    bound = float(t.sum() + lowered + s @ y - w @ y**2)
    stated = trial.proof["mean_of"]
    if stated is not None and not np.allclose(stated, w, 1e-6, 1e-6):
        raise ValueError("the proof has other weights than the variance")
    return max(0.0, bound / max(1.0, float(w.sum())) * width**2)


def _effects(trial: Release) -> Iterator[tuple[float, dict[str, tuple[float, float]]]]:
    """Yields each effect, with error and half an interval for each recounted population."""
    n = trial.sizes
    units = trial.sizes.sum(axis=1)
    weight = units / units.sum()
    is_histogram = trial.kind == "histogram"
    mean, variance_of_outcomes = (_histograms if is_histogram else _responses)(trial)
    for arm in range(1, n.shape[1]):
        pair = [arm, 0]
        difference = mean[:, arm] - mean[:, 0]
        # Variance and degrees of freedom by population.
        spreads = {}
        if n.min() > 1 and not is_histogram and not trial.grouped:
            # The variance is a sum over cells. Its degrees of freedom are Welch's with n + 1 in
            # place of n - 1 and 2 less at the end, which is nearly unbiased.
            parts = weight[:, None] ** 2 * (variance_of_outcomes / n)[:, pair]
            degrees = 1 / ((parts / parts.sum()) ** 2 / (n[:, pair] + 1)).sum() - 2
            spreads["finite_population"] = parts.sum(), degrees
            # With one cluster, its units were drawn from the population.
            spreads["super_population"] = parts.sum(), degrees
        if len(n) > 1:
            scale = (1 / n[:, pair]).sum(axis=1)
            spreads["super_population"] = _between(weight, difference, scale)
        rounding = 1e-26 * (weight**2 @ (mean**2 + variance_of_outcomes)[:, pair]).sum()
        found = {}
        for name, (variance, degrees) in spreads.items():
            # A variance that rounding alone explains is not known.
            error = math.sqrt(variance) if variance > rounding else math.nan
            found[name] = error, noise.student(degrees, trial.confidence) * error
        yield float(weight @ difference), found


def _histograms(trial: Release) -> tuple[Array, Array]:
    """Returns means of cells from noisy histograms, and zeros for their variances."""
    y = trial.levels - trial.levels[0]
    shape = trial.sizes.shape
    counts = np.array(trial.drawn["steps"]).reshape(*shape, -1) / trial.per_unit
    return counts @ (y - y.mean()) / trial.sizes, np.zeros(shape)


def _responses(trial: Release) -> tuple[Array, Array]:
    """Returns means and variances of cells from randomised responses."""
    n = trial.sizes
    counts = trial.drawn["counts"].reshape(*trial.sizes.shape, -1)
    outcomes = trial.levels[trial.kept] - trial.levels[0]
    if trial.kind == "table":
        # These responses are unbiased.
        responses = np.array(trial.above)
        kept = 1.0
        added = np.zeros((1, 1))
    else:
        # A response is the outcome with the probability `kept`, else a level of the prior.
        responses = outcomes
        replaced = trial.replaced / _PART
        kept = 1 - replaced
        added = replaced * (_priors(trial) @ outcomes)
    mean = counts @ responses / n
    squares = (counts * (responses - mean[:, :, None]) ** 2).sum(axis=2)
    return (mean - added) / kept, squares / np.maximum(n - 1, 1) / kept**2


def _priors(trial: Release) -> Array:
    """Returns the shares of levels in the prior of each cell (paper 003, Algorithm 2)."""
    sizes = trial.sizes.sum(axis=0, keepdims=True) if trial.prior["pooled"] else trial.sizes
    steps = np.array(trial.drawn["histogram"]).reshape(*sizes.shape, -1)
    low = trial.floor / _PART
    share = np.clip(steps / trial.per_unit / sizes[:, :, None], low, 1)
    total = share.sum(axis=2, keepdims=True)
    # Shares must add up to 1: a surplus is taken from levels above the floor, a lack is given to
    # levels below 1, each in proportion to its room.
    room = np.where(total > 1, share - low, 1 - share)
    all_room = room.sum(axis=2, keepdims=True)
    part = np.zeros(room.shape)
    np.divide(room, all_room, out=part, where=all_room > 0)
    return np.asarray(share + (1 - total) * part)


def _between(weight: Array, value: Array, scale: Array) -> tuple[float, float]:
    """Returns the variance of sum weight * value, and its degrees of freedom.

    Source: docs/theory/experiments.md#inference.
    """
    # With w = weight and D = value, the variance is sum b (D - sum p D)^2, where p = w/sum w,
    # b = k w^2/(1 - 2p) and 1/k = 1 + sum p^2/(1 - 2p); where one p is above 1/2, the others are
    # raised to its weight.
    heaviest = int(np.argmax(weight))
    rest = math.fsum(np.delete(weight, heaviest))
    if weight[heaviest] >= rest * (1 - 1e-9):
        p = weight / (2 * rest)
        p[heaviest] = 0.5
        b = np.zeros(len(weight))
        b[heaviest] = (2 * max(weight[heaviest], rest)) ** 2
    else:
        p = weight / math.fsum(weight)
        b = weight**2 / (1 - 2 * p) / (1 + math.fsum(p**2 / (1 - 2 * p)))
    variance = math.fsum(b * (value - math.fsum(p * value)) ** 2)
    # The variance is D'AD, where A is diag(b) plus a matrix of rank two; if the D have variances V,
    # degrees are tr(AV)^2/tr(AVAV).
    sides = np.stack([p, b])
    core = np.array([[b.sum(), -1.0], [-1.0, 0.0]])
    diagonal = ((core @ sides) * sides).sum(axis=0)
    degrees = []
    # Degrees are computed for variances as `scale`, and for equal ones: the fewer count.
    for variances in (scale, np.ones(len(p))):
        gram = core @ (sides * variances) @ sides.T
        of_diagonal = ((b * variances) ** 2 + 2 * b * variances**2 * diagonal).sum()
        trace = ((b + diagonal) * variances).sum()
        degrees.append(float(trace**2 / (of_diagonal + np.trace(gram @ gram))))
    return variance, max(1.0, min(degrees))
