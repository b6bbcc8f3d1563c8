"""Recounts sums, standard deviations and variances of public counts, from means and squares."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount.cells_loss import Losses
from shoal.verification.recount.cells_values import CellValues
from shoal.verification.recount.reading import Array, Document, Release, differs, of_cells

_ENDS = ("value", "low", "high")


def entries_of(plan: Document, results: Document) -> Document:
    """Returns the releases of all parts, and what is stated of each statistic."""
    counts = plan["counts"]
    parts = {}
    for name, part in plan["parts"].items():
        entries = of_cells({**part, "counts": counts}, results["parts"][name])
        loss = {each: Fraction(part["claims"][each]) for each in ("epsilon", "delta")}
        parts[name] = Release(**entries | loss, confidence=0.95)
    return {
        "parts": parts,
        "asked": plan["request"],
        "rows": {row["statistic"]: row for row in results["rows"]},
        # Limited users count for parts of records.
        "units": 1 if counts.get("records_per_user") is None else 64,
    }


def differences(release: Release) -> Iterator[str]:
    """Yields a sentence for each number that does not follow."""
    found = vars(release)
    parts: dict[str, Release] = found["parts"]
    for name, part in parts.items():
        yield from (f"{name}: {each}" for each in CellValues(part, Losses.of(part)).differences())
    for each in ("epsilon", "delta"):
        if sum(getattr(part, each) for part in parts.values()) > getattr(release, each):
            yield f"the parts lose more {each} than is stated"
    low, high = map(Fraction, found["asked"]["bounds"])
    wanted = {"mean": (low, high), "squares": (Fraction(0), Fraction(float((high - low) ** 2)))}
    for name, part in parts.items():
        if tuple(map(Fraction, vars(part)["bounds"])) != wanted[name]:
            yield f"the bounds of {name} are not those of the values"
    yield from _rows(found["rows"], _records(parts["mean"]) / found["units"], float(high - low))


def _records(means: Release) -> Array:
    """Returns the records of each cell, in parts of records if users are limited."""
    return np.bincount(means.cell, means.count)


def _rows(rows: dict[str, Document], records: Array, width: float) -> Iterator[str]:
    """Yields a sentence for each statistic that contradicts another one, or the bounds."""
    stated = {
        name: {each: np.array(row[each], dtype=np.float64) for each in _ENDS}
        for name, row in rows.items()
    }
    for name, row in stated.items():
        if not ((row["low"] <= row["value"]) & (row["value"] <= row["high"])).all():
            yield f"an interval of {name} does not hold its value"
    for each in _ENDS:
        if {"sum", "mean"} <= stated.keys():
            sums = stated["mean"][each] * records
            yield from differs(f"{each} of sums", stated["sum"][each], sums, 1e-9, 1e-9)
        if {"std", "variance"} <= stated.keys():
            squares = stated["std"][each] ** 2
            yield from differs(f"{each} of variances", stated["variance"][each], squares, 1e-9)
    if "std" in stated and (stated["std"]["high"] > width / 2 * (1 + 1e-9)).any():
        yield "a standard deviation may be larger than half of the bounds' width"
