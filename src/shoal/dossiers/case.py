"""Reads what the papers are about: releases in manifests, and the public part of their ledger."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal import files
from shoal.cells.facts.request import FEWEST_USERS
from shoal.errors import DocumentError, InputError
from shoal.files.text_table import counted, text_of
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import Entry, Ledger, State
from shoal.privacy.unit import EACH_ROW, Unit
from shoal.report_page import measured
from shoal.verification.rederive import load
from shoal.verification.verify import verify


@dataclass(frozen=True)
class Released:
    """A release in a manifest, and the entry that recorded it."""

    place: str
    release: Any
    entry: Entry

    @property
    def family(self) -> str:
        """The family of the plan: `cells`, `presence`, `trial` or `mean`."""
        found: str = self.release.plan_model.family
        return found

    @property
    def manifest(self) -> Any:
        """The manifest, as a JSON object."""
        return self.release.manifest

    @property
    def values(self) -> str:
        """The name of the values."""
        return measured(self.manifest)


# Statistics that are not about values.
COUNTS = ("users", "records")


@dataclass(frozen=True)
class Case:
    """Releases of one ledger, its state, and its entries of releases, also of withdrawn ones."""

    released: Sequence[Released]
    ledger: str
    state: State
    entries: Sequence[Entry]

    @property
    def unit(self) -> Unit:
        """Whose losses the ledger adds up."""
        return self.state.privacy_unit

    @property
    def has_rows(self) -> bool:
        """Whether records have rows of units, which private counts have not."""
        return any(each.family != "presence" for each in self.released)

    @property
    def is_many(self) -> bool:
        """Whether the deployment has several releases, or a budget that comes back."""
        return len(self.entries) > 1 or self.unit.period is not None

    @property
    def loss(self) -> Budget:
        """What a unit loses at most: by one release, or by all that the ledger will allow."""
        return self.state.budget if self.is_many else self.released[0].entry.charge

    @property
    def budget(self) -> str:
        """The budget in words: for whom it is, and when there is a new one."""
        budget = self.state.budget.show(up=False)
        whose = self.unit.name if self.unit.name == EACH_ROW else f"each {self.unit.name}"
        if self.unit.period is None:
            return f"{budget}, for {whose}, once for all time"
        return (
            f"{budget}, for {whose} in each {self.unit.period}. What is spent of a "
            f"{self.unit.period} never comes back; records of a new one have {budget} of their own"
        )


def case_of(manifests: Sequence[files.Place], book: Ledger) -> Case:
    """Reads manifests and their ledger; refuses what does not hold, or another ledger's."""
    state = book.state()
    # Another process may record meanwhile.
    entries = [each for each in book.releases() if each.number <= state.entries]
    found = [_released(each, entries, book) for each in manifests]
    return Case(found, Path(book.path).name, state, entries)


def _released(place: files.Place, entries: Sequence[Entry], book: Ledger) -> Released:
    """Returns the release in a manifest with its entry; refuses a manifest that does not hold."""
    wrong = [check for check in verify(place).checks if not check.holds]
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
    """Returns which error was certified or asked for before anything was spent."""
    published = each.release.published
    if each.family == "mean":
        claims = published.claims
        return (
            f"standard error of {each.values} at most {text_of(claims.standard_error)}, bias at "
            f"most {text_of(claims.bias_bound)}"
        )
    if each.family == "trial":
        return "effects without bias; errors as forecast"
    if each.family == "presence":
        return "errors as the plan said, if users are spread evenly; none certified"
    if each.manifest["kind"] == "distributions":
        return "typical errors by simulation; none certified"
    basis = published.basis
    if basis.request.max_error is not None:
        return f"no cell with an error of {each.values} above {basis.request.max_error}"
    largest = float(np.max(basis.worst_case_error, initial=0.0))
    if basis.selects or not np.isfinite(largest):
        return "typical errors by simulation; none certified"
    return f"in any data set an expected error of {each.values} of at most {text_of(largest)}"


def met(each: Released) -> str:
    """Returns how wide the released intervals are."""
    sentences = []
    for kind, widths in _widths(each).items():
        what = kind if kind in COUNTS else f"{kind} of {each.values}"
        largest = text_of(max(widths) / 2)
        median = text_of(float(np.median(widths)) / 2)
        sentences.append(f"{what} ±{largest} at most, half of the intervals within ±{median}")
    return "; ".join(sentences) or "no intervals"


def _widths(each: Released) -> dict[str, list[float]]:
    """Returns the widths of released intervals by statistic, without infinite and unknown ones."""
    release = each.release
    if each.family == "mean":
        if release.interval is None:
            return {}
        low, high = release.interval
        return {"mean": [high - low]}
    found: dict[str, list[float]] = {}
    table = (release.estimate() if each.family == "trial" else release).table()
    for row in table.to_pylist():
        if row.get("low") is not None and np.isfinite(row["high"] - row["low"]):
            kind = row.get("statistic", "effect")
            found.setdefault(kind, []).append(row["high"] - row["low"])
    return found


def left_out(each: Released) -> Iterator[str]:
    """Yields how many cells are reliable, why others are not or are left out, and their sizes.

    All of it follows from the tables that everybody may read.
    """
    published = each.release.published
    if each.family == "trial":
        yield counted(published.units, "unit")
    elif each.family == "mean":
        yield counted(published.users, "user")
    else:
        cells = each.release.cells.num_rows
        # The rows of the first statistic come first.
        status: Counter[str] = Counter(each.release.table()["status"].to_pylist()[:cells])
        yield f"{status.pop('reliable', 0):,} of {counted(cells, 'cell')} reliable"
        yield from (f"{many:,} {why}" for why, many in status.items())
    if each.family == "cells":
        yield from published.sentences
        yield f"{counted(sum(published.records), 'record')} in them"
        yield f"by rule at least {counted(published.request.min_users, 'user')} in a cell"
        if few := sum(users < FEWEST_USERS for users in published.users):
            yield f"{counted(few, 'cell')} shown with fewer than {FEWEST_USERS} users"
