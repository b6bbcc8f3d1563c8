"""The public range: values are clipped to the bounds that everybody knows, and nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.cells.ranges.base import RangeRule


@dataclass(frozen=True)
class PublicRange(RangeRule):
    """The whole width of the bounds: errors are certified in every data set."""

    title = "public"
