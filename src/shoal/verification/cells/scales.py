"""Whether noise is shared as the method's name says, for the second opinion.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells import statistics as verify_statistics
from shoal.verification.cells.mechanism import PER_CELL
from shoal.verification.cells.members import MemberLosses
from shoal.verification.cells.statistics import ALLOCATIONS, MEAN, VARIANCE
from shoal.verification.strict import rational, real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal import documents
    from shoal.verification.cells.design import Design
    from shoal.verification.cells.errors import Errors
    from shoal.verification.cells.losses import Losses

    Floats = NDArray[np.float64]

# Scales are rounded upwards to 24 bits, a few times; and widened where whole steps cost a
# millionth of epsilon more.
_CLOSE, _LEVEL = 2.0**-19, 2.0**-16
# A balanced plan stops where the user with the largest loss loses 1e-4 more than needed.
_FILLED = 1e-3
# Of a loss that no formula gives; of selections and noise, which are rounded on their own.
_SPENT, _HALVED = 1e-4, 1e-2
# The ratios of b2 to b1 that a joint release is chosen from.
_RATIOS = (0.02, 2.0, 400)


def known(method: str) -> bool:
    """Whether the scales of a method follow from public counts, or dual variables prove them."""
    return method in {*ALLOCATIONS, "clip_user", "optimal"}


def scales_hold(losses: Losses, errors: Errors, plan: documents.Document) -> tuple[bool, str]:
    """Whether noise scales are those of the method, up to the planner's roundings.

    With D the largest sensitivity of a number, G_1 the most released cells of a user and K the most
    in which one is kept: a uniform plan has the same loss epsilon/G_1 of the heaviest member in
    every cell (with a delta: as large a one as epsilon allows); an equalised one the same sum of
    scales; Clip-User's uniform noise is D x statistics x K/epsilon. The scales of one cell keep the
    ratio that is best for its heaviest member. Whatever is not said by a formula spends all that
    was asked for, half of it in every cell on selections if there is one in each; an optimal plan
    may spend less.
    """
    request = plan["request"]
    method, noise = request["method"], request["settings"].get("noise", "uniform")
    scales = _Scales(losses, errors, MemberLosses(errors))
    if method == "clip_user" and noise == "uniform":
        return scales.by_clip_user(rational(request["epsilon"]))
    if method not in ALLOCATIONS and method != "clip_user":
        return _without_formula(scales, request)
    if not scales.shaped(least_sum=method == "equalised"):
        return False, "statistics of a cell share its noise in another ratio"
    if method == "equalised" and not _alike(scales.sums):
        return False, "noise that is not the same in all cells"
    if method == "uniform" and not _alike(scales.heaviest):
        return False, "cells that do not cost their heaviest users the same"
    # With a delta both kinds of noise are charged by the true loss, not by the paper's.
    papers = method == "uniform" and request["delta"] == "0"
    if not scales.level(request, plan["claims"], formula=papers):
        return False, "more noise than was asked for"
    return True, f"{len(errors.design.facts.scale)} scales, as {method} plans share them"


@dataclass(frozen=True, eq=False)
class _Scales:
    """Noise scales, and what they are compared with.

    Attributes:
        losses: Of the users.
        errors: Of the numbers.
        members: Of the users in each cell.
    """

    losses: Losses
    errors: Errors
    members: MemberLosses

    @property
    def rows(self) -> Floats:
        """The scales over the ranges, statistics x released cells."""
        facts = self.errors.design.facts
        return np.array([[float(b) for b in facts.scales(name)] for name in facts.statistics])

    @property
    def most(self) -> Floats:
        """The largest sensitivities, in the same order."""
        return np.stack([self.members.most(name) for name in self.errors.design.facts.statistics])

    @property
    def sums(self) -> Floats:
        """Sum of the scales of each cell."""
        return np.asarray(self.rows.sum(axis=0))

    @property
    def heaviest(self) -> Floats:
        """What each cell costs its heaviest member, squared with Gaussian noise."""
        facts = self.errors.design.facts
        found = np.zeros(len(facts.released))
        np.maximum.at(found, facts.member_number, self.members.all)
        return found

    def by_clip_user(self, epsilon: Fraction) -> tuple[bool, str]:
        """D x statistics x K/epsilon, as the paper has it."""
        design = self.errors.design
        facts = design.facts
        if facts.joint:
            return False, "a joint release, which Clip-User does not have"
        kept = facts.member_user[design.weight > 0]
        cells = int(np.bincount(kept).max())
        wanted = self.most * len(facts.statistics) * cells / float(epsilon)
        holds = bool((np.abs(self.rows / wanted - 1) <= _LEVEL).all()) and _alike(
            (self.rows / wanted).ravel()
        )
        return holds, f"for users who are kept in {cells} cells at most"

    def halved(self) -> bool:
        """Whether the selection of each cell costs its heaviest member as much as the noise."""
        design = self.errors.design
        if design.mechanism.name not in PER_CELL:
            return True
        selections = np.array(self.losses.selections(), dtype=np.float64) / 2.0**design.facts.bits
        noise = self.heaviest
        there = noise > 0
        return bool((np.abs(noise / selections - 1) <= _HALVED)[there].all())

    def shaped(self, *, least_sum: bool) -> bool:
        """Whether the statistics of every cell share its noise in the best ratio."""
        ratio = self._ratio(least_sum=least_sum)
        wanted = ratio / ratio.sum(axis=0)
        found = self.rows / self.sums
        return bool((np.abs(found / wanted - 1) <= _CLOSE).all())

    def _ratio(self, *, least_sum: bool) -> Floats:
        """For the heaviest member, scales with the least sum or product of the errors.

        At the loss sum_s (D_s/b_s)^p a sum of errors sum_s e_s b_s is least at
        b_s = (D_s^p/e_s)^(1/(p+1)), a product of b_s^(l_s) at b_s = D_s/l_s^(1/p): Lagrange. Mean
        and variance together are one term of b1, with D = w J and the errors of both.
        """
        facts = self.errors.design.facts
        cost, names, power = self.most, facts.statistics, 2 if facts.gaussian else 1
        errors, factors, between = np.ones_like(cost), np.ones_like(cost), 0.0
        if facts.joint:
            between, rate = together(gaussian=facts.gaussian, least_sum=least_sum)
            first = names.index(MEAN)
            cost[first] *= rate
            errors[first], factors[first] = 5 + 4 * between, 2
        # The variance of a joint release is no term of its own.
        alone = (cost**power / errors) ** (1 / (power + 1))
        ratio = alone if least_sum else cost / factors ** (1 / power)
        if facts.joint:
            ratio[names.index(VARIANCE)] = 4 * between * ratio[names.index(MEAN)]
        return ratio

    def level(
        self, request: documents.Document, claims: documents.Document, *, formula: bool
    ) -> bool:
        """Whether noise is no more than was asked for.

        Args:
            request: What was asked for.
            claims: The errors.
            formula: Whether the heaviest member of each cell loses epsilon/G_1, not more.
        """
        facts = self.errors.design.facts
        if request["error"] is not None:
            largest = max(real(each) for each in claims["worst_case_error"])
            return largest >= real(request["error"]) * (1 - _LEVEL)
        asked, spent = rational(request["epsilon"]), self.losses.largest
        if facts.gaussian:
            more = spent * (1 + Fraction(_LEVEL))
            numbers = self.losses.most_numbers
            return verify_gaussian.delta_at(asked, more, numbers, facts.bits) >= facts.delta
        if formula:
            cells = int(np.bincount(facts.member_user).max())
            return bool((self.heaviest * cells >= float(asked) * (1 - _LEVEL)).all())
        return spent >= asked * (1 - Fraction(_LEVEL))


def _without_formula(scales: _Scales, request: documents.Document) -> tuple[bool, str]:
    """Whether all is spent, and on noise what is not spent on selections."""
    if not _spends(scales.losses, request):
        return False, "less is spent than was asked for"
    if request["method"] == "user_clipped":
        return _fits_ball(scales.errors.design)
    if not scales.halved():
        return False, "selections and noise that do not cost the same"
    return True, "in proportion, by the gap" if request["method"] == "optimal" else "all is spent"


def _spends(losses: Losses, request: documents.Document) -> bool:
    """Whether the user with the largest loss loses what was asked for, if that is an epsilon."""
    # The least errors at any noise may need less than all; nothing is lost where nobody counts.
    if request["error"] is not None or request["method"] == "optimal" or not losses.largest:
        return True
    facts, spent = losses.design.facts, losses.largest
    asked = rational(request["epsilon"])
    if not facts.gaussian:
        return spent >= asked * (1 - Fraction(_SPENT))
    noise = asked - Fraction(losses.once(), 2**facts.bits)
    more = spent * (1 + Fraction(_SPENT))
    return verify_gaussian.delta_at(noise, more, losses.most_numbers, facts.bits) >= facts.delta


def _fits_ball(design: Design) -> tuple[bool, str]:
    """Whether noise is such that a user with all its means a radius away is just in the ball.

    The largest sum over a user's cells of w/b (with Gaussian noise, root of the sum of squares) is
    the ball's radius over 2^j: less noise would hide less than it says, and more would be wasted.
    """
    facts, [ball] = design.facts, design.mechanism.parameters["ball"]
    scale = np.array([float(each) for each in facts.scale])[facts.member_number]
    total = np.array(design.total, dtype=np.float64)[facts.member_number]
    power = 2 if facts.gaussian else 1
    reach = np.bincount(facts.member_user, (design.weight / total / scale) ** power)
    found = float(reach.max()) ** (1 / power) * 2.0**facts.bits / ball
    return abs(found - 1) <= _FILLED, f"the largest vector of weights fills {found:.6f} of the ball"


def together(*, gaussian: bool, least_sum: bool) -> tuple[float, float]:
    """b2/b1 of a joint release, and what a user of all records loses at b1 = 1.

    Of 400 ratios from 0.02 to 2 in equal proportions the one with the least J (5 + 4 r), or with
    the least J sqrt(4 (1 + r)): the errors over their ranges are b1, and 4 (b1 + b2).
    """
    ratios = np.geomspace(*_RATIOS)
    one = Fraction(1)
    if gaussian:
        found = [verify_gaussian.moments_rate(one, Fraction(each)) for each in ratios.tolist()]
        rate = np.sqrt([float(each) for each in found])
    else:
        both = [verify_statistics.moments_rate(one, Fraction(each)) for each in ratios.tolist()]
        rate = np.array([float(each) for each in both])
    variance = 4 * (1 + ratios)
    best = int((rate * (1 + variance if least_sum else np.sqrt(variance))).argmin())
    return float(ratios[best]), float(rate[best])


def _alike(numbers: Floats) -> bool:
    """Whether all are the same, but for roundings of each."""
    low, high = float(numbers.min()), float(numbers.max())
    return math.isfinite(high) and 0 < high <= low * (1 + 2 * _CLOSE)
