"""What verbs read of the file of a trial: public columns, and outcomes where they are asked."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.release.planned import Source
    from shoal.trials import Experiment, Space

_CATEGORY, UNITS = "C(", "units"


def read(
    data: Path,
    source: "Source",
    space: "Space",
    names: Iterable[str] = (),
    *,
    control: Any = None,
    clustering_epsilon: Any = 0,
    outcomes: bool = False,
) -> tuple["Experiment", Any]:
    """The experiment that public columns of a file make, and its outcomes if they are asked for.

    Where it is public which outcomes are missing, they are looked at for that.
    """
    import numpy as np

    from shoal import checks
    from shoal.data.sources import read_columns
    from shoal.trials import Experiment

    own = {name: _column(name) for name in names if name not in ("arm", "cluster")}
    groups = None if source.assigned == UNITS else source.assigned
    public = {"arm": source.arm, "cluster": source.cluster, "unit": source.unit}
    public |= {"assigned": groups} | {f"covariate {name}": each for name, each in own.items()}
    private = {"outcome": source.value or None}
    checks.roles(private, public)
    looks = outcomes or source.missing == "public"
    table = read_columns(
        data, private=private if looks else {}, public=public, texts=space.labels is not None
    )
    found = {role: None if name is None else table.column(name) for role, name in public.items()}
    answers = table.column(source.value) if looks else None
    study = Experiment(
        found["arm"],
        found["cluster"],
        {name: _values(name, found[f"covariate {name}"]) for name in own},
        unit=found["unit"],
        control=_like(control, found["arm"]),
        assigned=found["assigned"] if groups else source.assigned,
        single_arm=source.single_arm,
        keep=~np.isnan(space.numbers(answers)) if source.missing == "public" else None,
        clustering_epsilon=clustering_epsilon,
    )
    return study, answers


def column_name(source: "Source | None", column: str) -> str:
    """What a column, or each of two with a colon between, is called in questions."""
    own = {} if source is None else {source.cluster: "cluster", source.arm: "arm"}
    return ":".join(own.get(_column(each), each) for each in column.split(":"))


def formula(source: "Source | None", text: str) -> list[str]:
    """Columns of a regression, from a text with plus signs between."""
    names = [each.strip() for each in text.split("+")]
    if not all(names) or "~" in text:
        raise InputError(
            f"a regression {text[:60]!r}",
            "names of columns with + between, without the outcome",
            "give for example --ols 'arm + age'",
        )
    return [column_name(source, each) for each in names]


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
