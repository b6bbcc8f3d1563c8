"""A lower bound of variances, proved again from dual variables, in fractions.

Nothing is imported from other packages, as in `verify`.
"""

import itertools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

_DIGITS = 60
# Roots are found in floating point; a piece is looked at a little beyond them on either side.
_BEYOND = 1e-6


@dataclass(frozen=True)
class Dual:
    """Dual variables of the linear program over all responses.

    With h_y(o) = weight o^2 - slope o - total, every response o with probabilities p(y) that differ
    by a factor of E at most has sum p(y) h_y(o) >= min over sets S of q_S(o), the sum of all h_y
    and E - 1 times those in S, times the smallest probability.

    Attributes:
        weight: Of each level.
        slope: Of each level.
        total: Of each level.
    """

    weight: list[Fraction]
    slope: list[Fraction]
    total: list[Fraction]

    def proves(self, levels: list[Fraction], epsilon: Fraction) -> float:
        """The largest bound that follows: 0 if the weights are no distribution.

        A curve below 0 by at most r is mended by lowering all totals by r/K, which lowers the bound
        by r: each q_S has every total at least once.

        Args:
            levels: Centred, of width 1.
            epsilon: The loss.
        """
        if min(self.weight) <= 0 or abs(float(sum(self.weight)) - 1) > _BEYOND:
            return 0.0
        # Weights that sum to a little more than 1 would claim a little more.
        size = max(Fraction(1), sum(self.weight, Fraction(0)))
        claimed = sum(self.total, Fraction(0)) + sum(
            (b * y - w * y**2 for w, b, y in zip(self.weight, self.slope, levels, strict=True)),
            Fraction(0),
        )
        lowered = max(Fraction(0), -self._least(_exp_up(epsilon)))
        return max(0.0, float((claimed - lowered) / size))

    def _least(self, ratio: Fraction) -> Fraction:
        """Not above the least value of the curve min over S of q_S, on the whole line.

        Between two roots one set is the least everywhere: its parabola is taken on a little more
        than that piece, where it lies above the curve or on it.
        """
        roots = sorted(root for level in range(len(self.weight)) for root in self._roots(level))
        if not roots:
            return self._parabola([False] * len(self.weight), ratio, None, None)
        ends: list[float | None] = [None, *roots, None]
        between = [(low + high) / 2 for low, high in itertools.pairwise(roots)]
        middles = [roots[0] - 1, *between, roots[-1] + 1]
        return min(
            self._parabola(self._below(Fraction(middle)), ratio, low, high)
            for middle, low, high in zip(middles, ends[:-1], ends[1:], strict=True)
        )

    def _below(self, output: Fraction) -> list[bool]:
        """Which h_y are below 0 there."""
        return [
            w * output**2 - b * output - a < 0
            for w, b, a in zip(self.weight, self.slope, self.total, strict=True)
        ]

    def _roots(self, level: int) -> list[float]:
        w, b, a = (float(each[level]) for each in (self.weight, self.slope, self.total))
        under = b**2 + 4 * w * a
        if under <= 0:
            return []
        # The two roots have the product -a/w: the smaller one would lose its digits.
        far = (b + math.copysign(math.sqrt(under), b)) / (2 * w)
        return [far, -a / (w * far)] if far else [0.0]

    def _parabola(
        self, inside: list[bool], ratio: Fraction, low: float | None, high: float | None
    ) -> Fraction:
        """The least value of q_S from a little below `low` to a little above `high`, exactly."""
        times = [ratio if each else Fraction(1) for each in inside]
        w, b, a = (
            sum((t * each for t, each in zip(times, part, strict=True)), Fraction(0))
            for part in (self.weight, self.slope, self.total)
        )
        at = b / (2 * w)
        if low is not None:
            at = max(at, Fraction(low - _BEYOND * (1 + abs(low))))
        if high is not None:
            at = min(at, Fraction(high + _BEYOND * (1 + abs(high))))
        return w * at**2 - b * at - a


def _exp_up(value: Fraction) -> Fraction:
    """Not below e^value."""
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    number = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(context.next_plus(context.exp(number)))
