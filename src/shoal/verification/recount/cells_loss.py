"""The privacy loss of every user of cells, in exact fractions (docs/theory/accounting.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shoal.verification.recount import noise
from shoal.verification.recount.bounding import Bounding
from shoal.verification.recount.reading import Array, Cells

# What a user counts for in a selection of one cell, and of all cells together.
_PER_CELL, _FOR_ALL = 2**10, 2**16


@dataclass(frozen=True, eq=False)
class Losses:
    """What users move numbers by, in noise scales, and what that and selections cost."""

    cells: Cells
    bounding: Bounding

    def differences(self) -> Iterator[str]:
        """Whether the stated loss is the true one: no less, and no more than rounding explains."""
        epsilon, one = self.cells.epsilon, 1 << self.cells.lattice_bits
        less = epsilon * (1 - Fraction(1, 10**6)) - Fraction(2 * self._most_numbers, one)
        if self.cells.delta and not self.cells.gaussian:
            yield "a delta belongs to Gaussian noise alone"
        if not self._covers(epsilon):
            yield f"the privacy loss is more than epsilon = {float(epsilon):.12g}"
        if less > self.once and self._covers(less):
            yield f"the privacy loss is less than epsilon = {float(epsilon):.12g}"

    def _covers(self, epsilon: Fraction) -> bool:
        """Whether this epsilon, and delta with Gaussian noise, are no less than the loss."""
        rest, bits = epsilon - self.once, self.cells.lattice_bits
        if not self.cells.gaussian or rest < 0:
            return rest >= self.largest
        delta = noise.gaussian_delta(rest, self.largest, self._most_numbers, bits)
        return delta <= self.cells.delta

    @property
    def _most_numbers(self) -> int:
        rounds = 2 if "first_ball" in self.cells.parameters else 1
        return int(np.bincount(self.cells.user).max()) * len(self.cells.statistics) * rounds

    @cached_property
    def kinds(self) -> tuple[list[tuple[int, int]], Array]:
        """Cells with contributions to them, and which of these each membership has."""
        both = np.stack([self.cells.cell, self.bounding.moved])
        pairs, kind = np.unique(both, axis=1, return_inverse=True)
        return pairs.T.tolist(), kind.ravel()

    @cached_property
    def largest(self) -> Fraction:
        """What the user who loses most loses beside `once`; rho with Gaussian noise."""
        cells, (pairs, kind), one = self.cells, self.kinds, 1 << self.cells.lattice_bits
        if cells.name == "user_clipped":
            # Two vectors in a ball are a diameter apart (docs/theory/user-clipped.md#privacy).
            balls = [2 * int(cells.parameters.get(name, [0])[0]) for name in ("ball", "first_ball")]
            most = sum(ball**2 for ball in balls) if cells.gaussian else sum(balls)
        else:
            cost = [self._cost(at, moved) for at, moved in pairs]
            total = np.zeros(int(cells.user.max()) + 1, dtype=object)
            np.add.at(total, cells.user, np.array(cost, dtype=object)[kind])
            most = int(max(total))
        return Fraction(most, 2 * one**2 if cells.gaussian else one)

    @cached_property
    def once(self) -> Fraction:
        """Loss by selections for all cells together (docs/theory/selection.md#scores)."""
        if self.cells.name not in ("adaptive", "optimal_in_range", "user_clipped"):
            return Fraction(0)
        steps = [self._ceil(2 * _FOR_ALL / Fraction(each)) for each in self.cells.selection_scale]
        return Fraction(sum(steps), 1 << self.cells.lattice_bits)

    def moves(self, at: int, moved: int) -> list[Fraction]:
        """How far a contribution moves the numbers of a cell; both moments together come last."""
        cells, part = self.cells, Fraction(moved, self.bounding.total[at])
        alone = [n for n in cells.statistics if not (cells.joint and n in ("mean", "variance"))]
        moves = [self._sensitivity(name, at, part) / cells.scale[name][at] for name in alone]
        if cells.joint:
            mean, variance = (cells.scale[name][at] for name in ("mean", "variance"))
            rate = _joint_rate(mean, variance / 4, gaussian=cells.gaussian)
            moves.append(part * rate * self._margin(27))
        return moves

    def _cost(self, at: int, moved: int) -> int:
        """Lattice steps of all numbers of a cell; squares if Gaussian; selections of its range."""
        arrays, cells = self.bounding.arrays, self.cells
        score = {"levy": arrays, "quantile": 2 * _PER_CELL * arrays, "akmv": _PER_CELL}
        steps = [self._ceil(each) for each in self.moves(at, moved)] if moved else [0]
        if cells.joint and moved:
            # Both moments are rounded to steps.
            steps[-1] += 2 if cells.gaussian else 1
        if cells.name in score:
            steps.append(self._ceil(2 * score[cells.name] / Fraction(cells.selection_scale[at])))
        return sum(each**2 for each in steps) if cells.gaussian else sum(steps)

    def _sensitivity(self, name: str, at: int, part: Fraction) -> Fraction:
        """Most that a share moves a statistic over its range (docs/theory/variance.md)."""
        if name != "variance":
            return part
        others = self.bounding.mass[at] - part
        alike = others**2 / (1 - part) if part < 1 else Fraction(0)
        moved = part - max(Fraction(0), others - part) ** 2 + alike
        return min(Fraction(1), moved * self._margin(20))

    def _margin(self, bits: int) -> Fraction:
        """For rounded means and squares: a part of 2^-bits, and more where ticks are coarse."""
        usual, tick = 1 + Fraction(1, 2**bits) - Fraction(1, 2**45), 1 << self.cells.tick_bits
        if not (self.bounding.moved % self.cells.count).any():
            return usual
        mean, square = Fraction(1, tick << 11), Fraction(1, 2 * tick**2)
        return max(usual, 1 + 8 * (mean + square + mean**2))

    def _ceil(self, scales: Fraction) -> int:
        return math.ceil(scales * Fraction(1 << self.cells.lattice_bits))


def _joint_rate(mean: Fraction, square: Fraction, *, gaussian: bool) -> Fraction:
    """Noise scales that all records move both moments by: means D apart have squares D (1 - D)."""
    if not gaussian:
        apart = min(Fraction(1), (1 + square / mean) / 2)
        return apart / mean + apart * (1 - apart) / square
    ratio = float(square / mean) ** 2
    if ratio >= 1 / 11:
        return 1 / mean
    apart = Fraction((3 - math.sqrt(1 - 8 * ratio)) / 4)
    both = float(max(Fraction(1), apart**2 + (apart * (1 - apart) * mean / square) ** 2))
    return Fraction(math.sqrt(both)) * (1 + Fraction(1, 2**50)) / mean
