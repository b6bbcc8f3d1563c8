"""Plans and releases of statistics of public counts in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.intervals import WHY, dominated
from shoal.cells.estimates.typical_error import SD, typical_errors
from shoal.cells.shown.left_out import counted_out
from shoal.cells.shown.plan_text import cell_title, clamped, limited, verdict, will_be_reliable
from shoal.cells.shown.plan_warnings import plan_warnings
from shoal.cells.shown.published import Published as PublishedPart
from shoal.data import keys
from shoal.distributions.bin_estimates import MOST_MOVED
from shoal.distributions.documents import Published
from shoal.distributions.expected import forecast, has_ranks, typical_interval
from shoal.distributions.parts import Parts
from shoal.distributions.request import OF_MEANS, OF_SQUARES, QUANTILES
from shoal.distributions.units import BITS, TYPICAL_BIAS
from shoal.errors import printable
from shoal.files.text_table import SHOWN, TextTable, counted, text_of
from shoal.privacy.budget import Budget, show
from shoal.release.rows import Row, reasons, rows_table, side_by_side, verdicts
from shoal.release.statistics import Statistic
from shoal.theory import sum_zero
from shoal.theory.user_clipping import SPREAD

# The standard deviation of squared deviations of normal values is the root of 2 times their mean.
_OF_SQUARES = 2**0.5


def typical(plan: Parts, kind: Statistic) -> Floats:
    """Returns the typical error of a statistic in each cell that readers see.

    Of means and deviations it is for values with a standard deviation of `SD`: an error of the mean
    square e is one of e/(2 s) of the standard deviation s. Of shares and quantiles it is a part of
    the records.
    """
    counts = plan.counts
    every = np.full(counts.n_cells, np.nan)
    if kind.kind not in OF_MEANS:
        units = plan.units
        assert units is not None
        bins = units.bins + len(plan.request.thresholds)
        noise = sum_zero.mean_size(bins, bins // 2) * units.noise
        bias = TYPICAL_BIAS * units.moved
        every[units.cells] = np.minimum(noise + bias, 1.0)
    elif kind.kind in ("mean", "sum"):
        facts = plan.planned["mean"]
        deviation = SD * facts.width
        every[facts.planned] = typical_errors(facts) * deviation
        if kind.kind == "sum":
            every = every * counts.records
    else:
        facts = plan.planned["squares"]
        relative = _OF_SQUARES * SD**2
        error = typical_errors(facts, relative) * relative * facts.width
        if kind.kind == "std":
            deviation = SD * plan.planned["mean"].width
            error = error / (2 * deviation)
        every[facts.planned] = error
    return every[plan.shown]


def summary(plan: Parts, loss: Budget) -> str:
    """Returns statistics, cells and loss in one line."""
    delta = f", delta {float(loss.delta):g}" if loss.delta else ""
    what = f"{', '.join(plan.request.statistics)} of {counted(len(plan.shown), 'cell')}"
    return f"{what}, epsilon {show(loss.epsilon)}{delta} per {plan.counts.of_whom} in all"


def _dominated(plan: Parts, kind: Statistic) -> Bools:
    """Returns in which cells that readers see caps move too much weight to be reliable."""
    every = np.zeros(plan.counts.n_cells, dtype=bool)
    if kind.kind in OF_MEANS:
        part = "squares" if kind.kind in OF_SQUARES else "mean"
        facts = plan.planned[part]
        every[facts.planned] = dominated(facts)
    else:
        assert plan.units is not None
        dominated_cells = plan.units.moved > MOST_MOVED
        every[plan.units.cells] = dominated_cells
    return every[plan.shown]


def plan_table(plan: Parts) -> pa.Table:
    """Returns a row for each cell and statistic, with the error that it will typically have."""
    counts = plan.counts
    blocks = []
    for kind in plan.request.kinds:
        by_rule = np.array(plan.shown_status, dtype=object)
        few = _dominated(plan, kind)
        status = np.where(few, "few users dominate", by_rule).tolist()
        error = typical(plan, kind)
        columns: dict[str, pa.Array[Any]] = {
            "statistic": pa.array([kind.name] * len(status)),
            "status": pa.array(status, pa.string()),
            "reason": pa.array([WHY.get(each) for each in status], pa.string()),
            "users": pa.array(counts.users_per_cell[plan.shown]),
            "records": pa.array(counts.records[plan.shown]),
            "typical_error": pa.array(error, mask=np.isnan(error)),
        }
        table = plan.shown_cells
        for name, column in columns.items():
            table = table.append_column(name, column)
        blocks.append(table)
    return pa.concat_tables(blocks).combine_chunks()


def plan_text(plan: Parts, loss: Budget, protected: str) -> TextTable:
    """Returns a plan on one screen: what, what is protected, and typical errors of cells."""
    counts = plan.counts
    kinds = plan.request.kinds
    noise = f"Noise will be added to {summary(plan, loss)}."
    head = [*_forecasts(plan), noise, f"Protected: {protected}."]
    errors = [typical(plan, kind) for kind in kinds]
    users = counts.users_per_cell[plan.shown]
    records = counts.records[plan.shown]
    names = keys.labels(plan.shown_cells)
    order = np.argsort(errors[0], kind="stable")
    hidden = len(order) - SHOWN
    if hidden > 0:
        # Rows in the middle are hidden.
        order = np.delete(order, np.s_[SHOWN // 2 : SHOWN // 2 + hidden])
    rows = []
    for at in order.tolist():
        texts = [
            text_of(float(error[at]), 3) if kind.kind in OF_MEANS else f"{error[at]:.1%}"
            for kind, error in zip(kinds, errors, strict=True)
        ]
        rows.append([printable(names[at]), f"{users[at]:,}", f"{records[at]:,}", *texts])
    if hidden > 0:
        rows.insert(SHOWN // 2, [f"... {hidden:,} more"])
    cell = cell_title(plan.shown_cells)
    titles = [cell, "users", "records", *plan.request.statistics]
    notes = [*_notes(plan)]
    warnings = [*warnings_of(plan)]
    return TextTable("\n".join(head), titles, rows, notes, warnings)


def _forecasts(plan: Parts) -> Iterator[str]:
    """Yields how many cells will be reliable: of means, and of what follows from bins."""
    found = {}
    if "mean" in plan.planned:
        found["Means"] = verdict(plan.planned["mean"])
    units = plan.units
    # In fewer cells counts alone decide it.
    if units is not None and len(units.cells) >= SPREAD and has_ranks(plan):
        found["Quantiles and shares"] = will_be_reliable(forecast(units), len(plan.shown))
    for name, sentence in found.items():
        if sentence:
            yield f"{name}: {sentence[0].lower()}{sentence[1:]}"


def _intervals(plan: Parts) -> Iterator[str]:
    """Yields which whole bins intervals of quantiles will be in a typical cell, if it is known."""
    assert plan.units is not None
    found = []
    for kind in plan.request.kinds:
        if kind.kind in QUANTILES and has_ranks(plan):
            low, high = typical_interval(plan.units, kind.level)
            found.append(f"{kind.name} {low:.0%} to {high:.0%}")
    if not found:
        return
    yield (
        "Intervals are whole bins. In a typical cell that is like the others they will reach, "
        "in quantiles of all records from 0% (the lower bound) to 100%: "
        f"{', '.join(found)}."
    )


def _notes(plan: Parts) -> Iterator[str]:
    """Yields the sentences below a plan's table."""
    if "mean" in plan.planned:
        yield (
            "Columns of means, sums and deviations have typical errors, from simulated releases "
            "with these counts, for values with a standard deviation of "
            f"{text_of(plan.planned['mean'].width * SD, 3)} and users with similar values."
        )
    units = plan.units
    if units is not None:
        found = f"{units.bins} bins are found with " if units.rounds else ""
        if found:
            spent = units.vote * units.rounds / 2**BITS
            part = spent / float(plan.request.epsilon)
            found += f"{part:.0%} of epsilon. "
        yield (
            "Columns of shares and quantiles have typical errors in percent of a cell's records: "
            f"nobody can say before by how much a quantile is off in its own unit. {found}"
            f"{_dominating(plan)}"
        )
        yield from _intervals(plan)
    yield "No value was read."
    yield from counted_out(plan.request, plan.left_out)
    yield from limited(plan.counts.of_whom, plan.counts.records_per_user)


