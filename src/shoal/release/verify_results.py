"""Whether ranges, values and intervals of a manifest follow from what was drawn.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.release.verify_facts import MOST_STEPS, real, whole

if TYPE_CHECKING:
    from shoal import documents
    from shoal.release.verify_design import Design

# Claims printed as floats may differ from the exact value by rounding, never by more.
TOLERANCE = 1e-9
# Candidates of a selected quantile: the width over this.
_CELLS = 2**12
_MOST_ON_LATTICE = 2**61
# Widths of the adaptive candidates.
_MOST_WIDTHS = 21

Ends = tuple[int, int] | None


def results_hold(design: Design, manifest: documents.Document) -> tuple[bool, str]:
    """Cells, keys, values and intervals of every released number."""
    results, facts = manifest["results"], design.facts
    labels = manifest["plan"]["status"]
    if [whole(result["cell"], 0, len(facts.total)) for result in results] != facts.released:
        return False, "not one result a released cell"
    if [at for at, status in enumerate(labels) if status == "released"] != facts.released:
        return False, "the released cells are not those of the status"
    confidence = real(manifest["confidence"])
    if not 0 < confidence < 1:
        return False, "a confidence that is no probability"
    quantile = _quantile(2.0**facts.bits, 1 - confidence)
    columns = [column["values"] for column in manifest["plan"]["occupancy"]["cells"]["columns"]]
    biases = design.biases()
    for at, result in enumerate(results):
        key = [column[result["cell"]] for column in columns]
        if result["key"] != key or result["statistic"] != "mean":
            return False, f"cell {result['cell']} has another key or statistic"
        if not _Result.of(design, result, at, biases[at]).follows(result, quantile):
            return False, f"cell {result['cell']} does not follow from its lattice number"
    return True, f"{len(results)} values and intervals"


def ranges_hold(design: Design, manifest: documents.Document) -> tuple[bool, str]:
    """Whether every range is an outcome of its selection, and there are none without one."""
    ranges = [_ends(result) for result in manifest["results"]]
    if not design.mechanism.selects:
        return all(each is None for each in ranges), "none is selected"
    if len(ranges) != len(design.facts.released):
        return False, "not one range a released cell"
    same = design.mechanism.name == "adaptive"
    if same and len(set(ranges)) > 1:
        return False, "not the same range for all cells"
    for at, ends in enumerate(dict.fromkeys(ranges) if same else ranges):
        if ends is None or not _possible(design, at, *ends):
            return False, f"cell {design.facts.released[at]} has a range that cannot be selected"
    return True, f"{len(ranges)} possible ranges"


def room_holds(design: Design, manifest: documents.Document) -> tuple[bool, str]:
    """Whether every number stays below 2^61 steps, so that nothing had to be clamped."""
    facts = design.facts
    for at, result in enumerate(manifest["results"][: len(facts.released)]):
        low, high = _ends(result) or (0, facts.top)
        # Numbers are above 0 by up to the bounds over the span; clipped sums, by up to 1.
        most = high - low if design.mechanism.name == "akmv" else facts.top
        if most * 2**facts.bits > _MOST_ON_LATTICE * facts.scale[at] * (high - low):
            return False, f"cell {facts.released[at]} can leave the lattice"
    return True, f"steps of 2^-{facts.bits} of the noise"


def _ends(result: documents.Document) -> Ends:
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
        case "adaptive":
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


@dataclass(frozen=True)
class _Result:
    """What one number stands for: its unit, where it is clipped, and its bias bound."""

    lo: Fraction
    width: Fraction
    step: Fraction
    inside: tuple[float, float]
    bias: float
    noise: Fraction

    @classmethod
    def of(cls, design: Design, result: documents.Document, at: int, bias: Fraction) -> _Result:
        facts, name = design.facts, design.mechanism.name
        ends = _ends(result)
        low, high = ends or (0, facts.top)
        relative = facts.scale[at] * Fraction(high - low, facts.top)
        off = design.rounding(relative) + bias
        if ends:
            off += design.range_bias(at, low, high)
        if not ends or name == "akmv":
            low, high = 0, facts.top
        place = facts.width / facts.top
        return cls(
            lo=facts.lo,
            width=facts.width,
            step=facts.width * relative / 2**facts.bits,
            inside=(float(facts.lo + low * place), float(facts.lo + high * place)),
            bias=float(facts.width * (min(off, Fraction(1)) if ends else off)),
            noise=facts.width * relative,
        )

    def follows(self, result: documents.Document, quantile: int) -> bool:
        """Whether value and interval are what the lattice number stands for."""
        exact = float(self.lo + whole(result["steps"], -MOST_STEPS, MOST_STEPS) * self.step)
        half = self.bias + float(self.step) * quantile
        lo, hi = float(self.lo), float(self.lo + self.width)
        low, high = exact - half, exact + half
        if low > hi or high < lo:
            low, high = lo, hi
        value = min(max(exact, self.inside[0]), self.inside[1])
        wanted = [value, min(max(low, lo), value), max(min(high, hi), value)]
        given = [result["value"], *result["interval"]]
        slack = TOLERANCE * float(self.width)
        return abs(exact - real(result["unclamped"])) <= TOLERANCE * (abs(exact) + slack) and all(
            abs(x - real(y)) <= slack for x, y in zip(wanted, given, strict=True)
        )


def _quantile(scale: float, beta: float) -> int:
    """Least z with 2 q^(z+1) / (1 + q) <= beta, by bisection on the tail itself."""

    def tail(z: int) -> float:
        return 2 * math.exp(-(z + 1) / scale) / (1 + math.exp(-1 / scale))

    low, high = -1, 1
    while tail(high) > beta:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > beta else (low, middle)
    return high
