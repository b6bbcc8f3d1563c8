"""What every user contributes, by the second opinion: weights, reaches, losses and biases.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.release.verify_facts import sum_by
from shoal.release.verify_grouping import SHARE
from shoal.release.verify_mechanism import CLIPPED, FOR_ALL, PER_CELL, UNIT, USER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release.verify_facts import Facts
    from shoal.release.verify_grouping import Arrays
    from shoal.release.verify_mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Design:
    """Weights and reaches of the members.

    Attributes:
        facts: Counts, scales and bounds.
        mechanism: What releases the numbers.
        weight: Of the mean of each member.
        reach: Most that each member moves its number, as a part of the span times `total`.
        total: What weights and reaches of each number are divided by.
        touched: Most arrays that one user is in.
    """

    facts: Facts
    mechanism: Mechanism
    weight: NDArray[np.int64]
    reach: NDArray[np.int64]
    total: list[int]
    touched: int = 1

    @classmethod
    def of(cls, facts: Facts, mechanism: Mechanism, arrays: list[Arrays]) -> Design:
        """The design that counts and parameters give."""
        count, number = facts.count[facts.member], facts.member_number
        told, one = mechanism.parameters, np.ones_like(count)
        if arrays:
            return cls._grouped(facts, mechanism, arrays)
        if mechanism.name == "akmv":
            return cls(facts, mechanism, one, one, facts.totals)
        if mechanism.name == "worst_case_optimal":
            most = np.array(told["threshold"], dtype=np.int64)[number]
            return cls(facts, mechanism, count, np.minimum(count, most), facts.totals)
        if mechanism.name == "adaptive":
            weight = np.minimum(count, np.array(told["cap"], dtype=np.int64)[number])
            total = [int(each) for each in sum_by(number, weight, len(facts.released))]
            heaviest = np.array([int(weight[members].max()) for members in facts.by_number])
            reach = heaviest[number] if told["widened"] == [1] else weight
            return cls(facts, mechanism, weight, reach, total)
        return cls(facts, mechanism, count, count, facts.totals)

    @classmethod
    def _grouped(cls, facts: Facts, mechanism: Mechanism, arrays: list[Arrays]) -> Design:
        weight = np.zeros(len(facts.member), dtype=np.int64)
        touched = np.zeros(len(facts.member), dtype=np.int64)
        for members, own in zip(facts.by_number, arrays, strict=True):
            weight[members], touched[members] = own.share, own.touched
        return cls(
            facts,
            mechanism,
            weight,
            # A clipped array reaches the whole span, however small the user's share of it is.
            touched << SHARE if mechanism.name in CLIPPED else weight,
            [own.number << SHARE for own in arrays],
            int(touched.max()),
        )

    @property
    def weights(self) -> list[list[int]]:
        """Weights of the members of each number."""
        return [self.weight[members].tolist() for members in self.facts.by_number]

    def epsilon(self) -> Fraction:
        """Largest over users of selections and ceil((reach/total) 2^j / b) / 2^j, exactly."""
        facts, number = self.facts, self.facts.member_number
        pairs, back = np.unique(np.stack([number, self.reach]), axis=1, return_inverse=True)
        selection = self._selections()
        steps = [
            selection[at]
            + math.ceil(Fraction(reach, self.total[at]) * 2**facts.bits / facts.scale[at])
            for at, reach in pairs.T.tolist()
        ]
        users = len(np.unique(facts.user))
        lost = sum_by(facts.member_user, np.array(steps, dtype=np.int64)[back.ravel()], users)
        # Whoever loses most is in a released cell, and pays for a selection for all cells.
        return Fraction(int(max(lost)) + self._once(), 2**facts.bits)

    def _selections(self) -> list[int]:
        """Steps that the selections of each number cost everyone in it."""
        name, size = self.mechanism.name, len(self.facts.released)
        if name not in PER_CELL:
            return [0] * size
        moved = {"levy": self.touched, "quantile": UNIT * self.touched, "akmv": UNIT}[name]
        rounds = 2 if name == "quantile" else 1
        return [self._steps(rounds * 2 * moved / b) for b in self.mechanism.selection_scale]

    def _once(self) -> int:
        """Steps that a selection for all cells together costs everyone in any of them."""
        if self.mechanism.name not in FOR_ALL:
            return 0
        return self._steps(2 * USER / self.mechanism.selection_scale[0])

    def _steps(self, loss: Fraction) -> int:
        return math.ceil(loss * (1 << self.facts.bits))

    def bias_bounds(self) -> list[float]:
        """Most that an estimate before noise is off, in any data set and range."""
        facts = self.facts
        if self.mechanism.selects:
            return [float(facts.width)] * len(facts.released)
        return [
            float(facts.width * (self.rounding(b) + bias))
            for b, bias in zip(facts.scale, self.biases(), strict=True)
        ]

    def rounding(self, relative_scale: Fraction) -> Fraction:
        """Of values to ticks, means to ticks over 2^10, and numbers to steps, over the width."""
        facts = self.facts
        ticks = Fraction(1025, 1024 << (facts.tick_bits + 1))
        means = Fraction(0 if self.mechanism.shares else 1, facts.top)
        return ticks + means + relative_scale / (2 << facts.bits)

    def biases(self) -> list[Fraction]:
        """Bias of each number without a selected range, over the width (Theory 1, section 3)."""
        facts, name = self.facts, self.mechanism.name
        if name in {"akmv", "baseline"}:
            return [Fraction(0)] * len(facts.released)
        if name == "worst_case_optimal":
            told = self.mechanism.parameters["threshold"]
            return [
                Fraction(sum(max(m - most, 0) for m in counts), 2 * n)
                for counts, most, n in zip(facts.counts, told, facts.totals, strict=True)
            ]
        return [
            _distance(*each)
            for each in zip(facts.counts, facts.totals, self.weights, self.total, strict=True)
        ]

    def range_bias(self, at: int, low: int, high: int) -> Fraction:
        """What clipping to a range adds to the bias of one number: sum w max(low, U - high)."""
        facts, weights, top = self.facts, self.weights_of(at), self.facts.top
        if self.mechanism.name == "akmv":
            lost = sum(max(m * top - high, 0) for m in facts.counts[at])
        elif self.mechanism.parameters.get("widened") == [1]:
            heaviest, middle, lost = max(weights), (low + high) // 2, 0
            for weight in weights:
                half = (high - low) * heaviest // (2 * weight)
                lost += weight * max(middle - half, top - middle - half, 0)
        else:
            lost = sum(weights) * max(low, top - high, 0)
        return Fraction(lost, self.total[at] * top)

    def weights_of(self, at: int) -> list[int]:
        """Weights of the members of one number."""
        own: list[int] = self.weight[self.facts.by_number[at]].tolist()
        return own


def _distance(counts: list[int], records: int, weights: list[int], total: int) -> Fraction:
    """max( sum (v-w)^+, sum (w-v)^+ ) of shares v = m/n and weights w, in whole numbers."""
    apart = [m * total - w * records for m, w in zip(counts, weights, strict=True)]
    short, over = sum(max(x, 0) for x in apart), sum(max(-x, 0) for x in apart)
    return Fraction(max(short, over), records * total)
