"""Defines the privacy unit, whose values a charge protects, and checks names.

Names are texts that are compared exactly. A unit has the name of the column that tells users apart,
or is `each row`: every record is a user of its own. If counts are public, neighbouring data sets
differ in the values of one unit, and everybody may know how many records it has, and where; if they
are private, the unit with all its records is in one of them and not in the other. A person who owns
100 rows loses up to 100 times what each row loses, so losses of different units are never added up.

A unit may also be a user in one period, such as a month: neighbouring data sets then differ in the
records of one user in one month. Its charges are booked on the periods of the records.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from shoal import checks
from shoal.errors import InputError
from shoal.files.text_table import counted
from shoal.privacy.budget import Budget

Relation = Literal["private", "public"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
EACH_ROW = "each row"
# The records of a unit if somebody said that each row is all that one user has.
DECLARED = "declared"
_LONGEST = 200
# Examples of the names that a ledger needs for values in memory.
_EXAMPLES = {"outcome_name": "bought", "values_name": "height", "privacy_unit": "person"}


def printed_text(value: object, what: str = "a name") -> str:
    """A text of up to 200 printable characters, such as a column's name; InputError if not."""
    if isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST:
        return value
    raise InputError(
        f"{what} is not short printable text",
        f'give up to {_LONGEST} printable characters, for example "2013-05"',
    )


def checked_name(value: object, what: str = "a release name") -> str:
    """A printed text without blanks around it or two in a row; InputError if not."""
    name = printed_text(value, what)
    plain = " ".join(str(value).split())
    if name != plain:
        raise InputError(
            f"{what} {name!r} has blanks around it or two in a row",
            f"give a name that cannot be mistaken for another, for example {plain!r}",
        )
    return name


def plain_spelling(names: Any) -> Any:
    """Texts of Arrow without blanks around them or zeros of numbers: 007 and 7.0 are both 7."""
    import pyarrow.compute as pc

    trimmed: Any = pc.utf8_trim_whitespace(names)
    return pc.replace_substring_regex(trimmed, r"^(-?)0*([0-9]+)([.]0+)?$", r"\1\2")


def checked_unit(value: object) -> str:
    """A privacy unit as a ledger keeps it: a name, and not an empty one; InputError if not."""
    unit = checked_name(value, "a privacy unit")
    if not unit:
        raise InputError(
            "the privacy unit has no name",
            f'name the column that identifies users, for example "person", or {EACH_ROW!r}',
        )
    return unit


@dataclass(frozen=True)
class Unit:
    """The unit whose losses are added up, and which part of it is protected.

    Attributes:
        name: The column that tells users apart, a word for one of them, or `each row`.
        counts: Whether who has how many records in which cell is `public` or `private`.
        period: The kind of period, such as `month`, if a user's records in one period are
            protected; None if all records of a user are protected.
        declared: Whether somebody said that each row is another user, which no column shows.

    Raises:
        InputError: The name, the relation or the period is not usable.
    """

    name: str
    counts: Relation
    period: str | None = None
    # A ledger adds up losses of users, however they were told apart.
    declared: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        checked_unit(self.name)
        checks.choice(self.counts, RELATIONS, "counts")
        if self.period is None:
            return
        if self.name == EACH_ROW:
            raise InputError(
                "a single row cannot be protected in each period: it has only one",
                "name the column of users as the privacy unit, or leave the period out",
            )
        if "(" in checked_name(self.period, "a period"):
            raise InputError(
                f"the period {self.period!r} of a unit names a column",
                "give only the kind, such as 'month'; the records name the column",
            )

    def __str__(self) -> str:
        """Returns what a charge protects, in words."""
        whose = self.name if self.period is None else f"{self.name} in one {self.period}"
        if self.counts == "private":
            return f"that one {whose} is in the data at all, with all its records"
        if self.name == EACH_ROW:
            return "the value of one row; which rows there are is public"
        return f"all values of one {whose}; who has how many records in which cell is public"

    def to_document(self) -> dict[str, Any]:
        """Returns the unit as plans, manifests and registers hold it."""
        records = "one" if self.name == EACH_ROW else "all"
        if self.declared:
            records = DECLARED
        return {
            "name": self.name,
            "counts": self.counts,
            "period": self.period,
            "records": records,
        }

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """The inverse of `to_document`."""
        declared = found["records"] == DECLARED
        return cls(found["name"], found["counts"], found["period"], declared)


# Periods that one release may read, or a ledger's entry name: ten years of days.
MOST_PERIODS = 4000
_RULE = re.compile(r"(\w+)\(.*\)")
# Words for periods, for cell rules that have another name.
_KINDS = {"date": "day"}
# The kinds of values that the column that divides records may hold. If it held another kind, the
# same rule might put the same record into another period.
ZONED = "times with a zone"
UNZONED = "times without a zone"
DATES = "dates"
TRUTHS = "true or false"
NAMES = "text or whole numbers"
_HELD = (ZONED, UNZONED, DATES, TRUTHS, NAMES)


