"""A frontier in words and columns: what `print(frontier)` and `shoal plan --frontier` show."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from shoal.privacy.budget import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from fractions import Fraction

    from shoal.cells.frontier.errors import Figures, P, Point
    from shoal.cells.frontier.points import Points

    Lines: TypeAlias = Mapping[str, Mapping[Fraction, Figures]]
    Pick: TypeAlias = Callable[[Figures], float]
    Block: TypeAlias = tuple[str, Lines, Pick]

_MOST_REASONS = 8
_DIGITS = 4


def describe(frontier: Points[P]) -> str:
    """The frontier as text: blocks of one row a method and one column a loss, then notes."""
    plan = frontier.points[0].plan
    head = (
        f"{len(plan.released)} cells, {', '.join(each.name for each in plan.statistics)}, "
        f"bounds [{plan.bounds.lo:g}, {plan.bounds.hi:g}]; errors over {over(frontier)}, "
        "guessing has an error of 0.5"
    )
    rows = [("epsilon", *(show(each, _DIGITS) for each in frontier.epsilons))]
    for at, (title, lines, pick) in enumerate(_blocks(frontier)):
        rows.append((title,))
        for name, figures in lines.items():
            rows.append(_row(frontier, name, {e: pick(each) for e, each in figures.items()}))
        if at == 0 and frontier.joint_bounds:
            worst = {each.epsilon: each.worst for each in frontier.joint_bounds}
            rows.append(_row(frontier, "lower bound, all cells at once", worst))
    return "\n".join([head, "", *_aligned(rows), "", *notes(frontier)])


def _row(frontier: Points[P], name: str, at: Mapping[Fraction, float]) -> tuple[str, ...]:
    return (f"  {name}", *(f"{at[e]:.3g}" if e in at else "-" for e in frontier.epsilons))


def over(frontier: Points[P]) -> str:
    """What errors are divided by."""
    statistics = frontier.points[0].plan.statistics
    if len(statistics) > 1:
        return "the range of each statistic (its worst one counts for a cell)"
    name = statistics[0].name
    return "the width" if name == "mean" else f"the range of the {name}"


def notes(frontier: Points[P]) -> list[str]:
    """What a reader has to know to read the figures."""
    found = ["uninformative cells are kept, so that all methods are compared on the same cells"]
    if frontier.bounds:
        found.append(
            "lower bound: no plan has a smaller error; alone: as if a cell had all of the loss"
        )
    if len(frontier.bounds) < len(frontier.epsilons):
        found.append("no lower bound is known where noise is Gaussian")
    for method in frontier.methods:
        found += _notes_on(method, frontier.of(method))
    return [*found, *_left_out(frontier)]


def _blocks(frontier: Points[P]) -> Iterator[Block]:
    cells = len(frontier.points[0].plan.released)
    certified: dict[str, Mapping[Fraction, Figures]] = {}
    selecting: dict[str, Mapping[Fraction, Figures]] = {}
    for name in frontier.methods:
        points = frontier.of(name)
        if points[0].plan.certified:
            certified[name] = {each.epsilon: each.figures for each in points}
        else:
            selecting[name] = {
                each.epsilon: each.noise_figures for each in points if each.noise_figures
            }
    if frontier.bounds:
        certified["lower bound, each cell alone"] = {
            each.epsilon: each.figures for each in frontier.bounds
        }
    if certified:
        yield "worst-case error, worst cell", certified, lambda figures: figures.worst
        yield "worst-case error, median cell", certified, lambda figures: figures.median
        better = f"cells better than guessing, of {cells}"
        yield better, certified, lambda figures: figures.better_than_guessing
    if selecting:
        yield "only noise, worst cell", selecting, lambda figures: figures.worst
        yield "only noise, median cell", selecting, lambda figures: figures.median


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


def _notes_on(method: str, points: tuple[Point[P], ...]) -> Iterator[str]:
    if not points[0].plan.certified:
        yield (
            f"{method}: selects a range in private and certifies nothing; its noise is shown over "
            "that range, which is narrower than the width; see shoal compare"
        )
    more = max((each.plan.request.epsilon or each.epsilon) / each.epsilon for each in points)
    if more > 1:
        yield (
            f"{method}: counts losses higher than they are; asked for up to {float(more):.3g} "
            "times the epsilon shown, it spends at most that epsilon"
        )
    least = min(points, key=lambda each: each.plan.exact_epsilon / each.epsilon)
    if least.unspent:
        yield (
            f"{method}: spends only {show(least.plan.exact_epsilon, 3)} of "
            f"{show(least.epsilon, _DIGITS)}"
        )
    yield from _proof(method, [each.plan for each in points])


def _proof(method: str, plans: list[P]) -> Iterator[str]:
    gaps = [each.gap for each in plans if each.gap is not None]
    if gaps and plans[0].decision.targets is not None:
        yield (
            f"{method}: no plan that weighs users has all errors more than "
            f"{max(gap / (1 + gap) for gap in gaps):.2%} smaller: certified by linear programming"
        )
    elif gaps:
        yield f"{method}: certified gap to the best balance at most {max(gaps):.1e} per cell"


def _left_out(frontier: Points[P]) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in frontier.left_out:
        reasons.setdefault((each.method, each.reason), []).append(show(each.epsilon, _DIGITS))
    for (method, reason), losses in list(reasons.items())[:_MOST_REASONS]:
        yield f"left out: {method} at epsilon {', '.join(losses)}: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"and {len(reasons) - _MOST_REASONS} more, in frontier.left_out"
