"""What verbs print and write: places checked before any work, text or JSON, and plain words."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.errors import InputError, printable

if TYPE_CHECKING:
    from shoal.privacy.ledger import Entry

Places = Mapping[str, Path | None]


def check_places(
    inputs: Places,
    *,
    force: bool,
    tables: Places | None = None,
    documents: Places | None = None,
    pictures: Places | None = None,
) -> None:
    """Refuse what could otherwise destroy a file, or fail only after the charge.

    Args:
        inputs: What is read, by the name that the command line gives it.
        force: Whether files that are there may be replaced.
        tables: Outputs of rows.
        documents: Outputs of JSON.
        pictures: Outputs of drawings.
    """
    from shoal.files import check_outputs
    from shoal.files.tables import check_ending

    outputs = {**(tables or {}), **(documents or {}), **(pictures or {})}
    for name, place in outputs.items():
        if place is None:
            continue
        if name in (pictures or {}):
            from shoal.pictures import check_picture

            check_picture(place)
        elif name in (tables or {}):
            check_ending(place)
        elif place.suffix.lower() != ".json":
            raise InputError(f"{name} {str(place)!r}", "a name that ends in .json", "choose one")
    check_outputs(outputs, inputs, overwrite=force)


def show(text: object) -> None:
    """Print to standard output; a reader that has gone does not stop the work."""
    try:
        # Names may be of any kind, also where a text was not made for reading.
        typer.echo("\n".join(map(printable, str(text).split("\n"))))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(document: Mapping[str, Any]) -> None:
    """Print sorted JSON to standard output."""
    show(json.dumps(document, sort_keys=True, indent=1, allow_nan=False, default=str))


def recorded(entry: "Entry", ledger: object, *, again: bool) -> str:
    """Which entry of a ledger holds a release, and what it cost, rounded upwards."""
    named = f", named {entry.name!r}" if entry.name else ", without a name"
    where = f"entry {entry.number} of {ledger}{named}"
    if again:
        return f"recorded on {entry.recorded_at[:10]}, nothing charged: {where}"
    return f"recorded: {where}, {entry.charge.show(up=True)}"


def delivery(entry: "Entry", *, again: bool) -> dict[str, Any]:
    """How a release was delivered, beside its manifest."""
    facts = {"entry": entry.number, "recorded_at": entry.recorded_at}
    return {**facts, "from_ledger": again, "charged": not again}


def settings_of(texts: list[str] | None) -> dict[str, str | int | float]:
    """Settings from texts such as `cap=minimax`."""
    settings: dict[str, str | int | float] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in settings:
            raise InputError(f"a setting {text!r}", "give each once, for example cap=minimax")
        settings[name] = _number(value)
    return settings


def taken(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those of the settings that have these names, which are no longer among the others."""
    return {name: settings.pop(name) for name in names if name in settings}


def nothing_left(settings: Mapping[str, Any], *names: str) -> None:
    """Refuse settings that nothing takes."""
    if settings:
        raise InputError(f"a setting {next(iter(settings))!r}", f"give one of {', '.join(names)}")


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
