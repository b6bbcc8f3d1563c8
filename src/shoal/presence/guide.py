"""What an earlier release says beforehand of a later one, in place of looks and a range.

All of it is public: noisy numbers of the earlier release, and what followed from them. A guide that
does not fit costs accuracy and never privacy, as whatever it proposes is cut to the same units.

Source: docs/theory/private-counts.md#an-earlier-release-as-a-guide.
"""

from __future__ import annotations

import operator
from typing import Annotated

from pydantic import Field

from shoal.documents.model import Model
from shoal.release.envelope import Text

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CapPart(Model):
    """How much of a user counts: see `shoal.presence.look.Cap`."""

    size: Positive
    up: Positive
    moved: NotNegative
    users: NotNegative
    known: bool
    hull: bool


class Guide(Model):
    """What an earlier release says of cells, users and values.

    Attributes:
        release: The name of the earlier release.
        users: About how many users there were.
        priority: Of each cell of the request: see `shoal.presence.look.priorities`.
        caps: By block: what a user counts for at most.
        range: The position of the range that was selected; None without statistics of values.
        simulation: Whether that release is a simulation, which is not private and guides no other.
    """

    release: Text
    users: NotNegative
    priority: tuple[Positive, ...]
    caps: dict[str, CapPart]
    range: Annotated[int, Field(ge=0)] | None
    simulation: bool = Field(default=False, exclude_if=operator.not_)

    def fits(self, cells: int, blocks: set[str]) -> bool:
        """Whether it is of so many cells and of these blocks."""
        of_values = "values" in blocks
        same_range = (self.range is not None) == of_values
        return len(self.priority) == cells and self.caps.keys() == blocks and same_range
