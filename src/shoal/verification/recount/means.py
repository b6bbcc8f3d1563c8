"""Means of values without bounds: loss, bias, errors and intervals (docs/theory/unbiased.md)."""

import math
from collections.abc import Iterator
from fractions import Fraction

from shoal.verification.recount import noise
from shoal.verification.recount.noise import normal_laplace, raised_by, student
from shoal.verification.recount.reading import Release, differs


def differences(mean: Release) -> Iterator[str]:
    """What does not follow from parameters and released numbers."""
    own = _Mean(mean)
    epsilon, delta = own.loss()
    if not epsilon <= mean.epsilon <= epsilon * (1 + Fraction(1, 10**9)):
        yield f"the privacy loss is {float(epsilon):.12g}, not {float(mean.epsilon):.12g}"
    if not delta <= mean.delta <= delta * (1 + Fraction(1, 10**11)):
        yield f"delta is {float(delta):.12g}, not {float(mean.delta):.12g}"
    if mean.method == "clipped_mean":
        stated, true = (mean.bias_bound, mean.standard_error), own.clipped()
        yield from differs("bias bound and standard error", stated, true, 1e-9, 1e-280)
    yield from differs("value", mean.value, float(mean.exact), 0.0)
    # Chebyshev's inequality, unless squares were released.
    half = mean.bias_bound + mean.standard_error / math.sqrt(1 - mean.confidence)
    if mean.normal is not None:
        half = mean.bias_bound + own.normal()
        yield from differs("half the interval", mean.normal["half_width"], half, 1e-9)
    slack, span = 1e-9 * half + 1e-15 * abs(mean.value), (mean.value - half, mean.value + half)
    yield from differs("interval", mean.interval, span, 0.0, slack)


class _Mean:
    """A mean with the weights of users; a unit of values costs a weight of 1 its price."""

    def __init__(self, mean: Release) -> None:
        self.mean, self.p = mean, dict[str, int](mean.parameters)
        p, symmetric = self.p, mean.method == "symmetric_mean"
        first: int = p["coarse_users"] if symmetric and not p["reuse"] else 0
        self.weight = mean.weight[first:].astype(object)
        self.total, self.heavy = int(self.weight.sum()), int((self.weight**2).sum())
        if "lattice_bits" in p:
            exponent = p["coarse_exponent"] - p["shift"] if symmetric else p["tick_exponent"] - 1
            self.unit = Fraction(2) ** exponent
            self.price = Fraction(p["per_unit"], 2 ** p["lattice_bits"] * (1 if symmetric else 2))

    def loss(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta; on the same users steps add up, on others the larger counts."""
        p, charged = self.p, Fraction(self.mean.coarse_delta)
        delta = Fraction(p.get("sampling_words", 0), 2**64)
        if "lattice_bits" not in p:
            return Fraction(0), delta
        reach = p["half"] if "half" in p else p["high"] - p["low"]
        last = max(self._cost(weight, reach) for weight in set(self.weight.tolist()))
        if "half" not in p:
            return last, delta
        alone = noise.laplace_tail(p["coarse_threshold"] - p["coarse_per_user"], p["coarse_bits"])
        # What a user alone in a bin is seen with (docs/theory/unbiased.md#the-threshold).
        charged = max(charged, p["coarse_windows"] * alone)
        coarse = Fraction(2 * p["coarse_per_user"], 2 ** p["coarse_bits"])
        # A bin that one neighbour alone has costs a factor 1/(1 - p) <= exp(2p) more.
        coarse += 2 * alone * (p["coarse_windows"] > 1)
        coarse += Fraction(2 * p["middle_half"] * p["middle_per_unit"], 2 ** p["middle_bits"])
        if p["reuse"]:
            return coarse + last, charged + delta
        return max(coarse, last), max(charged, delta)

    def _cost(self, weight: int, reach: int) -> Fraction:
        """Most that a user loses by the sum, and by squares beside it (docs/theory/unbiased.md)."""
        p, price = self.p, self.price
        most: Fraction = 2 * reach * weight * price
        if "square_step" not in p or not reach:
            return most
        scale, step = 2 ** p["square_bits"], p["square_step"]
        # A move by d units costs w d p in the sum, and w^2 d (2R - d)/s + 1 steps in the squares.
        at = reach + price * scale * step / (2 * weight)
        at = min(max(at, Fraction(1)), Fraction(2 * reach - 1))
        square = Fraction(weight**2, step) * at * (2 * reach - at) + 1
        both: Fraction = weight * at * price + square / scale
        return max(most, both)

    def clipped(self) -> tuple[float, float]:
        """Bias bound and standard error of the clipped mean (docs/theory/unbiased.md#clipping)."""
        p, tick, (low, high) = self.p, 2 * self.unit, self.mean.between or (0, 0)
        margin = float(min(Fraction(low) - p["low"] * tick, p["high"] * tick - Fraction(high)))
        size = min(each for _, each in self.mean.moments)
        bias = size * size / (math.hypot(margin, size) + margin) / 2
        for order, each in self.mean.moments:
            # A value y with probability (size/y)^order is the worst: at y = order t/(order - 1).
            at = max(each, order * margin / (order - 1))
            bias = min(bias, (each / at) ** order * (at - margin))
        scale = float(self.unit / self.price / self.total)
        variance = self.heavy / self.total**2 * (size**2 + float(tick) ** 2 / 4)
        variance += noise.laplace_variance(p["lattice_bits"]) * scale**2
        return bias, math.sqrt(variance)

    def normal(self) -> float:
        """Half a normal interval but for the bias (docs/theory/unbiased.md#a-normal-interval)."""
        p, confidence, total, heavy = self.p, self.mean.confidence, self.total, self.heavy
        about, squares = (Fraction(self.mean.normal[name]) for name in ("about", "squares"))
        one, free = self.unit / self.price / total, total**2 - heavy
        moved, part = self.mean.exact - about, heavy / free
        variance = float((squares - heavy * (moved**2 - 2 * one**2)) / free / one**2)
        loose = float(p["square_step"] * 2 ** p["square_bits"] * (self.unit / one) ** 2 / free)
        doubt = math.sqrt(loose**2 + (2 * part * float(moved / one)) ** 2 + 10 * part**2)
        few = (student(1 / part, confidence) / student(math.inf, confidence)) ** 2
        sampling = few * (max(variance, 0.0) + raised_by(doubt) * doubt)
        return float(one) * normal_laplace(confidence, sampling, 2.0, 1.0)
