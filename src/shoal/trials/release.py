"""A delivered release of a trial: estimates, the table to work with, the manifest."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import documents
from shoal.checks import check_confidence, different
from shoal.errors import DataError, InputError, ShoalWarning
from shoal.files import tables
from shoal.privacy.budget import Budget, show
from shoal.privacy.noise import Noise
from shoal.release import release
from shoal.release.manifest import CONFIDENCE
from shoal.trials.effects import Answers, Tabular
from shoal.trials.experiment import Experiment
from shoal.trials.plan import KINDS, Manifest, Plan, plan_of, read_model


@dataclass(frozen=True, eq=False)
class TrialDraw:
    """The draw of a plan of a trial from private outcomes."""

    plan: Plan
    study: Experiment
    outcomes: Any = field(repr=False)

    def check(self) -> None:
        """Refuse public columns other than the plan's, and the outcome as one of them."""
        study = self.study
        different({"outcome": self.outcomes}, study.given)
        if study.design.fingerprint != self.plan.design.fingerprint:
            raise DataError(
                "arms, clusters, covariates, assigned groups or names differ from the plan",
                f"give the experiment of {self.plan.design.n} units that was planned for, or plan "
                "with this one",
            )

    def draw(self, noise: Noise) -> Any:
        """Reads the outcomes and draws."""
        self.check()
        numbers = self.plan.space.numbers(self.outcomes)
        if len(numbers) != self.study.all_rows:
            raise DataError(
                "outcomes and arms differ in length",
                "give columns of the same length, with one outcome for each row of the experiment",
            )
        own = numbers[self.study.rows]
        if not np.isfinite(own).all():
            raise DataError(
                "there are missing or infinite outcomes",
                "clean the data, or leave units out with keep= (--missing public) if it is public "
                "which outcomes are missing",
            )
        return self.plan.draw(own, noise)

    def results(self, drawn: Any) -> documents.Document:
        """What was drawn, and the estimates that follow from it."""
        return self.plan.results(drawn)


