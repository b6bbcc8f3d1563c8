"""`python -m tests.repository.install_size`: how much room shoal and what it needs take.

What is needed is followed through the metadata of installed distributions; sizes are those of
their files. Extras of shoal are left out unless they are named.
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

_MEGABYTE = 2**20


def needed(name: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """Distributions that one needs, itself included, by name.

    Args:
        name: Of a distribution.
        extras: Of it, to be installed too.
    """
    found: dict[str, Distribution] = {}
    asked = [(name, extras)]
    while asked:
        each, wanted = asked.pop()
        key = each.lower().replace("_", "-")
        if key in found and not wanted:
            continue
        try:
            found[key] = distribution(each)
        except PackageNotFoundError:
            continue
        for line in found[key].requires or ():
            one = Requirement(line)
            if one.marker is None or any(
                one.marker.evaluate({"extra": extra}) for extra in (wanted or {""})
            ):
                asked.append((one.name, frozenset(one.extras)))
    return found


def megabytes(one: Distribution) -> float:
    """Of all files of a distribution that are there."""
    places = (one.locate_file(path) for path in one.files or ())
    return sum(place.stat().st_size for place in places if place.is_file()) / _MEGABYTE  # type: ignore[attr-defined]


def main(extras: list[str]) -> None:
    """Print the largest, and all together."""
    sizes = {name: megabytes(one) for name, one in needed("shoal", frozenset(extras)).items()}
    table = Table("distribution", "MB")
    for name in sorted(sizes, key=lambda name: -sizes[name])[:12]:
        table.add_row(name, f"{sizes[name]:.0f}")
    table.add_row(f"all {len(sizes)}", f"{sum(sizes.values()):.0f}")
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
