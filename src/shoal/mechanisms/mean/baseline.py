"""The baseline mean: every record counts, and the noise fits the heaviest contribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.theory import sensitivity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.mechanisms.noise import Noise
    from shoal.records.aggregate import Aggregate
    from shoal.records.lattice import Lattice
    from shoal.records.occupancy import Occupancy


@dataclass(frozen=True)
class BaselineMean:
    """Mean of all records of each cell plus Laplace noise on the cell's own lattice.

    Everything is relative to the width U: a released number is x b/2^j with a whole x.

    Formal guarantee: user l loses sum_g ceil((m_gl/n_g) 2^j / b_g) / 2^j (Theory 2, section 1),
    whatever the values, and nothing but the values of one user differs between neighbours.

    Attributes:
        lattice: Bounds and ticks of the values.
    """

    lattice: Lattice

    @property
    def statistic(self) -> str:
        """The name of what is released."""
        return "mean"

    def plan(self, occupancy: Occupancy) -> NDArray[np.float64]:
        """Sensitivity of each membership over the width: m/n, rounded upwards."""
        return sensitivity.mean(occupancy.count, occupancy.totals[occupancy.cell])

    def bias_bound(self, noise_scale: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
        """Most that rounding to ticks and to lattice steps moves a mean, over the width."""
        return float(self.lattice.rounding) + noise_scale * 2.0 ** -(bits + 1)

    def loss(
        self, occupancy: Occupancy, noise_scale: NDArray[np.float64], bits: int
    ) -> NDArray[np.int64]:
        """Loss of each membership in units of 2^-bits.

        Args:
            occupancy: The memberships.
            noise_scale: b over U for every cell; infinite where the cell is left out.
            bits: j, the lattice bits.
        """
        counts, totals = occupancy.count, occupancy.totals[occupancy.cell]
        return sensitivity.mean_steps(counts, totals, noise_scale[occupancy.cell], bits)

    def release(
        self,
        aggregate: Aggregate,
        cells: NDArray[np.int64],
        noise_scale: NDArray[np.float64],
        bits: int,
        noise: Noise,
    ) -> list[int]:
        """Noisy lattice numbers of the named cells, one whole number each.

        Args:
            aggregate: Private sums.
            cells: Which cells.
            noise_scale: b over U of each of them.
            bits: j, the lattice bits.
            noise: The source of randomness.
        """
        sums, totals = aggregate.cell_sums(), aggregate.occupancy.totals.tolist()
        exact = [
            to_steps(sums[g], totals[g] << self.lattice.bits, scale, bits)
            for g, scale in zip(cells.tolist(), noise_scale.tolist(), strict=True)
        ]
        return noise.add_laplace(exact, bits)

    def value(self, steps: int, noise_scale: float, bits: int) -> float:
        """What a lattice number x stands for: lo + U x b/2^j, rounded once."""
        up, down = noise_scale.as_integer_ratio()
        return self.lattice.value(steps * up, down << bits)


def to_steps(total: int, most: int, noise_scale: float, bits: int) -> int:
    """The share total/most in lattice steps b/2^j, rounded to the nearest, halves upwards.

    Exact integer arithmetic: non-decreasing in the total, and a shift by whole steps shifts it.

    Example:
        >>> to_steps(1, 4, 0.5, 3), to_steps(5, 32, 1.0, 3)
        (4, 1)
    """
    up, down = noise_scale.as_integer_ratio()
    numerator, denominator = (total << bits) * down, most * up
    return (2 * numerator + denominator) // (2 * denominator)
