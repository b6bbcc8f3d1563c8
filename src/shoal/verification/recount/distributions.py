"""Recounts sums, standard deviations and variances of public counts, from means and squares."""

import re
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from shoal.verification.recount.bins import BinsRelease
from shoal.verification.recount.bins import differences as bins_differences
from shoal.verification.recount.cells_loss import ROUNDED, Losses
from shoal.verification.recount.cells_values import CellValues
from shoal.verification.recount.reading import (
    Array,
    Document,
    Release,
    differs,
    memberships,
    of_cells,
)

_ENDS = ("value", "low", "high")
_NUMBER = re.compile(r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?")


def entries_of(plan: Document, results: Document) -> Document:
    """Returns the releases of all parts, and what is stated of each statistic."""
    counts = plan["counts"]
    parts = {}
    for name, part in plan["parts"].items():
        entries = of_cells({**part, "counts": counts}, results["parts"][name])
        loss = {each: Fraction(part["claims"][each]) for each in ("epsilon", "delta")}
        parts[name] = Release(**entries | loss, confidence=0.95)
    asked = plan["request"]
    of_bins = None
    if plan["bins"] is not None:
        status = [
            "planned" if users >= asked["min_users"] and records >= asked["min_records"] else ""
            for users, records in _sizes(counts)
        ]
        known = memberships(counts, status)
        columns = (known["user"], known["cell"], known["count"])
        low, high = map(float, asked["bounds"])
        of_bins = BinsRelease(
            plan["bins"], results["bins"], *columns, (low, high), asked["tick_bits"]
        )
    return {
        "parts": parts,
        "bins": of_bins,
        "asked": plan["request"],
        "rows": {row["statistic"]: row for row in results["rows"]},
        # Limited users count for parts of records.
        "units": 1 if counts.get("records_per_user") is None else 64,
    }


def differences(release: Release) -> Iterator[str]:
    """Yields a sentence for each number that does not follow."""
    found = vars(release)
    parts: dict[str, Release] = found["parts"]
    losses = {name: Losses.of(part) for name, part in parts.items()}
    for name, part in parts.items():
        yield from (f"{name}: {each}" for each in CellValues(part, losses[name]).differences())
    bins: BinsRelease | None = found["bins"]
    # What is stated of a part may be rounded up.
    spent = {
        "epsilon": sum((each.loss for each in losses.values()), Fraction(0)),
        "delta": sum((part.delta for part in parts.values()), Fraction(0)) * (1 - ROUNDED),
    }
    if bins is not None:
        spent["epsilon"] += bins.loss
        shares = (each for each in found["asked"]["statistics"] if "quantile" not in each)
        numbers = _NUMBER.findall(" ".join(shares))
        yield from bins_differences(bins, found["rows"], [float(each) for each in numbers])
    for each, total in spent.items():
        if total > getattr(release, each):
            yield f"the parts lose more {each} than is stated"
        if total < getattr(release, each) * (1 - Fraction(1, 10**4)):
            yield f"the parts lose less {each} than is stated"
    low, high = map(Fraction, found["asked"]["bounds"])
    # Bounds are numbers in floating point.
    largest_square = Fraction(float((high - low) ** 2))
    wanted = {"mean": (low, high), "squares": (Fraction(0), largest_square)}
    for name, part in parts.items():
        if tuple(map(Fraction, vars(part)["bounds"])) != wanted[name]:
            yield f"the bounds of {name} are not those of the values"
    records = np.zeros(0)
    if "mean" in parts:
        means = parts["mean"]
        # If users are limited, they count for parts of records.
        records = np.rint(np.bincount(means.cell, means.count) / found["units"])
    yield from _rows(found["rows"], records, float(high - low))


def _sizes(counts: Document) -> list[tuple[int, int]]:
    """Returns the users and the records of each cell."""
    users = np.bincount(counts["cell"])
    records = np.bincount(counts["cell"], counts["count"])
    units = 1 if counts.get("records_per_user") is None else 64
    whole = np.rint(records / units)
    return [*zip(users.tolist(), whole.tolist(), strict=True)]


def _rows(rows: dict[str, Document], records: Array, width: float) -> Iterator[str]:
    """Yields a sentence for each statistic that contradicts another one, or the bounds."""
    stated = {
        name: {each: np.array(row[each], dtype=np.float64) for each in _ENDS}
        for name, row in rows.items()
    }
    for name, row in stated.items():
        is_low = row["low"] <= row["value"]
        is_high = row["value"] <= row["high"]
        if not (is_low & is_high).all():
            yield f"an interval of {name} does not hold its value"
    for each in _ENDS:
        if {"sum", "mean"} <= stated.keys():
            sums = stated["mean"][each] * records
            yield from differs(f"{each} of sums", stated["sum"][each], sums, 1e-9, 1e-9)
        if {"std", "variance"} <= stated.keys():
            squares = stated["std"][each] ** 2
            yield from differs(f"{each} of variances", stated["variance"][each], squares, 1e-9)
    most = width / 2 * (1 + 1e-9)
    if "std" in stated and (stated["std"]["high"] > most).any():
        yield "a standard deviation may be larger than half of the bounds' width"
