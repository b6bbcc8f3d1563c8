"""Plans trials and releases them: estimates, the table and the manifest.

A plan holds the request, the public design and what was chosen: loss and text follow from these.
"""

import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from pydantic import Field

from shoal import documents
from shoal.arrays import Floats
from shoal.checks import check_confidence
from shoal.data.columns_in_memory import paired
from shoal.documents.model import Model, checked
from shoal.errors import DataError, InputError, ShoalWarning, printable
from shoal.files.text_table import counted
from shoal.privacy.accounting import Stated, Step, account
from shoal.privacy.budget import Amount, Budget, check_epsilon, show
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.release import envelope, release
from shoal.release import plan as plans
from shoal.release.columns import check_column, check_rows, is_unit
from shoal.release.envelope import CONFIDENCE, FEWEST_ALIKE, Text
from shoal.release.plan import ANSWERING, OF_LOG, Source
from shoal.trials.design import AS_TEXT, CLUSTER, Design
from shoal.trials.domain import Domain
from shoal.trials.results import Answers, Effects
from shoal.trials.units import Units

# Smaller deltas may be below all floating-point numbers.
_LEAST_DELTA = Fraction(1, 10**100)
Kind = Literal["table", "cluster_prior", "histogram", "questions", "ratios", "bounds"]
KINDS = get_args(Kind)


def check_delta(delta: Amount) -> Fraction:
    """Returns the exact delta that is asked for."""
    found = Budget.total(1, delta).delta
    if 0 < found < _LEAST_DELTA:
        raise InputError("delta is above 0 and below 1e-100", "give 0 or for example 1e-9")
    return found


class Request(Model):
    """The request to a trial whose columns are public."""

    domain: Domain
    epsilon: Annotated[Fraction, checked(check_epsilon), AS_TEXT]
    delta: Annotated[Fraction, checked(check_delta), AS_TEXT] = Fraction(0)


class Claims(plans.Claims):
    """The loss of a plan for readers; a table also has its variance and a lower bound of it."""

    variance: float | None = None
    bound: float | None = None


class PlanDocument(plans.PlanDocument):
    """A plan of a trial."""

    schema_: Literal["shoal.trial-plan/4"] = Field(default="shoal.trial-plan/4", alias="schema")
    kind: Kind
    request: dict[str, Any]
    design: Design
    chosen: dict[str, Any]
    source: Source | None = None
    claims: Claims


class RecordsPart(Model):
    """The name of the private column, and the number of clusters that were left out."""

    outcome: Text
    clusters_left_out: int


class Results(Model):
    """The whole numbers that were drawn, and the estimates that follow from them."""

    drawn: dict[str, Any]
    estimates: tuple[Any, ...]


class Record(envelope.Record):
    """The record of a release of a trial: all that is known of it."""

    kind: Kind
    records: RecordsPart
    plan: PlanDocument
    results: Results


class Published(envelope.Published):
    """Effects or answers of a trial, and how many units there are.

    Units have no names here. If there are many units of each kind, the manifest holds the plan and
    what was drawn; else estimates alone, and no effects of single clusters.
    """

    mechanism: Text
    units: int
    clusters: int
    arms: tuple[Text, ...]
    estimates: tuple[dict[str, Any], ...]
    head: Text
    warnings: tuple[Text, ...]
    plan: dict[str, Any] | None
    results: dict[str, Any] | None

    stated: ClassVar[str] = "effects and answers with their errors"

    def found(self) -> Effects | Answers:
        """The estimates of a manifest without the plan."""
        if self.head:
            return Answers.of_documents(self.estimates, self.head, self.warnings)
        return Effects.of_documents(self.estimates)


class Manifest(envelope.Manifest):
    """The manifest of a release of a trial: the part of it that everybody may have."""

    kind: Kind
    records: RecordsPart
    results: Published


class Private(NamedTuple):
    """Private outcomes, and the experiment whose rows they belong to."""

    study: Units
    outcomes: Any


