"""How far long work is, on a terminal only."""

import sys
from collections.abc import Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Wraps work, to show how far it is."""

    def __call__(self, items: Iterable[T], total: int) -> Iterable[T]:
        """The items again, one after the other, of so many."""


def bar(what: str) -> Progress:
    """A progress bar on standard error that goes away when the work is done.

    Args:
        what: Shown before the bar.
    """

    def shown(items: Iterable[T], total: int) -> Iterable[T]:
        if not sys.stderr.isatty():
            return items
        from rich.console import Console
        from rich.progress import track

        return track(items, what, total=total, console=Console(stderr=True), transient=True)

    return shown
