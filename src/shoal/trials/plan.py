"""Plans of trials: what was asked, the public design, what was chosen; saved, loaded, carried out.

A plan is these three; its loss, predictions and text follow from them.
"""

import os
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationError

from shoal import documents
from shoal.documents.model import Model, checked
from shoal.errors import DocumentError, InputError, ShoalError
from shoal.files.text_table import Shown
from shoal.privacy.budget import Amount, Budget, check_epsilon, show
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.release.draw import release as deliver
from shoal.release.envelope import Envelope, Exact, Text
from shoal.release.manifest import CONFIDENCE
from shoal.release.planned import Planned, Source, called
from shoal.release.question import Question
from shoal.trials.design import AS_TEXT, Design, Floats
from shoal.trials.space import Space

if TYPE_CHECKING:
    from shoal.trials.experiment import Experiment
    from shoal.trials.release import Release

# Below floating-point numbers end.
_LEAST_DELTA = Fraction(1, 10**100)
_PRIVACY = {
    False: "pure label differential privacy", True: "approximate label differential privacy"
}  # fmt: skip
_NEIGHBOURS = "one unit's outcome changes; its cluster, treatment and covariates are public"
Kind = Literal["table", "cluster_prior", "histogram", "questions"]
KINDS = get_args(Kind)


def check_delta(delta: Amount) -> Fraction:
    """The exact delta that a plan is asked for."""
    found = Budget.total(1, delta).delta
    if 0 < found < _LEAST_DELTA:
        raise InputError("delta is above 0 and below 1e-100", "give 0 or for example 1e-9")
    return found


class Request(Model):
    """What is asked of an experiment of public columns."""

    space: Space
    epsilon: Annotated[Fraction, checked(check_epsilon), AS_TEXT]
    delta: Annotated[Fraction, checked(check_delta), AS_TEXT] = Fraction(0)


class Claims(Model):
    """What a plan costs, for readers; of a table its variance, and what none is below."""

    epsilon: Exact
    delta: Exact
    variance: float | None = None
    bound: float | None = None


class PlanDocument(Model):
    """A plan of a trial."""

    schema_: Literal["shoal.trial-plan/2"] = Field(default="shoal.trial-plan/2", alias="schema")
    kind: Kind
    version: Text
    request: dict[str, Any]
    design: Design
    chosen: dict[str, Any]
    source: Source | None = None
    claims: Claims


class Records(Model):
    """What the private column is called, and how many clusters were left out of the experiment."""

    outcome: Text
    clusters_left_out: int


class Results(Model):
    """The whole numbers that were drawn, and what follows from them."""

    drawn: dict[str, Any]
    estimates: tuple[Any, ...]


class Manifest(Envelope):
    """Everything public about a release of a trial."""

    kind: Kind
    records: Records
    plan: PlanDocument
    results: Results


