"""Means of values without bounds: loss, errors, value and intervals (docs/theory/unbiased.md)."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import betainc

from shoal.verification.recount import noise
from shoal.verification.recount.noise import normal_laplace, raised_by, student
from shoal.verification.recount.reading import Array, Document, Release, differs

_CLOSE, _NOTHING = 1e-9, 1e-280
# Distances of far users that are tried, in sizes of a moment; and logarithms of rare chances.
_FAR = np.geomspace(1e-6, 1e6, 20_001)
_RARE = np.exp(-np.arange(8, 60.25, 0.25))
_SHARES = np.arange(1, 201) / 600


def differences(mean: Release) -> Iterator[str]:
    """What does not follow from the choice and the drawn integers."""
    own = _Symmetric(mean) if mean.method == "symmetric_mean" else _Clipped(mean)
    epsilon, delta = own.loss
    if not epsilon <= mean.epsilon <= epsilon * (1 + Fraction(1, 10**9)):
        yield f"the privacy loss is {float(epsilon):.12g}, not {float(mean.epsilon):.12g}"
    if not delta <= mean.delta <= delta * (1 + Fraction(1, 10**11)):
        yield f"delta is {float(delta):.12g}, not {float(mean.delta):.12g}"
    yield from own.certificate()
    rmse = math.hypot(mean.bias_bound, mean.standard_error)
    yield from differs("root mean squared error", mean.rmse_bound, rmse, _CLOSE)
    yield from differs("noise scale", mean.noise_scale, float(own.scale), _CLOSE)
    certified = mean.bias_bound + mean.standard_error / math.sqrt(1 - mean.confidence)
    expected = certified
    if own.squares is not None:
        variance = own.heavy * (Fraction(own.deviation) / own.scale) ** 2 / own.total**2
        expected = mean.bias_bound + own.normal(float(variance), 0.0)
    yield from differs("half width", mean.half_width, expected, _CLOSE)
    results = (mean.value, mean.interval, mean.certified_interval, mean.guess, mean.squares)
    if mean.steps is None:
        if results != (None,) * len(results) or mean.failure_bound == 0:
            yield "there are results, and no estimate"
        return
    value, half = own.value(), certified
    if own.squares is not None:
        half = mean.bias_bound + own.normal(*own.variance_of(value))
    yield from differs("value", mean.value, float(value), 0.0)
    for name, stated, each in (
        ("interval", mean.interval, half),
        ("certified interval", mean.certified_interval, certified),
    ):
        slack = _CLOSE * each + 1e-15 * abs(mean.value)
        yield from differs(name, stated, (mean.value - each, mean.value + each), 0.0, slack)


class _Mean:
    """A mean with the weights of the last users, whose values are whole units within -R..R."""

    reach: int
    unit: Fraction
    parts: int

    def __init__(self, mean: Release) -> None:
        self.mean, choice = mean, mean.choice
        self.weight = mean.weight[self.first :].astype(object)
        self.total, self.heavy = int(self.weight.sum()), int((self.weight**2).sum())
        self.squares: Document | None = choice["squares"]
        self.steps, self.bits = choice["noise"]["per_unit"], choice["noise"]["bits"]
        self.deviation = min(size for _, size in mean.moments)

    @property
    def first(self) -> int:
        """How many users are not in the last step."""
        return 0

    @property
    def price(self) -> Fraction:
        """What a unit costs a user of weight 1."""
        return Fraction(self.steps, 2**self.bits * self.parts)

    @property
    def scale(self) -> Fraction:
        """Of the noise on the mean, in the value's unit."""
        return self.unit / self.price / self.total

    def last_loss(self) -> Fraction:
        """Most that a user loses by the sum, and by squares beside it."""
        return max(self._cost(weight) for weight in set(self.weight.tolist()))

    def _cost(self, weight: int) -> Fraction:
        reach, price, squares = self.reach, self.price, self.squares
        most: Fraction = 2 * reach * weight * price
        if squares is None:
            return most
        # A move by d units costs w d p in the sum, and w^2 d (2R - d)/s + 1 steps in the squares.
        scale, step = 2 ** squares["bits"], squares["step"]
        at = reach + price * scale * step / (2 * weight)
        at = min(max(at, Fraction(1)), Fraction(2 * reach - 1))
        square = Fraction(weight**2, step) * at * (2 * reach - at) + 1
        both: Fraction = weight * at * price + square / scale
        return max(most, both)

    def noise_variance(self) -> float:
        """Of the noise on the mean."""
        return noise.laplace_variance(self.bits) * float(self.scale) ** 2

    def variance_of(self, value: Fraction) -> tuple[float, float]:
        """What the squares say of the variance, and the mean they are about, in noise scales."""
        moved, one, squares = (value - self.centre()) / self.scale, self.scale, self.squares or {}
        total = self.mean.squares * squares["step"] * (self.unit / one) ** 2
        free = self.total**2 - self.heavy
        return float((total - self.heavy * (moved**2 - 2)) / free), float(moved)

    def normal(self, variance: float, moved: float) -> float:
        """Half a normal interval but for the bias (docs/theory/unbiased.md#a-normal-interval)."""
        free, squares, confidence = self.total**2 - self.heavy, self.squares or {}, 0.95
        part, one = self.heavy / free, self.unit / self.scale
        own = float(squares["step"] * 2 ** squares["bits"] * one**2 / free)
        spread = math.sqrt(own**2 + (2 * part * moved) ** 2 + 10 * part**2)
        few = (student(1 / part, confidence) / student(math.inf, confidence)) ** 2
        sampling = few * (max(variance, 0.0) + raised_by(spread) * spread)
        return float(self.scale) * normal_laplace(confidence, sampling, 2.0, 1.0)

    def worst(self, margin: float, power: int) -> float:
        """E((Y - t)+)^k of the two-point law for which it is largest, Y a distance from the mean.

        A distance y has at most the probability min (size/y)^order of all moments.
        """
        y = max(margin, self.deviation) * (1 + _FAR) if margin > 0 else self.deviation * _FAR
        return float((self._chance(y) * np.maximum(y - margin, 0) ** power).max())

    def _chance(self, y: Array) -> Array:
        with np.errstate(over="ignore"):
            every = [np.minimum(size / y, 1.0) ** order for order, size in self.mean.moments]
        return np.min(every, axis=0)

    def centre(self) -> Fraction:
        """What squares are about."""
        raise NotImplementedError

    def value(self) -> Fraction:
        """The estimate."""
        raise NotImplementedError