@dataclass(frozen=True)
class Periods:
    """The periods of the records that a release reads: its charge is booked on each of them.

    Attributes:
        rule: How the records are divided, such as `month(at,Asia/Kolkata)`, or a column's name.
        holds: What the column of the rule holds, such as `times with a zone`.
        names: The periods as texts, such as `2026-05`, sorted.
    """

    rule: str
    holds: str
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The word for one of them, such as month."""
        call = _RULE.fullmatch(self.rule)
        return _KINDS.get(call[1], call[1]) if call else self.rule

    def __str__(self) -> str:
        """The first and the last of many."""
        return first_and_last(self.names)

    @property
    def clocks(self) -> str:
        """Says by which clocks records are divided; empty for a column that is the period."""
        call = _RULE.fullmatch(self.rule)
        if call is None:
            return ""
        _, _, zone = self.rule.removesuffix(")").partition(",")
        if self.holds == DATES:
            return f"{self.kind}s by dates, which no zone moves"
        if self.holds == UNZONED and not zone:
            return f"{self.kind}s by {UNZONED}, as written"
        clocks = f"the clocks of {zone}" if zone else "universal time"
        if self.holds == UNZONED:
            clocks += f"; {UNZONED} are taken for universal time"
        return f"{self.kind}s by {clocks}"

    @property
    def listed(self) -> list[str]:
        """The rule, what its column holds, and the names, as documents and ledgers have them."""
        return [self.rule, self.holds, *self.names]

    @classmethod
    def of_list(cls, listed: Sequence[str]) -> Self:
        """The inverse; ValueError or TypeError for what is not such a list."""
        rule, holds, *names = listed
        are_texts = isinstance(listed, list) and all(
            isinstance(each, str) and each.isprintable() for each in listed
        )
        if not are_texts or holds not in _HELD:
            raise ValueError
        if names != sorted(set(names)) or not 0 < len(names) <= MOST_PERIODS:
            raise ValueError
        return cls(rule, holds, tuple(names))

    @classmethod
    def of(cls, rule: str, holds: str, names: Sequence[str]) -> Self:
        """The periods of these names, which are sorted; InputError if there are none or many."""
        texts = {printed_text(each, "a period") for each in names}
        found = cls(rule, checks.choice(holds, _HELD, "what a column holds"), tuple(sorted(texts)))
        if not 0 < len(found.names) <= MOST_PERIODS:
            raise InputError(
                f"the records have {len(found.names):,} different values of {rule}",
                f"give a period of which there are 1 to {MOST_PERIODS:,}, such as month(at)",
            )
        return found


def first_and_last(names: Sequence[str]) -> str:
    """Returns names of periods in few words: the first and the last of more than three."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]} ({len(names):,})"


def over_all(unit: Unit, periods: int, loss: Budget, lost: str) -> str:
    """Says what a user with records in all of several periods has lost, or will lose."""
    many = f"one {unit.period}" if periods == 1 else f"all {counted(periods, str(unit.period))}"
    return f"one {unit.name} with records in {many} {lost} up to {loss.show(up=True)}"


def all_periods(unit: Unit, periods: Periods | Sequence[str] | None, charge: Budget) -> str:
    """Says what a release costs a user with records in all its periods; empty if there are none."""
    if periods is None:
        return ""
    names = periods.names if isinstance(periods, Periods) else periods
    loss = over_all(unit, len(names), charge.in_all(len(names)), "loses")
    sentence = f"; charged to {first_and_last(names)}: {loss}"
    if isinstance(periods, Periods) and periods.clocks:
        sentence += f"; {periods.clocks}"
    return sentence


def unit_of_column(
    privacy_unit: str, column: str, counts: Relation = "public", period: str | None = None
) -> Unit:
    """The unit that a column tells apart: its name, or another word for it; never each row."""
    unit = checked_unit(privacy_unit or column)
    if EACH_ROW in (unit, " ".join(column.split())):
        raise InputError(
            f"the unit of a column of users cannot be named {EACH_ROW!r}",
            "name what one user is, or leave the column of users out, so that each row is a user",
        )
    return Unit(unit, counts, period)


def unit_of_values(privacy_unit: str, *, several: bool, recorded: bool, unnamed: str = "") -> Unit:
    """The unit of values in memory: each row, unless the caller says what a user is.

    A ledger needs a word for users that a column tells apart (`several`), and one for the values:
    `unnamed` is the argument for it, if that was left empty. InputError if one is missing.
    """
    missing = [unnamed] if unnamed else []
    if several and not privacy_unit:
        missing.append("privacy_unit")
    if recorded and missing:
        examples = ", ".join(f'{name}="{_EXAMPLES[name]}"' for name in missing)
        raise InputError(
            f"a charge to a ledger needs {' and '.join(missing)}", f"give for example {examples}"
        )
    if several:
        return unit_of_column(privacy_unit, "user")
    name = privacy_unit or EACH_ROW
    return Unit(name, "public", declared=name != EACH_ROW)
