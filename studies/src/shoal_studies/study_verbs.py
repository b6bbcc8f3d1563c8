"""`shoal study`: the figures of the papers, with our findings."""

from __future__ import annotations

import csv
import io
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from shoal import files, pictures
from shoal.cli.options import Force
from shoal.cli.output import show
from shoal.errors import InputError
from shoal.progress import bar
from shoal_studies.chart import draw
from shoal_studies.registry import ALL, Job, Seed, Study, find
from shoal_studies.simulate import FULL, QUICK, Effort

app = typer.Typer(
    help="Run the papers' experiments again: a table, a picture and findings of each.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_studies() -> None:
    """List the studies: name, title, and the figure of the paper.

    Example: shoal study list
    """
    for each in find(ALL):
        show(f"{each.name}  {each.title} ({each.source})")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study's name, or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="60 data sets a point instead of 10,000.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where tables, pictures and findings go.")] = Path(
        "figures"
    ),
    seed: Seed = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; as many as processors if not given.", min=1, max=1024),
    ] = None,
    force: Force = False,
) -> None:
    """Run one study or all, and write NAME.csv, NAME.png and NAME.md. No budget is spent.

    Example: shoal study run 002-figure-2 --quick --folder figures
    """
    chosen = find(name)
    pictures.check_picture(f"{name}.png")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"a folder {os.fspath(folder)!r} that cannot be made ({error.strerror})"
        raise InputError(what, "choose a folder that can be written") from error
    places = [folder / f"{each.name}.{end}" for each in chosen for end in ("csv", "png", "md")]
    files.check_outputs({each.name: each for each in places}, {}, overwrite=force)
    for each in chosen:
        effort = Effort(
            repetitions=QUICK if quick else FULL,
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            progress=bar(each.name),
        )
        began = time.perf_counter()
        found = each.run(effort)
        write(each, found, folder, overwrite=force)
        show(f"{each.name}  {each.title}: {time.perf_counter() - began:.0f} s")
        for one in found.findings:
            holds = "" if one.holds is None else f" ({'as' if one.holds else 'unlike'} the paper)"
            show(f"  {one.claim}: {one.found}{holds}")
        show(f"wrote {folder / each.name}.csv, .png and .md\n")


def write(job: Job, found: Study, folder: Path, *, overwrite: bool = False) -> None:
    """Write NAME.csv, NAME.png and NAME.md into a folder."""
    rows = io.StringIO(newline="")
    picture = io.BytesIO()
    writer = csv.DictWriter(rows, ["study", *found.rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"study": job.name, **row} for row in found.rows)
    draw(job.title, found.charts).savefig(picture, dpi=150)
    text = job.markdown(found)
    made = {"csv": rows.getvalue().encode(), "png": picture.getvalue(), "md": text.encode()}
    for end, data in made.items():
        files.write_bytes(folder / f"{job.name}.{end}", data, overwrite=overwrite)
