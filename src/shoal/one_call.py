"""One call from a table to a release, for analysts who need no plan of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import signature
from typing import Any

from shoal import checks
from shoal.cells import plan as cells
from shoal.cells.comparisons.advice import check_worth
from shoal.data.cell_rules import Rule
from shoal.data.records import Records
from shoal.data.value_lattice import Bounds
from shoal.distributions import plan as distributions
from shoal.planning import plan
from shoal.presence import plan as presence
from shoal.privacy.budget import Amount
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated
from shoal.release.plan import check_ledger
from shoal.trials.columns_of_a_file import (
    domains_of,
    names_by,
    read_trial,
    source_of,
)
from shoal.trials.domain import Domain
from shoal.trials.plan import Release as TrialRelease


def summarize(
    data: object,
    *,
    user: str,
    value: str | None = None,
    bounds: Bounds | tuple[float, float] | None = None,
    by: str | Rule | Sequence[str | Rule] | None = None,
    counts: str = "private",
    epsilon: Amount,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    name: str = "",
    missing: str = "refuse",
    period: str | Rule | None = None,
    times: str | None = None,
    noise: Simulated | None = None,
    anyway: bool = False,
    **more: Any,
) -> cells.Release | distributions.Release | presence.Release:
    """Plan statistics of cells, print the plan, and release them at once.

    In steps: `Records`, `plan` and `Plan.release`.

    Args:
        data: A path, a pattern of files, or a table, as in `shoal.Records`.
        user: Column that says whose record it is.
        value: Column of the private values; users and records need none.
        bounds: Public range of the value, in its unit.
        by: Columns or cell rules; without them all records are one cell.
        counts: Who has how many records in which cell: `private`, or `public` if everybody may
            know it.
        epsilon: Largest total privacy loss of any user.
        ledger: The data set's ledger, or its path; without one only simulated noise is allowed.
        name: What the release is of, such as a period; another name draws, and costs, again.
        missing: Of public counts, rows without user, cell or value: `refuse` them, or drop them as
            `public`. With private counts they are always left out.
        period: `shoal.month("at")` and the like, or a column: what is protected is a user's values
            in one period, by a ledger with a budget in each.
        times: How a file of texts writes the times of periods: see `shoal.Records`.
        noise: `shoal.Simulated(seed)` to try it out: marked and not private.
        anyway: Release also what likely makes no cell reliable, which else is refused.
        **more: Other arguments of `shoal.plan`: `statistics`, and with private counts `keys` and
            `users`; with public ones such as `objective`, `max_error` or `min_users`.

    Returns:
        The release: print it, or take `to_pandas()`.

    Raises:
        ShoalError: As `Records`, `plan` and `Plan.release`; nothing was charged then.

    Guarantees: G-LOSS, G-LEDGER, G-REFUSE.

    Example:
        >>> import pyarrow as pa, shoal
        >>> trips = pa.table({"bus": [*range(400)], "line": [1, 2] * 200, "speed": [30.0] * 400})
        >>> means = shoal.summarize(
        ...     trips, user="bus", value="speed", bounds=(0, 65), by="line", keys={"line": [1, 2]},
        ...     users=400, epsilon=5, noise=shoal.Simulated(1),
        ... )  # doctest: +ELLIPSIS
        Noise will be added to users, mean of 2 cells, epsilon 5 in all.
        ...
        >>> means.to_pandas()["status"].unique().tolist()
        ['reliable']
    """
    # Misspelled names are refused before anything is read.
    known = set[str]()
    for function in (summarize, plan, cells.plan, distributions.plan, presence.plan):
        known |= signature(function).parameters.keys()
    checks.keywords(more, sorted(known - {"counts", "records", "more"}), "summarize")
    records = Records(
        data,
        user=user,
        value=value,
        bounds=bounds,
        by=by,
        missing=missing,
        counts=counts,
        period=period,
        times=times,
    )
    check_ledger(ledger, noise)
    planned = plan(records, epsilon=epsilon, **more)
    print(planned)
    if isinstance(planned, presence.Plan):
        return planned.release(records, ledger=ledger, name=name, noise=noise)
    before = None if anyway else check_worth
    return planned.release(records, ledger=ledger, name=name, noise=noise, before=before)


def effects(
    data: object,
    *,
    outcome: str | tuple[str, str],
    arm: str,
    domain: str | Domain | Sequence[str | Domain],
    epsilon: Amount,
    by: Sequence[str] = (),
    cluster: str | None = None,
    user: str | None = None,
    per_user: str | None = None,
    assigned: str | None = None,
    control: Any = None,
    missing: str = "refuse",
    missing_value: float | None = None,
    sd: float | None = None,
    expected: tuple[float, float] | None = None,
    lift: bool = False,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    name: str = "",
    privacy_unit: str = "",
    noise: Simulated | None = None,
) -> TrialRelease:
    """Plan the effects of a randomised experiment, print the plan, and release them.

    The mean over clusters of each arm's mean less the control's, and the same in subgroups:
    `trials.Experiment`, `ask().effect()`, `plan` and its `release`.

    Args:
        data: A path, a pattern of files, or a table: a log with the rows of users, or a row a unit.
        outcome: Column of the outcome: private. Of a log also a numerator and a denominator, whose
            sums make a ratio; `rows` is the number of rows.
        arm: Column of the arm that a user was assigned to; public, as are all that follow.
        domain: Range of the outcome: `binary`, `counts:0:10`, `bins:0:100`, or a `trials.Domain`.
            Of a log it is the range of a user's outcome; of a ratio give two.
        epsilon: Privacy loss of one user: all its rows, and how many they are.
        by: Columns whose values make subgroups: an effect in each.
        cluster: Column of the cluster within which units were assigned.
        user: Column that says whose each row is; names are read and not published. Without it
            each row is a unit. "each row" declares that each is another `privacy_unit`.
        per_user: The outcome of a user with several rows: their `mean` or `sum`, `any` (whether one
            is not 0), or `last:COLUMN` (the one with the latest time).
        assigned: Column of the group (class, village) that was assigned to an arm whole.
        control: The arm that others are compared with; by default the first of two arms in sorted
            order.
        missing: Rows that lack a value: `refuse` them, or drop them as `public`. With `worst`
            intervals hold whatever missing outcomes are, and who lacks one is private.
        missing_value: What a missing outcome counts as, within the domain.
        sd: Expected standard deviation of outcomes; only predictions rest on it.
        expected: Of a ratio the expected means of numerator and denominator.
        lift: Of a ratio show also ratio/ratio of the control - 1, at no cost.
        ledger: The data set's ledger, or its path; without one only simulated noise is allowed.
        name: What the release is of; another name draws, and costs, again.
        privacy_unit: The ledger's word for a user; by default the column of users. If another
            column of the data has this name, each of its values must have one user.
        noise: `shoal.Simulated(seed)` to try it out: marked and not private.

    Returns:
        The release: print it, or take `estimate()`.

    Raises:
        ShoalError: As `trials.Experiment`, plans and their `release`; nothing was charged then.

    Guarantees: G-LOSS, G-LEDGER, G-UNBIASED.

    Example:
        >>> import pyarrow as pa, shoal
        >>> visits = pa.table({
        ...     "who": [*range(1000)] * 3, "arm": [0, 1] * 1500, "bought": [0, 1, 1, 1] * 750,
        ... })
        >>> found = shoal.effects(
        ...     visits, outcome="bought", arm="arm", user="who", per_user="any", domain="binary",
        ...     epsilon=2, noise=shoal.Simulated(1),
        ... )  # doctest: +ELLIPSIS
        1 question of 1,000 units ...
        >>> abs(found.estimate()["effect"].value - 0.5) < 0.02
        True
    """
    source = source_of(
        outcome,
        arm=arm,
        cluster=cluster,
        user=user,
        per_user=per_user,
        assigned=assigned,
        missing=missing,
        missing_value=missing_value,
        privacy_unit=privacy_unit or None,
    )
    check_ledger(ledger, noise)
    domains = domains_of(domain)
    names = names_by(data, source, by)
    study, outcomes = read_trial(
        data, source, domains, names, control=control, look=True, ledger=ledger
    )
    asked = study.ask().effect()
    if source.denominator is not None and cluster is None:
        # The ratios of arms follow from the same numbers.
        asked = asked.means()
    for each in names:
        asked = asked.effect(by=each)
    planned = asked.plan(
        domains, epsilon, sd=sd, expected=expected, lift=lift, missing=missing
    ).with_source(source)
    print(planned)
    return planned.release(outcomes, study, ledger=ledger, name=name, noise=noise)
