"""How far a plan can be from the best one of its family: what its dual variables prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cells.lp.error_model import Family
from shoal.cells.lp.problem import TargetProblem
from shoal.cells.queries import PAIR
from shoal.cells.statistics.base import Linear
from shoal.cells.statistics.variance import Variance
from shoal.cells.weighed_users import Weighed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal.cells.contributions.base import Parameters
    from shoal.cells.queries import Queries
    from shoal.cells.statistics.base import Statistic

    Floats = NDArray[np.float64]


def family_of(problem: TargetProblem, statistics: tuple[Statistic, ...]) -> Family:
    """The family of plans that release these statistics."""
    linear = sum(isinstance(each, Linear) for each in statistics)
    return Family(
        problem,
        linear,
        variance=Variance() in statistics,
        paired=set(PAIR) <= set(statistics),
    )


def factor(weighed: Weighed, scale: Floats) -> float:
    """S of a plan: the largest error over its target, without roundings.

    Args:
        weighed: Weights and targets.
        scale: Of the noise of each number, over its range.
    """
    return float((weighed.error(scale) / weighed.targets).max())


def optimal_gap(
    queries: Queries,
    parameters: Parameters,
    targets: Floats,
    duals: Floats,
    scale: Floats,
    loss: float,
) -> float:
    """How far the factor can be above that of the best plan of the family, at the noise's loss.

    0.01 means that no plan which weighs users, adds Laplace noise and loses as much has errors
    below the plan's over 1.01 in all cells.

    Args:
        queries: What is released of every cell.
        parameters: Weights of users, as whole numbers.
        targets: Relative error of each released cell, up to a common factor.
        duals: Dual variables, one a user.
        scale: Of the noise of each number, over its range.
        loss: What of epsilon is for the noise.
    """
    design, own = queries.design, factor(Weighed(queries, parameters, targets), scale)
    problem = TargetProblem(
        design.user, design.number, design.share, design.occupancy.n_users, len(design.cells),
        targets,
    )  # fmt: skip
    low = family_of(problem, queries.statistics).least(duals, loss, own)
    return own / low - 1 if low > 0 else float("inf")
