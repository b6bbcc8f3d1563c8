"""Reads columns of a file as an experiment, and translates their names into those of questions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.data.keys import as_array
from shoal.data.sources import names_of
from shoal.data.user_rows import ANY, PerUser, read_users, time_of
from shoal.errors import InputError
from shoal.release.columns import check_column, check_one_row, read_by_roles, unit_to_check
from shoal.release.plan import Source
from shoal.trials.assigned_groups import UNITS
from shoal.trials.design import ARM, CLUSTER, RESERVED, column_of
from shoal.trials.domain import Domain
from shoal.trials.experiment import Experiment
from shoal.trials.questions.weights import formula_names


def read_trial(
    data: object,
    source: Source,
    domain: Domain,
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
    covariates = sorted({column_of(name) for name in names if name not in ("arm", "cluster")})
    # The word "units" stands for no column.
    groups = None if source.assigned == UNITS else source.assigned
    public = {"arm": source.arm, "cluster": source.cluster, "unit": source.unit}
    public |= {"assigned": groups} | {f"covariate {name}": name for name in covariates}
    if source.per_user is None:
        found = _by_rows(data, source, public, domain, look=look, ledger=ledger)
    else:
        found = _by_users(data, source, public, domain, look=look, ledger=ledger)
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
    return study, found.get("outcome")


def _by_rows(
    data: object,
    source: Source,
    public: Mapping[str, str | None],
    domain: Domain,
    *,
    look: bool,
    ledger: Any,
) -> dict[str, Any]:
    """Returns columns by their roles, where each row is a unit."""
    texts = domain.labels is not None
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
    domain: Domain,
    *,
    look: bool,
    ledger: Any,
) -> dict[str, Any]:
    """Returns columns by their roles, with a row for each user of a log."""
    unit = unit_to_check(data, source, ledger)
    outcomes = []
    way = _way_of(source, domain)
    if look or source.missing == "public":
        low = domain.levels[0]
        high = domain.levels[-1]
        outcomes.append(PerUser(source.value, way, low, high))
    given = {**public, "privacy unit": unit}
    users = str(source.user)
    read = read_users(data, users, given, outcomes, missing=source.missing)
    found: dict[str, Any] = dict.fromkeys(public)
    found |= read.public
    if unit is not None:
        check_column(unit, found["privacy unit"], np.arange(len(found["privacy unit"])))
    if outcomes:
        found["outcome"] = read.outcomes[0]
    return found


def _way_of(source: Source, domain: Domain) -> str:
    """Returns what the outcome of a user is; InputError if that cannot be."""
    way = str(source.per_user)
    if not source.tells_users or source.unit is not None:
        raise InputError(
            f"the outcome per user is {way!r}, and no column says whose row it is",
            "give user= (--user), and leave unit= out",
        )
    time_of(way)
    if domain.labels is not None or (way == ANY and domain.levels != (0.0, 1.0)):
        raise InputError(
            f"the outcome per user {way!r} does not fit the domain",
            "give binary for any, and a domain of numbers for mean, sum and last:COLUMN",
        )
    return way


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
