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
from shoal.cli.trial import Control, SingleArm, Treatment, like
from shoal.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.trials import Experiment
    from shoal.trials.questions.plan import QuestionsPlan

Regression = Annotated[
    list[str] | None,
    typer.Option(
        "--ols",
        help="Regression on columns, as 'arm + age + arm:age + C(school)': C() takes numbers as "
        "names. Each on some of its columns is free later; repeat. With --assigned of group means.",
    ),
]
Assigned = Annotated[
    str | None,
    typer.Option(
        help="Column of the group (class, village) that was assigned to an arm whole, public; or "
        "'units': units were assigned one by one."
    ),
]
_CATEGORY, _UNITS = "C(", "units"


def ask(
    data: Annotated[Path, typer.Argument(help=f"Units: {FILES}; no outcome is read.")],
    treatment: Treatment,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one unit's outcome.")],
    cluster: Cluster = None,
    assigned: Assigned = None,
    control: Control = None,
    single_arm: SingleArm = "refuse",
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
    from shoal.trials.space import space_of

    places = {"documents": {"--output": output}, "pictures": {"--picture": picture}}
    check_places({"DATA": data}, force=force, **places)
    outcomes = space_of(space)
    if not (effect or precision or effect_by or means or ols):
        raise InputError("no questions", "give --effect, --effect-by, --means or --ols")
    roles = _Roles(treatment, cluster, assigned)
    formulas = [roles.formula(text) for text in ols or []]
    groups = [roles.name(each) for each in effect_by or []]
    wanted = [part for each in formulas for name in each for part in name.split(":")] + groups
    with working("reading public columns, sharing the noise"):
        study = _read(data, roles, wanted, control=control, single_arm=single_arm)[1]
        asked = study.ask()
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
        made = asked.plan(outcomes, epsilon, spread=spread)
    if output is not None:
        made.save(output, overwrite=force)
    if picture is not None:
        shoal.picture(made, picture, overwrite=force)
    if as_json:
        show_json({"epsilon": made.epsilon, "questions": made.predictions().to_pylist()})
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
    single_arm: SingleArm = "refuse",
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
    from shoal.intervals import check_level

    check_level(confidence)
    read, tables = {"DATA": data, "--plan": plan, "--ledger": ledger}, {"--output": output}
    check_places(read, force=force, tables=tables, documents={"--manifest": manifest})
    made = _plan_of_questions(plan)
    with working("reading outcomes, drawing, recording"):
        names = [each.name for each in made.design.covariates]
        roles = _Roles(treatment, cluster, assigned)
        table, study = _read(
            data,
            roles,
            names,
            {"outcome": outcome},
            texts=made.space.labels is not None,
            control=made.design.arms[0].as_py(),
            single_arm=single_arm,
        )
        done = made.release(
            table.column(outcome),
            study,
            ledger=ledger,
            name=name,
            privacy_unit=privacy_unit,
            outcome_name=outcome,
        )
    files = (done.write, output), (done.write_manifest, manifest)
    with delivering(done.entry, ledger, *files, force=force):
        # Said whether there are any or not: that is private.
        moved = "outcomes outside the range are moved to its ends"
        if made.design.group is None:
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
    from shoal.trials import Release

    check_places({"MANIFEST": manifest}, force=force, pictures={"--picture": picture})
    found = Release.load(manifest)
    if found.plan.kind != "questions":
        raise InputError("a release of no questions", "use shoal trial estimate")
    formulas = [_Roles("arm", None).formula(text) for text in ols or []]
    tables = [found.regression(each, confidence) for each in formulas]
    shown = tables or [found.estimate(confidence)]
    if picture is not None:
        shoal.picture(found, picture, confidence=confidence, overwrite=force)
    if as_json:
        show_json({"answers": [one.to_document() for each in shown for one in each]})
        return
    show("\n\n".join(map(str, shown)))


def _plan_of_questions(place: Path) -> "QuestionsPlan":
    from shoal.trials import Plan
    from shoal.trials.questions.plan import QuestionsPlan

    found = Plan.load(place)
    if not isinstance(found, QuestionsPlan):
        raise InputError(f"a plan of {found.mechanism}", "give one of shoal trial ask --output")
    return found


@dataclass(frozen=True)
class _Roles:
    """Which columns of a file are arm, cluster and assigned group, and what questions call them."""

    treatment: str
    cluster: str | None
    assigned: str | None = None

    @property
    def groups(self) -> str | None:
        """Column of the assigned group, or None."""
        return None if self.assigned == _UNITS else self.assigned

    def name(self, column: str) -> str:
        """What a column, or each of two with a colon between, is called in questions."""
        own = {self.treatment: "arm"} | ({} if self.cluster is None else {self.cluster: "cluster"})
        parts = column.split(":")
        return ":".join(own.get(_column(each), each) for each in parts)

    def formula(self, text: str) -> list[str]:
        """Columns of a regression, from a text with plus signs between."""
        names = [each.strip() for each in text.split("+")]
        if not all(names) or "~" in text:
            raise InputError(
                f"a regression {text[:60]!r}",
                "names of columns with + between, without the outcome",
                "give for example --ols 'arm + age'",
            )
        return [self.name(each) for each in names]


def _read(
    data: Path,
    roles: _Roles,
    names: Sequence[str],
    private: Mapping[str, str | None] | None = None,
    *,
    texts: bool = False,
    control: Any = None,
    single_arm: str = "refuse",
) -> tuple["pa.Table", "Experiment"]:
    """Columns of a file, and the experiment that its public ones make."""
    from shoal.data.sources import read_columns
    from shoal.trials import Experiment

    wanted = [each for each in dict.fromkeys(names) if each not in ("arm", "cluster")]
    source = {name: _column(name) for name in wanted}
    public: dict[str, str | None] = {"treatment": roles.treatment, "cluster": roles.cluster}
    public["assigned"] = roles.groups
    public |= {f"covariate {name}": column for name, column in source.items()}
    table = read_columns(data, private=private or {}, public=public, texts=texts)
    arms = table.column(roles.treatment)
    study = Experiment(
        arms,
        None if roles.cluster is None else table.column(roles.cluster),
        {name: _values(name, table.column(column)) for name, column in source.items()},
        control=like(control, arms) if isinstance(control, str) else control,
        assigned=roles.assigned if roles.groups is None else table.column(roles.groups),
        single_arm=single_arm,
    )
    return table, study


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
