"""`shoal compare`: the error of every mechanism before any value is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.options import Bounds, Data, Force, Json, show, show_json, working
from shoal.cli.outputs import check_places

if TYPE_CHECKING:
    from shoal import Counts, Normal


def compare(
    data: Data,
    bounds: Bounds,
    user: Annotated[str | None, typer.Option(help="Column that says whose record it is.")] = None,
    value: Annotated[str | None, typer.Option(help="Column to be averaged; not looked at.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column, or timeslot(column,1h), hour_of_day(column), weekday(column), "
            "date(column), month(column), each with a time zone if wanted, bins(column,10), or "
            "hexagon(lat,lon,7); repeat."
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of any user.")] = "1",
    deviation: Annotated[
        float | None,
        typer.Option(help="Assumed deviation of values in a cell; about width/7 if not given."),
    ] = None,
    between: Annotated[
        float | None,
        typer.Option(help="Assumed part of that variance between users, 0 to 1. [default: 4/7]"),
    ] = None,
    apart: Annotated[
        float | None,
        typer.Option(help="Assumed deviation of the cells' means; about width/11 if not given."),
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Rows without user, cell or value: refuse, or public (drop them).")
    ] = "refuse",
    repetitions: Annotated[
        int | None, typer.Option(help="Data sets to draw; by default a few million records.", min=2)
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the errors (png, svg or pdf).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rank all methods by their typical errors for these counts; nothing is spent.

    Records are counted, or an occupancy saved as JSON is read; no value decides anything. Typical
    errors are for normal values around 0.4 of the width, an assumption, never fitted to the data.
    Guessing and what anybody writes by hand are among the methods.

    Example: shoal compare flights.parquet --user tailnum --value speed --bounds 0 700 --by origin
    --missing public --epsilon 1
    """
    import shoal

    check_places({"DATA": data}, force=force, pictures={"--picture": picture})
    occupancy = _occupancy(data, user, value, bounds, by, missing)
    with working("comparing"):
        found = shoal.compare(
            occupancy,
            bounds=bounds,
            epsilon=epsilon,
            assumed=_assumed(bounds, deviation, between, apart),
            repetitions=repetitions,
        )
    if picture is not None:
        shoal.picture(found, picture, overwrite=force)
    if as_json:
        show_json({"assumed": str(found.assumed), "methods": found.table().to_pylist()})
    else:
        show(str(found))


def _assumed(
    bounds: tuple[float, float],
    deviation: float | None,
    between: float | None,
    apart: float | None,
) -> "Normal":
    from dataclasses import replace

    import shoal
    from shoal.cells.assumptions import usual

    said = {"deviation": deviation, "between": between, "cells": apart}
    given = {name: each for name, each in said.items() if each is not None}
    return replace(usual(shoal.Bounds.of(bounds)), **given)


def _occupancy(
    data: Path,
    user: str | None,
    value: str | None,
    bounds: tuple[float, float],
    by: list[str] | None,
    missing: str,
) -> "Counts":
    import shoal
    from shoal.errors import InputError

    if data.suffix == ".json":
        return shoal.Counts.load(data)
    if user is None or value is None or not by:
        raise InputError(
            "records without --user, --value or --by",
            "all three, or an occupancy saved as .json",
            "name the columns",
        )
    records = shoal.Records(data, user=user, value=value, bounds=bounds, by=by, missing=missing)
    with working("counting records"):
        return records.counts()
