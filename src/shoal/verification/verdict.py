"""What a second opinion says: one claim a line, and whether all of them hold."""

from dataclasses import dataclass

from shoal.errors import printable
from shoal.files.text_table import Shown, TextTable


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
class Verdict(Shown):
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

    def _text(self) -> TextTable:
        """The verdict, one row a check, and what cannot be checked."""
        verdict = "yes: every claim that can be recomputed holds" if self.holds else "NO"
        rows = [
            [each.claim, "ok" if each.holds else "NO", printable(each.found)]
            for each in self.checks
        ]
        notes = ["A manifest cannot prove:", *(f"- {each}" for each in self.unverified)]
        return TextTable(verdict, ["check", "", "found"], rows, notes)


# What no manifest of any kind can prove.
ALWAYS = (
    "whether an unchanged shoal drew the noise from the operating system, and only once",
    "whether these noisy numbers were drawn with these scales: others that fit together would "
    "pass; the ledger holds those that were drawn",
    "whether counts, groups and columns are those of the data, and what one unit is",
    "whether request, bounds and name were chosen without a look at private values",
    "which versions of shoal, OpenDP and Python were used",
)
# Nor one that is looked at without the ledger.
WITHDRAWN = "whether it was withdrawn since: the ledger knows"
# What a manifest alone shows of its loss and errors.
ASK = (
    "the loss, stated as epsilon {:g}, and {}: to recompute them, ask the custodian for the record "
    "(SHA-256 {})"
)
# Nor one of cells without a new plan, of any mean, of a symmetric one, of one with squares.
DECISION = "whether the decision is the best one: a bad one increases the error, not the loss"
MEAN = (
    "whether users are independent and values have these moments: only errors depend on it",
    "whether another choice with this loss has a smaller error",
)
SYMMETRY = "whether values are symmetric about their mean: the interval depends on it"
NEARLY_NORMAL = "whether the mean of so many users is nearly normal: the interval depends on it"
