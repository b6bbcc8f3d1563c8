"""A plan in words and columns: what `print(plan)` and the command line show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.accounting.rational import show

if TYPE_CHECKING:
    from shoal.planning.facts import PlanFacts

COLUMNS = ("cell", "users", "records", "noise scale", "bias bound", "error", "of width", "best")
_SHOWN = 12
_RANKS = 3


@dataclass(frozen=True)
class PlanText:
    """A plan as text: one head line, table rows under `COLUMNS`, and notes."""

    head: str
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The whole, with aligned columns."""
        table = [COLUMNS, *self.rows]
        widths = [max(len(row[at]) for row in table) for at in range(len(COLUMNS))]
        lines = [
            "  ".join(
                text.ljust(width) if at == 0 else text.rjust(width)
                for at, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in table
        ]
        return "\n".join([self.head, *lines, *self.notes])


def describe(plan: PlanFacts, rows: int = _SHOWN) -> PlanText:
    """The plan in words.

    Args:
        plan: What to describe.
        rows: Most cells to list; the best and the worst are kept, the middle is left out.
    """
    total = len(plan.status)
    head = (
        f"{plan.method} plan: {len(plan.released)} of {total} cells, "
        f"epsilon {show(plan.exact_epsilon)} per user, bounds [{plan.bounds.lo:g}, "
        f"{plan.bounds.hi:g}]"
    )
    return PlanText(head, tuple(_rows(plan, rows)), tuple(_notes(plan)))


def _rows(plan: PlanFacts, most: int) -> list[tuple[str, ...]]:
    order = np.argsort(plan.worst_case_error, kind="stable")
    if len(order) > most:
        order = np.concatenate([order[: most // 2], [-1], order[len(order) - most + most // 2 :]])
    rows = []
    for at in order.tolist():
        if at < 0:
            rows.append((f"... {len(plan.released) - most} more", *[""] * (len(COLUMNS) - 1)))
            continue
        cell = int(plan.released[at])
        numbers = (
            plan.noise_scale[at],
            plan.bias_bound[at],
            plan.worst_case_error[at],
            plan.relative_error[at],
            plan.lower_bound[at],
        )
        rows.append(
            (
                plan.occupancy.labels[cell],
                f"{plan.occupancy.users_per_cell[cell]:,}",
                f"{plan.occupancy.totals[cell]:,}",
                *(f"{number:.3g}" for number in numbers),
            )
        )
    return rows


def _notes(plan: PlanFacts) -> list[str]:
    error = plan.relative_error
    what, whole = ("worst-case error", "width") if plan.certified else ("noise", "range")
    notes = [
        (
            f"{what}: median {np.median(error):.3g}, largest {error.max():.3g} of the "
            f"{whole}; {int((error < 1 / 4).sum())} cells below a quarter"
        ),
        f"dearest users: {_dearest(plan)}",
    ]
    if plan.request.shares:
        notes.insert(
            1, f"the same noise by the paper's accounting: epsilon {plan.paper_epsilon:.4g}"
        )
    elif not plan.certified:
        notes.insert(
            1,
            "a private range is selected first: noise falls in proportion to it, and no data set "
            "is excluded in which it misses the values, so the certified error is the width",
        )
    if plan.gap is not None:
        notes.append(f"certified gap to the best balance: {plan.gap:.1e} per cell")
    worthless = int((error >= 1 / 2).sum())
    if worthless:
        better = "the midpoint errs by no more" if plan.certified else "noise hides the range"
        notes.append(f"{worthless} released cells are worthless: {better}")
    for reason in ("worthless", "too few users", "too few records"):
        left_out = [at for at, status in enumerate(plan.status) if status == reason]
        if left_out:
            names = ", ".join(plan.occupancy.labels[at] for at in left_out[:_SHOWN])
            more = f" and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
            notes.append(f"left out, {reason}: {names}{more}")
    return notes


def _dearest(plan: PlanFacts) -> str:
    ranks = np.argsort(-plan.steps_lost, kind="stable")[:_RANKS]
    return "; ".join(
        f"rank {place} loses {plan.user_losses[user]:.4g} in "
        f"{plan.occupancy.cells_per_user[user]} cells"
        for place, user in enumerate(ranks.tolist(), start=1)
    )
