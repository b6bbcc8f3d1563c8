"""What the docstrings of the public names leave out.

Public are the names that `shoal`, `shoal.bounds`, `shoal.mean`, `shoal.trials` and
`shoal.unbiased` export, the classes that their functions and methods return, and of every class
its methods and properties without an underscore, inherited ones of shoal included. Each must say:

- **docstring**: at least one sentence. For a property that is enough, but for shapes and units;
- **args**: an entry in `Args` for every parameter; for a class, in `Args` or `Attributes`, and an
  entry in the docstring of a base class counts;
- what a method overrides may say what it does not repeat: a base class's method of that name;
- **returns**: a section `Returns`, if something is returned;
- **raises**: every error of shoal that the body itself raises, by its name in `Raises`;
- **shape**: the word "shape" where an array comes in or goes out, "row" where a table does;
- **unit**: where a number or array of numbers comes in or goes out, its unit, or one of the words
  of `KINDS` for a number that has none;
- **source**: for what `EXACT` lists, a paper, an erratum or a page of docs/theory, followed by
  `tests.repository.citations`;
- **example**: for exported functions and classes, one that runs (`>>>`);
- **order**: a sentence, formula and `Source`, then the sections of `ORDER`;
- **word**: none of `DIALECT`, but in code.

Every function of `shoal.theory` must say the same; its module may cite the source.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import sys
import textwrap
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

import shoal.theory
from tests.repository.citations import PAGE, PAPER, errata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PUBLIC = ("shoal", "shoal.bounds", "shoal.mean", "shoal.trials", "shoal.unbiased")
# Where formulas are: the other packages read, write, check and draw pictures.
EXACT = ("shoal.cells", "shoal.means", "shoal.privacy.noise", "shoal.theory", "shoal.trials")
KINDS = (
    "unit", "share", "probability", "part", "loss", "ratio", "factor", "epsilon", "delta", "times",
    "order", "confidence", "power", "degrees", "variance", "whole number", "width", "steps",
    "over u",
)  # fmt: skip
ORDER = ("Source", "Args", "Attributes", "Returns", "Raises", "Guarantees", "Example")
# Words that only this library would use so.
DIALECT = (
    *("errs", "err", "dearest", "wish", "wishes", "law", "laws", "astray", "doubt", "outlook"),
    *("worthless", "borrowed", "prices", "room", "span", "extent", "reach"),
)
_HEADING = re.compile(rf"^({'|'.join(ORDER)}):", re.MULTILINE)
_PLAIN = re.compile(r"`[^`]*`|^Example:.*", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:[ ]+.*\n|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    ([*\w]+)(?: \([^)]*\))?:((?:.*\n)(?:     +.*\n|\n)*)", re.MULTILINE)
_FLOATS = re.compile(r"\bfloat|\bArrayLike|\bFloats\b")
_ARRAYS = re.compile(r"\bNDArray|\bArrayLike|\bFloats\b")
_NAME = re.compile(r"\b[A-Z]\w+")


@dataclass(frozen=True, order=True)
class Gap:
    """Something that a docstring leaves out.

    Attributes:
        name: Of the function, class, method or property, with its module.
        what: The rule, and about what.
    """

    name: str
    what: str


@dataclass(frozen=True)
class Docstring:
    """A docstring taken apart."""

    text: str

    @cached_property
    def sections(self) -> dict[str, str]:
        """Text of each section."""
        return dict(_SECTION.findall(f"{self.text}\n"))

    def entries(self, *sections: str) -> dict[str, str]:
        """Text of each entry of some sections, by name."""
        found = "".join(self.sections.get(each, "") for each in sections)
        return {name.strip("*"): text for name, text in _ENTRY.findall(found)}


def gaps() -> list[Gap]:
    """Every gap in the docstrings of the public names."""
    found: set[Gap] = set()
    for value, exported in public():
        found |= set(_class(value, exported) if inspect.isclass(value) else _function(value))
    for each in closed_forms():
        found |= set(_method(each)) | set(_closed(each))
    return sorted(found)


def closed_forms() -> Iterator[FunctionType]:
    """Every function of `shoal.theory`."""
    for module in pkgutil.walk_packages(shoal.theory.__path__, "shoal.theory."):
        for name, value in vars(import_module(module.name)).items():
            own = getattr(value, "__module__", "") == module.name
            if own and isinstance(value, FunctionType) and not name.startswith("_"):
                yield value


def public() -> Iterator[tuple[Any, bool]]:
    """Exported functions and classes, and the classes they return; with whether exported."""
    exported = {
        id(value): value
        for module in map(import_module, PUBLIC)
        for name in module.__all__
        if callable(value := getattr(module, name))
    }
    queue, seen = list(exported.values()), set(exported)
    for value in queue:
        yield value, id(value) in exported
        members = [each for _, each in _members(value)] if inspect.isclass(value) else [value]
        for returned in (each for member in members for each in _returned(member)):
            if id(returned) not in seen:
                seen.add(id(returned))
                queue.append(returned)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, each as its class of ours defines it last."""
    seen: set[str] = set()
    for base in kind.__mro__:
        for name in vars(base):
            if name.startswith("_") or name in seen or not base.__module__.startswith("shoal"):
                continue
            seen.add(name)
            plain = _raw(base, name)
            if isinstance(plain, FunctionType | property | cached_property):
                yield name, plain


