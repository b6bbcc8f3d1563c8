"""Makes a guide of an earlier release: priorities of cells, caps and the range from its numbers.

Source: docs/theory/private-counts.md#an-earlier-release-as-a-guide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats
from shoal.data import keys
from shoal.errors import InputError
from shoal.presence.estimates import Estimates
from shoal.presence.guide import CapPart, Guide
from shoal.presence.look import LEAST, Cap, priorities
from shoal.presence.request import Request


def guide_of(numbers: Estimates, release: str, request: Request, *, simulation: bool) -> Guide:
    """Returns what an earlier release, by its name, says of a request beforehand.

    Raises:
        InputError: It has other bounds or records of a user, asked for less, or saw too few users.
    """
    before = numbers.request
    same = ("bounds", "tick_bits", "records_per_user")
    if any(getattr(before, each) != getattr(request, each) for each in same):
        raise InputError(
            "the earlier release has other bounds, tick bits or records_per_user",
            "give those of the earlier release, or leave like out",
        )
    wanted = request.blocks
    caps = numbers.look.caps
    lacking = sorted(wanted - caps.keys())
    unknown = [name for name in caps if name in wanted and not caps[name].known]
    if lacking or unknown:
        raise InputError(
            f"the earlier release says nothing of {', '.join(lacking or unknown)}",
            "ask for the statistics of the earlier release, or leave like out",
        )
    found = {name: _cap(numbers, name, request) for name in sorted(wanted)}
    return Guide(
        release=release,
        users=numbers.look.users,
        priority=tuple(_priority(numbers, request.keys).tolist()),
        caps={name: CapPart(**vars(cap)) for name, cap in found.items()},
        range=numbers.drawn.range if request.n_pieces else None,
        simulation=simulation,
    )


def _cap(numbers: Estimates, block: str, request: Request) -> Cap:
    """Returns the cap for a request: the earlier one; without a cap, users count in all cells."""
    cap = numbers.look.caps[block]
    if not cap.hull:
        return cap
    return replace(cap, size=float(request.keys.num_rows))


def _priority(numbers: Estimates, cells: pa.Table) -> Floats:
    """Returns the priority of each cell, by how much its users weigh without any priority.

    A cell that is new is taken for one in the middle.
    """
    if numbers.drawn.range is None:
        return np.ones(cells.num_rows)
    values = numbers.values
    least = LEAST * values.scale * values.parts.shape[1] ** 0.5
    weights = np.maximum(values.weight, least) / numbers.look.priority
    known = dict(zip(keys.labels(numbers.request.keys), weights.tolist(), strict=True))
    middle = float(np.median(weights))
    found = np.array([known.get(each, middle) for each in keys.labels(cells)])
    in_users = found / found.sum() * numbers.look.users
    return priorities(in_users, 0.0, cells.num_rows)
