"""Plans and releases of statistics of public counts in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrays import Bools, Floats
from shoal.cells.estimates.intervals import WHY, dominated
from shoal.cells.estimates.typical_error import SD, typical_errors, typical_half_widths
from shoal.cells.planners.objective import count_alike
from shoal.cells.shown.left_out import counted_out
from shoal.cells.shown.plan_text import (
    cell_title,
    clamped,
    clipped,
    limited,
    verdict,
    will_be_reliable,
)
from shoal.cells.shown.plan_warnings import plan_warnings
from shoal.cells.shown.published import Published as PublishedPart
from shoal.data import keys
from shoal.distributions.bin_estimates import MOST_MOVED
from shoal.distributions.documents import Published
from shoal.distributions.expected import forecast, has_ranks, typical_interval
from shoal.distributions.parts import Parts
from shoal.distributions.request import OF_MEANS, OF_SQUARES, QUANTILES
from shoal.distributions.units import BITS, TYPICAL_BIAS, Units
from shoal.errors import printable
from shoal.files.text_table import SHOWN, TextTable, counted, text_of
from shoal.privacy.budget import Budget, show
from shoal.release.rows import Row, reasons, rows_table, side_by_side, verdicts
from shoal.release.statistics import Statistic
from shoal.theory import sum_zero
from shoal.theory.user_clipping import SPREAD

# The standard deviation of squared deviations of normal values is the root of 2 times their mean.
_OF_SQUARES = 2**0.5
# Statistics of values themselves, and not of their squares or bins.
_OF_VALUES = ("mean", "sum")


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
    elif kind.kind in _OF_VALUES:
        facts = plan.planned["mean"]
        every = _of_values(plan, kind, typical_errors(facts))
    else:
        facts = plan.planned["squares"]
        relative = _OF_SQUARES * SD**2
        error = typical_errors(facts, relative) * relative * facts.width
        if kind.kind == "std":
            deviation = SD * plan.planned["mean"].width
            error = error / (2 * deviation)
        every[facts.planned] = error
    return every[plan.shown]


def half_width(plan: Parts, kind: Statistic) -> Floats:
    """Returns half of the 95% interval to expect in each cell that readers see, of means and sums.

    Squares of values have longer tails than the values that are simulated, so that nothing is said
    of deviations.
    """
    if kind.kind not in _OF_VALUES:
        return np.full(len(plan.shown), np.nan)
    half = typical_half_widths(plan.planned["mean"])
    return _of_values(plan, kind, half)[plan.shown]


def _of_values(plan: Parts, kind: Statistic, parts: Floats) -> Floats:
    """Returns numbers of all cells in the unit of a mean or a sum, from parts of the deviation."""
    facts = plan.planned["mean"]
    every = np.full(plan.counts.n_cells, np.nan)
    every[facts.planned] = parts * SD * facts.width
    return every * plan.counts.records if kind.kind == "sum" else every


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
        errors = {
            "typical_error": typical(plan, kind),
            "typical_half_width": half_width(plan, kind),
        }
        columns: dict[str, pa.Array[Any]] = {
            "statistic": pa.array([kind.name] * len(status)),
            "status": pa.array(status, pa.string()),
            "reason": pa.array([WHY.get(each) for each in status], pa.string()),
            "users": pa.array(counts.users_per_cell[plan.shown]),
            "records": pa.array(counts.records[plan.shown]),
        }
        columns |= {name: pa.array(each, mask=np.isnan(each)) for name, each in errors.items()}
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
    titles = [cell_title(plan.shown_cells), "users", "records"]
    columns = []
    for kind, error in zip(kinds, errors, strict=True):
        in_percent = kind.kind not in OF_MEANS
        titles.append(kind.name)
        columns.append([f"{each:.1%}" if in_percent else text_of(each, 3) for each in error])
        if kind.kind in _OF_VALUES:
            titles.append("95% interval")
            columns.append([f"±{text_of(each, 3)}" for each in half_width(plan, kind)])
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
        texts = [column[at] for column in columns]
        rows.append([printable(names[at]), f"{users[at]:,}", f"{records[at]:,}", *texts])
    if hidden > 0:
        rows.insert(SHOWN // 2, [f"... {hidden:,} more"])
    notes = [*_notes(plan)]
    warnings = [*warnings_of(plan)]
    return TextTable("\n".join(head), titles, rows, notes, warnings)


def _forecasts(plan: Parts) -> Iterator[str]:
    """Yields how many cells will be reliable: of means, and of what follows from bins."""
    found = {}
    if "mean" in plan.planned:
        of_values = any(kind.kind in _OF_VALUES for kind in plan.request.kinds)
        title = "Means" if of_values else "Means, which deviations need"
        found[title] = verdict(plan.planned["mean"])
    units = plan.units
    # In fewer cells counts alone decide it.
    if units is not None and len(units.cells) >= SPREAD and has_ranks(plan):
        found["Quantiles and shares"] = will_be_reliable(forecast(units), len(plan.shown))
    for name, sentence in found.items():
        if sentence:
            yield f"{name}: {sentence[0].lower()}{sentence[1:]}"


def _intervals(plan: Parts) -> Iterator[str]:
    """Yields how far intervals of quantiles will reach in a typical cell, or why nobody can say."""
    units = plan.units
    assert units is not None
    quantiles = [kind for kind in plan.request.kinds if kind.kind in QUANTILES]
    if has_ranks(plan):
        found = [f"that of {each.name} will reach from {_reach(units, each)}" for each in quantiles]
        where = " in a typical cell," if len(units.cells) > 1 else ""
        if found:
            yield f"Intervals are whole bins:{where} {', '.join(found)}."
        return
    unknown = []
    if len(units.cells) >= SPREAD:
        unknown.append("how many cells will be reliable for them")
    if quantiles:
        unknown.append("how far intervals of quantiles will reach")
    if unknown:
        where = "the thresholds" if plan.request.thresholds else "fixed parts of the bounds"
        yield (
            f"Nor can anybody say {' and '.join(unknown)}: it depends on where {where} lie among "
            "the values."
        )


def _reach(units: Units, kind: Statistic) -> str:
    """Returns the ends of a quantile's interval in words."""
    ends = typical_interval(units, kind.level)
    low, high = (f"{each:.0%}" for each in ends)
    begin = "the lower bound" if low == "0%" else f"the {low} quantile of all records"
    if high == "100%":
        return f"{begin} to the upper bound"
    if low != "0%":
        begin = f"the {low}"
    return f"{begin} to the {high} quantile of all records"


