"""The page of the public names, made from what `shoal` and its modules export."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import shoal


def reference() -> str:
    """The page as Markdown, for mkdocstrings."""
    parts = ["# Public names\n\nMade from the docstrings.\n"]
    modules = [shoal, *(import_module(f"shoal.{each}") for each in ("errors", "mean", "trials"))]
    modules += [import_module(f"shoal.{each}") for each in ("unbiased", "bounds")]
    seen: set[str] = set()
    for module in modules:
        parts.append(f"## {module.__name__}\n")
        kinds = [name for name, value in vars(module).items() if isinstance(value, type)]
        for name in sorted(getattr(module, "__all__", kinds)):
            value = getattr(module, name)
            path = f"{getattr(value, '__module__', '')}.{name}"
            if path.startswith("shoal.") and path not in seen:
                parts.append(f"::: {path}\n")
            seen.add(path)
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
