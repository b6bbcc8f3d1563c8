"""Whether ranges of a manifest could be selected, and numbers had room on the lattice.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.verification.cells.facts import MOST_STEPS
from shoal.verification.cells.gaussian import LEAST_BITS
from shoal.verification.cells.mechanism import FOR_ALL
from shoal.verification.cells.vectors import can_lie, has_first_round
from shoal.verification.strict import whole

if TYPE_CHECKING:
    from shoal import documents
    from shoal.verification.cells.design import Design

# Candidates of a selected quantile: the width over this.
_CELLS = 2**12
_MOST_ON_LATTICE = 2**61
# Widths of the adaptive candidates.
_MOST_WIDTHS = 21

Ends = tuple[int, int] | None


def ranges_hold(design: Design, manifest: documents.Document) -> tuple[bool, str]:
    """Whether every range is an outcome of its selection, and there are none without one."""
    ranges = [ends_of(result) for result in manifest["results"]]
    if not design.mechanism.selects:
        return all(each is None for each in ranges), "none is selected"
    if len(ranges) != len(design.facts.released):
        return False, "not one range a released cell"
    cells = has_first_round(design.mechanism.parameters)
    same = design.mechanism.name in FOR_ALL and not cells
    if cells and len({high - low for low, high in filter(None, ranges)}) > 1:
        return False, "not the same radius for all cells"
    if same and len(set(ranges)) > 1:
        return False, "not the same range for all cells"
    for at, ends in enumerate(dict.fromkeys(ranges) if same else ranges):
        if ends is None or not _possible(design, at, *ends):
            return False, f"cell {design.facts.released[at]} has a range that cannot be selected"
    return True, f"{len(ranges)} possible ranges"


def capacity_holds(design: Design, manifest: documents.Document) -> tuple[bool, str]:
    """Whether every number stays below 2^61 steps, so that nothing had to be clamped.

    Where squares of noise count, the lattice must be fine, too.
    """
    facts = design.facts
    if (facts.joint or facts.gaussian) and facts.bits < LEAST_BITS:
        return False, f"a lattice of {facts.bits} bits, too coarse for squares"
    for at, result in enumerate(manifest["results"][: len(facts.scale)]):
        low, high = ends_of(result) or (0, facts.top)
        # Numbers are above 0 by up to the bounds over the range; clipped sums, by up to 1.
        most = high - low if design.mechanism.name == "akmv" else facts.top
        if most * 2**facts.bits > _MOST_ON_LATTICE * facts.scale[at] * (high - low):
            return False, f"cell {result['cell']} can leave the lattice"
    return True, f"steps of 2^-{facts.bits} of the noise"


def ends_of(result: documents.Document) -> Ends:
    """The ends of a selected range, None without one; ValueError if they cannot be."""
    if result["range"] is None:
        return None
    low, high = (whole(end, 0, MOST_STEPS) for end in result["range"])
    if low >= high:
        raise ValueError
    return low, high


def _possible(design: Design, at: int, low: int, high: int) -> bool:
    top, told = design.facts.top, design.mechanism.parameters
    match design.mechanism.name:
        case "quantile":
            return high <= top and _on_grid(low, top) and _on_grid(high, top)
        case "akmv":
            step, rest = divmod(high, told["most"][at])
            return low == rest == 0 and 0 < step <= top and _on_grid(step, top)
        case "levy":
            return _around_a_bin(low, high, top, told["bins"][at], told["radius"][at])
        case "user_clipped":
            return can_lie(low, high, top, told)
        case "adaptive" | "optimal_in_range":
            return _candidate(low, high, top, min(len(told["reward"]), _MOST_WIDTHS))
    return False


def _on_grid(end: int, top: int) -> bool:
    return end * min(_CELLS, top) % top == 0


def _around_a_bin(low: int, high: int, top: int, bins: int, radius: int) -> bool:
    """Whether the ends are a bin's midpoint less and plus the radius, cut to the width."""
    middle = high - radius if low == 0 and high < top else min(low + radius, top)
    near = middle * bins // top
    return any(
        (max(middle - radius, 0), min(middle + radius, top)) == (low, high)
        for middle in (
            (2 * where + 1) * top // (2 * bins)
            for where in range(max(near - 1, 0), min(near + 2, bins))
        )
    )


def _candidate(low: int, high: int, top: int, widths: int) -> bool:
    """Whether these are an even width U/2^(k/2), rounded down, at a quarter of it times a place."""
    for step in range(widths):
        width = math.isqrt(top**2 // 2**step)
        width -= width % 2
        if width != high - low:
            continue
        places = math.ceil(Fraction(top - width, max(width // 4, 1)))
        if low in {place * (top - width) // max(places, 1) for place in range(places + 1)}:
            return True
    return False
