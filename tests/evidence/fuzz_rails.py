"""What surrounds an attack by hostile arguments: a folder, limits of time and memory, a command."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from tests.evidence.finding import Outcome, Progress

_MEMORY = 6 * 2**30
_SHOWN = 60


class TooSlowError(BaseException):
    """A case took longer than any of these may."""


class Run(Protocol):
    """The attack itself."""

    def __call__(self, size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
        """Try that many cases."""


@contextmanager
def rails(folder: Path) -> Iterator[None]:
    """Work in a folder, with so much memory, where an alarm raises."""
    home, alarm = Path.cwd(), signal.signal(signal.SIGALRM, _late)
    memory = resource.getrlimit(resource.RLIMIT_DATA)
    # Odd texts are names of files, too.
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, memory[1]))
    try:
        yield
    finally:
        os.chdir(home)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
        resource.setrlimit(resource.RLIMIT_DATA, memory)


def main(
    run: Run, again: Callable[[Path, int, int], None], kind: Callable[[str], str], size: int
) -> None:
    """Run from the command line, and count what was found by kind.

    Args:
        run: The attack.
        again: Runs one case alone: folder, seed, number.
        kind: Of a failure, from its line.
        size: How many cases, unless it is said.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("size", type=int, nargs="?", default=size)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if asked.case is not None:
            again(Path(place), asked.seed, asked.case)
            return
        found = run(asked.size, seed=asked.seed, folder=Path(place), progress=lambda _: None)
    sys.stdout.write("\n".join(found.failures) + "\n")
    for name, often in Counter(map(kind, found.failures)).most_common(_SHOWN):
        sys.stdout.write(f"{often:6d} {name}\n")
    counts = f"; {dict(found.counts)}" if found.counts else ""
    sys.stdout.write(f"{len(found.failures)} of {found.tried}{counts}\n")


def _late(_: int, __: FrameType | None) -> None:
    raise TooSlowError
