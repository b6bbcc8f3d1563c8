"""Defines every error that shoal raises on purpose.

A message says what is wrong and what to do; some say between these what is allowed. It never
contains a private value: only names, options, counts and other public facts.
"""

from __future__ import annotations

# The most characters of each part of a message.
_LONGEST = 700


class ShoalError(Exception):
    """Base of all errors that shoal raises on purpose.

    Example:
        >>> str(ShoalError("epsilon is -1", "give an epsilon above 0"))
        'epsilon is -1; give an epsilon above 0.'
        >>> str(ShoalError("epsilon is -1", "epsilon above 0", "give for example epsilon=1"))
        'epsilon is -1; allowed: epsilon above 0; give for example epsilon=1.'
    """

    def __init__(self, got: str, *rest: str) -> None:
        allowed, todo = ("", *rest)[-2:]
        self.got, self.allowed, self.todo = map(one_line, (got, allowed, todo))
        between = f"allowed: {self.allowed}; " if self.allowed else ""
        super().__init__(f"{self.got}; {between}{self.todo}.")

    def __reduce__(self) -> tuple[type[ShoalError], tuple[str, str, str]]:
        """Pickles the three parts, so that an error reaches a process that waits for another."""
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
    """A file of shoal's (counts, plan, manifest) is corrupt, foreign or does not fit."""


class LedgerError(ShoalError):
    """A ledger is missing, corrupt, foreign or cannot be written."""


class BudgetError(ShoalError):
    """A charge does not fit what is left of a budget."""


class MissingPartError(ShoalError, ImportError):
    """An optional part of shoal is not installed."""


class ShoalWarning(UserWarning):
    """A question about public facts that may be as they should: nothing is refused for it."""
