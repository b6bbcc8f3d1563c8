"""Columns of a file by what they are for: of means and of trials, as a plan's source says."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.release.planned import Source
    from shoal.trials import Experiment, Space

UNITS = "units"


def read(
    data: object, source: "Source", role: str, public: Mapping[str, str | None], *, look: bool,
    texts: bool = False, ledger: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Columns by their roles, the private one if it is looked at.

    Where it is public which rows lack something, these are left out, and it is looked at for that.
    A privacy unit that is a column (the ledger's, where the source names none) is read as well, and
    refused where one of its values has several units.
    """
    import pyarrow.compute as pc

    from shoal import checks
    from shoal.data.sources import read_columns
    from shoal.release.unit_column import unit_column

    private = {role: source.value or None}
    unit = unit_column(data, source.privacy_unit or "", ledger)
    unit = None if unit in (source.user, source.unit) else unit
    every = {**public, "privacy unit": unit}
    checks.roles(private, every)
    private = private if look or source.missing == "public" else {}
    table = read_columns(data, private=private, public=every, texts=texts)
    for name in table.column_names if source.missing == "public" else ():
        table = table.filter(pc.invert(pc.is_null(table.column(name), nan_is_null=True)))
    named = {**every, **private}.items()
    found = {each: None if name is None else table.column(name) for each, name in named}
    if unit is not None:
        _check_unit(unit, found["privacy unit"], found.get("user"))
    return found


def check_unit(
    data: object, user: str, privacy_unit: str, ledger: Any, *, missing: str, value: str
) -> None:
    """Refuse a privacy unit that is a column of records, if one of its values has several users."""
    from shoal.release.planned import Source
    from shoal.release.unit_column import unit_column

    if unit_column(data, privacy_unit, ledger) in (None, user):
        return
    source = Source.of(value=value, missing=missing, user=user, privacy_unit=privacy_unit or None)
    read(data, source, "value", {"user": user}, look=False, ledger=ledger)


def _check_unit(unit: str, column: Any, users: Any) -> None:
    from shoal.data import keys
    from shoal.release.unit_column import check_unit_column
    from shoal.trials.plan import ONE_ROW

    codes = keys.encode(column, unit)
    if users is None:
        check_unit_column(unit, codes, None, ONE_ROW)
    else:
        todo = f"plan again with {unit!r} as the column of users, or use a ledger of these users"
        check_unit_column(unit, codes, keys.encode(users, "user"), todo)


def read_trial(
    data: object, source: "Source", space: "Space", names: Iterable[str] = (), *,
    control: Any = None, clustering_epsilon: Any = 0, look: bool = False, ledger: Any = None,
) -> tuple["Experiment", Any]:  # fmt: skip
    """The experiment that public columns of a file make, and its outcomes if they are looked at.

    Texts that are numbers are read as numbers, unless their column is only named as C(column).
    """
    from shoal.trials import Experiment
    from shoal.trials.design import column_of

    asked = {name for name in names if name not in ("arm", "cluster")}
    own = sorted(map(column_of, asked))
    groups = None if source.assigned == UNITS else source.assigned
    public = {"arm": source.arm, "cluster": source.cluster, "unit": source.unit}
    public |= {"assigned": groups} | {f"covariate {name}": name for name in own}
    texts = space.labels is not None
    found = read(data, source, "outcome", public, look=look, texts=texts, ledger=ledger)
    covariates = {name: found[f"covariate {name}"] for name in own}
    study = Experiment(
        found["arm"],
        found["cluster"],
        {name: _numbers(each) if name in asked else each for name, each in covariates.items()},
        unit=found["unit"],
        control=_like(control, found["arm"]),
        assigned=found["assigned"] if groups else source.assigned,
        single_arm=source.single_arm,
        clustering_epsilon=clustering_epsilon,
    )
    return study, found.get("outcome")


def check_names(data: object, texts: Sequence[str]) -> None:
    """Refuse columns of a file whose names have another meaning in a question that names them."""
    from shoal.data.sources import names_of
    from shoal.trials.design import column_of

    for name in names_of(data):
        is_formula = column_of(name) != name or set("+:~") & set(name)
        whole = rf"(?<!\w){re.escape(name)}(?!\w)"
        if is_formula and any(re.search(whole, text) for text in texts):
            raise InputError(
                f"the column {name!r} has a name that questions read as a formula", "rename it"
            )


def column_name(source: "Source | None", column: str) -> str:
    """What a column of a file is called in questions.

    A name that questions give a meaning of their own is that of no other column.
    """
    from shoal.trials.design import ARM, CLUSTER, RESERVED, column_of

    if source is None:
        return column
    name = column_of(column)
    known = {source.cluster: CLUSTER, source.arm: ARM}
    if name in known:
        return known[name]
    if name in RESERVED:
        meant = {ARM: source.arm, CLUSTER: source.cluster}.get(name)
        raise InputError(
            f"the column {name!r} has a name that questions use for {RESERVED[name]}",
            "rename it" + (f", or write {meant!r} for {RESERVED[name]}" if meant else ""),
        )
    return column


def formula(source: "Source | None", text: str) -> list[str]:
    """Columns of a regression, from a text with plus signs between."""
    from shoal.trials.questions.weights import formula_names

    terms = [each.split(":") for each in formula_names(text)]
    return [":".join(column_name(source, each) for each in term) for term in terms]


def _like(control: Any, arms: Any) -> Any:
    """The control arm in the type of the arms' column."""
    if not isinstance(control, str):
        return control
    from shoal.data.keys import as_array

    values = as_array(arms, "arm").unique().to_pylist()
    # Booleans may be written as in JSON and SQL, too.
    known = {str(each).lower(): each for each in values if isinstance(each, bool)}
    return (known | {str(each): each for each in values}).get(control, control)


def _numbers(column: Any) -> Any:
    """A covariate; of a CSV file without types, texts that all are numbers are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    try:
        return pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return column
