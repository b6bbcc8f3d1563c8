"""The privacy loss of a manifest, user by user, in exact arithmetic, for the second opinion.

Nothing is imported from planning, mechanisms, bounding, accounting, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells import statistics as verify_statistics
from shoal.verification.cells.mechanism import FOR_ALL, PER_CELL, UNIT, USER
from shoal.verification.cells.statistics import JOINT_MARGIN, MEAN, VARIANCE, VARIANCE_MARGIN
from shoal.verification.cells.vectors import has_first_round

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verification.cells.design import Design

# The planner rounds outwards: by a step in every number, by the last places of a double in every
# product, and by more in sums of squares.
_PLACES, _PLACES_OF_SQUARES = Fraction(1, 2**43), Fraction(1, 2**28)
# A rounded to tick bits and 10 more: half a step of a mean, and half a square tick of a square.
_MEANS_BITS = 11
_DIGIT = 30
_LOWEST = 2**_DIGIT - 1


@dataclass(frozen=True, eq=False)
class Losses:
    """Lattice steps that the user with the largest loss moves the numbers by.

    Attributes:
        design: Weights and contributions.
    """

    design: Design

    @cached_property
    def largest(self) -> Fraction:
        """Largest over users: epsilon with Laplace noise, rho with Gaussian noise.

        Epsilon is a sum of steps over 2^j, ceil(D 2^j / b) for a number with sensitivity D, and of
        selections; rho is half the sum of their squares over 4^j, without selections.
        """
        facts = self.design.facts
        if self.design.mechanism.name == "user_clipped":
            # Whoever is in a released cell: selections, and the diameter of the ball.
            [ball] = self.design.mechanism.parameters["ball"]
            [first] = self.design.mechanism.parameters.get("first_ball", [0])
            if facts.gaussian:
                return Fraction((2 * ball) ** 2 + (2 * first) ** 2, 2 * 4**facts.bits)
            return Fraction(self.once() + 2 * ball + 2 * first, 2**facts.bits)
        cost, kind = self._costs()
        # Whoever loses most is in a released cell, and pays for a selection for all cells.
        most = _largest_sum(cost, kind, facts.member_user) + self.once()
        return Fraction(most, 2 * 4**facts.bits if facts.gaussian else 2**facts.bits)

    def _costs(self) -> tuple[list[int], NDArray[np.int64]]:
        """What each number costs at each contribution, and which of these each member has."""
        number, contribution = self.design.facts.member_number, self.design.contribution
        contributions, place = np.unique(contribution, return_inverse=True)
        kinds, kind = np.unique(number * len(contributions) + place, return_inverse=True)
        of_kind = contributions[kinds % len(contributions)]
        pairs = zip((kinds // len(contributions)).tolist(), of_kind.tolist(),
                    strict=True)  # fmt: skip
        selection = self.selections()
        return [selection[at] + self._cost(at, each) for at, each in pairs], kind

    @property
    def most_numbers(self) -> int:
        """Most numbers that one user is in, of both rounds if there are two."""
        facts = self.design.facts
        rounds = 2 if has_first_round(self.design.mechanism.parameters) else 1
        return int(np.bincount(facts.member_user).max()) * len(facts.statistics) * rounds

    def holds(self, stated: Fraction) -> tuple[bool, str]:
        """Whether a stated epsilon is the truth, but for what rounding explains."""
        facts, numbers = self.design.facts, self.most_numbers
        if not facts.gaussian:
            least, capacity = self.largest, Fraction(2 * numbers, 2**facts.bits)
            return least <= stated <= least * (1 + _PLACES) + capacity, f"{float(least):.12g}"
        # What selections cost, for certain, is no part of what delta is about.
        rho, noise = self.largest, stated - Fraction(self.once(), 2**facts.bits)
        if noise < 0:
            return False, "selections alone cost more"
        least = verify_gaussian.delta_at(noise, rho, numbers, facts.bits)
        # Of vectors d and d + 2, lengths differ by at most twice the root of their dimension.
        length = math.sqrt(2 * rho) + 2 * math.sqrt(numbers) / 2**facts.bits
        other = Fraction(length**2 / 2) * (1 + _PLACES_OF_SQUARES)
        below = noise * (1 - _PLACES_OF_SQUARES)
        close = noise == 0 or (
            verify_gaussian.delta_at(below, other, numbers, facts.bits)
            >= facts.delta * (1 - _PLACES_OF_SQUARES)
        )
        found = f"rho {float(rho):.9g}, delta {float(least):.9g}"
        return least <= facts.delta and close, found

    def _cost(self, at: int, contribution: int) -> int:
        """What a user pays in one cell: steps, or their squares if Gaussian."""
        design, facts = self.design, self.design.facts
        if not contribution:
            return 0
        part, whole = Fraction(contribution, design.total[at]), 2**facts.bits
        alone = [name for name in facts.statistics if not self._together(name)]
        steps = [math.ceil(self._moved(name, at, contribution) * whole / self._scale[name][at])
                 for name in alone]  # fmt: skip
        if facts.joint:
            steps.append(self._both(at, part * self._margin(JOINT_MARGIN) * whole))
        return sum(each**2 for each in steps) if facts.gaussian else sum(steps)

    def _both(self, at: int, share: Fraction) -> int:
        """Steps for both moments together, each rounded to its own lattice."""
        first, second = self._scale[MEAN][at], self._scale[VARIANCE][at] / 4
        if not self.design.facts.gaussian:
            return math.ceil(share * verify_statistics.moments_rate(first, second)) + 1
        # Lengths grow by sqrt 2 at most.
        return verify_gaussian.ceil_root(share**2 * self._rate[at]) + 2

    def _moved(self, name: str, at: int, contribution: int) -> Fraction:
        total = self.design.total[at]
        if name != VARIANCE:
            return Fraction(contribution, total)
        kept = self.design.reached[at]
        exact = verify_statistics.variance_moves(contribution, kept, total)
        return min(Fraction(1), exact * self._margin(VARIANCE_MARGIN))

    def _margin(self, usual: Fraction) -> Fraction:
        """For means rounded by e1 and mean squares by e2: the usual margin, if these are small.

        In each of two states 4 (w e2 + w e1 + (w e1)^2) of a variance, and 2 e1 + 8 e2 of both
        moments over their scales, with a loss of at least w.
        """
        if not self.design.rounds_means:
            return usual
        bits = self.design.facts.tick_bits
        mean, square = Fraction(1, 2 ** (bits + _MEANS_BITS)), Fraction(1, 2 ** (2 * bits + 1))
        return max(usual, 1 + 8 * (mean + square + mean**2))

    def _together(self, name: str) -> bool:
        return self.design.facts.joint and name in {MEAN, VARIANCE}

    @cached_property
    def _scale(self) -> dict[str, list[Fraction]]:
        facts = self.design.facts
        return {name: facts.scales(name) for name in facts.statistics}

    @cached_property
    def _rate(self) -> list[Fraction]:
        pairs = zip(self._scale[MEAN], self._scale[VARIANCE], strict=True)
        return [verify_gaussian.moments_rate(one, other / 4) for one, other in pairs]

    def selections(self) -> list[int]:
        """Steps that the selections of each number cost everyone in it."""
        mechanism, size = self.design.mechanism, len(self.design.facts.released)
        if mechanism.name not in PER_CELL:
            return [0] * size
        touched = self.design.touched
        moved = {"levy": touched, "quantile": UNIT * touched, "akmv": UNIT}[mechanism.name]
        rounds = 2 if mechanism.name == "quantile" else 1
        return [self._steps(rounds * 2 * moved / b) for b in mechanism.selection_scale]

    def once(self) -> int:
        """Steps that a selection for all cells together costs everyone in any of them."""
        mechanism = self.design.mechanism
        if mechanism.name not in FOR_ALL:
            return 0
        return sum(self._steps(2 * USER / scale) for scale in mechanism.selection_scale)

    def _steps(self, loss: Fraction) -> int:
        return math.ceil(loss * (1 << self.design.facts.bits))


def _largest_sum(cost: list[int], kind: NDArray[np.int64], user: NDArray[np.int64]) -> int:
    """The largest sum of a user's costs, exactly, however many digits it has.

    Digits of base 2^30 are added on their own, carried upwards, and compared from the top: no
    Python object a user.

    Args:
        cost: Of each kind.
        kind: Of each member.
        user: Of each member, ascending.
    """
    start = np.flatnonzero(np.append(True, np.diff(user) > 0))
    digits, carried = [], np.zeros(len(start), dtype=np.int64)
    for shift in range(0, max(cost).bit_length() + _DIGIT, _DIGIT):
        own = np.array([each >> shift & _LOWEST for each in cost], dtype=np.int64)
        total = np.add.reduceat(own[kind], start) + carried
        digits.append(total & _LOWEST)
        carried = total >> _DIGIT
    most, still = 0, np.arange(len(start))
    for digit in [carried, *reversed(digits)]:
        top = int(digit[still].max())
        most, still = (most << _DIGIT) + top, still[digit[still] == top]
    return most
