"""Every error shoal raises on purpose.

A message has three parts: what was got, what is allowed, what to do next. It never
contains a private value: only names, options, counts and other public facts.
"""

from __future__ import annotations

from typing import NoReturn

# Of each part of a message.
_LONGEST = 700


class ShoalError(Exception):
    """Base of all errors that shoal raises on purpose.

    Args:
        got: What was found, in public words only.
        allowed: What would have been accepted.
        todo: What the reader can do next.

    Example:
        >>> str(ShoalError("epsilon is -1", "epsilon above 0", "give for example epsilon=1"))
        'epsilon is -1; allowed: epsilon above 0; give for example epsilon=1.'
    """

    def __init__(self, got: str, allowed: str, todo: str) -> None:
        self.got, self.allowed, self.todo = map(one_line, (got, allowed, todo))
        super().__init__(f"{self.got}; allowed: {self.allowed}; {self.todo}.")

    def __reduce__(self) -> tuple[type[ShoalError], tuple[str, str, str]]:
        """Its three parts: an error of another process reaches the one that waits for it."""
        return type(self), (self.got, self.allowed, self.todo)


def one_line(text: str, most: int = _LONGEST) -> str:
    r"""A text on one line, printable, and no longer than anyone reads: names may be of any kind.

    Example:
        >>> one_line("a\n b\x00"), one_line("x" * 9, most=3)
        ('a b\\x00', 'xxx ...')
    """
    line = " ".join(text[: 2 * most].split())
    plain = printable(line)
    return plain if len(plain) <= most else f"{plain[:most]} ..."


def printable(text: str) -> str:
    r"""A text in which nothing moves a reader's cursor: other characters are shown escaped.

    Example:
        >>> printable("a\nb\u202ec")
        'a\\nb\\u202ec'
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


class InputError(ShoalError, ValueError):
    """An argument or option is not usable."""


class DataError(ShoalError, ValueError):
    """The records do not have the promised shape."""


class DocumentError(ShoalError, ValueError):
    """A file of shoal's (occupancy, plan, manifest) is corrupt, foreign or does not fit."""


class LedgerError(ShoalError):
    """A ledger is missing, corrupt, foreign or cannot be written."""


class BudgetError(ShoalError):
    """A charge does not fit what is left of a budget."""


class MissingPartError(ShoalError, ImportError):
    """An optional part of shoal is not installed."""


class ShoalWarning(UserWarning):
    """A question about public facts that may be as they should: nothing is refused for it."""


def is_failure(error: BaseException) -> bool:
    """Whether an exception says that something failed, not that the work is to stop.

    A crash inside of Polars, or another library in Rust, is no `Exception` for Python.

    Example:
        >>> is_failure(ValueError()), is_failure(KeyboardInterrupt()), is_failure(SystemExit())
        (True, False, False)
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def raise_alone(error: ShoalError | KeyboardInterrupt) -> NoReturn:
    """Raise an error of ours, or Ctrl-C, without the exception that is being handled.

    Python keeps that exception as `__context__`, also behind `from None`, and its message may hold
    the line of a file or a value. Local variables of the frames in a traceback are another matter:
    whoever prints those prints private data.

    Example:
        >>> try:
        ...     try:
        ...         float("431.5 mph")
        ...     except ValueError:
        ...         raise_alone(DataError("text among numbers", "numbers", "convert it"))
        ... except DataError as error:
        ...     print(error.__context__, error.__cause__)
        None None
    """
    try:
        raise error
    finally:
        error.__cause__ = error.__context__ = None