class _Clipped(_Mean):
    def __init__(self, mean: Release) -> None:
        super().__init__(mean)
        grid = mean.choice["grid"]
        self.low, self.high, self.parts = grid["low"], grid["high"], 2
        self.reach, self.unit = self.high - self.low, Fraction(2) ** (grid["exponent"] - 1)

    @property
    def loss(self) -> tuple[Fraction, Fraction]:
        return self.last_loss(), Fraction(0)

    def centre(self) -> Fraction:
        return (self.low + self.high) * self.unit

    def value(self) -> Fraction:
        moved = Fraction(self.mean.steps, self.steps * self.total)
        return (moved + (self.low + self.high) // 2) * 2 * self.unit

    def certificate(self) -> Iterator[str]:
        """Bias and standard error, by the two-point laws that are worst."""
        tick, (low, high), size = 2 * self.unit, self.mean.between, self.deviation
        margin = float(min(Fraction(low) - self.low * tick, self.high * tick - Fraction(high)))
        scarf = size * size / (math.hypot(margin, size) + margin) / 2
        # A grid of two-point laws is nearly as bad as the worst of them.
        least, stated = min(scarf, self.worst(margin, 1)), self.mean.bias_bound
        if not least * (1 - _CLOSE) <= stated <= least * (1 + 1e-5) + _NOTHING:
            yield f"the bias is at most {least:.12g}, not {stated:.12g}"
        if self.mean.bias is not None and stated > self.mean.bias:
            yield "the bias is above its budget"
        spread = size**2 + float(tick) ** 2 / 4
        error = math.sqrt(self.heavy / self.total**2 * spread + self.noise_variance())
        yield from differs("standard error", self.mean.standard_error, error, _CLOSE)
        yield from differs("failures", self.mean.failure_bound, 0.0, 0.0)


class _Symmetric(_Mean):
    parts = 1

    def __init__(self, mean: Release) -> None:
        self.coarse, self.middle = mean.choice["coarse"], mean.choice["middle"]
        super().__init__(mean)
        self.reach = mean.choice["half"]
        self.bin = Fraction(2) ** self.coarse["exponent"]
        self.unit = self.bin / 2 ** mean.choice["shift"]

    @property
    def first(self) -> int:
        users: int = self.coarse["users"]
        return users

    @cached_property
    def alone(self) -> Fraction:
        """P[a user alone in a window is above the threshold], upwards."""
        coarse = self.coarse
        return noise.laplace_tail(coarse["threshold"] - coarse["per_user"], coarse["bits"])

    @property
    def loss(self) -> tuple[Fraction, Fraction]:
        """The larger of the first users' loss and the last users'."""
        # A window that one neighbour alone has costs a factor 1/(1 - p) <= exp(2p) more.
        first = Fraction(2 * self.coarse["per_user"], 2 ** self.coarse["bits"]) + 2 * self.alone
        if self.middle is not None:
            own = self.middle["noise"]
            first += Fraction(2 * self.middle["half"] * own["per_unit"], 2 ** own["bits"])
        return max(first, self.last_loss()), 2 * self.alone

    def centre(self) -> Fraction:
        bins, offset = self.mean.guess
        return (bins + Fraction(2 * offset + 1, 2**61) - Fraction(1, 2)) * self.bin

    def value(self) -> Fraction:
        return self.centre() + Fraction(self.mean.steps, self.steps * self.total) * self.unit

    def certificate(self) -> Iterator[str]:
        """No smaller than with exact binomial tails and the worst two-point laws."""
        far, fail = self._failures()
        sd, s, tick = self.deviation, float(self.bin), float(self.unit)
        half, further, errors = self.reach * tick, 0.0, [(1.5 * s, 0.0)]
        if self.middle is not None:
            errors = self._middle(half + tick)
            own = self.middle["half"] * s / 2 ** self.middle["shift"]
            further = own + s / 2 ** self.middle["shift"] + math.sqrt(2) * self._middle_scale
        good = min((self._good(half, off) + tick / 2) ** 2 + rare for off, rare in errors)
        bad = far * (sd + s + further + half + tick) ** 2
        error = math.sqrt((good + self.noise_variance() + bad) / (1 - fail))
        if not self.mean.standard_error >= error * (1 - _CLOSE):
            yield f"the standard error is {error:.12g}, not {self.mean.standard_error:.12g}"
        if not self.mean.failure_bound >= fail * (1 - _CLOSE):
            yield f"it fails with a probability of {fail:.12g}, not {self.mean.failure_bound:.12g}"
        yield from differs("bias", self.mean.bias_bound, 0.0, 0.0)

    def _good(self, half: float, off: float) -> float:
        """Root of the variance for two points that are worst, about a guess that is off so far."""
        inside = half - off
        if inside <= 0:
            return math.inf
        y = inside * (1 + _FAR)
        # Of +-y the one is clipped to half + off from the mean, the other to half - off.
        bias = self._chance(y) * (np.minimum(y, half + off) - inside) / 2
        return math.hypot(math.sqrt(self.heavy) / self.total * self.deviation, float(bias.max()))

    def _failures(self) -> tuple[float, float]:
        """Bad guesses as a sum over far users, and no guess, for many numbers of far users."""
        n, worth, scale = self.first, self.coarse["per_user"], 2.0 ** self.coarse["bits"]
        far = np.unique(np.maximum(np.floor(_SHARES * n), 1))
        chance = float(self._chance(np.array([float(self.bin) / 2]))[0])
        many, lead = _binomial_tail(n - 1, far, chance), np.maximum(n - 2 * far, 0)
        q, gap, steps = math.exp(-1 / scale), -math.expm1(-1 / scale), worth * lead
        # P[Z - Z' >= d]: the sum of ((1-q)/(1+q))^2 q^k (k + (1+q^2)/(1-q^2)) from d on.
        terms = (gap * steps + (1 + q + 2 * q * q) / (1 + q)) / (1 + q) ** 2
        wins = np.where(lead > 0, np.exp(-steps / scale) * terms, 1.0)
        short = worth * (n - far) - float(self.coarse["threshold"]) + 1
        low = np.exp(-np.maximum(short, 0) / scale) / (1 + q)
        low = np.where(short >= 0, low, 1.0)
        return n * min(1.0, float((2 * wins + many).min())), min(1.0, float((low + many).min()))

    @property
    def _middle_scale(self) -> float:
        own = self.middle["noise"]
        tick = float(self.bin) / 2 ** self.middle["shift"]
        return 2.0 ** own["bits"] / own["per_unit"] * tick / self.first

    def _middle(self, last: float) -> list[tuple[float, float]]:
        """Pairs: how far its guess is off but for rare cases, and what these add to the square."""
        n, sd, first, scale = self.first, self.deviation, 1.5 * float(self.bin), self._middle_scale
        tick = float(self.bin) / 2 ** self.middle["shift"]
        half = self.middle["half"] * tick
        inside = half - first
        if inside <= 0:
            return [(math.inf, 0.0)]
        # Bernstein's inequality for the clipped values of two signs, a binomial number of far ones.
        both = np.log(2 / _RARE)
        linear = both * inside / 3
        mean = (linear + np.sqrt(linear**2 + 2 * n * both * sd**2)) / n
        far = _most_far(n, float(self._chance(np.array([inside]))[0]))
        off = mean + 2 * first * far / n + scale * both + tick
        start = first + half + tick + last
        beyond = (start + scale * both + scale) ** 2 + scale**2
        rare = _RARE * (2 * (start + math.sqrt(2) * scale) ** 2 + beyond)
        return list(zip(off.tolist(), rare.tolist(), strict=True))


def _binomial_tail(n: int, least: Array, chance: float) -> Array:
    """P[B >= k] for B binomial and k >= 1, exactly: an incomplete beta function."""
    inside = np.minimum(least, max(n, 1))
    found = betainc(inside, max(n, 1) + 1 - inside, min(chance, 1.0))
    return np.where(least > n, 0.0, found)


def _most_far(n: int, chance: float) -> Array:
    """The least f with P[F > f] at most each rare chance, F binomial."""
    few, many = np.full(_RARE.shape, -1.0), np.full(_RARE.shape, float(n))
    while bool((many - few > 1).any()):
        middle = (few + many) // 2
        enough = _binomial_tail(n, middle + 1, chance) <= _RARE
        few, many = np.where(enough, few, middle), np.where(enough, middle, many)
    return many
