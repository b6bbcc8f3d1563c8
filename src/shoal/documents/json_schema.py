"""JSON Schema for shoal's documents: nothing unknown, nothing missing, types to the letter.

The files in `schemas/` are ordinary JSON Schema, for any reader. This small validator is stricter
than most: an `integer` is written without a point and a `number` with one or an exponent, so that
no value has two texts; true is no number; a keyword that it does not know is an error. It is part
of what the second opinion stands on: a few lines to read instead of a library to trust.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from shoal.documents.strict_json import Document
from shoal.errors import DocumentError

Test = Callable[[Any], bool]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (float,),
    "boolean": (bool,),
    "null": (type(None),),
}
_NOTES = {"$schema", "$id", "$defs", "title", "description", "required", "additionalProperties"}


def fits(document: Document, what: str) -> Document:
    """Refuse a document that is not of its schema, at any depth.

    Args:
        document: Plain JSON whose `schema` is one of shoal's.
        what: What it is called in an error.

    Raises:
        DocumentError: A part is unknown, missing, of another type or out of range.

    Example:
        >>> fits({"schema": "shoal.occupancy/1"}, "occupancy")
        Traceback (most recent call last):
        shoal.errors.DocumentError: the occupancy is damaged, or may have been changed: it is ...
    """
    name = str(document["schema"])
    if name.startswith("shoal.") and not validator(name.replace("/", "-"))(document):
        raise DocumentError(
            f"the {what} is damaged, or may have been changed: it is not of its schema",
            "a document written by shoal, with nothing added, left out or of another type",
            "fetch it again, write it again, or have it delivered from the ledger",
        )
    return document


@cache
def validator(name: str) -> Test:
    """The test of one schema, by the name of its file.

    Example:
        >>> validator("shoal.occupancy-1")({"user": "tailnum"})
        False
    """
    text = (
        files("shoal").joinpath("documents", "schemas", f"{name}.json").read_text(encoding="utf-8")
    )
    root = json.loads(text)
    return _compiled(root, root)


def _compiled(schema: Document, root: Document) -> Test:
    tests = [
        _KEYWORDS[word](told, schema, root) for word, told in schema.items() if word not in _NOTES
    ]
    if len(tests) == 1:
        return tests[0]
    # All of them, in the order of the file: types come first.
    return lambda value: all(test(value) for test in tests)


def _reference(told: str, _: Document, root: Document) -> Test:
    if told.startswith("#/$defs/"):
        return _compiled(root["$defs"][told.removeprefix("#/$defs/")], root)
    return validator(told.removesuffix(".json"))


def _type(told: str | list[str], _: Document, __: Document) -> Test:
    names = [told] if isinstance(told, str) else told
    allowed = {kind for name in names for kind in _TYPES[name]}
    return lambda value: type(value) in allowed


def _properties(told: Document, schema: Document, root: Document) -> Test:
    tests = {name: _compiled(each, root) for name, each in told.items()}
    needed = {*schema.get("required", ())}
    if schema["additionalProperties"] is not False:
        raise ValueError
    return lambda value: (
        value.keys() <= tests.keys()
        and needed <= value.keys()
        and all(tests[name](each) for name, each in value.items())
    )


def _each(told: Document, _: Document, root: Document) -> Test:
    test = _compiled(told, root)
    return lambda value: all(map(test, value))


def _values(told: Document, _: Document, root: Document) -> Test:
    test = _compiled(told, root)
    return lambda value: all(map(test, value.values()))


def _names(told: Document, _: Document, root: Document) -> Test:
    test = _compiled(told, root)
    return lambda value: all(map(test, value))


def _any(told: list[Document], _: Document, root: Document) -> Test:
    tests = [_compiled(each, root) for each in told]
    return lambda value: any(test(value) for test in tests)


def _pattern(told: str, _: Document, __: Document) -> Test:
    found = re.compile(told.removeprefix("^").removesuffix("$"))
    return lambda value: found.fullmatch(value) is not None


def _enum(told: list[object], _: Document, __: Document) -> Test:
    return lambda value: any(type(value) is type(each) and value == each for each in told)


_KEYWORDS: dict[str, Callable[[Any, Document, Document], Test]] = {
    "$ref": _reference,
    "type": _type,
    "properties": _properties,
    "patternProperties": lambda told, _, root: _values(next(iter(told.values())), _, root),
    "propertyNames": _names,
    "items": _each,
    "anyOf": _any,
    "pattern": _pattern,
    "enum": _enum,
    "const": lambda told, _, __: _enum([told], _, __),
    "minimum": lambda told, _, __: lambda value: told <= value,
    "maximum": lambda told, _, __: lambda value: value <= told,
    "exclusiveMinimum": lambda told, _, __: lambda value: told < value,
    "minLength": lambda told, _, __: lambda value: told <= len(value),
    "maxLength": lambda told, _, __: lambda value: len(value) <= told,
    "minItems": lambda told, _, __: lambda value: told <= len(value),
    "maxItems": lambda told, _, __: lambda value: len(value) <= told,
    # Members may be of any type, whatever their own test says: lists have no hash.
    "uniqueItems": lambda _, __, ___: lambda value: len(set(map(repr, value))) == len(value),
}
