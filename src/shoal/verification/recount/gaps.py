"""What a plan of cells proves of all others: lower bounds, and gaps by dual variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.cells_values import Values
from shoal.verification.recount.reading import Array, Release

# The least (1 + r)^2/(4 r) (5 + 4 r): what both moments cost together, at 8 r^2 + 5 r - 5 = 0.
_R = (math.sqrt(185) - 5) / 16
_JOINT_COST = (1 + _R) ** 2 / (4 * _R) * (5 + 4 * _R)


@dataclass(frozen=True, eq=False)
class Gaps:
    """Bounds on what plans of the same loss can do."""

    cells: Release
    losses: Losses
    values: Values

    def differences(self) -> Iterator[str]:
        """Bounds and gaps that are not proved."""
        cells = self.cells
        places = [(name, at) for name in cells.statistics for at in range(cells.size)]
        true = [] if cells.gaussian else [self._least(name, at) for name, at in places]
        stated = cells.lower_bound or []
        if len(stated) != len(true) or not np.allclose(stated, true, rtol=1e-9, atol=0):
            yield f"lower bounds are {true}, not {stated}"
        balanced = "balanced" in (cells.method, cells.settings.get("noise"))
        if cells.dual is None or cells.gap is None:
            if cells.gap is not cells.dual or balanced:
                yield "a gap and its dual variables belong together"
        elif balanced:
            gap = self._balanced(cells.dual)
            if not math.isclose(gap, cells.gap, rel_tol=1e-6, abs_tol=1e-9):
                yield f"the gap to the best plan is {gap:.9g}, not {cells.gap:.9g}"
        elif cells.gap < 0 or not self._optimal_holds(cells.dual, cells.gap):
            yield f"a gap of {cells.gap:.9g} to the best plan is not proved"

    def _least(self, name: str, at: int) -> float:
        """Error of a number that no Laplace noise of this loss beats (docs/theory/limits.md)."""
        cells, length = self.cells, float(self.cells.ranges[name][1])
        counts = np.sort(cells.count[cells.members[at]]).astype(np.float64)
        if name != "variance":
            return length * _least_error(counts, 0.5, float(cells.epsilon))
        # Errors of at most this leave this mass, of which a unit moves the variance so much.
        most = min(self.values.errors(name, at)[1], 0.5)
        kept = (1 + math.sqrt(max(1 - 2 * most, 0.0))) / 2
        move = 1 + _steeper(min(float(counts[-1] / counts.sum()), kept), kept)
        return length * min(_least_error(counts, 2 * kept, float(cells.epsilon) / move), most)

    def _balanced(self, dual: Array) -> float:
        """How much the weighted mean of ln b could still fall (docs/theory/balanced.md)."""
        cells, power = self.cells, 2 if self.cells.gaussian else 1
        pairs, kind = self.losses.kinds
        moves = [self.losses.moves(at, moved) for at, moved in pairs]
        cost = np.array([sum(float(each) ** power for each in one) for one in moves])
        per_cell = np.bincount(cells.cell, dual[cells.user] * cost[kind], cells.size)
        spent = 2 * self.losses.largest if cells.gaussian else cells.epsilon
        weight = np.array(cells.weight)
        gap = float(weight @ np.log(weight / per_cell) / weight.sum())
        return max(0.0, gap + math.log(float(spent) * dual.sum() / weight.sum())) / power

    def _optimal_holds(self, dual: Array, gap: float) -> bool:
        """Whether plans whose errors are all less by 1 + gap lose more (docs/theory/optimal.md)."""
        cells, targets, total = self.cells, np.array(self.cells.targets), 0.0
        names, errors = cells.statistics, np.zeros(cells.size)
        for at, name in itertools.product(range(cells.size), names):
            errors[at] += float(self.values.bounding_bias(name, at)[0])
            errors[at] += self.values.mean_noise(name, at)
        allowed = (errors / targets).max() / (1 + gap) * (1 - 1e-9) * targets
        linear, varies = sum(name != "variance" for name in names), "variance" in names

        def bias(missing: float) -> float:
            moved = min(missing, 0.5)
            return linear * missing / 2 + 2 * moved * (1 - moved) * varies

        for members, error in zip(cells.members, allowed.tolist(), strict=True):
            counts, price = cells.count[members], dual[cells.user[members]]
            share, order, low, missing = counts / counts.sum(), np.argsort(price), 0.0, 1.0
            for _ in range(80):
                middle = (low + missing) / 2
                low, missing = (middle, missing) if bias(middle) <= error else (low, middle)
            slope = bias(missing) / max(missing, 1e-12)
            if error < slope:
                # The cheapest users v of a cell cost at least c (sum dual v)/(E - a + a sum v).
                capacity = error - slope + slope * np.cumsum(share[order])
                paid = self._cost(float(share.max()), missing) * np.cumsum((price * share)[order])
                total += float((paid[capacity > 0] / capacity[capacity > 0]).min())
        left = float(cells.epsilon - self.losses.once)
        return bool(total / dual.sum() >= left * (1 - 1e-9))

    def _cost(self, heaviest: float, missing: float) -> float:
        """c: the least square of the sum of the roots of the sensitivities over the weight."""
        names = self.cells.statistics
        linear = sum(name != "variance" for name in names)
        if "variance" not in names:
            return float(linear**2)
        direct = (linear + math.sqrt(1 + _steeper(min(heaviest, 1 - missing), 1 - missing))) ** 2
        joint = (linear - 1 + math.sqrt(_JOINT_COST)) ** 2
        return min(direct, joint) if "mean" in names else direct


def _steeper(part: float, mass: float) -> float:
    """What others add to how far a share moves a variance, over the share."""
    others = mass - part
    if not 0 < part < 1:
        return 0.0
    return max((others**2 / (1 - part) - max(others - part, 0.0) ** 2) / part, 0.0)


def _least_error(counts: Array, cut: float, epsilon: float) -> float:
    """Least over all thresholds T of the mass that is cut and of T/epsilon; counts rise."""
    above = np.append(np.cumsum(counts[::-1])[::-1], 0)
    threshold, at = np.append(0, counts), np.append(0, np.arange(len(counts)))
    lost = above[at] - threshold * (len(counts) - at)
    return float((cut * lost + threshold / epsilon).min() / above[0])
