"""`shoal trial ask`, `answer` and `regress`: questions of a trial, known beforehand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import (
    FILES,
    Book,
    Cluster,
    Confidence,
    Data,
    Force,
    Json,
    Manifest,
    Name,
    PrivacyUnitName,
    show,
    show_json,
    show_release,
    working,
)
from shoal.cli.outputs import check_places, delivering

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.trials import Questions

Treatment = Annotated[str, typer.Option(help="Column of the arm. Public.")]
Regression = Annotated[
    list[str] | None,
    typer.Option(
        "--ols",
        help="Least squares regression on columns, such as 'arm + age + C(school)': C() takes "
        "numbers as names. Every regression on some of its columns is free later, but with "
        "--assigned; repeat.",
    ),
]
Assigned = Annotated[
    str | None,
    typer.Option(
        help="Column of the group (class, village) that was assigned to an arm whole, public; or "
        "'units': units were assigned one by one."
    ),
]
_CATEGORY = "C("


def ask(
    data: Annotated[Path, typer.Argument(help=f"Units: {FILES}; no outcome is read.")],
    treatment: Treatment,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one unit's outcome.")],
    cluster: Cluster = None,
    assigned: Assigned = None,
    control: Annotated[str | None, typer.Option(help="The arm others are compared with.")] = None,
    space: Annotated[
        str, typer.Option(help="Range of the outcome: binary, counts:0:10, bins:0:100.")
    ] = "binary",
    effect: Annotated[
        bool, typer.Option("--effect", help="Ask for the effect of each arm, units alike.")
    ] = False,
    precision: Annotated[
        bool,
        typer.Option("--precision", help="Ask for it with the weights of clusters that err least."),
    ] = False,
    effect_by: Annotated[
        list[str] | None,
        typer.Option(help="Ask for the effect where this column has each of its values; repeat."),
    ] = None,
    means: Annotated[bool, typer.Option("--means", help="Ask for the mean of each arm.")] = False,
    ols: Regression = None,
    spread: Annotated[
        float | None,
        typer.Option(help="Expected standard deviation of outcomes; a quarter of the range."),
    ] = None,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Clip sums of assigned groups to three deviations that follow from --spread: "
            "shorter intervals where the range is wide, too short where few groups are far out.",
        ),
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Save the plan here (JSON).")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw widths with noise and without here.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plan the answers to questions of an experiment: errors beside those without noise; free.

    Arms, clusters and all columns that are named are public, and are published with the answers.

    Where classes or villages were assigned to an arm whole, give them as --assigned.

    Example: shoal trial ask visits.csv --treatment arm --cluster city --epsilon 1 --effect
    --effect-by sex --ols "arm + age + sex" --output asked.json
    """
    import shoal
    from shoal.errors import InputError
    from shoal.trials.space_text import space_of

    places = {"documents": {"--output": output}, "pictures": {"--picture": picture}}
    check_places({"DATA": data}, force=force, **places)
    outcomes = space_of(space)
    if not (effect or precision or effect_by or means or ols):
        raise InputError(
            "no questions", "at least one", "give --effect, --effect-by, --means or --ols"
        )
    roles = _Roles(treatment, cluster, assigned)
    formulas = [roles.formula(text) for text in ols or []]
    groups = [roles.name(each) for each in effect_by or []]
    wanted = [name for each in formulas for name in each] + groups
    with working("reading public columns, sharing the noise"):
        public = _read(data, roles, wanted, {})
        asked = _asked(public, control)
        if effect:
            asked = asked.effect()
        if precision:
            asked = asked.effect(weights="precision")
        for each in groups:
            asked = asked.effect(by=each)
        if means:
            asked = asked.means()
        for columns in formulas:
            asked = asked.regression(columns)
        made = asked.plan(outcomes, epsilon, spread=spread, clip=clip)
    if output is not None:
        made.save(output, overwrite=force)
    if picture is not None:
        shoal.picture(made, picture, overwrite=force)
    if as_json:
        show_json({"epsilon": made.epsilon, "questions": made.table().to_pylist()})
    else:
        show(str(made))


