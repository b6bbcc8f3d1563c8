"""The rules that a charge must keep: within the budget, and about the ledger's privacy unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shoal.errors import BudgetError, InputError
from shoal.privacy.charge_rounding import added

if TYPE_CHECKING:
    from shoal.privacy.budget import Budget
    from shoal.privacy.ledger.entry import Entry
    from shoal.privacy.privacy_unit import PrivacyUnit


class Answer(NamedTuple):
    """What a ledger holds of a question, and what it could still be charged, at one moment.

    Attributes:
        entry: What is recorded for the question and name; None if nothing is.
        names: The first names that the question was recorded under, in the order of their texts.
        unit: Whose losses the ledger adds up; None if nobody has said it yet.
        budget: What may be spent in all.
        spent: The sum of all charges.
    """

    entry: Entry | None
    names: list[str]
    unit: PrivacyUnit | None
    budget: Budget
    spent: Budget

    def check(self, charge: Budget, unit: PrivacyUnit) -> None:
        """Refuse early what would not fit now; only recording decides.

        Args:
            charge: As it would be booked.
            unit: Whose loss it is.

        Raises:
            InputError: It is about another privacy unit.
            BudgetError: It does not fit what is left.
        """
        refuse_other_unit(self.unit, unit)
        refuse_beyond(self.budget, self.spent, charge)


def refuse_beyond(budget: Budget, spent: Budget, charge: Budget) -> None:
    """Refuse a charge that would exceed a budget.

    Raises:
        BudgetError: With what was spent it is more than the budget, or has a delta where the budget
            has none.
    """
    if charge.delta and not budget.delta:
        raise BudgetError(
            f"a charge with delta, {charge.show(up=True)}, to a ledger made without delta",
            "releases with delta 0, that is pure differential privacy",
            "make the release with delta=0, or make the ledger of a data set with a delta from the "
            "start: a budget never changes",
        )
    if not added(spent, charge).within(budget):
        raise BudgetError(
            f"a charge of {charge.show(up=True)}",
            f"what is left of the budget, {(budget - spent).show(up=False)}",
            "ask for less, or ask again for a recorded release, which costs nothing",
        )


def refuse_other_unit(own: PrivacyUnit | None, asked: PrivacyUnit | None) -> None:
    """Refuse to add up losses of a row and of a person who owns many rows.

    Args:
        own: The ledger's unit; None if it has none yet.
        asked: That of a charge.

    Raises:
        InputError: They differ.
    """
    if own is not None and own != asked:
        word = "unit" if asked is None else asked.word
        todo = (
            f"if each {word} has one row only, leave out the column of units; "
            if own.records == "one"
            else f"if each {word} is one {own.word}, say privacy_unit={own.name!r} "
            f"(--privacy-unit {own.name!r}); "
        )
        raise InputError(
            f"a charge that protects {asked}",
            f"what this ledger protects: {own}",
            todo + "a second ledger is for other people only",
        )
