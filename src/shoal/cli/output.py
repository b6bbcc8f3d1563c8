"""Helps commands: checks output paths before work starts, prints text or JSON, words results."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.errors import InputError, printable
from shoal.progress import working

if TYPE_CHECKING:
    from shoal.privacy.ledger import Entry


def check_places(
    inputs: Mapping[str, Path | None],
    *,
    force: bool,
    table: Path | None = None,
    output: Path | None = None,
    manifest: Path | None = None,
    record: Path | None = None,
    picture: Path | None = None,
) -> None:
    """Refuse, before any work, what could destroy a file or fail only after the charge.

    Inputs are named as on the command line. --output is either a table or another `output`.
    """
    from shoal.files import check_outputs
    from shoal.files.tables import check_ending

    if table is not None:
        check_ending(table)
    if picture is not None:
        from shoal.pictures import check_picture

        check_picture(picture)
    for name, place in {"--output": output, "--manifest": manifest, "--record": record}.items():
        if place is not None and place.suffix.lower() != ".json":
            raise InputError(
                f"{name} {str(place)!r} does not end in .json", "choose a name that ends in .json"
            )
    outputs = {"--output": table or output, "--manifest": manifest, "--record": record}
    outputs["--picture"] = picture
    check_outputs(outputs, inputs, overwrite=force)


def finish(
    subject: Any,
    text: object = None,
    document: Callable[[], Mapping[str, Any]] | None = None,
    *,
    output: Path | None = None,
    picture: Path | None = None,
    force: bool,
    as_json: bool,
) -> None:
    """Save, draw and print a plan or a comparison."""
    if picture is not None:
        from shoal.pictures import check_subject

        check_subject(subject)
    if output is not None:
        subject.save(output, overwrite=force)
    if picture is not None:
        import shoal

        shoal.picture(subject, picture, overwrite=force)
    if as_json:
        show_json((document or subject.to_document)())
    else:
        # A plan of many cells is simulated when it is printed.
        with working("working out errors"):
            words = str(text or subject)
        show(words)


def show(text: object) -> None:
    """Print to standard output; a reader that has gone does not stop the work."""
    try:
        # Names may contain control characters, which no terminal should get.
        typer.echo("\n".join(map(printable, str(text).split("\n"))))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(document: Mapping[str, Any], indent: int | None = 1) -> None:
    """Print sorted JSON to standard output; without an indent it is one line."""
    show(json.dumps(document, sort_keys=True, indent=indent, allow_nan=False, default=str))


def recorded(done: Any) -> str:
    """Return which entry of a ledger holds a release, and what it cost now, rounded upwards."""
    if done.from_ledger:
        return str(done.origin)
    return f"recorded: {done.origin}, {done.entry.charge.show(up=True)}"


def delivery(entry: "Entry", *, again: bool) -> dict[str, Any]:
    """Return how a release was delivered, for JSON beside its manifest."""
    facts = {"entry": entry.number, "recorded_at": entry.recorded_at}
    return {**facts, "from_ledger": again, "charged": not again}


def settings_of(texts: list[str] | None) -> dict[str, str | int | float]:
    """Read settings from texts such as `cap=minimax`."""
    settings: dict[str, str | int | float] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in settings:
            raise InputError(
                f"the setting {text!r} is given twice, or lacks a name or a value",
                "give each setting once, like cap=minimax",
            )
        settings[name] = _number(value)
    return settings


def listed(keys: str | None) -> Any:
    """Return keys between commas as a list; a text with a first and a last key stays as it is."""
    return keys if keys is None or ".." in keys else keys.split(",")


def taken(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    """Take the settings with these names out of `settings`, and return them."""
    return {name: settings.pop(name) for name in names if name in settings}


def nothing_left(settings: Mapping[str, Any], *names: str) -> None:
    """Refuse settings that nothing takes."""
    if settings:
        raise InputError(
            f"there is no setting {next(iter(settings))!r}", f"choose one of {', '.join(names)}"
        )


def _number(text: str) -> str | int | float:
    """Return a setting's value as a whole number, a number, or else a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
