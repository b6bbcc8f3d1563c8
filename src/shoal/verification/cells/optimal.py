"""The proof of an optimal plan, for the second opinion: duals, and the prefixes of every cell.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells.errors import LAPLACE_QUADRATIC
from shoal.verification.cells.facts import TOLERANCE
from shoal.verification.cells.statistics import MEAN, VARIANCE

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from shoal.verification.cells.errors import Errors

    Floats = NDArray[np.float64]

_HALVINGS = 80


def proves(
    errors: Errors, targets: Floats, dual: Floats, epsilon: Fraction, claimed: float
) -> tuple[bool, str]:
    """Whether duals prove that no plan of this loss has errors below this one's over 1 + gap.

    Errors are compared with the targets e_g: the largest error_g/e_g of this plan is s, and plans
    with errors of at most E_g = s/(1 + gap) e_g are shown to lose at least epsilon.

    Args:
        errors: Of the plan.
        targets: e_g of each number.
        dual: Of each user's loss.
        epsilon: Of the plan.
        claimed: The gap.
    """
    if not 0 <= claimed < math.inf:
        return False, "no gap from 0"
    factor = float((_without_rounding(errors) / targets).max())
    proof = _Proof(errors, dual)
    # A gap may be better than the truth by the last places of floating-point numbers only.
    error = factor / (1 + claimed) * (1 - TOLERANCE) * targets
    bound = proof.bound(error)
    holds = (
        bool(np.isfinite(error).all() and (error > 0).all())
        and math.isfinite(bound)
        and bound >= float(epsilon) * (1 - TOLERANCE)
    )
    return holds, f"{claimed:.2e} at most, by a loss {bound:.9g}"


def _without_rounding(errors: Errors) -> Floats:
    """Sum over the statistics of bias and noise of each cell, over their ranges."""
    facts = errors.design.facts
    found = np.zeros(len(facts.released))
    for name in facts.statistics:
        found += [float(each) for each in errors.biases[name]]
        found += [float(each) for each in facts.scales(name)]
    if facts.joint:
        first = np.array([float(each) for each in facts.scales(MEAN)])
        found += 4 * (first + LAPLACE_QUADRATIC * first**2)
    return found


@dataclass(frozen=True, eq=False)
class _Proof:
    """A bound from below on the loss of plans: weights w <= v, missing mass in the middle.

    In a cell with missing mass d and noise scales that sum to B (5 b1 + 4 b2 of both moments) the
    error is at least a d + B, with a the slope of a chord: biases are concave in d. A weight w
    costs its user c w/B at least: by Cauchy-Schwarz the square of the sum of the roots of the
    sensitivities over w. So a cell costs at least, at any dual variables, what the cheapest prefix
    of its users costs, c (sum dual variable v) / (E - a + a sum v).
    """

    errors: Errors
    dual: Floats

    def bound(self, error: Floats) -> float:
        """No plan with these errors, or less, loses less; one error a cell."""
        facts = self.errors.design.facts
        most = self._most_missing(error)
        slope = np.array([self._bias(d) / d for d in np.maximum(most, 1e-12)])
        cost = self._cost(most)
        total = float(self.dual.sum())
        if not total > 0:
            return 0.0
        largest_loss = [
            self._cheapest(members, slope[at], cost[at], error[at])
            for at, members in enumerate(facts.by_number)
        ]
        return float(sum(largest_loss)) / total

    def _cheapest(
        self, members: NDArray[np.int64], slope: float, cost: float, error: float
    ) -> float:
        if error >= slope:
            return 0.0
        facts = self.errors.design.facts
        dual = self.dual[facts.member_user[members]]
        order = np.argsort(dual)
        share = (facts.count[facts.member][members] / self._records(members))[order]
        capacity = error - slope + slope * np.cumsum(share)
        paid = cost * np.cumsum(dual[order] * share)
        able = capacity > 0
        return float((paid[able] / capacity[able]).min())

    def _records(self, members: NDArray[np.int64]) -> float:
        facts = self.errors.design.facts
        return float(facts.count[facts.member][members].sum(dtype=np.float64))

    @cached_property
    def _linear(self) -> int:
        return sum(name != VARIANCE for name in self.errors.design.facts.statistics)

    @property
    def _varies(self) -> bool:
        return VARIANCE in self.errors.design.facts.statistics

    def _bias(self, missing: float) -> float:
        """Sum of the biases of a cell with missing mass d: d/2 of a mean, half of 4 d (1 - d)."""
        moved = min(missing, 0.5)
        return self._linear * missing / 2 + 2 * moved * (1 - moved) * self._varies

    def _most_missing(self, error: Floats) -> Floats:
        """The largest d whose biases alone are within the error, or a little more."""
        low, high = np.zeros(len(error)), np.ones(len(error))
        bias = np.vectorize(self._bias, otypes=[float])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = bias(middle) <= error
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    def _cost(self, missing: Floats) -> Floats:
        """c: the root of a sensitivity is 1 of a mean, and of a variance at least that of kappa.

        Kappa falls with w and grows with the mass W, so that it is least for the largest share at
        the least mass. With the mean, both moments cost J(1, r)(5 + 4 r) for b2 = r b1.
        """
        if not self._varies:
            return np.full(len(missing), float(self._linear**2))
        facts = self.errors.design.facts
        kept = 1 - missing
        heaviest = np.array(
            [max(counts) / total for counts, total in zip(facts.counts, facts.totals, strict=True)]
        )
        part = np.minimum(heaviest, kept)
        others = kept - part
        beyond = np.maximum(others - part, 0.0)
        safe = (part > 0) & (part < 1)
        added = np.zeros_like(part)
        np.divide(
            others**2 / (1 - np.where(safe, part, 0)) - beyond**2, part, out=added, where=safe
        )
        direct = (self._linear + np.sqrt(1 + np.maximum(added, 0.0))) ** 2
        if MEAN not in facts.statistics:
            return np.asarray(direct)
        return np.asarray(np.minimum(direct, (self._linear - 1 + math.sqrt(_JOINT_COST)) ** 2))


def _joint_cost() -> float:
    """The least of (1 + r)^2/(4 r) (5 + 4 r): where its logarithm's slope is 0.

    2/(1 + r) - 1/r + 4/(5 + 4 r) = 0, that is 8 r^2 + 5 r - 5 = 0.
    """
    r = (math.sqrt(25 + 160) - 5) / 16
    return (1 + r) ** 2 / (4 * r) * (5 + 4 * r)


_JOINT_COST = _joint_cost()
