"""`shoal plan`: see the error of every cell before any value is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import (
    MOST_SHOWN,
    Bounds,
    Data,
    Force,
    Json,
    settings_of,
    show,
    show_json,
    working,
)
from shoal.cli.outputs import check_places
from shoal.cli.progress import bar

if TYPE_CHECKING:
    from shoal import Plan


def plan(
    data: Data,
    user: Annotated[str, typer.Option(help="Column that says whose record it is.")],
    value: Annotated[str, typer.Option(help="Column whose values are released.")],
    bounds: Bounds,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column, or timeslot(column,1h), hour_of_day(column), weekday(column), "
            "date(column), month(column), each with a time zone if wanted, bins(column,10), or "
            "hexagon(lat,lon,7); repeat. Without it all records are one cell."
        ),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Total privacy loss of any user.")] = None,
    error: Annotated[
        float | None, typer.Option(help="Instead: largest worst-case error of a cell.")
    ] = None,
    max_error: Annotated[
        str | None,
        typer.Option(
            help="Leave out cells with a larger error, in the value's unit or such as 5% of the "
            "range: the typical error, or the worst-case error where that is the objective."
        ),
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(help="mean, variance, or such as 'share_above(60)'; repeat. [default: mean]"),
    ] = None,
    delta: Annotated[
        str, typer.Option(help="Of (epsilon, delta)-DP; above 0 noise may be Gaussian.")
    ] = "0",
    objective: Annotated[
        str | None,
        typer.Option(
            help="What should be small: the typical error, or the worst_case error, which is "
            "certified. [default: typical]"
        ),
    ] = None,
    value_range: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="What you know of the bounds: tight if values may fill a tenth of them or more, "
            "or are rare events; loose if they are a margin of safety. [default: by the counts]",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Instead of an objective: user_clipped, balanced, equalised, uniform, optimal, "
            "clip_user, or a mean mechanism: adaptive, array_averaging, opt_array_averaging, "
            "worst_case_optimal, levy, quantile, akmv, baseline."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Of the mechanism, such as cap=minimax or targets=balanced; repeat."),
    ] = None,
    uninformative: Annotated[
        str, typer.Option(help="Cells no better than guessing: drop, keep or refuse.")
    ] = "drop",
    min_users: Annotated[int, typer.Option(help="Fewest users of a released cell.")] = 1,
    min_records: Annotated[int, typer.Option(help="Fewest records of a released cell.")] = 1,
    missing: Annotated[
        str, typer.Option(help="Rows without user, cell or value: refuse, or public (drop them).")
    ] = "refuse",
    tick_bits: Annotated[int, typer.Option(help="Values are rounded to width/2^bits.")] = 20,
    rows: Annotated[int, typer.Option(help="Most cells to print.", min=2, max=MOST_SHOWN)] = 12,
    output: Annotated[Path | None, typer.Option(help="Save the plan here (JSON).")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the error of every cell (png, svg or pdf).")
    ] = None,
    frontier: Annotated[
        Path | None,
        typer.Option(
            help="Compare all methods at several losses: print that instead, and draw it here."
        ),
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(help="With --frontier: a method to compare; repeat. All if not given."),
    ] = None,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice", help="Say, too, what would let more cells be told: epsilon, labels, method."
        ),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plan a release from the public counts: noise, error, loss, and uninformative cells.

    Example: shoal plan flights.parquet --user tailnum --value speed --bounds 0 700 --by dest
    --missing public --epsilon 1 --output plan.json
    """
    import shoal
    from shoal.cells.request import Request
    from shoal.errors import InputError

    options: dict[str, Any] = {
        "statistics": statistic or ["mean"], "epsilon": epsilon, "error": error,
        "max_error": max_error, "delta": delta, "objective": objective, "range": value_range,
        "method": method, "uninformative": uninformative, "min_users": min_users,
        "min_records": min_records, "settings": settings_of(setting or []),
    }  # fmt: skip
    # Before a large file is read for nothing.
    Request.of(bounds=bounds, tick_bits=tick_bits, **options)
    if versus and frontier is None:
        raise InputError(
            "--versus without --frontier", "both", "give for example --frontier frontier.png"
        )
    pictures = {"--picture": picture, "--frontier": frontier}
    check_places({"DATA": data}, force=force, documents={"--output": output}, pictures=pictures)
    about: dict[str, Any] = {"user": user, "value": value, "by": by, "missing": missing}
    records = shoal.Records(data, bounds=bounds, tick_bits=tick_bits, **about)
    with working("counting records and planning"):
        made = shoal.plan(records, **options)
    if picture is not None:
        shoal.picture(made, picture, overwrite=force)
    if output is not None:
        made.save(output, overwrite=force)
    if frontier is not None:
        _explore(made, versus, frontier, as_json=as_json, force=force)
        return
    _show(made, rows, as_json=as_json, advice=advice)


def _show(plan: "Plan", rows: int, *, as_json: bool, advice: bool) -> None:
    from shoal.cells.text import describe

    if not as_json:
        show(str(describe(plan)))
        if advice:
            show(f"\n{plan.advise(progress=bar('simulating'))}")
        return
    document = plan.to_document()
    if advice:
        document["advice"] = plan.advise(progress=bar("simulating")).table().to_pylist()
    document["counts"] = {"fingerprint": plan.counts.fingerprint}
    document["labels"] = plan.counts.labels
    show_json(document)


def _explore(
    plan: "Plan", versus: list[str] | None, path: Path, *, as_json: bool, force: bool
) -> None:
    """Compare the methods for the plan's cells; no value is read."""
    import shoal

    found = plan.frontier(versus or None, progress=bar("planning"))
    shoal.picture(found, path, overwrite=force)
    if as_json:
        show_json(found.to_document())
    else:
        show(str(found))
