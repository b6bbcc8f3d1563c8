"""Reads columns of a file as an experiment, and translates their names into those of questions."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shoal.data.keys import as_array
from shoal.data.sources import names_of
from shoal.errors import InputError
from shoal.release.columns import read_by_roles
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
    texts = domain.labels is not None
    found = read_by_roles(data, source, "outcome", public, look=look, texts=texts, ledger=ledger)
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
    return study, found.get("outcome")


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
