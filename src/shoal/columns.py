"""Columns of a file by what they are for: of means and of trials, as a plan's source says."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.release.planned import Source
    from shoal.trials import Experiment, Space

_CATEGORY, UNITS = "C(", "units"


def read(
    data: object, source: "Source", role: str, public: Mapping[str, str | None], *, look: bool,
    texts: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Columns by their roles, the private one if it is looked at.

    Where it is public which rows lack something, these are left out, and it is looked at for that.
    """
    import pyarrow.compute as pc

    from shoal import checks
    from shoal.data.sources import read_columns

    private = {role: source.value or None}
    checks.roles(private, public)
    private = private if look or source.missing == "public" else {}
    table = read_columns(data, private=private, public=public, texts=texts)
    for name in table.column_names if source.missing == "public" else ():
        table = table.filter(pc.invert(pc.is_null(table.column(name), nan_is_null=True)))
    named = {**public, **private}.items()
    return {each: None if name is None else table.column(name) for each, name in named}


def read_trial(
    data: object, source: "Source", space: "Space", names: Iterable[str] = (), *,
    control: Any = None, clustering_epsilon: Any = 0, look: bool = False,
) -> tuple["Experiment", Any]:  # fmt: skip
    """The experiment that public columns of a file make, and its outcomes if they are looked at."""
    from shoal.trials import Experiment

    own = {name: _column(name) for name in names if name not in ("arm", "cluster")}
    groups = None if source.assigned == UNITS else source.assigned
    public = {"arm": source.arm, "cluster": source.cluster, "unit": source.unit}
    public |= {"assigned": groups} | {f"covariate {name}": each for name, each in own.items()}
    found = read(data, source, "outcome", public, look=look, texts=space.labels is not None)
    study = Experiment(
        found["arm"],
        found["cluster"],
        {name: _values(name, found[f"covariate {name}"]) for name in own},
        unit=found["unit"],
        control=_like(control, found["arm"]),
        assigned=found["assigned"] if groups else source.assigned,
        single_arm=source.single_arm,
        clustering_epsilon=clustering_epsilon,
    )
    return study, found.get("outcome")


def column_name(source: "Source | None", column: str) -> str:
    """What a column, or each of two with a colon between, is called in questions."""
    own = {} if source is None else {source.cluster: "cluster", source.arm: "arm"}
    return ":".join(own.get(_column(each), each) for each in column.split(":"))


def formula(source: "Source | None", text: str) -> list[str]:
    """Columns of a regression, from a text with plus signs between."""
    from shoal.trials.questions.weights import formula_names

    return [column_name(source, each) for each in formula_names(text)]


def _like(control: Any, arms: Any) -> Any:
    """The control arm in the type of the arms' column."""
    if not isinstance(control, str):
        return control
    from shoal.data.keys import as_array

    values = as_array(arms, "arm").unique().to_pylist()
    # Booleans may be written as in JSON and SQL, too.
    known = {str(each).lower(): each for each in values if isinstance(each, bool)}
    return (known | {str(each): each for each in values}).get(control, control)


def _column(name: str) -> str:
    """The column of a covariate: `C(school)` is that of `school`, with numbers as names."""
    category = name.startswith(_CATEGORY) and name.endswith(")")
    return name.removeprefix(_CATEGORY).removesuffix(")") if category else name


def _values(name: str, column: Any) -> Any:
    """A covariate; of a CSV file without types, texts that all are numbers are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name != _column(name):
        return pc.cast(column, pa.string())
    if not pa.types.is_string(column.type):
        return column
    try:
        return pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return column
