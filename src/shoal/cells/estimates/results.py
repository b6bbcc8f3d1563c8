"""Writes results of cells as JSON and reads them back; checks that records are those of a plan."""

from itertools import product

import numpy as np

from shoal import documents
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.private_sums import Interval
from shoal.cells.mechanisms.user_vectors import excess_of
from shoal.release.envelope import CONFIDENCE


def results_of(plan: Facts, numbers: Estimates) -> list[documents.Document]:
    """Returns an object for each number: its lattice steps, its value, its interval."""
    chosen = numbers.chosen
    low, high = numbers.intervals(CONFIDENCE)
    key = plan.counts.key_rows
    cells = plan.planned.tolist()
    return [
        {
            "cell": cell,
            "key": list(key[cell]),
            "statistic": statistic,
            "steps": numbers.steps[at],
            "range": None if chosen is None else [int(chosen.low[at]), int(chosen.high[at])],
            "excess": numbers.excess and [*numbers.excess],
            "unclamped": float(numbers.unclamped[at]),
            "value": float(numbers.value[at]),
            "interval": [float(low[at]), float(high[at])],
        }
        for at, (statistic, cell) in enumerate(product(plan.request.statistics, cells))
    ]


def drawn_from(plan: Facts, results: list[documents.Document]) -> Estimates:
    """Reads the drawn numbers from the whole numbers of a manifest's results, and nothing else."""
    cells = plan.planned.tolist()
    stated = [(each["statistic"], each["cell"]) for each in results]
    if stated != [*product(plan.request.statistics, cells)]:
        raise LookupError
    ranges = [each["range"] for each in results if each["range"] is not None]
    # Either every result has a range or none has.
    wanted_ranges = len(results) if plan.decision.method.selects else 0
    # Every result states the same excess of all users.
    excess = {each["excess"] and tuple(each["excess"]) for each in results}
    parts, _ = excess_of(plan.parameters)
    has_excess = parts > 0
    states_excess = None not in excess
    if len(ranges) != wanted_ranges or len(excess) != 1 or states_excess != has_excess:
        raise LookupError
    chosen = None
    if ranges:
        low, high = np.array(ranges, dtype=np.int64).T
        if not ((low >= 0) & (low < high)).all():
            raise LookupError
        chosen = Interval(low, high)
    return Estimates.of(plan, [each["steps"] for each in results], chosen, excess.pop())
