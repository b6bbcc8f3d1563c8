"""`shoal bench`: speeds, and errors, side by side, measured in one run."""

from __future__ import annotations

import typer

from shoal_studies.registry import BENCH_MODULES, BENCHES, load

app = typer.Typer(
    help="Measure speed (ratios of one run, on this machine) and errors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
load(BENCH_MODULES)
for _name, _run in BENCHES.items():
    app.command(_name)(_run)
