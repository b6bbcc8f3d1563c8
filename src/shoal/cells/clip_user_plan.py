"""Plans by Clip-User: users suppressed where it raises no error, counts capped, uniform noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.allocation.balanced import Balanced
from shoal.cells.bounding.capping import cap_kept
from shoal.cells.bounding.suppression import clip_user
from shoal.cells.contributions.cells_left_out import CellsLeftOut
from shoal.cells.contributions.design import members
from shoal.cells.noise_allocation import finish
from shoal.cells.plan_facts import weights_of
from shoal.cells.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.bounding.statistics import Statistic
    from shoal.cells.bounding.suppression import Suppression
    from shoal.cells.contributions.base import Parameters
    from shoal.cells.plan_facts import PlanFacts, Status
    from shoal.cells.request import Request
    from shoal.data.occupancy import Counts
    from shoal.data.value_lattice import Lattice


def solve(
    occupancy: Counts,
    lattice: Lattice,
    request: Request,
    cells: NDArray[np.int64],
    status: tuple[Status, ...],
) -> PlanFacts:
    """Clip-User at a loss of epsilon/K of each cell with K as small as is found.

    Noise is the paper's, so the loss by our accounting is lower (docs/theory/clip-user.md),
    unless it is balanced by the loss of each user.
    """
    assert request.epsilon is not None
    epsilon = float(request.epsilon)
    rule, allocation = request.parts.contributions, request.parts.allocation
    assert isinstance(rule, CellsLeftOut)
    parameters, most = _Search(occupancy, request, cells, rule.spare == "best").run(epsilon)
    design = rule.design(occupancy, cells, parameters)
    queries, duals = Queries(design, request.statistics), None
    scale = queries.largest * len(request.statistics) * most / epsilon
    if isinstance(allocation, Balanced):
        shape = queries.shape(least_sum=False)
        weight = weights_of(occupancy, cells, request.weights)
        found = allocation.solve(queries.problem(weight, shape))
        scale = queries.per_statistic(shape) * found.noise_scale / epsilon
        duals = found.duals
    return finish(
        queries, lattice, request, status, request.epsilon, scale.ravel(), parameters=parameters,
        duals=duals,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Search:
    """Suppression depends on the loss of a cell, and that on how many cells a user is left in."""

    occupancy: Counts
    request: Request
    cells: NDArray[np.int64]
    spare_best: bool

    def run(self, epsilon: float) -> tuple[Parameters, int]:
        """Who is kept and the caps, and K: most cells in which a user is left.

        From epsilon over the most cells of any user, K falls as long as nobody is left in more.
        """
        most, least = int(np.bincount(self._user).max()), 1
        found = self._clip(epsilon / most)
        while least < most:
            # Fewer cells a user allow more loss a cell, which may suppress less: then try between.
            tried = max(least, min(found.most_cells, most - 1))
            answer = self._clip(epsilon / tried)
            if answer.most_cells <= tried:
                found, most = answer, tried
            else:
                least = tried + 1
        # Nobody may be left in as many cells as were allowed: then each cell may cost more.
        most = found.most_cells
        capped = cap_kept(
            self._number, self._count, found.kept, len(self.cells), self._forms, epsilon / most
        )
        return {"cap": capped.cap, "kept": found.kept.astype(np.int64)}, most

    def _clip(self, epsilon_per_cell: float) -> Suppression:
        return clip_user(
            self._user,
            self._number,
            self._count,
            self.occupancy.n_users,
            len(self.cells),
            self._forms,
            epsilon_per_cell,
            spare_best=self.spare_best,
        )

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return members(self.occupancy, self.cells)

    @property
    def _user(self) -> NDArray[np.int64]:
        return self.occupancy.user[self._members[0]]

    @property
    def _count(self) -> NDArray[np.int64]:
        return self.occupancy.count[self._members[0]]

    @property
    def _number(self) -> NDArray[np.int64]:
        return self._members[1]

    @property
    def _forms(self) -> list[Statistic]:
        return [each.in_counts for each in self.request.statistics]
