"""A plan in words and columns: what `print(plan)`, notebooks and `shoal plan` show."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from shoal import checks
from shoal.cells.cell_statistics import Mean
from shoal.cells.largest_error import part_of_range
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.plan_warnings import plan_warnings
from shoal.cells.request import MIDPOINT_ERROR
from shoal.cells.table import plan_table
from shoal.cells.told import decides
from shoal.cells.typical_error import ALIKE, CELLS, SPREAD, often_told
from shoal.errors import printable
from shoal.files.text_table import TextTable, text_of
from shoal.privacy.budget import show

COLUMNS = ("cell", "users", "records", "typical error", "95% interval", "certified error", "status")
_SHOWN, _DEAREST = 12, 3


def summary(plan: PlanFacts) -> str:
    """Returns loss, objective, method and cells in one line."""
    delta = f", delta {plan.delta:g}" if plan.gaussian else ""
    goal = "the worst case" if plan.certified else "the typical error"
    aim = f"for {goal}, by {plan.method}" if plan.decision.reason else f"by {plan.method}"
    return (
        f"epsilon {show(plan.exact_epsilon)}{delta} per user, {aim}: "
        f"{len(plan.released):,} of {len(plan.status):,} cells"
    )


def describe(plan: PlanFacts, rows: int = _SHOWN) -> TextTable:
    """Returns the plan in words and columns, with so many of the best and worst cells."""
    rows = checks.whole(rows, "rows", least=2, example=_SHOWN)
    why = f" ({plan.decision.reason})" if plan.decision.reason else ""
    head = "\n".join(each for each in (forecast(plan), f"{summary(plan)}{why}") if each)
    return TextTable(head, COLUMNS, _rows(plan, rows), list(_notes(plan)))


def forecast(plan: PlanFacts) -> str:
    """Returns how many cells can be told, in a sentence; nothing if all are."""
    if not decides(plan):
        return ""
    cells, (many, few) = (
        len(plan.released),
        (often_told(plan, each).sum() for each in (CELLS, ALIKE)),
    )
    advice = "; plan.advise() (--advice) says what would tell more" if many < cells / 2 else ""
    return (
        f"about {many:,.0f} of {cells:,} cells can be told, if cells differ as much as "
        f"{CELLS:.0%} of the variance; {few:,.0f} if {ALIKE:.0%}{advice}"
    )


def _rows(plan: PlanFacts, most: int) -> list[list[str]]:
    """Returns rows from the smallest error to the largest, then the cells that are left out."""
    table = plan_table(plan)
    found = (
        "certified_error" if table["typical_error"].null_count == len(table) else "typical_error"
    )
    order = np.argsort(table[found].to_numpy(), kind="stable")
    gap = len(order) - most
    if gap > 0:
        order = np.delete(order, np.s_[most // 2 : most // 2 + gap])
    rows = []
    for at, row in zip(order.tolist(), table.take(order).to_pylist(), strict=True):
        wide = row["typical_half_width"]
        rows.append(
            [
                printable(plan.counts.labels[at % len(plan.status)])
                + (f" {row['statistic']}" if len(plan.statistics) > 1 else ""),
                f"{row['users']:,}",
                f"{row['records']:,}",
                _short(row["typical_error"]),
                _short(wide) if wide is None else f"+-{_short(wide)}",
                _short(row["certified_error"]),
                row["reason"] or row["status"],
            ]
        )
    if gap > 0:
        rows.insert(most // 2, [f"... {gap:,} more"])
    return rows


def _short(number: float | None) -> str:
    return text_of(number if number is None else float(f"{number:.3g}"))


def _notes(plan: PlanFacts) -> Iterator[str]:
    if plan.rounds > 1:
        yield "two rounds: users are clipped around the noisy values of a first one"
    if plan.statistics == (Mean(),):
        yield (
            "typical error, 95% interval: of a few simulated releases, so that single cells are "
            f"uncertain, for values whose standard deviation is {plan.width * SPREAD:.3g} and "
            "users about alike; no value is read; for others see plan.typical_error(spread=...)"
        )
    if plan.decision.method.range.of_vectors:
        users = len(np.unique(plan.weights.user))
        if len(plan.decision.selection_scale):
            yield (
                f"the private radius leaves out about {int(plan.parameters['clipped'][0]):,} of "
                f"{users:,} users: intervals are wide as they allow for that; where users are not "
                "alike (outliers, long tails, yes or no, amounts that are mostly 0, frequent users "
                "unlike rare ones) errors and intervals are larger; a user further than about six "
                "radii away counts as six, so intervals are too short where one in a hundred is"
            )
        else:
            yield (
                f"epsilon times users is {plan.epsilon * users:.3g}: too few for a private range; "
                'objective="worst_case" may have smaller errors'
            )
    yield from _certificate(plan)
    if plan.request.largest_error is not None:
        which = "certified" if plan.certified else "typical"
        yield (
            f"no released cell has a larger {which} error than "
            f"{part_of_range(plan, plan.request.largest_error)}, as asked for"
        )
    left_out = Counter(each for each in plan.status if each != "released")
    if left_out:
        why = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items())
        pooled = ", and given the pooled mean of the others" if Mean() in plan.statistics else ""
        yield f"cells left out{pooled}: {why}"
    yield _largest_losses(plan)
    yield from (f"warning: {sentence}" for sentence in plan_warnings(plan))


def _certificate(plan: PlanFacts) -> Iterator[str]:
    """What is proved of the errors, and of how far they are from the best."""
    if not plan.certified:
        yield (
            "certified error: none below the bounds, as values are clipped to a private range; "
            'objective="worst_case" (--objective worst_case) certifies errors for any values'
        )
    if uninformative := int((plan.cell_error >= MIDPOINT_ERROR).sum()):
        better = "the midpoint errs no more" if plan.certified else "noise hides the range"
        yield f"{uninformative:,} released cells are uninformative: {better}"
    if plan.gap is not None:
        yield proof(plan, plan.gap)
    if plan.method == "balanced" and plan.gaussian and plan.decision.reason:
        yield (
            'method="optimal" without the delta (--method optimal) may err less where a few users '
            "count far more than the others: compare its certified errors"
        )


def proof(plan: PlanFacts, gap: float) -> str:
    """Returns what a gap of a plan like this one proves."""
    if plan.decision.targets is None:
        return f"certified gap to the best balance: {gap:.1e} per cell"
    return (
        f"no plan that weighs users has all errors more than {gap / (1 + gap):.2%} smaller at "
        "this loss: certified by linear programming"
    )


def _largest_losses(plan: PlanFacts) -> str:
    users = np.argsort(-plan.user_losses, kind="stable")[:_DEAREST]
    kind = "rho" if plan.gaussian else "epsilon"
    cells = ", ".join(f"{each:,}" for each in plan.counts.cells_per_user[users].tolist())
    losses = ", ".join(f"{each:.4g}" for each in plan.user_losses[users].tolist())
    return f"largest losses: the users with {kind} {losses} have records in {cells} cells"
