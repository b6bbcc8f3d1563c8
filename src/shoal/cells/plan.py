"""The public face of planning: plans that can be printed, saved, loaded and carried out."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shoal import checks, documents, files
from shoal.cells import document as plan_document
from shoal.cells.chosen_request import chosen_request
from shoal.cells.comparison import compare_plans
from shoal.cells.derived import planned
from shoal.cells.largest_error import part_of_range
from shoal.cells.plan_views import PlanViews
from shoal.cells.planner import decide
from shoal.cells.release import Release, release_cells
from shoal.cells.request import make_request
from shoal.cells.request_rules import keeps
from shoal.cells.statistics.catalogue import statistics as statistics_of
from shoal.data.occupancy import Counts
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds, Lattice
from shoal.documents.json_schema import validator
from shoal.errors import InputError
from shoal.privacy.events import event_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from dp_accounting.dp_event import DpEvent

    from shoal.cells.comparison import Choice, Comparison, Progress
    from shoal.privacy.budget import Amount
    from shoal.privacy.ledger import Ledger
    from shoal.privacy.noise import Simulated


@dataclass(frozen=True, eq=False, repr=False)
class Plan(PlanViews):
    """A plan that can be carried out. Make one with `shoal.plan`; see `PlanFacts` for its facts.

    Source: docs/theory/accounting.md; docs/theory/limits.md.

    Raises:
        InputError: A part does not fit the others, or `built` is given.

    Guarantees: G-LOSS, G-BOUND, G-PURE.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c", "a"], [1, 1, 1, 2], [2, 2, 4, 9])
        >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8.0, objective="worst_case")
        >>> plan.epsilon <= 8.0, plan.worst_case_error.round(1).tolist()
        (True, [0.6, 2.5])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.built is not None:
            raise InputError(
                "numbers that somebody has built beside the plan",
                "a plan whose numbers follow from its counts",
                "leave built out",
            )

    def release(
        self,
        records: Records,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        privacy_unit: str = "",
    ) -> Release:
        """Read the values once, add exact noise, record result and charge, deliver.

        The ledger commits the noisy numbers and their charge in one transaction before anything
        is returned. The same plan and name again delivers the recorded bytes, says when they were
        recorded, and costs nothing; counts, bounds and columns must still be the plan's.

        Args:
            records: What the plan's occupancy was counted from.
            ledger: The data set's ledger, which `shoal.Ledger.create` makes; needed unless `noise`
                is a simulation.
            name: What the release is of, such as a period: another name draws, and costs, again.
            noise: `shoal.Simulated(seed)` for studies; the release is marked and not private.
            privacy_unit: What a user is, in a word; by default the user column's name. Say the
                ledger's word if this file calls the same users otherwise (G-LEDGER).

        Returns:
            The noisy numbers with their errors, and the manifest.

        Raises:
            InputError: No ledger, or one with simulated noise or of another privacy unit.
            DataError: The records do not match the plan's bounds or occupancy.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REPLAY, G-REFUSE.
        """
        return release_cells(
            self,
            records,
            ledger=ledger,
            name=name,
            noise=noise,
            privacy_unit=privacy_unit,
        )

    def frontier(
        self,
        methods: Sequence[str | Choice] | None = None,
        epsilons: Sequence[Amount] | None = None,
        progress: Progress | None = None,
    ) -> Comparison[Plan]:
        """Error against epsilon for several methods on these counts, before a value is read.

        Every plan has this one's occupancy, bounds, statistics, public rules and weights, and keeps
        its cells, uninformative or not, so that all compare on the same. `print`, `table()`,
        `shoal.picture(frontier, path)` and `frontier.plan(method, epsilon)` look at the result.

        Args:
            methods: Names, or names with settings; by default those that suit the statistics.
            epsilons: By default from an eighth to eight times the plan's, in powers of two.
            progress: Wraps the plans, to show how far they are.

        Returns:
            One point a method and loss, with lower bounds where they are known.

        Raises:
            InputError: An unknown method, or an unusable epsilon.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8)
            >>> found = plan.frontier(["balanced", "optimal"], epsilons=[4, 8])
            >>> found.plan("optimal", 4).epsilon <= 4
            True
        """
        return compare_plans(self, plan, methods, epsilons, progress)

    def to_dp_event(self) -> DpEvent:
        """The release as an event of dp-accounting: see `shoal.privacy.events.event_of`.

        Returns:
            An event whose composition with others dp-accounting works out.

        Raises:
            MissingPartError: dp-accounting is not installed.

        Example:
            >>> import shoal
            >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
            >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8)
            >>> type(plan.to_dp_event()).__name__
            'RandomizedResponseDpEvent'
        """
        return event_of(self.epsilon, self.rho)

    def to_document(self) -> documents.Document:
        """The plan as a JSON object.

        Returns:
            Of the schema of plans, as `save` writes it.
        """
        return plan_document.to_document(self)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as a versioned JSON document.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the records, or of the plan that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        data = documents.canonical_bytes(self.to_document())
        files.write_bytes(path, data, {"records": self.occupancy.origin}, overwrite=overwrite)

    @classmethod
    @np.errstate(all="ignore")
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan written by `save`; its claims are computed anew and compared.

        Args:
            path: A file written by `save`.

        Returns:
            The plan.

        Raises:
            DocumentError: Missing, damaged, changed by hand, or of another schema.

        Guarantees: G-VERIFY.
        """
        document = documents.read(path, plan_document.SCHEMA, "plan")
        # An absolute path, whatever the working folder is later.
        origin = os.path.abspath(path)
        try:
            loaded = cls(**plan_document.parts(document, origin))
            plan_document.check_claims(loaded, document)
        except (InputError, LookupError, ArithmeticError):
            raise plan_document.damaged() from None
        return planned(loaded)


def plan(
    counts: Counts | Records,
    *,
    bounds: Bounds | tuple[float, float] | None = None,
    statistics: Sequence[str] = ("mean",),
    epsilon: Amount | None = None,
    error: float | None = None,
    max_error: float | str | None = None,
    objective: str | None = None,
    range: str | None = None,
    method: str | None = None,
    uninformative: str = "drop",
    min_users: int = 1,
    min_records: int = 1,
    weights: Mapping[str, float] | None = None,
    settings: Mapping[str, str | int | float] | None = None,
    delta: Amount = 0,
    tick_bits: int | None = None,
    source: Mapping[str, Any] | None = None,
) -> Plan:
    """Choose how users are bounded and how noise is shared, before any value is read.

    The total privacy loss is epsilon = max_l sum_i D_il/b_i: user l moves number i by at most D_il,
    and the noise of that number has the scale b_i. Private selections are part of it.

    Source: docs/theory/user-clipped.md; docs/theory/accounting.md; docs/theory/balanced.md;
    docs/theory/optimal.md.

    Args:
        counts: The public counts, or records, of which only the counts are read: the plan holds
            counts, bounds and description of the records, and nothing of their values.
        bounds: Public range of the values, in their unit; records have theirs.
        statistics: What to release of each cell: `mean`, `variance`, `share_above(60)` with any
            public threshold, or several of these.
        epsilon: Largest total privacy loss of any user. A float counts as its decimal.
        error: Instead of epsilon: the largest worst-case error of a cell, in the value's unit.
        max_error: Leave out cells with a larger error under the plan that is carried out: in the
            statistic's unit, or such as "5%" of its range. It is the typical error as `print(plan)`
            shows it; where errors are certified, the worst-case error. What is left out gets a
            pooled estimate (docs/how-to/which-cells.md).
        objective: What should be small: the `typical` error, which people make (the default), or
            the `worst_case` error, which is certified in every data set.
        range: What you know of the bounds before any value is read: `tight` if values may fill a
            tenth of them or more, or are rare events; `loose` if they are a margin of safety, which
            values fill a small part of. Left out, it is as the counts suggest.
        method: Instead of both, a method by its name. If every record counts and noise is shared:
            `balanced` (proportional fairness), `equalised` (least common worst-case error), or
            `uniform` (the paper's: the same loss in each cell). If users are bounded in all cells
            at once: `user_clipped`, `optimal` (by linear programming, with a proof) or `clip_user`
            (the paper's). Or, for means alone, a mean mechanism, whose losses are balanced:
            `adaptive`, `array_averaging`, `opt_array_averaging`, `worst_case_optimal`, `levy`,
            `quantile`, `akmv`, `baseline`.
        uninformative: Cells no better than guessing the midpoint: `drop`, `keep` or `refuse`.
        min_users: Leave out cells with fewer users.
        min_records: Leave out cells with fewer records.
        weights: Importance of cells by label, for balanced losses.
        settings: Of the method, such as {"cap": "minimax"} or {"targets": "balanced"}; a number
            here has no unit.
        delta: The delta of (epsilon, delta)-DP; above 0, noise is Gaussian where its error is less.
        tick_bits: Values are rounded to the width over 2^tick_bits, by default 2^20; records say it
            themselves.
        source: Public description of the records as `records.describe()` gives it, kept in plan and
            manifest; not beside records.

    Returns:
        A plan whose `epsilon` never exceeds the one asked for.

    Raises:
        InputError: An argument is not usable or no cell is left.

    Guarantees: G-LOSS, G-BOUND, G-PURE.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
        >>> found = shoal.plan(counts, bounds=(0, 10), epsilon=8, objective="worst_case")
        >>> found.method, found.epsilon <= 8, found.worst_case_error.round(2).tolist()
        ('optimal', True, [0.63])
    """
    occupancy, lattice, source = _planned_for(counts, bounds, tick_bits, source)
    wanted = statistics_of(statistics)
    asked: dict[str, Any] = {
        "epsilon": epsilon,
        "error": error,
        "statistics": statistics,
        "uninformative": uninformative,
        "min_users": min_users,
        "min_records": min_records,
        "weights": weights,
        "max_error": part_of_range(max_error, wanted, lattice.bounds),
    }
    if method is None:
        request = chosen_request(occupancy, asked, objective, settings, delta, range)
    elif objective is None and range is None:
        request = make_request(method=method, settings=settings, delta=delta, **asked)
    else:
        raise InputError(
            f"{'a range' if objective is None else 'an objective'} and a method",
            "one of them",
            "leave method out: it is chosen for the objective and the range",
        )
    about = checks.optional(source, _description, "source")
    facts = replace(decide(occupancy, lattice, request), source=about)
    if not keeps(facts):
        raise InputError(
            "a request that its plan would not meet",
            "an epsilon or an error that numbers of so many places meet, at an epsilon up to 1e6",
            "ask for a larger error, or give more tick_bits",
        )
    kept = [each.name for each in fields(facts) if each.name != "built"]
    return planned(Plan(**{name: getattr(facts, name) for name in kept}))


def _planned_for(
    counts: Counts | Records,
    bounds: Bounds | tuple[float, float] | None,
    tick_bits: int | None,
    source: Mapping[str, Any] | None,
) -> tuple[Counts, Lattice, Mapping[str, Any] | None]:
    """Counts, bounds and description, of records or as they are given."""
    if isinstance(counts, Records):
        if any(each is not None for each in (bounds, tick_bits, source)):
            raise InputError(
                "bounds, tick_bits or source beside records",
                "records alone, which say these themselves",
                "leave them out, or give records.counts()",
            )
        return counts.counts(), counts.lattice, counts.describe()
    todo = "give records, records.counts() or Counts.from_counts(...)"
    checks.instance(counts, Counts, "counts", todo)
    if bounds is None:
        raise InputError(
            "counts without bounds", "bounds of the values", "give for example bounds=(0, 700)"
        )
    return counts, Lattice(Bounds.of(bounds), 20 if tick_bits is None else tick_bits), source


def _description(value: object, name: str) -> dict[str, Any]:
    """What records are, as plans and manifests hold it; nothing else could be loaded again."""
    found = checks.public_facts(value, name)
    if validator("shoal.plan-3", "records")(found):
        return found
    raise InputError(
        f"{name} {checks.shown(value)}",
        "user, value and missing as texts, cell as a list of texts, and nothing else",
        f"give records.describe(), or leave {name} out",
    )
