"""What a second opinion says: one claim a line, and whether all of them hold."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shoal.documents import Document
from shoal.errors import DocumentError, printable


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
    """All checks of one manifest, and what a manifest cannot prove.

    Attributes:
        checks: Each claim that was recomputed.
        unverified: What a manifest cannot prove, in sentences; no verdict depends on it.
    """

    checks: tuple[Check, ...]
    unverified: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(check.holds for check in self.checks)

    def __bool__(self) -> bool:
        """The same: `if shoal.verify(manifest):` accepts no lie."""
        return self.holds

    def __str__(self) -> str:
        """One line a check, one for what cannot be checked, and the verdict."""
        lines = [
            f"{'ok ' if c.holds else 'NO '} {c.claim}: {printable(c.found)}" for c in self.checks
        ]
        lines += [f"?   not verifiable: {each}" for each in self.unverified]
        verdict = "yes, every claim that can be recomputed holds" if self.holds else "NO"
        return "\n".join([*lines, verdict])


# What no manifest of any kind can prove.
ALWAYS = (
    "that the noise was drawn from the operating system, once, and by an unchanged shoal",
    "the drawn numbers themselves: others that fit are others' word (a ledger binds them)",
    (
        "that counts, groups and names of columns are those of the data, and that a privacy unit"
        " is what its name says"
    ),
    (
        "that the request, its bounds and its name are those that were asked for, and were chosen"
        " without looking at private values (a ledger binds them)"
    ),
    (
        "that noise and selections had the stated scales, on the stated lattice: others that agree"
        " with one another, with the request and with epsilon are others' word, and epsilon and"
        " intervals rest on them (a ledger binds them)"
    ),
    "the versions of shoal, OpenDP and Python",
)


def checked(
    check: Callable[[Document], Iterable[Check]],
    manifest: Document,
    unverified: Iterable[str] = (),
) -> Verdict:
    """Run all checks of a manifest; one whose parts cannot be read is damaged, whatever happens.

    Args:
        check: Gives the checks of a manifest.
        manifest: The document.
        unverified: What these cannot tell, besides what no manifest can prove.

    Raises:
        DocumentError: A part is missing or damaged.

    Example:
        >>> checked(lambda found: [Check("a name", "name" in found, "given")], {"name": 1}).holds
        True
    """
    import numpy as np

    try:
        # A number that overflows is no number of shoal's; one that is lost near 0 is, whatever the
        # caller has told NumPy to do with it.
        with np.errstate(all="ignore", over="raise"):
            return Verdict(tuple(check(manifest)), (*ALWAYS, *unverified))
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        RuntimeError,
        StopIteration,
        DocumentError,
    ):
        raise DocumentError(
            "the manifest is damaged, or may have been changed",
            "a document written by shoal",
            "fetch it again, or have it delivered from the ledger",
        ) from None
