"""Who imports whom: modules, packages, arrows between packages, and circles.

Imports inside functions and for type checking alone count like any other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Imports:
    """The graph of a source tree.

    Attributes:
        modules: What each module imports of the tree, by full names.
    """

    modules: Mapping[str, frozenset[str]]

    @property
    def arrows(self) -> frozenset[tuple[str, str]]:
        """Pairs of packages of which the first imports something of the second."""
        pairs = (
            (room(name), room(target))
            for name, targets in self.modules.items()
            for target in targets
        )
        return frozenset((one, other) for one, other in pairs if one != other)

    @property
    def circles(self) -> list[tuple[str, ...]]:
        """Modules that import one another by some way, a tuple each circle."""
        return circles(self.modules)

    @property
    def package_circles(self) -> list[tuple[str, ...]]:
        """Packages that import one another by some way."""
        graph: dict[str, set[str]] = {}
        for one, other in self.arrows:
            graph.setdefault(one, set()).add(other)
        return circles(graph)


def room(module: str) -> str:
    """The package directly below the top that a module is in; the top itself is `shoal`.

    Example:
        >>> room("shoal.trials.effects"), room("shoal")
        ('trials', 'shoal')
    """
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imports(source: Path) -> Imports:
    """Parse every module below `source`, the folder of the top package."""
    files = {_name(path, source): path for path in sorted(source.rglob("*.py"))}
    return Imports(
        {
            name: frozenset(_targets(ast.parse(path.read_text(encoding="utf-8")), set(files)))
            - {name}
            for name, path in files.items()
        }
    )


def circles(graph: Mapping[str, set[str] | frozenset[str]]) -> list[tuple[str, ...]]:
    """Strongly connected parts of more than one node, by Tarjan's algorithm without recursion.

    Example:
        >>> circles({"a": {"b"}, "b": {"a"}, "c": {"a"}})
        [('a', 'b')]
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []
    for root in sorted(graph):
        if root in number:
            continue
        work = [(root, iter(sorted(graph.get(root, ()))))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        while work:
            node, following = work[-1]
            for target in following:
                if target not in number:
                    number[target] = lowest[target] = len(number)
                    stack.append(target)
                    work.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in stack:
                    lowest[node] = min(lowest[node], number[target])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    at = stack.index(node)
                    part, stack[at:] = tuple(sorted(stack[at:])), []
                    if len(part) > 1:
                        found.append(part)
    return sorted(found)


def _name(path: Path, source: Path) -> str:
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(tree: ast.Module, known: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module
