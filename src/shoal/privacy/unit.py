"""The privacy unit, whose values a charge protects, and other names: texts, compared exactly.

A unit has the name of the column that tells users apart, or is `each row`: every record is a user
of its own. If counts are public, neighbouring data sets differ in the values of one unit, and
everybody may know how many records it has, and where; if they are private, the unit with all its
records is in one of them and not in the other. A person who owns 100 rows loses up to 100 times
what each row loses, so losses of different units are never added up.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from shoal import checks
from shoal.errors import InputError

Relation = Literal["private", "public"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
EACH_ROW = "each row"
_LONGEST = 200
# Names that a ledger needs of values in memory.
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
    """Whose losses are added up, and what of it is protected.

    Attributes:
        name: The column that tells users apart, a word for one of them, or `each row`.
        counts: Whether who has how many records in which cell is `public` or `private`.
        period: Of a unit such as a person and month; None if all records of a user are protected.

    Raises:
        InputError: The name or the relation is not usable.
    """

    name: str
    counts: Relation
    period: str | None = None

    def __post_init__(self) -> None:
        checked_unit(self.name)
        checks.choice(self.counts, RELATIONS, "counts")

    def __str__(self) -> str:
        """What a charge protects, for readers."""
        if self.counts == "private":
            return f"that one {self.name} is in the data at all, with all its records"
        if self.name == EACH_ROW:
            return "the value of one row; which rows there are is public"
        return f"all values of one {self.name}; who has how many records in which cell is public"

    def to_document(self) -> dict[str, Any]:
        """As plans, manifests and registers hold it."""
        records = "one" if self.name == EACH_ROW else "all"
        return {
            "name": self.name,
            "counts": self.counts,
            "period": self.period,
            "records": records,
        }


def unit_of_column(privacy_unit: str, column: str, counts: Relation = "public") -> Unit:
    """The unit that a column tells apart: its name, or another word for it; never each row."""
    unit = checked_unit(privacy_unit or column)
    if EACH_ROW in (unit, " ".join(column.split())):
        raise InputError(
            f"the unit of a column of users cannot be named {EACH_ROW!r}",
            "name what one user is, or leave the column of users out, so that each row is a user",
        )
    return Unit(unit, counts)


def unit_of_values(privacy_unit: str, *, several: bool, recorded: bool, unnamed: str = "") -> Unit:
    """The unit of values in memory: each row, unless the caller says what a user is.

    A ledger needs a word for users that an array tells apart (`several`), and one for the values:
    `unnamed` is the argument for it, if that was left empty. InputError if one is missing.
    """
    needed = [unnamed, "privacy_unit" if several and not privacy_unit else ""]
    missing = [each for each in needed if each]
    if recorded and missing:
        raise InputError(
            f"a charge to a ledger needs {' and '.join(missing)}",
            "give for example " + ", ".join(f'{name}="{_EXAMPLES[name]}"' for name in missing),
        )
    if several:
        return unit_of_column(privacy_unit, "user")
    return Unit(privacy_unit or EACH_ROW, "public")
