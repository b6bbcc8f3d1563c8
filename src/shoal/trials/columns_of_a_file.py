"""Reads columns of a file as an experiment, and translates their names into those of questions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shoal import checks
from shoal.data.keys import as_array
from shoal.data.sources import names_of
from shoal.data.user_rows import ANY, ROWS, SUM, PerUser, read_users, time_of
from shoal.errors import DataError, InputError
from shoal.release.columns import check_column, check_one_row, read_by_roles, unit_to_check
from shoal.release.plan import Source
from shoal.trials.assigned_groups import UNITS
from shoal.trials.design import ARM, CLUSTER, RESERVED, column_of
from shoal.trials.domain import Domain, domain_of
from shoal.trials.experiment import Experiment
from shoal.trials.questions.weights import formula_names


def read(
    data: object,
    *,
    outcome: str | tuple[str, str],
    arm: str,
    domain: Domain | str | Sequence[Domain | str],
    by: Sequence[str] = (),
    cluster: str | None = None,
    user: str | None = None,
    per_user: str | None = None,
    unit: str | None = None,
    assigned: str | None = None,
    control: Any = None,
    missing: str = "refuse",
    missing_value: float | None = None,
    privacy_unit: str = "",
) -> tuple[Experiment, Any]:
    """Reads the units of a file or table, or the users of a log, as an experiment.

    A log has several rows a user, of which one outcome is made; of a pair of outcomes, which makes
    a ratio, the sums of a user's rows. Whatever is not private is published with a release.

    Source: docs/experiments.md#a-log-of-visits.

    Args:
        data: A path, a pattern of files, or a table, as in `shoal.Records`.
        outcome: Column of the outcome, or of numerator and denominator; `rows` is the number of
            rows with a numerator. Private.
        arm: Column of the arm; public, as are all that follow.
        domain: Range of the outcome, or those of numerator and denominator.
        by: Covariates, such as columns of subgroups.
        cluster: Column of the cluster within which units were assigned.
        user: Column that says whose each row is; names are read and not published.
        per_user: The outcome of a user: `mean`, `sum`, `any` or `last:COLUMN`.
        unit: Column of names of units, which are kept, for a table of units.
        assigned: Column of the group that was assigned to an arm whole.
        control: The arm that others are compared with.
        missing: Rows that lack a value: `refuse` them, drop them as `public`, or keep missing
            outcomes for a plan with missing="worst".
        missing_value: What a missing outcome counts as, within the domain.
        privacy_unit: The ledger's word for a user, if the column of users has another name; if
            another column has this name, each of its values must have one user.

    Returns:
        The experiment, and the outcomes in the order of its rows, which are private: an array of
        shape (units,), or two.

    Raises:
        ShoalError: Columns that are not there or not usable; users in two arms.

    Guarantees: G-ROWS.

    Example:
        >>> from shoal import trials
        >>> import pyarrow as pa
        >>> log = pa.table({"who": [1, 1, 2], "arm": [0, 0, 1], "spent": [2.0, 3.0, 4.0]})
        >>> study, spent = trials.read(
        ...     log, outcome="spent", arm="arm", user="who", per_user="sum", domain="counts:0:9"
        ... )
        >>> study.design.n, spent.tolist()
        (2, [5.0, 4.0])
    """
    source = source_of(
        outcome,
        arm=arm,
        cluster=cluster,
        user=user,
        per_user=per_user,
        unit=unit,
        assigned=assigned,
        missing=missing,
        missing_value=missing_value,
        privacy_unit=privacy_unit or None,
    )
    names = names_by(data, source, by)
    return read_trial(data, source, domains_of(domain), names, control=control, look=True)


def names_by(data: object, source: Source, by: str | Sequence[str]) -> list[str]:
    """Returns what columns of subgroups are called in questions."""
    columns = [by] if isinstance(by, str) else checks.items(by, "by", least=0)
    names = [column_name(source, checks.text(each, "by")) for each in columns]
    check_names(data, columns)
    return names


def source_of(outcome: str | Sequence[str], **columns: Any) -> Source:
    """Returns the columns of a trial, of which a pair of outcomes makes a ratio."""
    elsewhere = not isinstance(outcome, str) or columns.get("missing", "refuse") != "refuse"
    if columns.get("missing_value") is not None and elsewhere:
        raise InputError(
            "missing_value says what missing outcomes are, and something else does, too",
            "leave it out with a ratio, in which a user without a row has 0, and with "
            'missing="public" or missing="worst"',
        )
    counted = columns.get("per_user") in (SUM, ANY)
    if counted and (columns.get("missing") == "worst" or columns.get("missing_value") is not None):
        raise InputError(
            f"the outcome per user {columns['per_user']!r} is never missing: a user without a row "
            "that has a number has 0",
            "leave missing= and missing_value= out, or take the mean of each user's rows",
        )
    if isinstance(outcome, str):
        return Source.of(value=outcome, **columns)
    value, denominator = checks.items(outcome, "outcome", least=2, most=2)
    found = Source.of(value=value, denominator=denominator, **columns)
    if found.per_user is not None or not found.tells_users:
        raise InputError(
            "a ratio is one of the sums of each user's rows",
            "give user= (--user), and leave per_user= (--per-user) out",
        )
    return found


def domains_of(domain: Domain | str | Sequence[Domain | str]) -> tuple[Domain, ...]:
    """Returns the domain of an outcome, or those of numerator and denominator."""
    if isinstance(domain, str | Domain):
        return (domain_of(domain),)
    return tuple(domain_of(each) for each in checks.items(domain, "domain", least=1, most=2))


def read_trial(
    data: object,
    source: Source,
    domains: Sequence[Domain],
    names: Iterable[str] = (),
    *,
    control: Any = None,
    clustering_epsilon: Any = 0,
    look: bool = False,
    ledger: Any = None,
) -> tuple[Experiment, Any]:
    """Returns the experiment of a file's public columns, and its outcomes if `look` says so.

    `names` are the covariates, as questions call them.
    """
    private = 1 if source.denominator is None else 2
    if len(domains) != private:
        raise InputError(
            f"there are {len(domains)} domains for {private} private columns",
            "give one domain for an outcome, and two for a numerator and a denominator",
        )
    if source.missing_value is not None:
        lowest = domains[0].levels[0]
        highest = domains[0].levels[-1]
        checks.number(source.missing_value, "missing_value", least=lowest, most=highest)
    covariates = sorted({column_of(name) for name in names if name not in ("arm", "cluster")})
    # The word "units" stands for no column.
    groups = None if source.assigned == UNITS else source.assigned
    public = {"arm": source.arm, "cluster": source.cluster, "unit": source.unit}
    public |= {"assigned": groups} | {f"covariate {name}": name for name in covariates}
    read_units = _by_users if source.of_log else _by_rows
    found = read_units(data, source, public, domains, look=look, ledger=ledger)
    study = Experiment(
        found["arm"],
        found["cluster"],
        {name: found[f"covariate {name}"] for name in covariates},
        unit=found["unit"],
        control=_like(control, found["arm"]),
        assigned=found["assigned"] if groups else source.assigned,
        single_arm=source.single_arm,
        clustering_epsilon=clustering_epsilon,
    )
    study.source = source
    outcome = found.get("outcome")
    if source.missing_value is not None and outcome is not None:
        numbers = domains[0].numbers(outcome)
        outcome = np.where(np.isnan(numbers), source.missing_value, numbers)
    return study, outcome


def _by_rows(
    data: object,
    source: Source,
    public: Mapping[str, str | None],
    domains: Sequence[Domain],
    *,
    look: bool,
    ledger: Any,
) -> dict[str, Any]:
    """Returns columns by their roles, where each row is a unit."""
    texts = domains[0].labels is not None
    users = source.user if source.tells_users else None
    given = {**public, "user": users}
    found = read_by_roles(data, source, "outcome", given, look=look, texts=texts, ledger=ledger)
    if users is not None:
        check_one_row(users, found["user"])
    return found


def _by_users(
    data: object,
    source: Source,
    public: Mapping[str, str | None],
    domains: Sequence[Domain],
    *,
    look: bool,
    ledger: Any,
) -> dict[str, Any]:
    """Returns columns by their roles, with a row for each user of a log."""
    unit = unit_to_check(data, source, ledger)
    known = {*names_of(data), None, "", ROWS}
    for name in (source.value, source.denominator):
        if name not in known:
            raise DataError(f"there is no column {name!r}", "name a column of the file")
    outcomes = _outcomes(data, source, domains)
    if not look and source.missing != "public":
        outcomes = []
    given = {**public, "privacy unit": unit}
    users = str(source.user)
    found_users = read_users(data, users, given, outcomes, missing=source.missing)
    found: dict[str, Any] = dict.fromkeys(public)
    found |= found_users.public
    if unit is not None:
        check_column(unit, found["privacy unit"], np.arange(len(found["privacy unit"])))
    if source.denominator is None:
        found["outcome"] = found_users.outcomes[0] if outcomes else None
    else:
        found["outcome"] = found_users.outcomes
    return found


def _outcomes(data: object, source: Source, domains: Sequence[Domain]) -> list[PerUser]:
    """Returns what is made of the rows of each user; InputError if that cannot be."""
    way = source.per_user or SUM
    if not source.tells_users or source.unit is not None:
        raise InputError(
            f"the outcome per user is {way!r}, and no column says whose row it is",
            "give user= (--user), and leave unit= out",
        )
    time_of(way)
    has_labels = any(each.labels is not None for each in domains)
    if has_labels or (way == ANY and domains[0].levels != (0.0, 1.0)):
        raise InputError(
            f"the outcome per user {way!r} does not fit the domain",
            "give binary for any, and a domain of numbers for mean, sum and last:COLUMN",
        )
    ranges = [(each.levels[0], each.levels[-1]) for each in domains]
    found = [PerUser(source.value, way, *ranges[0])]
    if source.denominator == ROWS:
        if ROWS in names_of(data):
            raise InputError(
                f"a column is called {ROWS!r}, which stands for the number of rows", "rename it"
            )
        found.append(PerUser(source.value, ROWS, *ranges[1]))
    elif source.denominator is not None:
        found.append(PerUser(source.denominator, SUM, *ranges[1]))
    return found


def check_names(data: object, texts: Sequence[str]) -> None:
    """Refuse columns of a file whose names mean something else in a question with these names."""
    for name in names_of(data):
        is_formula = column_of(name) != name or set("+:~") & set(name)
        as_word = rf"(?<!\w){re.escape(name)}(?!\w)"
        if is_formula and any(re.search(as_word, text) for text in texts):
            raise InputError(
                f"the column {name!r} has a name that questions read as a formula", "rename it"
            )


def column_name(source: Source | None, column: str) -> str:
    """Returns the name in questions of a column of a file, and refuses a reserved name."""
    if source is None:
        return column
    name = column_of(column)
    roles = {source.cluster: CLUSTER, source.arm: ARM}
    if name in roles:
        return roles[name]
    if name in RESERVED:
        meant = {ARM: source.arm, CLUSTER: source.cluster}.get(name)
        raise InputError(
            f"the column {name!r} has a name that questions use for {RESERVED[name]}",
            "rename it" + (f", or write {meant!r} for {RESERVED[name]}" if meant else ""),
        )
    return column


def formula(source: Source | None, text: str) -> list[str]:
    """Returns the columns of a regression, from a text with plus signs between them."""
    terms = [each.split(":") for each in formula_names(text)]
    return [":".join(column_name(source, each) for each in term) for term in terms]


def _like(control: Any, arms: Any) -> Any:
    """Returns the value of the arms' column that the text `control` stands for."""
    if not isinstance(control, str):
        return control
    values = as_array(arms, "arm").unique().to_pylist()
    # Booleans may be written as in JSON and SQL, too.
    booleans = {str(each).lower(): each for each in values if isinstance(each, bool)}
    return (booleans | {str(each): each for each in values}).get(control, control)
