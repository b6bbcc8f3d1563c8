"""A delivered trial release: tables, effects, manifest."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks, documents
from shoal.checks import check_confidence
from shoal.data.assigned_groups import groups_of
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.errors import InputError, ShoalWarning
from shoal.files import tables
from shoal.privacy.budget import Budget, show
from shoal.release import release
from shoal.release.manifest import CONFIDENCE
from shoal.trials.effects import Effect
from shoal.trials.group_inference import check_one_by_one
from shoal.trials.stated_effects import Released, from_results, loss_of
from shoal.trials.table_release import TableRelease
from shoal.trials.trial_plan import KIND, TrialPlan
from shoal.trials.unit_release import UnitRelease

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class PrivateTrial(release.Release[TrialPlan, Released]):
    """Private outcomes of an experiment, as delivered; everything in it is public.

    Source: docs/theory/trials.md#debiased-responses; docs/theory/inference.md.

    Guarantees: G-LOSS, G-UNBIASED, G-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Space, UniformPrior
        >>> bought, arm = np.tile([0, 1, 1, 1], 500), np.tile([0, 1], 1000)
        >>> found = UniformPrior(epsilon=4).privatize(bought, arm, space=Space.binary())
        >>> found.table().column_names, found.mechanism
        (['cluster', 'arm', 'outcome', 'debiased'], 'uniform_prior')
    """

    kinds = (KIND,)

    def _plan_of(self, document: documents.Document) -> TrialPlan:
        """A plan, from its document."""
        return TrialPlan.from_document(document)

    @staticmethod
    def _loss_of(plan: TrialPlan) -> Budget:
        """The exact privacy loss of a plan."""
        return loss_of(plan)

    @staticmethod
    def _drawn_of(plan: TrialPlan, results: documents.Document) -> Released:
        """What left the mechanism, from a manifest's results."""
        return from_results(plan, results)

    @property
    def assignment(self) -> Assignment:
        """Clusters, arms and sizes."""
        return self.plan.assignment

    @property
    def space(self) -> Space:
        """Levels of the outcome."""
        return self.plan.space

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self._part(lambda _: str(self.plan.mechanism["name"]))

    @property
    def reason(self) -> str:
        """The reason for these parameters, in a sentence."""
        return self._part(lambda _: str(self.plan.mechanism["reason"]))

    def table(self) -> pa.Table:
        """The released table, to estimate from.

        Of units: `cluster`, `arm`, `unit` if units have names, the private `outcome` (of
        `BestTable` the number of its `response`), and `debiased`, whose mean over any set of units
        is unbiased for the mean outcome: regress on that. Of clusters: `cluster`, `arm`, and noisy
        differences, or a noisy share a level.

        Returns:
            One row a unit, or one a cluster or group.
        """
        return self._part(lambda _: self.released.table())

    def to_pandas(self) -> pd.DataFrame:
        """The table for pandas.

        Returns:
            One row a unit, or one a cluster or group.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return tables.to_pandas(self.table())

    def priors(self) -> pa.Table:
        """The public distributions that replaced outcomes were drawn from: one row a level.

        Returns:
            One row a level of each group.

        Raises:
            InputError: The mechanism releases no outcomes of units.
        """
        if not isinstance(self.released, UnitRelease):
            raise InputError(
                f"priors of {self.mechanism}",
                "a mechanism that draws from priors",
                "use ClusterDP, ClusterFree or UniformPrior",
            )
        released = self.released
        return self._part(lambda _: released.priors())

    def estimate(
        self,
        arm: object = None,
        confidence: float = CONFIDENCE,
        *,
        assigned: object = None,
        unit: object = None,
    ) -> Effect:
        """The effect of an arm against the control, with standard errors and intervals.

        Args:
            arm: Needed where there are several besides the control.
            confidence: Of the intervals; changing it costs nothing.
            assigned: How units were assigned: see `effects`.
            unit: Names of the units of `assigned`: see `effects`.

        Returns:
            The effect, in the outcome's unit.

        Raises:
            InputError: No such arm, several arms and none named, an unusable confidence, or as
                `effects`.
            DataError: As `effects`.

        Guarantees: G-COVERAGE, G-UNBIASED.
        """
        found = self.effects(confidence, assigned=assigned, unit=unit)
        if arm is None and len(found) == 1:
            return found[0]
        wanted = arm.item() if isinstance(arm, np.generic) else arm
        plain = isinstance(wanted, str | int | date)
        named = [each for each in found if plain and each.arm == wanted]
        if not named:
            raise InputError(
                "several arms and none named" if arm is None else f"an arm {checks.shown(arm)}",
                f"one of {', '.join(str(each.arm) for each in found)}",
                "give arm=",
            )
        return named[0]

    def effects(
        self, confidence: float = CONFIDENCE, *, assigned: object = None, unit: object = None
    ) -> tuple[Effect, ...]:
        """The effects of all arms against the control.

        Where classes or villages were assigned whole, standard errors must know them: they are CR2
        by assigned group with Bell and McCaffrey's degrees of freedom. Groups are public, and are
        given after the release: nothing is read, drawn or charged. Warns where most clusters were
        left out because an arm had nobody in them, unless `assigned` says how units were assigned.

        Source: docs/theory/inference.md#assigned-groups.

        Args:
            confidence: Of each interval on its own.
            assigned: The assigned group of each unit, of shape (units,), all units of which have
                one arm and one cluster: in the rows of `unit`, or without it in those of `table()`.
                `units` says that units were assigned one by one, within clusters, as None supposes.
            unit: Public names of units as at the release, of the shape of `assigned`; units that
                the release does not have are left out. Units without names can be in groups only
                where each arm of a cluster is one group.

        Returns:
            One effect for each arm besides the control.

        Raises:
            InputError: An unusable confidence, an arm of one group, or a release of no units.
            DataError: Columns that are not usable, or groups with units of several arms or
                clusters.

        Guarantees: G-COVERAGE.

        Example:
            >>> import numpy as np
            >>> from shoal.trials import Space, UniformPrior
            >>> name = np.arange(2000)
            >>> school, bought = name // 50, name % 3 == 0
            >>> asked = UniformPrior(epsilon=4)
            >>> found = asked.privatize(bought, school % 2, unit=name, space=Space.binary())
            >>> (effect,) = found.effects(assigned=school, unit=name)
            >>> effect.groups, round(effect.finite_population.degrees_of_freedom)
            ((20, 20), 38)
        """
        wanted, released = check_confidence(confidence), self.released
        if assigned is None or isinstance(assigned, str):
            check_one_by_one(assigned, unit)
            if assigned is None:
                self._ask()
            return self._part(lambda _: released.effects(wanted))
        if not isinstance(released, UnitRelease | TableRelease):
            raise InputError(
                f"assigned groups with {self.mechanism}",
                "a table of units, which knows how groups differ",
                "release with BestTable or UniformPrior, and names of units",
            )
        groups = groups_of(self.assignment, assigned, unit)
        return self._part(lambda _: released.effects(wanted, groups))

    def _ask(self) -> None:
        """Warn where clusters that were left out look like assigned groups: all public."""
        lost = self._part(lambda found: int(found["records"]["clusters_left_out"]))
        kept = len(self.assignment.clusters)
        if lost > kept:
            warnings.warn(
                f"{lost} of {lost + kept} clusters were left out because an arm had nobody in "
                "them: were units assigned one by one? If whole clusters were assigned, release "
                "without clusters and with names of units, and give assigned= and unit=; "
                'assigned="units" says that units were assigned one by one',
                ShoalWarning,
                stacklevel=4,
            )

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            InputError: Another ending.
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the manifest that was loaded, which is never replaced.

        Guarantees: G-REFUSE.
        """
        tables.write(self.table(), path, self.inputs, overwrite=overwrite)

    def __repr__(self) -> str:
        """One line."""
        kind = "simulated trial" if self.simulated else "trial"
        origin = f", {self.origin}" if self.origin else ""
        return (
            f"<{kind} of {self.assignment.n} units, {self.mechanism}, "
            f"epsilon {show(self.epsilon)}{origin}>"
        )
