"""A comparison in words and columns: what `print` and the command line show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shoal.privacy.budget import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from shoal.cells.comparison import Comparison, P, Row

    Block: TypeAlias = tuple[str, Mapping[str, Mapping[Fraction, float]]]

_MOST_REASONS, _DIGITS = 8, 4


def describe(found: Comparison[P]) -> str:
    """Returns a table a quantity with one column a loss, or a column a quantity at one loss."""
    blocks, epsilons = list(_blocks(found)), found.epsilons
    if len(epsilons) == 1:
        names = list(dict.fromkeys(name for _, lines in blocks for name in lines))
        rows = [("method", *(title for title, _ in blocks))]
        rows += [(name, *(_number(lines, name, epsilons[0]) for _, lines in blocks))
                 for name in names]  # fmt: skip
    else:
        rows = [("epsilon", *(show(each, _DIGITS) for each in epsilons))]
        for title, lines in blocks:
            rows.append((title,))
            rows += [(f"  {name}", *(_number(lines, name, each) for each in epsilons))
                     for name in lines]  # fmt: skip
    return "\n".join([_head(found), "", *_aligned(rows), "", *notes(found)])


def _head(found: Comparison[P]) -> str:
    loss = f"epsilon {show(found.epsilons[0], _DIGITS)}: " if len(found.epsilons) == 1 else ""
    plan = next((each.plan for each in found.rows if each.plan is not None), None)
    head = loss
    if plan is not None:
        bounds = f"bounds [{plan.bounds.lo:g}, {plan.bounds.hi:g}]"
        head += f"{len(plan.released)} cells, {', '.join(found.statistics)}, {bounds}; "
    if found.assumed is not None:
        return f"{head}errors in the value's unit"
    return f"{head}errors over {over(found)}, guessing has an error of 0.5"


def _number(lines: Mapping[str, Mapping[Fraction, float]], name: str, epsilon: Fraction) -> str:
    number = lines.get(name, {}).get(epsilon)
    return "-" if number is None else f"{number:.{_DIGITS}g}"


def over(found: Comparison[P]) -> str:
    """Returns what certified errors are divided by."""
    if len(found.statistics) > 1:
        return "the range of each statistic (its worst one counts for a cell)"
    [name] = found.statistics
    return "the width" if name == "mean" else f"the range of the {name}"


def _blocks(found: Comparison[P]) -> Iterator[Block]:
    table = found.table().to_pylist()
    losses = dict(zip(sorted({row["epsilon"] for row in table}), found.epsilons, strict=True))

    def block(title: str, column: str, **only: Any) -> Block:
        lines: dict[str, dict[Fraction, float]] = {}
        for row in table:
            if row[column] is not None and all(row[key] == each for key, each in only.items()):
                lines.setdefault(row["method"], {})[losses[row["epsilon"]]] = row[column]
        return title, lines

    if found.assumed is not None:
        blocks = [block("typical error", "typical_error"), block("+-", "standard_error"),
                  block("plain", "plain_error"),
                  block("worst case", "worst_case_error", certified=True)]  # fmt: skip
    else:
        better = f"cells better than guessing, of {max(row['cells'] or 0 for row in table)}"
        blocks = [block("worst-case error, worst cell", "worst", certified=True),
                  block("worst-case error, median cell", "median", certified=True),
                  block(better, "better_than_guessing", certified=True),
                  block("only noise, worst cell", "noise_worst"),
                  block("only noise, median cell", "noise_median")]  # fmt: skip
    yield from (each for each in blocks if each[1])


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    full = [row for row in rows if len(row) > 1]
    widths = [max(len(row[at]) for row in full) for at in range(len(full[0]))]
    return [
        "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]


def notes(found: Comparison[P]) -> list[str]:
    """Returns what a reader has to know to read the figures."""
    if found.assumed is not None:
        # Of a function its name says more than where it lies in memory.
        assumed = getattr(found.assumed, "__name__", str(found.assumed))
        return [
            f"typical: mean absolute error of values under {assumed}; plain: of released numbers",
            "worst case: certified for every data set, the median cell; -: nothing but the width",
            "names with blanks are what anybody writes by hand, with the bounds as given: clipping "
            "tighter needs knowledge of the values",
            "other values have other errors (long tails, two kinds of users): give assumed= a "
            "function that draws",
        ]
    lines = ["uninformative cells are kept, so that all methods are compared on the same cells"]
    known = {each.epsilon for each in found.bounds}
    if known:
        lines.append(
            "lower bound: no plan has a smaller error; alone: as if a cell had all of the loss"
        )
    if len(known) < len(found.epsilons):
        lines.append("no lower bound is known where noise is Gaussian")
    for method in found.methods:
        lines += _notes_on(method, [each for each in found.rows if each.method == method])
    return [*lines, *_left_out(found)]


def _notes_on(method: str, rows: list[Row[P]]) -> Iterator[str]:
    plans = [(each, each.plan) for each in rows if each.plan is not None]
    if not rows[0].certified:
        yield (
            f"{method}: selects a range in private and certifies nothing; its noise is shown over "
            "that range, which is narrower than the width; see shoal compare"
        )
    more = max((plan.request.epsilon or row.epsilon) / row.epsilon for row, plan in plans)
    if more > 1:
        yield (
            f"{method}: counts losses higher than they are; asked for up to {float(more):.3g} "
            "times the epsilon shown, it spends at most that epsilon"
        )
    row, plan = min(plans, key=lambda each: each[1].exact_epsilon / each[0].epsilon)
    if row.unspent:
        spent = show(plan.exact_epsilon, 3)
        yield f"{method}: spends only {spent} of {show(row.epsilon, _DIGITS)}"
    gaps = np.array([plan.gap for _, plan in plans if plan.gap is not None])
    if len(gaps) and plan.targets is not None:
        yield (
            f"{method}: no plan that weighs users has all errors more than "
            f"{(gaps / (1 + gaps)).max():.2%} smaller: certified by linear programming"
        )
    elif len(gaps):
        yield f"{method}: certified gap to the best balance at most {gaps.max():.1e} per cell"


def _left_out(found: Comparison[P]) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in found.left_out:
        reasons.setdefault((each.method, each.reason), []).append(show(each.epsilon, _DIGITS))
    for (method, reason), losses in list(reasons.items())[:_MOST_REASONS]:
        yield f"left out: {method} at epsilon {', '.join(losses)}: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"and {len(reasons) - _MOST_REASONS} more, in left_out"
