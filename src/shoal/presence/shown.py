"""Plans and releases of private counts in words and tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import InputError, printable
from shoal.files.text_table import TextTable, counted, text_of
from shoal.presence.estimates import FEW_USERS, WHY, Estimates
from shoal.presence.guide import Guide
from shoal.presence.look import STANDS_OUT
from shoal.presence.request import Request
from shoal.presence.rounds import Round, rounds_of
from shoal.privacy.budget import show
from shoal.release.rows import WHOLE, Row, reasons, rows_table, side_by_side, verdicts
from shoal.theory import hull
from shoal.theory.key_threshold import MOST_KEYS, Selection

# Of the errors that a plan says (docs/theory/private-counts.md#errors-that-a-plan-says): the part
# of its users whose weight a cell keeps, the error of a mean as a part of the bounds where noise is
# all of its weight, and how many times that is beside quantiles.
_KEPT = 0.4
_OF_MEANS = 0.07
_OF_PIECES = 1.6
# The part of the users of an even spread that a small cell has.
_SMALL = 1 / 5
# Errors of a plan by their columns, as they are printed.
_ERRORS = {"typical_error": "typical error", "small_cell_error": "in a small cell"}
# Epsilon times users of a cell below which its values are mostly noise.
_SCARCE = 5.0
# Cells of a user for which a plan says how many users a cell needs.
_CELLS_OF_USERS = 10
# Most records of a user that are tried.
_RECORDS_PER_USER = (3, 5, 10, 20)
# What a user counts for, in each total.
_CAPPED = {
    "users": "cells",
    "records": "records",
    "sum": "times the upper bound",
    "values": "records",
}


def summary(request: Request) -> str:
    """Statistics, cells and loss in one line."""
    names = ", ".join(request.statistics)
    cells = "cells that are found" if request.finds else counted(request.keys.num_rows, "cell")
    delta = f", delta {float(request.delta):g}" if request.delta else ""
    return f"{names} of {cells}, epsilon {show(request.epsilon)}{delta} in all"


def plan_text(
    request: Request,
    rounds: Mapping[str, Round],
    selection: Selection | None,
    protected: str,
    warnings: Sequence[str],
) -> TextTable:
    """A plan on one screen: what, what is protected, and about how much numbers will err."""
    head = f"Noise will be added to {summary(request)}.\nProtected: {protected}."
    rows = []
    for row in plan_table(request, rounds).to_pylist():
        rows.append([row["statistic"], *(_about(row[each]) for each in _ERRORS)])
    notes: list[str] = []
    if selection is None:
        notes.append(
            f"typical error: about what a cell errs by if {request.users:,} users are spread "
            f"evenly over the {counted(request.keys.num_rows, 'cell')}; a small cell has a fifth "
            "of that. Values cut off by a cap or a range add to it. Nothing was read for it, and a "
            "wrong number of users costs accuracy, never privacy."
        )
    else:
        notes.extend(_of_selection(selection))
    for name in request.totals:
        if name != "users" and request.records_per_user is None and request.guide is None:
            size = rounds["answers"].scale(name)
            unseen = STANDS_OUT * rounds["sizes"].scale(name)
            notes.append(
                f"{name}: {_about(size)} for each record that one user counts for, of which a "
                "private look finds the best number. It does not notice up to about "
                f"{unseen:,.0f} users with far more. With records_per_user you fix the number."
            )
    if request.min_users is not None:
        notes.append(
            f"Cells with a noisy number of users below {request.min_users:,} are marked as such."
        )
    if request.guide is not None:
        notes.extend(_of_guide(request.guide, "user", request.blocks))
    elif request.n_pieces and request.records_per_user is None:
        notes.append(_of_values(rounds, "user", "as many records as a private look finds best"))
    return TextTable(head, ["statistic", *_ERRORS.values()], rows, notes, warnings)


def _of_selection(chosen: Selection) -> Iterator[str]:
    """How many users a cell needs to be found, and what is not known before."""
    scale = 2.0**chosen.bits
    # What is left to find in the second draw has about its level.
    needed = [chosen.found_second / chosen.second * many**0.5 for many in (1, _CELLS_OF_USERS)]
    beside = scale / chosen.second
    yield (
        f"Cells are found that have about {needed[0]:,.0f} users or more, if each of them is in no "
        f"other cell, and about {needed[1]:,.0f} if each is in {_CELLS_OF_USERS}, give or take "
        f"{2 * beside:,.0f}; of a user with more than {MOST_KEYS} cells so many count. How many "
        "cells there will be nobody knows, nor how much noise each has."
    )


def _of_guide(guide: Guide, user: str, blocks: Collection[str]) -> Iterator[str]:
    """What follows from an earlier release, and what intervals rest on; the caps of some blocks."""
    yield (
        f"How much each {user} counts for, and where values lie, is taken from the release "
        f"{guide.release!r}: nothing is spent on a look. Changes since then cost accuracy, and "
        "never privacy; intervals hold if very heavy users have no more of the records than then."
    )
    for name, cap in guide.caps.items():
        if name in blocks and not cap.hull:
            most = f"about {_about(cap.size)} {_CAPPED[name]}"
            yield f"{name}: each {user} counts for at most {most}."


def _of_values(rounds: Mapping[str, Round], user: str, most: str) -> str:
    """What statistics of values are of, and when they are those of all records, too."""
    unseen = STANDS_OUT * rounds["sizes"].scale("values")
    # With priorities of cells a record counts for less where there are many.
    fewer = ", in large cells for fewer" if "cells" in rounds else ""
    return (
        f"Values: each {user} counts for at most {most}{fewer}. Intervals hold for all records, "
        f"too, if no {unseen:,.0f} users have most of them, whom a private look would not see. "
        "records_per_user makes it the question."
    )


def plan_table(request: Request, rounds: Mapping[str, Round]) -> pa.Table:
    """A row for each statistic, with the error that a cell has if users are spread evenly."""
    answers = rounds["answers"]
    columns: dict[str, Any] = {"statistic": list(request.statistics)}
    for name, part in zip(_ERRORS, (1.0, _SMALL), strict=True):
        errors = [_typical_error(request, answers, each.kind, part) for each in request.kinds]
        columns[name] = pa.array(errors, pa.float64())
    return pa.table(columns)


def _typical_error(request: Request, answers: Round, kind: str, part: float) -> float | None:
    """About what a cell errs by that has a part of the users that an even spread gives.

    None where it depends on what users have.
    """
    cells = request.keys.num_rows
    if request.finds:
        return None
    if kind == "users":
        scale = answers.scale("users")
        return scale * hull.mean_absolute(cells)
    if kind in ("records", "sum"):
        if request.records_per_user is None:
            return None
        unit = request.bounds[1] if kind == "sum" else 1.0
        return answers.scale(kind) * request.records_per_user * unit
    noise = answers.scale("values") * cells / (_KEPT * request.users * part)
    if kind not in ("mean", "median", "quantile"):
        return min(noise, 1.0)
    low, high = request.bounds
    # The range is as short as the noise demands: so four times the noise is twice the error.
    error = _OF_MEANS * math.sqrt(noise)
    if request.n_pieces > 1:
        error *= _OF_PIECES
    return min(error, 0.5) * (high - low)


def advice(request: Request) -> TextTable:
    """What other losses, and fewer records of each user, would make of the typical errors."""
    changes: dict[str, dict[str, Any]] = {"this plan": {}}
    for times in (2, 4):
        loss = request.epsilon * times
        changes[f"epsilon={show(loss)}"] = {"epsilon": loss}
    if request.records_per_user is None:
        for most in _RECORDS_PER_USER:
            changes[f"records_per_user={most}"] = {"records_per_user": most}
    rows = []
    for change, parts in changes.items():
        changed = request.model_copy(update=parts)
        errors = plan_table(changed, rounds_of(changed))["typical_error"].to_pylist()
        rows.append([change, *map(_about, errors)])
    notes = [
        "errors if users are spread evenly over the cells. With records_per_user the errors of "
        "records and sums are known beforehand, and users with many records count for less."
    ]
    titles = ["change", *request.statistics]
    return TextTable("typical errors after each change", titles, rows, notes)


def _about(error: float | None) -> str:
    """An error in two digits."""
    return "-" if error is None else text_of(error, 2)


def needs_many(request: Request) -> list[str]:
    """Statistics of which a private look must say something first."""
    needed = []
    for kind in request.kinds:
        given = kind.kind in ("records", "sum") and request.records_per_user is not None
        if kind.kind != "users" and not given:
            needed.append(kind.name)
    return needed


def check_worth(request: Request) -> None:
    """Refuse what is mostly noise with so many users; a function of the request alone."""
    many = float(request.epsilon) * request.users
    needed = needs_many(request)
    if needed and many < FEW_USERS:
        raise InputError(
            f"epsilon times the number of users is {many:.3g}: below {FEW_USERS}, private caps and "
            f"ranges are mostly noise, so that {', '.join(needed)} would tell nothing",
            "raise epsilon, or ask for users alone, or for records with records_per_user",
        )


def plan_warnings(request: Request) -> Iterator[str]:
    """What a custodian should know before spending."""
    many = float(request.epsilon) * request.users / max(request.keys.num_rows, 1)
    if request.n_pieces and many < _SCARCE:
        yield (
            f"epsilon times the number of users is {many:.2g} for each cell: most cells will have "
            "one number in common; list fewer cells or raise epsilon"
        )


def release_text(
    numbers: Estimates, rows: Sequence[Row], head: str, user: str, value: str | None
) -> TextTable:
    """The verdict, the statistics of the first cells side by side, and what they mean."""
    shown = side_by_side(numbers.request.keys, rows)
    verdict = "\n".join([*verdicts(rows), head])
    notes = [*shown.notes, *meaning(numbers, rows, user, value)]
    return TextTable(verdict, shown.titles, shown.lines, notes, [*release_warnings(numbers)])


def meaning(numbers: Estimates, rows: Sequence[Row], user: str, value: str | None) -> list[str]:
    """Why cells are not reliable, and what is counted."""
    return [*reasons(rows, WHY), *legend(numbers, user, value)]


def legend(numbers: Estimates, user: str, value: str | None) -> Iterator[str]:
    """What the numbers are of: users and records that count, and how much of a user does."""
    yield _of_cells(numbers, value)
    if numbers.cells:
        yield from _of_users(numbers, user)


def _of_cells(numbers: Estimates, value: str | None) -> str:
    """Which records count, and which cells there are."""
    if not numbers.cells:
        return "No cell has enough users to be found: use coarser cells, or raise epsilon or delta."
    what = "" if value is None else f"with {printable(value)} "
    if numbers.drawn.keys is None:
        return (
            f"Of records {what}in a listed cell; a misspelt key looks like a cell without records."
        )
    return (
        f"Of records {what}in a cell that was found; whether there are cells with fewer users, "
        "nobody is told."
    )


def _of_users(numbers: Estimates, user: str) -> Iterator[str]:
    """How much of a user counts."""
    request = numbers.request
    if request.records_per_user is not None:
        yield f"Each {user} counts for at most {request.records_per_user:,} of its records."
    for name, total in numbers.totals.items():
        cap = total.cap
        if cap.hull or (name != "users" and request.records_per_user is not None):
            continue
        most = f"{cap.size:.3g} {_CAPPED[name]}"
        yield f"{name}: each {user} counts for at most {most}, scaled up by {cap.up:.3g}."
        if name != "users" and request.guide is None:
            unseen = STANDS_OUT * numbers.rounds["sizes"].scale(name)
            yield (
                f"{name}: intervals hold if no {unseen:,.0f} of them have far more each, all of "
                "about one size; records_per_user needs no such assumption."
            )
    yield from _of_weights(numbers, user)
    if request.n_pieces and numbers.values.capped:
        rise = numbers.values.capped
        done = "raised" if rise > 0 else "lowered"
        yield (
            f"Means are {done} by {abs(rise):.3g}: users whom the cap takes records from have "
            "other values, and intervals allow for twice as much."
        )
    if "users" in numbers.totals and numbers.cells > 1:
        yield f"Users of cells do not add up to all users: one {user} may be in several cells."
        if numbers.totals["users"].cap.hull:
            yield "Noise moves users of many cells the same way, so that sums of cells err by more."


def _of_weights(numbers: Estimates, user: str) -> Iterator[str]:
    """How much a user counts in statistics of values."""
    request = numbers.request
    if request.guide is not None:
        yield from _of_guide(request.guide, user, ["values"])
    elif request.n_pieces and request.records_per_user is None:
        cap = numbers.look.caps["values"]
        if cap.known:
            yield _of_values(numbers.rounds, user, f"about {_about(cap.size)} records")
        else:
            yield (
                f"Values: a private look saw too little, so that each {user} counts once in all, "
                "shared among its cells by its records."
            )


def release_warnings(numbers: Estimates) -> Iterator[str]:
    """Sentences that a reader should know before relying on the numbers."""
    if numbers.few_users and numbers.request.n_pieces:
        users = f"{max(numbers.noisy_users, 0):,.0f}"
        yield (
            f"about {users} users have a record in a listed cell that could be read, too few for "
            f"epsilon {show(numbers.request.epsilon)}"
        )


def release_table(numbers: Estimates, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
    """A row for each cell and statistic."""
    counts = {}
    for name in WHOLE:
        counts[name] = np.full(numbers.cells, np.nan)
        if name in numbers.totals:
            counts[name] = np.rint(numbers.totals[name].value)
    return rows_table(numbers.request.keys, rows, WHY, counts, all=all)
