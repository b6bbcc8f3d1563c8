"""`shoal bench`: speeds, and errors, side by side, measured in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from shoal import checks
from shoal.cli.options import show

app = typer.Typer(
    help="Measure speed (ratios of one run, on this machine) and errors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_MOST = 10**7

Repetitions = Annotated[int, typer.Option(help="Data sets for each figure.", min=2, max=_MOST)]
Losses = Annotated[list[float] | None, typer.Option(help="Loss; repeat.")]
Seed = Annotated[int, typer.Option(help="Of the simulation.", min=0, max=2**32)]


def _losses(given: Sequence[float]) -> list[float]:
    """Losses for which a comparison says something; Typer lets NaN through any range."""
    return [checks.number(each, "epsilon", least=0.001, most=100) for each in given]


@app.command()
def noise(
    numbers: Annotated[int, typer.Option(help="Numbers to draw.", min=1, max=10**8)] = 200_000,
) -> None:
    """Draw exact noise with another scale for every number, and print numbers per second.

    Example: shoal bench noise --numbers 200000
    """
    from shoal_studies.benchmarks.noise import run

    for line in run(numbers):
        show(line)


@app.command()
def aggregate(
    rows: Annotated[
        int, typer.Option(help="Records to generate.", min=1000, max=10**10)
    ] = 10_000_000,
    users: Annotated[int, typer.Option(help="Users.", min=1, max=10**9)] = 100_000,
    cells: Annotated[int, typer.Option(help="Cells.", min=1, max=10**7)] = 1000,
    cells_per_user: Annotated[
        int, typer.Option(help="Most cells of a user.", min=1, max=10**6)
    ] = 20,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep the generated files here; temporary ones if not given."),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="An older checkout, which is measured beside this one.")
    ] = None,
) -> None:
    """Compare a plain DuckDB query, our pass and our whole release on the same file.

    Example: shoal bench aggregate --rows 100000000
    """
    from shoal_studies.benchmarks.aggregate import run

    for line in run(rows, users, cells, cells_per_user, folder, against):
        show(line)


@app.command()
def sparse(
    repetitions: Repetitions = 100,
    epsilon: Annotated[float, typer.Option(help="Total privacy loss of any user.")] = 1.0,
) -> None:
    """Err on fifty sparse cells: plain numbers, values, and guessing the midpoint.

    Example: shoal bench sparse --repetitions 100
    """
    from shoal_studies.benchmarks.sparse import run

    for line in run(repetitions, *_losses([epsilon])):
        show(line)


@app.command()
def typical(
    repetitions: Repetitions = 20,
    epsilon: Losses = None,
    population: Annotated[
        str, typer.Option(help="A part of the name of the populations to take.")
    ] = "",
    delta: Annotated[
        str, typer.Option(help="Of (epsilon, delta)-DP, for the default plan alone.")
    ] = "0",
) -> None:
    """Err by default, beside every preset and what anybody writes by hand, on 17 populations.

    Example: shoal bench typical --repetitions 20 --epsilon 1
    """
    from shoal_studies.benchmarks.typical import run

    for line in run(_losses(epsilon or [0.5, 1.0, 4.0]), repetitions, population, delta):
        show(line)


@app.command()
def honest(
    releases: Annotated[
        int, typer.Option(help="Simulated releases of each.", min=2, max=_MOST)
    ] = 100,
    epsilon: Losses = None,
    only: Annotated[str, typer.Option(help="A part of the name of the populations to take.")] = "",
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "0",
    output: Annotated[
        Path | None, typer.Option(help="Write all figures as JSON, for --against.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="What --output wrote at another commit: ratios to its errors."),
    ] = None,
) -> None:
    """Cover, err and tell cells on 61 populations, and say which bars do not hold.

    Example: shoal bench honest --epsilon 1
    """
    from shoal_studies.benchmarks.honest import run

    losses = _losses(epsilon or [0.5, 1.0, 4.0])
    for line in run(losses, releases, only, delta, output, against):
        show(line)


@app.command()
def counts(
    repetitions: Repetitions = 4,
    epsilon: Losses = None,
    users: Annotated[
        int | None, typer.Option(help="Shapes of so many users alone; all of them if not given.")
    ] = None,
    delta: Annotated[str, typer.Option(help="Of (epsilon, delta)-DP.")] = "1e-9",
) -> None:
    """Err in two rounds over what one round errs, on made-up counts with values of six kinds.

    Example: shoal bench counts --repetitions 4 --users 2000
    """
    from shoal_studies.benchmarks.count_shapes import run

    for line in run(_losses(epsilon or [0.5, 1.0, 4.0]), repetitions, delta, users):
        show(line)


@app.command()
def plan(
    counts: Annotated[
        list[int] | None,
        typer.Option(
            help="Users in cells, about; repeat. Four sizes if not given.", min=100, max=10**9
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Gap at which the optimal plan stops.")] = 0.05,
    seconds: Annotated[float, typer.Option(help="Most seconds of the optimal plan.")] = 600.0,
) -> None:
    """Plan for counts of four sizes, up to a million users in ten thousand cells.

    Example: shoal bench plan --counts 10000 --counts 100000
    """
    from shoal_studies.benchmarks.plan import SIZES, run

    tolerance = checks.number(tolerance, "tolerance", least=1e-6, most=10, example=0.05)
    seconds = checks.number(seconds, "seconds", above=0, most=86_400, example=600)
    for line in run(counts or SIZES, tolerance, seconds):
        show(line)


@app.command()
def trials(
    repetitions: Repetitions = 2000,
    epsilon: Losses = None,
    seed: Seed = 0,
) -> None:
    """Compare variances of trial mechanisms at equal loss: where clusters pay, and where not.

    Example: shoal bench trials --repetitions 500 --epsilon 1
    """
    from shoal_studies.benchmarks.trials import EPSILONS, run

    for line in run(repetitions, _losses(epsilon or EPSILONS), seed):
        show(line)


@app.command()
def questions(
    repetitions: Repetitions = 300,
    epsilon: Annotated[float, typer.Option(help="Loss of one outcome.")] = 1.0,
) -> None:
    """Ask for effects beside Laplace noise by hand and tables of units: errors, widths, coverage.

    Example: shoal bench questions --repetitions 300
    """
    from shoal_studies.benchmarks.questions import run

    for line in run(_losses([epsilon])[0], repetitions):
        show(line)


@app.command()
def privatize(
    units: Annotated[
        int, typer.Option(help="Units to generate.", min=1000, max=10**9)
    ] = 10_000_000,
    clusters: Annotated[int, typer.Option(help="Clusters.", min=1, max=10**6)] = 1000,
) -> None:
    """Time whole trial releases beside a plain table of means on the same units.

    Example: shoal bench privatize --units 1000000
    """
    from shoal_studies.benchmarks.privatize import run

    for line in run(units, clusters):
        show(line)


@app.command()
def unbiased(
    repetitions: Repetitions = 2000,
    seed: Seed = 0,
) -> None:
    """Measure errors of unbiased means beside certificates, lower bounds and the paper's bounds.

    Example: shoal bench unbiased --repetitions 200
    """
    from shoal_studies.benchmarks.unbiased import run

    for line in run(repetitions, seed):
        show(line)


@app.command()
def ledger(
    entries: Annotated[
        list[int] | None,
        typer.Option(help="Histories; repeat. 10, 10^4, 10^6 if not.", min=1, max=10**8),
    ] = None,
    processes: Annotated[
        list[int] | None, typer.Option(help="Crowds; repeat. 1, 8 and 64 if not.", min=1, max=1024)
    ] = None,
    charges: Annotated[int, typer.Option(help="Of each history.", min=1, max=_MOST)] = 1000,
    seconds: Annotated[
        float, typer.Option(help="Of each crowd, in a round.", min=0.01, max=3600)
    ] = 5,
    rounds: Annotated[
        int, typer.Option(help="Of the crowds; figures are medians.", min=1, max=_MOST)
    ] = 5,
    against: Annotated[Path | None, typer.Option(help="Another checkout, beside it.")] = None,
) -> None:
    """Time durable charges after long histories, and by many processes at one ledger.

    Example: shoal bench ledger --processes 1 --processes 8
    """
    from shoal_studies.benchmarks import ledger as bench

    seconds = checks.number(seconds, "seconds", least=0.01, most=3600, example=5)
    options = (entries or bench.ENTRIES, processes or bench.PROCESSES, charges, seconds, rounds)
    for line in bench.beside(against, options):
        show(line)