@dataclass(frozen=True, eq=False)
class Plan(plans.Plan[Private, Any]):
    """A plan of a trial that can be carried out. Make one with a method of `trials.Experiment`.

    Attributes:
        request: What was asked.
        design: The public columns: kinds of units, clusters, arms.
        chosen: The whole numbers that planning found.
        source: Columns of the file that the plan is for, if there is one.

    Guarantees: G-LOSS.

    Example:
        >>> from shoal import trials
        >>> plan = trials.Experiment([0, 1] * 500).table(trials.Domain.binary(), epsilon=1)
        >>> plan.epsilon <= 1, plan.delta
        (True, 0.0)
    """

    request: Request
    design: Design
    chosen: Any
    source: Source | None = None

    # The class of each kind of plan; classes enter themselves.
    kinds: ClassVar[dict[str, "type[Plan]"]] = {}
    family = "trial"
    kind: ClassVar[Any]
    document_model = PlanDocument
    claims_model = Claims
    record_model = Record
    manifest_model = Manifest
    privacy = "label differential privacy"
    request_model: ClassVar[type[Request]] = Request
    chosen_model: ClassVar[type[Model]]
    drawn_model: ClassVar[type[Model]]

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Plan.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def own_steps(self) -> Sequence[Step]:
        """Steps of the mechanism for the accountant; a LookupError if the choice is impossible."""

    @property
    def steps(self) -> list[Step]:
        """Steps of the mechanism, and the loss of making the clusters."""
        return [*self.own_steps, Stated(self.design.clustering_epsilon)]

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The exact loss of one outcome, without that of making the clusters."""
        return account(self.own_steps, self.request.delta).epsilon

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return str(self.kind)

    @abstractmethod
    def respond(self, outcomes: Any, noise: Noise) -> Any:
        """Draws the release from private outcomes in the design's order."""

    @abstractmethod
    def read(self, drawn: Any, confidence: float, **options: Any) -> Any:
        """Returns the estimates that follow from drawn numbers."""

    @abstractmethod
    def table(self, drawn: Any, confidence: float) -> pa.Table:
        """Returns drawn numbers as a table, or answers with intervals."""

    def results(self, drawn: Any) -> documents.Document:
        """Returns drawn numbers, and the estimates that follow from them."""
        found = [each.to_document() for each in self.read(drawn, CONFIDENCE)]
        return {"drawn": drawn.to_document(), "estimates": found}

    @abstractmethod
    def check_drawn(self, drawn: Any) -> None:
        """Raise a ValueError unless there are as many drawn numbers as the plan draws."""

    def answers_head(self, many: int) -> str:
        """Returns the first line of answers: of a log also what the outcome of a user is."""
        control = printable(self.design.arm_names[0])
        of = ""
        if self.source is not None and self.source.of_log:
            ends = [f"{each.levels[0]:g} to {each.levels[-1]:g}" for each in self.domains]
            of = f" on {printable(self.source.outcome)} within {' and '.join(ends)}"
        return (
            f"{counted(many, 'answer')}{of}, epsilon {show(self.loss.epsilon)}; control: {control}"
        )

    def _head(self, what: str) -> str:
        """Returns the first lines of a plan's text: the request, and what is protected."""
        delta = f", delta {show(self.loss.delta)}" if self.loss.delta else ""
        epsilon = show(self.loss.epsilon)
        control = printable(self.design.arm_names[0])
        whose = "outcome"
        if self.source is not None and self.source.of_log:
            whose = printable(self.source.protects)
        return (
            f"{what} of {self.design}, epsilon {epsilon}{delta} for one {whose}, against control "
            f"{control!r}\nprotected: {self.protected}"
        )

    @property
    def protected(self) -> str:
        """The line that says what is protected."""
        source = self.source
        if source is None or not source.user:
            return "the outcome of one unit; its cluster, arm and covariates are public"
        named = [source.arm, source.cluster, source.assigned]
        named += [each.name for each in self.design.covariates]
        public = ", ".join(printable(each) for each in ["who takes part", *filter(None, named)])
        if source.of_log:
            return f"all rows of one {source.protects}, and how many; public: {public}"
        whose = source.protects or "row"
        found = f"the outcome of one {whose}; public: {public}"
        if not source.tells_users:
            found += f"; declared, not checked: each row is another {whose}"
        return found

    @property
    def neighbours(self) -> str:
        """What neighbouring data sets differ in, in words."""
        if self.source is None or not self.source.of_log:
            return "one unit's outcome changes; its cluster, treatment and covariates are public"
        return OF_LOG

    @cached_property
    def loss(self) -> Budget:
        """The stated privacy loss of one outcome, with that of making the clusters."""
        asked = self.request
        exact = Budget(self.exact_epsilon, asked.delta)
        stated = Budget.stated(exact, asked.epsilon, asked.delta)
        return stated + Budget(self.design.clustering_epsilon)

    @property
    def domain(self) -> Domain:
        """Levels of the outcome."""
        return self.request.domain

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Levels of every private column."""
        return (self.domain,)

    def __repr__(self) -> str:
        return f"<plan of {self.mechanism}, {self.design.n} units, epsilon {show(self.epsilon)}>"

    @np.errstate(all="ignore")
    def release(
        self,
        outcomes: Any,
        study: Units,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        outcome_name: str = "",
        privacy_unit: str = "",
        noise: Simulated | None = None,
    ) -> "Release":
        """Reads the outcomes once, draws, records result and charge, and delivers.

        If plan, outcome and name are the same again, the recorded bytes are delivered, with a note,
        at no cost.

        Args:
            outcomes: One outcome for each row of the experiment, shape (rows,). Private.
            study: The experiment that was planned for, with the rows of the outcomes, because a
                plan keeps no order of rows.
            ledger: The data set's ledger, or its path.
            name: A name of the release, such as a period: another name draws, and costs, again.
            outcome_name: The outcome's name, needed with a ledger unless the plan has it: two
                outcomes of the same units are two questions.
            privacy_unit: A word for a unit, such as "person"; needed with a ledger if units have
                names. Without both, each row is protected by itself. Of rows without names it
                declares that each is another person, which is not checked.
            noise: `shoal.Simulated(seed)` for studies: marked and not private.

        Returns:
            Estimates, the table to work with, and the manifest.

        Raises:
            InputError: An argument that is not usable, or the outcome in a public role.
            DataError: Public columns other than the plan's, or outcomes that are not usable; the
                message says nothing about the outcomes.
            BudgetError: The charge does not fit the ledger.
            LedgerError: The ledger cannot be read or written.

        Guarantees: G-LOSS, G-LEDGER, G-ROWS, G-REFUSE.
        """
        plan = self._of_study(study)
        outcome_name = plan.called(outcome_name)
        source = plan.source
        tells_users = False
        if source is not None:
            privacy_unit = privacy_unit or source.protects
            check_rows(source, privacy_unit)
            study.check_unit(privacy_unit)
            outcome_name = source.outcome
            tells_users = source.tells_users
        plan._check_unit(privacy_unit)
        unit = unit_of_values(
            privacy_unit,
            several=tells_users or self.design.units is not None,
            recorded=ledger is not None,
            unnamed="" if outcome_name else "outcome_name",
        )
        records = {"outcome": printed_text(outcome_name), "clusters_left_out": study.left_out}
        private = Private(study, outcomes)
        done = plan.deliver(private, records, unit, name=name, ledger=ledger, noise=noise)
        return Release.delivered(done, plan, ledger)

    def _of_study(self, study: Units) -> "Plan":
        """Returns the plan for the columns that a study was read from, if it was."""
        if study.source is None:
            return self
        if self.source is None:
            return self.with_source(study.source)
        if self.source.outcome != study.source.outcome:
            raise DataError(
                f"the outcomes are {study.source.outcome!r}, and the plan is for "
                f"{self.source.outcome!r}",
                "read the outcomes that the plan is for, or plan again",
            )
        return self

    def _check_unit(self, privacy_unit: str) -> None:
        """Refuse a privacy unit that is a public column in which several units share a value."""
        design = self.design
        source = self.source
        columns = {each.name: each.codes for each in design.covariates}
        # Without a file, columns are called by their roles.
        columns[(source and source.cluster) or CLUSTER] = design.cluster
        if design.group is not None:
            columns[(source and source.assigned) or "assigned"] = design.group
        for name, codes in columns.items():
            if is_unit(name, privacy_unit):
                check_column(name, codes[design.kind_of_unit], None)

    def check(self, private: Private) -> None:
        """Refuse public columns other than the plan's, and the outcome as one of them."""
        study = private.study
        paired(self.columns_of(private.outcomes), study.given)
        if study.design.fingerprint != self.design.fingerprint:
            raise DataError(
                "arms, clusters, covariates, assigned groups or names differ from those planned",
                f"give the experiment of {self.design.n} units that was planned for, or plan "
                "with this one",
            )

    def columns_of(self, outcomes: Any) -> dict[str, Any]:
        """Returns the private columns by their roles."""
        return {"outcome": outcomes}

    def ordered(self, private: Private) -> Any:
        """Returns the outcomes in the design's order."""
        return in_order(private.outcomes, self.domain, private.study)

    def draw(self, private: Private, noise: Noise) -> Any:
        """Reads the outcomes and draws."""
        self.check(private)
        return self.respond(self.ordered(private), noise)

    def published(self, drawn: Any) -> Published:
        """Returns what is published of drawn numbers, without names of units.

        If there are many units of each kind, this is the plan and the drawn numbers, from which
        estimates follow; else it is the estimates that rest on enough units.
        """
        design = self.design
        estimates = self.read(drawn, CONFIDENCE)
        shown = list[documents.Document]()
        # Effects have their warnings themselves, answers have them together.
        warned = [*getattr(estimates, "warnings", ())]
        plan = None
        results = None
        all_alike = int(design.many.min()) >= FEWEST_ALIKE
        if all_alike and (design.group is None or self.kind in ANSWERING):
            nameless = replace(self, design=design.model_copy(update={"units": None}))
            plan = nameless.to_document()
            del plan["audience"]
            results = nameless.results(self.nameless(drawn))
        else:
            for estimate, units in zip(estimates, self.effective_units.tolist(), strict=True):
                if units >= FEWEST_ALIKE:
                    document = estimate.to_document()
                    if "clusters" in document:
                        # Effects of clusters may be about a few units.
                        document["clusters"] = None
                    shown.append(document)
            left_out = len(estimates) - len(shown)
            if left_out:
                # Sentences may name what is left out.
                warned = [
                    f"{left_out} of {len(estimates)} estimates rest on fewer than {FEWEST_ALIKE} "
                    "units and are left out"
                ]
        arms = zip(design.arm_names, design.sizes.sum(axis=0).tolist(), strict=True)
        return Published(
            mechanism=self.mechanism,
            units=design.n,
            clusters=len(design.clusters),
            arms=tuple(name for name, units in arms if units >= FEWEST_ALIKE),
            estimates=tuple(shown),
            head=getattr(estimates, "head", ""),
            warnings=tuple(warned),
            plan=plan,
            results=results,
        )

    @property
    def effective_units(self) -> Floats:
        """How many units of equal weight each estimate rests on, shape (estimates,)."""
        units = self.design.sizes.sum(axis=0).astype(np.float64)
        return np.asarray(np.minimum(units[1:], units[0]))

    def nameless(self, drawn: Any) -> Any:
        """Returns drawn numbers without those of single units."""
        return drawn

    def drawn_of(self, results: documents.Document) -> Any:
        """Returns the drawn numbers of a manifest's results."""
        drawn = read_model(self.drawn_model, results["drawn"])
        self.check_drawn(drawn)
        return drawn

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the plan's document: kind, request, design, choice and source."""
        return {
            "request": self.request.to_document(),
            "chosen": self.chosen.to_document(),
            "kind": self.kind,
            "design": self.design,
            "source": self.source,
        }

    @property
    def asked(self) -> documents.Document:
        """The request and the fingerprint of public columns."""
        return {"request": self.request.to_document(), "design": self.design.fingerprint}

    @property
    def size(self) -> float:
        """The width of the outcome's range or its square, whichever is larger."""
        return max(self.domain.width, self.domain.width**2)

    @classmethod
    def kinds_of(cls) -> tuple[str, ...]:
        """All kinds of plans of trials."""
        return KINDS

    @classmethod
    def of_document(cls, document: Any) -> "Plan":
        """Returns the plan of a document, and refuses one that loses more than was asked."""
        home = cls.kinds[document.kind]
        request = read_model(home.request_model, document.request)
        chosen = read_model(home.chosen_model, document.chosen)
        found = home(request, document.design, chosen, document.source)
        if found.exact_epsilon > request.epsilon:
            raise LookupError
        return found


