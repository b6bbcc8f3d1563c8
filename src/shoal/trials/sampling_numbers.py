"""Neyman's sampling variance as private numbers: one for two arms, else one for each arm."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.trials.aggregate_lattice import TOP, pooled, step_variance
from shoal.trials.aggregates import Sampling

_PAIR = 2


@dataclass(frozen=True, eq=False)
class SamplingNumbers:
    """The sum of (n_c/n)^2 s2/n over groups of two units or more, in whole steps.

    Replacing one of n outcomes within a width U moves s2 by at most U^2/n: with m the mean of the
    others, s2 = (sum over the others of (y - m)^2)/(n - 1) + (y_i - m)^2/n. That is sharp: all
    others on the lowest level, this one moved from there to the highest. So an outcome of a group
    of n in cluster c moves its number by at most (n_c/n)^2 U^2 over the square of all units. The
    group that moves most gets `weight` steps for that. Every group's term is rounded on its own:
    one outcome moves one term, by at most `reach` steps.

    With two arms there is one number for both, as one outcome moves one of its terms; with more
    arms each has its own number, because the control is in every contrast.

    Attributes:
        sizes: Clusters x arms.
        weight: Steps that one outcome moves a number by at most; 0 for no numbers.
        lattice_bits: j.

    Example:
        >>> numbers = SamplingNumbers(np.array([[2, 4], [3, 3]]), 900, 20)
        >>> numbers.reach.tolist()
        [[900, 225], [400, 400]]
    """

    sizes: NDArray[np.int64]
    weight: int
    lattice_bits: int

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Groups with two units or more in clusters that are not pooled, clusters x arms."""
        found: NDArray[np.bool_] = (self.sizes > 1) & ~pooled(self.sizes)[:, None]
        return found if self.weight else np.zeros_like(found)

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """The number that each arm is in."""
        arms = self.sizes.shape[1]
        return np.zeros(arms, dtype=np.int64) if arms == _PAIR else np.arange(arms)

    @property
    def count(self) -> int:
        """How many numbers are released."""
        return int(self.number[-1]) + 1 if self.weight else 0

    @cached_property
    def reach(self) -> NDArray[np.object_]:
        """Steps that one outcome of each group moves its number by at most, clusters x arms."""
        up, down = self._scale
        return np.asarray(-(-up // down))

    def steps(self, linear: NDArray[np.object_], square: NDArray[np.object_]) -> list[int]:
        """The numbers, from sums of ticks and of squared ticks of every group. Private."""
        if not self.count:
            return []
        up, down = self._scale
        n = self.sizes.astype(object)
        above = up * (n * square - linear**2)
        below = down * np.where(self.used, n - 1, 1) * TOP**2
        terms = (2 * above + below) // (2 * below)
        return [int(terms[:, self.number == number].sum()) for number in range(self.count)]

    def read(self, released: list[int], arm: int, width: float) -> Sampling:
        """What released numbers tell of the contrast of an arm with the control."""
        if not self.count:
            return Sampling(None)
        mine = sorted({int(self.number[0]), int(self.number[arm])})
        n = int(self.sizes.sum())
        unit = [
            width**2 * (whole / (size * n)) ** 2 / self.weight
            for whole, size in (self._most[number] for number in mine)
        ]
        noise = step_variance(self.lattice_bits)
        return Sampling(
            sum(step * released[number] for step, number in zip(unit, mine, strict=True)),
            sum(step**2 * noise for step in unit),
        )

    @cached_property
    def _most(self) -> list[tuple[int, int]]:
        """(n_c, n) of the group that moves most, for each number."""
        whole = np.broadcast_to(self.sizes.sum(axis=1, keepdims=True), self.sizes.shape)
        found = []
        for number in range(self.count):
            mine = self.used & (self.number == number)
            pairs = set(zip(whole[mine].tolist(), self.sizes[mine].tolist(), strict=True))
            # Compared exactly: a ratio that is too small would understate the loss.
            found.append(max(pairs, key=lambda pair: Fraction(*pair), default=(1, 1)))
        return found

    @cached_property
    def _scale(self) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Steps that an outcome of each group moves its number by, above and below the bar."""
        if not self.count:
            return np.zeros(self.sizes.shape, dtype=object), np.ones(self.sizes.shape, dtype=object)
        most = np.array(self._most, dtype=object)[self.number]
        n = self.sizes.astype(object)
        up = self.weight * most[:, 1] ** 2 * n.sum(axis=1, keepdims=True) ** 2
        return np.where(self.used, up, 0), most[:, 0] ** 2 * n**2
