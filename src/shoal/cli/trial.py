"""`shoal trial`: randomised experiments with private outcomes."""

from enum import StrEnum
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
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.trials import Release

app = typer.Typer(
    help="Randomised experiments: plan, release private outcomes, estimate effects.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_LONGEST_NUMBER = 9
# What a forecast has room for.
_MOST_UNITS, _MOST_CLUSTERS = 10**12, 10**6
_ASKED = (
    "intervals are for units assigned one by one, within clusters; if whole classes or villages "
    "were assigned, give them: --groups FILE --unit NAME --assigned COLUMN"
)
Treatment = Annotated[str, typer.Option(help="Column of the arm. Public.")]
Control = Annotated[str | None, typer.Option(help="The arm others are compared with.")]
SingleArm = Annotated[str, typer.Option(help="Clusters where an arm has nobody: refuse or drop.")]
Space = Annotated[
    str, typer.Option(help="binary, counts:0:10, bins:0:100:16, levels:1,2,5, ordinal:a,b.")
]


class Mechanism(StrEnum):
    """Names of the mechanisms, as in plans and manifests."""

    BEST_TABLE = "best_table"
    UNIFORM_PRIOR = "uniform_prior"
    CLUSTER_DP = "cluster_dp"
    CLUSTER_FREE = "cluster_free"
    NOISY_HISTOGRAM = "noisy_histogram"


@app.command()
def plan(
    data: Annotated[
        Path | None, typer.Argument(help=f"Units: {FILES}; no outcome is read.")
    ] = None,
    treatment: Annotated[str | None, typer.Option(help="Column of the arm, with a file.")] = None,
    cluster: Cluster = None,
    control: Control = None,
    single_arm: SingleArm = "refuse",
    units: Annotated[
        int | None, typer.Option(max=_MOST_UNITS, help="Instead of a file: units in all.")
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(max=_MOST_CLUSTERS, help="Of equal size, with --units.")
    ] = None,
    shares: Annotated[
        str | None, typer.Option(help="Of the arms, control first, such as 0.5,0.5.")
    ] = None,
    space: Space = "binary",
    epsilon: Annotated[
        list[str] | None, typer.Option(help="Privacy loss of one outcome; repeat to compare.")
    ] = None,
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "0",
    mean: Annotated[float | None, typer.Option(help="Expected mean (rate, if binary).")] = None,
    sd: Annotated[float | None, typer.Option(help="Expected standard deviation.")] = None,
    between: Annotated[float, typer.Option(help="Expected share between clusters.")] = 0.0,
    effect: Annotated[
        float | None, typer.Option(help="Effect for which the power is computed.")
    ] = None,
    power: Annotated[float, typer.Option(help="Of the least detectable effect.")] = 0.8,
    confidence: Confidence = 0.95,
    other_units: Annotated[
        list[int] | None,
        typer.Option("--against-units", max=_MOST_UNITS, help="Compare with; repeat."),
    ] = None,
    other_clusters: Annotated[
        list[int] | None,
        typer.Option("--against-clusters", max=_MOST_CLUSTERS, help="Compare with; repeat."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw errors against epsilon.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Expected standard error and power of every mechanism, before the experiment; costs nothing.

    Example: shoal trial plan --units 6000 --clusters 30 --space binary --epsilon 1 --effect 0.05
    """
    import shoal
    from shoal import trials
    from shoal.trials.space import space_of

    losses = epsilon or ["1"]
    check_places({"DATA": data}, force=force, pictures={"--picture": picture})
    outcomes = space_of(space)
    parts = None if shares is None else _shares(shares)
    made = trials.forecast(
        _sizes(data, units, treatment, cluster, control, single_arm),
        outcomes,
        losses[0],
        delta=delta,
        clusters=clusters,
        shares=parts,
        expected=_expected(mean, sd, between),
        effect=effect,
        confidence=confidence,
        power=power,
    )
    if picture is not None:
        shoal.picture(made, picture, overwrite=force)
    compared = len(losses) > 1 or other_units or other_clusters
    grid = (
        made.against(n=other_units, epsilon=losses, clusters=other_clusters) if compared else None
    )
    if as_json:
        document = made.to_document()
        show_json(document if grid is None else {**document, "against": grid.to_pylist()})
        return
    show(str(made))
    if grid is not None:
        from shoal.files.text_table import first_rows

        show(str(first_rows("", grid.drop_columns(["releases"]), rows=grid.num_rows)))


@app.command()
def release(
    data: Data,
    outcome: Annotated[str, typer.Option(help="Column of the outcome. Private.")],
    treatment: Treatment,
    space: Space,
    ledger: Book,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one unit's outcome.")],
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "0",
    cluster: Cluster = None,
    unit: Annotated[str | None, typer.Option(help="Column of public names of units.")] = None,
    control: Control = None,
    mechanism: Annotated[Mechanism, typer.Option(help="What is released.")] = Mechanism.BEST_TABLE,
    levels: Annotated[str, typer.Option(help="Levels in use: auto, all, or a number.")] = "auto",
    floor: Annotated[
        float | None, typer.Option(help="Least share of a level in a cluster's prior (gamma).")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Noise of a prior's counts (sigma).")] = None,
    rounding: Annotated[str, typer.Option(help="To levels: random or nearest.")] = "random",
    missing: Annotated[str, typer.Option(help="Missing outcomes: refuse or public.")] = "refuse",
    single_arm: SingleArm = "refuse",
    clustering_epsilon: Annotated[
        str, typer.Option(help="What private clusters cost when they were made.")
    ] = "0",
    name: Name = "",
    privacy_unit: PrivacyUnitName = "",
    output: Annotated[Path | None, typer.Option(help="Write the table (.csv, .parquet).")] = None,
    manifest: Manifest = None,
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Replace outcomes by private ones, record result and charge together, deliver.

    Example: shoal trial release visits.csv --outcome bought --treatment arm --cluster city
    --privacy-unit person --space binary --epsilon 2 --ledger visits.ledger --output units.csv
    --manifest trial.json
    """
    import numpy as np

    from shoal import trials
    from shoal.checks import check_confidence, choice
    from shoal.data.sources import read_columns
    from shoal.intervals import check_level
    from shoal.trials.space import space_of

    checked = check_level if mechanism is Mechanism.NOISY_HISTOGRAM else check_confidence
    checked(confidence)
    choice(missing, ("refuse", "public"), "missing")
    read, tables = {"DATA": data, "--ledger": ledger}, {"--output": output}
    check_places(read, force=force, tables=tables, documents={"--manifest": manifest})
    outcomes = space_of(space, rounding)
    with working("reading outcomes, drawing, recording"):
        public = {"treatment": treatment, "cluster": cluster, "unit": unit}
        hidden, texts = {"outcome": outcome}, outcomes.labels is not None
        table = read_columns(data, private=hidden, public=public, texts=texts)
        arms, own = table.column(treatment), table.column(outcome)
        study = trials.Experiment(
            arms,
            None if cluster is None else table.column(cluster),
            unit=None if unit is None else table.column(unit),
            control=like(control, arms),
            single_arm=single_arm,
            keep=~np.isnan(outcomes.numbers(own)) if missing == "public" else None,
            clustering_epsilon=clustering_epsilon,
        )
        made = _plan(study, outcomes, mechanism, epsilon, delta, levels, floor, noise)
        done = made.release(
            own,
            study,
            ledger=ledger,
            name=name,
            privacy_unit=privacy_unit or unit or "",
            outcome_name=outcome,
        )
    files = (done.write, output), (done.write_manifest, manifest)
    with delivering(done.entry, ledger, *files, force=force):
        show_release(done, ledger, lambda: _text(done, confidence), as_json=as_json)


@app.command()
def estimate(
    manifest: Annotated[Path, typer.Argument(help="Written by `shoal trial release`.")],
    confidence: Confidence = 0.95,
    assigned: Annotated[
        str | None,
        typer.Option(
            help="Column of --groups with the group (class, village) that was assigned whole, or "
            "'units': units were assigned one by one."
        ),
    ] = None,
    groups: Annotated[Path | None, typer.Option(help=f"Public groups of units: {FILES}.")] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column of --groups with the names of units, as at the release."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the table to work with (.csv, .parquet).")
    ] = None,
    clusters: Annotated[bool, typer.Option("--clusters", help="Show each cluster too.")] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw the effects here.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Effects of a released trial, with standard errors and intervals; costs nothing.

    For units assigned one by one; if whole classes or villages were, give them as --assigned.

    Example: shoal trial estimate trial.json --groups classes.csv --unit pupil --assigned class
    """
    import shoal
    from shoal.trials import Release

    read = {"MANIFEST": manifest, "--groups": groups}
    tables, pictures = {"--output": output}, {"--picture": picture}
    check_places(read, force=force, tables=tables, pictures=pictures)
    _check_groups(assigned, groups, unit, picture)
    found = Release.load(manifest)
    column, names = _public(groups, assigned, unit)
    if found.plan.kind == "questions":
        raise InputError("answers to questions", "use shoal trial regress")
    effects = found.estimate(confidence, assigned=column, unit=names)
    if output is not None:
        found.write(output, overwrite=force)
    if as_json:
        show_json({"effects": [each.to_document() for each in effects]})
        return
    show(str(effects))
    for each in effects if clusters else ():
        show(str(each.clusters))
    if assigned is None:
        show(_ASKED)
    if picture is not None:
        shoal.picture(found, picture, confidence=confidence, overwrite=force)


def _check_groups(
    assigned: str | None, groups: Path | None, unit: str | None, picture: Path | None
) -> None:
    if groups is None and (unit is not None or assigned not in (None, "units")):
        raise InputError(
            "assigned groups, or names of units, without a file",
            "--groups FILE --unit NAME --assigned COLUMN, or --assigned units",
            "give the public file that has the group of each unit",
        )
    if groups is not None and assigned is None:
        raise InputError("a file of groups without a column", "give --assigned COLUMN")
    if groups is not None and picture is not None:
        raise InputError(
            "a picture of effects of assigned groups",
            "leave --picture out: it would draw intervals that do not know the groups",
        )


def _public(groups: Path | None, assigned: str | None, unit: str | None) -> tuple[Any, Any]:
    """The groups and the names of a file; nothing in it is private."""
    from shoal.data.sources import read_columns

    if groups is None:
        return assigned, None
    table = read_columns(groups, private={}, public={"assigned": assigned, "unit": unit})
    return table.column(str(assigned)), None if unit is None else table.column(unit)


def _text(done: "Release", confidence: float) -> str:
    # Said whether there are any or not: that is private.
    moved = (
        "texts that are no label count as the first level"
        if done.plan.space.labels
        else "outcomes outside the space are moved to its nearest level"
    )
    reason = getattr(done.plan, "reason", "histograms of cells, with noise")
    return "\n".join([moved, reason, str(done.estimate(confidence))])


def _sizes(
    data: Path | None,
    units: int | None,
    treatment: str | None,
    cluster: str | None,
    control: str | None,
    single_arm: str,
) -> Any:
    """Sizes of cells from public columns of a file, or the number of units."""
    from shoal.data.sources import read_columns
    from shoal.trials import Experiment

    if (data is None) == (units is None) or (data is None) != (treatment is None):
        raise InputError(
            "not one of a file and a number of units",
            "DATA with --treatment, or --units",
            "give for example --units 6000 --clusters 30",
        )
    if data is None or treatment is None:
        return units
    table = read_columns(data, private={}, public={"treatment": treatment, "cluster": cluster})
    arms, homes = table.column(treatment), None if cluster is None else table.column(cluster)
    study = Experiment(arms, homes, control=like(control, arms), single_arm=single_arm)
    return study.design.sizes


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"shares {text[:40]!r}", "numbers with commas between", "give for example 0.5,0.5"
        ) from None


def _expected(mean: float | None, sd: float | None, between: float) -> Any:
    from shoal.trials import Expected

    if mean is None:
        if sd is not None or between:
            raise InputError("an expected spread without a mean", "give --mean too")
        return None
    return Expected(mean, sd, between)


def _plan(
    study: Any,
    space: Any,
    kind: Mechanism,
    epsilon: str,
    delta: str,
    levels: str,
    floor: float | None,
    noise: float | None,
) -> Any:
    from shoal.trials import ClusterPrior

    # Longer numbers are texts that nothing knows.
    number = int(levels) if levels.isdecimal() and len(levels) <= _LONGEST_NUMBER else levels
    of_cluster = kind in (Mechanism.CLUSTER_DP, Mechanism.CLUSTER_FREE)
    given = floor is not None, noise is not None
    if of_cluster != all(given) or any(given) != all(given):
        raise InputError(
            f"a floor or noise {'with' if any(given) else 'missing for'} {kind}",
            "both of them with cluster_dp or cluster_free, and with no other mechanism",
            "give --floor 0.1 --noise 10, or use uniform_prior",
        )
    if kind is Mechanism.NOISY_HISTOGRAM:
        if levels != "auto" or delta != "0":
            raise InputError(f"levels or delta with {kind}", "leave them out")
        return study.histogram(space, epsilon)
    mechanism: Any = "best" if kind is Mechanism.BEST_TABLE else "uniform"
    if floor is not None and noise is not None:
        mechanism = ClusterPrior(floor, noise, kind is Mechanism.CLUSTER_FREE)
    return study.table(space, epsilon, delta=delta, mechanism=mechanism, levels=number)


def like(control: str | None, arms: Any) -> Any:
    """The control arm in the type of the arms' column."""
    if control is None:
        return None
    from shoal.data.keys import as_array

    values = as_array(arms, "treatment").unique().to_pylist()
    # Booleans may be written as in JSON and SQL, too.
    known: dict[str, Any] = {
        str(value).lower(): value for value in values if value in (True, False)
    }
    known.update({str(value): value for value in values})
    return known.get(control, control)
