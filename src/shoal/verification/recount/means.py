"""Recounts means of values without bounds: loss, errors, value, intervals (docs/theory/means.md).

The worst laws of values have two points.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc

from shoal.verification.recount import noise
from shoal.verification.recount.reading import Array, Document, Release, differs

# Stated numbers may differ by this part.
_CLOSE = 1e-9
# A bias may be stated too large by this much, because smaller numbers are rounded.
_NOTHING = 1e-280
# Distances of a point that are tried in two-point laws, divided by a margin or a size.
_DISTANCES = 1 + np.geomspace(1e-6, 1e6, 20_001)
# Probabilities of rare middle guesses that are tried.
_RARE = np.exp(-np.arange(8, 60.25, 0.25))
# The parts that far users may be of the first users, as they are tried.
_PARTS = np.arange(1, 201) / 600


def differences(mean: Release) -> Iterator[str]:
    """Yields what does not follow from the choice and the drawn integers."""
    recounted = _Mean(mean)
    epsilon, delta = recounted.loss()
    yield from _loss("epsilon", epsilon, mean.epsilon, 9)
    yield from _loss("delta", delta, mean.delta, 11)
    if recounted.coarse:
        yield from recounted.symmetric_errors()
    else:
        yield from recounted.clipped_errors()
    bias = mean.bias_bound
    # By Chebyshev's inequality.
    certified = bias + mean.standard_error / math.sqrt(1 - mean.confidence)
    expected = certified
    if recounted.squares:
        variance = recounted.heavy * (Fraction(recounted.size) / recounted.scale) ** 2
        expected = bias + recounted.normal(float(variance / recounted.total**2), 0.0)
    claims = mean.rmse_bound, mean.noise_scale, mean.half_width
    bounds = math.hypot(bias, mean.standard_error), float(recounted.scale), expected
    yield from differs("errors, scale and half width", claims, bounds, _CLOSE)
    if mean.steps is None:
        results = mean.value, mean.interval, mean.certified_interval, mean.guess, mean.squares
        # Only a mean with a coarse guess may have no estimate, if there was no guess.
        if any(each is not None for each in results) or not recounted.coarse:
            yield "the manifest has results but no estimate"
        return
    moved = Fraction(mean.steps, recounted.steps * recounted.total) * recounted.tick
    value = recounted.centre(drawn=True) + moved
    yield from differs("value", mean.value, float(value), 0.0)
    half_width = certified
    if recounted.squares:
        half_width = bias + recounted.normal(*recounted.variance_about(value))
    for stated, half in ((mean.interval, half_width), (mean.certified_interval, certified)):
        slack = _CLOSE * half + 1e-15 * abs(mean.value)
        ends = mean.value - half, mean.value + half
        yield from differs("an interval", stated, ends, 0.0, slack)


def _loss(name: str, true: Fraction, stated: Fraction, digits: int) -> Iterator[str]:
    """Yields a sentence unless a stated loss is the true one, or above it after these digits."""
    if not true <= stated <= true * (1 + Fraction(1, 10**digits)):
        yield f"{name} is {float(true):.12g}, not {float(stated):.12g}"


class _Guess(NamedTuple):
    """By how much a guess is off but in rare cases, and what these add to the mean square error."""

    off: float
    rare: float


class _Mean:
    """A mean with the weights of its last users, whose values are -reach to reach whole units.

    `total` and `heavy` are the sums of weights and of squared weights. With a coarse guess, the
    first users were asked for it, and only the others, the last users, are averaged.
    """

    def __init__(self, mean: Release) -> None:
        self.mean = mean
        choice = mean.choice
        self.coarse: Document = choice.get("coarse") or {}
        self.first: int = self.coarse.get("users", 0)
        self.weight: Any = mean.weight[self.first :].astype(object)
        self.total = int(self.weight.sum())
        self.heavy = int((self.weight**2).sum())
        self.free = self.total**2 - self.heavy
        self.squares: Document = choice["squares"] or {}
        last = choice.get("last", choice)
        self.steps = last["noise"]["per_unit"]
        self.bits = last["noise"]["bits"]
        # The smallest moment bounds the standard deviation of values.
        self.size: float = min(size for _, size in mean.moments)
        if self.coarse:
            self.bin = Fraction(2) ** self.coarse["exponent"]
            units_per_tick = 1
            self.tick = self.bin / 2 ** last["shift"]
            self.reach = last["half"]
        else:
            # The middle of the grid may lie between two ticks: so units are half ticks.
            self.grid: Document = choice["grid"]
            units_per_tick = 2
            self.tick = Fraction(2) ** self.grid["exponent"]
            self.reach = self.grid["high"] - self.grid["low"]
        self.unit = self.tick / units_per_tick
        # The loss of a user of weight 1 by each unit.
        self.price = Fraction(self.steps, 2**self.bits * units_per_tick)
        # The scale of the noise of the mean.
        self.scale = self.unit / self.price / self.total
        self.noise_variance = noise.laplace_variance(self.bits) * float(self.scale) ** 2

    def loss(self) -> tuple[Fraction, Fraction]:
        """Returns epsilon and delta: a user is either one of the first or one of the last."""
        last = max(self._cost(weight) for weight in set(self.weight.tolist()))
        delta = Fraction(0)
        if not self.coarse:
            return last, delta
        above = self.coarse["threshold"] - self.coarse["per_user"]
        # A user who is alone in two windows is seen with this probability, which also adds as much
        # to epsilon.
        delta = 2 * noise.laplace_tail(above, self.coarse["bits"])
        first = Fraction(2 * self.coarse["per_user"], 2 ** self.coarse["bits"]) + delta
        middle = self.mean.choice["middle"]
        if middle is not None:
            sums = middle["noise"]
            first += Fraction(2 * middle["half"] * sums["per_unit"], 2 ** sums["bits"])
        return max(first, last), delta

    def _cost(self, weight: int) -> Fraction:
        """Returns the most that a user of this weight loses by the sum and the squares, if any."""
        reach = self.reach
        price = self.price
        squares = self.squares
        by_sum: Fraction = 2 * reach * weight * price
        if not squares:
            return by_sum
        # A value that moves by `move` units costs weight move price in the sum, and weight^2 move
        # (2 reach - move)/step + 1 steps of noise in the squares. This is the move that costs most.
        scale = 2 ** squares["bits"]
        step = squares["step"]
        move = reach + price * scale * step / (2 * weight)
        move = min(max(move, Fraction(1)), Fraction(2 * reach - 1))
        in_squares = Fraction(weight**2, step) * move * (2 * reach - move) + 1
        by_both: Fraction = weight * move * price + in_squares / scale
        return max(by_sum, by_both)

    def centre(self, *, drawn: bool) -> Fraction:
        """Returns the value from which the `drawn` sum is counted, or else that of the squares."""
        if self.coarse:
            bins, offset = self.mean.guess
            # The middle of a bin; the offset is in parts of 2^-60 of a bin.
            return Fraction((bins + Fraction(2 * offset + 1, 2**61) - Fraction(1, 2)) * self.bin)
        ends = self.grid["low"] + self.grid["high"]
        # The sum is counted from a tick, squares from the middle, which may lie between two ticks.
        ticks = ends // 2 if drawn else Fraction(ends, 2)
        return Fraction(ticks * self.tick)

    def variance_about(self, value: Fraction) -> tuple[float, float]:
        """Returns the variance, by the squares, and how far the mean is from their middle.

        Both are in noise scales of the mean.
        """
        moved = (value - self.centre(drawn=False)) / self.scale
        total = self.mean.squares * self.squares["step"] * (self.unit / self.scale) ** 2
        return float((total - self.heavy * (moved**2 - 2)) / self.free), float(moved)

    def normal(self, variance: float, moved: float) -> float:
        """Returns half a normal interval without bias, for what `variance_about` returns.

        Source: docs/theory/means.md#a-normal-interval.
        """
        part = self.heavy / self.free
        step = self.squares["step"] * 2 ** self.squares["bits"]
        of_squares = float(step * (self.unit / self.scale) ** 2 / self.free)
        spread = math.sqrt(of_squares**2 + (2 * part * moved) ** 2 + 10 * part**2)
        half = noise.half_width(self.mean.confidence, variance, spread, 1 / part, 2.0, 1.0)
        return float(self.scale) * half

    def clipped_errors(self) -> Iterator[str]:
        """Yields what differs from the bias and standard error of the worst two-point laws."""
        low, high = self.mean.between
        size = self.size
        tick = float(self.tick)
        below = Fraction(low) - self.grid["low"] * self.tick
        above = self.grid["high"] * self.tick - Fraction(high)
        # The mean is at least this far from both ends of the grid, to which values are clipped.
        margin = float(min(below, above))
        # The bias is at most this, for any law with this standard deviation.
        worst = size * size / (math.hypot(margin, size) + margin) / 2
        for order, moment in self.mean.moments:
            # A law has the value y with probability (moment/y)^order; the worst y of a grid is
            # nearly as bad as the worst of all.
            y = max(moment, margin) * _DISTANCES
            worst = min(worst, float(((moment / y) ** order * (y - margin)).max()))
        bias = self.mean.bias_bound
        if not worst * (1 - _CLOSE) <= bias <= worst * (1 + 1e-5) + _NOTHING:
            yield f"the bias is at most {worst:.12g}, not {bias:.12g}"
        if bias > self.mean.bias:
            yield "the bias is above its budget"
        variance = self.heavy / self.total**2 * (size**2 + tick**2 / 4) + self.noise_variance
        stated = self.mean.standard_error, self.mean.failure_bound
        yield from differs("errors", stated, (math.sqrt(variance), 0.0), _CLOSE)

    def symmetric_errors(self) -> Iterator[str]:
        """Yields errors that are smaller than by exact binomial tails and two-point laws."""
        bad_guess, no_guess = self._failures()
        bin_width = float(self.bin)
        tick = float(self.tick)
        half = self.reach * tick
        # A good guess is off by one bin and a half at most, unless a middle guess refines it.
        guesses = [_Guess(1.5 * bin_width, 0.0)]
        moves = 0.0
        if self.mean.choice["middle"] is not None:
            guesses, moves = self._middle(half + tick)
        good = min((self._good(half, each.off) + tick / 2) ** 2 + each.rare for each in guesses)
        bad = bad_guess * (self.size + bin_width + moves + half + tick) ** 2
        error = math.sqrt((good + self.noise_variance + bad) / (1 - no_guess))
        for name, least in (("standard_error", error), ("failure_bound", no_guess)):
            stated = getattr(self.mean, name)
            if not stated >= least * (1 - _CLOSE):
                yield f"{name} is at least {least:.12g}, not {stated:.12g}"
        yield from differs("bias", self.mean.bias_bound, 0.0, 0.0)

    def _chance(self, y: Any) -> Any:
        """Returns a bound of P[Y >= y] for distances Y from the mean."""
        every = [np.minimum(size / y, 1.0) ** order for order, size in self.mean.moments]
        return np.min(every, axis=0)

    def _good(self, half: float, off: float) -> float:
        """Returns the root mean square error of the worst two points if the guess is off by `off`.

        Rounding and noise are not in it.
        """
        inside = half - off
        if inside <= 0:
            return math.inf
        # One of the points +-y is clipped at half + off from the mean, the other at half - off.
        y = inside * _DISTANCES
        bias = self._chance(y) * (np.minimum(y, half + off) - inside) / 2
        return math.hypot(math.sqrt(self.heavy) / self.total * self.size, float(bias.max()))

    def _failures(self) -> tuple[float, float]:
        """Returns users times the probability of a bad guess, and the probability of no guess.

        Both are the smallest bounds over the numbers of far users that are tried.
        """
        n = self.first
        per_user = self.coarse["per_user"]
        scale = 2.0 ** self.coarse["bits"]
        # So many of the first users may be further than half a bin from the mean.
        far = np.unique(np.maximum(np.floor(_PARTS * n), 1))
        more_far = _tail(n - 1, far, float(self._chance(float(self.bin) / 2)))
        # A window of far users alone wins if noise makes up for the lead of the others' window.
        lead = n - 2 * far
        q = math.exp(-1 / scale)
        gap = -math.expm1(-1 / scale)
        steps = per_user * np.maximum(lead, 0)
        # P[Z - Z' >= d]: the sum of ((1-q)/(1+q))^2 q^k (k + (1+q^2)/(1-q^2)) from d on.
        terms = (gap * steps + (1 + q + 2 * q * q) / (1 + q)) / (1 + q) ** 2
        wrong_wins = np.where(lead > 0, np.exp(-steps / scale) * terms, 1.0)
        # There is no guess if noise takes the others' window below the threshold.
        margin = per_user * (n - far) - float(self.coarse["threshold"]) + 1
        too_low = np.where(margin >= 0, np.exp(-np.maximum(margin, 0) / scale) / (1 + q), 1.0)
        bad = min(1.0, float((2 * wrong_wins + more_far).min()))
        return n * bad, min(1.0, float((too_low + more_far).min()))

    def _middle(self, last: float) -> tuple[list[_Guess], float]:
        """Returns the errors of the middle guess, and by how much it moves at most.

        There is one error for each probability of rare cases that is tried.
        """
        n = self.first
        middle = self.mean.choice["middle"]
        bin_width = float(self.bin)
        first = 1.5 * bin_width
        tick = bin_width / 2 ** middle["shift"]
        scale = 2.0 ** middle["noise"]["bits"] / middle["noise"]["per_unit"] * tick / n
        half = middle["half"] * tick
        inside = half - first
        moves = half + tick + math.sqrt(2) * scale
        if inside <= 0:
            return [_Guess(math.inf, 0.0)], moves
        # Clipped values of two signs obey Bernstein's inequality; the number of far ones is
        # binomial.
        log = np.log(2 / _RARE)
        total = log * inside / 3 + np.sqrt((log * inside / 3) ** 2 + 2 * n * log * self.size**2)
        far = _most_far(n, float(self._chance(inside)))
        off = (total + 2 * first * far) / n + scale * log + tick
        start = first + half + tick + last
        beyond = (start + scale * log + scale) ** 2 + scale**2
        rare = _RARE * (2 * (start + math.sqrt(2) * scale) ** 2 + beyond)
        return list(map(_Guess, off.tolist(), rare.tolist())), moves


def _tail(n: int, least: Array, chance: float) -> Array:
    """Returns P[B >= least] for a binomial B and least >= 1: an incomplete beta function."""
    inside = np.minimum(least, max(n, 1))
    return np.where(least > n, 0.0, betainc(inside, max(n, 1) + 1 - inside, chance))


def _most_far(n: int, chance: float) -> Array:
    """Returns the smallest f with P[F > f] at most each of `_RARE`, for a binomial F."""
    few = np.full(_RARE.shape, -1.0)
    many = np.full(_RARE.shape, float(n))
    while bool((many - few > 1).any()):
        middle = (few + many) // 2
        enough = _tail(n, middle + 1, chance) <= _RARE
        few = np.where(enough, few, middle)
        many = np.where(enough, middle, many)
    return many
