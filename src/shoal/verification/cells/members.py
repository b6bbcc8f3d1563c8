"""What each user loses in each of its cells, for the second opinion: all at once, as doubles.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells import statistics as verify_statistics
from shoal.verification.cells.statistics import JOINT_MARGIN, MEAN, VARIANCE, VARIANCE_MARGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verification.cells.errors import Errors

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MemberLosses:
    """What each member loses in its cell, or the square of it, without rounding to steps.

    Attributes:
        errors: Of the numbers.
    """

    errors: Errors

    @cached_property
    def all(self) -> Floats:
        """One number a member."""
        facts = self.errors.design.facts
        power = 2 if facts.gaussian else 1
        lost = np.zeros(len(facts.member))
        for name in facts.statistics:
            if facts.joint and name in {MEAN, VARIANCE}:
                continue
            scale = np.array([float(b) for b in facts.scales(name)])[facts.member_number]
            lost += (self._moved(name) / scale) ** power
        if facts.joint:
            lost += (self._part * self._rate[facts.member_number]) ** power
        return lost

    def most(self, name: str) -> Floats:
        """The largest sensitivity of a statistic over its range, one a released cell."""
        facts = self.errors.design.facts
        found = np.zeros(len(facts.released))
        np.maximum.at(found, facts.member_number, self._moved(name))
        return found

    def _moved(self, name: str) -> Floats:
        return self._variance if name == VARIANCE else self._part

    @cached_property
    def _part(self) -> Floats:
        design = self.errors.design
        total = np.array([float(each) for each in design.total])
        return np.asarray(design.contribution / total[design.facts.member_number])

    @property
    def _variance(self) -> Floats:
        """As `verify_statistics.variance_moves`."""
        design, part = self.errors.design, self._part
        mass = np.array([float(1 - missing) for missing in design.missing()])
        others = np.maximum(mass[design.facts.member_number] - part, 0.0)
        alike = np.divide(others**2, 1 - part, out=np.zeros_like(part), where=part < 1)
        moves = part - np.maximum(others - part, 0.0) ** 2 + alike
        return np.asarray(np.minimum(1.0, moves * float(VARIANCE_MARGIN)))

    @property
    def _rate(self) -> Floats:
        facts = self.errors.design.facts
        pairs = zip(facts.scales(MEAN), facts.scales(VARIANCE), strict=True)
        if facts.gaussian:
            found = [verify_gaussian.moments_rate(one, other / 4) for one, other in pairs]
            rate = np.sqrt([float(each) for each in found])
        else:
            both = [verify_statistics.moments_rate(one, other / 4) for one, other in pairs]
            rate = np.array([float(each) for each in both])
        return np.asarray(rate * float(JOINT_MARGIN))
