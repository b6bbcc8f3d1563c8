"""Distributions of made-up values around their mean 0, and the worst ones of two points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.theory.clipping import Moments

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

# Steps of a bisection: enough for a chance of 1e-40.
_HALVINGS = 160
_SKEW = 1.5


class Distribution(Protocol):
    """A distribution with mean 0."""

    @property
    def name(self) -> str:
        """In words."""
        ...

    @property
    def variance(self) -> float:
        """In the value's unit squared."""
        ...

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        ...


class Known(Distribution, Protocol):
    """A distribution whose clipped moments are known exactly."""

    def clipped(self, low: float, high: float) -> tuple[float, float]:
        """E Y and E Y^2 of Y = clip(X, low, high)."""
        ...

    def beyond(self, low: float, high: float) -> float:
        """E (X - clip(X, low, high))^2."""
        ...


@dataclass(frozen=True)
class Points:
    """A distribution of finitely many points.

    Attributes:
        name: In words.
        values: Points whose mean is 0.
        chances: Their probabilities.

    Example:
        >>> coin = Points("coin", (-1.0, 1.0), (0.5, 0.5))
        >>> coin.variance, coin.clipped(-1, 0.5), coin.beyond(-1, 0.5)
        (1.0, (-0.25, 0.625), 0.125)
    """

    name: str
    values: tuple[float, ...]
    chances: tuple[float, ...]

    @property
    def variance(self) -> float:
        """In the value's unit squared."""
        return float(np.square(self.values) @ np.array(self.chances))

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        edges = np.cumsum(self.chances)[:-1]
        return np.asarray(np.array(self.values)[np.searchsorted(edges, rng.random(shape))])

    def clipped(self, low: float, high: float) -> tuple[float, float]:
        """E Y and E Y^2 of Y = clip(X, low, high)."""
        found, chances = np.clip(self.values, low, high), np.array(self.chances)
        return float(found @ chances), float(found**2 @ chances)

    def beyond(self, low: float, high: float) -> float:
        """E (X - clip(X, low, high))^2."""
        rest = np.array(self.values) - np.clip(self.values, low, high)
        return float(rest**2 @ np.array(self.chances))


@dataclass(frozen=True)
class Normal:
    """The standard normal distribution.

    Example:
        >>> [round(each, 6) for each in Normal().clipped(-50, 1)]
        [-0.083315, 0.758029]
    """

    name: str = "Gaussian"
    variance: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        return rng.standard_normal(shape)

    def clipped(self, low: float, high: float) -> tuple[float, float]:
        """E Y and E Y^2 of Y = clip(X, low, high)."""
        below, above = _normal_below(low), _normal_below(-high)
        first = _density(low) - _density(high) + low * below + high * above
        second = 1 - below - above + low * _density(low) - high * _density(high)
        return first, second + low**2 * below + high**2 * above

    def beyond(self, low: float, high: float) -> float:
        """E (X - clip(X, low, high))^2."""
        return _beyond(high) + _beyond(-low)


@dataclass(frozen=True)
class Drawn:
    """A distribution of deviation 1 that can be drawn: laplace, uniform, t4 or lognormal.

    `t4` is Student's t with 4 degrees of freedom (no fourth moment); `lognormal` is
    exp(1.5 Z), skewed.

    Attributes:
        name: Which.

    Example:
        >>> bool(abs(Drawn("uniform").draw(np.random.default_rng(1), (1, 9)).max()) < 3**0.5)
        True
    """

    name: str
    variance: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Independent values."""
        if self.name == "laplace":
            return rng.laplace(scale=math.sqrt(0.5), size=shape)
        if self.name == "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), size=shape)
        if self.name == "t4":
            return np.asarray(rng.standard_t(4, size=shape) / math.sqrt(2))
        mean, square = math.exp(_SKEW**2 / 2), _SKEW**2
        size = mean * math.sqrt(math.expm1(square))
        return np.asarray((rng.lognormal(sigma=_SKEW, size=shape) - mean) / size)


def two_points(moments: Moments, far: Floats) -> list[Points]:
    """Far with the largest probability p <= 1/2 that the moments allow, else -p far/(1 - p).

    E|X|^order = p far^order (1 + (p/(1-p))^(order-1)) rises in p: bisection finds it.

    Example:
        >>> from shoal.theory.clipping import Moment
        >>> [distribution] = two_points((Moment(2, 1),), np.array([3.0]))
        >>> round(distribution.chances[0], 9), round(distribution.variance, 9)
        (0.1, 1.0)
    """
    low, high = np.zeros(len(far)), np.full(len(far), 0.5)
    for _ in range(_HALVINGS):
        p = (low + high) / 2
        fits = np.ones(len(far), dtype=np.bool_)
        for moment in moments:
            power = (np.abs(far) / moment.size) ** moment.order
            fits &= p * power * (1 + (p / (1 - p)) ** (moment.order - 1)) <= 1
        low, high = np.where(fits, p, low), np.where(fits, high, p)
    return [
        Points("two points", (at, -p * at / (1 - p)), (p, 1 - p))
        for at, p in zip(far.tolist(), low.tolist(), strict=True)
    ]


def mirrored(moments: Moments, far: float) -> Points:
    """Symmetric: +-far as likely as the moments allow, else 0.

    Example:
        >>> from shoal.theory.clipping import Moment
        >>> mirrored((Moment(4, 1),), 2.0).chances
        (0.03125, 0.9375, 0.03125)
    """
    chance = min([1.0, *((m.size / far) ** m.order for m in moments)])
    return Points("three symmetric points", (-far, 0.0, far), (chance / 2, 1 - chance, chance / 2))


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _normal_below(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _beyond(t: float) -> float:
    """E (Z - t)+^2."""
    return (1 + t * t) * _normal_below(-t) - t * _density(t)
