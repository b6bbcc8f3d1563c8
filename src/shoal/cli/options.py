"""Options that several verbs share; their names are those of the Python arguments."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from shoal.cli import streams
from shoal.errors import printable

if TYPE_CHECKING:
    from shoal.privacy.ledger import Entry

FILES = (
    "a Parquet or CSV file (also .csv.gz, .csv.zst), a pattern of files in quotes, or a folder of "
    "Parquet files"
)
Data = Annotated[Path, typer.Argument(help=f"Records: {FILES}.")]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(metavar="LO HI", help="Public range of the value: two numbers."),
]
Json = Annotated[bool, typer.Option("--json", help="Print sorted JSON instead of text.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that are there; never an input or a ledger."),
]

Book = Annotated[Path, typer.Option("--ledger", help="The data set's ledger.")]
Manifest = Annotated[Path | None, typer.Option(help="Write the manifest here (JSON).")]
# docs/experiments.md#groups-that-were-assigned-whole
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Column of the cluster, public, within which units or groups of units were "
        "assigned; not for groups that have one arm each: give these to shoal trial estimate."
    ),
]
MOST_SHOWN = 1_000_000
Confidence = Annotated[float, typer.Option(help="Of the intervals.")]
Name = Annotated[
    str,
    typer.Option(
        help="What the release is of, such as 2013-05; another name draws, and costs, anew."
    ),
]
PrivacyUnitName = Annotated[
    str,
    typer.Option(
        "--privacy-unit",
        help="What the ledger calls a unit; by default the name of the column that tells units "
        "apart. Without such a column say 'each row', or what each row is.",
    ),
]


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what long work is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


def show(text: str) -> None:
    """Print to standard output; a reader that has gone does not stop the work."""
    try:
        # Names may be of any kind, also where a text was not made for reading.
        typer.echo("\n".join(map(printable, text.split("\n"))))
    except BrokenPipeError:
        streams.mute()


def show_json(document: dict[str, Any]) -> None:
    """Print sorted JSON to standard output."""
    show(json.dumps(document, sort_keys=True, indent=1, allow_nan=False))


class Delivered(Protocol):
    """A release of any family, as the command line shows it."""

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything public about it."""

    @property
    def entry(self) -> "Entry | None":
        """The ledger's entry."""

    @property
    def from_ledger(self) -> bool:
        """Whether it had been recorded before."""


def show_release(done: Delivered, ledger: Path, text: Callable[[], str], *, as_json: bool) -> None:
    """Print which entry holds a release, what it cost, and what it says; or all that as JSON."""
    if as_json:
        show_json({**done.manifest, "delivery": _delivery(done.entry, again=done.from_ledger)})
        return
    if done.entry is not None:
        show(_entry(done.entry, ledger, again=done.from_ledger))
    show(text())


def _entry(entry: "Entry", ledger: Path, *, again: bool) -> str:
    """Which entry holds a release, and what it cost, rounded upwards."""
    from shoal.release.release import origin_of

    origin = origin_of(entry, ledger, again=again)
    return origin if again else f"recorded: {origin}, {entry.charge.show(up=True)}"


def _delivery(entry: "Entry | None", *, again: bool) -> dict[str, Any] | None:
    """How a release was delivered, beside its manifest."""
    if entry is None:
        return None
    return {
        "entry": entry.number,
        "recorded_at": entry.recorded_at,
        "from_ledger": again,
        "charged": not again,
    }


def settings_of(texts: list[str]) -> dict[str, str | int | float]:
    """Settings of a mechanism from texts such as `cap=minimax`.

    Raises:
        InputError: A text without a name or a value.
    """
    from shoal.errors import InputError

    settings: dict[str, str | int | float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"a setting {text!r}", "name=value", "give for example cap=minimax")
        settings[name] = _number(value)
    return settings


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
