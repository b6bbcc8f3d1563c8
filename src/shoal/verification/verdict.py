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
# Nor one of cells without a new plan, of any mean, of a symmetric one, of one with squares.
DECISION = "that the decision is the best for its request: another one costs error, never privacy"
MEAN = (
    "that users are independent and their values keep the moments: the certificates rest on it, the"
    " loss does not",
    "that no other choice of this loss has a smaller error",
)
SYMMETRY = (
    "that values are as likely above their mean as below, at every distance: the bias is 0 and the"
    " interval holds only then"
)
NEARLY_NORMAL = (
    "that the mean of so many users is nearly normal: a normal interval rests on it, a certified"
    " one on the moments alone"
)
