"""`shoal study`: the figures of the papers, with our findings."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Force, show
from shoal.cli.progress import bar

app = typer.Typer(
    help="Run the papers' experiments again: a table, a picture and a reading of each.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_studies() -> None:
    """List the studies: name, title, and the figure of the paper.

    Example: shoal study list
    """
    from shoal_studies.registry import STUDIES

    for each in STUDIES:
        show(f"{each.name}  {each.title} ({each.source})")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study's name, or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="60 data sets a point instead of 10,000.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where tables, pictures and readings go.")] = Path(
        "figures"
    ),
    seed: Annotated[int, typer.Option(help="Of the simulation.", min=0, max=2**32)] = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; as many as processors if not given.", min=1, max=1024),
    ] = None,
    force: Force = False,
) -> None:
    """Run one study or all, and write NAME.csv, NAME.png and NAME.md. No record is read.

    Example: shoal study run 002-figure-2 --quick --folder figures
    """
    from shoal_studies.measure import FULL, QUICK, Effort
    from shoal_studies.registry import find
    from shoal_studies.study import prepare, write

    chosen = find(name)
    prepare(chosen, folder, overwrite=force)
    for each in chosen:
        effort = Effort(
            repetitions=QUICK if quick else FULL,
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            progress=bar(each.name),
        )
        began = time.perf_counter()
        outcome = each.run(effort)
        paths = write(each, outcome, folder, overwrite=force)
        show(f"{each.name}  {each.title}: {time.perf_counter() - began:.0f} s")
        show(textwrap.fill(outcome.reading, 100))
        show(f"wrote {', '.join(str(path) for path in paths)}\n")