def _dominating(plan: Parts) -> str:
    """Returns in how many cells bins will not be reliable, as few users dominate them."""
    assert plan.units is not None
    many = int((plan.units.moved > MOST_MOVED).sum())
    if not many:
        return ""
    return f"In {counted(many, 'cell')} none will be reliable: {WHY['few users dominate']}."


def warnings_of(plan: Parts) -> Iterator[str]:
    """Yields what a custodian should read before spending anything, each sentence once."""
    of_means: list[str] = []
    for facts in plan.planned.values():
        of_means.extend(plan_warnings(facts))
    yield from dict.fromkeys(of_means)
    yield from _few_users(plan)


def _few_users(plan: Parts) -> Iterator[str]:
    """Yields a warning if users are too few to find bins."""
    if plan.units is not None and plan.units.bins > 1 and not plan.units.rounds:
        yield (
            "few users: bins are at fixed parts of the bounds, because finding better ones would "
            "use up epsilon; give thresholds that fit"
        )


def warnings_of_release(plan: Parts, parts: Mapping[str, PublishedPart]) -> Iterator[str]:
    """Yields the warnings of all parts, each once."""
    of_parts: list[str] = []
    for part in parts.values():
        of_parts.extend(part.warnings)
    yield from dict.fromkeys(of_parts)
    yield from _few_users(plan)


def meaning(
    published: Published, rows: Sequence[Row], user: str, most_records: int | None
) -> Iterator[str]:
    """Yields why cells are not reliable, and what is counted."""
    yield clamped(published.request.lattice.bounds)
    yield from reasons(rows, WHY)
    yield from published.sentences
    yield from limited(user, most_records)
    if published.bins is not None:
        yield ("Intervals of quantiles are sets of whole bins. A value at a threshold is below it.")
    if "sum" in published.request.statistics:
        yield "sum: the mean times the public number of records, as far as they count."


def release_text(
    published: Published, rows: Sequence[Row], head: str, notes: list[str]
) -> TextTable:
    """Returns the verdict, the statistics of the first cells side by side, and what they mean."""
    counts = {"users": published.users, "records": published.records}
    shown = side_by_side(published.cells, rows, counts)
    if shown.others:
        notes = [f"{', '.join(shown.others)}: in to_pandas() and files", *notes]
    verdict_lines = "\n".join([*verdicts(rows), head])
    return TextTable(verdict_lines, shown.titles, shown.lines, notes, [*published.warnings])


def release_table(published: Published, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
    """Returns a row for each cell and statistic."""
    counts = {
        "users": published.users.astype(np.float64),
        "records": published.records.astype(np.float64),
    }
    return rows_table(published.cells, rows, WHY, counts, all=all)