@dataclass(frozen=True, eq=False)
class Plan(Shown, Planned):
    """A plan of a trial that can be carried out. Make one with a method of `trials.Experiment`.

    Attributes:
        request: What was asked.
        design: The public columns: kinds of units, clusters, arms.
        chosen: The whole numbers that planning found.
        source: Columns of the file that it is for, if there is one.

    Guarantees: G-LOSS.

    Example:
        >>> from shoal import trials
        >>> plan = trials.Experiment([0, 1] * 500).table(trials.Space.binary(), epsilon=1)
        >>> plan.epsilon <= 1, plan.delta
        (True, 0.0)
    """

    request: Any
    design: Design
    chosen: Any
    source: Source | None = None

    # Of each kind of plan, filled as the kinds are defined.
    kinds: ClassVar[dict[str, "type[Plan]"]] = {}
    kind: ClassVar[Any]
    request_model: ClassVar[type[Request]] = Request
    chosen_model: ClassVar[type[Model]]
    drawn_model: ClassVar[type[Model]]

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Plan.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def exact_epsilon(self) -> Fraction:
        """The exact loss of one outcome, without what the clusters cost."""

    @property
    def mechanism(self) -> str:
        """What the release is made by."""
        return str(self.kind)

    @abstractmethod
    def draw(self, outcomes: Floats, noise: Noise) -> Any:
        """What leaves the mechanism, from outcomes in the design's order. Private goes in."""

    @abstractmethod
    def read(self, drawn: Any, confidence: float, **options: Any) -> Any:
        """Estimates that follow from what was drawn."""

    @abstractmethod
    def table(self, drawn: Any) -> pa.Table:
        """What was drawn as a table."""

    def results(self, drawn: Any) -> documents.Document:
        """What was drawn, and the estimates that follow from it."""
        found = [each.to_document() for each in self.read(drawn, CONFIDENCE)]
        return {"drawn": drawn.to_document(), "estimates": found}

    @abstractmethod
    def check_drawn(self, drawn: Any) -> None:
        """Refuse drawn numbers that are not as many as the plan draws, by a ValueError."""

    def _head(self, what: str) -> str:
        """The first line of a plan's text."""
        delta = f", delta {show(self.loss.delta)}" if self.loss.delta else ""
        epsilon = show(self.loss.epsilon)
        return f"{what} of {self.design}, epsilon {epsilon}{delta} for one outcome"

    @cached_property
    def loss(self) -> Budget:
        """The privacy loss of one outcome, as stated: that of the clusters included."""
        asked = self.request
        exact = Budget(self.exact_epsilon, asked.delta)
        stated = Budget.stated(exact, asked.epsilon, asked.delta)
        return stated + Budget(self.design.clustering_epsilon)

    @property
    def space(self) -> Space:
        """Levels of the outcome."""
        found: Space = self.request.space
        return found

    def __repr__(self) -> str:
        return f"<plan of {self.mechanism}, {self.design.n} units, epsilon {show(self.epsilon)}>"

    @np.errstate(all="ignore")
    def release(
        self,
        outcomes: Any,
        study: "Experiment",
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        outcome_name: str = "",
        privacy_unit: str = "",
        noise: Simulated | None = None,
    ) -> "Release":
        """Reads the outcomes once, draws, records result and charge, delivers.

        The same plan, outcome and name again deliver the recorded bytes, say so, and cost nothing.

        Args:
            outcomes: One outcome for each row of the experiment, shape (rows,). Private.
            study: The experiment that was planned for, in the rows of the outcomes: a plan keeps no
                order of rows.
            ledger: The data set's ledger, or its path.
            name: What the release is of, such as a period: another name draws, and costs, again.
            outcome_name: What the outcome is called, needed with a ledger unless the plan says it:
                two outcomes of the same units are two questions.
            privacy_unit: What a unit is, in a word such as "person"; needed with a ledger where
                units have names. Without both each row is protected by itself.
            noise: `shoal.Simulated(seed)` for studies: marked and not private.

        Returns:
            Estimates, the table to work with, and the manifest.

        Raises:
            InputError: An argument that is not usable, or the outcome in a public role.
            DataError: Public columns other than the plan's, or outcomes that are not usable; the
                message says nothing about them.
            BudgetError: The charge does not fit the ledger.
            LedgerError: The ledger cannot be read or written.

        Guarantees: G-LOSS, G-LEDGER, G-ROWS, G-REFUSE.
        """
        from shoal.trials.release import Release, TrialDraw

        outcome_name = called(self.source, outcome_name)
        unit = unit_of_values(
            privacy_unit, several=self.design.units is not None, recorded=ledger is not None,
            unnamed="" if outcome_name else "outcome_name",
        )  # fmt: skip
        records = {"outcome": printed_text(outcome_name), "clusters_left_out": study.left_out}
        draw, question = TrialDraw(self, study, outcomes), question_of(self, records, unit, name)
        done = deliver(question, draw, ledger=ledger, noise=noise)
        return Release.delivered(done, self, ledger)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            A document of the schema `shoal.trial-plan/2`.
        """
        return PlanDocument(
            kind=self.kind,
            version=version("shoal"),
            request=self.request.to_document(),
            design=self.design,
            chosen=self.chosen.to_document(),
            source=self.source,
            claims=self.claims,
        ).to_document()

    @property
    def claims(self) -> Claims:
        """What the plan claims, for readers."""
        of_table = {name: getattr(self, name, None) for name in ("variance", "bound")}
        return Claims(epsilon=str(self.loss.epsilon), delta=str(self.loss.delta), **of_table)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Plan":
        """Reads a plan; its loss is computed anew from what was chosen.

        Args:
            path: Where it is.

        Returns:
            The plan.

        Raises:
            DocumentError: Missing, damaged, of another schema, or one that loses more than it
                states.

        Guarantees: G-REPLAY.
        """
        data = documents.read_bytes(path, "plan")
        document = PlanDocument.from_bytes(data, f"plan {str(path)!r}").to_document()
        found = plan_of(document)
        claims = document["claims"]
        if (claims["epsilon"], claims["delta"]) != (str(found.loss.epsilon), str(found.loss.delta)):
            raise _damaged()
        return found


def plan_of(document: documents.Document) -> Plan:
    """The plan that a document stands for, whatever it claims; it loses at most what was asked."""
    with np.errstate(all="ignore"):
        try:
            found = PlanDocument.model_validate_json(documents.canonical_bytes(document))
            home = Plan.kinds[found.kind]
            made = home(
                read_model(home.request_model, found.request),
                found.design,
                read_model(home.chosen_model, found.chosen),
                found.source,
            )
            if made.exact_epsilon <= made.request.epsilon:
                return made
        except (ShoalError, ValidationError, ValueError, LookupError, ArithmeticError, TypeError):
            pass
    raise _damaged()


def _damaged() -> DocumentError:
    return DocumentError(
        "the plan is damaged, was changed by hand, or is of another version of shoal", "plan again"
    )


def read_model(model: type[Model], document: documents.Document) -> Any:
    """A part of a document as its model."""
    return model.model_validate_json(documents.canonical_bytes(document))


def question_of(plan: Plan, records: documents.Document, unit: str, name: str = "") -> Question:
    """What a release of a plan is asked for: request, public columns and the outcome's name."""
    return Question(
        kind=plan.kind,
        plan=plan.to_document(),
        asked={"request": plan.request.to_document(), "design": plan.design.fingerprint},
        records=records,
        unit=unit,
        loss=plan.loss,
        privacy=_PRIVACY[plan.loss.delta > 0],
        neighbours=_NEIGHBOURS,
        name=name,
        read=lambda data: Manifest.from_bytes(data, "manifest"),
    )