def _plain(value: Any) -> FunctionType:  # noqa: ANN401
    """The function behind a property."""
    found = getattr(value, "fget", None) or getattr(value, "func", None) or value
    plain: FunctionType = inspect.unwrap(found)
    return plain


def _returned(value: Any) -> Iterator[type]:  # noqa: ANN401
    """Classes of ours in a return annotation."""
    if not inspect.isfunction(value):
        return
    function = inspect.unwrap(value)
    for name in _NAME.findall(str(function.__annotations__.get("return", ""))):
        found = _resolved(function.__module__, name)
        if inspect.isclass(found) and found.__module__.startswith("shoal"):
            yield found


def _resolved(module: str, name: str) -> Any:  # noqa: ANN401
    """What a name means in a module, imports for type checking included."""
    if hasattr(sys.modules[module], name):
        return getattr(sys.modules[module], name)
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
            return getattr(import_module(node.module or ""), name, None)
    return None


def _text(name: str, doc: Docstring) -> Iterator[Gap]:
    """What is wrong with a docstring as a text."""
    if not doc.text:
        yield Gap(name, "docstring")
    places = [ORDER.index(each) for each in _HEADING.findall(doc.text)]
    if places != sorted(places):
        yield Gap(name, "order")
    plain = set(re.findall(r"\w+", _PLAIN.sub("", doc.text).lower()))
    yield from (Gap(name, f"word: {each}") for each in DIALECT if each in plain)


def _class(kind: type, exported: bool) -> Iterator[Gap]:  # noqa: FBT001
    name = f"{kind.__module__}.{kind.__qualname__}"
    doc = Docstring(inspect.cleandoc(kind.__doc__ or ""))
    yield from _text(name, doc)
    known: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        known |= Docstring(inspect.cleandoc(base.__doc__ or "")).entries("Args", "Attributes")
    own = [each for each in kind.__mro__ if each.__module__.startswith("shoal")]
    made = any("__init__" in vars(each) for each in own) and not getattr(
        kind, "_is_protocol", False
    )
    if made and not issubclass(kind, Exception):
        annotated = {k: v for each in reversed(own) for k, v in _annotations(each).items()}
        for parameter in list(inspect.signature(kind).parameters):
            yield from _entry(name, parameter, annotated.get(parameter, ""), known)
    makers = [vars(kind).get(each) for each in ("__init__", "__post_init__") if made]
    yield from (gap for each in makers if each for gap in _raises(name, each, doc))
    yield from _formula(name, kind.__module__, doc) if exported else ()
    if exported and ">>>" not in doc.text:
        yield Gap(name, "example")
    for member_name, member in _members(kind):
        if inspect.isfunction(member):
            over = [
                found for base in own if isinstance(found := _raw(base, member_name), FunctionType)
            ]
            yield from _method(member, over)
        else:
            yield from _property(member)


