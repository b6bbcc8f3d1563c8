"""Effects where whole groups were assigned: CR2 by group, Bell and McCaffrey's degrees.

Source: docs/theory/inference.md#assigned-groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.data.assigned_groups import AssignedGroups
from shoal.data.assignment import Assignment
from shoal.errors import InputError, printable
from shoal.trials.effects import Effect
from shoal.trials.inference import ROUNDING, UNKNOWN, effects_of, known
from shoal.trials.spread import Spread

Floats = NDArray[np.float64]
UNITS = "units"
# With fewer groups in an arm, or fewer degrees of freedom, no standard error is reliable.
FEWEST_GROUPS, FEWEST_DEGREES = 10, 8.5
# What regressors fit exactly has no residuals.
_FITTED = 1e-9
_THESE_UNITS = (
    "The effect on these units, over the assignment of whole groups and the mechanism; also the "
    "effect in the populations of these clusters, if their groups were drawn from them."
)
_ONE_CLUSTER = "The effect in a population that the assigned groups were drawn from."


def effects_of_groups(
    assignment: Assignment,
    groups: AssignedGroups,
    moments: tuple[Floats, Floats],
    above: Floats,
    confidence: float,
) -> list[Effect]:
    """Every arm against control, with standard errors of an assignment of whole groups.

    Values are those of `effects_of`. Their variance is CR2 by assigned group: residuals of a
    regression on arms, with dummies of clusters absorbed. With several clusters the population that
    these were drawn from is told by how their effects differ, as for units assigned one by one.

    Source: Bell and McCaffrey (2002); Pustejovsky and Tipton (2018);
    docs/theory/inference.md#assigned-groups.

    Args:
        assignment: Clusters, arms, sizes.
        groups: Which group each unit is in.
        moments: Mean and variance of debiased outcomes, clusters x arms each.
        above: Debiased outcome of each unit above a public number, in the outcome's unit.
        confidence: Of every interval on its own.

    Raises:
        InputError: As for `effects_of`.

    Guarantees: G-COVERAGE.
    """
    mean, spread = moments
    sums = np.bincount(groups.unit, above).astype(np.float64)
    fit, sizes = GroupFit.of(groups, assignment.sizes, sums), assignment.sizes
    weight = sizes.sum(axis=1) / sizes.sum()
    squares = mean**2 + np.nan_to_num(spread)
    apart = within_clusters(groups, sizes, sums)
    found = []
    for arm, effect in enumerate(effects_of(assignment, mean, spread, confidence=confidence), 1):
        spread_of_it = fit.spread(contrast(groups, sizes, arm))
        tiny = ROUNDING * float(weight**2 @ squares[:, [arm, 0]].sum(axis=1))
        here = known(effect.value, spread_of_it, tiny, confidence, _THESE_UNITS)
        there = effect.super_population
        if len(sizes) == 1:
            there = known(effect.value, spread_of_it, tiny, confidence, _ONE_CLUSTER)
        error = np.sqrt(apart[:, arm] + apart[:, 0])
        many = int(groups.of_arms[arm]), int(groups.of_arms[0])
        found.append(
            replace(
                effect,
                finite_population=here,
                super_population=there,
                clusters=replace(effect.clusters, standard_error=error),
                groups=many,
            )
        )
    return found


def contrast(groups: AssignedGroups, sizes: NDArray[np.int64], arm: int) -> Floats:
    """Weight of the units of each group in the effect of an arm: +-(n_c/n)/n_{c,a}, 0 for others.

    Args:
        groups: Which group each unit is in.
        sizes: Units, clusters x arms.
        arm: Number of the arm.
    """
    share = sizes.sum(axis=1) / sizes.sum()
    sign = np.where(groups.arm == arm, 1.0, np.where(groups.arm == 0, -1.0, 0.0))
    return np.asarray(sign * share[groups.cluster] / sizes[groups.cluster, groups.arm])


@dataclass(frozen=True, eq=False)
class GroupFit:
    """Residuals of groups in a regression on arms and clusters, both constant within groups.

    With H = X (X'X)^-1 X' a unit of group g has the leverage h_g = 1/n_c + |z_g|^2, z the dummies
    of arms less their means in the cluster, orthonormal. All w and x are constant within a group,
    so that w_g' (I - H_gg)^(-1/2) e_g = w_g (1 - m_g h_g)^(-1/2) times the sum of its
    residuals.

    Attributes:
        sizes: m, units of each group, shape (groups,).
        cluster: Of each group, shape (groups,).
        units: n_c of each group's cluster, shape (groups,).
        dummies: z, shape (groups, arms - 1).
        left: Sums of residuals, in the outcome's unit, shape (groups,).
    """

    sizes: Floats
    cluster: NDArray[np.int64]
    units: Floats
    dummies: Floats
    left: Floats

    @classmethod
    def of(cls, groups: AssignedGroups, sizes: NDArray[np.int64], sums: Floats) -> GroupFit:
        """The regression of sums of groups.

        Args:
            groups: Which group each unit is in.
            sizes: Units, clusters x arms.
            sums: Of debiased outcomes, shape (groups,).
        """
        many, total = groups.sizes.astype(np.float64), sizes.sum(axis=1)
        units = total[groups.cluster].astype(np.float64)
        dummies = (groups.arm[:, None] == np.arange(1, groups.arms)).astype(np.float64)
        dummies -= (sizes[:, 1:] / total[:, None])[groups.cluster]
        gram = (dummies * many[:, None]).T @ dummies
        dummies = np.linalg.solve(np.linalg.cholesky(gram), dummies.T).T
        mean = (np.bincount(groups.cluster, sums) / total)[groups.cluster]
        left = sums - many * (mean + dummies @ (dummies.T @ sums))
        return cls(many, groups.cluster, units, dummies, left)

    def spread(self, weights: Floats) -> Spread:
        """CR2 of the sum over groups of w_g times their sums, and its degrees of freedom.

        V = sum_g a_g^2 (sum of residuals)^2, a_g = w_g (1 - m_g h_g)^(-1/2), and for
        independent outcomes of one variance (tr BB')^2/tr (BB')^2 degrees, where BB' is
        a_g a_k (m_g [g = k] - m_g m_k H_gk): a diagonal, one rank a cluster, one an arm.

        Args:
            weights: w, of each unit of a group, shape (groups,).
        """
        leverage = 1 / self.units + (self.dummies**2).sum(axis=1)
        rest = 1 - self.sizes * leverage
        scale = np.where(rest > _FITTED, weights / np.sqrt(np.maximum(rest, _FITTED)), 0.0)
        variance = float(((scale * self.left) ** 2).sum())
        main, part = scale**2 * self.sizes, scale * self.sizes
        common = part**2 / self.units
        ranks = part[:, None] * self.dummies
        own = (ranks**2).sum(axis=1)
        trace = float((main - common - own).sum())
        # |D - S - YY'|^2 of the diagonal D, the clusters' S and the arms' Y.
        square = float(main @ main) - 2 * float(main @ (common + own))
        total = np.bincount(self.cluster, part**2) ** 2
        size = np.bincount(self.cluster, self.units) / np.bincount(self.cluster)
        square += float((total / size**2).sum()) + float(((ranks.T @ ranks) ** 2).sum())
        for each in ranks.T:
            both = np.bincount(self.cluster, part * each)
            square += 2 * float((both**2 / size).sum())
        degrees = trace**2 / square if square > 0 else math.nan
        return Spread(variance, degrees) if trace > 0 else UNKNOWN


def within_clusters(groups: AssignedGroups, sizes: NDArray[np.int64], sums: Floats) -> Floats:
    """Variance of the mean of each cell from its groups alone; NaN for one group.

    CR2 of a mean: sum of m_g^2 (mean of the group - mean of the cell)^2/(1 - m_g/n_{c,a}) over
    n_{c,a}^2.

    Args:
        groups: Which group each unit is in.
        sizes: Units, clusters x arms.
        sums: Of debiased outcomes, shape (groups,).

    Returns:
        In the outcome's squared unit, clusters x arms.
    """
    cell = groups.cluster * groups.arms + groups.arm
    units = sizes.ravel().astype(np.float64)
    mean = np.bincount(cell, sums) / units
    left, rest = sums - groups.sizes * mean[cell], 1 - groups.sizes / units[cell]
    part = np.zeros(len(cell))
    np.divide(left**2, rest, out=part, where=rest > 0)
    found = np.bincount(cell, part) / units**2
    return np.where(np.bincount(cell) > 1, found, np.nan).reshape(sizes.shape)


def check_one_by_one(assigned: str | None, unit: object) -> None:
    """Refuse other texts than `units`, and names of units without groups.

    Args:
        assigned: `units`, or None.
        unit: None.

    Raises:
        InputError: Something else.
    """
    if assigned not in (None, UNITS):
        raise InputError(
            f"assigned={checks.shown(assigned)}",
            f"{UNITS!r}, or a column with the assigned group of each unit",
            "give the column itself, not its name",
        )
    if unit is not None:
        raise InputError("names of units without groups", "both or none", "give assigned= as well")


def warned_of_groups(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects, with a warning where few groups were assigned.

    Args:
        effects: With how many groups were assigned; other warnings are kept.

    Guarantees: G-COVERAGE.
    """
    return tuple(_warned(each) for each in effects)


def _warned(effect: Effect) -> Effect:
    many, degrees = effect.groups or (0, 0), effect.finite_population.degrees_of_freedom
    least = min(many)
    if least >= FEWEST_GROUPS and not degrees < FEWEST_DEGREES:
        return effect
    name = printable(str((effect.arm, effect.control)[many.index(least)]))
    known_with = "" if math.isnan(degrees) else f", and {degrees:.3g} degrees of freedom"
    told = (
        f"{least} assigned groups in arm {name}{known_with}: with fewer "
        f"than about {FEWEST_GROUPS} groups in an arm, or groups of very unlike sizes, no standard "
        "error is reliable"
    )
    return replace(effect, warning="; ".join(filter(None, [effect.warning, told])))