def in_order(outcomes: Any, domain: Domain, study: Units, *, may_lack: bool = False) -> Floats:
    """Returns an outcome of units in the design's order, and refuses missing ones if none may be.

    Infinite outcomes are moved to the ends of the domain, as are all that lie outside.
    """
    numbers = domain.numbers(outcomes)
    if len(numbers) != study.all_rows:
        raise DataError(
            "outcomes and arms differ in length",
            "give columns of the same length, with one outcome for each row of the experiment",
        )
    ordered = np.clip(numbers[study.rows], domain.levels[0], domain.levels[-1])
    if np.isnan(ordered).any() and not may_lack:
        raise DataError(
            "there are missing outcomes",
            "clean the data; or plan again with what a missing one counts as, missing_value= "
            '(--missing-value), with bounds, missing="worst" (--missing worst), or without these '
            'units if it is public who they are, missing="public" (--missing public; of arrays '
            "keep=)",
        )
    return np.asarray(ordered)


def read_model(model: type[Model], document: documents.Document) -> Any:
    """Returns a part of a document as its model."""
    return model.model_validate_json(documents.canonical_bytes(document))


@dataclass(frozen=True, eq=False)
class Release(release.TableRelease[Plan, Any]):
    """A release of a trial, as delivered; everything in it is public.

    Source: docs/theory/experiments.md#inference; docs/theory/experiments.md#questions.

    Guarantees: G-LOSS, G-UNBIASED, G-COVERAGE.

    Example:
        >>> from shoal import trials
        >>> study = trials.Experiment([0, 1] * 1000)
        >>> plan = study.table(trials.Domain.binary(), epsilon=4)
        >>> release = plan.release([0, 1, 1, 1] * 500, study)
        >>> release.table().column_names, len(release.estimate())
        (['cluster', 'arm', 'response', 'debiased'], 1)
    """

    plan_model = Plan

    def estimate(
        self, confidence: float = CONFIDENCE, *, assigned: Any = None, unit: Any = None
    ) -> Any:
        """Effects of all arms against the control, or answers to questions; this costs nothing.

        If classes or villages were assigned whole, standard errors must know them: they are CR2 by
        assigned group with Bell and McCaffrey's degrees of freedom. Groups are public; for a table
        of units they may be given after the release. A warning is given if most clusters were left
        out because an arm had nobody in them, unless `assigned` says how units were assigned.

        Source: docs/theory/experiments.md#inference; docs/theory/experiments.md#an-honest-interval.

        Args:
            confidence: Confidence of each interval on its own; 0.8 to 0.995 for questions and
                histograms.
            assigned: For a table of units, the assigned group of each unit, shape (units,), in the
                rows of `unit` or else in those of `table()`. "units" says that units were assigned
                one by one, which None assumes unless the experiment has groups.
            unit: Public names of units as at the release, in the shape of `assigned`; units that
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
        published = self.published
        with_groups = assigned is not None or unit is not None
        if published.plan is None and isinstance(self.said, envelope.Manifest):
            # Such a manifest has only the estimates that were shown.
            if wanted != CONFIDENCE or with_groups:
                raise envelope.needs_record()
            return published.found()
        plan = self.plan
        drawn = self.released
        if plan.kind in ("table", "cluster_prior"):
            if assigned is None:
                self._warn_of_clusters()
            return plan.read(drawn, wanted, assigned=assigned, unit=unit)
        if with_groups:
            raise InputError(
                f"a release by {plan.mechanism} gives no effects of assigned groups",
                "plan the experiment with assigned=, or plan a table: experiment.table(...)",
            )
        return plan.read(drawn, wanted)

    def regression(self, columns: str | Sequence[str], confidence: float = CONFIDENCE) -> Answers:
        """A least squares regression on columns of the experiment, from released numbers: free.

        After questions, it takes some of the columns of one regression that was asked for. If
        groups were assigned whole, it takes any columns, and uses their means in each group.

        Source: docs/theory/experiments.md#questions.

        Args:
            columns: As in `Questions.regression`; a constant is always there.
            confidence: Confidence of each interval on its own, from 0.8 to 0.995.

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

    def table(self, confidence: float = CONFIDENCE, *, all: bool = False) -> pa.Table:
        """The released table with all columns, to work with.

        A table of units has `cluster`, `arm`, `unit` if units have names, the `response`, and
        `debiased`, whose mean over any set of units is unbiased for the mean outcome: use it as the
        outcome of regressions. Histograms give a share for each cluster, arm and level. Questions
        give the answers, with intervals of this confidence.

        Returns:
            One row a unit, a level of a cell, or a question.
        """
        return self._part(lambda: self.plan.table(self.released, confidence))

    def __repr__(self) -> str:
        kind = "simulated trial" if self.simulated else "trial"
        origin = f", {self.origin}" if self.origin else ""
        return (
            f"<{kind} of {self.published.units} units, {self.published.mechanism}, "
            f"epsilon {show(self.epsilon)}{origin}>"
        )

    def __str__(self) -> str:
        """The estimates as text, and where they are recorded."""
        return "\n".join(filter(None, [str(self.estimate()), self.origin]))

    def _repr_html_(self) -> str:
        text: str = self.estimate()._repr_html_()
        return text

    def _warn_of_clusters(self) -> None:
        """Warn where clusters that were left out look like assigned groups: all public."""
        lost = self.said.records.clusters_left_out
        kept = self.published.clusters
        if lost > kept:
            warnings.warn(
                f"{lost} of {lost + kept} clusters were left out because an arm had nobody in "
                "them: were units assigned one by one? If whole clusters were assigned, release "
                "without clusters and with names of units, and give assigned= and unit=; "
                'assigned="units" says that units were assigned one by one',
                ShoalWarning,
                stacklevel=4,
            )
