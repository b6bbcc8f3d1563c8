"""Bias and error of an unbiased mean, by formulas of its own: worst two-point distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shoal.verification.means.coarse import Coarse
from shoal.verification.means.facts import CLIPPED, RESIDUAL, SAMPLED, SYMMETRIC, Facts
from shoal.verification.means.middle import Middle

Moments = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Bounds:
    """What can be proven of an estimate, in the value's unit.

    Attributes:
        bias: Most that its expectation is off.
        variance: Most variance; for the symmetric mean, mean squared error.
        noise_scale: Of the Laplace noise.
    """

    bias: float
    variance: float
    noise_scale: float

    @classmethod
    def of(cls, facts: Facts) -> Bounds:
        """From parameters that hold."""
        if facts.method == SAMPLED:
            return cls(0.0, _sampled(facts), 0.0)
        tick, per_unit = tick_of(facts), facts.parameters["per_unit"]
        one = float(tick / int(facts.final.sum()) / per_unit)
        scale = math.ldexp(1.0, facts.parameters["lattice_bits"])
        noise = laplace_variance(scale) * one**2
        if facts.method == SYMMETRIC:
            return cls(0.0, _symmetric(facts, float(tick), noise), scale * one)
        margin = _margin(facts, tick)
        squares = float(facts.squares)
        variance = squares * (facts.deviation**2 + float(tick) ** 2 / 4) + noise
        if facts.method == RESIDUAL:
            often = float(1 / facts.chance - 1)
            variance += squares * often * beyond(facts.moments, margin, 2)
        bias = one_sided(facts, margin) if facts.method == CLIPPED else 0.0
        return cls(bias, variance, scale * one)


def tick_of(facts: Facts) -> Fraction:
    """What values are rounded to, in their unit."""
    numbers = facts.parameters
    if facts.method == SYMMETRIC:
        return Fraction(2) ** (numbers["coarse_exponent"] - numbers["shift"])
    return Fraction(2) ** numbers["tick_exponent"]


def laplace_variance(scale: float) -> float:
    """Variance 2q/(1-q)^2 of discrete Laplace noise, q = exp(-1/scale).

    Example:
        >>> round(laplace_variance(2.0**20) / 2.0**40, 9)
        2.0
    """
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def beyond(moments: Moments, margin: float, power: int) -> float:
    """Most of E((Y - t)+)^k over Y >= 0 with E Y^p <= psi^p, k <= p; the least over the pairs.

    The worst is y with probability (psi/y)^p, else 0: (psi/y)^p (y - t)^k grows until
    y = p t/(p - k) and falls then, and y is at least psi.

    Example:
        >>> beyond(((2.0, 1.0),), 2.0, 1), beyond(((2.0, 1.0),), 2.0, 2)
        (0.125, 1.0)
    """
    return min(_beyond(order, size, margin, power) for order, size in moments)


def one_sided(facts: Facts, margin: float) -> float:
    """Most of E(X - mu - t)+: `beyond`, or by Scarf's bound from the variance."""
    size = facts.deviation
    scarf = size * size / (math.hypot(margin, size) + margin) / 2
    return min(scarf, beyond(facts.moments, margin, 1))


def far_chance(moments: Moments, margin: float) -> float:
    """Most of P[Y > t], by Markov's inequality."""
    return min(_power(size / margin, order) for order, size in moments)


def _beyond(order: float, size: float, margin: float, power: int) -> float:
    if order == power:
        # The maximum is approached as y grows.
        return size**power
    at = max(size, order * margin / (order - power))
    return _power(size / at, order) * (at - margin) ** power


def _power(ratio: float, order: float) -> float:
    return 1.0 if ratio >= 1 else math.exp(order * math.log(ratio))


def _margin(facts: Facts, tick: Fraction) -> float:
    if facts.interval is None:
        return 0.0
    low, high = facts.parameters["low"] * tick, facts.parameters["high"] * tick
    return float(min(Fraction(facts.interval[0]) - low, high - Fraction(facts.interval[1])))


def _sampled(facts: Facts) -> float:
    if facts.interval is None:
        return math.inf
    low, high = facts.interval
    centre = (low + high) / 2
    chance = float(facts.chance)
    off = max(high - centre, centre - low)
    square = (facts.deviation**2 + off**2) / chance - off**2
    return float(facts.squares) * square


def _symmetric(facts: Facts, tick: float, noise: float) -> float:
    """A good guess, rare cases of a middle step, bad guesses (`verify_coarse`), and no guess."""
    sd, coarse = facts.deviation, Coarse.of(facts)
    half, squares = tick * facts.parameters["half"], float(facts.squares)
    far_squares, fail = coarse.failure_bounds(far_chance(facts.moments, coarse.bin / 2))
    further, offs = 0.0, [(coarse.off, 0.0)]
    if facts.parameters["middle_half"]:
        middle = Middle.of(facts)
        further = middle.most
        outside = middle.half - coarse.off
        chance = far_chance(facts.moments, outside) if outside > 0 else 1.0
        offs = middle.offs(coarse.off, sd, chance, half + tick)
    good = min(((_good(facts, half, off) + tick / 2) ** 2 + rare for off, rare in offs))
    bad = far_squares * (sd + coarse.sensitivity + further + half + tick) ** 2
    none = fail * (sd**2 + squares * (sd**2 + facts.farthest**2) / float(facts.chance))
    return good + noise + bad + none


def _good(facts: Facts, half: float, off: float) -> float:
    """Root of the variance given a guess that is off by no more; infinite if it may be outside."""
    moments, capacity, squares = facts.moments, half - off, float(facts.squares)
    root = math.sqrt(squares) * facts.deviation
    if capacity <= 0:
        return math.inf
    if facts.parameters["reuse"]:
        return root + math.sqrt(
            beyond(moments, capacity, 1) ** 2 + squares * beyond(moments, capacity, 2)
        )
    bias = min(beyond(moments, capacity, 1) / 2, off * far_chance(moments, capacity))
    return math.hypot(root, bias)
