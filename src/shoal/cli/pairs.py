"""Options of two numbers, told in words when they are typed as one."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from shoal.errors import InputError

_BETWEEN = re.compile(r"[\s,;:]+")


def misspelt(command: Any, arguments: Sequence[str]) -> str:
    """What is wrong with an option of two numbers, if one is not followed by two; else nothing.

    Args:
        command: The command of Typer, with all below it.
        arguments: As typed; a value may follow `=`.

    Example:
        >>> import typer.main
        >>> from shoal.cli.main import app
        >>> misspelt(typer.main.get_command(app), ["plan", "--bounds", "0,700"])
        "--bounds is '0,700'; allowed: two numbers, a space between them; write --bounds 0 700."
    """
    known = _pairs(command)
    for at, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option not in known:
            continue
        words = [*([value] if equals else []), *arguments[at + 1 : at + 3]][:2]
        if len(words) == 2 and all(map(_is_number, words)):
            continue
        from shoal.checks import shown  # it loads NumPy, and most command lines are sound

        first = words[:1] if len(_numbers(words[:1])) > 1 else _values(words)
        found = _numbers(first)
        ends = found if len(found) == 2 else ["0", "100"]
        return str(
            InputError(
                f"{option} is {shown(' '.join(first))}",
                "two numbers, a space between them",
                f"{'write' if ends is found else 'give for example'} {option} {' '.join(ends)}",
            )
        )
    return ""


def _pairs(command: Any) -> set[str]:
    own = {name for each in command.params if each.nargs == 2 for name in each.opts}
    return own.union(*(_pairs(each) for each in getattr(command, "commands", {}).values()))


def _values(words: Sequence[str]) -> list[str]:
    """Words before the next option."""
    return words[: next((at for at, word in enumerate(words) if word.startswith("--")), None)]  # type: ignore[return-value]


def _numbers(words: Sequence[str]) -> list[str]:
    """The parts of words, if all are numbers."""
    parts = [each for each in _BETWEEN.split(" ".join(words).strip("()[] ")) if each]
    return parts if all(map(_is_number, parts)) else []


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False
