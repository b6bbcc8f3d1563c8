"""Whether values and intervals of a manifest follow from what was drawn.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from shoal.verification.cells.facts import TOLERANCE
from shoal.verification.cells.ranges import ends_of
from shoal.verification.cells.rows import Moments, Row, quantiles
from shoal.verification.cells.statistics import MEAN, VARIANCE
from shoal.verification.strict import real, whole

if TYPE_CHECKING:
    from shoal import documents
    from shoal.verification.cells.errors import Errors

# The last places of a double that is rounded once or twice, and after sums whose parts may cancel.
_PLACES, _CANCELLED = 2.0**-50, 2.0**-46


def results_hold(errors: Errors, manifest: documents.Document) -> tuple[bool, str]:
    """Cells, keys, values and intervals of every released number."""
    results, facts = manifest["results"], errors.design.facts
    labels = manifest["plan"]["status"]
    wanted = [(name, cell) for name in facts.statistics for cell in facts.released]
    cells = [whole(result["cell"], 0, len(facts.total)) for result in results]
    if [(result["statistic"], cell) for result, cell in zip(results, cells, strict=True)] != wanted:
        return False, "not one result for each statistic of a released cell"
    if [at for at, status in enumerate(labels) if status == "released"] != facts.released:
        return False, "the released cells are not those of the status"
    confidence = real(manifest["confidence"])
    if not 0 < confidence < 1:
        return False, "a confidence that is no probability"
    columns = [column["values"] for column in manifest["plan"]["occupancy"]["cells"]["columns"]]
    rows = _Rows(errors, results, 1 - confidence)
    for place, result in enumerate(results):
        own = [column[result["cell"]] for column in columns]
        # True is 1 to Python, and another key to a reader.
        if result["key"] != own or list(map(type, result["key"])) != list(map(type, own)):
            return False, f"cell {result['cell']} has another key"
        if not rows.follows(place):
            return False, f"cell {result['cell']} does not follow from its lattice number"
    return True, f"{len(results)} values and intervals"


@dataclass(frozen=True, eq=False)
class _Rows:
    """All results, and the estimates and intervals that follow from them.

    Attributes:
        errors: Of the numbers.
        results: As stated.
        miss: One less the confidence.
    """

    errors: Errors
    results: list[documents.Document]
    miss: float

    def follows(self, place: int) -> bool:
        """Whether one result follows from its lattice number, and a variance from both moments."""
        row, result = self._row(place), self.results[place]
        exact = row.drawn(result["steps"])
        if row.name == VARIANCE and self.errors.design.facts.joint:
            return self._variance(row, exact, result)
        ends = [row.around(exact, quantile) for quantile in self._alone]
        # The estimate is rounded once, an interval's ends by their own size.
        largest = max(abs(end) for pair in ends for end in pair)
        off = TOLERANCE * TOLERANCE * float(row.statistic_range[1]) + _PLACES * abs(float(exact))
        return row.follows(result, float(exact), ends, (off, off + _PLACES * largest))

    def _variance(self, row: Row, second: Fraction, result: documents.Document) -> bool:
        facts, length = self.errors.design.facts, row.statistic_range[1]
        at = facts.statistics.index(MEAN) * len(facts.released) + row.at
        mean, size = self._row(at), len(self.results)
        whole(at, 0, size - 1)
        centre = (mean.drawn(self.results[at]["steps"]) - facts.lo) / facts.width - Fraction(1, 2)
        scale = facts.scales(MEAN)[row.at]
        moments = Moments(centre, second / length, scale, facts.scales(VARIANCE)[row.at])
        middle = self.errors.middles[row.at]
        exact = moments.estimate(gaussian=facts.gaussian) + middle
        ends = []
        for quantile in self._together:
            low, high = moments.interval(Fraction(quantile))
            ends.append(
                (
                    float((low + middle) * length) - row.bias,
                    float((high + middle) * length) + row.bias,
                )
            )
        parts = float(abs(second) + length * (1 + 4 * centre**2 + 8 * scale**2))
        off = TOLERANCE * TOLERANCE * float(length) + _CANCELLED * parts
        # An interval's ends are made of the noise's quantile, too.
        largest = max(abs(end) for pair in ends for end in pair)
        return row.follows(result, float(exact * length), ends, (off, off + _PLACES * largest))

    def _row(self, place: int) -> Row:
        facts = self.errors.design.facts
        name, at = divmod(place, len(facts.released))
        return Row(self.errors, facts.statistics[name], at, ends_of(self.results[place]))

    @cached_property
    def _alone(self) -> list[float]:
        return quantiles(self.errors.design.facts, self.miss)

    @cached_property
    def _together(self) -> list[float]:
        """Both noises share the chance of a miss."""
        return quantiles(self.errors.design.facts, self.miss / 2)
