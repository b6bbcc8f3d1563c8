"""docs/evidence.md: what was tried against which promise, and what was found."""

from __future__ import annotations

import platform
import sqlite3
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from tests.evidence.finding import shown
from tests.evidence.part import load

if TYPE_CHECKING:
    from tests.evidence.running import Ran

_LIBRARIES = ("shoal", "opendp", "duckdb", "numpy", "scipy", "dp-accounting")


@dataclass(frozen=True)
class Circumstances:
    """Of a run.

    Attributes:
        command: What was called.
        date: When it ended, in UTC.
        code: Commit of the code.
        seed: Of all attacks.
        scale: Part of the full sizes.
        workers: Processes at a time.
        minutes: From start to end.
    """

    command: str
    date: str
    code: str
    seed: int
    scale: float
    workers: int
    minutes: float


def page(ran: list[Ran], of: Circumstances) -> str:
    """The page, in Markdown."""
    failed = sum(len(each.outcome.failures) for each in ran)
    found = "No promise was broken." if failed == 0 else f"**Promises were broken {failed} times.**"
    size = "at full size" if of.scale == 1 else f"at {of.scale:g} times the full size"
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    libraries += f", Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    same = {each.code for each in ran} == {of.code}
    took = f", in {of.minutes:.0f} minutes" if same else ""
    lines = [
        "# Evidence",
        "",
        "*This page is written by a command and never by hand.*",
        "",
        f"`{of.command}` attacks the [guarantees](guarantees.md) {size}. {found}",
        "",
        f"- date: {of.date}{took}, with {of.workers} processes at a time",
        f"- commit of the code: `{of.code}`; seed {of.seed}",
        f"- versions: {libraries}",
        "",
        "| attack | promises | commit | tried | failures | seconds |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    if not same:
        lines.insert(
            len(lines) - 2,
            "Attacks of another commit were made on that one, and not again: "
            "`git diff` shows what has changed since.\n",
        )
    for each in ran:
        attack, outcome = load(each.module), each.outcome
        lines.append(
            f"| {attack.NAME} | {', '.join(attack.PROMISES)} | `{each.code[:7]}` "
            f"| {outcome.tried:,} {attack.UNIT} | {len(outcome.failures):,} | {each.seconds:,.0f} |"
        )
    lines += ["", "Seconds are those of all processes together.", "", "## What each attack does"]
    for each in ran:
        lines += ["", *_section(each)]
    return "\n".join(lines) + "\n"


def _section(each: Ran) -> list[str]:
    attack = load(each.module)
    about = " ".join((attack.__doc__ or "").split())
    lines = [f"### {attack.NAME[0].upper()}{attack.NAME[1:]}", "", about]
    lines += ["", f"The code is in `tests/evidence/{each.module}.py`."]
    more = [
        *each.outcome.notes,
        *(f"{name}: {many:,}" for name, many in sorted(each.outcome.counts.items())),
        *(f"{name}: at most {part:.4g}%" for name, part in sorted(each.outcome.most.items())),
    ]
    if more:
        lines += ["", *(f"- {line}" for line in more)]
    if each.outcome.failures:
        lines += ["", "Failures:", "", *(f"- {line}" for line in shown(each.outcome.failures))]
    return lines