def _raw(kind: type, name: str) -> Any:  # noqa: ANN401
    """What a class itself defines, a class or static method as its function."""
    value = vars(kind).get(name)
    return value.__func__ if isinstance(value, classmethod | staticmethod) else value


def _annotations(kind: type) -> dict[str, str]:
    of_init = getattr(vars(kind).get("__init__"), "__annotations__", {})
    return {
        name: str(text)
        for name, text in {**of_init, **vars(kind).get("__annotations__", {})}.items()
    }


def _function(function: FunctionType) -> Iterator[Gap]:
    yield from _method(function)
    name, doc = _named(function)
    yield from _formula(name, function.__module__, doc)
    if ">>>" not in doc.text:
        yield Gap(name, "example")


def _closed(function: FunctionType) -> Iterator[Gap]:
    """The example of a closed form, and its source, which its module may give."""
    name, doc = _named(function)
    if ">>>" not in doc.text:
        yield Gap(name, "example")
    if not _cites(doc.text + (sys.modules[function.__module__].__doc__ or "")):
        yield Gap(name, "source")


def _named(function: FunctionType) -> tuple[str, Docstring]:
    name = f"{function.__module__}.{function.__qualname__}"
    return name, Docstring(inspect.cleandoc(function.__doc__ or ""))


def _method(member: FunctionType, over: Sequence[FunctionType] = ()) -> Iterator[Gap]:
    function = inspect.unwrap(member)
    name, doc = _named(function)
    yield from _text(name, doc)
    all_docs = [_named(inspect.unwrap(each))[1] for each in (*reversed(over), member)]
    known = {key: text for each in all_docs for key, text in each.entries("Args").items()}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in {"self", "cls"}:
            yield from _entry(name, parameter.name, str(parameter.annotation), known)
    returned = str(function.__annotations__.get("return", None))
    if returned != "None":
        text = "".join(each.sections.get("Returns", "") for each in all_docs)
        yield from _entry(name, "returns", returned, {"returns": text} if text else {})
    yield from _raises(name, function, doc)


def _property(member: Any) -> Iterator[Gap]:  # noqa: ANN401
    function = _plain(member)
    name, doc = _named(function)
    yield from _text(name, doc)
    annotation = str(function.__annotations__.get("return", ""))
    yield from _entry(name, "value", annotation, {"value": doc.text})
    yield from _raises(name, function, doc)


def _entry(name: str, about: str, annotation: str, known: dict[str, str]) -> Iterator[Gap]:
    """What an entry of Args, Attributes or Returns leaves out, given the annotation."""
    if about not in known:
        yield Gap(name, "returns" if about == "returns" else f"args: {about}")
        return
    text = known[about]
    if _ARRAYS.search(annotation) and "shape" not in text:
        yield Gap(name, f"shape: {about}")
    if re.search(r"\bTable\b", annotation) and "row" not in text:
        yield Gap(name, f"shape: {about}")
    if _FLOATS.search(annotation) and not any(kind in f"{about} {text}".lower() for kind in KINDS):
        yield Gap(name, f"unit: {about}")


def _raises(name: str, function: FunctionType, doc: Docstring) -> Iterator[Gap]:
    """Errors that the body raises itself, not in a function inside of it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):  # written by dataclasses
        return
    known = doc.entries("Raises")
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            error = getattr(node.exc.func, "id", "")
            if error.endswith("Error") and error not in known:
                yield Gap(name, f"raises: {error}")


def _formula(name: str, module: str, doc: Docstring) -> Iterator[Gap]:
    if not module.startswith(EXACT):
        return
    if not _cites(doc.text):
        yield Gap(name, "source")


def _cites(text: str) -> bool:
    return bool(PAPER.search(text) or PAGE.search(text) or errata(text))
