"""Writes a page about one release, for those who read what a custodian publishes."""

from __future__ import annotations

import base64
import math
import os
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import checks, documents, files
from shoal.errors import DocumentError, InputError, one_line, printable
from shoal.files.text_table import TextTable, counted, text_of, texts_of
from shoal.pictures import check_picture, image
from shoal.privacy.budget import Budget, from_text, round_up, show
from shoal.privacy.ledger import Entry, Ledger, State
from shoal.privacy.unit import Unit, all_periods, first_and_last
from shoal.progress import said
from shoal.release.plan import OF_LOG
from shoal.release.rows import COMMON
from shoal.verification.rederive import load
from shoal.verification.verify import verdict_on

# Columns of a table of cells that readers need, after the keys.
_NUMBERS = ("value", "low", "high", "users", "records", "status")
# Rows of a table that a page can hold.
_MOST_ROWS = 2000
_SOME = (
    "The table has {shown:,} of {all:,} rows, first those without brackets. All rows are in the "
    "file that shoal release wrote with --output; shoal show --output table.csv writes it again."
)
_THESE = (
    "In the table low and high are for these units. Intervals hold if units were assigned one by "
    "one, within clusters."
)
_GREY = f"Values in brackets are grey in the picture: {COMMON}. Do not compare such values."
# What is public beside the rules of a release, by the family of its plan.
PUBLIC = {
    "trial": "each unit's arm, cluster, name and covariates, as far as the release uses them",
    "mean": "who has how many records",
    "presence": "about how many users there are, and the list of cells; not who is there, how "
    "often, or where",
    "cells": "who has how many records in which cell: the method treats this as public, and "
    "published files show only totals of cells",
}
# Rows of periods that pages have room for.
_MOST_PERIODS = 4
# The number of periods in the example of what the losses of periods add up to.
_MANY_PERIODS = 12
# Withdrawn releases that are named above a page.
_MOST_WITHDRAWN = 3
# The most characters of the name of such a release, or of the reason.
_SHORT = 80
GUESS = (
    "A guess is that of a person who knows all other records, and thinks two versions of what is "
    "protected equally likely; without a release it is right with a probability of 50%."
)
LOSSES = ("about", "releases", "lost at most", "left", "a guess is right at most")
# How all pages look.
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
table { border-collapse: collapse } td, th { padding: .2rem .6rem; text-align: left }
tr { border-bottom: 1px solid #8885 }
td, th { overflow-wrap: normal }
.withdrawn { border: 3px solid #c00; padding: .3rem .6rem; font-weight: 700 }
"""
_PAGE = Template(
    HEAD
    + """.wide { overflow: auto; max-height: 70vh } img { max-width: 100%; background: white }
th { cursor: pointer; position: sticky; top: 0; background: Canvas }
</style>
<h1>$title</h1>
$about
$picture
<h2>Results</h2><p>Click on a title to sort.</p><div class="wide">$table</div>$legend
<h2>What is protected</h2>$protected
<h2>How to verify it</h2>$verdict
<script>
for (const th of document.querySelectorAll(".wide th")) th.onclick = () => {
  const at = th.cellIndex, rows = [...th.closest("table").rows].slice(1);
  const up = th.dataset.up = th.dataset.up === "1" ? "0" : "1";
  const key = row => row.cells[at].textContent.replace(/[,()]/g, "");
  const by = (a, b) => (isNaN(key(a)) || isNaN(key(b))
    ? key(a).localeCompare(key(b)) : key(a) - key(b)) * (up === "1" ? 1 : -1);
  rows.sort(by).forEach(row => th.closest("tbody").append(row));
};
</script></html>
"""
)


def report(
    manifest: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    title: str = "",
    label: str = "",
    overwrite: bool = False,
) -> None:
    """Write a page about a release that can be published beside its table: one file, no links.

    It has the results, a picture, what epsilon means in words, who is protected against what, what
    is public, and how to verify it; with a ledger when it was recorded and what is left. Nothing in
    it is about single users. A likelihood ratio of at most e^epsilon bounds by e^epsilon/(1 +
    e^epsilon) how often a guess between two equally likely values is right.

    Source: docs/theory/privacy.md#accounting.

    Args:
        manifest: Written by `shoal release` or `write_manifest`.
        output: Where to; ends in .html.
        ledger: The data set's ledger, or its path.
        title: Of the page; by default columns, cell rules and name of the release.
        label: Word for the values on axes and in tables, such as minutes.
        overwrite: Replace a file that is there.

    Raises:
        InputError: Another ending, or a title or label that is no text.
        DocumentError: Not a manifest, or there is a file already.
        LedgerError: The ledger cannot be read.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile, pyarrow as pa, shoal
        >>> trips = pa.table({"bus": [*range(400)], "line": [1, 2] * 200, "speed": [30.0] * 400})
        >>> known = {"bounds": (0, 65), "by": "line", "counts": "public"}
        >>> records = shoal.Records(trips, user="bus", value="speed", **known)
        >>> release = shoal.plan(records, epsilon=5).release(records, noise=shoal.Simulated(1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.write_manifest(f"{folder}/last.json")
        ...     shoal.report(f"{folder}/last.json", f"{folder}/last.html")
    """
    place = Path(checks.path(output, "the output"))
    if place.suffix.lower() != ".html":
        raise InputError(f"a report is named {place.name!r}", "choose a name that ends in .html")
    for name, text in (("title", title), ("label", label)):
        checks.instance(text, str, name, f'give a text, for example {name}="Minutes"')
    book = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)
    with said("verifying, drawing, writing"):
        release = load(manifest)
        verdict = verdict_on(release.document, book, release=release)
        command = f"shoal verify {escape(Path(manifest).name)}"
        outcome = f"<div class='wide'>{verdict._repr_html_()}</div>"
        about = _about(release)
        checked = f"<p>Anybody can run <code>{command}</code>, which found:</p>{outcome}"
        lost = ""
        entry = None
        if book is not None:
            state = book.state()
            # Another process may record meanwhile.
            entries = [each for each in book.releases() if each.number <= state.entries]
            sha256 = release.manifest["record_sha256"]
            in_ledger = [each for each in entries if each.document_sha256 == sha256]
            entry = next(iter(in_ledger), None)
            recorded = [f"Recorded on {each.recorded_at[:10]}." for each in in_ledger]
            about = banner(in_ledger) + about
            about += paragraphs(recorded or ["Not recorded in this ledger."])
            lost = paragraphs(["What all releases in the ledger tell of one unit together:"])
            lost += TextTable("", LOSSES, losses(state, entries)).to_html()
            does = "recomputes everything, the loss included"
            if release.published.plan is None:
                does = "checks what is shown, and not the loss"
            checked = (
                f"<p>The custodian ran <code>{command} --ledger {escape(Path(book.path).name)}"
                f"</code>, which found:</p>{outcome}<p>Anybody can run <code>{command}</code>, "
                f"which {does}.</p>"
            )
        table, meaning = _table(release, printable(label))
        promises = [*protected(release, entry), *_strength(release.manifest["guarantee"])]
        page = _PAGE.substitute(
            title=escape(printable(title) or _title(release.manifest)),
            about=about,
            table=table,
            legend=meaning,
            picture=_picture(release, label),
            protected=paragraphs(promises) + lost,
            verdict=checked,
        )
    inputs = {**release.inputs, "ledger": None if book is None else book.path}
    files.write_bytes(output, page.encode(), inputs, overwrite=overwrite)


def _title(document: documents.Document) -> str:
    """Returns the title of a page that was given none: values, columns of cells and name."""
    records = document["records"]
    by = f" by {', '.join(records['cell'])}" if records.get("cell") else ""
    name = f", {document['name']}" if document["name"] else ""
    return f"{measured(document) or 'Release'}{by}{name}"


def measured(document: documents.Document) -> str:
    """Returns the name of a manifest's values; empty if nobody gave one."""
    records = document["records"]
    named = (records.get(each) for each in ("value", "outcome", "values"))
    return next(filter(None, named), "")


def _about(release: Any) -> str:
    """Returns what was released, as paragraphs of HTML."""
    document = release.manifest
    confidence = document["confidence"]
    epsilon = document["guarantee"]["epsilon_at_most"]
    lines = [
        f"Released with differential privacy, epsilon {show(epsilon)}, by shoal "
        f"{document['versions']['shoal']}, with intervals of {confidence:.0%} confidence."
    ]
    if document["simulation"]:
        lines.append("This is a simulation: nobody is protected. Do not publish it.")
    return paragraphs(lines)


def banner(entries: Sequence[Entry]) -> str:
    """Returns the warning above a page if some of these releases were withdrawn, else nothing."""
    withdrawn = [
        f"{one_line(each.name, _SHORT) or f'entry {each.number}'} was "
        f"{one_line(each.withdrawn, _SHORT)}"
        for each in entries
        if each.withdrawn
    ]
    if not withdrawn:
        return ""
    unlisted = len(withdrawn) - _MOST_WITHDRAWN
    if unlisted > 0:
        withdrawn[_MOST_WITHDRAWN:] = [f"{unlisted:,} more were withdrawn"]
    said = escape("; ".join(withdrawn))
    return f'<p class="withdrawn">WITHDRAWN: {said}. Withdrawn numbers must not be used.</p>'


def _table(release: Any, label: str) -> tuple[str, str]:
    """Returns the table of results, and what the words in it mean, both as HTML.

    The column of values is called by the statistic, if there is one alone, and by `label`.
    """
    family = release.plan_model.family
    if family == "mean":
        return f"<p>{escape(release.sentence)}</p>", ""
    found = release.estimate() if family == "trial" else release
    table: pa.Table = found.table()
    if "question" in table.column_names:
        return found._repr_html_(), ""
    if family == "trial":
        names = ["arm", "control", "value", "standard_error", "low", "high"]
        rows = [*map(texts_of, table.select(names).to_pylist())]
        meaning = [*str(found).split("\n"), _THESE]
    else:
        names, rows = _cell_rows(table)
        common = "common" in table["source"].to_pylist()
        some = [_SOME.format(shown=len(rows), all=len(table))] if len(table) > len(rows) else []
        warnings = [f"Warning: {each}" for each in release.warnings()]
        meaning = [*([_GREY] if common else []), *some, *release.meaning(), *warnings]
    # A label is of one statistic: users are no minutes.
    title = "value"
    if "statistic" not in names:
        statistic = {*table["statistic"].to_pylist()} if family != "trial" else ()
        title = ", ".join(filter(None, [*statistic, label])) or title
    titles = [title if each == "value" else each for each in names]
    return TextTable("", titles, rows).to_html(), paragraphs(meaning)


def _cell_rows(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Returns the columns of a table of cells that a page shows, and as many rows as it can hold.

    Values that are not a cell's own stand in brackets, and rows with them are left out first.
    """
    keys = table.column_names[: table.column_names.index("statistic")]
    names = [*keys, *_NUMBERS]
    if len(set(table["statistic"].to_pylist())) > 1:
        names = [*keys, "statistic", *_NUMBERS]
    common = np.array(table["source"].to_pylist(), dtype=object) == "common"
    taken = np.sort(np.argsort(common, kind="stable")[:_MOST_ROWS])
    rows = [*map(texts_of, table.select(names).take(taken).to_pylist())]
    value = names.index("value")
    for row, is_common in zip(rows, common[taken].tolist(), strict=True):
        if is_common:
            row[value] = f"({row[value]})"
    return names, rows


def _picture(release: Any, label: str) -> str:
    """Returns the picture of a release as HTML; empty where nothing can be drawn."""
    check_picture("report.png")
    try:
        drawn = base64.b64encode(image(release, "png", label=label)).decode()
    except (InputError, DocumentError):
        # Nothing is drawn of a single mean, nor of a trial of few units.
        return ""
    return f'<p><img alt="results with intervals" src="data:image/png;base64,{drawn}"></p>'


def chance(loss: Budget) -> str:
    """Returns how often a guess between two versions of a unit's values is right at most.

    Both versions are equally likely before the release.
    """
    # After it the likelier version has at most the probability (e^epsilon + delta)/(e^epsilon + 1);
    # a larger exponential than that of 700 would overflow.
    epsilon = min(round_up(loss.epsilon), 700)
    wrong = (1 - round_up(loss.delta)) / (math.exp(epsilon) + 1)
    # As many decimals as tell it from certainty, and rounded upwards.
    for decimals in range(5):
        percent = 100 - math.floor(100 * wrong * 10**decimals) / 10**decimals
        if percent < 100:
            return f"{percent:.{decimals}f}%"
    return "100%"


def protected(release: Any, entry: Entry | None) -> list[str]:
    """Returns sentences on who is protected by a release, and what is public.

    The entry of the release in the ledger knows by which clocks periods are divided.
    """
    guarantee = release.manifest["guarantee"]
    unit = Unit.of_document(guarantee["unit"])
    whose = str(unit)
    if guarantee["neighbours"] == OF_LOG:
        whose = (
            f"all rows of one {unit.name}, and how many there are; that it takes part, its arm, "
            "cluster and covariates are public"
        )
    family = release.plan_model.family
    values = f"The values are those of {measured(release.manifest) or 'the records'}"
    request = None
    if family == "cells":
        request = release.published.request
    elif family == "presence":
        request = release.plan.request
    if request is not None and measured(release.manifest):
        low, high = request.bounds
        ends = f"{text_of(low, 12)} to {text_of(high, 12)}"
        values += f", from {ends}; values beyond count as the nearer end"
    public = f"the rules of the release, its bounds, and {PUBLIC[family]}"
    rule = release.manifest["records"].get("period")
    if rule:
        clocks = entry.periods.clocks if entry and entry.periods else ""
        values += f". Periods are {clocks or rule}"
        public = f"in which {unit.period} each {unit.name} has records, {public}"
    return [f"Protected: {whose}. {values}.", f"Not protected: {public}."]


def _strength(guarantee: documents.Document) -> list[str]:
    """Returns sentences on how strongly a release protects."""
    whose = guarantee["unit"]
    unit = Unit(whose["name"], whose["counts"], whose["period"])
    charge = Budget(from_text(guarantee["epsilon"]), from_text(guarantee["delta"]))
    but = f", except with probability {show(charge.delta)}" if charge.delta else ""
    booked = all_periods(unit, guarantee.get("periods"), charge)
    return [
        f"Epsilon {show(charge.epsilon)}{but}{booked}. After seeing this release alone, a guess is "
        f"right with a probability of at most {chance(charge)}; other releases of these "
        f"records add to this. {GUESS}",
    ]


class _Loss(NamedTuple):
    """What periods have lost, and by how many releases, in words."""

    lost: Budget
    many: str


def losses(state: State, releases: Sequence[Entry]) -> list[list[str]]:
    """Returns what a unit has lost by the releases of a ledger, and may ever lose, in rows.

    The columns are `LOSSES`, and withdrawn releases count. Periods with the same loss by as many
    releases share a row; those that lost most come first.
    """
    period = state.privacy_unit.period
    withdrawn = sum(bool(each.withdrawn) for each in releases)
    so_far = _releases(len(releases), withdrawn)
    if period is None:
        return [
            _row("all releases so far", so_far, state.spent, state.left_in_words()),
            _row("all that the ledger will ever allow", "", state.budget),
        ]
    rows = _of_periods(state, releases)
    if len(state.booked) > 1:
        rows.append(_row(f"all {len(state.booked):,} {period}s", so_far, state.spent))
    rows.append(_row(f"one {period}, whatever the ledger will allow", "", state.budget))
    if state.total is not None:
        return [*rows, _row(f"all {period}s, whatever the ledger will allow", "", state.total)]
    limitless = f"{_MANY_PERIODS} {period}s (the ledger has no limit over all)"
    return [*rows, _row(limitless, "", state.budget.in_all(_MANY_PERIODS))]


def _releases(many: int, withdrawn: int) -> str:
    """Returns how many releases there are, and how many of them were withdrawn, in words."""
    return counted(many, "release") + (f", {withdrawn:,} withdrawn" if withdrawn else "")


def _row(about: str, many: str, lost: Budget, left: str = "") -> list[str]:
    """Returns a row with the columns `LOSSES`."""
    return [about, many, lost.show(up=True), left, chance(lost)]


def _of_periods(state: State, releases: Sequence[Entry]) -> list[list[str]]:
    """Returns the rows of single periods, and at last one for those that have no room."""
    published: Counter[str] = Counter()
    withdrawn: Counter[str] = Counter()
    for entry in releases:
        names = entry.periods.names if entry.periods else ()
        published.update(names)
        if entry.withdrawn:
            withdrawn.update(names)
    # The periods that share a row.
    alike: dict[_Loss, list[str]] = {}
    for name in sorted(state.booked):
        many = _releases(published[name], withdrawn[name])
        alike.setdefault(_Loss(state.booked[name], many), []).append(name)
    ranked = sorted(alike, key=lambda each: each.lost.epsilon, reverse=True)
    rows = []
    for loss in ranked[:_MOST_PERIODS]:
        about = first_and_last(alike[loss])
        rows.append(_row(about, loss.many, loss.lost, state.left_in_words(alike[loss])))
    others = ranked[_MOST_PERIODS:]
    if others:
        many_others = sum(len(alike[each]) for each in others)
        unlisted = counted(many_others, f"other {state.privacy_unit.period}")
        largest = Budget(others[0].lost.epsilon, max(each.lost.delta for each in others))
        rows.append(_row(unlisted, "", largest))
    return rows


def paragraphs(lines: Sequence[str]) -> str:
    """Returns sentences as paragraphs of HTML."""
    return "".join(f"<p>{escape(each)}</p>" for each in lines)
