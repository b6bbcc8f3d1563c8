"""What a second opinion says: one claim a line, and whether all of them hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import DocumentError, raise_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shoal.documents import Document


@dataclass(frozen=True)
class Check:
    """One claim and whether it holds.

    Attributes:
        claim: What was checked, in words.
        holds: The verdict.
        found: What the recomputation gave.
    """

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Verdict:
    """All checks of one manifest."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(check.holds for check in self.checks)

    def __str__(self) -> str:
        """One line a check, and the verdict."""
        lines = [f"{'ok ' if c.holds else 'NO '} {c.claim}: {c.found}" for c in self.checks]
        return "\n".join([*lines, "yes, every claim holds" if self.holds else "NO"])


def checked(check: Callable[[Document], Iterable[Check]], manifest: Document) -> Verdict:
    """Run all checks of a manifest; one whose parts cannot be read is damaged, whatever happens.

    Args:
        check: Gives the checks of a manifest.
        manifest: The document.

    Raises:
        DocumentError: A part is missing or damaged.

    Example:
        >>> checked(lambda found: [Check("a name", "name" in found, "given")], {"name": 1}).holds
        True
    """
    try:
        return Verdict(tuple(check(manifest)))
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        DocumentError,
    ):
        raise_alone(
            DocumentError(
                "the manifest is damaged",
                "a document written by shoal",
                "fetch it again, or have it delivered from the ledger",
            )
        )
