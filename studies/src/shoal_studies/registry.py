"""Studies and benches by name, and what a study leaves: a table, pictures and findings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import numpy as np
import typer
from numpy.typing import NDArray

from shoal.cli.output import show
from shoal.errors import InputError
from shoal_studies.chart import Chart, Row
from shoal_studies.simulate import Effort

P = ParamSpec("P")

# What registers studies and benches.
STUDY_MODULES = *(f"paper_00{number}" for number in range(5)), "flights_variance"
BENCH_MODULES = tuple(
    f"bench_{each}"
    for each in (
        *("system", "cost", "cells", "honest", "distributions", "presence"),
        *("trials", "questions", "ratios", "unbiased"),
    )
)
ALL = "all"


@dataclass(frozen=True)
class Finding:
    """A claim, what the paper says of it, what was found, and whether that is as in the paper."""

    claim: str
    paper: str
    found: str
    holds: bool | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """What a study found: a table, panels of one picture, and findings."""

    rows: list[Row] = field(repr=False)
    charts: list[Chart] = field(repr=False)
    findings: list[Finding]


@dataclass(frozen=True)
class Job:
    """A study by name: what is compared, where the paper shows it, and what does the work."""

    name: str
    title: str
    source: str
    run: Callable[[Effort], Study]

    def markdown(self, found: Study) -> str:
        """Findings as a table above the picture."""
        words = {True: "yes", False: "no", None: "-"}
        table = "\n".join(
            f"| {each.claim} | {each.paper} | {each.found} | {words[each.holds]} |"
            for each in found.findings
        )
        return (
            f"# {self.title}\n\nSource: {self.source}.\n\n"
            f"| claim | paper | found | holds |\n| --- | --- | --- | --- |\n{table}\n\n"
            f"![{self.title}]({self.name}.png)\n"
        )


STUDIES: dict[str, Job] = {}
BENCHES: dict[str, Callable[..., None]] = {}


def study(
    name: str, title: str, source: str
) -> Callable[[Callable[[Effort], Study]], Callable[[Effort], Study]]:
    """Register a study; name, paper and figure, is what the command line calls it."""

    def register(run: Callable[[Effort], Study]) -> Callable[[Effort], Study]:
        paper = f"paper {name[:3]}, " if name[0].isdigit() else ""
        STUDIES[name] = Job(name, title, paper + source, run)
        return run

    return register


def bench(name: str) -> Callable[[Callable[P, Iterator[str]]], Callable[P, Iterator[str]]]:
    """Register a bench, which yields lines; its parameters are the options of its verb."""

    def register(run: Callable[P, Iterator[str]]) -> Callable[P, Iterator[str]]:
        @functools.wraps(run)
        def command(*arguments: P.args, **options: P.kwargs) -> None:
            for line in run(*arguments, **options):
                show(line)

        BENCHES[name] = command
        return run

    return register


def option(text: str, least: float | None = None, most: float | None = None) -> Any:
    """An option of a bench with its range."""
    return typer.Option(help=text, min=least, max=most)


Repetitions = Annotated[int, option("Data sets, or releases, for each figure.", 2, 10**7)]
Losses = Annotated[list[float], option("Total loss; repeat.", 0.001, 100)]
Seed = Annotated[int, option("Of the simulation.", 0, 2**32)]


def load(modules: Iterable[str]) -> None:
    """Import what registers studies or benches."""
    for each in modules:
        import_module(f"shoal_studies.{each}")


def find(name: str) -> list[Job]:
    """The study of a name, or all of them by their names."""
    load(STUDY_MODULES)
    if name != ALL and name not in STUDIES:
        raise InputError(
            f"a study named {name[:40]!r}",
            f"{', '.join(sorted(STUDIES))}, or {ALL}",
            "see `shoal study list`",
        )
    return [STUDIES[each] for each in sorted(STUDIES) if name in (ALL, each)]


def column(rows: Sequence[Row], name: str, **where: object) -> NDArray[np.float64]:
    """Numbers of a column, of the rows that have these values in others."""
    return np.array(
        [float(row[name]) for row in rows if all(row[key] == value for key, value in where.items())]
    )


def short(number: float, digits: int = 6) -> float:
    """A figure of a table, with significant digits."""
    return float(f"{number:.{digits}g}")


def span(numbers: NDArray[np.float64], digits: int = 3) -> str:
    """From the least to the largest of some numbers."""
    low, high = f"{np.min(numbers):.{digits}g}", f"{np.max(numbers):.{digits}g}"
    return low if low == high else f"{low} to {high}"


def spans(
    claim: str,
    numbers: NDArray[np.float64],
    paper: str = "-",
    holds: NDArray[np.bool_] | None = None,
) -> Finding:
    """A finding of several numbers, which holds if it does for all of them."""
    return Finding(claim, paper, span(numbers), None if holds is None else bool(holds.all()))


def listed(numbers: Iterable[float]) -> str:
    """Numbers with commas, or "none"."""
    return ", ".join(f"{each:.3g}" for each in numbers) or "none"
