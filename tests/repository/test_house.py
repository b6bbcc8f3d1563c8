"""The measures of the house: they see circles, lengths and crossings that are there."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import shoal
from tests.repository.house.imports import circles, imports
from tests.repository.house.sizes import sizes
from tests.repository.house.trips import trip

pytestmark = pytest.mark.unit


def test_a_circle_is_seen_and_an_order_is_none() -> None:
    """Three modules in a ring are one circle; a module they only use is none of it."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [("a", "b", "c")]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_imports_for_type_checking_and_inside_functions_count(tmp_path: Path) -> None:
    """An import that never runs at start ties two packages all the same."""
    top = tmp_path / "top"
    (top / "one").mkdir(parents=True)
    (top / "__init__.py").write_text("")
    (top / "one" / "__init__.py").write_text("")
    (top / "two.py").write_text("if TYPE_CHECKING:\n    from top.one import inner\n")
    (top / "one" / "inner.py").write_text("def go():\n    import top.two\n")
    found = imports(top)
    assert found.arrows == {("one", "two"), ("two", "one")}
    assert found.circles == [("top.one.inner", "top.two")]
    assert found.package_circles == [("one", "two")]


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports inside functions and for type checking count like any other."""
    found = imports(Path(shoal.__file__).parent)
    assert len(found.modules) > 200
    assert found.circles == []
    assert found.package_circles == []


def test_no_module_and_no_function_outgrows_its_size() -> None:
    """No module over 400 lines, no function over 40 lines of code."""
    found = sizes(Path(shoal.__file__).parent)
    assert len(found.modules) > 200
    assert found.long_modules == []
    assert found.long_functions == []


def test_a_trip_counts_files_calls_and_crossings() -> None:
    """A function of one file crosses nothing; what is elsewhere is not counted."""
    way = trip(lambda: textwrap.dedent(" a"), textwrap.__file__)
    assert (way.files, way.crossings) == (1, 0)
    assert way.calls >= 1
    assert trip(lambda: None, textwrap.__file__).calls == 0
