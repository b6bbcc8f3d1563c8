"""Which fields of a manifest a verdict says it cannot prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.verdict import Verdict


def unproven(verdict: Verdict, path: str) -> bool:
    """Whether the verdict lists a field, or what it is a part of.

    Args:
        verdict: On the manifest.
        path: Names of the way to the field, joined by dots; places in lists are left out.
    """
    listed = getattr(verdict, "unverified", ())
    return any(path == each or path.startswith(f"{each}.") for each in listed)
