"""A plan in words and columns: what `print(plan)` and the command line show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.cells.cell_statistics import Mean
from shoal.cells.left_out import reasons
from shoal.cells.plan_warnings import plan_warnings
from shoal.cells.typical_error import SPREAD, typical_errors, typical_half_widths
from shoal.errors import printable
from shoal.files import html
from shoal.privacy.budget import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.cells.plan_facts import PlanFacts

COLUMNS = (
    "cell", "users", "records", "typical error", "95% interval", "certified", "bias bound", "best",
)  # fmt: skip
# Of users' vectors these are the width in every row, as a note says.
_SELECTED = tuple(name for name in COLUMNS if name not in ("certified", "bias bound"))
_SHOWN = 12
_SIGN = {"95% interval": "+-"}
_RANKS = ("the user with the largest loss", "the second", "the third")
# Paper 000, Corollary II.1: `PlanFacts.paper_epsilon`.
_PAPER = "Rameshwar and Tandon (arXiv:2405.06261)"


@dataclass(frozen=True)
class PlanText:
    """A plan as text: one head line, table rows under their columns, and notes."""

    head: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The whole, with aligned columns."""
        table = [self.columns, *self.rows]
        widths = [max(len(row[at]) for row in table) for at in range(len(self.columns))]
        lines = [
            "  ".join(
                text.ljust(width) if at == 0 else text.rjust(width)
                for at, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in table
        ]
        return "\n".join([self.head, *lines, *self.notes])

    def to_html(self) -> str:
        """The same for notebooks."""
        return html.of_rows(self.head, self.columns, self.rows, self.notes)


def summary(plan: PlanFacts) -> str:
    """The head line alone."""
    spent = f"epsilon {show(plan.exact_epsilon)}"
    if plan.gaussian:
        spent += f", delta {plan.delta:g}"
    head = (
        f"{plan.method} plan: {len(plan.released)} of {len(plan.status)} cells, {spent} per user, "
        f"bounds [{plan.bounds.lo:g}, {plan.bounds.hi:g}]"
    )
    goal = "worst-case" if plan.certified else "typical"
    return f"{head}, for the {goal} error" if plan.decision.reason else head


def describe(plan: PlanFacts, rows: int = _SHOWN) -> PlanText:
    """The plan in words.

    Args:
        plan: What to describe.
        rows: Most cells to list, from 2; the best and the worst are kept, the middle is left out.

    Raises:
        InputError: rows is no such number.
    """
    rows = checks.whole(rows, "rows", least=2, example=_SHOWN)
    columns = _SELECTED if plan.decision.method.range.of_vectors else COLUMNS
    return PlanText(summary(plan), columns, tuple(_rows(plan, columns, rows)), tuple(_notes(plan)))


def _rows(plan: PlanFacts, columns: tuple[str, ...], most: int) -> list[tuple[str, ...]]:
    order = np.argsort(plan.relative_error, kind="stable")
    likely = wide = np.full(len(order), np.nan)
    if plan.statistics == (Mean(),):
        likely = typical_errors(plan) * SPREAD * plan.width
        wide = typical_half_widths(plan) * SPREAD * plan.width
        order = np.argsort(likely, kind="stable")
    if len(order) > most:
        order = np.concatenate([order[: most // 2], [-1], order[len(order) - most + most // 2 :]])
    rows, labels = [], plan.counts.labels
    for at in order.tolist():
        if at < 0:
            left_out = len(plan.decision.scale) - most
            rows.append((f"... {left_out} more", *[""] * (len(columns) - 1)))
            continue
        which, place = divmod(at, len(plan.released))
        cell, several = int(plan.released[place]), len(plan.statistics) > 1
        statistic = f" {plan.statistics[which].name}" if several else ""
        numbers = {
            "typical error": likely[at],
            "95% interval": wide[at],
            "certified": plan.worst_case_error[at],
            "bias bound": plan.bias_bound[at],
            "best": plan.lower_bound[at],
        }
        rows.append(
            (
                f"{printable(labels[cell])}{statistic}",
                f"{plan.counts.users_per_cell[cell]:,}",
                f"{plan.counts.totals[cell]:,}",
                *(
                    "-" if np.isnan(numbers[name]) else f"{_SIGN.get(name, '')}{numbers[name]:.3g}"
                    for name in columns[3:]
                ),
            )
        )
    return rows


def _notes(plan: PlanFacts) -> list[str]:
    error = plan.relative_error
    notes = [*_why(plan), *_typical(plan)]
    what = "worst-case error" if plan.certified else "noise"
    shown = () if plan.decision.method.range.of_vectors else plan.statistics
    for statistic, row in zip(shown, plan.numbers.per_statistic(error), strict=False):
        of = f" of the {statistic.name}" if len(plan.statistics) > 1 else ""
        notes.append(
            f"{what}{of}: median {np.median(row):.3g}, largest {row.max():.3g} of the range; "
            f"{int((row < 1 / 4).sum())} cells below a quarter"
        )
    if plan.decision.method.range.of_vectors:
        notes.append(
            "certified: in every data set, of whatever users are clipped; the width, as a private "
            "centre and radius are selected first"
        )
    elif not plan.certified:
        notes.append(
            "a private range is selected first: noise falls in proportion to it, and no data set "
            "is excluded in which it misses the values, so the certified error is the width"
        )
    elif plan.decision.method.planner != "by cell":
        kind = "rho" if plan.gaussian else "epsilon"
        notes.append(
            f"the same noise by the accounting of {_PAPER}, which charges every user of a cell for "
            f"the heaviest one: {kind} {plan.paper_epsilon:.4g}"
        )
    notes.append(_largest_losses(plan))
    if plan.decision.joint:
        notes.append("mean and variance come from one release of first and second moments")
    return [*notes, *_proofs(plan), *_limit(plan), *_left_out(plan)]


def _why(plan: PlanFacts) -> Iterator[str]:
    """Why the default has this method, where it was chosen."""
    if plan.decision.reason:
        yield f"{plan.method}: {plan.decision.reason}"
        if plan.method == "balanced" and plan.gaussian:
            yield (
                'method="optimal" without the delta (--method optimal) may err less where a few '
                "users count far more than the others: compare its certified errors"
            )


def _typical(plan: PlanFacts) -> Iterator[str]:
    if plan.statistics != (Mean(),):
        return
    middle = float(np.median(typical_errors(plan)))
    yield (
        f"typical error: in the median cell {middle:.2g} of the standard deviation of the values, "
        "those of all cells together; shown for values whose standard deviation is "
        f"{plan.width * SPREAD:.3g}; simulated on these counts, if users are about alike (no value "
        "was read), as is half of the 95% interval"
    )
    if plan.decision.method.range.of_vectors:
        yield (
            "intervals cover values of that kind; where frequent users differ from rare ones, or "
            "some users are far from the others (a second kind of user, outliers, long tails, yes "
            "or no, amounts that are mostly 0), errors may be several times larger, and intervals "
            f"cover far less{_left_out_by_radius(plan)}; "
            'objective="worst_case" (--objective worst_case) holds for any'
        )
    yield from (f"warning: {sentence}" for sentence in plan_warnings(plan))
    yield from _rounds(plan)


def _left_out_by_radius(plan: PlanFacts) -> str:
    if not len(plan.decision.selection_scale):
        return ""
    left, users = int(plan.parameters["clipped"][0]), len(np.unique(plan.weights.user))
    return f" (the private radius leaves out about {left:,} of {users:,} users)"


def _rounds(plan: PlanFacts) -> Iterator[str]:
    if plan.rounds > 1:
        yield (
            "two rounds: users are clipped around the values of a first one, for a part of the "
            "noise's loss; the numbers of the second are released"
        )


def _proofs(plan: PlanFacts) -> Iterator[str]:
    if plan.gap is None:
        return
    if plan.decision.targets is None:
        yield f"certified gap to the best balance: {plan.gap:.1e} per cell"
        return
    yield (
        f"no plan that weighs users has all errors more than {plan.gap / (1 + plan.gap):.2%} "
        "smaller at this loss: certified by linear programming"
    )


def _limit(plan: PlanFacts) -> Iterator[str]:
    most = plan.request.largest_error
    if most is None:
        return
    which = "worst-case errors" if plan.certified else "typical errors, as shown,"
    alone = len(plan.statistics) == 1
    limit = f"{most * float(plan.statistic_range[0]):.3g}, " if alone else ""
    yield (
        f"{which} of released cells are at most {limit}{most:.3g} of the range, as asked for: "
        f"{len(plan.released)} of {len(plan.status)} cells"
    )


def _left_out(plan: PlanFacts) -> Iterator[str]:
    uninformative = int((plan.cell_error >= 1 / 2).sum())
    if uninformative:
        better = "the midpoint has no larger error" if plan.certified else "noise hides the range"
        yield f"{uninformative} released cells are uninformative: {better}"
    labels, why = plan.counts.labels, reasons(plan)
    for reason in ("error too large", "uninformative", "too few users", "too few records"):
        left_out = [at for at, status in enumerate(plan.status) if status == reason]
        if left_out:
            names = ", ".join(f"{printable(labels[at])} ({why[at]})" for at in left_out[:_SHOWN])
            more = f" and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
            yield f"left out, {reason}: {names}{more}"


def _largest_losses(plan: PlanFacts) -> str:
    ranks = np.argsort(-plan.user_losses, kind="stable")[: len(_RANKS)]
    kind = "rho" if plan.gaussian else "epsilon"
    return "; ".join(
        f"{rank} is in {_cells(int(plan.counts.cells_per_user[user]))} and loses "
        f"{kind} {plan.user_losses[user]:.4g}"
        for rank, user in zip(_RANKS, ranks.tolist(), strict=False)
    )


def _cells(number: int) -> str:
    return f"{number:,} cell{'s' if number != 1 else ''}"
