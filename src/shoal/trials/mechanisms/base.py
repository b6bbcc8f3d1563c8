"""The one way of all trial mechanisms: check, ask, draw, record, deliver."""

import os
from fractions import Fraction
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from shoal import documents
from shoal.checks import keywords
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.privacy.budget import Amount, Budget, from_text
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.trials.charge import clustering_of
from shoal.trials.release import release_trial
from shoal.trials.request import Units, take_in
from shoal.trials.result import PrivateTrial
from shoal.trials.stated_effects import Released
from shoal.trials.trial_plan import TrialPlan

_LOSS = ("epsilon", "delta")


class Options(TypedDict, total=False):
    """What every `privatize` takes besides its data and the space.

    Attributes:
        unit: A public name of each unit. Without names units are released in no order.
        control: The arm others are compared with; the first when sorted unless given.
        missing: `refuse` missing outcomes, or `public`: leave such units out.
        single_arm: `refuse`, or `drop`, clusters where an arm has nobody.
        clustering_epsilon: What private clusters cost when they were made; it is charged too.
        ledger: Records result and charge before anything is delivered.
        name: What the release is of, such as a period: another name draws, and costs, again.
        privacy_unit: What a unit is, in a word such as "person"; needed with a ledger and `unit`.
            Without both each row is protected by itself.
        noise: `shoal.Simulated(seed)` for studies; marked and not private.
        outcome_name: What the outcome is called, needed with a ledger: two outcomes of the same
            units are two questions.
    """

    unit: Any
    control: Any
    missing: str
    single_arm: str
    clustering_epsilon: Amount
    ledger: str | os.PathLike[str] | Ledger | None
    name: str
    privacy_unit: str
    noise: Simulated | None
    outcome_name: str


class Prepared(Protocol):
    """A mechanism with all its public numbers, ready to draw."""

    @property
    def epsilon(self) -> Fraction:
        """Exact loss of one outcome."""

    @property
    def delta(self) -> Fraction:
        """The delta of (epsilon, delta)-DP."""

    def describe(self) -> documents.Document:
        """Name and whole numbers, as a JSON object.

        Returns:
            What the manifest says of the mechanism.
        """

    def draw(self, units: Units, noise: Noise) -> Released:
        """Draw what leaves the mechanism.

        Args:
            units: Assignment and outcomes. Private.
            noise: Source of noise and fair bits.

        Returns:
            Private outcomes of units, or noisy numbers of clusters.
        """


class Mechanism:
    """What can be prepared from public facts, and privatizes outcomes."""

    def prepare(self, assignment: Assignment, space: Space) -> Prepared:
        """Fix all public numbers of the mechanism; no outcome is read.

        Args:
            assignment: Public clusters and arms.
            space: Levels of the outcome.

        Returns:
            The mechanism, ready to draw.

        Raises:
            InputError: The parameters fit no such trial.
        """
        raise NotImplementedError

    def privatize(
        self,
        outcomes: Any,
        treatment: Any,
        cluster: Any = None,
        *,
        space: Space,
        **options: Unpack[Options],
    ) -> PrivateTrial:
        """Draw once from private outcomes; with a ledger the same request is free again.

        Args:
            outcomes: One outcome for each unit, shape (units,), moved to the levels of the space.
                Private.
            treatment: The arm of each unit, shape (units,). Public.
            cluster: The cluster of each unit, shape (units,), or None for one cluster. Public.
            space: Levels of the outcome.
            **options: See `shoal.trials.mechanisms.base.Options`.

        Returns:
            The table to work with, effects, and the manifest.

        Raises:
            InputError: An option is not usable, or the outcome is given in a public role.
            DataError: Columns are not usable; the message says nothing about outcomes.
            BudgetError: The charge does not fit the ledger.
            LedgerError: The ledger cannot be read or written.

        Guarantees: G-LOSS, G-LEDGER, G-ROWS, G-REFUSE.
        """
        return _privatize(self, outcomes, treatment, cluster, space, options)


@np.errstate(all="ignore")
def _privatize(
    mechanism: Mechanism,
    outcomes: Any,
    treatment: Any,
    cluster: Any,
    space: Space,
    options: Options,
) -> PrivateTrial:
    _check_options(options)
    whose = _unit(options)
    units = take_in(
        outcomes,
        treatment,
        cluster,
        space=space,
        unit=options.get("unit"),
        control=options.get("control"),
        missing=options.get("missing", "refuse"),
        single_arm=options.get("single_arm", "refuse"),
        outcome_name=options.get("outcome_name", ""),
    )
    prepared = mechanism.prepare(units.assignment, space)
    clusters = clustering_of(options.get("clustering_epsilon", 0))
    described = prepared.describe()
    asked = {part: from_text(each) for part, each in described["asked"].items() if part in _LOSS}
    loss = Budget.stated(Budget(prepared.epsilon, prepared.delta), **asked)
    plan = TrialPlan(
        space=space,
        assignment=units.assignment,
        mechanism=described,
        loss=loss + Budget(clusters),
        clustering_epsilon=clusters,
    )
    return release_trial(
        plan,
        units,
        prepared,
        whose,
        ledger=options.get("ledger"),
        name=options.get("name", ""),
        noise=options.get("noise"),
    )


def _check_options(options: Options) -> None:
    keywords(options, Options.__annotations__, "privatize")
    printed_text(options.get("outcome_name", ""))


def _unit(options: Options) -> str:
    """The privacy unit; a ledger needs to know it, and the outcome's name."""
    return unit_of_values(
        options.get("privacy_unit", ""),
        several=options.get("unit") is not None,
        recorded=options.get("ledger") is not None,
        unnamed="" if options.get("outcome_name") else "outcome_name",
    )
