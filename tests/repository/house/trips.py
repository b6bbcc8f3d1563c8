"""What one release passes through: files, calls, and calls from one file into another."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


@dataclass(frozen=True)
class Trip:
    """A run of a function, seen from the files of the package.

    Attributes:
        files: How many files of the package were entered.
        calls: Calls of the package's functions.
        crossings: Calls of these whose caller is in another file of the package.
        depth: The largest number of its functions that were open at one time.
    """

    files: int
    calls: int
    crossings: int
    depth: int


def trip(run: Callable[[], object], source: str) -> Trip:
    """Run a function and count what it passes in the files below `source`.

    The function runs once before, so that imports and caches are not counted.
    """
    run()
    files, counts, open_ = set[str](), [0, 0, 0], 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal open_
        name = frame.f_code.co_filename
        if not name.startswith(source):
            return
        if event == "call":
            above = _caller(frame, source)
            files.add(name)
            counts[0] += 1
            counts[1] += above is not None and above != name
            open_ += 1
            counts[2] = max(counts[2], open_)
        elif event == "return":
            open_ -= 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return Trip(len(files), counts[0], counts[1], counts[2])


def _caller(frame: FrameType, source: str) -> str | None:
    """The nearest file of the package above, through frames of other libraries."""
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.startswith(source):
        above = above.f_back
    return None if above is None else above.f_code.co_filename