@dataclass(frozen=True, eq=False)
class Release(release.Release[Plan, Any], Tabular):
    """A release of a trial, as delivered; everything in it is public.

    Source: docs/theory/experiments.md#inference; docs/theory/experiments.md#questions.

    Guarantees: G-LOSS, G-UNBIASED, G-COVERAGE.

    Example:
        >>> from shoal import trials
        >>> study = trials.Experiment([0, 1] * 1000)
        >>> plan = study.table(trials.Space.binary(), epsilon=4)
        >>> release = plan.release([0, 1, 1, 1] * 500, study)
        >>> release.table().column_names, len(release.estimate())
        (['cluster', 'arm', 'response', 'debiased'], 1)
    """

    kinds, model = KINDS, Manifest

    def _plan_of(self, document: documents.Document) -> Plan:
        return plan_of(document)

    @staticmethod
    def _loss_of(plan: Plan) -> Budget:
        exact = Budget(plan.exact_epsilon, plan.request.delta)
        return exact + Budget(plan.design.clustering_epsilon)

    @staticmethod
    def _drawn_of(plan: Plan, results: documents.Document) -> Any:
        drawn = read_model(plan.drawn_model, results["drawn"])
        plan.check_drawn(drawn)
        return drawn

    def estimate(
        self, confidence: float = CONFIDENCE, *, assigned: Any = None, unit: Any = None
    ) -> Any:
        """Effects of all arms against the control, or answers to what was asked; costs nothing.

        Where classes or villages were assigned whole, standard errors must know them: they are CR2
        by assigned group with Bell and McCaffrey's degrees of freedom. Groups are public, and of a
        table of units may be given after the release. Warns where most clusters were left out
        because an arm had nobody in them, unless `assigned` says how units were assigned.

        Source: docs/theory/experiments.md#inference; docs/theory/experiments.md#an-honest-interval.

        Args:
            confidence: Of each interval on its own; of questions and histograms 0.8 to 0.995.
            assigned: Of a table of units, the assigned group of each, shape (units,): in the rows
                of `unit`, or without it in those of `table()`. `units` says that units were
                assigned one by one, as None supposes unless the experiment has groups.
            unit: Public names of units as at the release, of the shape of `assigned`; units that
                the release does not have are left out.

        Returns:
            `Effects`, one for each arm besides the control, or `Answers`, one for each question.

        Raises:
            InputError: An unusable confidence, an arm of one group, or groups of a release that is
                no table of units.
            DataError: Columns that are not usable, or groups with units of several arms or
                clusters.

        Guarantees: G-COVERAGE, G-UNBIASED.
        """
        wanted = check_confidence(confidence)
        plan, drawn = self.plan, self.released
        if plan.kind in ("table", "cluster_prior"):
            if assigned is None:
                self._warn_of_clusters()
            return plan.read(drawn, wanted, assigned=assigned, unit=unit)
        if assigned is not None or unit is not None:
            raise InputError(
                f"the mechanism {plan.mechanism} takes no assigned groups afterwards",
                "release a table with names of units, or plan an experiment with assigned= from "
                "the start",
            )
        return plan.read(drawn, wanted)

    def regression(self, columns: str | Sequence[str], confidence: float = CONFIDENCE) -> Answers:
        """A least squares regression on columns of the experiment, from what was released: free.

        Of questions: on some of the columns of one regression that was asked for. Where groups were
        assigned whole: on any columns, of which the means of each group count.

        Source: docs/theory/experiments.md#questions.

        Args:
            columns: As in `Questions.regression`; a constant is always there.
            confidence: Of each interval on its own, from 0.8 to 0.995.

        Returns:
            One answer a coefficient.

        Raises:
            InputError: No such column, one twice, or a regression that does not follow from what
                was released.

        Guarantees: G-LOSS, G-COVERAGE.
        """
        plan: Any = self.plan
        if plan.kind != "questions":
            raise InputError(
                f"the mechanism {plan.mechanism} gives no regression",
                "regress the column debiased of table() on public columns, or ask for a "
                "regression in the plan",
            )
        found: Answers = plan.regression(self.released, columns, confidence)
        return found

    def table(self) -> pa.Table:
        """The released table, to work with.

        Of units: `cluster`, `arm`, `unit` if units have names, the `response`, and `debiased`,
        whose mean over any set of units is unbiased for the mean outcome: regress on that. Of
        histograms a share for each cluster, arm and level; of questions the answers.

        Returns:
            One row a unit, a level of a cell, or a question.
        """
        return self._part(lambda _: self.plan.table(self.released))

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            InputError: Another ending.
            DocumentError: There is a file already, the place cannot be written, or it is that of a
                ledger or of the manifest that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        tables.write(self.table(), path, self.inputs, overwrite=overwrite)

    def __repr__(self) -> str:
        kind = "simulated trial" if self.simulated else "trial"
        origin = f", {self.origin}" if self.origin else ""
        return (
            f"<{kind} of {self.plan.design.n} units, {self.plan.mechanism}, "
            f"epsilon {show(self.epsilon)}{origin}>"
        )

    def __str__(self) -> str:
        """The estimates in words and columns, and where they are recorded."""
        return "\n".join(filter(None, [str(self.estimate()), self.origin]))

    def _repr_html_(self) -> str:
        text: str = self.estimate()._repr_html_()
        return text

    def _warn_of_clusters(self) -> None:
        """Warn where clusters that were left out look like assigned groups: all public."""
        lost = self._part(lambda found: int(found["records"]["clusters_left_out"]))
        kept = len(self.plan.design.clusters)
        if lost > kept:
            warnings.warn(
                f"{lost} of {lost + kept} clusters were left out because an arm had nobody in "
                "them: were units assigned one by one? If whole clusters were assigned, release "
                "without clusters and with names of units, and give assigned= and unit=; "
                'assigned="units" says that units were assigned one by one',
                ShoalWarning,
                stacklevel=4,
            )
