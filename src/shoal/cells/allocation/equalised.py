"""One worst-case error for all cells, as small as the total loss allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation.base import SharedNoise
from shoal.cells.allocation_problem import Allocation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.allocation_problem import Problem


@dataclass(frozen=True)
class Equalised(SharedNoise):
    """One worst-case error for all cells (docs/theory/equalised.md)."""

    title = "equalised"
    levels = True
    weighs = False

    def solve(self, problem: Problem) -> Allocation:
        """See `equalised.solve`."""
        return solve(problem)


def solve(problem: Problem) -> Allocation:
    """B = max_l sum_g Delta_gl in every cell (docs/theory/equalised.md): closed form, exact."""
    common = float(problem.loss(np.ones(problem.n_numbers)).max())
    return Allocation(noise_scale=np.full(problem.n_numbers, common))


def to_leave_out(problem: Problem, most: float) -> NDArray[np.int64]:
    """Numbers to give up, one by one, until the common error over the width is below `most`.

    All numbers share the error of the user with the largest loss, so each time the one in which
    that user weighs most is given up.

    Args:
        problem: Sensitivities.
        most: Largest loss that a user may have at unit noise.
    """
    loss = problem.loss(np.ones(problem.n_numbers))
    rows, columns = problem.by_user.copy(), problem.by_number
    given_up: list[int] = []
    while len(given_up) < problem.n_numbers and loss.max() >= most:
        largest_loss = int(loss.argmax())
        of_user = slice(rows.indptr[largest_loss], rows.indptr[largest_loss + 1])
        weight = np.where(np.isin(rows.indices[of_user], given_up), 0, rows.data[of_user])
        number = int(rows.indices[of_user][weight.argmax()])
        given_up.append(number)
        of_number = slice(columns.indptr[number], columns.indptr[number + 1])
        loss[columns.indices[of_number]] -= columns.data[of_number]
    return np.array(given_up)
