"""The public face of planning: plans that can be printed, saved, loaded and carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from shoal import documents
from shoal.errors import InputError
from shoal.planning import document as plan_document
from shoal.planning.facts import PlanFacts
from shoal.planning.make import decide
from shoal.planning.request import make_request
from shoal.planning.text import describe
from shoal.records.lattice import Bounds, Lattice
from shoal.records.occupancy import Occupancy
from shoal.release.release import Release, carry_out

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from shoal.accounting.budget import Amount
    from shoal.accounting.ledger import Ledger
    from shoal.mechanisms.noise import Simulated
    from shoal.records.records import Records


@dataclass(frozen=True, eq=False)
class Plan(PlanFacts):
    """A plan that can be carried out. Make one with `shoal.plan`; see `PlanFacts` for its facts.

    Example:
        >>> import shoal
        >>> counts = shoal.Occupancy.from_counts(["a", "b", "c", "a"], [1, 1, 1, 2], [2, 2, 4, 9])
        >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8.0, worthless="keep")
        >>> plan.epsilon <= 8.0, plan.worst_case_error.round(1).tolist()
        (True, [0.6, 2.5])
    """

    def __str__(self) -> str:
        """The plan in words and columns."""
        return str(describe(self))

    def __repr__(self) -> str:
        """One line."""
        return f"<Plan {describe(self, rows=1).head}>"

    def release(
        self,
        records: Records,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
    ) -> Release:
        """Read the values once, add exact noise, record result and charge, deliver.

        The ledger commits the noisy numbers and their charge in one transaction before anything
        is returned. The same plan and name again delivers the recorded bytes at no cost.

        Args:
            records: What the plan's occupancy was counted from.
            ledger: The data set's ledger, which `shoal.Ledger.create` makes; needed unless `noise`
                is a simulation.
            name: Tells releases of the same plan apart: another name draws, and costs, again.
            noise: `shoal.Simulated(seed)` for studies; the release is marked and not private.

        Raises:
            InputError: No ledger, or a ledger with simulated noise.
            DataError: The records do not match the plan's bounds or occupancy.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.
        """
        return carry_out(self, records, ledger=ledger, name=name, noise=noise)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object."""
        return plan_document.to_document(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as a versioned JSON document."""
        documents.write_bytes(path, documents.canonical_bytes(self.to_document()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan written by `save`; its claims are computed anew and compared.

        Raises:
            DocumentError: Missing, damaged, changed by hand, or of another schema.
        """
        document = documents.read(path, plan_document.SCHEMA, "plan")
        try:
            loaded = cls(**plan_document.parts(document))
            plan_document.check_claims(loaded, document)
        except InputError:
            raise plan_document.damaged() from None
        return loaded


def plan(
    occupancy: Occupancy,
    *,
    bounds: Bounds | tuple[float, float],
    statistics: Sequence[str] = ("mean",),
    epsilon: Amount | None = None,
    error: float | None = None,
    method: str = "balanced",
    worthless: str = "drop",
    min_users: int = 1,
    min_records: int = 1,
    weights: Mapping[str, float] | None = None,
    settings: Mapping[str, str | int | float] | None = None,
    tick_bits: int = 20,
    source: Mapping[str, Any] | None = None,
) -> Plan:
    """Choose the noise of every cell for a total privacy loss, before any value is read.

    Args:
        occupancy: The public counts.
        bounds: Public range of the values, in their unit.
        statistics: What to release of each cell; `("mean",)`.
        epsilon: Largest total privacy loss of any user. A float counts as its decimal.
        error: Instead of epsilon: the largest worst-case error of a cell, in the value's unit.
        method: How baseline means share the noise: `balanced` (proportional fairness), `equalised`
            (least common worst-case error), or `uniform` (the paper's: the same loss in each
            cell). Or a mean mechanism, whose losses are balanced: `auto`, `adaptive`,
            `array_averaging`, `opt_array_averaging`, `worst_case_optimal`, `levy`, `quantile`,
            `akmv`, `baseline`.
        worthless: Cells no better than guessing the midpoint: `drop`, `keep` or `refuse`.
        min_users: Leave out cells with fewer users.
        min_records: Leave out cells with fewer records.
        weights: Importance of cells by label, for balanced losses.
        settings: Of the mechanism, such as {"cap": "minimax"} or {"objective": "worst_case"}.
        tick_bits: Values are rounded to the width over 2^tick_bits.
        source: Public description of the records, kept in plan and manifest.

    Returns:
        A plan whose `epsilon` never exceeds the one asked for.

    Raises:
        InputError: A wish is not usable or no cell is left.
    """
    if not isinstance(occupancy, Occupancy):
        raise InputError(
            f"an occupancy of type {type(occupancy).__name__}",
            "a shoal.Occupancy",
            "call records.occupancy() or Occupancy.from_counts(...)",
        )
    lattice = Lattice(Bounds.of(bounds), tick_bits)
    request = make_request(
        method=method,
        epsilon=epsilon,
        error=error,
        statistics=statistics,
        worthless=worthless,
        min_users=min_users,
        min_records=min_records,
        weights=weights,
        settings=settings,
    )
    facts = decide(occupancy, lattice, request)
    return Plan(
        occupancy=occupancy,
        lattice=lattice,
        request=request,
        status=facts.status,
        relative_scale=facts.relative_scale,
        lattice_bits=facts.lattice_bits,
        prices=facts.prices,
        source=source,
        parameters=facts.parameters,
        selection_scale=facts.selection_scale,
    )
