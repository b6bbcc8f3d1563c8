"""Public facts that nobody changes: arrays and mappings of frozen dataclasses are their own.

A frozen dataclass keeps names from being bound anew, not what they are bound to. A plan whose noise
could be written into after its loss was computed would be drawn with one noise and charged for
another. Here every array becomes a view of bytes, which nobody can write into, every list a tuple,
and every mapping a dictionary that refuses to change. So is every array that is derived
from them and kept.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn, Self, TypeVar, overload

import numpy as np

from shoal.errors import InputError

Kept = TypeVar("Kept")


class _Kept(bytes):
    """Memory that was copied here. NumPy makes arrays of plain bytes that can be written into."""

    __slots__ = ()


class FrozenDict(dict[str, Any]):
    """A dictionary that stays as it was made: JSON, copies and pickles take it as one.

    Example:
        >>> FrozenDict(cap=2) == {"cap": 2}
        True
    """

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("public facts of a plan do not change: make another plan")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        """Made anew from a plain dictionary."""
        return FrozenDict, (dict(self),)


class Frozen:
    """Makes the arrays and mappings of a frozen dataclass its own, also of copies and pickles."""

    def __post_init__(self) -> None:
        """Own copies of all fields, before anything is checked."""
        for name, value in _facts(self).items():
            object.__setattr__(self, name, own(value))

    def __getstate__(self) -> dict[str, Any]:
        """The facts alone: what was derived from them is derived again."""
        return _facts(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The facts, checked and frozen as when they were first given."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()


class cached_property(functools.cached_property[Kept]):  # noqa: N801
    """As that of functools; arrays that it keeps are views of bytes, also in tuples.

    Example:
        >>> class Half:
        ...     @cached_property
        ...     def number(self):
        ...         return np.zeros(2)
        >>> Half().number.flags.writeable
        False
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Kept: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        """The value, computed once."""
        found: Any = super().__get__(instance, owner)
        if found is self or not self.attrname:
            return found
        kept = vars(instance)[self.attrname] = _kept(found)
        return kept


def own(value: Any) -> Any:
    """A value whose arrays and mappings nobody else can change; other things as they are.

    Example:
        >>> given = np.ones(3)
        >>> kept = own(given)
        >>> given[0] = 7
        >>> kept.tolist(), kept.flags.writeable, own(kept) is kept
        ([1.0, 1.0, 1.0], False, True)
    """
    if isinstance(value, np.ndarray):
        return _own_array(value)
    if isinstance(value, FrozenDict):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({name: own(each) for name, each in value.items()})
    if type(value) in (tuple, list):
        return tuple(own(each) for each in value)
    return value


def thaw(value: Any) -> Any:
    """Plain dictionaries and lists again, new ones, as JSON documents have them.

    Example:
        >>> thaw(own({"cell": ["place"]}))
        {'cell': ['place']}
    """
    if isinstance(value, Mapping):
        return {name: thaw(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [thaw(each) for each in value]
    return value


def set_exactly(found: object, kind: Any, *names: str) -> None:
    """Fields of a frozen dataclass as arrays of a type: see `exactly`.

    Raises:
        InputError: As `exactly`.
    """
    for name in names:
        object.__setattr__(found, name, exactly(getattr(found, name), kind, name))


def exactly(value: object, kind: Any, name: str, shape: tuple[int, ...] | None = None) -> Any:
    """An array of whole or of finite numbers as one of a given type, its values unchanged.

    Args:
        value: What was given.
        kind: `np.int64` or `np.float64`.
        name: What it is called.
        shape: Which it must have; any one-dimensional array unless said.

    Raises:
        InputError: No plain array, another shape, or numbers that the type does not hold.

    Example:
        >>> exactly(np.array([1, 2], dtype="u1"), np.int64, "count").dtype
        dtype('int64')
    """
    plain = type(value) is np.ndarray and value.dtype.kind in ("iu" if kind is np.int64 else "f")
    if isinstance(value, np.ndarray) and plain:
        fits = value.ndim == 1 if shape is None else value.shape == shape
        if fits and value.dtype == np.dtype(kind) and value.dtype.isnative:
            found = value
        else:
            with np.errstate(all="ignore"):
                found = value.astype(kind)
        # Unsigned numbers beyond the type compare as floating-point numbers, which round.
        wrapped = value.dtype.kind == "u" and bool((found < 0).any())
        if fits and not wrapped and bool(((found == value) & np.isfinite(found)).all()):
            return found
    raise InputError(
        f"{name} that {'are' if name.endswith('s') else 'is'} no such array of numbers",
        f"{np.dtype(kind)} numbers"
        + ("" if shape is None else f", {' x '.join(map(str, shape))} of them"),
        "make the object with the function that makes it, and leave its arrays as they are",
    )


def _kept(found: Any) -> Any:
    """What is derived and kept, made of arrays that nobody can write into."""
    if type(found) is np.ndarray:
        return found if found.dtype.hasobject else own(found)
    if type(found) in (tuple, list):
        return tuple(_kept(each) for each in found)
    return found


def _own_array(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    root: Any = value
    while isinstance(root, np.ndarray):
        root = root.base
    if type(value) is np.ndarray and isinstance(root, _Kept):
        return value
    if type(value) is not np.ndarray or value.dtype.hasobject:
        raise InputError(
            f"an array of class {type(value).__name__} and type {value.dtype}",
            "a plain array of numbers",
            "leave the arrays as they were made",
        )
    return np.frombuffer(_Kept(value.tobytes()), dtype=value.dtype).reshape(value.shape)


def _facts(found: Any) -> dict[str, Any]:
    return {each.name: getattr(found, each.name) for each in fields(found)}
