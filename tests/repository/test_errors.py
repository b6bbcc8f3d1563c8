"""Errors of ours remember nothing of what they were raised for."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shoal
from shoal.errors import DataError, raise_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.unit

SOURCES = sorted(Path(shoal.__file__).parent.rglob("*.py"))


def _handlers(tree: ast.AST) -> Iterator[ast.stmt]:
    """What runs while an exception is being handled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            yield from node.body
        elif isinstance(node, ast.Try | ast.TryStar):
            yield from node.finalbody


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_no_error_is_raised_while_another_is_handled(path: Path) -> None:
    """G-CANARY: there Python would keep the other as the context, but for `raise_alone`."""
    if path.name == "errors.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in _handlers(tree):
        for node in ast.walk(statement):
            raised = isinstance(node, ast.Raise) and node.exc is not None
            assert not raised, f"{path}, line {getattr(node, 'lineno', 0)}: use raise_alone"


def _fails() -> None:
    try:
        raise KeyError("431.56789")  # noqa: TRY301
    except KeyError:
        raise_alone(DataError("a", "b", "c"))


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except KeyError:
        raise_alone(DataError("a", "b", "c"))


def _fails_within() -> None:
    with contextlib.nullcontext(), _translating():
        raise KeyError("431.56789")


@pytest.mark.parametrize("fails", [_fails, _fails_within])
def test_an_error_raised_alone_has_no_context(fails: Callable[[], None]) -> None:
    """G-CANARY: neither at once nor through context managers."""
    with pytest.raises(DataError) as caught:
        fails()
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
