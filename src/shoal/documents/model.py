"""Documents as models: their checks, their JSON and their JSON Schema in one place.

A model is frozen and strict, and knows no other names than its own. It is loaded when a document is
made or read, never by `import shoal`.
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
    """Returns a validator that asks one of shoal's own checks, and lets None through."""
    return BeforeValidator(lambda found: found if found is None else check(found, *args, **named))


def _unpacked(found: Any) -> Ints:
    if isinstance(found, np.ndarray):
        return np.asarray(found, dtype=np.int64)
    return documents.unpack_integers(found, "integers")


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
        """The part that a caller asks for; an InputError says what is wrong with it."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise _input_error(error) from None

    def to_document(self) -> documents.Document:
        """The model as a JSON object."""
        found: documents.Document = self.model_dump(mode="json", by_alias=True)
        return found

    @classmethod
    def from_bytes(cls, data: bytes, what: str, found: object = None) -> Self:
        """The inverse of `to_document`, from canonical bytes and nothing else.

        What `strict` found in the bytes can be given, so that it is not looked for twice.
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
    first = error.errors(include_url=False)[0]
    own = first.get("ctx", {}).get("error")
    if isinstance(own, InputError):
        return own
    place = ".".join(map(str, first["loc"])) or "the request"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return InputError(f"{place} is not usable", message, f"give another {place}")
