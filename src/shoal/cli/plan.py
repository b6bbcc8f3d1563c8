"""`shoal plan`: see the error of every cell before any value is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Data, Json, settings_of, show, show_json, working


def plan(
    data: Data,
    user: Annotated[str, typer.Option(help="Column that says whose record it is.")],
    value: Annotated[str, typer.Option(help="Column to be averaged.")],
    bounds: Annotated[tuple[float, float], typer.Option(help="Public range of the value.")],
    cell: Annotated[
        list[str],
        typer.Option(
            help="Column, timeslot(column,1h), hour_of_day(column) or hexagon(lat,lon,7); repeat."
        ),
    ],
    epsilon: Annotated[str | None, typer.Option(help="Total privacy loss of any user.")] = None,
    error: Annotated[
        float | None, typer.Option(help="Instead: largest worst-case error of a cell.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="balanced, equalised, uniform, auto, or a mean mechanism."),
    ] = "balanced",
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Of the mechanism, such as cap=minimax or objective=worst_case; repeat."),
    ] = None,
    worthless: Annotated[
        str, typer.Option(help="Cells no better than guessing: drop, keep or refuse.")
    ] = "drop",
    min_users: Annotated[int, typer.Option(help="Fewest users of a released cell.")] = 1,
    min_records: Annotated[int, typer.Option(help="Fewest records of a released cell.")] = 1,
    missing: Annotated[
        str, typer.Option(help="Rows without user, cell or value: refuse, or public (drop them).")
    ] = "refuse",
    tick_bits: Annotated[int, typer.Option(help="Values are rounded to width/2^bits.")] = 20,
    rows: Annotated[int, typer.Option(help="Most cells to print.", min=2)] = 12,
    output: Annotated[Path | None, typer.Option(help="Save the plan here (JSON).")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the error of every cell (png, svg or pdf).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a release from the public counts: noise, error and loss, and which cells are worthless.

    Example: shoal plan flights.parquet --user tailnum --value speed --bounds 0 700 --cell dest
    --missing public --epsilon 1 --output plan.json
    """
    import shoal
    from shoal.planning.text import describe

    records = shoal.Records(
        data,
        user=user,
        value=value,
        bounds=bounds,
        cell=cell,
        missing=missing,
        tick_bits=tick_bits,
    )
    with working("counting records"):
        occupancy = records.occupancy()
    with working("planning"):
        made = shoal.plan(
            occupancy,
            bounds=bounds,
            epsilon=epsilon,
            error=error,
            method=method,
            worthless=worthless,
            min_users=min_users,
            min_records=min_records,
            settings=settings_of(setting or []),
            tick_bits=tick_bits,
            source=records.describe(),
        )
    if picture is not None:
        shoal.picture(made, picture)
    if output is not None:
        made.save(output)
    if as_json:
        document = made.to_document()
        document["occupancy"] = {"fingerprint": made.occupancy.fingerprint}
        document["labels"] = made.occupancy.labels
        show_json(document)
    else:
        show(str(describe(made, rows=rows)))
