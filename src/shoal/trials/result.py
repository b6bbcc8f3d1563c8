"""A delivered trial release: tables, effects, manifest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from shoal import checks, documents, files
from shoal.checks import check_confidence
from shoal.checks.frozen import cached_property
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError, raise_alone
from shoal.files import tables
from shoal.privacy.budget import Budget
from shoal.privacy.displayed_loss import round_up, show
from shoal.release.booking import told
from shoal.trials.aggregate_release import AggregateRelease
from shoal.trials.manifest import CONFIDENCE, SCHEMA
from shoal.trials.unit_release import KIND as UNITS
from shoal.trials.unit_release import UnitRelease

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import pyarrow as pa

    from shoal.privacy.ledger.ledger import Entry
    from shoal.trials.effects import Effect
    from shoal.trials.released import Released

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PrivateTrial:
    """Private outcomes of an experiment, as delivered; everything in it is public.

    Source: docs/theory/trials.md#debiased-responses; docs/theory/inference.md.

    Attributes:
        document: The manifest's bytes, as recorded in the ledger if there is one.
        entry: The ledger's entry, or None.
        from_ledger: Whether it had been recorded before: no outcome was used, nothing charged.
        loaded: Whether it is from a manifest's file, which knows no ledger.

    Guarantees: G-LABEL, G-DEBIASED, G-TRIAL-COVERAGE.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Space, UniformPrior
        >>> bought, arm = np.tile([0, 1, 1, 1], 500), np.tile([0, 1], 1000)
        >>> found = UniformPrior(epsilon=4).privatize(bought, arm, space=Space.binary())
        >>> found.table().column_names, found.mechanism
        (['cluster', 'arm', 'outcome', 'debiased'], 'uniform_prior')
    """

    document: bytes
    entry: Entry | None = None
    from_ledger: bool = False
    loaded: bool = False

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest written by `write_manifest`.

        Args:
            path: A file written by `write_manifest`.

        Returns:
            The trial; the same effects as before.

        Raises:
            DocumentError: Missing, or not a trial's manifest.
        """
        found = cls(documents.read_bytes(path, "manifest"), loaded=True)
        documents.parse(found.document, SCHEMA, f"manifest {os.fspath(path)!r}")
        return found

    @cached_property
    def manifest(self) -> documents.Document:
        """Everything public about the release, as a JSON object."""
        return documents.parse(self.document, SCHEMA, "manifest")

    @cached_property
    def assignment(self) -> Assignment:
        """The public assignment: clusters, arms and sizes."""
        return self._read(lambda m: Assignment.from_document(m["question"]["assignment"]))

    @cached_property
    def space(self) -> Space:
        """Levels of the outcome."""
        return self._read(lambda m: Space.from_document(m["question"]["space"]))

    @property
    def simulated(self) -> bool:
        """Whether the randomness was repeatable: such a release is not private."""
        return self._read(lambda m: bool(m["simulation"]))

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self._read(lambda m: str(m["question"]["mechanism"]["name"]))

    @property
    def reason(self) -> str:
        """The reason for these parameters, in a sentence."""
        return self._read(lambda m: str(m["question"]["mechanism"]["reason"]))

    @property
    def epsilon(self) -> float:
        """The privacy loss of one outcome, with what the clusters cost; rounded upwards."""
        return self._read(lambda m: float(m["guarantee"]["epsilon_at_most"]))

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-DP, rounded upwards."""
        # A budget refuses numbers of a billion digits, which are short to write.
        return self._read(lambda m: round_up(Budget.of(0, m["guarantee"]["delta"]).delta))

    @cached_property
    def released(self) -> Released:
        """The output of the mechanism: responses of units, or numbers of clusters."""
        return self._read(lambda m: read_released(m["question"], m["released"]))

    def table(self) -> pa.Table:
        """The released table, to estimate from.

        Of units: `cluster`, `arm`, `unit` if units have names, the private `outcome`, and
        `debiased`, whose mean over any set of units is unbiased for the mean outcome: regress on
        that. Of clusters: `cluster`, `arm`, and noisy differences, or a noisy share a level.

        Returns:
            One row a unit, or one a cluster or group.
        """
        return self._read(lambda _: self.released.table())

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
                "a mechanism that releases outcomes of units",
                "use ClusterDP, ClusterFree or UniformPrior",
            )
        released = self.released
        return self._read(lambda _: released.priors())

    def estimate(self, arm: object = None, confidence: float = CONFIDENCE) -> Effect:
        """The effect of an arm against the control, with standard errors and intervals.

        Args:
            arm: Needed where there are several besides the control.
            confidence: Of the intervals; changing it costs nothing.

        Returns:
            The effect, in the outcome's unit.

        Raises:
            InputError: No such arm, several arms and none named, or an unusable confidence.

        Guarantees: G-TRIAL-COVERAGE, G-TRIAL-UNBIASED.
        """
        found = self.effects(confidence)
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

    def effects(self, confidence: float = CONFIDENCE) -> tuple[Effect, ...]:
        """The effects of all arms against the control.

        Args:
            confidence: Of each interval on its own.

        Returns:
            One effect for each arm besides the control.

        Raises:
            InputError: An unusable confidence.
        """
        wanted = check_confidence(confidence)
        return self._read(lambda _: self.released.effects(wanted))

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table as CSV, Parquet or JSON, by the path's ending.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            InputError: Another ending.
            DocumentError: There is a file already, or the place cannot be written.
        """
        tables.write(self.table(), path, overwrite=overwrite)

    def write_manifest(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the manifest, byte for byte as recorded.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, or the place cannot be written.
        """
        files.write_bytes(path, self.document, overwrite=overwrite)

    def __repr__(self) -> str:
        """One line."""
        kind = "simulated trial" if self.simulated else "trial"
        # A manifest that was loaded does not say whether a ledger has it.
        booked = "" if self.loaded else f", {told(self.entry, again=self.from_ledger)}"
        return (
            f"<{kind} of {self.assignment.n} units, {self.mechanism}, "
            f"epsilon {show(self.epsilon)}{booked}>"
        )

    def _read(self, part: Callable[[documents.Document], T]) -> T:
        try:
            return part(self.manifest)
        except DocumentError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError):
            raise_alone(
                DocumentError(
                    "the manifest is damaged, or may have been changed",
                    "a document written by shoal",
                    "fetch it again, or have it delivered from the ledger",
                )
            )


def read_released(question: documents.Document, released: documents.Document) -> Released:
    """What a mechanism released, from its question and document."""
    space = Space.from_document(question["space"])
    assignment = Assignment.from_document(question["assignment"])
    kind = UnitRelease if released["kind"] == UNITS else AggregateRelease
    return kind.from_document(released, space, assignment, question["mechanism"])
