"""How long modules and functions are."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_MODULE, LONGEST_FUNCTION = 400, 40


@dataclass(frozen=True)
class Sizes:
    """Lengths in a source tree.

    Attributes:
        modules: Lines of each module, by path below the source.
        functions: Lines of each function's body without its docstring, by path and name.
    """

    modules: dict[str, int]
    functions: dict[str, int]

    @property
    def long_modules(self) -> list[str]:
        """Modules of more than 400 lines."""
        return [name for name, lines in self.modules.items() if lines > LONGEST_MODULE]

    @property
    def long_functions(self) -> list[str]:
        """Functions of more than 40 lines of code."""
        return [name for name, lines in self.functions.items() if lines > LONGEST_FUNCTION]


def sizes(source: Path) -> Sizes:
    """Measure every module below `source`."""
    modules, functions = {}, {}
    for path in sorted(source.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(source).as_posix()
        modules[name] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
                functions[f"{name}:{node.lineno} {node.name}"] = lines
    return Sizes(modules, functions)
