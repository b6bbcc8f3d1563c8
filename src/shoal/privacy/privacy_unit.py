"""The privacy unit: whose values a charge protects. Charges of different units never add up."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from shoal.errors import InputError

EACH_ROW = "each row"
RELATION = "values"
_LONGEST = 200


def _letters(name: str) -> str:
    """Letters and digits alone, without accents, width and case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", name.casefold())))


@dataclass(frozen=True)
class PrivacyUnit:
    """What one privacy loss is about: all values of one person, vehicle, device, or row.

    Neighbouring data sets differ in the values of one unit; how many records it has, and where,
    is public. Losses add up only if they are about the same unit: a person who owns 100 rows
    loses up to 100 times what each row loses.

    Attributes:
        name: What is protected, in a word: usually the column that tells units apart. `each row`
            means that every record is a unit of its own.
        relation: What neighbours differ in: `values`.

    Example:
        >>> str(PrivacyUnit("person")), str(PrivacyUnit("each row"))
        ('all values of one person', 'the values of one row')
    """

    name: str
    relation: str = RELATION

    def __post_init__(self) -> None:
        """Refuse names that cannot be printed, and relations that nothing here protects."""
        # As Python's own: a text with equality of its own would be every unit, or none.
        for part in ("name", "relation"):
            if isinstance(getattr(self, part), str):
                object.__setattr__(self, part, str(getattr(self, part)))
        name = self.name
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
            raise InputError(
                "a privacy unit without a name",
                f"1 to {_LONGEST} printable characters, or {EACH_ROW!r}",
                'give for example "person"',
            )
        if name != EACH_ROW and _letters(name) == _letters(EACH_ROW):
            raise InputError(
                f"a privacy unit named {name!r}, which reads like {EACH_ROW!r}",
                f"{EACH_ROW!r} if every record is a unit of its own, or what else one is",
                "write it in small letters, or name what one unit is",
            )
        if name != " ".join(name.split()):
            raise InputError(
                f"a privacy unit named {name!r}, with blanks around it or two in a row",
                "a name that no other one looks like",
                f"give for example privacy_unit={' '.join(name.split()) or 'person'!r} "
                "(--privacy-unit; unit= or --unit of a ledger)",
            )
        if self.relation != RELATION:
            raise InputError(
                f"a relation of neighbours {str(self.relation)[:40]!r}",
                repr(RELATION),
                "leave it out",
            )

    @property
    def records(self) -> str:
        """Which records are a unit's: `all` that carry its name, or `one`."""
        return "one" if self.name == EACH_ROW else "all"

    @property
    def word(self) -> str:
        """What one unit is called: of each row, a row."""
        return self.name.removeprefix("each ")

    @classmethod
    def of(cls, unit: str | PrivacyUnit) -> PrivacyUnit:
        """A unit from its name.

        Raises:
            InputError: Not a name.
        """
        return unit if isinstance(unit, cls) else cls(unit)  # type: ignore[arg-type]

    @classmethod
    def of_column(cls, column: str) -> PrivacyUnit:
        """The unit that a column tells apart.

        Raises:
            InputError: A name that means something else.
        """
        if column == EACH_ROW:
            raise InputError(
                f"units that a column tells apart, named {EACH_ROW!r}",
                "another name: this one says that every record is a unit of its own",
                "name what one unit is, or leave the column of units out",
            )
        return cls(column)

    def to_document(self) -> dict[str, Any]:
        """The unit as a JSON object, as manifests hold it.

        Example:
            >>> PrivacyUnit("person").to_document()
            {'name': 'person', 'relation': 'values', 'records': 'all'}
        """
        return {"name": self.name, "relation": self.relation, "records": self.records}

    def to_text(self) -> str:
        """The one text of a unit, as stored and hashed."""
        return _text_of(self)

    @classmethod
    def from_text(cls, stored: str) -> PrivacyUnit:
        """The inverse of `to_text`.

        Raises:
            ValueError: Another text; the caller knows which file it is from.
        """
        document = json.loads(stored)
        if not isinstance(document, dict) or not {"name", "relation"} <= document.keys():
            raise ValueError
        found = cls(document["name"], document["relation"])
        if found.to_text() != stored:
            raise ValueError
        return found

    def __str__(self) -> str:
        """In words."""
        return (
            "the values of one row" if self.records == "one" else f"all values of one {self.name}"
        )


# Names that a ledger needs of values in memory: what each is for, and an example.
_NEEDED = {
    "outcome_name": ("tells outcomes of the same units apart", "bought"),
    "values_name": ("tells values of the same users apart", "height"),
    "privacy_unit": ("says what a unit is: losses of one unit are added up", "person"),
}


@lru_cache(maxsize=64)
def _text_of(unit: PrivacyUnit) -> str:
    return json.dumps(unit.to_document(), sort_keys=True, separators=(",", ":"))


class Whose(NamedTuple):
    """The unit of one release, and whether anybody said it.

    Attributes:
        unit: Whose loss the release is.
        said: Whether a name or a column of the caller says so. A row that nobody spoke of is a
            unit of its own only where a ledger already says the same.
    """

    unit: PrivacyUnit
    said: bool


def unit_of(privacy_unit: object, *, named: bool, recorded: bool, unnamed: str = "") -> Whose:
    """The unit of values in memory, where arrays have no names.

    Args:
        privacy_unit: What a unit is, in a word; empty if the caller does not say.
        named: Whether a column tells units apart; else every row is one.
        recorded: Whether a ledger adds the losses up.
        unnamed: The argument that says what the values are called, if it was left empty.

    Raises:
        InputError: A name is missing that a ledger needs; all such are asked for at once.

    Example:
        >>> unit_of("", named=False, recorded=True).unit.name
        'each row'
    """
    unsaid = isinstance(privacy_unit, str) and not privacy_unit
    missing = [*([unnamed] if unnamed else []), *(["privacy_unit"] if unsaid and named else [])]
    if recorded and missing:
        raise InputError(
            f"a ledger without {' and '.join(missing)}",
            "; ".join(f"{name}, which {_NEEDED[name][0]}" for name in missing),
            "give for example " + ", ".join(f'{name}="{_NEEDED[name][1]}"' for name in missing),
        )
    if unsaid:
        return Whose(PrivacyUnit("user" if named else EACH_ROW), said=False)
    whose = PrivacyUnit.of(privacy_unit)  # type: ignore[arg-type]
    # As text or as an object: users with many rows would be charged as if each row were one.
    if named:
        PrivacyUnit.of_column(whose.name)
    return Whose(whose, said=True)


def unit_of_column(privacy_unit: object, column: str) -> Whose:
    """The unit that a column tells apart, by the column's name or by another.

    Two files may call the same vehicles `plate` and `vehicle`: they are one unit if the caller
    says so.

    Args:
        privacy_unit: What a unit is, in a word; empty if it is what the column is called.
        column: The column's name.

    Raises:
        InputError: Not a name, or one that means every row by itself.

    Example:
        >>> unit_of_column("plate", "vehicle").unit.name, unit_of_column("", "plate").unit.name
        ('plate', 'plate')
    """
    # What a file calls the column may have blanks; what the ledger calls a unit may not.
    PrivacyUnit.of_column(" ".join(column.split()))
    if isinstance(privacy_unit, str) and not privacy_unit:
        return Whose(PrivacyUnit(column), said=True)
    return unit_of(privacy_unit, named=True, recorded=True)
