"""Standard input, output and errors, which whoever starts the command may have closed."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path


def open_all() -> None:
    """Open what is closed, on nothing: no file of ours may get the number of an output.

    Characters that the terminal cannot show are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one.
            os.open(os.devnull, os.O_RDWR)
    nothing = Path(os.devnull)
    # Python has none of a number that was closed; Typer and the engines count on one.
    sys.stdin = sys.stdin or nothing.open(encoding="utf-8")
    sys.stdout = sys.stdout or nothing.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nothing.open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def mute() -> None:
    """What is printed from now on goes nowhere: the reader has gone.

    Python would otherwise fail once more while it flushes.
    """
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def complain(text: str) -> None:
    """Say one line on standard error, if anything can be said there."""
    with suppress(OSError, ValueError):
        sys.stderr.write("shoal: " + " ".join(text.split()) + "\n")
        sys.stderr.flush()
