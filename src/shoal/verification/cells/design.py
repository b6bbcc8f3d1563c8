"""What every user contributes, by the second opinion: weights, contributions, masses and biases.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells.facts import sum_by
from shoal.verification.cells.grouping import SHARE
from shoal.verification.cells.mechanism import CLIPPED, IN_PARTS, PART

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verification.cells.facts import Facts
    from shoal.verification.cells.grouping import Arrays
    from shoal.verification.cells.mechanism import Mechanism

# With parts of 2^-16 sums of counts stay 64-bit numbers.
_MOST_COUNT = 2**45


@dataclass(frozen=True, eq=False)
class Design:
    """Weights and contributions of the members.

    Attributes:
        facts: Counts, scales and bounds.
        mechanism: What releases the numbers.
        weight: Of the mean of each member.
        contribution: Most that each member moves its number, as a part of the range times `total`.
        total: What weights and contributions of each number are divided by.
        touched: Most arrays that one user is in.
    """

    facts: Facts
    mechanism: Mechanism
    weight: NDArray[np.int64]
    contribution: NDArray[np.int64]
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
            contribution = heaviest[number] if told["widened"] == [1] else weight
            return cls(facts, mechanism, weight, contribution, total)
        if mechanism.name == "user_clipped":
            weight = np.minimum(count, np.array(told["cap"], dtype=np.int64)[number])
            total = [int(each) for each in sum_by(number, weight, len(facts.released))]
            return cls(facts, mechanism, weight, weight, total)
        if mechanism.name == "clip_user":
            kept = mechanism.of_members["kept"]
            weight = np.minimum(count, np.array(told["cap"], dtype=np.int64)[number]) * kept
            total = [int(each) for each in sum_by(number, weight, len(facts.released))]
            return cls(facts, mechanism, weight, weight, total)
        if mechanism.name in IN_PARTS:
            if int(count.max()) >= _MOST_COUNT:
                raise ValueError
            total = [each << PART for each in facts.totals]
            return cls(facts, mechanism, count << PART, count * mechanism.of_members["part"], total)
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
            # A clipped array reaches the whole range, however small the user's share of it is.
            touched << SHARE if mechanism.name in CLIPPED else weight,
            [own.number << SHARE for own in arrays],
            int(touched.max()),
        )

    @property
    def weights(self) -> list[list[int]]:
        """Weights of the members of each number."""
        return [self.weight[members].tolist() for members in self.facts.by_number]

    @cached_property
    def reached(self) -> list[int]:
        """Sum of the contributions of each number, over `total` the mass that counts."""
        return [
            int(self.contribution[members].sum(dtype=object)) for members in self.facts.by_number
        ]

    def missing(self) -> list[Fraction]:
        """Mass of each number that counts for nobody and lies in the middle of the bounds."""
        if self.mechanism.name not in IN_PARTS:
            return [Fraction(0)] * len(self.facts.released)
        return [
            1 - Fraction(reached, total)
            for reached, total in zip(self.reached, self.total, strict=True)
        ]

    @cached_property
    def rounds_means(self) -> bool:
        """Whether anybody's mean is rounded before it is weighed."""
        return bool((self.contribution % self.facts.count[self.facts.member]).any())

    def biases(self) -> list[Fraction]:
        """Bias of each number without a selected range, over the width.

        Source: docs/theory/grouping.md#linear-estimators-and-their-bias.
        """
        facts, name = self.facts, self.mechanism.name
        if name in {"akmv", "baseline"}:
            return [Fraction(0)] * len(facts.released)
        if name in IN_PARTS:
            # Means are clipped to the middle -+ part/2 of the width: half of what is missing.
            return [missing / 2 for missing in self.missing()]
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
        """What clipping to a range adds to the bias of one number: sum w max(low, U - high).

        Where each user is clipped to its part of the range: less half of what is missing, which is
        counted already.
        """
        facts, weights, top = self.facts, self.weights_of(at), self.facts.top
        if self.mechanism.name == "user_clipped":
            # A user's whole vector may be moved to the centre.
            return Fraction(1)
        if self.mechanism.name == "akmv":
            lost = sum(max(m * top - high, 0) for m in facts.counts[at])
        elif self.mechanism.parameters.get("widened") == [1]:
            heaviest, middle, lost = max(weights), (low + high) // 2, 0
            for weight in weights:
                half = (high - low) * heaviest // (2 * weight)
                lost += weight * max(middle - half, top - middle - half, 0)
        elif self.mechanism.name in IN_PARTS:
            middle, lost = (low + high) // 2, 0
            parts = self.mechanism.of_members["part"][facts.by_number[at]].tolist()
            for weight, part in zip(weights, parts, strict=True):
                half = (high - low) * part // (2 << PART)
                lost += weight * max(middle - half, top - middle - half, 0)
            return Fraction(lost, self.total[at] * top) - self.missing()[at] / 2
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
