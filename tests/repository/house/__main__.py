"""`python -m tests.repository.house`: the shape of the source, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import shoal
from tests.repository.citations import broken
from tests.repository.house.docstrings import closed_forms, gaps, public
from tests.repository.house.imports import imports
from tests.repository.house.releases import releases
from tests.repository.house.sizes import sizes
from tests.repository.house.trips import trip

if TYPE_CHECKING:
    from collections.abc import Iterable


def main() -> None:
    """Measure the package that is imported, and print."""
    source = Path(shoal.__file__).parent
    graph, lengths = imports(source), sizes(source)
    table = Table("what", "how many", "which")
    rows = {
        "modules": (len(lengths.modules), ""),
        "lines": (sum(lengths.modules.values()), ""),
        "packages": (len({name for pair in graph.arrows for name in pair}), ""),
        "arrows between packages": (len(graph.arrows), ""),
        "circles of packages": _listed(map(" ".join, graph.package_circles)),
        "circles of modules": _listed(map(" ".join, graph.circles)),
        "modules over 400 lines": _listed(lengths.long_modules),
        "functions over 40 lines": _listed(lengths.long_functions),
    }
    rows |= {
        "public functions and classes": (len(list(public())), ""),
        "closed forms": (len(list(closed_forms())), ""),
        "gaps in their docstrings": _listed(f"{each.name}: {each.what}" for each in gaps()),
        "citations and links that lead nowhere": _listed(broken()),
    }
    for family, run in releases().items():
        way = trip(run, str(source))
        text = f"{way.files} files, {way.calls} calls, depth {way.depth}"
        rows[f"crossings of one {family}"] = (way.crossings, text)
    for what, (number, which) in rows.items():
        table.add_row(what, f"{number:,}", which)
    Console(width=110).print(table)


def _listed(names: Iterable[str]) -> tuple[int, str]:
    found = list(names)
    return len(found), "\n".join(found)


if __name__ == "__main__":
    main()
