"""Means of values without bounds: loss, bias, errors and intervals (docs/theory/unbiased.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.inference import normal_laplace, sampling
from shoal.verification.recount.reading import Array, Mean


@dataclass(frozen=True, eq=False)
class Means:
    """What follows from parameters and released numbers of a mean."""

    mean: Mean

    def differences(self) -> Iterator[str]:
        """What does not follow."""
        mean, (epsilon, delta) = self.mean, self._loss()
        if not epsilon <= mean.epsilon <= epsilon * (1 + Fraction(1, 10**9)) or delta != mean.delta:
            yield f"the privacy loss is {float(epsilon):.12g} and {float(delta):.12g}"
        stated = [mean.bias_bound, mean.standard_error]
        true = self._clipped() if mean.method == "clipped_mean" else stated
        if not np.allclose(stated, true, rtol=1e-9, atol=1e-280):
            yield f"bias bound and standard error are {true}, not {stated}"
        # Chebyshev's inequality, unless squares were released.
        half = mean.bias_bound + mean.standard_error / math.sqrt(1 - mean.confidence)
        if mean.normal is not None:
            half = mean.bias_bound + self._normal(*map(Fraction, mean.normal[:2]))
            if not math.isclose(mean.normal[2], half, rel_tol=1e-9):
                yield f"half the interval is {half:.9g}, not {mean.normal[2]:.9g}"
        value = float(mean.exact)
        slack, span = 1e-9 * half + 1e-15 * abs(value), (value - half, value + half)
        if mean.value != value or not np.allclose(mean.interval, span, rtol=0, atol=slack):
            yield f"{value} in {span} follows, not {mean.value} in {mean.interval}"

    @property
    def _symmetric(self) -> bool:
        return self.mean.method == "symmetric_mean"

    @cached_property
    def _final(self) -> Array:
        """Weights of the users whose values are averaged."""
        split = self._symmetric and not self.mean.parameters["reuse"]
        first = self.mean.parameters["coarse_users"] if split else 0
        return self.mean.weight[first:].astype(object)

    @property
    def _unit(self) -> Fraction:
        """What values are whole numbers of, from the middle of where they are clipped."""
        p = self.mean.parameters
        power = p["coarse_exponent"] - p["shift"] if self._symmetric else p["tick_exponent"] - 1
        return Fraction(2) ** power

    @property
    def _price(self) -> Fraction:
        """What a unit of a user of weight 1 costs in the sum."""
        p = self.mean.parameters
        return Fraction(p["per_unit"], 2 ** p["lattice_bits"]) / (1 if self._symmetric else 2)

    def _loss(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta; on the same users steps add up, on others the larger counts."""
        p, delta = (
            self.mean.parameters,
            Fraction(self.mean.parameters.get("sampling_words", 0), 2**64),
        )
        if "lattice_bits" not in p:
            return Fraction(0), delta
        reach = p["half"] if self._symmetric else p["high"] - p["low"]
        last = max(self._cost(weight, reach) for weight in set(self._final.tolist()))
        if not self._symmetric:
            return last, delta
        # What a user alone in a bin is seen with (docs/theory/unbiased.md#the-threshold).
        alone = noise.laplace_tail(p["coarse_threshold"] - p["coarse_per_user"], p["coarse_bits"])
        charged = max(self.mean.coarse_delta, p["coarse_windows"] * alone)
        coarse = Fraction(2 * p["coarse_per_user"], 2 ** p["coarse_bits"])
        # A bin that one neighbour alone has costs a factor 1/(1 - p) <= exp(2p) more.
        coarse += 2 * alone * (p["coarse_windows"] > 1)
        coarse += Fraction(2 * p["middle_half"] * p["middle_per_unit"], 2 ** p["middle_bits"])
        if p["reuse"]:
            return coarse + last, charged + delta
        return max(coarse, last), max(charged, delta)

    def _cost(self, weight: int, reach: int) -> Fraction:
        """Most that a user loses by the sum, and by squares beside it.

        A move by d units costs w d p in the sum, and w^2 d (2R - d)/s + 1 steps in the squares
        (docs/theory/unbiased.md#squares-beside-the-sum).
        """
        p, price = self.mean.parameters, self._price
        most: Fraction = 2 * reach * weight * price
        if "square_step" not in p or not reach:
            return most
        scale, step = 2 ** p["square_bits"], p["square_step"]
        top = reach + price * scale * step / (2 * weight)
        at = min(max(top, Fraction(1)), Fraction(2 * reach - 1))
        square = Fraction(weight**2, step) * at * (2 * reach - at) + 1
        return Fraction(max(most, weight * at * price + square / scale))

    def _clipped(self) -> list[float]:
        """Bias bound and standard error of the clipped mean (docs/theory/unbiased.md#clipping)."""
        p, tick, (low, high) = self.mean.parameters, 2 * self._unit, self.mean.between or (0, 0)
        margin = float(min(Fraction(low) - p["low"] * tick, p["high"] * tick - Fraction(high)))
        size = min(each for _, each in self.mean.moments)
        bias = size * size / (math.hypot(margin, size) + margin) / 2
        for order, each in self.mean.moments:
            # A value y with probability (size/y)^order is the worst: at y = order t/(order - 1).
            at = max(each, order * margin / (order - 1))
            bias = min(bias, (each / at) ** order * (at - margin))
        total, heavy = int(self._final.sum()), int((self._final**2).sum())
        drawn = (
            noise.laplace_variance(p["lattice_bits"]) * float(self._unit / self._price / total) ** 2
        )
        variance = heavy / total**2 * (size**2 + float(tick) ** 2 / 4)
        return [bias, math.sqrt(variance + drawn)]

    def _normal(self, about: Fraction, squares: Fraction) -> float:
        """Half a normal interval but for the bias (docs/theory/unbiased.md#a-normal-interval)."""
        p, confidence = self.mean.parameters, self.mean.confidence
        total, heavy = int(self._final.sum()), int((self._final**2).sum())
        one, free = self._unit / self._price / total, total**2 - heavy
        moved, part = self.mean.exact - about, heavy / free
        variance = float((squares - heavy * (moved**2 - 2 * one**2)) / free / one**2)
        loose = float(p["square_step"] * 2 ** p["square_bits"] * (self._unit / one) ** 2 / free)
        doubt = math.sqrt(loose**2 + (2 * part * float(moved / one)) ** 2 + 10 * part**2)
        raised = sampling(variance, 1.0, doubt, 1 / part, confidence)
        return float(one) * normal_laplace(confidence, raised, 2.0, 1.0)