def answer(
    data: Data,
    plan: Annotated[Path, typer.Option(help="Saved by `shoal trial ask --output`.")],
    outcome: Annotated[str, typer.Option(help="Column of the outcome. Private.")],
    treatment: Treatment,
    ledger: Book,
    cluster: Cluster = None,
    assigned: Assigned = None,
    name: Name = "",
    privacy_unit: PrivacyUnitName = "",
    output: Annotated[
        Path | None, typer.Option(help="Write the answers (.csv, .parquet, .json).")
    ] = None,
    manifest: Manifest = None,
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Read the outcomes once, answer what was asked, record result and charge together, deliver.

    Example: shoal trial answer visits.csv --plan asked.json --outcome bought --treatment arm
    --cluster city --privacy-unit person --ledger visits.ledger --manifest answers.json
    """
    from shoal.trials import QuestionsPlan
    from shoal.trials.questions.answers import check_interval

    check_interval(confidence)
    read, tables = {"DATA": data, "--plan": plan, "--ledger": ledger}, {"--output": output}
    check_places(read, force=force, tables=tables, documents={"--manifest": manifest})
    made = QuestionsPlan.load(plan)
    with working("reading outcomes, drawing, recording"):
        names = [each.name for each in made.columns.covariates]
        roles, texts = _Roles(treatment, cluster, assigned), made.space.labels is not None
        public = _read(data, roles, names, {"outcome": outcome}, texts=texts)
        done = made.release(
            public.table.column(outcome),
            public.arm,
            public.cluster,
            public.covariates,
            ledger=ledger,
            name=name,
            privacy_unit=privacy_unit,
            outcome_name=outcome,
            assigned=public.assigned,
        )
    files = (done.write, output), (done.write_manifest, manifest)
    with delivering(done.entry, ledger, *files, force=force):
        # Said whether there are any or not: that is private.
        moved = "outcomes outside the range are moved to its ends"
        if made.columns.assigned is None:
            moved += (
                "; intervals are for units that were assigned one by one: where whole classes or "
                "villages were, they are far too short (--assigned)"
            )
        show_release(done, ledger, lambda: f"{moved}\n{done.estimate(confidence)}", as_json=as_json)


def regress(
    manifest: Annotated[Path, typer.Argument(help="Written by `shoal trial answer`.")],
    ols: Regression = None,
    confidence: Confidence = 0.95,
    picture: Annotated[Path | None, typer.Option(help="Draw all answers here.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Regressions on some of the columns that were asked for, or all answers anew; costs nothing.

    Example: shoal trial regress answers.json --ols "arm + sex" --confidence 0.9
    """
    import shoal
    from shoal.trials import PrivateAnswers

    check_places({"MANIFEST": manifest}, force=force, pictures={"--picture": picture})
    found = PrivateAnswers.load(manifest)
    formulas = [_Roles("arm", None).formula(text) for text in ols or []]
    tables = [found.regression(each, confidence) for each in formulas]
    told = tables or [found.estimate(confidence)]
    if picture is not None:
        shoal.picture(found, picture, confidence=confidence, overwrite=force)
    if as_json:
        show_json({"answers": [one.to_document() for each in told for one in each]})
        return
    show("\n\n".join(map(str, told)))


@dataclass(frozen=True)
class _Roles:
    """Which columns of a file are arm and cluster, and what questions call them.

    Attributes:
        treatment: Column of the arm.
        cluster: Column of the cluster, or None.
        assigned: Column of the assigned group, `units`, or None.
    """

    treatment: str
    cluster: str | None
    assigned: str | None = None

    @property
    def groups(self) -> str | None:
        """Column of the assigned group, or None."""
        from shoal.trials.group_inference import UNITS

        return None if self.assigned == UNITS else self.assigned

    def name(self, column: str) -> str:
        """What a column is called in questions."""
        own = {self.treatment: "arm"} | ({} if self.cluster is None else {self.cluster: "cluster"})
        return own.get(column.removeprefix(_CATEGORY).removesuffix(")"), column)

    def formula(self, text: str) -> list[str]:
        """Columns of a regression, from a text with plus signs between."""
        from shoal.errors import InputError

        names = [each.strip() for each in text.split("+")]
        if not all(names) or "~" in text:
            raise InputError(
                f"a regression {text[:60]!r}",
                "names of columns with + between, without the outcome",
                "give for example --ols 'arm + age'",
            )
        return [self.name(each) for each in names]


@dataclass(frozen=True)
class _Public:
    """What was read of a file, by role.

    Attributes:
        table: Its columns.
        arm: Of each unit.
        cluster: Of each unit, or None.
        covariates: By what questions call them.
        assigned: Group of each unit, `units`, or None.
    """

    table: "pa.Table"
    arm: Any
    cluster: Any
    covariates: Mapping[str, Any]
    assigned: Any


def _read(
    data: Path,
    roles: _Roles,
    names: Sequence[str],
    private: Mapping[str, str | None],
    *,
    texts: bool = False,
) -> _Public:
    from shoal.data.sources import read_columns

    wanted = [each for each in dict.fromkeys(names) if each not in ("arm", "cluster")]
    source = {name: _column(name) for name in wanted}
    public: dict[str, str | None] = {"treatment": roles.treatment, "cluster": roles.cluster}
    public["assigned"] = roles.groups
    public |= {f"covariate {name}": column for name, column in source.items()}
    table = read_columns(data, private=private, public=public, texts=texts)
    return _Public(
        table,
        table.column(roles.treatment),
        None if roles.cluster is None else table.column(roles.cluster),
        {name: _values(name, table.column(column)) for name, column in source.items()},
        roles.assigned if roles.groups is None else table.column(roles.groups),
    )


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


def _asked(public: _Public, control: str | None) -> "Questions":
    from shoal.cli.trial import like
    from shoal.trials import Questions

    control = like(control, public.arm)
    own = public.arm, public.cluster, public.covariates
    return Questions(*own, control=control, assigned=public.assigned)
