"""Every error shoal raises on purpose.

A message has three parts: what was got, what is allowed, what to do next. It never
contains a private value: only names, options, counts and other public facts.
"""

from __future__ import annotations

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
