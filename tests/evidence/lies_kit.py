"""Ways to change a document, from which lies are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal import documents

if TYPE_CHECKING:
    from collections.abc import Callable

    Document = dict[str, Any]
    Change = Callable[[Document], object]
    Lies = dict[str, Change]


class NotHereError(Exception):
    """The manifest has nothing that the lie is about."""


def at(document: Document, path: str) -> tuple[Any, Any]:
    """What holds a field, and its key there: names and positions joined by dots."""
    *way, last = path.split(".")
    holder: Any = document
    for name in way:
        holder = holder[_key(holder, name)]
    return holder, _key(holder, last)


def get(document: Document, path: str) -> Any:  # noqa: ANN401
    """A field."""
    holder, key = at(document, path)
    return holder[key]


def put(*paths: str, to: object) -> Change:
    """Another value at every one of some places; what is called gets the old value."""

    def change(document: Document) -> None:
        for path in paths:
            holder, key = at(document, path)
            holder[key] = to(holder[key]) if callable(to) else to

    return change


def add(path: str, name: str, value: object) -> Change:
    """One more field in an object."""

    def change(document: Document) -> None:
        holder = get(document, path) if path else document
        if not isinstance(holder, dict):
            raise NotHereError
        holder[name] = value

    return change


def drop(path: str) -> Change:
    """One field less."""

    def change(document: Document) -> None:
        holder, key = at(document, path)
        del holder[key]

    return change


def each(path: str, to: Callable[[Any], object]) -> Change:
    """Every member of a list changed."""
    return put(path, to=lambda old: [to(one) for one in _filled(old)])


def one(path: str, to: Callable[[Any], object], position: int = 0) -> Change:
    """One member of a list changed."""

    def change(document: Document) -> None:
        members = _filled(get(document, path))
        members[position] = to(members[position])

    return change


def packed(path: str, to: Callable[[Any], Any]) -> Change:
    """Packed whole numbers changed and packed again."""

    def change(document: Document) -> None:
        holder, key = at(document, path)
        holder[key] = documents.pack_integers(to(documents.unpack_integers(holder[key], path)))

    return change


def all_of(*changes: Change) -> Change:
    """Several changes in one."""

    def change(document: Document) -> None:
        for each_change in changes:
            each_change(document)

    return change


def where(path: str, value: object, change: Change) -> Change:
    """A change that only makes sense where a field has a value."""

    def only(document: Document) -> None:
        if get(document, path) != value:
            raise NotHereError
        change(document)

    return only


def times(factor: float) -> Callable[[Any], Any]:
    """So many times a number; nothing where there is no number."""

    def change(old: Any) -> Any:  # noqa: ANN401
        if isinstance(old, bool) or not isinstance(old, int | float) or old == 0:
            raise NotHereError
        return old * factor if isinstance(old, float) else int(old * factor)

    return change


def plus(step: float) -> Callable[[Any], Any]:
    """A number moved."""

    def change(old: Any) -> Any:  # noqa: ANN401
        if isinstance(old, bool) or not isinstance(old, int | float):
            raise NotHereError
        return old + step

    return change


def _filled(members: Any) -> list[Any]:  # noqa: ANN401
    if not isinstance(members, list) or not members:
        raise NotHereError
    return members


def _key(holder: Any, name: str) -> Any:  # noqa: ANN401
    return int(name) if isinstance(holder, list) else name
