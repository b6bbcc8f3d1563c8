"""What the papers are about: releases in manifests, and the public part of their ledger."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal import files
from shoal.errors import DocumentError, InputError
from shoal.files.text_table import counted, text_of
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Entry, Ledger, State
from shoal.privacy.unit import EACH_ROW, Unit
from shoal.release.release import Release
from shoal.verification.rederive import load
from shoal.verification.verify import verify


@dataclass(frozen=True)
class Released:
    """A release in a manifest, and the entry that recorded it."""

    place: str
    release: Release[Any, Any]
    entry: Entry

    @property
    def family(self) -> str:
        """Cells, trial or mean."""
        return self.release.plan_model.family

    @property
    def manifest(self) -> Any:
        """The manifest, as a JSON object."""
        return self.release.manifest


@dataclass(frozen=True)
class Case:
    """Releases of one ledger, its state, and its entries without their documents."""

    released: Sequence[Released]
    ledger: str
    state: State
    entries: Sequence[Entry]

    @property
    def unit(self) -> Unit:
        """Whose losses the ledger adds up."""
        return self.state.privacy_unit

    @property
    def delivered(self) -> list[Entry]:
        """The entries of releases, also of withdrawn ones."""
        return [each for each in self.entries if each.withdraws is None]

    def withdrawal(self, entry: Entry) -> str:
        """When and why a release was withdrawn; empty if it was not."""
        found = (each.withdrawal for each in self.entries if each.withdraws == entry.number)
        return next(found, "")

    @property
    def is_many(self) -> bool:
        """Whether the deployment has several releases, or a budget that comes back."""
        return len(self.delivered) > 1 or self.unit.period is not None

    @property
    def loss(self) -> Budget:
        """What a unit loses at most: by one release, or by all that the ledger will allow."""
        return self.state.budget if self.is_many else self.released[0].entry.charge

    @property
    def spent_and_left(self) -> tuple[str, str]:
        """What is spent, over all periods if there are some, and what is left, in words."""
        state = self.state
        if self.unit.period is None:
            return state.spent.show(up=True), state.left.show(up=False)
        left, *spent = state.balance()
        return "".join(spent) or "nothing", left

    @property
    def whose(self) -> str:
        """Whom the budget is for, in words."""
        period = f" in each {self.unit.period}" if self.unit.period else ""
        return self.unit.name if self.unit.name == EACH_ROW else f"each {self.unit.name}{period}"

    @property
    def comes_back(self) -> str:
        """When there is a new budget, in words."""
        if self.unit.period is None:
            return "never, as it is one sum for all time"
        return f"with each {self.unit.period}, which has {self.budget} of its own"

    @property
    def budget(self) -> str:
        """The budget in words."""
        return self.state.budget.show(up=False)


def case_of(manifests: Sequence[files.Place], book: Ledger) -> Case:
    """Reads manifests and their ledger; refuses what does not hold, or another ledger's."""
    state = book.state()
    # Another process may record meanwhile.
    entries = book.entries()[: state.entries]
    found = [_released(each, entries, book) for each in manifests]
    return Case(found, Path(book.path).name, state, entries)


def _released(place: files.Place, entries: Sequence[Entry], book: Ledger) -> Released:
    verdict = verify(place)
    wrong = [check for check in verdict.checks if not check.holds]
    if wrong:
        raise DocumentError(
            f"the manifest {os.fspath(place)!r} does not hold: {wrong[0].found}",
            f"see `shoal verify {os.fspath(place)}`, and fetch it again",
        )
    release = load(place)
    sha256 = release.manifest["record_sha256"]
    for entry in entries:
        if entry.document_sha256 == sha256:
            return Released(Path(place).name, release, entry)
    raise InputError(
        f"the ledger {str(book.path)!r} did not record the release in {os.fspath(place)!r}",
        "give the ledger that recorded it, and manifests of that one ledger",
    )


def promised(each: Released) -> str:
    """Which error was certified or asked for before anything was spent."""
    published = each.release.published
    if each.family == "mean":
        claims = published.claims
        return (
            f"standard error at most {text_of(claims.standard_error)}, bias at most "
            f"{text_of(claims.bias_bound)}"
        )
    if each.family == "trial":
        return "effects without bias; errors as forecast"
    basis = published.basis
    if basis.request.max_error is not None:
        return f"no cell with an error above {basis.request.max_error}"
    largest = float(np.max(basis.worst_case_error, initial=0.0))
    if basis.selects or not np.isfinite(largest):
        return "typical errors by simulation; none certified"
    return f"in any data set an expected error of at most {text_of(largest)}"


def met(each: Released) -> str:
    """How wide the intervals of what was released are."""
    release: Any = each.release
    if each.family == "mean":
        ends = release.interval
        return "no estimate" if ends is None else f"±{text_of((ends[1] - ends[0]) / 2)}"
    found = release.estimate() if each.family == "trial" else release
    table = found.table()
    if not {"low", "high"} <= {*table.column_names}:
        return "no intervals"
    low, high = (table.column(name).to_numpy().astype(float) for name in ("low", "high"))
    half = (high - low) / 2
    kinds = np.array(table["statistic"].to_pylist() if "statistic" in table.column_names else ())
    lines = []
    for kind in dict.fromkeys(kinds.tolist()) or ("",):
        widths = half[np.isfinite(half) & (kinds == kind if kind else True)]
        if len(widths):
            middle, largest = (text_of(float(of(widths))) for of in (np.median, np.max))
            lines.append(f"{kind} ±{largest} at most, half of them within ±{middle}".strip())
    return "; ".join(lines) or "no intervals"


def left_out(each: Released) -> Iterator[str]:
    """How many cells are reliable, and which are not or are not there, and why."""
    release: Any = each.release
    if each.family != "cells":
        return
    cells = release.published.basis.cells.num_rows
    told = Counter(release.table()["status"].to_pylist()[:cells])
    yield f"{told.pop('reliable', 0):,} of {counted(cells, 'cell')} reliable"
    yield from (f"{many:,} {status}" for status, many in told.items())
    yield from release.published.sentences
