"""The paper's plan: the same privacy loss in every cell, charged as if one user led them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.cells.allocation.base import SharedNoise
from shoal.cells.allocation_problem import Allocation

if TYPE_CHECKING:
    from shoal.cells.allocation_problem import Problem


@dataclass(frozen=True)
class Uniform(SharedNoise):
    """The same loss in every cell, as if one user led them all (paper 000, Corollary II.1)."""

    title = "uniform"
    weighs = False

    def solve(self, problem: Problem) -> Allocation:
        """See `uniform.solve`."""
        return solve(problem)


def solve(problem: Problem) -> Allocation:
    """Loss 1/G_1 in every cell: b_g = G_1 max_l Delta_gl (paper 000, Corollary II.1).

    The paper charges G_1 times the loss of a cell; the true loss, user by user, is lower. With a
    delta, plans scale the noise to the true loss (`noise_allocation`).
    """
    return Allocation(noise_scale=problem.most_numbers * problem.largest)
