"""What long work is going on: a moving line on a terminal, one plain line elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Protocol, TypeVar

T = TypeVar("T")
# Seconds after which work is long.
_LONG = 2.0
# What ends the lines of work that is going on: a bar takes their place.
_ends: list[Callable[[], None]] = []


class Progress(Protocol):
    """Wraps work, to show how far it is."""

    def __call__(self, items: Iterable[T], total: int) -> Iterable[T]:
        """The items again, one after the other, of so many."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error what is going on, once it is long."""
    shown: list[Callable[[], None]] = []

    def begin() -> None:
        if sys.stderr.isatty():
            from rich.console import Console

            status = Console(stderr=True).status(f"{what} ...")
            status.start()
            shown.append(status.stop)
        else:
            sys.stderr.write(f"shoal: {what} ...\n")

    timer = Timer(_LONG, begin)
    timer.daemon = True
    timer.start()

    def end() -> None:
        timer.cancel()
        timer.join()
        for each in shown:
            each()

    _ends.append(end)
    try:
        yield
    finally:
        _ends.remove(end)
        end()


def bar(what: str) -> Progress:
    """A progress bar on a terminal, which goes away when the work is done."""

    def shown(items: Iterable[T], total: int) -> Iterable[T]:
        for end in _ends:
            end()
        if not sys.stderr.isatty():
            with working(what):
                yield from items
            return
        from rich.console import Console
        from rich.progress import track

        yield from track(items, what, total=total, console=Console(stderr=True), transient=True)

    return shown
