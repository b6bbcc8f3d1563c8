"""Holds the verdict on a manifest: which of its claims hold, and what it cannot prove."""

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
        word: The verdict if it holds: `ok`, or `declared` of what somebody said.
    """

    claim: str
    holds: bool
    found: str
    word: str = "ok"


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
        """Whether every claim holds, so that `if shoal.verify(manifest):` accepts no lie."""
        return self.holds

    def _text(self) -> TextTable:
        """The verdict, one row for each check, and what cannot be checked."""
        verdict = "yes: every claim that can be recomputed holds" if self.holds else "NO"
        rows = [
            [each.claim, each.word if each.holds else "NO", printable(each.found)]
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
# What no manifest can prove without the ledger.
WITHDRAWN = "whether it was withdrawn since: the ledger knows"
# What a manifest cannot prove without its record.
ASK = (
    "the loss, stated as epsilon {:g}, and {}: to recompute them, ask the custodian for the record "
    "(SHA-256 {})"
)
# What a record of cells cannot prove without a new plan.
DECISION = "whether the decision is the best one: a bad one increases the error, not the loss"
# What no record of a mean can prove.
MEAN = (
    "whether users are independent and values have these moments: only errors depend on it",
    "whether another choice with this loss has a smaller error",
)
# What the record of a symmetric mean cannot prove either.
SYMMETRY = "whether values are symmetric about their mean: the interval depends on it"
# What the record of a mean with squares cannot prove either.
NEARLY_NORMAL = "whether the mean of so many users is nearly normal: the interval depends on it"
