"""`python -m tests.evidence`: run the attacks and write docs/evidence.md."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.evidence.finding import ATTACKS, shown
from tests.evidence.page import Circumstances, page
from tests.evidence.part import load
from tests.evidence.running import Ran, code, finished, run

_FAULTS = 120
ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Run, write, and say what was found; 1 if a promise was broken."""
    options = _parser().parse_args(arguments)
    console, begun, commit = Console(stderr=True), time.monotonic(), code()
    sizes = {
        module: max(1, round(load(module).FULL * options.scale))
        for module in options.attack or ATTACKS
    }
    earlier = []
    if options.earlier:
        others = [module for module in ATTACKS if module not in sizes]
        folders = [options.results / each for each in options.earlier]
        try:
            earlier = [_first(module, options.scale, folders) for module in others]
        except FileNotFoundError as missing:
            console.print(f"{missing}; give whole names of commits that were run")
            return 2
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as bars:
        tasks = {
            module: bars.add_task(load(module).NAME, total=size) for module, size in sizes.items()
        }
        ran = run(
            sizes,
            seed=options.seed,
            results=options.results / commit,
            workers=options.workers,
            advance=lambda module, more: bars.advance(tasks[module], more),
        )
    ran = sorted([*ran, *earlier], key=lambda each: ATTACKS.index(each.module))
    of = Circumstances(
        command=_command(options),
        date=datetime.now(UTC).date().isoformat(),
        code=commit,
        seed=options.seed,
        scale=options.scale,
        workers=options.workers,
        minutes=(time.monotonic() - begun) / 60,
    )
    partly = options.attack and not options.earlier
    output = options.output or (None if partly else ROOT / "docs" / "evidence.md")
    if output is not None:
        output.write_text(page(ran, of), encoding="utf-8")
    failed = 0
    for each in ran:
        failed += len(each.outcome.failures)
        console.print(
            f"{load(each.module).NAME}: {each.outcome.tried:,} {load(each.module).UNIT}, "
            f"{len(each.outcome.failures)} failures, {each.seconds:.0f} s"
        )
        for line in shown(each.outcome.failures):
            console.print(f"  {line}", markup=False)
    return 1 if failed else 0


def _first(module: str, scale: float, folders: list[Path]) -> Ran:
    """What the first of some commits that has finished an attack found.

    Raises:
        FileNotFoundError: None of them has.
    """
    for folder in folders[:-1]:
        with suppress(FileNotFoundError):
            return finished(module, _least(module, scale), folder)
    return finished(module, _least(module, scale), folders[-1])


def _least(module: str, scale: float) -> int:
    """How many attempts an earlier commit must have made: its seeded faults may have been fewer."""
    full = _FAULTS if module == "faults" else load(module).FULL
    return max(1, round(full * scale))


def _command(options: argparse.Namespace) -> str:
    """What to call for the same run, without paths of this machine."""
    if not options.attack and options.scale == 1 and options.seed == 1:
        return "make evidence"
    chosen = ["--attack", *options.attack] if options.attack else []
    if options.earlier:
        chosen += ["--earlier", *options.earlier]
    words = [*chosen, "--scale", f"{options.scale:g}", "--seed", str(options.seed)]
    return " ".join(["python -m tests.evidence", *words])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    parser.add_argument(
        "--attack", nargs="+", choices=ATTACKS, metavar="NAME", help=f"of {', '.join(ATTACKS)}"
    )
    parser.add_argument(
        "--earlier", metavar="COMMIT", nargs="+",
        help="take the other attacks from what these commits finished; the page says so",
    )  # fmt: skip
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes")
    parser.add_argument("--seed", type=int, default=1, help="of all but the system's randomness")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--output", type=Path, help="the page; docs/evidence.md for all attacks")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "evidence-results",
        help="finished parts, so that a stopped run goes on",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
