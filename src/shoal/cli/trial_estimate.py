"""`shoal trial estimate`: effects of a released trial, from public files alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.options import FILES, Confidence, Force, Json, show, show_json
from shoal.cli.outputs import check_places

_ASKED = (
    "intervals are for units assigned one by one, within clusters; if whole classes or villages "
    "were assigned, give them: --groups FILE --unit NAME --assigned COLUMN"
)


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
    from shoal.trials import PrivateTrial

    read = {"MANIFEST": manifest, "--groups": groups}
    tables, pictures = {"--output": output}, {"--picture": picture}
    check_places(read, force=force, tables=tables, pictures=pictures)
    _check_groups(assigned, groups, unit, picture)
    found = PrivateTrial.load(manifest)
    column, names = _public(groups, assigned, unit)
    effects = found.effects(confidence, assigned=column, unit=names)
    if output is not None:
        found.write(output, overwrite=force)
    if as_json:
        show_json({"effects": [each.to_document() for each in effects]})
        return
    for each in effects:
        show(str(each))
        if clusters:
            show(each.clusters_text())
    if assigned is None:
        show(_ASKED)
    if picture is not None:
        shoal.picture(found, picture, confidence=confidence, overwrite=force)


def _check_groups(
    assigned: str | None, groups: Path | None, unit: str | None, picture: Path | None
) -> None:
    from shoal.errors import InputError
    from shoal.trials.group_inference import UNITS

    if groups is None and (unit is not None or assigned not in (None, UNITS)):
        raise InputError(
            "assigned groups, or names of units, without a file",
            f"--groups FILE --unit NAME --assigned COLUMN, or --assigned {UNITS}",
            "give the public file that has the group of each unit",
        )
    if groups is not None and assigned is None:
        raise InputError(
            "a file of groups without a column", "--assigned COLUMN", "name the column of groups"
        )
    if groups is not None and picture is not None:
        raise InputError(
            "a picture of effects of assigned groups",
            "a picture of effects of units that were assigned one by one",
            "leave --picture out: it would draw intervals that do not know the groups",
        )


def _public(groups: Path | None, assigned: str | None, unit: str | None) -> tuple[Any, Any]:
    """The groups and the names of a file; nothing in it is private."""
    from shoal.data.sources import read_columns

    if groups is None:
        return assigned, None
    table = read_columns(groups, private={}, public={"assigned": assigned, "unit": unit})
    return table.column(str(assigned)), None if unit is None else table.column(unit)
