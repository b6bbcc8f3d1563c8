"""Defines documents as models, which hold their checks, their JSON and their JSON Schema.

A model is frozen and strict, and takes no names but its own. This module is loaded when a document
is made or read, never by `import shoal`.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, Self, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError

from shoal import documents
from shoal.arrays import Floats, Ints
from shoal.documents.strict_json import strict
from shoal.errors import DocumentError, InputError

Integers = Annotated[
    Ints,
    BeforeValidator(lambda found: _unpacked(found)),
    PlainSerializer(documents.pack_integers, return_type=dict[str, Any]),
]
Numbers = Annotated[
    Floats,
    BeforeValidator(lambda found: np.asarray(found, dtype=np.float64)),
    PlainSerializer(lambda found: found.tolist(), return_type=list[float]),
]


def checked(check: Callable[..., Any], *args: Any, **named: Any) -> BeforeValidator:
    """Returns a validator that calls one of shoal's checks, and lets None through."""
    return BeforeValidator(lambda found: found if found is None else check(found, *args, **named))


def _unpacked(found: Any) -> Ints:
    """Returns whole numbers from an array, or from their packed form in a document."""
    if isinstance(found, np.ndarray):
        return np.asarray(found, dtype=np.int64)
    return documents.unpack_integers(found, "integers")


def is_none(entry: object) -> bool:
    """Whether an entry is left out of a document, as are entries of newer versions if not given."""
    return entry is None


class Model(BaseModel):
    """Base of documents and of their parts."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        ignored_types=(cached_property,),
        populate_by_name=True,
    )

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Returns the model of a caller's arguments; an InputError says what is wrong with them."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise _input_error(error) from None

    def to_document(self) -> documents.Document:
        """Returns the model as a JSON object."""
        found: documents.Document = self.model_dump(mode="json", by_alias=True)
        return found

    @classmethod
    def from_bytes(cls, data: bytes, what: str, found: object = None) -> Self:
        """Returns the model of a document's canonical bytes, and accepts no others.

        `found` is what `strict` returned for these bytes, so that they are not parsed twice.
        """
        if found is None:
            found = strict(data, what)
        named = cls.model_fields.get("schema_")
        if named is not None:
            documents.expect(found, get_args(named.annotation)[0], what)
        try:
            return cls.model_validate_json(data)
        except (ValidationError, ValueError, TypeError, ArithmeticError, LookupError):
            raise DocumentError(
                f"the {what} is damaged, was changed by hand, or is of another version of shoal",
                "make it or fetch it again",
            ) from None


def _input_error(error: ValidationError) -> InputError:
    """Returns the error for a caller: that of one of our checks, or of the first bad argument."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    place = ".".join(map(str, first["loc"])) or "the request"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return InputError(f"{place} is not usable", message, f"give another {place}")
