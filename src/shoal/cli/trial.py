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

if TYPE_CHECKING:
    from shoal.trials import PrivateTrial

app = typer.Typer(
    help="Randomised experiments: plan, release private outcomes, estimate effects.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_LONGEST_NUMBER = 9
# What a plan has room for.
_MOST_UNITS, _MOST_CLUSTERS = 10**12, 10**6


class Mechanism(StrEnum):
    """Names of the mechanisms, as in plans and manifests."""

    CLUSTER_DP = "cluster_dp"
    CLUSTER_FREE = "cluster_free"
    UNIFORM_PRIOR = "uniform_prior"
    BEST_TABLE = "best_table"
    NOISY_HORVITZ_THOMPSON = "noisy_horvitz_thompson"
    NOISY_HISTOGRAM = "noisy_histogram"


@app.command()
def plan(
    data: Annotated[
        Path | None, typer.Argument(help=f"Units: {FILES}; no outcome is read.")
    ] = None,
    treatment: Annotated[str | None, typer.Option(help="Column of the arm, with a file.")] = None,
    cluster: Cluster = None,
    control: Annotated[str | None, typer.Option(help="The arm others are compared with.")] = None,
    single_arm: Annotated[
        str, typer.Option(help="Clusters where an arm has nobody: refuse or drop.")
    ] = "refuse",
    units: Annotated[
        int | None, typer.Option(max=_MOST_UNITS, help="Instead of a file: units in all.")
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(max=_MOST_CLUSTERS, help="Of equal size, with --units.")
    ] = None,
    shares: Annotated[
        str | None, typer.Option(help="Of the arms, control first, such as 0.5,0.5.")
    ] = None,
    space: Annotated[
        str, typer.Option(help="binary, counts:0:10, bins:0:100:16, levels:1,2,5, ordinal:a,b.")
    ] = "binary",
    epsilon: Annotated[
        list[str] | None, typer.Option(help="Privacy loss of one outcome; repeat to compare.")
    ] = None,
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "0",
    mean: Annotated[float | None, typer.Option(help="Expected mean (rate, if binary).")] = None,
    sd: Annotated[float | None, typer.Option(help="Expected standard deviation.")] = None,
    between: Annotated[float, typer.Option(help="Expected share between clusters.")] = 0.0,
    effect: Annotated[float | None, typer.Option(help="Whose power is wanted.")] = None,
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
    from shoal.trials.space_text import space_of

    losses = epsilon or ["1"]
    check_places({"DATA": data}, force=force, pictures={"--picture": picture})
    outcomes = space_of(space)
    parts = None if shares is None else _shares(shares)
    made = trials.plan(
        _sizes(data, units, treatment, cluster, control, single_arm),
        outcomes,
        epsilon=losses[0],
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
        show("")
        show(_columns(grid.to_pylist()))


@app.command()
def release(
    data: Data,
    outcome: Annotated[str, typer.Option(help="Column of the outcome. Private.")],
    treatment: Annotated[str, typer.Option(help="Column of the arm. Public.")],
    space: Annotated[
        str, typer.Option(help="binary, counts:0:10, bins:0:100:16, levels:1,2,5, ordinal:a,b.")
    ],
    ledger: Book,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of one unit's outcome.")],
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "0",
    cluster: Cluster = None,
    unit: Annotated[str | None, typer.Option(help="Column of public names of units.")] = None,
    control: Annotated[str | None, typer.Option(help="The arm others are compared with.")] = None,
    mechanism: Annotated[Mechanism, typer.Option(help="What is released.")] = Mechanism.CLUSTER_DP,
    levels: Annotated[str, typer.Option(help="Levels in use: auto, all, or a number.")] = "auto",
    floor: Annotated[
        float | None,
        typer.Option(help="Least share of a level in a prior (gamma); chosen unless given."),
    ] = None,
    histogram_scale: Annotated[
        float | None, typer.Option(help="Noise of a prior's counts (sigma); chosen unless given.")
    ] = None,
    rounding: Annotated[str, typer.Option(help="To levels: random or nearest.")] = "random",
    missing: Annotated[str, typer.Option(help="Missing outcomes: refuse or public.")] = "refuse",
    single_arm: Annotated[
        str, typer.Option(help="Clusters where an arm has nobody: refuse or drop.")
    ] = "refuse",
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
    from shoal.checks import check_confidence
    from shoal.data.sources import read_columns
    from shoal.trials.space_text import space_of

    check_confidence(confidence)
    read, tables = {"DATA": data, "--ledger": ledger}, {"--output": output}
    check_places(read, force=force, tables=tables, documents={"--manifest": manifest})
    outcomes = space_of(space, rounding)
    chosen = _mechanism(mechanism, epsilon, delta, levels, floor, histogram_scale)
    with working("reading outcomes, drawing, recording"):
        public = {"treatment": treatment, "cluster": cluster, "unit": unit}
        hidden, texts = {"outcome": outcome}, outcomes.labels is not None
        table = read_columns(data, private=hidden, public=public, texts=texts)
        arms = table.column(treatment)
        done = chosen.privatize(
            table.column(outcome),
            arms,
            None if cluster is None else table.column(cluster),
            space=outcomes,
            unit=None if unit is None else table.column(unit),
            control=like(control, arms),
            missing=missing,
            single_arm=single_arm,
            clustering_epsilon=clustering_epsilon,
            ledger=ledger,
            name=name,
            privacy_unit=privacy_unit or unit or "",
            outcome_name=outcome,
        )
    files = (done.write, output), (done.write_manifest, manifest)
    with delivering(done.entry, ledger, *files, force=force):
        show_release(done, ledger, lambda: _told(done, confidence), as_json=as_json)


def _told(done: "PrivateTrial", confidence: float) -> str:
    # Said whether there are any or not: that is private.
    moved = (
        "texts that are no label count as the first level"
        if done.space.labels
        else "outcomes outside the space are moved to its nearest level"
    )
    return "\n".join([moved, done.reason, *map(str, done.effects(confidence))])


def _sizes(
    data: Path | None,
    units: int | None,
    treatment: str | None,
    cluster: str | None,
    control: str | None,
    single_arm: str,
) -> Any:
    """Sizes of groups from public columns of a file, or the number of units."""
    from shoal.data.assignment import enrol
    from shoal.data.sources import read_columns
    from shoal.errors import InputError

    if (data is None) == (units is None) or (data is None) != (treatment is None):
        raise InputError(
            "not one of a file and a number of units",
            "DATA with --treatment, or --units",
            "give for example --units 6000 --clusters 30",
        )
    if data is None or treatment is None:
        return units
    table = read_columns(data, private={}, public={"treatment": treatment, "cluster": cluster})
    arms = table.column(treatment)
    found = enrol(
        arms,
        None if cluster is None else table.column(cluster),
        control=like(control, arms),
        single_arm=single_arm,
    )
    return found.assignment.sizes


def _shares(text: str) -> list[float]:
    from shoal.errors import InputError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"shares {text[:40]!r}", "numbers with commas between", "give for example 0.5,0.5"
        ) from None


def _expected(mean: float | None, sd: float | None, between: float) -> Any:
    from shoal.errors import InputError
    from shoal.trials import Expected

    if mean is None:
        if sd is not None or between:
            raise InputError(
                "an expected spread without a mean", "a mean with it", "give --mean too"
            )
        return None
    return Expected.binary(mean, between) if sd is None else Expected(mean, sd, between)


def _columns(rows: list[dict[str, Any]]) -> str:
    """Rows of a comparison, aligned."""
    from shoal.files.text_table import aligned

    names = ("n", "clusters", "epsilon", "mechanism", "standard_error", "detectable", "power")
    texts = [tuple(name.replace("_", " ") for name in names)]
    for row in rows:
        numbers = (f"{row[name]:.3g}" if row[name] is not None else "" for name in names[4:])
        texts.append(
            (
                str(row["n"]),
                str(row["clusters"]),
                f"{row['epsilon']:.4g}",
                row["mechanism"],
                *numbers,
            )
        )
    return "\n".join(aligned(texts, left=0))


def _mechanism(
    kind: Mechanism,
    epsilon: str,
    delta: str,
    levels: str,
    floor: float | None,
    histogram_scale: float | None,
) -> Any:
    from shoal import trials
    from shoal.errors import InputError

    # Longer numbers are texts that nothing knows.
    number = int(levels) if levels.isdecimal() and len(levels) <= _LONGEST_NUMBER else levels
    prior = floor is not None or histogram_scale is not None
    if prior and kind not in (Mechanism.CLUSTER_DP, Mechanism.CLUSTER_FREE):
        raise InputError(
            f"a floor or histogram scale with {kind}",
            "cluster_dp or cluster_free, which have them",
            "leave them out",
        )
    if kind is Mechanism.UNIFORM_PRIOR:
        return trials.UniformPrior(epsilon, delta, levels=number)
    if kind is Mechanism.BEST_TABLE and delta == "0":
        return trials.BestTable(epsilon, levels=number)
    if kind in (Mechanism.CLUSTER_DP, Mechanism.CLUSTER_FREE):
        made = trials.ClusterDP if kind is Mechanism.CLUSTER_DP else trials.ClusterFree
        return made(epsilon, delta, floor, histogram_scale, number)
    if levels != "auto" or delta != "0":
        raise InputError(
            f"levels or delta with {kind}",
            "epsilon alone, or with best_table also levels",
            "leave them out",
        )
    aggregate = kind is Mechanism.NOISY_HORVITZ_THOMPSON
    return (trials.NoisyHorvitzThompson if aggregate else trials.NoisyHistogram)(epsilon)


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
