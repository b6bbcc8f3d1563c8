"""Which fields a verdict says it cannot verify, each with the sentence that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tests.evidence import leaves_kit
from tests.evidence.specimens import ROUNDING

if TYPE_CHECKING:
    from shoal.verification.verdict import Verdict
    from tests.evidence.leaves_kit import Document

_RECORDS = "that counts, groups and names of columns are those of the data"
_DRAWN = "the drawn numbers themselves"
_ASKED = "that the request, its bounds and its name are those that were asked for"
_VERSIONS = "the versions of shoal, OpenDP and Python"
_PARAMETERS = "parameters that depend on the loss of a cell"
_COMPARED = "the errors with which an optimal plan with balanced targets is compared"
_LEFT_OUT = "that cells left out as uninformative are so"
_LEVELS = "that outcomes were moved to the levels in the way stated"
_UNITS = "which unit gave which response"
_PREDICTED = "parameters that were chosen by predicted variance"
_WEIGHTS = "that the weights of a table are those of what was expected"
_CLUSTERS = "what private clusters cost when they were made"
_OTHERS = "that no other parameters of this loss have a smaller error"
_SUMS = "which sums of the questions are released, and by which public columns"
_MOMENTS = "that users are independent and their values keep the moments"

# Of each kind of manifest: a field, and the sentence that must be in its verdict.
SAID: dict[str, dict[str, str]] = {
    "cells": {
        "name": _ASKED,
        "records.user": _RECORDS,
        "records.value": _RECORDS,
        "records.cell": _RECORDS,
        "records.missing": _RECORDS,
        "guarantee.unit.name": _RECORDS,
        "plan.source": _RECORDS,
        "plan.occupancy.cells.columns.name": _RECORDS,
        "plan.occupancy.cells.columns.type": _RECORDS,
        "plan.occupancy.cells.columns.values": _RECORDS,
        "plan.occupancy.cells_per_user": _RECORDS,
        "plan.occupancy.cell": _RECORDS,
        "plan.occupancy.count": _RECORDS,
        "plan.bounds": _ASKED,
        "plan.tick_bits": _ASKED,
        "plan.request.epsilon": _ASKED,
        "plan.request.error": _ASKED,
        "plan.request.delta": _ASKED,
        "plan.request.min_users": _ASKED,
        "plan.request.min_records": _ASKED,
        "plan.request.uninformative": _ASKED,
        "plan.request.settings": _ASKED,
        "plan.request.method": _ASKED,
        "plan.status": _LEFT_OUT,
        "plan.targets": _COMPARED,
        "plan.mechanism.parameters": _PARAMETERS,
        "plan.mechanism.selection_scale": _PARAMETERS,
        "results.steps": _DRAWN,
        "results.range": _DRAWN,
        "versions": _VERSIONS,
    },
    "trial": {
        "name": _ASKED,
        "records.outcome": _RECORDS,
        "records.missing": _RECORDS,
        "records.single_arm": _RECORDS,
        "records.clusters_left_out": _RECORDS,
        "guarantee.unit.name": _RECORDS,
        "plan.assignment.clusters": _RECORDS,
        "plan.assignment.arms": _RECORDS,
        "plan.assignment.sizes": _RECORDS,
        "plan.assignment.units": _UNITS,
        "plan.mechanism.asked.epsilon": _ASKED,
        "plan.mechanism.asked.delta": _ASKED,
        "plan.mechanism.asked.levels": _ASKED,
        "plan.mechanism.asked.floor": _ASKED,
        "plan.mechanism.asked.histogram_scale": _ASKED,
        "plan.mechanism.asked.spread_share": _ASKED,
        "plan.mechanism.asked.expected": _ASKED,
        "plan.mechanism.reason": _PREDICTED,
        "plan.mechanism.parameters": _PREDICTED,
        "plan.mechanism.table.weights": _WEIGHTS,
        "plan.clustering_epsilon": _CLUSTERS,
        "plan.space.levels": _ASKED,
        "plan.mechanism.aggregate.levels": _ASKED,
        "plan.space.rounding": _LEVELS,
        "plan.space.labels": _RECORDS,
        "results.released.responses": _UNITS,
        "results.released.numbers": _DRAWN,
        "results.released.counts": _DRAWN,
        "results.released.prior": _DRAWN,
        "versions": _VERSIONS,
    },
    "questions": {
        "name": _ASKED,
        "records.outcome": _RECORDS,
        "guarantee.unit.name": _RECORDS,
        "plan.space.levels": _ASKED,
        "plan.space.rounding": _ASKED,
        "plan.space.labels": _RECORDS,
        "plan.columns.assignment.clusters": _RECORDS,
        "plan.columns.assignment.arms": _RECORDS,
        "plan.columns.covariates": _RECORDS,
        "plan.spread": _ASKED,
        "plan.epsilon": _ASKED,
        "plan.numbers": _SUMS,
        "results.numbers": _DRAWN,
        "results.moments": _DRAWN,
        "versions": _VERSIONS,
    },
    "mean": {
        "name": _ASKED,
        "records.value": _RECORDS,
        "guarantee.unit.name": _RECORDS,
        "plan.source": _RECORDS,
        "plan.counts": _RECORDS,
        "plan.request.epsilon": _ASKED,
        "plan.request.delta": _ASKED,
        "plan.request.bias": _ASKED,
        "plan.request.interval": _MOMENTS,
        "plan.request.moments": _MOMENTS,
        "plan.request.reuse": _ASKED,
        "plan.request.farthest": _ASKED,
        "plan.request.weights": _ASKED,
        "plan.request.cap": _ASKED,
        "plan.parameters": _OTHERS,
        "results.exact": _DRAWN,
        "results.coarse_failed": _DRAWN,
        "results.normal.about": _DRAWN,
        "results.normal.squares": _DRAWN,
        "versions": _VERSIONS,
    },
}  # fmt: skip

# Any dual variables prove the gap that follows from them.
PROVING = (
    "plan.duals.dual",
    "plan.duals.user",
    "plan.mechanism.table.certificate.weight",
    "plan.mechanism.table.certificate.slope",
    "plan.mechanism.table.certificate.total",
)
# A weaker claim is true, too, if it is larger than the true one: the gap of an optimal plan, the
# error of a symmetric mean, and a loss by what roundings to the lattice may explain.
WEAKER = (
    *("plan.claims.gap", "plan.claims.standard_error", "plan.claims.epsilon"),
    *("guarantee.epsilon", "guarantee.epsilon_at_most"),
)
# They follow from other fields, and may only change with one of these.
FOLLOWING = {
    "request": (),
    "guarantee.delta": ("plan.parameters.coarse_delta", "plan.request.delta"),
    "guarantee.delta_at_most": ("plan.parameters.coarse_delta",),
    "plan.claims.delta": ("plan.parameters.coarse_delta", "plan.request.delta"),
    "plan.occupancy.fingerprint": ("plan.occupancy",),
    "results.unclamped": ("results.steps", "results.range"),
    "results.value": ("results.steps", "results.range"),
    "results.interval": ("results.steps", "results.range"),
    "results.key": ("plan.occupancy.cells",),
}
# The digest is of the number as it is written: 10 and 10.0 are the same number.
_ALONE = ("request",)


def left_over(
    verdict: Verdict, document: Document, changed: Document, paths: list[str]
) -> list[str]:
    """The changed fields that a verdict neither verified nor declared as unverifiable.

    Args:
        verdict: Every claim of it holds.
        document: The true manifest.
        changed: The other one.
        paths: All that differ from the true manifest.
    """
    said = SAID[document["kind"]]
    return [
        path
        for path in paths
        if not (_admitted(verdict, said, path, paths) or _weaker(document, changed, path))
    ]


def _weaker(document: Document, changed: Document, path: str) -> bool:
    """Whether it says less than what is true."""
    way = tuple(path.removesuffix(ROUNDING).split("."))
    if ".".join(way) not in WEAKER:
        return False
    return Fraction(leaves_kit.get(changed, way)) > Fraction(leaves_kit.get(document, way))


def _admitted(verdict: Verdict, said: dict[str, str], path: str, paths: list[str]) -> bool:
    if path.endswith(ROUNDING) or path in PROVING:
        return True
    if path in FOLLOWING:
        others = FOLLOWING[path] or tuple(said)
        return paths == [*_ALONE] or any(
            _within(each, other) for each in paths if each != path for other in others
        )
    return any(
        _within(path, field) and any(words in line for line in verdict.unverified)
        for field, words in said.items()
    )


def _within(path: str, field: str) -> bool:
    plain = path.removesuffix(ROUNDING)
    return plain == field or plain.startswith(f"{field}.")