def _notes(plan: Parts) -> Iterator[str]:
    """Yields the sentences below a plan's table."""
    if "mean" in plan.planned:
        yield (
            "Columns of means, sums and deviations have typical errors, from simulated releases "
            "with these counts, for values with a standard deviation of "
            f"{text_of(plan.planned['mean'].width * SD, 3)} and users with similar values."
        )
        yield from _clipped(plan)
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


def _clipped(plan: Parts) -> Iterator[str]:
    """Yields how many users are clipped for means and for squares, and what would clip nobody."""
    certified = ""
    if count_alike(plan.counts):
        certified = 'range="tight" (--setting range=tight)'
    for part, facts in plan.planned.items():
        of_part = "Of squares: " if part == "squares" else ""
        for sentence in clipped(facts, certified):
            yield f"{of_part}{sentence}"


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
        if published.bins.far:
            yield "Cells lie far apart, so that there are more bins than planned."
    if "sum" in published.request.statistics:
        yield "sum: the mean times the public number of records, as far as they count."


def release_text(
    published: Published, rows: Sequence[Row], head: str, notes: list[str]
) -> TextTable:
    """Returns the verdict, the statistics of the first cells side by side, and what they mean."""
    counts = {"users": published.users, "records": published.records}
    shown = side_by_side(published.cells, rows, counts)
    notes = [*shown.notes, *notes]
    verdict_lines = "\n".join([*verdicts(rows), head])
    return TextTable(verdict_lines, shown.titles, shown.lines, notes, [*published.warnings])


def release_table(published: Published, rows: Sequence[Row], *, all: bool = False) -> pa.Table:
    """Returns a row for each cell and statistic."""
    counts = {
        "users": published.users.astype(np.float64),
        "records": published.records.astype(np.float64),
    }
    return rows_table(published.cells, rows, WHY, counts, all=all)
