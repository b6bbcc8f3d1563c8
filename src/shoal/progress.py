"""Shows which long work is going on: a moving line on a terminal, one plain line elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Protocol, TypeVar

T = TypeVar("T")
# Seconds after which work is long.
_LONG = 2.0
# Functions that end the lines of work that is going on, as a bar takes their place.
_ends: list[Callable[[], None]] = []


class Progress(Protocol):
    """Wraps work, to show how far it is."""

    def __call__(self, items: Iterable[T], total: int) -> Iterable[T]:
        """Returns the items one by one; `total` is their number."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error what is going on, once it is long."""

    def begin() -> Callable[[], None]:
        if not _on_terminal():
            sys.stderr.write(f"shoal: {what} ...\n")
            return lambda: None
        from rich.console import Console

        status = Console(stderr=True).status(f"{what} ...")
        status.start()
        return status.stop

    with _once_long(begin):
        yield


def bar(what: str) -> Progress:
    """Returns a progress bar of long work on a terminal, which goes away when the work is done."""

    def shown(items: Iterable[T], total: int) -> Iterable[T]:
        # A terminal has room for one line alone.
        for end in _ends:
            end()
        if not _on_terminal():
            with working(what):
                yield from items
            return
        from rich import progress
        from rich.console import Console

        display = progress.Progress(console=Console(stderr=True), transient=True)
        task = display.add_task(what, total=total)

        def begin() -> Callable[[], None]:
            display.start()
            return display.stop

        with _once_long(begin):
            for item in items:
                yield item
                display.advance(task)

    return shown


@contextmanager
def said(what: str) -> Iterator[None]:
    """Does what `working` does, but only on a terminal, and not below another line."""
    if _ends or not _on_terminal():
        yield
        return
    with working(what):
        yield


def tracked(items: Sequence[T], what: str, progress: Progress | None) -> Iterable[T]:
    """Returns items with the caller's progress, or else with a bar on a terminal."""
    if progress is not None:
        return progress(items, len(items))
    return bar(what)(items, len(items)) if _on_terminal() else items


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _once_long(begin: Callable[[], Callable[[], None]]) -> Iterator[None]:
    """Calls `begin` once the work in the block is long, and what it returned when the work ends.

    A bar that begins inside the block ends the line before that, by `_ends`.
    """
    # What ends the line, as soon as there is one.
    shown: list[Callable[[], None]] = []
    timer = Timer(_LONG, lambda: shown.append(begin()))
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
