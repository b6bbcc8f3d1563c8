"""Docstrings of public names leave nothing out, and what one leaves out is seen."""

from __future__ import annotations

import sys
from functools import cached_property
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from shoal.errors import InputError
from tests.repository.house import docstrings
from tests.repository.house.docstrings import closed_forms, gaps, public

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

pytestmark = pytest.mark.unit


def test_public_docstrings_leave_nothing_out() -> None:
    """Arguments, results, errors, shapes, units, sources and examples."""
    assert len(list(public())) > 70
    assert len(list(closed_forms())) > 80
    assert [f"{each.name}: {each.what}" for each in gaps()] == []


def bare(values: NDArray[np.float64], scale: float) -> pa.Table:
    """Something."""
    if scale < 0:
        raise InputError("a", "b", "c")
    return pa.table({"value": pa.array(values)})


def whole(values: NDArray[np.float64], scale: float) -> pa.Table:
    """Something (docs/theory/lattice.md).

    Args:
        values: Numbers, shape (n,), in the value's unit.
        scale: In the value's unit, from 0.

    Returns:
        One row a number.

    Raises:
        InputError: The scale is below 0.

    Example:
        PROMPT 1
        1
    """
    return bare(values, scale)


class Kind:
    """A class.

    Args:
        size: In the value's unit.

    Example:
        PROMPT 1
        1
    """

    def __init__(self, size: float, other: int) -> None:
        self.size, self.other = size, other

    @cached_property
    def error(self) -> float:
        """How far off."""
        return self.size

    def half(self, part: float) -> Kind:
        """A half."""
        return Kind(self.size * part, self.other)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of this file count as shoal's, with formulas and an example."""
    for one in (whole, Kind):
        monkeypatch.setattr(one, "__doc__", (one.__doc__ or "").replace("PROMPT", ">" * 3))
    for each in (bare, whole, Kind, Kind.half):
        monkeypatch.setattr(each, "__module__", f"shoal.theory.{__name__}")
    monkeypatch.setattr(docstrings, "_resolved", lambda _module, _name: None)


def _found(value: Any) -> set[str]:  # noqa: ANN401
    check = docstrings._class if isinstance(value, type) else docstrings._function
    rest = (True,) if isinstance(value, type) else ()
    return {f"{each.name.rpartition('.')[2]} {each.what}" for each in check(value, *rest)}


@pytest.mark.usefixtures("ours")
def test_what_a_function_leaves_out_is_seen() -> None:
    """Of a sentence alone everything is missing; of a whole docstring nothing."""
    missing = ("args: values", "args: scale", "returns", "raises: InputError", "source", "example")
    assert _found(bare) == {f"bare {each}" for each in missing}
    assert _found(whole) == set()


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("shape (n,), in the value's unit", "shape: values"),
        (", in the value's unit.\n        scale", "unit: values"),
        ("One row a number", "shape: returns"),
        ("docs/theory/lattice.md", "source"),
        (">" * 3, "example"),
        ("        scale: In the value's unit, from 0.\n", "args: scale"),
    ],
)
def test_every_part_is_looked_for(text: str, gap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one part out of a whole docstring, and that one is missing."""
    left = {"shape: values": "in the value's unit", "unit: values": ".\n        scale"}
    assert text in (whole.__doc__ or "")
    monkeypatch.setattr(whole, "__doc__", (whole.__doc__ or "").replace(text, left.get(gap, ""), 1))
    assert _found(whole) == {f"whole {gap}"}


@pytest.mark.usefixtures("ours")
def test_order_and_dialect_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors before results; a word of our own, unless it is code."""
    text = whole.__doc__ or ""
    monkeypatch.setattr(whole, "__doc__", text.replace("Something", "It errs, `distribution`"))
    assert _found(whole) == {"whole word: errs"}
    moved = text.replace("    Returns:\n        One row a number.\n\n", "")
    example = "    Example:"
    moved = moved.replace(example, f"    Returns:\n        One row a number.\n\n{example}")
    monkeypatch.setattr(whole, "__doc__", moved)
    assert _found(whole) == {"whole order"}


@pytest.mark.usefixtures("ours")
def test_a_closed_form_or_its_module_has_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without either it is seen, as is a missing example."""

    def missing(form: object) -> list[str]:
        return [each.what for each in docstrings._closed(cast("FunctionType", form))]

    monkeypatch.setitem(sys.modules, bare.__module__, ModuleType("forms", "See paper 001."))
    assert missing(bare) == ["example"]
    monkeypatch.setitem(sys.modules, bare.__module__, ModuleType("forms", "Forms."))
    assert missing(bare) == ["example", "source"]
    assert missing(whole) == []


@pytest.mark.usefixtures("ours")
def test_what_a_class_leaves_out_is_seen() -> None:
    """Its arguments, and its members: a property needs a unit only."""
    assert _found(Kind) == {
        "Kind args: other",
        "Kind source",
        "error unit: value",
        "half args: part",
        "half returns",
    }
