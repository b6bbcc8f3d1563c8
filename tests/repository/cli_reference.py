"""The reference page of the command line, made from its own help."""

from __future__ import annotations

import sys
from pathlib import Path

import typer.main

from shoal.cli.main import app


def reference() -> str:
    """The page as Markdown."""
    parts = ["# Command line\n\nMade from the commands' own help.\n"]
    queue = [("shoal", typer.main.get_command(app))]
    while queue:
        name, verb = queue.pop(0)
        commands = getattr(verb, "commands", {})
        queue += [(f"{name} {each}", commands[each]) for each in commands]
        if commands:
            continue
        text = (verb.help or "").replace("\n\n", "\n\n").strip()
        claim, _, example = text.partition("Example:")
        parts.append(f"## {name}\n\n{' '.join(claim.split())}\n")
        parts.append(f"```text\n{' '.join(example.split())}\n```\n")
        parts.append("| option | meaning | default |\n| --- | --- | --- |")
        for option in verb.params:
            flag = option.opts[0] if option.opts[0].startswith("-") else option.opts[0].upper()
            default = "" if option.required or option.default is None else f"`{option.default}`"
            if option.required:
                default = "required"
            meaning = (getattr(option, "help", "") or "").replace("|", "\\|")
            parts.append(f"| `{flag}` | {meaning} | {default} |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
