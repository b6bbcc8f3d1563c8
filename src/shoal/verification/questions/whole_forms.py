"""Variances of assigned groups as whole numbers of a manifest, and what they cost, again.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.strict import integers, whole

Whole = NDArray[np.int64]
KEYS = {"factor", "kind", "limits", "step"}
_OFFSET, _MOST_STEP = 2**20, 2**60
# Sums of products are exact in 64 bits and in floating point below these.
_SUM_BITS, _FLOAT_BITS = 62, 53
_AT_ONCE, _FEWEST = 2**22, 2


def finest(groups: int, units: int) -> int:
    """The size of a form's largest whole number in bits: as fine as exact sums allow.

    Example:
        >>> finest(200, 5000), finest(2000, 100_000)
        (20, 17)
    """
    rows, columns = (groups - 1).bit_length(), (units - 1).bit_length()
    return min(20, (_SUM_BITS - rows - columns) // 2, (_FLOAT_BITS - rows) // 2)


@dataclass(frozen=True, eq=False)
class Form:
    """A variance in whole numbers.

    Attributes:
        factor: Different columns, groups x kinds.
        kind: Of each unit.
        limits: Of each group, or none.
        step: In 2^40 squared ticks.
    """

    factor: Whole
    kind: Whole
    limits: Whole
    step: int

    @classmethod
    def of(cls, document: Document, units: int, groups: int) -> Form:
        """Read and check."""
        kind = integers(document["kind"], "kind", units)
        kinds = int(kind.max()) + 1
        factor = integers(document["factor"], "factor", groups * kinds).reshape(groups, kinds)
        limits = integers(document["limits"], "limits")
        step = whole(document["step"], 1, _MOST_STEP)
        factor = factor - _OFFSET
        most = int(np.abs(factor).max())
        # By more than these sums of whole numbers would wrap or be rounded.
        exact = most**2 * groups * units <= 2**_SUM_BITS and most**2 * groups <= 2**_FLOAT_BITS
        if not exact or most > _OFFSET or len(np.unique(kind)) != kinds:
            raise ValueError
        if len(limits) and (len(limits) != groups or int(limits.min()) < 1):
            raise ValueError
        if len(limits) and int(limits.max()) * most * groups * 2 > 2**_SUM_BITS:
            raise ValueError
        return cls(factor, kind, limits, step)

    def steps(self) -> Whole:
        """Whole steps that the outcome of each unit moves the variance by, at most."""
        if len(self.limits):
            near = np.minimum(np.abs(self.factor), self.limits[:, None])
            # R^2 - (R - u)^2 where u does not reach R, else R^2.
            moved = 2 * (self.limits @ near) - (near**2).sum(axis=0)
        else:
            moved = self._sums()
        quotient, rest = np.divmod(moved, self.step)
        found: Whole = (quotient + (rest > 0))[self.kind]
        return found

    def _sums(self) -> Whole:
        """The largest of |Q_ii| and of the sum of all other |Q_ij|, kind by kind."""
        found, many = np.zeros(self.factor.shape[1], dtype=np.int64), np.bincount(self.kind)
        size = max(_AT_ONCE // self.factor.shape[1], 1)
        plain = self.factor.astype(np.float64)
        own = (self.factor**2).sum(axis=0)
        for at in range(0, len(found), size):
            block = np.rint(np.abs(plain.T[at : at + size] @ plain)).astype(np.int64)
            found[at : at + size] = (block * many).sum(axis=1)
        return np.asarray(np.maximum(found - own, own))


def check_groups(assigned: Whole, arm: Whole, cluster: Whole) -> bool:
    """Whether each group has one arm and cluster, each arm two groups, and none is empty."""
    groups = int(assigned.max()) + 1
    every = set(zip(assigned.tolist(), arm.tolist(), cluster.tolist(), strict=True))
    if len(every) != groups or len({group for group, _, _ in every}) != groups:
        return False
    many = np.bincount([own for _, own, _ in every], minlength=int(arm.max()) + 1)
    return int(many.min()) >= _FEWEST
