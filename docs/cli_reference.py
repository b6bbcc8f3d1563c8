"""The reference page of the command line, made from its own help."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import get_args

import typer.main

from shoal.cli.main import app, extend


def _choices(kind: object) -> list[str]:
    """The names that an option takes, if it takes names of a list."""
    kinds = [kind, *get_args(kind)]
    enums = [each for each in kinds if isinstance(each, type) and issubclass(each, Enum)]
    return [str(name) for each in enums for name in each]


def _kind(option: object) -> object:
    return getattr(option, "type_descriptor").annotation  # noqa: B009  Typer's, unknown to checkers


def reference() -> str:
    """The page as Markdown."""
    extend(["study"])
    parts = ["# Command line\n\nMade from the commands' own help.\n"]
    queue = [("shoal", typer.main.get_command(app))]
    while queue:
        name, verb = queue.pop(0)
        commands = getattr(verb, "commands", {})
        queue += [(f"{name} {each}", commands[each]) for each in commands]
        if commands:
            continue
        text = (verb.help or "").replace("\n\n", "\n\n").strip()
        claim, _, rest = text.partition("Example:")
        example, _, more = rest.partition("\n\n")
        said = "\n\n".join(" ".join(each.split()) for each in f"{claim}\n\n{more}".split("\n\n"))
        parts.append(f"## {name}\n\n{said.strip()}\n")
        parts.append(f"```text\n{' '.join(example.split())}\n```\n")
        parts.append("| option | meaning | default |\n| --- | --- | --- |")
        for option in verb.params:
            flag = f"{option.opts[0]} {option.metavar or ''}".strip()
            flag = flag if flag.startswith("-") else option.opts[0].upper()
            default = (
                "" if option.required or option.default in (None, "") else f"`{option.default}`"
            )
            if option.required:
                default = "required"
            meaning = (getattr(option, "help", "") or "").replace("|", "\\|")
            known = ", ".join(f"`{each}`" for each in _choices(_kind(option)))
            meaning += f" One of {known}." if known else ""
            parts.append(f"| `{flag}` | {meaning} | {default} |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
